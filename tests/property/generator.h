/* generator.h - random programs (generate.h): what the files that make them share.
 *
 * A program is a few types, helpers that work on an element of a type, kernels and a main that runs the kernels. What a
 * statement may access is kept as a list of views: arrays, elements and cursors, each with the number of elements that
 * are certain to be there. Indices are made so that they stay below that number whatever the loops around them do. */
#ifndef TESTS_PROPERTY_GENERATOR_H
#define TESTS_PROPERTY_GENERATOR_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { STRUCTS = 4, LISTS = 2, FIELDS = 10, VIEWS = 24, LOOPS = 6, HELPERS = 3, KERNELS = 14, TEXT = 160 };

enum kind { PLAIN, ARRAY, BITS, UNION, ELEMENTS };

struct field {
    enum kind kind;
    int type;
    unsigned count; /* of an ARRAY, or of ELEMENTS */
};

struct type {
    struct field fields[FIELDS];
    int count;
    bool list;   /* has a `next` */
    bool floats; /* copies of odd sizes would make numbers that are none */
};

struct view {
    char name[24];
    int scalar; /* type of the elements, or -1… */
    int type;   /* …and this struct */
    unsigned capacity;
    bool pointers; /* to structs */
    bool grows;    /* is reallocated: not copied */
    bool block;    /* can be freed and made anew */
    int site;
    int pinned; /* somebody holds a pointer into it */
};

struct loop {
    char name[16];
    unsigned most; /* greatest value of the variable */
};

struct generator {
    FILE *out;
    uint64_t state;
    int indent, name, site, budget, tries;
    struct type types[STRUCTS];
    struct view views[VIEWS];
    int view_count;
    struct loop loops[LOOPS];
    int loop_count;
    int breakable; /* depth of loops that break and continue leave */
    bool leaves;   /* `goto out` and `return acc` are possible */
    bool helper;
};

enum { SCALARS = 6, U64 = 3 };

extern const struct scalar {
    const char *name;
    bool real;
} scalars[SCALARS];

/* A place of one scalar. */
struct place {
    char text[TEXT * 2];
    int scalar;
    bool bits; /* then base and field are its parts */
    char base[TEXT];
    char field[16];
};

/* ---- generate.c ---- */

/* A number below BELOW. */
unsigned pick(struct generator *g, unsigned below);
/* True in PERCENT of a hundred cases. */
bool chance(struct generator *g, unsigned percent);
/* Writes a line, indented. */
__attribute__((format(printf, 2, 3))) void line(struct generator *g, const char *format, ...);
/* TEXT and a brace; what follows is indented. */
void open_block(struct generator *g, const char *text);
void close_block(struct generator *g);

/* ---- expressions.c ---- */

/* An index below CAPACITY, whatever the loops around do; TEXT has room for TEXT bytes. */
void index_text(struct generator *g, unsigned capacity, char *text);
/* A number of no importance for a scalar of that type; stays for four calls. */
const char *value_text(struct generator *g, int scalar);
/* Stays until the next call. */
const char *condition_text(struct generator *g);
/* A place in the struct of TYPE that BASE is. */
void field_of(struct generator *g, const char *base, int type, struct place *place);
/* Any element of VIEW. */
void element_text(struct generator *g, const struct view *view, char *text);
void any_place(struct generator *g, struct place *place);
struct view *any_view(struct generator *g);

/* ---- statements.c ---- */

/* COUNT statements, and what they contain. */
void statements(struct generator *g, int count);
void burst(struct generator *g);
void binary_statement(struct generator *g);
/* Allocates the block of VIEW. */
void make_block(struct generator *g, const struct view *view);
void loop_statement(struct generator *g);
/* A pointer that is there from now on: a view of one element. */
void push_cursor(struct generator *g, const char *name, int scalar, int type);
void search_loop(struct generator *g);

#endif
