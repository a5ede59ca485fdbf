/* export_sqlite.c - a SQLite database with everything a profile has: sqlite_schema.h, docs/sqlite.md.
 *
 * Made in memory and handed over as the bytes of a database file. */
#include "report/export/export.h"

#include <sqlite3.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "report/view/analyse.h"
#include "report/text/human.h"
#include "report/view/merged.h"
#include "report/view/numbers.h"
#include "report/words/not_observed.h"
#include "base/index.h"
#include "report/export/sqlite_schema.h"
#include "report/view/frame_roles.h"
#include "report/view/contents.h"
#include "report/view/keeps.h"
#include "report/view/memory_parts.h"
#include "report/view/pins.h"

struct database {
    const struct hw_view *view;
    const struct hw_view_analysis *analysis;
    sqlite3 *handle;
    struct hw_buffer text; /* foreign text, cleaned */
    struct hw_index functions;
    uint32_t function_count;
    uint32_t *first_frame; /* by location: the id of its first frame; 0 where it is not in use */
    struct hw_view_stack stack;
    bool failed;
};

/* ---- rows ---- */

static sqlite3_stmt *statement(struct database *database, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    if (!database->failed && sqlite3_prepare_v2(database->handle, sql, -1, &statement, NULL) != SQLITE_OK)
        database->failed = true;
    return statement;
}

static int bind_text(struct database *database, sqlite3_stmt *statement, int column, const char *text)
{
    if (!text)
        return sqlite3_bind_null(statement, column);
    hw_buffer_clear(&database->text);
    hw_buffer_clean(&database->text, text, HW_CLEAN_JSON);
    database->failed |= database->text.failed;
    return sqlite3_bind_text(statement, column, hw_buffer_text(&database->text), (int)database->text.used,
                             SQLITE_TRANSIENT);
}

/* Binds values from column FIRST on. TYPES has a letter for each: i int64_t, u uint64_t (what does not fit is the
 * greatest number there is), t text or NULL, k a bool and a uint64_t: the number, or NULL unless the bool is true. */
static void bind_values(struct database *database, sqlite3_stmt *statement, int first, const char *types,
                        va_list *values)
{
    for (int i = 0; types[i]; i++) {
        const char type = types[i];
        int code;
        if (type == 't') {
            code = bind_text(database, statement, first + i, va_arg(*values, const char *));
        } else if (type == 'i') {
            code = sqlite3_bind_int64(statement, first + i, va_arg(*values, int64_t));
        } else {
            const bool known = type == 'k' ? va_arg(*values, int) : true;
            const uint64_t value = va_arg(*values, uint64_t);
            code = known ? sqlite3_bind_int64(statement, first + i, value > INT64_MAX ? INT64_MAX : (int64_t)value)
                         : sqlite3_bind_null(statement, first + i);
        }
        database->failed |= code != SQLITE_OK;
    }
}

static void bind(struct database *database, sqlite3_stmt *statement, int first, const char *types, ...)
{
    va_list values;
    if (database->failed)
        return;
    va_start(values, types);
    bind_values(database, statement, first, types, &values);
    va_end(values);
}

/* Inserts the row that was bound. */
static void step(struct database *database, sqlite3_stmt *statement)
{
    if (database->failed)
        return;
    database->failed |= sqlite3_step(statement) != SQLITE_DONE;
    database->failed |= sqlite3_reset(statement) != SQLITE_OK;
}

/* Inserts a row of these values. */
static void insert(struct database *database, sqlite3_stmt *statement, const char *types, ...)
{
    va_list values;
    if (database->failed)
        return;
    va_start(values, types);
    bind_values(database, statement, 1, types, &values);
    va_end(values);
    step(database, statement);
}

static void execute(struct database *database, const char *sql)
{
    if (!database->failed && sqlite3_exec(database->handle, sql, NULL, NULL, NULL) != SQLITE_OK)
        database->failed = true;
}

/* ---- the process ---- */

static void put_profile(struct database *database, const struct hw_export_options *options)
{
    const struct hw_view *view = database->view;
    const struct hw_profile *profile = view->profile;
    const struct hw_process_info *process = &profile->process;
    const bool known = hw_view_measured(view, HW_MEASURED_PROCESS), merged = hw_is_merged(profile);
    const bool events = hw_view_measured(view, HW_MEASURED_EVENTS), totals = hw_view_measured(view, HW_MEASURED_TOTALS);
    const bool live = hw_view_measured(view, HW_MEASURED_LIVE), peak = hw_view_measured(view, HW_MEASURED_PEAK);
    struct hw_buffer command = {0};
    hw_export_command(&command, view, HW_CLEAN_JSON);
    sqlite3_stmt *put = statement(database, "INSERT INTO profile VALUES(?, ?)");
    const struct {
        const char *key;
        bool known;
        uint64_t value;
    } numbers[] = {
        {"pid", known && !merged, process->pid},
        {"started_ns", known, process->start_realtime_ns},
        {"duration_ns", known, profile->duration_ns},
        {"exit_code", process->exit_kind == HW_EXIT_CODE, (uint64_t)process->exit_value},
        {"exit_signal", process->exit_kind == HW_EXIT_SIGNAL, (uint64_t)process->exit_value},
        {"sample_bytes", process->sample_bytes != 0, process->sample_bytes},
        {"runs", merged, process->runs},
        {"allocations", totals, view->totals.allocations},
        {"bytes_allocated", totals, view->totals.bytes},
        {"frees", events, view->totals.frees},
        {"reallocations", !hw_measure_unknown(view, HW_MEASURE_REALLOC), view->totals.reallocations},
        {"temporary_allocations", !hw_measure_unknown(view, HW_MEASURE_TEMPORARY), view->totals.temporary},
        {"live_allocations", live, hw_not_negative(view->totals.live_blocks)},
        {"live_bytes", live, hw_not_negative(view->totals.live_bytes)},
        {"peak_bytes", peak, process->peak_bytes},
        {"peak_time_ns", peak && !merged, profile->peak_time_ns},
        {"peak_rss_bytes", hw_view_peak_rss(profile) != 0, hw_view_peak_rss(profile)},
        {"threads", known, process->threads_seen},
        {"granule", profile->access_counted, profile->access_info.granule},
    };
    insert(database, put, "tt", "exporter", "heapwise");
    insert(database, put, "tt", "version", options->version);
    insert(database, put, "tt", "command", hw_buffer_text(&command));
    insert(database, put, "tt", "executable", profile->executable);
    insert(database, put, "tt", "allocator", profile->allocator);
    insert(database, put, "tt", "mode", hw_mode_name(process->mode));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        insert(database, put, "tk", numbers[i].key, numbers[i].known, numbers[i].value);
    database->failed |= command.failed;
    hw_buffer_free(&command);
    sqlite3_finalize(put);
}

static void put_timeline(struct database *database)
{
    const struct hw_profile *profile = database->view->profile;
    sqlite3_stmt *put = statement(database, "INSERT INTO timeline VALUES(?, ?, ?, ?, ?)");
    for (size_t i = 0; i < profile->timeline_count; i++) {
        const struct hw_profile_point *point = &profile->timeline[i];
        insert(database, put, "uikuu", point->time_ns, point->live_bytes, point->rss_bytes != 0, point->rss_bytes,
               point->allocations, point->frees);
    }
    sqlite3_finalize(put);
    put = statement(database, "INSERT INTO memory VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)");
    for (uint32_t i = 0; hw_view_moment_key(i); i++) {
        const struct hw_memory_breakdown *memory = hw_view_memory(database->view, (enum hw_memory_moment)i);
        if (memory)
            insert(database, put, "tuuuuuuui", hw_view_moment_key(i), memory->rss, memory->heap, memory->file,
                   memory->stack, memory->runtime, memory->other, memory->swap, memory->live_bytes);
    }
    sqlite3_finalize(put);
}

static void put_notes(struct database *database)
{
    struct hw_buffer lines = {0};
    sqlite3_stmt *put = statement(database, "INSERT INTO notes(kind, text) VALUES(?, ?)");
    for (int kind = 0; kind < 2; kind++) {
        hw_buffer_clear(&lines);
        if (kind)
            hw_not_observed(database->view, &lines);
        else
            hw_export_notes(&lines, database->view);
        for (char *line = lines.data, *end; line && (end = strchr(line, '\n')); line = end + 1) {
            *end = '\0';
            insert(database, put, "tt", kind ? "not observed" : "values", line);
        }
    }
    database->failed |= lines.failed;
    hw_buffer_free(&lines);
    sqlite3_finalize(put);
}

/* ---- code ---- */

static const char *known_text(const char *text)
{
    return text && *text ? text : NULL;
}

static void put_modules(struct database *database)
{
    static const char *const kinds[] = {
        [HW_MODULE_PROGRAM] = "program", [HW_MODULE_SYSTEM] = "system", [HW_MODULE_GENERATED] = "generated code"};
    const struct hw_view *view = database->view;
    sqlite3_stmt *put = statement(database, "INSERT INTO modules VALUES(?, ?, ?, ?, ?, ?, ?, ?)");
    for (size_t i = 0; i < view->module_count; i++) {
        const struct hw_view_module *module = &view->modules[i];
        char hex[2 * sizeof((struct hw_map_entry *)0)->build_id + 1];
        hw_hex(hex, module->build_id, module->build_id_size);
        insert(database, put, "uttttuut", (uint64_t)i + 1, known_text(module->path), known_text(module->name),
               known_text(hex), kinds[module->kind], (uint64_t) !!(module->flags & HW_MAP_MAIN),
               (uint64_t)module->has_debug_info, module->problem);
    }
    sqlite3_finalize(put);
}

/* The id of a frame's function, which is inserted when it is met first. Symbols are interned: pointers are compared. */
static uint32_t function_id(struct database *database, sqlite3_stmt *put, uint32_t location, uint32_t index)
{
    const struct hw_view_location *of = &database->view->locations[location];
    const struct hw_frame *symbol = &of->frames.frame[index];
    const uint64_t name = symbol->linkage_name ? (uintptr_t)symbol->linkage_name
                          : symbol->function   ? (uintptr_t)symbol->function
                                               : (uint64_t)1 << 63 | location;
    bool new;
    const uint32_t id =
        hw_index_intern(&database->functions, (struct hw_key){name, of->module}, database->function_count + 1, &new);
    if (!new)
        return id;
    struct hw_buffer text = {0};
    hw_export_function(&text, database->view, of, index, HW_CLEAN_JSON);
    insert(database, put, "utttk", (uint64_t)id, hw_buffer_text(&text), symbol->linkage_name, symbol->file,
           symbol->start_line != 0, (uint64_t)symbol->start_line);
    database->failed |= text.failed;
    hw_buffer_free(&text);
    database->function_count++;
    return id;
}

static void put_frames(struct database *database)
{
    const struct hw_view *view = database->view;
    sqlite3_stmt *functions = statement(database, "INSERT INTO functions VALUES(?, ?, ?, ?, ?)");
    sqlite3_stmt *put = statement(database, "INSERT INTO frames VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)");
    uint32_t next = 1;
    for (size_t i = 0; i < view->location_count && !database->failed; i++) {
        const struct hw_view_location *location = &view->locations[i];
        database->first_frame[i] = next;
        for (uint32_t k = 0; k < location->frames.count; k++) {
            const struct hw_frame *symbol = &location->frames.frame[k];
            insert(database, put, "uukktkkuu", (uint64_t)next++,
                   (uint64_t)function_id(database, functions, (uint32_t)i, k), location->module != HW_NONE,
                   (uint64_t)location->module + 1, !hw_view_llvm_frame(view, location), location->address, symbol->file,
                   symbol->line != 0, (uint64_t)symbol->line, symbol->column != 0, (uint64_t)symbol->column,
                   (uint64_t)symbol->inlined, (uint64_t) !!(hw_location_role(location, k) & HW_FRAME_WRAPPER));
        }
    }
    sqlite3_finalize(functions);
    sqlite3_finalize(put);
}

/* ---- contexts ---- */

/* The loaded stack, into a table whose first column is OF. */
static void put_stack(struct database *database, sqlite3_stmt *put, uint64_t of)
{
    for (size_t i = 0; i < database->stack.count; i++) {
        const struct hw_view_frame *frame = &database->stack.frames[i];
        const struct hw_frame *chain = database->view->locations[frame->location].frames.frame;
        insert(database, put, "uuu", of, (uint64_t)i,
               database->first_frame[frame->location] + (uint64_t)(frame->symbol - chain));
    }
}

static bool load(struct database *database, uint32_t leaf)
{
    database->failed |= !hw_view_stack(database->view, leaf, &database->stack);
    return !database->failed;
}

static void put_context(struct database *database, sqlite3_stmt *put, const struct hw_view_context *context,
                        uint64_t id)
{
    const struct hw_view *view = database->view;
    const struct hw_profile_context *sum = &context->sum;
    uint64_t headline = 0;
    if (database->stack.count) {
        const struct hw_view_frame *frame = &database->stack.frames[hw_stack_headline(&database->stack)];
        headline = database->first_frame[frame->location] +
                   (uint64_t)(frame->symbol - view->locations[frame->location].frames.frame);
    }
    bind(database, put, 1, "uktuu", id, headline != 0, headline, hw_view_type(view, sum), (uint64_t)sum->pool,
         (uint64_t)(sum->leaf && !(sum->flags & HW_CONTEXT_NOT_WHOLE)));
    int column = 6;
    for (size_t i = 0; i < hw_number_count; i++) {
        const struct hw_number *number = &hw_numbers[i];
        const bool counted = !number->of_access || (sum->access && sum->access->all.blocks);
        if (number->sqlite)
            bind(database, put, column++, "k", counted && hw_number_is_known(view, number, sum),
                 hw_number_value(number, sum));
    }
    step(database, put);
}

/* The table of contexts has a column for each number. */
static void make_contexts_table(struct database *database)
{
    struct hw_buffer sql = {0};
    hw_buffer_add(&sql, "%s", hw_sqlite_contexts);
    for (size_t i = 0; i < hw_number_count; i++)
        if (hw_numbers[i].sqlite)
            hw_buffer_add(&sql, ",\n  %s INTEGER%s", hw_numbers[i].sqlite,
                          hw_numbers[i].known == HW_KNOWN_ALWAYS ? " NOT NULL" : "");
    hw_buffer_add(&sql, ");\n");
    database->failed |= sql.failed;
    execute(database, hw_buffer_text(&sql));
    hw_buffer_free(&sql);
}

static sqlite3_stmt *contexts_statement(struct database *database)
{
    struct hw_buffer sql = {0};
    hw_buffer_add(&sql, "INSERT INTO contexts VALUES(?, ?, ?, ?, ?");
    for (size_t i = 0; i < hw_number_count; i++)
        if (hw_numbers[i].sqlite)
            hw_buffer_add(&sql, ", ?");
    hw_buffer_add(&sql, ")");
    database->failed |= sql.failed;
    sqlite3_stmt *put = statement(database, hw_buffer_text(&sql));
    hw_buffer_free(&sql);
    return put;
}

/* Ids are those of reports. */
static void put_contexts(struct database *database)
{
    const struct hw_view *view = database->view;
    sqlite3_stmt *put = contexts_statement(database);
    sqlite3_stmt *stacks = statement(database, "INSERT INTO stacks VALUES(?, ?, ?)");
    sqlite3_stmt *frees = statement(database, "INSERT INTO free_stacks VALUES(?, ?, ?, ?)");
    sqlite3_stmt *free_frames = statement(database, "INSERT INTO free_stack_frames VALUES(?, ?, ?)");
    sqlite3_stmt *sampled = statement(database, "INSERT INTO sampled_accesses VALUES(?, ?, ?, ?, ?)");
    for (size_t i = 0; i < view->context_count && !database->failed; i++) {
        const struct hw_view_context *context = &view->contexts[i];
        const uint64_t id = context->sum.id;
        if (!load(database, context->sum.leaf))
            break;
        put_context(database, put, context, id);
        put_stack(database, stacks, id);
        if (view->sampled)
            insert(database, sampled, "uuuuu", id, view->sampled[i].reads, view->sampled[i].writes,
                   view->sampled[i].lines, view->sampled[i].lines_false_shared);
    }
    for (size_t i = 0; i < view->free_stack_count && !database->failed; i++) {
        const struct hw_view_free_stack *of = &view->free_stacks[i];
        insert(database, frees, "uuuu", (uint64_t)i + 1, (uint64_t)view->contexts[of->context].sum.id, of->count,
               of->bytes);
        if (load(database, of->leaf))
            put_stack(database, free_frames, (uint64_t)i + 1);
    }
    sqlite3_finalize(put);
    sqlite3_finalize(stacks);
    sqlite3_finalize(frees);
    sqlite3_finalize(free_frames);
    sqlite3_finalize(sampled);
}

/* Ids are the places in the list of the JSON report, from 0. */
static void put_threads(struct database *database)
{
    const struct hw_view *view = database->view;
    const struct hw_profile *profile = view->profile;
    const bool sampled = hw_view_sampled(view), merged = hw_is_merged(profile);
    sqlite3_stmt *put = statement(
        database, "INSERT INTO threads VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    sqlite3_stmt *starts = statement(database, "INSERT OR IGNORE INTO thread_starts VALUES(?, ?, ?)");
    sqlite3_stmt *places = statement(database, "INSERT INTO context_threads VALUES(?, ?, ?, ?, ?, ?, ?, ?)");
    for (size_t i = 0; i < view->thread_count; i++) {
        const struct hw_view_thread *thread = &view->threads[i];
        const struct hw_profile_thread *is = thread->is;
        const bool start = thread->location != HW_NONE && !(is->flags & HW_THREAD_ROUTINES);
        insert(database, put, "uttkuukkuuukkuiiiuuuuukk", (uint64_t)i, known_text(is->name),
               hw_view_thread_key(is->flags), start,
               start ? (uint64_t)database->first_frame[thread->location] + thread->frame : (uint64_t)0, is->threads,
               (uint64_t) !!(is->flags & HW_THREAD_NAMES), !merged && !(is->flags & HW_THREAD_HANDLERS), is->start_ns,
               is->end_ns != 0, is->end_ns, (uint64_t)(sampled || profile->observed), is->allocations, is->frees,
               !sampled, is->reallocations, !sampled, is->temporary, is->bytes, is->peak_bytes, is->live_blocks,
               is->live_bytes, is->freed_by_others, is->freed_by_others_bytes, is->freed_of_others,
               is->freed_of_others_bytes, is->owner_unknown, is->starter != HW_NONE, (uint64_t)is->starter,
               thread->started != 0, (uint64_t)is->context);
        if (thread->started && load(database, thread->started))
            put_stack(database, starts, is->context);
    }
    for (size_t i = 0; i < profile->thread_place_count; i++) {
        const struct hw_profile_thread_place *place = &profile->thread_places[i];
        const struct hw_view_context *context = hw_view_context_of(view, place->context);
        if (!context)
            continue;
        bind(database, places, 1, "uuuuuu", (uint64_t)place->context, (uint64_t)place->thread, (uint64_t)place->several,
             place->allocations, place->frees, place->bytes);
        if (context->sum.freed_by_others || place->resized)
            bind(database, places, 7, "kk", false, (uint64_t)0, false, (uint64_t)0);
        else
            bind(database, places, 7, "ii", place->live_bytes, place->peak_bytes);
        step(database, places);
    }
    sqlite3_finalize(put);
    sqlite3_finalize(starts);
    sqlite3_finalize(places);
}

/* Ids are those of the JSON report. */
static void put_keeps(struct database *database)
{
    const struct hw_view *view = database->view;
    const struct hw_view_keeps *keeps = view->keeps;
    struct hw_buffer name = {0};
    if (!keeps)
        return;
    sqlite3_stmt *put = statement(database, "INSERT INTO keepers VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    for (uint32_t i = 1; i < keeps->keeper_count; i++) {
        const struct hw_view_keeper *keeper = &keeps->keepers[i];
        const bool module = keeper->module != HW_NONE;
        if (keeper->kind == HW_KEEPER_NONE)
            continue;
        hw_buffer_clear(&name);
        hw_keeper_name(view, i, &name);
        insert(database, put, "ukttktktkuuuuut", (uint64_t)i, keeper->parent != 0, (uint64_t)keeper->parent,
               hw_keeper_key(keeper->kind), hw_buffer_text(&name), module, (uint64_t)keeper->module + 1, keeper->symbol,
               module, keeper->offset, known_text(keeper->thread), keeper->tid != 0, (uint64_t)keeper->tid,
               keeper->pointers, keeper->blocks, keeper->bytes, keeper->retained_blocks, keeper->retained_bytes,
               keeper->type);
    }
    sqlite3_finalize(put);
    put = statement(database, "INSERT INTO kept VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    for (size_t i = 0; i < keeps->kept_count; i++) {
        const struct hw_view_kept *kept = &keeps->kept[i];
        const bool shown = kept->context != HW_NONE, reached = kept->way != HW_NONE;
        insert(database, put, "ukuuuuukkk", (uint64_t)i, shown,
               shown ? (uint64_t)view->contexts[kept->context].sum.id : (uint64_t)0, (uint64_t)kept->keeper,
               kept->blocks, kept->bytes, kept->retained_blocks, kept->retained_bytes, kept->dominator != HW_NONE,
               (uint64_t)kept->dominator, reached, (uint64_t)kept->way, reached, (uint64_t)kept->distance);
    }
    sqlite3_finalize(put);
    put = statement(database, "INSERT INTO keep_edges VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)");
    for (size_t i = 0; i < keeps->edge_count; i++) {
        const struct hw_keep_edge *edge = &keeps->edges[i];
        const bool keeper = edge->flags & HW_KEEP_FROM_KEEPER;
        insert(database, put, "ukkukuuuu", (uint64_t)i, keeper, (uint64_t)edge->from, !keeper, (uint64_t)edge->from,
               (uint64_t)edge->to, !keeper, (uint64_t)edge->offset, edge->pointers, edge->blocks, edge->bytes,
               (uint64_t) !!(edge->flags & HW_KEEP_MOMENTARY));
    }
    sqlite3_finalize(put);
    database->failed |= name.failed;
    hw_buffer_free(&name);
}

/* ---- what blocks hold ---- */

static void put_contents(struct database *database)
{
    const struct hw_profile *profile = database->view->profile;
    struct hw_buffer bytes = {0};
    sqlite3_stmt *put =
        statement(database, "INSERT INTO contents VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    for (size_t i = 0; i < profile->content_count; i++) {
        const struct hw_contents *sum = &profile->contents[i];
        if (hw_view_context_of(database->view, sum->context))
            insert(database, put, "uuuuuuuuuuuuuuuuuu", (uint64_t)sum->context, sum->blocks, sum->bytes,
                   sum->identical_blocks, sum->identical_bytes, sum->repeated, sum->zero_blocks, sum->zero_bytes,
                   sum->never_written_bytes, sum->absent_bytes, sum->tail_blocks, sum->unused_tail_bytes,
                   sum->avoidable_bytes, sum->avoidable_copies, sum->avoidable_zeros, sum->avoidable_ends,
                   sum->unread_bytes, sum->identical_error);
    }
    sqlite3_finalize(put);
    put = statement(database, "INSERT INTO content_examples VALUES(?, ?, ?, ?, ?, ?, ?)");
    for (size_t i = 0; i < profile->content_example_count; i++) {
        const struct hw_content_example *example = &profile->content_examples[i];
        const bool of_all = example->context == HW_NONE;
        if (!of_all && !hw_view_context_of(database->view, example->context))
            continue;
        hw_buffer_clear(&bytes);
        const bool text = hw_content_text(example, &bytes);
        insert(database, put, "ukuuktt", (uint64_t)i + 1, !of_all, (uint64_t)example->context, example->size,
               example->copies, example->here != 0, example->here,
               example->shown && text ? hw_buffer_text(&bytes) : NULL,
               example->shown && !text ? hw_buffer_text(&bytes) : NULL);
    }
    sqlite3_finalize(put);
    database->failed |= bytes.failed;
    hw_buffer_free(&bytes);
}

/* ---- what RSS is made of ---- */

/* The table of moments has one entry for each that has a name, the latest. */
static bool is_shown(const struct hw_view *view, const struct hw_memory_breakdown *memory)
{
    return memory->moment == HW_MOMENT_TIME || (hw_view_moment_key(memory->moment) &&
                                                hw_view_memory(view, (enum hw_memory_moment)memory->moment) == memory);
}

static void put_memory_times(struct database *database)
{
    const struct hw_profile *profile = database->view->profile;
    sqlite3_stmt *put = statement(database, "INSERT INTO memory_times VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    sqlite3_stmt *put_part = statement(database, "INSERT INTO memory_parts VALUES(?, ?, ?, ?, ?)");
    for (size_t i = 0; i < profile->memory_count; i++) {
        const struct hw_memory_breakdown *memory = &profile->memory[i];
        const bool known = memory->known & HW_MEMORY_LEDGER, group = memory->known & HW_MEMORY_CGROUP;
        if (!is_shown(database->view, memory))
            continue;
        insert(database, put, "utuuiukkkkkk", (uint64_t)i + 1, hw_view_moment_key(memory->moment),
               hw_profile_ticks_to_ns(profile, memory->tick), memory->rss, memory->live_bytes, memory->swap, known,
               memory->page_tables, known, memory->pss, known, memory->huge, group, memory->cgroup,
               memory->known & HW_MEMORY_CGROUP_PEAK, memory->cgroup_peak, group && memory->cgroup_limit,
               memory->cgroup_limit);
        for (size_t k = 0; k < hw_memory_part_count; k++)
            insert(database, put_part, "uutti", (uint64_t)i + 1, (uint64_t)k, hw_memory_parts[k].key,
                   hw_memory_parts[k].label, hw_memory_parts[k].value(memory));
    }
    sqlite3_finalize(put);
    sqlite3_finalize(put_part);
}

static void put_ledger(struct database *database)
{
    const struct hw_view *view = database->view;
    const struct hw_profile *profile = view->profile;
    struct hw_buffer title = {0};
    sqlite3_stmt *put = statement(database, "INSERT INTO ledger VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    sqlite3_stmt *stacks = statement(database, "INSERT INTO ledger_stacks VALUES(?, ?, ?)");
    for (size_t i = 0; i < profile->ledger_count && !database->failed; i++) {
        const struct hw_ledger_row *row = &profile->ledger[i];
        const struct hw_memory_breakdown *memory =
            hw_view_moment_key(row->moment) ? hw_view_memory(view, (enum hw_memory_moment)row->moment) : NULL;
        hw_ledger_title(profile, row, &title);
        insert(database, put, "uktttkuuuuuuu", (uint64_t)i + 1, memory != NULL,
               memory ? (uint64_t)(memory - profile->memory) + 1 : (uint64_t)0, hw_ledger_kinds[row->kind].key,
               hw_buffer_text(&title), row->name ? hw_profile_string(profile, row->name) : NULL, row->tid != 0,
               (uint64_t)row->tid, (uint64_t)row->mappings, row->bytes, row->resident, row->own, row->pss, row->swap,
               row->huge);
        if (view->ledger_leaves[i] && load(database, view->ledger_leaves[i]))
            put_stack(database, stacks, (uint64_t)i + 1);
    }
    sqlite3_finalize(put);
    sqlite3_finalize(stacks);
    put = statement(database, "INSERT INTO mappings VALUES(?, ?, ?, ?, ?)");
    stacks = statement(database, "INSERT INTO mapping_stacks VALUES(?, ?, ?)");
    for (size_t i = 0; i < profile->mapping_count && !database->failed; i++) {
        const struct hw_mapping *mapping = &profile->mappings[i];
        insert(database, put, "uuuuu", (uint64_t)i + 1, mapping->calls, mapping->bytes, mapping->mapped_bytes,
               mapping->peak_bytes);
        if (view->mapping_leaves[i] && load(database, view->mapping_leaves[i]))
            put_stack(database, stacks, (uint64_t)i + 1);
    }
    sqlite3_finalize(put);
    sqlite3_finalize(stacks);
    database->failed |= title.failed;
    hw_buffer_free(&title);
}

/* What keeps pages resident. */
static void put_pinned(struct database *database)
{
    const struct hw_profile *profile = database->view->profile;
    const struct hw_heap_pages *heap = hw_pins_pages(profile);
    size_t count;
    if (!heap)
        return;
    sqlite3_stmt *put = statement(database, "INSERT INTO heap_pages VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    insert(database, put, "uuuukkukuuuu", hw_profile_ticks_to_ns(profile, heap->tick), heap->walk_ns, heap->blocks,
           heap->requested_bytes, heap->flags & HW_HEAP_PAGES_ROUNDING, heap->rounding_bytes,
           heap->flags & HW_HEAP_PAGES_GLIBC, heap->header_bytes, heap->absent_bytes,
           !(heap->flags & HW_HEAP_PAGES_MINCORE), heap->swapped_bytes, heap->resident_bytes, heap->live_pages,
           heap->free_bytes, heap->kept_bytes);
    sqlite3_finalize(put);
    put = statement(database, "INSERT INTO page_occupancy VALUES(?, ?, ?, ?, ?)");
    for (size_t i = 0; i < profile->occupancy_count; i++) {
        const struct hw_occupancy *in = &profile->occupancy[i];
        insert(database, put, "tuuuu", hw_piece_keys[in->unit], (uint64_t)in->tenths * 10, in->pieces,
               in->resident_bytes, in->live_bytes);
    }
    sqlite3_finalize(put);
    put = statement(database, "INSERT INTO pinned VALUES(?, ?, ?, ?, ?, ?, ?, ?)");
    const struct hw_pin **pins = hw_pins_sorted(database->view, &count);
    database->failed |= !pins;
    for (size_t i = 0; pins && i < count; i++)
        insert(database, put, "uuuuuuuu", (uint64_t)pins[i]->context, pins[i]->pinned_bytes, pins[i]->pages,
               pins[i]->live_bytes, pins[i]->blocks, pins[i]->own_bytes, pins[i]->sole_pages, pins[i]->sole_free_bytes);
    free(pins);
    sqlite3_finalize(put);
    put = statement(database, "INSERT INTO page_groups VALUES(?, ?, ?)");
    sqlite3_stmt *members = statement(database, "INSERT INTO page_group_contexts VALUES(?, ?)");
    for (size_t i = 0; i < profile->page_group_count; i++) {
        const struct hw_page_group *group = &profile->page_groups[i];
        insert(database, put, "uuu", (uint64_t)i + 1, group->pages, group->live_bytes);
        for (size_t k = 0; k < HW_PAGE_GROUP_CONTEXTS && group->contexts[k] != HW_NONE; k++)
            if (hw_view_context_of(database->view, group->contexts[k]))
                insert(database, members, "uu", (uint64_t)i + 1, (uint64_t)group->contexts[k]);
    }
    sqlite3_finalize(put);
    sqlite3_finalize(members);
}

/* Accesses by position in blocks: of 8 bytes, or periods of 4. Words without any are left out. */
static void put_words(struct database *database)
{
    const struct hw_view *view = database->view;
    sqlite3_stmt *put = statement(database, "INSERT INTO words VALUES(?, ?, ?, ?, ?)");
    for (size_t i = 0; i < view->histogram_count; i++) {
        const struct hw_profile_histogram *run = &view->histogram[i];
        for (uint64_t k = 0; k < HW_HISTOGRAM_WORDS; k++)
            if (run->words[k])
                insert(database, put, "uukkk", (uint64_t)view->contexts[run->context].sum.id, 8 * (run->first_word + k),
                       true, run->words[k], false, (uint64_t)0, false, (uint64_t)0);
    }
    for (size_t i = 0; i < view->words.count; i++) {
        const struct hw_profile_words *run = &view->words.runs[i];
        for (uint64_t k = 0; k < HW_WORDS_RUN; k++)
            if (run->read_periods[k] || run->written_periods[k])
                insert(database, put, "uukkk", (uint64_t)view->contexts[run->context].sum.id, 4 * (run->first_word + k),
                       false, (uint64_t)0, true, run->read_periods[k], true, run->written_periods[k]);
    }
    sqlite3_finalize(put);
}

/* ---- sizes and lifetimes ---- */

static void put_distributions(struct database *database)
{
    const struct hw_view *view = database->view;
    const bool live = hw_view_measured(view, HW_MEASURED_LIVE), peak = hw_view_measured(view, HW_MEASURED_PEAK);
    sqlite3_stmt *sizes = statement(database, "INSERT INTO sizes VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    sqlite3_stmt *lives = statement(database, "INSERT INTO lifetimes VALUES(?, ?, ?, ?, ?, ?)");
    for (size_t i = 0; i < view->size_bar_count; i++) {
        const struct hw_profile_size_bar *bar = &view->size_bars[i];
        const bool known = bar->bucket != HW_SIZE_BUCKET_UNKNOWN;
        insert(database, sizes, "uukkukukkkk", (uint64_t)view->contexts[bar->context].sum.id, (uint64_t)bar->bucket,
               known, hw_size_bucket_least(bar->bucket), known && bar->bucket < HW_SIZE_BUCKET_LAST,
               hw_size_bucket_most(bar->bucket), bar->allocations, !hw_view_sampled(view), bar->reallocations,
               bar->bytes, live, (uint64_t)bar->live_blocks, live, (uint64_t)bar->live_bytes, peak,
               (uint64_t)bar->peak_blocks, peak, (uint64_t)bar->peak_bytes);
    }
    for (size_t i = 0; i < view->life_bar_count; i++) {
        const struct hw_profile_life_bar *bar = &view->life_bars[i];
        const bool known = bar->life < HW_LIFETIME_UNKNOWN;
        insert(database, lives, "uukkuu", (uint64_t)view->contexts[bar->context].sum.id, (uint64_t)bar->life, known,
               hw_lifetime_bar_least(bar->life), known && bar->life + 1 < HW_LIFETIME_BARS,
               known ? hw_lifetime_bar_least(bar->life + 1) : 0, bar->frees, bar->bytes);
    }
    sqlite3_finalize(sizes);
    sqlite3_finalize(lives);
}

/* ---- data ---- */

static void put_globals(struct database *database)
{
    const struct hw_view *view = database->view;
    sqlite3_stmt *put = statement(database, "INSERT INTO globals VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    for (size_t i = 0; i < view->global_count; i++) {
        const struct hw_view_global *global = &view->globals[i];
        struct hw_buffer names = {0};
        for (uint32_t k = 0; k < global->symbol_count; k++)
            hw_buffer_add(&names, "%s%s", k ? ", " : "", global->symbols[k].name);
        insert(database, put, "ukttuuuuuuk", (uint64_t)i + 1, global->module != HW_NONE, (uint64_t)global->module + 1,
               known_text(hw_buffer_text(&names)), global->section, global->address, global->size,
               (uint64_t)!view->profile->access_counted, global->reads, global->writes, global->unsplit,
               view->profile->access_counted, global->shared_granules);
        database->failed |= names.failed;
        hw_buffer_free(&names);
    }
    sqlite3_finalize(put);
}

static void put_structs(struct database *database)
{
    const struct hw_profile_fields *fields = &database->view->profile->fields;
    sqlite3_stmt *put = statement(database, "INSERT INTO structs VALUES(?, ?, ?, ?, ?, ?, ?)");
    sqlite3_stmt *put_field = statement(database, "INSERT INTO fields VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    for (size_t i = 0; fields->counted && i < fields->struct_count; i++) {
        const struct hw_profile_struct *of = &fields->structs[i];
        insert(database, put, "uttkuuu", (uint64_t)i + 1, known_text(of->name), known_text(of->file), of->line != 0,
               (uint64_t)of->line, of->size, of->reads, of->writes);
        for (size_t k = 0; k < of->field_count; k++) {
            const struct hw_profile_field *field = &fields->fields[of->first_field + k];
            const bool bits = field->flags & HW_FIELD_BITS;
            insert(database, put_field, "uuttuukkuu", (uint64_t)i + 1, (uint64_t)k, known_text(field->name),
                   known_text(field->type_name), field->offset, field->size, bits, (uint64_t)field->bit_offset, bits,
                   (uint64_t)field->bit_size, field->reads, field->writes);
        }
    }
    sqlite3_finalize(put);
    sqlite3_finalize(put_field);
}

static void put_findings(struct database *database)
{
    const struct hw_analysis *analysis = database->analysis->analysis;
    struct hw_advice words = {0};
    sqlite3_stmt *put = statement(database, "INSERT INTO findings VALUES(?, ?, ?, ?, ?, ?, ?)");
    sqlite3_stmt *contexts = statement(database, "INSERT OR IGNORE INTO finding_contexts VALUES(?, ?)");
    for (size_t i = 0; i < analysis->finding_count; i++) {
        const struct hw_finding *finding = &analysis->findings[i];
        hw_finding_words(database->view, analysis, finding, HW_CLEAN_UTF8, &words);
        uint64_t structure = 0;
        if (finding->structure != SIZE_MAX && !analysis->input.fields->sampled)
            structure =
                (uint64_t)(analysis->structs[finding->structure].structure - database->view->profile->fields.structs) +
                1;
        insert(database, put, "utttttk", (uint64_t)i + 1, hw_finding_kind_names[finding->kind],
               hw_buffer_text(&words.title), hw_buffer_text(&words.why), hw_buffer_text(&words.what),
               known_text(hw_buffer_text(&words.gain)), structure != 0, structure);
        for (size_t k = 0; k < finding->context_count; k++)
            insert(database, contexts, "uu", (uint64_t)i + 1,
                   (uint64_t)database->view->contexts[finding->contexts[k]].sum.id);
    }
    database->failed |= !hw_advice_free(&words);
    sqlite3_finalize(put);
    sqlite3_finalize(contexts);
}

/* ---- the database ---- */

static bool make(struct database *database, const struct hw_export_options *options)
{
    const struct hw_view *view = database->view;
    size_t frames = 0;
    for (size_t i = 0; i < view->location_count; i++)
        frames += view->locations[i].frames.count;
    database->first_frame = calloc(view->location_count + 1, sizeof *database->first_frame);
    if (!database->first_frame || sqlite3_open(":memory:", &database->handle) != SQLITE_OK ||
        !hw_index_make(&database->functions, frames + 1))
        return false;
    execute(database, "PRAGMA foreign_keys = OFF; PRAGMA page_size = 4096; BEGIN;");
    execute(database, hw_sqlite_code);
    make_contexts_table(database);
    execute(database, hw_sqlite_tables);
    put_profile(database, options);
    put_timeline(database);
    put_notes(database);
    put_modules(database);
    put_frames(database);
    put_contexts(database);
    put_threads(database);
    put_keeps(database);
    put_contents(database);
    put_memory_times(database);
    put_ledger(database);
    put_pinned(database);
    put_words(database);
    put_distributions(database);
    put_globals(database);
    put_structs(database);
    put_findings(database);
    execute(database, hw_sqlite_indexes);
    execute(database, "COMMIT;");
    char version[64];
    snprintf(version, sizeof version, "PRAGMA user_version = %d;", HW_SQLITE_VERSION);
    execute(database, version);
    hw_index_free(&database->functions);
    return !database->failed;
}

bool hw_export_sqlite(const struct hw_view *view, const struct hw_export_options *options, struct hw_buffer *out,
                      struct hw_error *error)
{
    struct hw_view_analysis analysis;
    if (!hw_view_analyse(&analysis, view, error))
        return false;
    struct database database = {.view = view, .analysis = &analysis};
    sqlite3_int64 size = 0;
    const bool fine = make(&database, options);
    unsigned char *bytes = fine ? sqlite3_serialize(database.handle, "main", &size, 0) : NULL;
    if (bytes)
        hw_buffer_bytes(out, (char *)bytes, (size_t)size);
    if (!bytes && database.handle && sqlite3_errcode(database.handle) != SQLITE_NOMEM)
        hw_error_set(error, "cannot make the database: %s", sqlite3_errmsg(database.handle));
    else
        hw_export_done(view, bytes && !out->failed, error);
    sqlite3_free(bytes);
    sqlite3_close(database.handle);
    free(database.first_frame);
    hw_buffer_free(&database.text);
    hw_view_stack_free(&database.stack);
    hw_view_analysis_free(&analysis);
    return bytes && !out->failed;
}
