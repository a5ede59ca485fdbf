/* page_moments.c - what places had at moments before the end, from dumps of the process: see page_data.h. */
#include <stdlib.h>
#include <string.h>

#include "report/page/page_data.h"
#include "report/page/page_stream.h"

bool hw_page_is_dump(const struct hw_profile *dump, const struct hw_profile *of)
{
    const struct hw_process_info *a = &dump->process, *b = &of->process;
    return a->flags & HW_PROCESS_DUMP && a->pid == b->pid && a->start_realtime_ns == b->start_realtime_ns &&
           a->sample_bytes == b->sample_bytes && a->mode == b->mode && dump->duration_ns <= of->duration_ns &&
           (a->flags & HW_PROCESS_RESET) == (b->flags & HW_PROCESS_RESET) && a->reset_tick == b->reset_tick;
}

/* The places of a dump as they are in the page. Both lists are sorted by id; an id means the same stack in all profiles
 * of a process. */
struct matched {
    const struct hw_view *of, *dump;
    const struct hw_profile_context **sum; /* by place of the page; NULL: it had no blocks yet */
    bool stray;                            /* some place of the dump is no place of the page */
};

static bool match(struct matched *matched)
{
    const struct hw_view *of = matched->of, *dump = matched->dump;
    matched->sum = calloc(of->context_count + 1, sizeof *matched->sum);
    if (!matched->sum)
        return false;
    size_t i = 0;
    for (size_t k = 0; k < dump->context_count; k++) {
        const struct hw_profile_context *sum = &dump->contexts[k].sum;
        while (i < of->context_count && of->contexts[i].sum.id < sum->id)
            i++;
        if (i < of->context_count && of->contexts[i].sum.id == sum->id && of->contexts[i].sum.pool == sum->pool)
            matched->sum[i] = sum;
        else
            matched->stray = true;
    }
    return true;
}

/* Whether the dump's numbers of place I may lack those of a stack that is the same place in the page. */
static bool uncertain(const struct matched *matched, size_t i)
{
    return matched->stray && matched->of->contexts[i].merged > 1;
}

/* A column of rows: the places that had any blocks at a dump, dump after dump. */
#define EACH_ROW(stream, name, kind, add, value)                                                                       \
    do {                                                                                                               \
        for (size_t k = 0; k < count; k++)                                                                             \
            for (size_t i = 0; i < all[k].of->context_count; i++) {                                                    \
                const struct hw_profile_context *sum = all[k].sum[i] ? all[k].sum[i] : &none;                          \
                if (all[k].sum[i] || uncertain(&all[k], i))                                                            \
                    add(stream, value);                                                                                \
            }                                                                                                          \
        hw_page_part(stream, name, kind);                                                                              \
    } while (0)

static void add_rows(struct hw_page_stream *stream, const struct matched *all, size_t count)
{
    static const struct hw_profile_context none = {0};
    EACH_ROW(stream, "at.context", HW_PART_STEPS, hw_page_step, ((void)sum, i));
    EACH_ROW(stream, "at.unknown", HW_PART_NUMBERS, hw_page_number, ((void)sum, uncertain(&all[k], i)));
    EACH_ROW(stream, "at.live_bytes", HW_PART_SIGNED, hw_page_signed, sum->live_bytes);
    EACH_ROW(stream, "at.live_blocks", HW_PART_SIGNED, hw_page_signed, sum->live_blocks);
    EACH_ROW(stream, "at.allocations", HW_PART_NUMBERS, hw_page_number, sum->allocations);
    EACH_ROW(stream, "at.bytes", HW_PART_NUMBERS, hw_page_number, sum->bytes);
    EACH_ROW(stream, "at.frees", HW_PART_NUMBERS, hw_page_number, sum->frees);
    EACH_ROW(stream, "at.reallocations", HW_PART_NUMBERS, hw_page_number, sum->reallocations);
    EACH_ROW(stream, "at.last_ns", HW_PART_NUMBERS, hw_page_number,
             sum->last_alloc_ns > sum->last_free_ns ? sum->last_alloc_ns : sum->last_free_ns);
}

/* What was resident when the dump was written; zero: it was not read. */
static const struct hw_memory_breakdown *memory_of(const struct hw_view *dump)
{
    static const struct hw_memory_breakdown none = {0};
    const struct hw_profile *profile = dump->profile;
    for (size_t i = 0; i < profile->memory_count; i++)
        if (profile->memory[i].moment == HW_MOMENT_DUMP)
            return &profile->memory[i];
    return &none;
}

static const char *base_name(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path;
}

#define EACH(stream, name, kind, add, value)                                                                           \
    do {                                                                                                               \
        for (size_t k = 0; k < count; k++)                                                                             \
            add(stream, value);                                                                                        \
        hw_page_part(stream, name, kind);                                                                              \
    } while (0)

static void add_moments(struct hw_page_stream *stream, const struct matched *all, size_t count)
{
    EACH(stream, "dump.file", HW_PART_NUMBERS, hw_page_number,
         hw_page_string(stream, base_name(all[k].dump->profile->path)));
    EACH(stream, "dump.time_ns", HW_PART_NUMBERS, hw_page_number, all[k].dump->profile->duration_ns);
    EACH(stream, "dump.live_bytes", HW_PART_SIGNED, hw_page_signed, all[k].dump->totals.live_bytes);
    EACH(stream, "dump.allocations", HW_PART_NUMBERS, hw_page_number, all[k].dump->totals.allocations);
    EACH(stream, "dump.frees", HW_PART_NUMBERS, hw_page_number, all[k].dump->totals.frees);
    EACH(stream, "dump.rss", HW_PART_NUMBERS, hw_page_number, memory_of(all[k].dump)->rss);
    EACH(stream, "dump.own", HW_PART_NUMBERS, hw_page_number, memory_of(all[k].dump)->runtime);
    for (size_t k = 0; k < count; k++) {
        size_t rows = 0;
        for (size_t i = 0; i < all[k].of->context_count; i++)
            rows += all[k].sum[i] || uncertain(&all[k], i);
        hw_page_number(stream, rows);
    }
    hw_page_part(stream, "dump.rows", HW_PART_NUMBERS);
}

unsigned char *hw_page_moments(const struct hw_view *view, const struct hw_view *const *dumps, size_t count,
                               size_t *size, struct hw_error *error)
{
    struct hw_page_stream stream;
    struct matched *all = calloc(count + 1, sizeof *all);
    bool fine = hw_page_stream_begin(&stream) && all;
    hw_error_set(error, "not enough memory for the page");
    for (size_t k = 0; fine && k < count; k++) {
        all[k] = (struct matched){.of = view, .dump = dumps[k]};
        fine = match(&all[k]);
    }
    if (fine) {
        add_moments(&stream, all, count);
        add_rows(&stream, all, count);
    }
    for (size_t k = 0; all && k < count; k++)
        free(all[k].sum);
    free(all);
    return hw_page_stream_end(&stream, fine, size);
}
