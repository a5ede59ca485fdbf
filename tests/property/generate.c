/* generate.c - see generate.h: chance, output, and the parts of a program. */
#include "property/generate.h"

#include <stdarg.h>
#include <stdlib.h>

#include "property/generator.h"

const struct scalar scalars[SCALARS] = {{"uint8_t", false},  {"uint16_t", false}, {"uint32_t", false},
                                        {"uint64_t", false}, {"double", true},    {"float", true}};

/* ---- chance and output ---- */

unsigned pick(struct generator *g, unsigned below)
{
    g->state += 0x9e3779b97f4a7c15ull; /* splitmix64 */
    uint64_t z = g->state;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return (unsigned)((z ^ z >> 31) >> 33) % below;
}

bool chance(struct generator *g, unsigned percent)
{
    return pick(g, 100) < percent;
}

void line(struct generator *g, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(g->out, "%*s", 4 * g->indent, "");
    vfprintf(g->out, format, arguments);
    fputc('\n', g->out);
    va_end(arguments);
}

void open_block(struct generator *g, const char *text)
{
    line(g, "%s{", text);
    g->indent++;
}

void close_block(struct generator *g)
{
    g->indent--;
    line(g, "}");
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
