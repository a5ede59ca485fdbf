/* statements.c - random programs: what functions consist of. */
#include <string.h>

#include "property/generator.h"

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
void burst(struct generator *g)
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

void binary_statement(struct generator *g)
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

void make_block(struct generator *g, const struct view *view)
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
void loop_statement(struct generator *g)
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
void push_cursor(struct generator *g, const char *name, int scalar, int type)
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
void search_loop(struct generator *g)
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

void statements(struct generator *g, int count)
{
    for (int i = 0; i < count && g->budget > 0; i++) {
        g->budget--;
        statement(g);
    }
}
