/* text_keeps.c - who keeps the blocks that the program can reach. */
#include "report/text/text.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "report/text/human.h"
#include "report/view/keeps.h"
#include "report/view/measure.h"

#define USUAL_KEEPERS   15
#define USUAL_PLACES    10
#define BELOW_MOST      4  /* pointers of a variable, and places of a keeper */
#define LEAST_SHARE     20 /* a twentieth of it, else it is not shown below it */
#define SOURCES_MOST    5
#define COLUMNS         25 /* before the name */
#define FAMILY_LEAST    9  /* blocks that one variable points to are one row from here on */
#define ROWS_TOLD_APART 32
#define CALLERS_MOST    6  /* that are looked at to tell places apart */
#define WAY_NAME        24 /* columns of a place on a way */

/* ---- names ---- */

/* In text->name; TYPED: with what it points to. */
static const char *name_typed(struct hw_text *text, uint32_t keeper, bool typed)
{
    struct hw_buffer raw = {0};
    const struct hw_view_keeper *is = &text->view->keeps->keepers[keeper];
    const char *arrow = text->page.utf8 ? " \u2192 " : " -> ";
    hw_keeper_name(text->view, keeper, &raw);
    if (is->module != HW_NONE)
        hw_buffer_add(&raw, " (%s)", text->view->modules[is->module].name);
    if (typed && is->type)
        hw_buffer_add(&raw, "%s%s", is->kind == HW_KEEPER_TARGET ? ": " : arrow, is->type);
    hw_page_clean(&text->page, &text->name, hw_buffer_text(&raw));
    text->failed |= raw.failed;
    hw_buffer_free(&raw);
    return hw_buffer_text(&text->name);
}

static const char *name_of_keeper(struct hw_text *text, uint32_t keeper)
{
    return name_typed(text, keeper, false);
}

static void print_place(struct hw_text *text, uint32_t leaf, size_t room)
{
    bool placed;
    if (hw_text_load(text, leaf))
        hw_text_named(text, &text->stack.frames[text->fold.headline], room, &placed);
    else
        fputs("(unknown stack)", text->page.stream);
}

/* In text->name. */
static const char *name_of_place(struct hw_text *text, uint32_t leaf)
{
    return hw_text_load(text, leaf) ? hw_text_function(text, &text->stack.frames[text->fold.headline], WAY_NAME)
                                    : "(unknown stack)";
}

/* ---- downwards: from keepers to places ---- */

struct kept_place {
    uint32_t leaf; /* of one of its stacks */
    uint64_t bytes;
    uint32_t callers; /* which frame above the headline says what no other row does; 0: none */
};

/* The frame LEVEL above the headline, as text; NULL: there is none. To be freed. */
static char *name_at(struct hw_text *text, uint32_t leaf, uint32_t level)
{
    if (!hw_text_load(text, leaf) || text->fold.headline + level >= text->stack.count)
        return NULL;
    char *name = strdup(hw_text_function(text, &text->stack.frames[text->fold.headline + level], 0));
    text->failed |= !name;
    return name;
}

/* The first level where the names of two stacks differ; HW_NONE: nowhere among the first ones. */
static uint32_t level_of_difference(struct hw_text *text, uint32_t one, uint32_t other)
{
    for (uint32_t level = 0; level <= CALLERS_MOST; level++) {
        char *left = name_at(text, one, level), *right = name_at(text, other, level);
        const bool same = left && right && !strcmp(left, right), end = !left && !right;
        free(left);
        free(right);
        if (end)
            break;
        if (!same)
            return level;
    }
    return HW_NONE;
}

static int compare_kept_places(const void *left, const void *right)
{
    const struct kept_place *a = left, *b = right;
    return HW_ORDER(b->bytes, a->bytes) ?: HW_ORDER(a->leaf, b->leaf);
}

static void distinguish(struct hw_text *text, struct kept_place *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = i + 1; k < count; k++) {
            const uint32_t level = level_of_difference(text, rows[i].leaf, rows[k].leaf);
            if (level == HW_NONE)
                continue;
            rows[i].callers = rows[i].callers > level ? rows[i].callers : level;
            rows[k].callers = rows[k].callers > level ? rows[k].callers : level;
        }
}

static void print_callers(struct hw_text *text, const struct kept_place *row)
{
    if (!row->callers || !hw_text_load(text, row->leaf) || text->fold.headline + row->callers >= text->stack.count)
        return;
    const struct hw_view_frame *frame = &text->stack.frames[text->fold.headline + row->callers];
    fprintf(text->page.stream, ", %s %s", row->callers > 1 ? "below" : "from", hw_text_function(text, frame, WAY_NAME));
}

/* What a place is printed as. */
static struct hw_key key_of_place(struct hw_text *text, uint32_t leaf)
{
    uint64_t hash[2] = {0xcbf29ce484222325, 0xcbf29ce484222325};
    if (!hw_text_load(text, leaf))
        return (struct hw_key){0};
    const struct hw_view_frame *frame = &text->stack.frames[text->fold.headline];
    for (const char *at = hw_text_function(text, frame, 0); *at; at++)
        hash[0] = (hash[0] ^ (uint8_t)*at) * 0x100000001b3;
    for (const char *at = hw_text_place(text, frame); *at; at++)
        hash[1] = (hash[1] ^ (uint8_t)*at) * 0x100000001b3;
    return (struct hw_key){hash[0], hash[1]};
}

/* Places of KEEPER and of those below it, most bytes first; what would be printed alike is one. To be freed. */
static struct kept_place *places_of(struct hw_text *text, uint32_t keeper, size_t *count)
{
    const struct hw_view_keeps *keeps = text->view->keeps;
    struct kept_place *rows = calloc(keeps->kept_count + 1, sizeof *rows);
    struct hw_index known = {0};
    *count = 0;
    for (size_t i = 0; rows && i < keeps->kept_count; i++) {
        const struct hw_view_kept *kept = &keeps->kept[i];
        if (!hw_keeper_below(keeps, kept->keeper, keeper))
            continue;
        bool fresh;
        const uint32_t at = hw_index_intern(&known, key_of_place(text, kept->leaf), (uint32_t)*count, &fresh);
        if (at == HW_INDEX_NONE) {
            text->failed = true;
            break;
        }
        if (fresh)
            rows[(*count)++].leaf = kept->leaf;
        rows[at].bytes = hw_add_saturating(rows[at].bytes, kept->bytes);
    }
    hw_index_free(&known);
    if (rows)
        qsort(rows, *count, sizeof *rows, compare_kept_places);
    text->failed |= !rows;
    return rows;
}

static void print_places_of(struct hw_text *text, uint32_t keeper)
{
    const struct hw_page *page = &text->page;
    const uint64_t whole = text->view->keeps->keepers[keeper].retained_bytes;
    size_t count, shown = 0;
    uint64_t rest = 0;
    struct kept_place *rows = places_of(text, keeper, &count);
    while (shown < count && (text->options->full || (shown < BELOW_MOST && rows[shown].bytes >= whole / LEAST_SHARE)))
        shown++;
    for (size_t i = 0; i < shown; i++) {
        fprintf(page->stream, "%*s%10s  ", COLUMNS, "", HW_BYTES(rows[i].bytes));
        print_place(text, rows[i].leaf, page->width > 62 ? page->width - 38 : 24);
        fputc('\n', page->stream);
    }
    for (size_t i = shown; i < count; i++)
        rest = hw_add_saturating(rest, rows[i].bytes);
    if (shown < count)
        fprintf(page->stream, "%*s%10s  in %s\n", COLUMNS, "", HW_BYTES(rest), HW_OF(count - shown, "more place"));
    free(rows);
}

static void print_keeper(struct hw_text *text, uint32_t keeper, bool below)
{
    const struct hw_page *page = &text->page;
    const struct hw_view_keeper *is = &text->view->keeps->keepers[keeper];
    const char *name = name_typed(text, keeper, true);
    hw_page_print(page, below ? HW_PLAIN : HW_STRONG, "%10s", HW_BYTES(is->retained_bytes));
    fprintf(page->stream, " %12s  %s", HW_MANY(is->retained_blocks), below ? "  " : "");
    hw_page_print(page, HW_NAME, "%s",
                  text->options->full ? name : hw_page_cut(page, &text->line, name, page->width - COLUMNS - 2));
    fputc('\n', page->stream);
}

/* A variable with one pointer that keeps everything is that pointer; a thread likewise. */
static uint32_t sole_below(const struct hw_view_keeps *keeps, uint32_t keeper, const uint32_t *below, size_t count)
{
    return count == 1 && keeps->keepers[below[0]].retained_bytes == keeps->keepers[keeper].retained_bytes ? below[0]
                                                                                                          : keeper;
}

static void print_keeper_and_below(struct hw_text *text, uint32_t keeper)
{
    const struct hw_view_keeps *keeps = text->view->keeps;
    size_t count;
    uint32_t *below = hw_keepers_sorted(keeps, keeper, &count);
    text->failed |= !below;
    uint32_t sole = keeper;
    for (uint32_t next; below && (next = sole_below(keeps, sole, below, count)) != sole; sole = next) {
        free(below);
        below = hw_keepers_sorted(keeps, next, &count);
        text->failed |= !below;
    }
    print_keeper(text, sole, false);
    for (size_t i = 0; below && i < count; i++)
        if (text->options->full || (i < BELOW_MOST && keeps->keepers[below[i]].retained_bytes >=
                                                          keeps->keepers[keeper].retained_bytes / LEAST_SHARE))
            print_keeper(text, below[i], true);
    free(below);
    print_places_of(text, keeper);
}

static int compare_keepers(const void *left, const void *right, void *closure)
{
    const struct hw_view_keeper *keepers = closure;
    const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return HW_ORDER(keepers[b].retained_bytes, keepers[a].retained_bytes) ?: HW_ORDER(a, b);
}

/* Variables and threads, most first. To be freed. */
static uint32_t *keepers_of_all(const struct hw_view_keeps *keeps, size_t *count)
{
    size_t lasting, momentary;
    uint32_t *one = hw_keepers_sorted(keeps, HW_KEEPER_SEVERAL, &lasting);
    uint32_t *other = hw_keepers_sorted(keeps, HW_KEEPER_SEVERAL_MOMENTARY, &momentary);
    uint32_t *all = one && other ? malloc((lasting + momentary + 1) * sizeof *all) : NULL;
    *count = all ? lasting + momentary : 0;
    if (all) {
        memcpy(all, one, lasting * sizeof *all);
        memcpy(all + lasting, other, momentary * sizeof *all);
        qsort_r(all, *count, sizeof *all, compare_keepers, keeps->keepers);
    }
    free(one);
    free(other);
    return all;
}

static void print_shared(struct hw_text *text, uint32_t keeper, const char *what)
{
    const struct hw_view_keeper *is = &text->view->keeps->keepers[keeper];
    if (!is->blocks)
        return;
    hw_page_print(&text->page, HW_STRONG, "%10s", HW_BYTES(is->bytes));
    fprintf(text->page.stream, " %12s  %s\n", HW_MANY(is->blocks), what);
}

/* A keeper, or all blocks that pointers of one variable point to, where they are many. */
struct row {
    uint32_t keeper;  /* the first one */
    uint32_t members; /* 0: it is in another row */
    uint64_t blocks, bytes;
};

static int compare_rows(const void *left, const void *right)
{
    const struct row *a = left, *b = right;
    return HW_ORDER(b->bytes, a->bytes) ?: HW_ORDER(a->keeper, b->keeper);
}

/* Of a variable, not of its name, which another file of the module may have, too. */
static struct hw_key key_of_family(const struct hw_view_keeper *is, uint32_t keeper)
{
    return is->kind == HW_KEEPER_TARGET && is->symbol
               ? (struct hw_key){is->address - is->offset, (uint64_t)is->module << 32 | is->tid}
               : (struct hw_key){keeper, UINT64_MAX};
}

static void join(struct row *to, struct row *from)
{
    to->members += from->members;
    to->blocks = hw_add_saturating(to->blocks, from->blocks);
    to->bytes = hw_add_saturating(to->bytes, from->bytes);
    from->members = 0;
}

/* Rows of the keepers in ORDER, most first. To be freed. */
static struct row *make_rows(struct hw_text *text, const uint32_t *order, size_t *count)
{
    const struct hw_view_keeper *keepers = text->view->keeps->keepers;
    struct row *rows = calloc(*count + 1, sizeof *rows);
    uint32_t *family = calloc(*count + 1, sizeof *family), *size = calloc(*count + 1, sizeof *size);
    struct hw_index known = {0};
    size_t kept = 0;
    bool fine = rows && family && size;
    for (size_t i = 0; fine && i < *count; i++) {
        const struct hw_view_keeper *is = &keepers[order[i]];
        bool fresh;
        rows[i] = (struct row){order[i], 1, is->retained_blocks, is->retained_bytes};
        family[i] = hw_index_intern(&known, key_of_family(is, order[i]), (uint32_t)i, &fresh);
        fine = family[i] != HW_INDEX_NONE;
        if (fine)
            size[family[i]]++;
    }
    for (size_t i = 0; fine && !text->options->full && i < *count; i++)
        if (family[i] != i && size[family[i]] >= FAMILY_LEAST)
            join(&rows[family[i]], &rows[i]);
    for (size_t i = 0; fine && i < *count; i++)
        if (rows[i].members)
            rows[kept++] = rows[i];
    if (kept)
        qsort(rows, kept, sizeof *rows, compare_rows);
    text->failed |= !fine;
    *count = kept;
    hw_index_free(&known);
    free(family);
    free(size);
    return rows;
}

static void print_family(struct hw_text *text, const struct row *row)
{
    const struct hw_page *page = &text->page;
    const struct hw_view_keeper *is = &text->view->keeps->keepers[row->keeper];
    struct hw_buffer name = {0};
    hw_page_clean(page, &name, is->symbol);
    hw_page_print(page, HW_STRONG, "%10s", HW_BYTES(row->bytes));
    fprintf(page->stream, " %12s  %s that ", HW_MANY(row->blocks), HW_OF(row->members, "block"));
    hw_page_print(page, HW_NAME, "%s", hw_buffer_text(&name));
    fprintf(page->stream, " and others point to (%s)\n",
            is->module == HW_NONE ? "?" : text->view->modules[is->module].name);
    text->failed |= name.failed;
    hw_buffer_free(&name);
}

static void print_keepers(struct hw_text *text)
{
    const struct hw_view_keeps *keeps = text->view->keeps;
    const struct hw_page *page = &text->page;
    const size_t top = text->options->top ? text->options->top : USUAL_KEEPERS;
    size_t count;
    uint64_t rest = 0;
    uint32_t *order = keepers_of_all(keeps, &count);
    struct row *rows = order ? make_rows(text, order, &count) : NULL;
    text->failed |= !rows;
    hw_page_print(page, HW_FAINT, "%10s %12s  %s\n", "kept alone", "blocks", "by");
    for (size_t i = 0; rows && i < count; i++)
        if (i >= top)
            rest = hw_add_saturating(rest, rows[i].bytes);
        else if (rows[i].members > 1)
            print_family(text, &rows[i]);
        else
            print_keeper_and_below(text, rows[i].keeper);
    if (count > top)
        fprintf(page->stream, "%10s %12s  %s more\n", HW_BYTES(rest), "", HW_MANY(count - top));
    print_shared(text, HW_KEEPER_SEVERAL, "several of them together: none keeps these blocks alone");
    print_shared(text, HW_KEEPER_SEVERAL_MOMENTARY, "stacks of several threads together");
    free(order);
    free(rows);
}

/* ---- upwards: from places to keepers ---- */

static void add_way(struct hw_text *text, const struct hw_view_keeps *keeps, uint32_t entry, struct hw_buffer *out)
{
    enum { MOST = 12 };
    const struct hw_keep_edge *way[MOST];
    const char *arrow = text->page.utf8 ? " \u2192 " : " -> ";
    size_t count = 0, left = 0;
    for (uint32_t at = entry; keeps->kept[at].way != HW_NONE;) {
        const struct hw_keep_edge *edge = &keeps->edges[keeps->kept[at].way];
        if (count < MOST)
            way[count++] = edge;
        else {
            way[MOST - 1] = edge; /* the keeper's is always shown */
            left++;
        }
        if (edge->flags & HW_KEEP_FROM_KEEPER)
            break;
        at = edge->from;
    }
    for (size_t i = count; i-- > 0;) {
        const bool keeper = way[i]->flags & HW_KEEP_FROM_KEEPER;
        hw_buffer_add(out, "%s%s",
                      keeper ? name_of_keeper(text, way[i]->from) : name_of_place(text, keeps->kept[way[i]->from].leaf),
                      arrow);
        if (i == MOST - 1 && left)
            hw_buffer_add(out, "(%zu more)%s", left, arrow);
    }
    if (count)
        hw_buffer_add(out, "%s", name_of_place(text, keeps->kept[entry].leaf));
}

struct source {
    uint64_t pointers;
    uint32_t from;
    uint32_t offset;
    bool keeper, momentary;
};

static int compare_sources(const void *left, const void *right)
{
    const struct source *a = left, *b = right;
    return HW_ORDER(b->pointers, a->pointers) ?: HW_ORDER(a->keeper, b->keeper) ?: HW_ORDER(a->from, b->from);
}

/* What points to the place's blocks; places by their node, so that those with several keepers are one. */
static void print_sources(struct hw_text *text, uint32_t leaf)
{
    const struct hw_view_keeps *keeps = text->view->keeps;
    const struct hw_page *page = &text->page;
    struct source *sources = malloc((keeps->edge_count + 1) * sizeof *sources);
    struct hw_index known = {0};
    size_t count = 0;
    uint64_t all = 0;
    text->failed |= !sources;
    for (size_t i = 0; sources && i < keeps->edge_count; i++) {
        const struct hw_keep_edge *edge = &keeps->edges[i];
        const bool keeper = edge->flags & HW_KEEP_FROM_KEEPER;
        if (keeps->kept[edge->to].leaf != leaf || !edge->pointers)
            continue;
        const uint32_t from = keeper ? edge->from : keeps->kept[edge->from].leaf;
        bool fresh;
        const uint32_t at = hw_index_intern(&known, (struct hw_key){from, keeper}, (uint32_t)count, &fresh);
        if (at == HW_INDEX_NONE) {
            text->failed = true;
            break;
        }
        if (fresh)
            sources[count++] = (struct source){
                .from = from, .offset = edge->offset, .keeper = keeper, .momentary = edge->flags & HW_KEEP_MOMENTARY};
        sources[at].pointers = hw_add_saturating(sources[at].pointers, edge->pointers);
        all = hw_add_saturating(all, edge->pointers);
    }
    if (count)
        qsort(sources, count, sizeof *sources, compare_sources);
    for (size_t i = 0; i < count && (text->options->full || i < SOURCES_MOST); i++) {
        fprintf(page->stream, "     %-14s %8s  ", i ? "" : "pointed to by",
                HW_PERCENT((double)sources[i].pointers, (double)all));
        if (sources[i].keeper)
            hw_page_print(page, HW_NAME, "%s", name_of_keeper(text, sources[i].from));
        else
            print_place(text, sources[i].from, page->width > 54 ? page->width - 40 : 20);
        if (!sources[i].keeper && sources[i].offset)
            fprintf(page->stream, ", at +%u", sources[i].offset);
        if (sources[i].momentary)
            fputs(" (for a moment)", page->stream);
        fputc('\n', page->stream);
    }
    if (!text->options->full && count > SOURCES_MOST)
        fprintf(page->stream, "%30s%zu more\n", "", count - SOURCES_MOST);
    hw_index_free(&known);
    free(sources);
}

static void print_keepers_of(struct hw_text *text, const struct hw_keeps_place *place)
{
    const struct hw_view_keeps *keeps = text->view->keeps;
    const struct hw_page *page = &text->page;
    size_t count, shown = 0;
    uint32_t *order = hw_kept_sorted(keeps, HW_NONE, &count);
    text->failed |= !order;
    for (size_t i = 0; order && i < count; i++) {
        const struct hw_view_kept *kept = &keeps->kept[order[i]];
        if (kept->leaf != place->leaf || (!text->options->full && shown >= SOURCES_MOST))
            continue;
        fprintf(page->stream, "     %-14s %8s  ", shown++ ? "" : "kept by",
                HW_PERCENT((double)kept->bytes, (double)place->bytes));
        hw_page_print(page, HW_NAME, "%s\n", name_typed(text, kept->keeper, true));
    }
    free(order);
}

static void print_details(struct hw_text *text, size_t rank, const struct hw_keeps_place *place)
{
    const struct hw_page *page = &text->page;
    struct hw_buffer way = {0};
    fprintf(page->stream, "%s%3zu  %10s in %s  ", rank > 1 ? "\n" : "", rank, HW_BYTES(place->bytes),
            HW_OF(place->blocks, "block"));
    print_place(text, place->leaf, page->width > 62 ? page->width - 38 : 24);
    fputc('\n', page->stream);
    if (place->retained_bytes > place->bytes)
        fprintf(page->stream, "     %-14s %8s  at least, with what only these blocks lead to\n", "keeps",
                HW_BYTES(place->retained_bytes));
    print_keepers_of(text, place);
    print_sources(text, place->leaf);
    add_way(text, text->view->keeps, place->kept, &way);
    if (way.used)
        hw_page_wrap(page, 5, "     shortest way: ", hw_buffer_text(&way));
    text->failed |= way.failed;
    hw_buffer_free(&way);
}

static int compare_joined(const void *left, const void *right)
{
    const struct hw_keeps_place *a = left, *b = right;
    return HW_ORDER(b->retained_bytes, a->retained_bytes) ?: HW_ORDER(b->bytes, a->bytes) ?: HW_ORDER(a->kept, b->kept);
}

/* The functions of a stack, from the headline on, without what lies between two calls of one function; and the line of
 * the headline. PATH: room for a stack. */
static struct hw_key key_of_stack(struct hw_text *text, uint32_t leaf, const void **path)
{
    struct hw_key key = key_of_place(text, leaf);
    const struct hw_view_stack *stack = &text->stack;
    size_t depth = 0;
    if (!hw_text_load(text, leaf))
        return (struct hw_key){leaf, 1};
    for (size_t i = stack->count; i-- > text->fold.headline;) {
        const struct hw_frame *symbol = stack->frames[i].symbol;
        const void *name = symbol->function ? (const void *)symbol->function : symbol; /* equal names are one pointer */
        size_t before = depth;
        while (before && path[before - 1] != name)
            before--;
        depth = before ? before : depth + 1;
        path[depth - 1] = name;
    }
    for (size_t i = 0; i < depth; i++)
        key.low = (key.low ^ (uintptr_t)path[i]) * 0x100000001b3;
    return key;
}

/* Places that differ in the depth of recursion, or in lines of callers, are one. What they keep at least is what one of
 * them does, since one may keep the others; or their own. Returns how many are left, in the order of what they keep. */
static size_t join_recursion(struct hw_text *text, struct hw_keeps_place *places, size_t count)
{
    struct hw_index known = {0};
    size_t left = 0, deepest = 0;
    for (size_t i = 0; i < count; i++)
        if (hw_text_load(text, places[i].leaf) && text->stack.count > deepest)
            deepest = text->stack.count;
    const void **path = malloc((deepest + 1) * sizeof *path);
    text->failed |= !path;
    for (size_t i = 0; path && i < count; i++) {
        bool fresh = true;
        const struct hw_keeps_place place = places[i];
        if (place.context == HW_NONE)
            continue;
        const uint32_t at = hw_index_intern(&known, key_of_stack(text, place.leaf, path), (uint32_t)left, &fresh);
        text->failed |= at == HW_INDEX_NONE;
        if (at == HW_INDEX_NONE || fresh) {
            places[left++] = place;
            continue;
        }
        places[at].blocks = hw_add_saturating(places[at].blocks, place.blocks);
        places[at].bytes = hw_add_saturating(places[at].bytes, place.bytes);
        if (places[at].retained_bytes < places[at].bytes)
            places[at].retained_bytes = places[at].bytes;
    }
    free(path);
    hw_index_free(&known);
    if (left)
        qsort(places, left, sizeof *places, compare_joined);
    return path ? left : count;
}

static void print_places(struct hw_text *text)
{
    const struct hw_page *page = &text->page;
    const bool chosen = text->view->function || text->view->rules;
    const size_t top = text->options->top ? text->options->top : USUAL_PLACES;
    size_t count, shown = 0;
    struct hw_keeps_place *places = hw_keeps_places(text->view->keeps, &count);
    text->failed |= !places;
    if (!chosen && !text->options->full)
        count = join_recursion(text, places, count);
    hw_page_heading(page, chosen ? "Who keeps the blocks of these places" : "Places whose blocks keep most");
    if (!chosen)
        hw_page_print(page, HW_FAINT, "%10s %12s  %s\n", "at least", "its own", "place");
    struct kept_place rows[ROWS_TOLD_APART] = {0};
    size_t told = 0;
    for (size_t i = 0; i < count && !chosen && told < ROWS_TOLD_APART && told < top; i++)
        if (places[i].context != HW_NONE)
            rows[told++].leaf = places[i].leaf;
    distinguish(text, rows, told);
    for (size_t i = 0; i < count && shown < top; i++) {
        if (places[i].context == HW_NONE)
            continue;
        shown++;
        if (chosen) {
            print_details(text, shown, &places[i]);
            continue;
        }
        hw_page_print(page, HW_STRONG, "%10s", HW_BYTES(places[i].retained_bytes));
        fprintf(page->stream, " %12s  ", HW_BYTES(places[i].bytes));
        const bool more = shown <= told && rows[shown - 1].callers;
        print_place(text, places[i].leaf, page->width - COLUMNS - (more ? WAY_NAME + 7 : 0));
        if (more)
            print_callers(text, &rows[shown - 1]);
        fputc('\n', page->stream);
    }
    if (!shown)
        fputs("None is kept.\n", page->stream);
    else if (!chosen)
        fputs("--function NAME shows who keeps the blocks of a place, and how.\n", page->stream);
    free(places);
}

/* ---- the whole ---- */

static void print_search(struct hw_text *text)
{
    const struct hw_keep_info *info = text->view->profile->keep_search;
    struct hw_buffer *line = &text->line;
    hw_buffer_clear(line);
    if (!info->blocks) {
        fputs("Nothing is kept.\n", text->page.stream);
        return;
    }
    hw_buffer_add(line, "%s in %s can be reached; found in %s with %s of memory.", HW_BYTES(info->bytes),
                  HW_OF(info->blocks, "block"), HW_NS(info->duration_ns, text->page.utf8),
                  HW_BYTES(info->memory_bytes));
    if (info->lost_blocks)
        hw_buffer_add(line, " There was no room for %s of them.", HW_BYTES(info->lost_bytes));
    if (info->lost_pointers)
        hw_buffer_add(line,
                      " There was no room for %s: ways and places that keep most may be wrong, what variables "
                      "keep is right.",
                      HW_OF(info->lost_pointers, "pointer"));
    if (info->folded_variables)
        hw_buffer_add(line, " %s had no room of their own: they are the other variables.",
                      HW_OF(info->folded_variables, "variable"));
    hw_page_wrap(&text->page, 0, "", hw_buffer_text(line));
}

void hw_text_keeps(struct hw_text *text)
{
    const struct hw_view *view = text->view;
    hw_buffer_clear(&text->name);
    hw_buffer_add(&text->name, "Who keeps the live blocks %s", hw_text_end(view->profile));
    if (!view->keeps || (!view->function && !view->rules)) {
        hw_page_heading(&text->page, hw_buffer_text(&text->name));
        if (!view->keeps) {
            if (view->profile->keep_search)
                fputs("Nothing is kept.\n", text->page.stream);
            else
                hw_text_sentence(text, hw_not_kept(view->profile));
            return;
        }
        print_keepers(text);
        print_search(text);
    }
    print_places(text);
}
