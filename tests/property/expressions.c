/* expressions.c - random programs: indices, values, conditions and places. */
#include <string.h>

#include "property/generator.h"

/* An index below CAPACITY. */
void index_text(struct generator *g, unsigned capacity, char *text)
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
const char *value_text(struct generator *g, int scalar)
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

const char *condition_text(struct generator *g)
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

void field_of(struct generator *g, const char *base, int type, struct place *place)
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
void element_text(struct generator *g, const struct view *view, char *text)
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

struct view *any_view(struct generator *g)
{
    /* What came last is nearest: cursors and elements. */
    if (g->view_count > 1 && chance(g, 35))
        return &g->views[g->view_count - 1];
    return &g->views[pick(g, (unsigned)g->view_count)];
}

void any_place(struct generator *g, struct place *place)
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
