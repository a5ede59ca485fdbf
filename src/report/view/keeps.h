/* keeps.h - who keeps what the program can reach: keepers (variables, stacks …) as a tree, and blocks by place and
 * keeper as a graph.
 *
 * What a keeper keeps alone is exact: the process has found it block by block. What blocks of a place keep alone is
 * computed here by dominators of the graph of places: a place that all ways lead through. Ways of several blocks are
 * one there, so that it is a lower bound. */
#ifndef HW_REPORT_VIEW_KEEPS_H
#define HW_REPORT_VIEW_KEEPS_H

#include "report/buffer.h"
#include "report/view/view.h"

struct hw_view_keeper {
    uint32_t parent; /* smaller than the own index; 0 is nothing */
    uint32_t kind;   /* enum hw_keeper_kind */
    uint32_t module; /* of a variable: index, or HW_NONE */
    uint32_t tid;
    bool in_tls;                  /* thread-local: the offset is one in the thread-local data of the module */
    uint32_t location;            /* of a frame: index, or HW_NONE */
    const char *thread;           /* its name, any bytes; "": not known */
    const char *symbol;           /* the variable's; NULL: not known */
    const char *field_of, *field; /* "server" and ".db" of a pointer; NULL: not known */
    const char *type;             /* what it is declared to point to: "struct entry"; NULL: not known */
    const char *section;          /* where there is no symbol; or NULL */
    uint64_t offset;              /* in the symbol, in the section, or where there is neither as in the ELF file */
    uint64_t address, size;       /* as in the ELF file; thread-local: beyond the thread pointer */
    uint64_t pointers;            /* words in it that point to blocks */
    uint64_t blocks, bytes;       /* that belong to it, and not to one below it */
    uint64_t retained_blocks, retained_bytes; /* with those below: would be unreachable without it */
    uint32_t places;                          /* with such blocks */
    uint32_t also[2];                         /* of a block that several point to: other keepers that do; 0: none */
    uint32_t also_count;                      /* all of them */
};

/* Blocks of a place that belong to a keeper. */
struct hw_view_kept {
    uint32_t context; /* index, HW_NONE: it is not in the view */
    uint32_t leaf;    /* node */
    uint32_t keeper;
    uint32_t dominator; /* the nearest kept that all ways to it lead through; HW_NONE: none, but keepers */
    uint32_t way;       /* edge, the last of a shortest way from a keeper; HW_NONE: no pointer was recorded */
    uint32_t distance;  /* edges of it */
    uint64_t blocks, bytes;
    uint64_t retained_blocks, retained_bytes; /* its own, and what only ways through it lead to */
    size_t first_edge, edge_count;            /* to it: most pointers first */
};

struct hw_view_keeps {
    struct hw_view_keeper *keepers;
    size_t keeper_count;
    struct hw_view_kept *kept;
    size_t kept_count;
    struct hw_keep_edge *edges; /* indexes into the above; by `to` */
    size_t edge_count;
};

/* For view.c. First before names are known. False when there is no memory. */
bool hw_view_make_keeps(struct hw_view *view, const uint32_t *canonical, const uint32_t *module_of,
                        const uint32_t *context_of, size_t ids);
bool hw_view_name_keeps(struct hw_view *view, const struct hw_view_options *options, struct hw_error *error);
void hw_view_free_keeps(struct hw_view *view);

/* For keep.c: contexts have new indexes, or HW_NONE. */
void hw_view_keep_keeps(struct hw_view *view, const uint32_t *kept);

/* "variable", … as JSON and SQLite have it. */
const char *hw_keeper_key(uint32_t kind);
/* The keeper for people, without its module: "server+0x10", "stack of main thread 12 "redis-server"". Names of the
 * program are any bytes. */
void hw_keeper_name(const struct hw_view *view, uint32_t keeper, struct hw_buffer *out);
/* The same without numbers of threads, which other runs do not have: "stack of threads "worker"". */
void hw_keeper_plain_name(const struct hw_view *view, uint32_t keeper, struct hw_buffer *out);

/* Indexes of keepers that keep something (of all, of those right below PARENT), most retained bytes first. To be freed;
 * *COUNT. NULL when there is no memory. */
uint32_t *hw_keepers_sorted(const struct hw_view_keeps *keeps, uint32_t parent, size_t *count);
/* Indexes of kept entries that belong to KEEPER or to one below it (HW_NONE: all) by bytes, likewise. */
uint32_t *hw_kept_sorted(const struct hw_view_keeps *keeps, uint32_t keeper, size_t *count);
/* A place with all that it keeps. */
struct hw_keeps_place {
    uint32_t context; /* index, HW_NONE: it is not in the view */
    uint32_t leaf;
    uint32_t kept; /* its entry with most bytes */
    uint64_t blocks, bytes;
    uint64_t retained_blocks, retained_bytes; /* its own, and what only ways through it lead to: at least so much */
};
/* Of most retained bytes first. To be freed; *COUNT. NULL when there is no memory. */
struct hw_keeps_place *hw_keeps_places(const struct hw_view_keeps *keeps, size_t *count);

/* Whether KEEPER is ABOVE, or below it. */
bool hw_keeper_below(const struct hw_view_keeps *keeps, uint32_t keeper, uint32_t above);

#endif
