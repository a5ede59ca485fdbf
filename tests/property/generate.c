/* generate.c - see generate.h.
 *
 * A program is a few types, helpers that work on an element of a type, kernels and a main that runs the kernels. What a
 * statement may access is kept as a list of views: arrays, elements and cursors, each with the number of elements that
 * are certain to be there. Indices are made so that they stay below that number whatever the loops around them do. */
#include "property/generate.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

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

static const struct {
    const char *name;
    bool real;
} scalars[] = {{"uint8_t", false},  {"uint16_t", false}, {"uint32_t", false},
               {"uint64_t", false}, {"double", true},    {"float", true}};

enum { SCALARS = sizeof scalars / sizeof *scalars, U64 = 3 };

/* ---- chance and output ---- */

static unsigned pick(struct generator *g, unsigned below)
{
    g->state += 0x9e3779b97f4a7c15ull; /* splitmix64 */
    uint64_t z = g->state;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return (unsigned)((z ^ z >> 31) >> 33) % below;
}

static bool chance(struct generator *g, unsigned percent)
{
    return pick(g, 100) < percent;
}

__attribute__((format(printf, 2, 3))) static void line(struct generator *g, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(g->out, "%*s", 4 * g->indent, "");
    vfprintf(g->out, format, arguments);
    fputc('\n', g->out);
    va_end(arguments);
}

static void open_block(struct generator *g, const char *text)
{
    line(g, "%s{", text);
    g->indent++;
}

static void close_block(struct generator *g)
{
    g->indent--;
    line(g, "}");
}

/* ---- expressions ---- */

/* An index below CAPACITY. */
static void index_text(struct generator *g, unsigned capacity, char *text)
{
    unsigned most = capacity - 1;
    struct loop *a =
        g->loop_count ? &g->loops[g->loop_count - 1 - pick(g, g->loop_count > 2 ? 2 : (unsigned)g->loop_count)] : NULL;
    struct loop *b = g->loop_count > 1 ? &g->loops[pick(g, (unsigned)g->loop_count - 1)] : NULL;
    if (!a || a->most > most || chance(g, 12)) {
        if (chance(g, 60) || capacity == 1)
            snprintf(text, TEXT, "%u", pick(g, capacity));
        else if (a && chance(g, 50))
            snprintf(text, TEXT, "(acc + %s * %u) %% %u", a->name, 1 + pick(g, 9), capacity);
        else
            snprintf(text, TEXT, "acc %% %u", capacity);
        return;
    }
    unsigned stride = a->most ? 1 + pick(g, most / a->most) : 1 + pick(g, 3);
    if (chance(g, 45))
        stride = 1;
    unsigned rest = most - stride * a->most;
    if (b && b != a && b->most && b->most <= rest && chance(g, 60)) {
        unsigned second = 1 + pick(g, rest / b->most);
        rest -= second * b->most;
        snprintf(text, TEXT, "%s * %u + %s * %u + %u", a->name, stride, b->name, second, pick(g, rest + 1));
    } else if (chance(g, 20)) {
        snprintf(text, TEXT, "(%u - %s) * %u + %u", a->most, a->name, stride, pick(g, rest + 1));
    } else if (stride == 1) {
        snprintf(text, TEXT, "%s + %u", a->name, chance(g, 50) ? 0 : pick(g, rest + 1));
    } else {
        snprintf(text, TEXT, "%s * %u + %u", a->name, stride, pick(g, rest + 1));
    }
}

/* A number of no importance. */
static const char *value_text(struct generator *g, int scalar)
{
    static char text[4][TEXT];
    static unsigned next;
    char *t = text[next++ % 4];
    if (scalars[scalar].real) {
        snprintf(t, TEXT, chance(g, 50) ? "(double)(acc %% %u)" : "%u", 1 + pick(g, 9));
        return t;
    }
    switch (pick(g, 4)) {
    case 0:
        snprintf(t, TEXT, "%u", 1 + pick(g, 200));
        break;
    case 1:
        snprintf(t, TEXT, "acc >> %u", pick(g, 20));
        break;
    case 2:
        if (g->loop_count) {
            snprintf(t, TEXT, "%s + %u", g->loops[g->loop_count - 1].name, 1 + pick(g, 9));
            break;
        }
        __attribute__((fallthrough));
    default:
        snprintf(t, TEXT, "acc + %u", pick(g, 9));
        break;
    }
    return t;
}

static const char *condition_text(struct generator *g)
{
    static char text[TEXT];
    const char *variable = g->loop_count && chance(g, 50) ? g->loops[g->loop_count - 1].name : "acc";
    switch (pick(g, 3)) {
    case 0:
        snprintf(text, TEXT, "(%s & %u) == %u", variable, 7u, pick(g, 8));
        break;
    case 1:
        snprintf(text, TEXT, "%s %% %u != 0", variable, 2 + pick(g, 5));
        break;
    default:
        snprintf(text, TEXT, "%s > %u", variable, pick(g, 20));
        break;
    }
    return text;
}

/* A place of one scalar. */
struct place {
    char text[TEXT * 2];
    int scalar;
    bool bits; /* then base and field are its parts */
    char base[TEXT];
    char field[16];
};

static void field_of(struct generator *g, const char *base, int type, struct place *place)
{
    const struct type *t = &g->types[type];
    int index = (int)pick(g, (unsigned)t->count);
    const struct field *field = &t->fields[index];
    *place = (struct place){.scalar = field->type};
    snprintf(place->base, sizeof place->base, "&%.150s", base);
    snprintf(place->field, sizeof place->field, "f%d", index);
    switch (field->kind) {
    case PLAIN:
        snprintf(place->text, sizeof place->text, "%s.f%d", base, index);
        break;
    case BITS:
        place->bits = true;
        break;
    case UNION: {
        static const struct {
            const char *name;
            int scalar;
        } parts[] = {{"whole", 3}, {"halves[0]", 2}, {"halves[1]", 2}, {"bytes[3]", 0}, {"bytes[6]", 0}};
        unsigned part = pick(g, 5);
        snprintf(place->text, sizeof place->text, "%s.f%d.%s", base, index, parts[part].name);
        place->scalar = parts[part].scalar;
        break;
    }
    case ARRAY: {
        char at[TEXT];
        index_text(g, field->count, at);
        snprintf(place->text, sizeof place->text, "%s.f%d[%.140s]", base, index, at);
        break;
    }
    case ELEMENTS: { /* structs in an array, and structs in an array of those */
        static const struct {
            const char *name;
            int scalar;
        } parts[] = {{"small", 2}, {"large", U64}, {"inner[0].x", 1}, {"inner[2].y", 1}};
        char at[TEXT];
        unsigned part = pick(g, 4);
        index_text(g, field->count, at);
        snprintf(place->text, sizeof place->text, "%s.f%d[%.120s].%s", base, index, at, parts[part].name);
        place->scalar = parts[part].scalar;
        break;
    }
    }
}

/* The text of an element of VIEW; may write lines that fetch a pointer. */
static void element_text(struct generator *g, const struct view *view, char *text)
{
    char at[TEXT];
    index_text(g, view->capacity, at);
    if (view->pointers) {
        int name = g->name++;
        line(g, "struct S%d *q%d = LD(%s[%s]);", view->type, name, view->name, at);
        snprintf(text, TEXT, "(*q%d)", name);
    } else {
        snprintf(text, TEXT, "%.20s[%.130s]", view->name, at);
    }
}

static struct view *any_view(struct generator *g)
{
    /* What came last is nearest: cursors and elements. */
    if (g->view_count > 1 && chance(g, 35))
        return &g->views[g->view_count - 1];
    return &g->views[pick(g, (unsigned)g->view_count)];
}

static void any_place(struct generator *g, struct place *place)
{
    const struct view *view = any_view(g);
    char element[TEXT];
    element_text(g, view, element);
    if (view->scalar >= 0) {
        *place = (struct place){.scalar = view->scalar};
        snprintf(place->text, sizeof place->text, "%s", element);
    } else {
        field_of(g, element, view->type, place);
    }
}

/* ---- statements ---- */

static void statements(struct generator *g, int count);

/* What is done to one place. */
static void touch(struct generator *g, const struct place *place)
{
    if (place->bits) {
        if (chance(g, 50))
            line(g, "acc = acc * 3 + LDB(%s, %s);", place->base, place->field);
        else
            line(g, "STB(%s, %s, %s);", place->base, place->field, value_text(g, U64));
        return;
    }
    const char *cast = scalars[place->scalar].real ? "(uint64_t)" : "";
    switch (pick(g, scalars[place->scalar].real ? 6 : 8)) {
    case 0:
    case 1:
        line(g, "acc = acc * 31 + %sLD(%s);", cast, place->text);
        break;
    case 2:
        line(g, "acc ^= %sLD(%s);", cast, place->text);
        break;
    case 3:
        line(g, "ST(%s, %s);", place->text, value_text(g, place->scalar));
        break;
    case 4:
    case 5:
        line(g, "UPD(%s, %s);", place->text, value_text(g, place->scalar));
        break;
    default:
        if (!chance(g, 25)) {
            line(g, "if (LD(%s) %% 3 == 1)", place->text);
            line(g, "    ST(%s, %s);", place->text, value_text(g, place->scalar));
            break;
        }
        switch (pick(g, 4)) {
        case 0:
            line(g, "acc += ADDA(%s, %s);", place->text, value_text(g, place->scalar));
            break;
        case 1:
            line(g, "STA(%s, %s);", place->text, value_text(g, place->scalar));
            break;
        case 2:
            line(g, "acc += LDA(%s);", place->text);
            break;
        default:
            line(g, "CASA(%s, acc %% 4, %s);", place->text, value_text(g, place->scalar));
            break;
        }
    }
}

static void simple_statement(struct generator *g)
{
    struct place place;
    any_place(g, &place);
    touch(g, &place);
}

/* Several fields of one element, as structs are used. */
static void burst(struct generator *g)
{
    const struct view *view = any_view(g);
    char element[TEXT];
    element_text(g, view, element);
    if (view->scalar >= 0) {
        struct place place = {.scalar = view->scalar};
        snprintf(place.text, sizeof place.text, "%s", element);
        touch(g, &place);
        touch(g, &place);
        return;
    }
    for (unsigned i = 2 + pick(g, 5); i > 0; i--) {
        struct place place;
        field_of(g, element, view->type, &place);
        touch(g, &place);
    }
}

static void binary_statement(struct generator *g)
{
    struct place a, b;
    any_place(g, &a);
    any_place(g, &b);
    if (a.bits || b.bits) {
        touch(g, &a);
        touch(g, &b);
        return;
    }
    const char *cast_a = scalars[a.scalar].real ? "(uint64_t)" : "",
               *cast_b = scalars[b.scalar].real ? "(uint64_t)" : "";
    switch (pick(g, 4)) {
    case 0:
        line(g, "acc += (%s) ? %sLD(%s) : %sLD(%s);", condition_text(g), cast_a, a.text, cast_b, b.text);
        break;
    case 1:
        line(g, "if (%sLD(%s) > 3 && %sLD(%s) < 90)", cast_a, a.text, cast_b, b.text), line(g, "    acc++;");
        break;
    case 2:
        if (scalars[a.scalar].real == scalars[b.scalar].real) {
            int name = g->name++;
            line(g, "%s t%d = LD(%s);", scalars[b.scalar].name, name, b.text);
            line(g, "ST(%s, t%d);", a.text, name);
            break;
        }
        __attribute__((fallthrough));
    default:
        line(g, "acc += %sLD(%s) + %sLD(%s);", cast_a, a.text, cast_b, b.text);
        break;
    }
}

static void if_statement(struct generator *g)
{
    char text[TEXT + 8];
    snprintf(text, sizeof text, "if (%s) ", condition_text(g));
    open_block(g, text);
    statements(g, 1 + (int)pick(g, 3));
    if (chance(g, 40)) {
        g->indent--;
        open_block(g, "} else ");
        statements(g, 1 + (int)pick(g, 2));
    }
    close_block(g);
}

static void switch_statement(struct generator *g)
{
    unsigned cases = 2 + pick(g, 3);
    line(g, "switch (acc %% %u) {", cases);
    int breakable = g->breakable;
    g->breakable = 0; /* break would leave the switch */
    for (unsigned i = 0; i < cases; i++) {
        line(g, i + 1 < cases ? "case %u:" : "default:", i);
        open_block(g, "");
        statements(g, 1);
        close_block(g);
        line(g, "break;");
    }
    line(g, "}");
    g->breakable = breakable;
}

/* break, continue, goto, return: in the middle of a loop. */
static void leave_statement(struct generator *g)
{
    const char *how;
    unsigned which = pick(g, 6);
    if (which < 2 && g->breakable)
        how = "break";
    else if (which < 4 && g->breakable)
        how = "continue";
    else if (which == 4 && g->leaves)
        how = "goto out";
    else if (which == 5 && g->leaves)
        how = "return acc";
    else
        return;
    line(g, "if ((acc ^ %s) %% %u == %u)", g->loop_count ? g->loops[g->loop_count - 1].name : "3", which < 4 ? 7u : 61u,
         pick(g, 7));
    line(g, "    %s;", how);
}

static void call_statement(struct generator *g)
{
    const struct view *view = any_view(g);
    if (view->scalar >= 0)
        return;
    char element[TEXT];
    element_text(g, view, element);
    if (g->types[view->type].list && chance(g, 40))
        line(g, "acc = recurse_S%d(&%s, %u, acc);", view->type, element, 1 + pick(g, 6));
    else if (chance(g, 25))
        line(g, "acc = g_table_S%d[acc %% %d](&%s, acc);", view->type, HELPERS, element);
    else
        line(g, "acc = helper_S%d_%u(&%s, acc);", view->type, pick(g, HELPERS), element);
}

static void block_statement(struct generator *g)
{
    struct view *view = any_view(g);
    if (view->pointers || view->grows || (view->scalar < 0 && g->types[view->type].list))
        return;
    bool floats = view->scalar >= 0 ? scalars[view->scalar].real : g->types[view->type].floats;
    char a[TEXT], b[TEXT];
    index_text(g, view->capacity, a);
    index_text(g, view->capacity, b);
    switch (pick(g, 4)) {
    case 0:
    case 1:
        if (view->scalar < 0) {
            line(g, "ASSIGN(%s[%s], %s[%s]);", view->name, a, view->name, b);
            return;
        }
        line(g, "COPY(&%s[%s], &%s[%s], sizeof *%s);", view->name, a, view->name, b, view->name);
        return;
    case 2: {
        if (floats)
            return;
        unsigned part = 1 + pick(g, view->capacity);
        line(g, "COPY(&%s[%u], %s, %u * sizeof *%s - %u);", view->name, view->capacity - part, view->name, part,
             view->name, view->scalar == 0 ? 0 : pick(g, 2));
        return;
    }
    default:
        if (floats)
            line(g, "SET(&%s[%s], 0, sizeof *%s);", view->name, a, view->name);
        else
            line(g, "SET(&%s[%u], (int)(acc & 63), acc %% (%u * sizeof *%s));", view->name, pick(g, view->capacity), 1u,
                 view->name);
    }
}

static void make_block(struct generator *g, const struct view *view)
{
    char element[24];
    if (view->scalar >= 0)
        snprintf(element, sizeof element, "%s", scalars[view->scalar].name);
    else
        snprintf(element, sizeof element, "struct S%d%s", view->type, view->pointers ? " *" : "");
    line(g, "%s = (%s *)site_%d(%u * sizeof *%s);", view->name, element, view->site, view->capacity, view->name);
}

/* free and malloc, or realloc, in the middle of work. */
static void replace_statement(struct generator *g)
{
    struct view *view = any_view(g);
    if (!view->block || view->pinned || view->pointers)
        return;
    if (view->grows) {
        char element[24];
        if (view->scalar >= 0)
            snprintf(element, sizeof element, "%s", scalars[view->scalar].name);
        else
            snprintf(element, sizeof element, "struct S%d", view->type);
        line(g, "GROW(%s, %s, (%u + acc %% %u) * sizeof *%s);", element, view->name, view->capacity, 1 + pick(g, 200),
             view->name);
    } else {
        line(g, "FREE(%s);", view->name);
        make_block(g, view);
    }
}

static void guard_statement(struct generator *g)
{
    struct view *view = any_view(g);
    if (view->scalar != U64 || view->pointers || view->grows)
        return;
    char at[TEXT];
    index_text(g, view->capacity, at);
    open_block(g, "");
    line(g, "GUARD(guard%d, &%s[%s]);", g->name++, view->name, at);
    view->pinned++;
    statements(g, 2);
    view->pinned--;
    close_block(g);
}

static void try_statement(struct generator *g)
{
    line(g, "TRY");
    g->indent++;
    statements(g, 2);
    g->indent--;
    line(g, "CATCH");
}

/* A loop over numbers; or, below, along a list, or by a pointer. */
static void loop_statement(struct generator *g)
{
    if (g->loop_count == LOOPS || g->loop_count >= (g->helper ? 1 : 3)) {
        simple_statement(g);
        return;
    }
    int name = g->name++;
    char v[16], n[24], head[TEXT];
    snprintf(v, sizeof v, "i%d", name);
    unsigned limit = 1 + pick(g, g->loop_count == 0 ? 40 : g->loop_count == 1 ? 12 : 6);
    bool known = chance(g, 30);
    if (known) {
        snprintf(n, sizeof n, "%u", limit);
    } else {
        snprintf(n, sizeof n, "n%d", name);
        open_block(g, "");
        line(g, "uint64_t %s = %s %% %u;", n,
             g->loop_count && chance(g, 30) ? g->loops[g->loop_count - 1].name
             : chance(g, 50)                ? "acc"
                                            : "n",
             limit + 1);
    }
    unsigned most = limit - 1;
    const char *foot = "}";
    char end[TEXT] = "";
    switch (pick(g, 9)) {
    case 0:
    case 1:
    case 2:
        snprintf(head, TEXT, "for (uint64_t %s = 0; %s < %s; %s++) ", v, v, n, v);
        break;
    case 3:
        snprintf(head, TEXT, "for (uint64_t %s = %s; %s-- > 0;) ", v, n, v);
        break;
    case 4:
        snprintf(head, TEXT, "for (uint64_t %s = %u; %s < %s; %s += %u) ", v, pick(g, 3), v, n, v, 1 + pick(g, 4));
        break;
    case 5:
        snprintf(head, TEXT, "for (uint64_t %s = 0; %s < %s; %s += 1 + (acc & 1)) ", v, v, n, v);
        break;
    case 6:
        snprintf(head, TEXT, "for (int32_t %s = (int32_t)(%s) - 1; %s >= 0; %s -= %u) ", v, n, v, v, 1 + pick(g, 3));
        break;
    case 7:
        snprintf(head, TEXT, "for (uint32_t %s = 0; %s < %s; %s++) ", v, v, n, v);
        break;
    default:
        line(g, "uint64_t %s%s = 0;", v, "x");
        snprintf(head, TEXT, "do ");
        snprintf(end, TEXT, "} while (++%sx < %s);", v, n);
        foot = end;
        snprintf(v, sizeof v, "i%dx", name);
    }
    open_block(g, head);
    struct loop *loop = &g->loops[g->loop_count++];
    snprintf(loop->name, sizeof loop->name, "%s", v);
    loop->most = most;
    g->breakable++;
    statements(g, 1 + (int)pick(g, 4));
    g->breakable--;
    g->loop_count--;
    g->indent--;
    line(g, "%s", foot);
    if (!known)
        close_block(g);
}

/* A view of one element, by a pointer that walks. */
static void push_cursor(struct generator *g, const char *name, int scalar, int type)
{
    struct view *view = &g->views[g->view_count++];
    *view = (struct view){.scalar = scalar, .type = type, .capacity = 1};
    snprintf(view->name, sizeof view->name, "%.20s", name);
}

static void pointer_loop(struct generator *g)
{
    struct view *view = any_view(g);
    if (g->view_count == VIEWS || g->loop_count >= 2 || view->pointers || view->capacity < 2)
        return;
    char name[16], element[24];
    snprintf(name, sizeof name, "e%d", g->name++);
    if (view->scalar >= 0)
        snprintf(element, sizeof element, "%s", scalars[view->scalar].name);
    else
        snprintf(element, sizeof element, "struct S%d", view->type);
    char head[TEXT];
    if (chance(g, 70))
        snprintf(head, TEXT, "for (%s *%s = %s; %s < %s + acc %% %u; %s++) ", element, name, view->name, name,
                 view->name, view->capacity + 1, name);
    else
        snprintf(head, TEXT, "for (%s *%s = %s + %u; %s-- > %s;) ", element, name, view->name, view->capacity, name,
                 view->name);
    if (strchr(head, '%')) { /* the end is computed once: acc changes inside */
        int end = g->name++;
        open_block(g, "");
        line(g, "%s *end%d = %s + acc %% %u;", element, end, view->name, view->capacity + 1);
        snprintf(head, TEXT, "for (%s *%s = %s; %s < end%d; %s++) ", element, name, view->name, name, end, name);
    } else {
        open_block(g, "");
    }
    open_block(g, head);
    int pinned = (int)(view - g->views);
    g->views[pinned].pinned++;
    push_cursor(g, name, view->scalar, view->type);
    g->breakable++;
    struct loop kept = {{0}, 0};
    if (g->loop_count) /* indices are made from outer loops still */
        kept = g->loops[g->loop_count - 1];
    statements(g, 1 + (int)pick(g, 3));
    (void)kept;
    g->breakable--;
    g->view_count--;
    g->views[pinned].pinned--;
    close_block(g);
    close_block(g);
}

static void chase_loop(struct generator *g)
{
    int list = -1;
    for (int i = 0; i < g->view_count; i++)
        if (g->views[i].scalar < 0 && !g->views[i].pointers && g->types[g->views[i].type].list &&
            g->views[i].capacity == 1)
            list = i;
    if (list < 0 || g->view_count == VIEWS || g->loop_count >= 2)
        return;
    char name[16], head[TEXT];
    int number = g->name++, type = g->views[list].type;
    snprintf(name, sizeof name, "c%d", number);
    open_block(g, "");
    line(g, "struct S%d *%s = %s;", type, name, g->views[list].name);
    line(g, "uint64_t steps%d = acc %% 50;", number);
    snprintf(head, TEXT, "while (%s && steps%d-- > 0) ", name, number);
    open_block(g, head);
    push_cursor(g, name, -1, type);
    int breakable = g->breakable;
    g->breakable = 0; /* continue would not go on */
    statements(g, 1 + (int)pick(g, 3));
    g->breakable = breakable;
    g->view_count--;
    line(g, "%s = LD(%s->next);", name, name);
    close_block(g);
    close_block(g);
}

/* while (place < …) place += …: nobody knows how often. */
static void search_loop(struct generator *g)
{
    struct place place;
    any_place(g, &place);
    if (place.bits || strstr(place.text, "acc"))
        return;
    line(g, "while (LD(%s) < %u)", place.text, 20 + pick(g, 60));
    line(g, "    UPD(%s, %u);", place.text, 2 + pick(g, 9));
}

static void statement(struct generator *g)
{
    static const struct {
        unsigned weight;
        void (*make)(struct generator *);
    } kinds[] = {
        {16, simple_statement}, {14, burst},          {10, binary_statement}, {14, loop_statement},
        {9, if_statement},      {5, leave_statement}, {7, call_statement},    {6, block_statement},
        {4, pointer_loop},      {5, chase_loop},      {2, search_loop},       {3, replace_statement},
        {2, switch_statement},  {2, try_statement},   {2, guard_statement},
    };
    unsigned all = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        all += kinds[i].weight;
    unsigned at = pick(g, all);
    size_t i = 0;
    for (; at >= kinds[i].weight; i++)
        at -= kinds[i].weight;
    open_block(g, "");
    kinds[i].make(g);
    close_block(g);
}

static void statements(struct generator *g, int count)
{
    for (int i = 0; i < count && g->budget > 0; i++) {
        g->budget--;
        statement(g);
    }
}

/* ---- the program ---- */

static void make_types(struct generator *g)
{
    line(g, "struct E {");
    line(g, "    uint32_t small;");
    line(g, "    uint64_t large;");
    line(g, "    struct { uint16_t x, y; } inner[3];");
    line(g, "};");
    for (int s = 0; s < STRUCTS; s++) {
        struct type *type = &g->types[s];
        type->count = 2 + (int)pick(g, FIELDS - 2);
        type->list = s < LISTS;
        int next = type->list ? (int)pick(g, (unsigned)type->count) : -1;
        line(g, "struct S%d {", s);
        g->indent++;
        for (int i = 0; i < type->count; i++) {
            struct field *field = &type->fields[i];
            unsigned what = pick(g, 100);
            *field = (struct field){what < 64   ? PLAIN
                                    : what < 76 ? ARRAY
                                    : what < 86 ? BITS
                                    : what < 93 ? UNION
                                                : ELEMENTS,
                                    (int)pick(g, SCALARS), 2 + pick(g, chance(g, 20) ? 40 : 7)};
            if (i == next)
                line(g, "struct S%d *next;", s);
            switch (field->kind) {
            case PLAIN:
                line(g, "%s f%d;", scalars[field->type].name, i);
                break;
            case ARRAY:
                line(g, "%s f%d[%u];", scalars[field->type].name, i, field->count);
                break;
            case ELEMENTS:
                line(g, "struct E f%d[%u];", i, field->count), field->type = U64;
                break;
            case BITS:
                line(g, "uint32_t f%d : %u;", i, 5 + 2 * pick(g, 8)), field->type = 2;
                break;
            case UNION:
                line(g, "union { uint64_t whole; uint32_t halves[2]; uint8_t bytes[8]; } f%d;", i), field->type = U64;
                break;
            }
            type->floats |= field->kind != BITS && scalars[field->type].real;
        }
        g->indent--;
        line(g, "};");
        line(g, "NOINLINE static uint64_t helper_S%d_0(struct S%d *p, uint64_t acc);", s, s);
        line(g, "NOINLINE static uint64_t helper_S%d_1(struct S%d *p, uint64_t acc);", s, s);
        line(g, "NOINLINE static uint64_t helper_S%d_2(struct S%d *p, uint64_t acc);", s, s);
        line(g,
             "static uint64_t (*volatile g_table_S%d[])(struct S%d *, uint64_t) GLOBAL = {helper_S%d_0, helper_S%d_1, "
             "helper_S%d_2};",
             s, s, s, s, s);
        if (type->list)
            line(g, "NOINLINE static uint64_t recurse_S%d(struct S%d *p, uint64_t depth, uint64_t acc);", s, s);
        line(g, "%s", "");
    }
}

static void begin_function(struct generator *g, int budget)
{
    g->view_count = g->loop_count = g->breakable = 0;
    g->budget = budget;
    open_block(g, "");
}

/* A helper gets an element. The second may leave the kernel, the third now and then the program. */
static void make_helper(struct generator *g, int type, int number)
{
    line(g, "NOINLINE static uint64_t helper_S%d_%d(struct S%d *p, uint64_t acc)", type, number, type);
    g->helper = true;
    g->leaves = false;
    begin_function(g, 8);
    line(g, "uint64_t n = acc >> 3;");
    line(g, "(void)n;");
    push_cursor(g, "p", -1, type);
    /* No calls of other helpers from here: `call_statement` would make endless recursion. */
    for (int i = 0; i < 3; i++) {
        if (i == 1 && number == 1)
            line(g, "if (acc %% %u == 5)", 90 + pick(g, 200)), line(g, "    LEAVE(%u);", 1 + pick(g, 9));
        if (i == 1 && number == 2)
            line(g, "if (acc %% %u == 11)", 30000 + pick(g, 9000)), line(g, "    finish(0);");
        if (chance(g, 60))
            burst(g);
        else if (chance(g, 60))
            binary_statement(g);
        else
            search_loop(g);
    }
    line(g, "return acc + 1;");
    close_block(g);
    line(g, "%s", "");
}

static void make_recursion(struct generator *g, int type)
{
    line(g, "NOINLINE static uint64_t recurse_S%d(struct S%d *p, uint64_t depth, uint64_t acc)", type, type);
    g->helper = true;
    begin_function(g, 4);
    line(g, "if (!p || depth == 0)");
    line(g, "    return acc;");
    push_cursor(g, "p", -1, type);
    burst(g);
    line(g, "struct S%d *next = LD(p->next);", type);
    line(g, "acc = recurse_S%d(next, depth - 1, acc);", type);
    burst(g);
    line(g, "return acc;");
    close_block(g);
    line(g, "%s", "");
}

/* A kernel makes its blocks, works on them, frees them. */
static void make_kernel(struct generator *g, int number)
{
    int first = g->site;
    struct view views[6];
    int count = 2 + (int)pick(g, 3);
    g->helper = false;
    for (int i = 0; i < count; i++) {
        struct view *view = &views[i];
        *view = (struct view){.scalar = -1, .site = g->site++, .block = true};
        unsigned what = pick(g, 10);
        if (what < 4)
            view->scalar = (int)pick(g, SCALARS);
        else
            view->type = (int)pick(g, STRUCTS);
        view->pointers = what == 9;
        if (what >= 7 && what < 9) {
            view->type = (int)pick(g, LISTS);
            view->capacity = 1; /* a list: see below */
        } else {
            view->capacity = 2 + pick(g, view->scalar >= 0 ? 300 : 60);
        }
        view->grows = chance(g, 20) && view->capacity > 1 && !view->pointers;
        snprintf(view->name, sizeof view->name, "v%d", i);
        line(g, "SITE(%d)", view->site);
    }
    for (int i = 0; i < count; i++) /* what pointers point to */
        if (views[i].pointers)
            line(g, "SITE(%d)", g->site++);
    line(g, "NOINLINE static uint64_t kernel_%d(uint64_t n)", number);
    begin_function(g, 22);
    line(g, "uint64_t acc = n;");
    int pointees = first + count;
    for (int i = 0; i < count; i++) {
        struct view *view = &views[i];
        char element[24];
        if (view->scalar >= 0)
            snprintf(element, sizeof element, "%s ", scalars[view->scalar].name);
        else
            snprintf(element, sizeof element, "struct S%d %s", view->type, view->pointers ? "*" : "");
        line(g, "%s*%s;", element, view->name);
        make_block(g, view);
        if (view->pointers) {
            line(g, "for (uint64_t k = 0; k < %u; k++)", view->capacity);
            line(g, "    ST(%s[k], (struct S%d *)site_%d(sizeof(struct S%d)));", view->name, view->type, pointees++,
                 view->type);
            view->block = false;
        } else if (view->capacity == 1) {
            open_block(g, "for (uint64_t k = 0; k < 3 + n % 40; k++) ");
            line(g, "struct S%d *more = (struct S%d *)site_%d(sizeof *more);", view->type, view->type, view->site);
            line(g, "ST(more->next, %s);", view->name);
            line(g, "%s = more;", view->name);
            close_block(g);
            view->block = false;
        }
        g->views[g->view_count++] = *view;
    }
    g->leaves = true;
    open_block(g, "");
    for (int i = 0; i < 3; i++)
        loop_statement(g);
    statements(g, 6);
    close_block(g);
    g->indent--;
    line(g, "out:");
    g->indent++;
    line(g, "KEEP(&acc);");
    for (int i = 0; i < count; i++) {
        const struct view *view = &views[i];
        if (view->pointers) {
            open_block(g, "");
            line(g, "for (uint64_t k = 0; k < %u; k++) {", view->capacity);
            line(g, "    struct S%d *gone = LD(%s[k]);", view->type, view->name);
            line(g, "    FREE(gone);");
            line(g, "}");
            line(g, "FREE(%s);", view->name);
            close_block(g);
        } else if (view->capacity == 1) {
            open_block(g, "");
            line(g, "while (%s) {", view->name);
            line(g, "    struct S%d *rest = LD(%s->next);", view->type, view->name);
            line(g, "    FREE(%s);", view->name);
            line(g, "    %s = rest;", view->name);
            line(g, "}");
            close_block(g);
        } else if (!chance(g, 15)) {
            line(g, "FREE(%s);", view->name);
        }
    }
    line(g, "if (acc == 0x1234567)");
    line(g, "    goto out_unused;");
    line(g, "return acc;");
    g->indent--;
    line(g, "out_unused:");
    g->indent++;
    line(g, "if (n == 0x1234567)");
    line(g, "    goto out;");
    line(g, "return n;");
    close_block(g);
    line(g, "%s", "");
}

void generate_program(FILE *out, uint64_t seed)
{
    struct generator *g = calloc(1, sizeof *g);
    g->out = out;
    g->state = seed * 0x9e3779b97f4a7c15ull + 1;
    line(g, "/* The program of seed %llu. */", (unsigned long long)seed);
    line(g, "#include \"property/property.h\"\n");
    make_types(g);
    for (int s = 0; s < STRUCTS; s++) {
        for (int i = 0; i < HELPERS; i++)
            make_helper(g, s, i);
        if (g->types[s].list)
            make_recursion(g, s);
    }
    for (int k = 0; k < KERNELS; k++)
        make_kernel(g, k);
    line(g, "int main(void)");
    open_block(g, "");
    line(g, "volatile uint64_t start = %u;", pick(g, 1000));
    for (int k = 0; k < KERNELS; k++) {
        line(g, "for (volatile uint64_t round = 0; round < 3; round++)");
        line(g, "    RUN(kernel_%d, start + round * %u);", k, 1 + pick(g, 50));
    }
    line(g, "finish(0);");
    close_block(g);
    free(g);
}
