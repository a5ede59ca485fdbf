/* page_keeps.c - who keeps what the program can reach, as far as the page shows it: see page_data.h. The greatest of
 * everything, so that the page stays small whatever the profile is; sums are of all, and what is left out of a table is
 * the difference. */
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "report/page/page_data.h"
#include "report/page/page_stream.h"
#include "report/view/keeps.h"

#define KEEPERS_MOST     2000
#define KEPT_MOST        4000
#define PLACES_BY_KEPT   1000 /* of what they keep */
#define PLACES_BY_OWN    500
#define KEEPERS_OF_PLACE 4
#define SOURCES_OF_PLACE 8
#define STEPS_OF_WAY     12

/* What points to blocks of a place: all pointers from one keeper, or from blocks of one place. */
struct source {
    uint32_t place; /* of the page */
    uint32_t from;  /* keeper, or context: HW_NONE is another place */
    uint32_t offset;
    bool keeper, momentary;
    uint64_t pointers;
};

struct writer {
    const struct hw_view *view;
    const struct hw_view_keeps *keeps;
    struct hw_page_stream *stream;
    struct hw_keeps_place *all; /* places */
    size_t all_count;
    uint32_t *place_of; /* by context: number in the page + 1 */
    uint32_t *place;    /* by number in the page: index in `all` */
    size_t places;
    uint8_t *keeper_chosen, *kept_chosen;
    uint32_t *keeper_number; /* in the page + 1; 0: it is not there */
    struct source *source;
    size_t sources;
};

/* ---- choosing ---- */

static void choose_keeper(struct writer *writer, uint32_t keeper)
{
    for (; keeper && !writer->keeper_chosen[keeper]; keeper = writer->keeps->keepers[keeper].parent)
        writer->keeper_chosen[keeper] = true;
}

static void choose_place(struct writer *writer, size_t index)
{
    const uint32_t context = writer->all[index].context;
    if (context == HW_NONE || writer->place_of[context])
        return;
    writer->place[writer->places++] = (uint32_t)index;
    writer->place_of[context] = (uint32_t)writer->places;
}

static uint32_t place_of_kept(const struct writer *writer, const struct hw_view_kept *kept)
{
    return kept->context == HW_NONE ? 0 : writer->place_of[kept->context];
}

static bool choose_places(struct writer *writer)
{
    struct hw_ranked *ranked = malloc((writer->all_count + 1) * sizeof *ranked);
    for (size_t i = 0; ranked && i < writer->all_count; i++)
        ranked[i] = (struct hw_ranked){writer->all[i].bytes, (uint32_t)i};
    uint32_t *order = hw_ranked_indexes(ranked, writer->all_count);
    for (size_t i = 0; i < writer->all_count && i < PLACES_BY_KEPT; i++)
        choose_place(writer, i);
    for (size_t i = 0; order && i < writer->all_count && i < PLACES_BY_OWN; i++)
        choose_place(writer, order[i]);
    free(order);
    return order != NULL;
}

/* Keepers, and the blocks of each by place: the greatest of all, and the greatest of each place. */
static bool choose_kept(struct writer *writer)
{
    const struct hw_view_keeps *keeps = writer->keeps;
    struct hw_ranked *ranked = malloc((keeps->keeper_count + 1) * sizeof *ranked);
    size_t count = 0;
    for (uint32_t i = 1; ranked && i < keeps->keeper_count; i++)
        if (keeps->keepers[i].retained_blocks)
            ranked[count++] = (struct hw_ranked){keeps->keepers[i].retained_bytes, i};
    uint32_t *keepers = hw_ranked_indexes(ranked, count), *kept = NULL;
    uint8_t *of_place = calloc(writer->places + 1, 1);
    for (size_t i = 0; keepers && i < count && i < KEEPERS_MOST; i++)
        choose_keeper(writer, keepers[i]);
    if (keepers && of_place)
        kept = hw_kept_sorted(keeps, HW_NONE, &count);
    for (size_t i = 0; kept && i < count; i++) {
        const struct hw_view_kept *entry = &keeps->kept[kept[i]];
        const uint32_t place = place_of_kept(writer, entry);
        if (!place || !entry->keeper || (i >= KEPT_MOST && of_place[place] == KEEPERS_OF_PLACE))
            continue;
        of_place[place] += of_place[place] < KEEPERS_OF_PLACE;
        writer->kept_chosen[kept[i]] = true;
        choose_keeper(writer, entry->keeper);
    }
    free(of_place);
    free(keepers);
    free(kept);
    return kept != NULL;
}

/* ---- sources ---- */

static int compare_sources(const void *left, const void *right)
{
    const struct source *a = left, *b = right;
    return HW_ORDER(a->place, b->place) ?: HW_ORDER(a->keeper, b->keeper) ?: HW_ORDER(a->from, b->from);
}

static int compare_by_pointers(const void *left, const void *right)
{
    const struct source *a = left, *b = right;
    return HW_ORDER(a->place, b->place) ?: HW_ORDER(b->pointers, a->pointers) ?: compare_sources(a, b);
}

static bool find_sources(struct writer *writer)
{
    const struct hw_view_keeps *keeps = writer->keeps;
    struct source *sources = writer->source = malloc((keeps->edge_count + 1) * sizeof *sources);
    size_t count = 0, all = 0;
    for (size_t i = 0; sources && i < keeps->edge_count; i++) {
        const struct hw_keep_edge *edge = &keeps->edges[i];
        const uint32_t place = place_of_kept(writer, &keeps->kept[edge->to]);
        const bool keeper = edge->flags & HW_KEEP_FROM_KEEPER;
        if (place && edge->pointers)
            sources[all++] = (struct source){.place = place - 1,
                                             .from = keeper ? edge->from : keeps->kept[edge->from].context,
                                             .offset = keeper ? 0 : edge->offset,
                                             .keeper = keeper,
                                             .momentary = edge->flags & HW_KEEP_MOMENTARY,
                                             .pointers = edge->pointers};
    }
    if (all)
        qsort(sources, all, sizeof *sources, compare_sources);
    for (size_t i = 0; i < all; i++) {
        struct source *last = count ? &sources[count - 1] : NULL;
        if (!last || compare_sources(last, &sources[i])) {
            sources[count++] = sources[i];
            continue;
        }
        last->pointers = hw_add_saturating(last->pointers, sources[i].pointers);
        last->offset = last->offset < sources[i].offset ? last->offset : sources[i].offset;
        last->momentary &= sources[i].momentary;
    }
    if (count)
        qsort(sources, count, sizeof *sources, compare_by_pointers);
    writer->sources = count;
    return sources != NULL;
}

/* ---- writing ---- */

static void add(struct writer *writer, uint64_t value)
{
    hw_page_number(writer->stream, value);
}

static void end(struct writer *writer, const char *name)
{
    hw_page_part(writer->stream, name, HW_PART_NUMBERS);
}

static uint32_t keeper_name(struct writer *writer, uint32_t keeper)
{
    struct hw_buffer name = {0};
    hw_keeper_name(writer->view, keeper, &name);
    const uint32_t number = hw_page_string(writer->stream, hw_buffer_text(&name));
    writer->stream->failed |= name.failed;
    hw_buffer_free(&name);
    return number;
}

static void add_info(struct writer *writer)
{
    const struct hw_keep_info *info = writer->view->profile->keep_search;
    const uint64_t values[] = {info->blocks,      info->bytes,         info->lost_blocks,
                               info->lost_bytes,  info->lost_pointers, info->folded_variables,
                               info->duration_ns, info->memory_bytes,  writer->all_count};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        add(writer, values[i]);
    end(writer, "keeps.info");
}

#define KEEPERS(writer, name, value)                                                                                   \
    do {                                                                                                               \
        for (uint32_t i = 1; i < (writer)->keeps->keeper_count; i++) {                                                 \
            const struct hw_view_keeper *keeper = &(writer)->keeps->keepers[i];                                        \
            if ((writer)->keeper_number[i])                                                                            \
                add(writer, ((void)keeper, value));                                                                    \
        }                                                                                                              \
        end(writer, name);                                                                                             \
    } while (0)

static void add_keepers(struct writer *writer)
{
    uint32_t count = 0;
    for (uint32_t i = 1; i < writer->keeps->keeper_count; i++)
        if (writer->keeper_chosen[i])
            writer->keeper_number[i] = ++count;
    KEEPERS(writer, "keeper.id", i);
    KEEPERS(writer, "keeper.parent", writer->keeper_number[keeper->parent]); /* from 1 on; 0: none */
    KEEPERS(writer, "keeper.kind", hw_page_string(writer->stream, hw_keeper_key(keeper->kind)));
    KEEPERS(writer, "keeper.name", keeper_name(writer, i));
    KEEPERS(
        writer, "keeper.module",
        hw_page_string(writer->stream, keeper->module == HW_NONE ? NULL : writer->view->modules[keeper->module].name));
    KEEPERS(writer, "keeper.type", hw_page_string(writer->stream, keeper->type));
    KEEPERS(writer, "keeper.blocks", keeper->blocks);
    KEEPERS(writer, "keeper.bytes", keeper->bytes);
    KEEPERS(writer, "keeper.retained_blocks", keeper->retained_blocks);
    KEEPERS(writer, "keeper.retained_bytes", keeper->retained_bytes);
    KEEPERS(writer, "keeper.pointers", keeper->pointers);
}

#define PLACES(writer, name, value)                                                                                    \
    do {                                                                                                               \
        for (size_t i = 0; i < (writer)->places; i++) {                                                                \
            const struct hw_keeps_place *place = &(writer)->all[(writer)->place[i]];                                   \
            add(writer, value);                                                                                        \
        }                                                                                                              \
        end(writer, name);                                                                                             \
    } while (0)
#define KEPT(writer, name, value)                                                                                      \
    do {                                                                                                               \
        for (size_t i = 0; i < (writer)->keeps->kept_count; i++) {                                                     \
            const struct hw_view_kept *kept = &(writer)->keeps->kept[i];                                               \
            if ((writer)->kept_chosen[i])                                                                              \
                add(writer, value);                                                                                    \
        }                                                                                                              \
        end(writer, name);                                                                                             \
    } while (0)

static void add_places(struct writer *writer)
{
    PLACES(writer, "keeps_place.context", place->context);
    PLACES(writer, "keeps_place.blocks", place->blocks);
    PLACES(writer, "keeps_place.bytes", place->bytes);
    PLACES(writer, "keeps_place.retained_blocks", place->retained_blocks);
    PLACES(writer, "keeps_place.retained_bytes", place->retained_bytes);
    KEPT(writer, "kept.keeper", writer->keeper_number[kept->keeper]); /* from 1 on */
    KEPT(writer, "kept.place", place_of_kept(writer, kept));          /* from 1 on */
    KEPT(writer, "kept.blocks", kept->blocks);
    KEPT(writer, "kept.bytes", kept->bytes);
}

/* ---- columns of what points to places, and of ways ---- */

/* Where a pointer is: in a keeper, or in blocks of a context. */
struct step {
    uint32_t from; /* keeper or context; HW_NONE: another place */
    bool keeper;
};
enum step_column { STEP_NAME, STEP_KEEPER, STEP_CONTEXT, STEP_COLUMNS };

static uint64_t step_value(struct writer *writer, struct step step, enum step_column column)
{
    switch (column) {
    case STEP_NAME:
        return step.keeper ? keeper_name(writer, step.from) : 0;
    case STEP_KEEPER:
        return step.keeper ? writer->keeper_number[step.from] : 0;
    default:
        return step.keeper || step.from == HW_NONE ? 0 : (uint64_t)step.from + 1;
    }
}

enum source_column { SOURCE_OFFSET = STEP_COLUMNS, SOURCE_POINTERS, SOURCE_MOMENTARY, SOURCE_COLUMNS };

static void add_source_column(struct writer *writer, unsigned column, const char *name)
{
    for (size_t i = 0, of_place = 0; i < writer->sources; i++) {
        const struct source *source = &writer->source[i];
        of_place = i && source[-1].place == source->place ? of_place + 1 : 0;
        if (of_place < SOURCES_OF_PLACE)
            add(writer, column == SOURCE_OFFSET      ? source->offset
                        : column == SOURCE_POINTERS  ? source->pointers
                        : column == SOURCE_MOMENTARY ? source->momentary
                                                     : step_value(writer, (struct step){source->from, source->keeper},
                                                                  (enum step_column)column));
    }
    end(writer, name);
}

static void add_sources(struct writer *writer)
{
    static const char *const names[SOURCE_COLUMNS] = {"pointed.name",   "pointed.keeper",   "pointed.context",
                                                      "pointed.offset", "pointed.pointers", "pointed.momentary"};
    uint64_t *pointers = calloc(writer->places + 1, sizeof *pointers),
             *count = calloc(writer->places + 1, sizeof *count);
    writer->stream->failed |= !pointers || !count;
    for (size_t i = 0; pointers && count && i < writer->sources; i++) {
        const struct source *source = &writer->source[i];
        pointers[source->place] = hw_add_saturating(pointers[source->place], source->pointers);
        count[source->place]++;
    }
    for (size_t i = 0; pointers && i < writer->places; i++)
        add(writer, pointers[i]);
    end(writer, "keeps_place.pointers");
    for (size_t i = 0; count && i < writer->places; i++)
        add(writer, count[i]);
    end(writer, "keeps_place.sources"); /* so many there are; rows of `pointed` for the first few */
    for (unsigned column = 0; column < SOURCE_COLUMNS; column++)
        add_source_column(writer, column, names[column]);
    free(pointers);
    free(count);
}

/* The shortest way to the place's greatest part, from the place upwards; the last step is a keeper. Returns how many
 * were left out before it. */
static size_t way_of(const struct writer *writer, const struct hw_keeps_place *place, struct step *steps, size_t *count)
{
    const struct hw_view_keeps *keeps = writer->keeps;
    size_t left = 0;
    *count = 0;
    for (uint32_t at = place->kept; keeps->kept[at].way != HW_NONE;) {
        const struct hw_keep_edge *edge = &keeps->edges[keeps->kept[at].way];
        const bool keeper = edge->flags & HW_KEEP_FROM_KEEPER;
        const struct step step = {keeper ? edge->from : keeps->kept[edge->from].context, keeper};
        if (*count == STEPS_OF_WAY)
            left++;
        steps[*count < STEPS_OF_WAY ? (*count)++ : STEPS_OF_WAY - 1] = step;
        if (keeper)
            break;
        at = edge->from;
    }
    return left;
}

static void add_ways(struct writer *writer)
{
    static const char *const names[STEP_COLUMNS] = {"way.name", "way.keeper", "way.context"};
    struct step steps[STEPS_OF_WAY];
    size_t count;
    for (unsigned column = 0; column < STEP_COLUMNS + 2; column++) {
        for (size_t i = 0; i < writer->places; i++) {
            const size_t left = way_of(writer, &writer->all[writer->place[i]], steps, &count);
            if (column == STEP_COLUMNS)
                add(writer, count);
            else if (column > STEP_COLUMNS)
                add(writer, left);
            for (size_t k = 0; column < STEP_COLUMNS && k < count; k++)
                add(writer, step_value(writer, steps[k], (enum step_column)column));
        }
        end(writer, column < STEP_COLUMNS    ? names[column]
                    : column == STEP_COLUMNS ? "keeps_place.steps"
                                             : "keeps_place.steps_left_out");
    }
}

/* ---- the whole ---- */

void hw_page_keeps(const struct hw_view *view, struct hw_page_stream *stream)
{
    const struct hw_view_keeps *keeps = view->keeps;
    if (!keeps)
        return;
    struct writer writer = {.view = view,
                            .keeps = keeps,
                            .stream = stream,
                            .place_of = calloc(view->context_count + 1, sizeof(uint32_t)),
                            .place = malloc((PLACES_BY_KEPT + PLACES_BY_OWN) * sizeof(uint32_t)),
                            .keeper_chosen = calloc(keeps->keeper_count + 1, 1),
                            .kept_chosen = calloc(keeps->kept_count + 1, 1),
                            .keeper_number = calloc(keeps->keeper_count + 1, sizeof(uint32_t))};
    writer.all = hw_keeps_places(keeps, &writer.all_count);
    if (writer.all && writer.place_of && writer.place && writer.keeper_chosen && writer.kept_chosen &&
        writer.keeper_number && choose_places(&writer) && choose_kept(&writer) && find_sources(&writer)) {
        add_info(&writer);
        add_keepers(&writer);
        add_places(&writer);
        add_sources(&writer);
        add_ways(&writer);
    } else
        stream->failed = true;
    free(writer.all);
    free(writer.place_of);
    free(writer.place);
    free(writer.keeper_chosen);
    free(writer.kept_chosen);
    free(writer.keeper_number);
    free(writer.source);
}
