/* json_memory.c - what RSS is made of, at some moments and over time, and who mapped it. */
#include "report/json/json.h"
#include "report/view/memory_parts.h"

/* What is requested is an estimate in sampled runs, and so is what is left of the allocator's memory. */
static void set_live(struct json_writer *writer, json_t *object, const struct hw_memory_breakdown *memory)
{
    json_t *counts = object, *parts = json_object();
    if (writer->sampled)
        set(writer, object, "sampled", counts = json_object());
    set_signed(writer, counts, "live_bytes", memory->live_bytes);
    for (size_t i = 0; i < hw_memory_part_count; i++)
        set_signed(writer, parts, hw_memory_parts[i].key, hw_memory_parts[i].value(memory));
    set(writer, counts, "parts", parts);
}

static void set_parts(struct json_writer *writer, json_t *object, const struct hw_memory_breakdown *memory)
{
    const bool known = memory->known & HW_MEMORY_LEDGER, group = memory->known & HW_MEMORY_CGROUP;
    set_count(writer, object, "time_ns", hw_profile_ticks_to_ns(writer->view->profile, memory->tick));
    set_count(writer, object, "rss_bytes", memory->rss);
    set_count(writer, object, "heap_bytes", memory->heap);
    set_count(writer, object, "file_bytes", memory->file);
    set_count(writer, object, "stack_bytes", memory->stack);
    set_count(writer, object, "runtime_bytes", memory->runtime);
    set_count(writer, object, "other_bytes", memory->other);
    set_count(writer, object, "swap_bytes", memory->swap);
    set_known(writer, object, "allocator_bytes", known, memory->allocator);
    set_known(writer, object, "mapped_bytes", known, memory->mapped);
    set_known(writer, object, "unexplained_bytes", known, memory->unexplained);
    set_known(writer, object, "module_bytes", known, memory->modules);
    set_known(writer, object, "shared_memory_bytes", known, memory->shared);
    set_known(writer, object, "shared_file_bytes", known, memory->shared_files);
    set_known(writer, object, "ended_stack_bytes", known, memory->ended_stacks);
    set_known(writer, object, "page_table_bytes", known, memory->page_tables);
    set_known(writer, object, "pss_bytes", known, memory->pss);
    set_known(writer, object, "huge_page_bytes", known, memory->huge);
    set_known(writer, object, "cgroup_bytes", group, memory->cgroup);
    set_known(writer, object, "cgroup_peak_bytes", memory->known & HW_MEMORY_CGROUP_PEAK, memory->cgroup_peak);
    set_known(writer, object, "cgroup_limit_bytes", group && memory->cgroup_limit, memory->cgroup_limit);
}

static json_t *at_moments(struct json_writer *writer)
{
    json_t *array = json_array();
    for (uint32_t i = 0; hw_view_moment_key(i); i++) {
        const struct hw_memory_breakdown *memory = hw_view_memory(writer->view, (enum hw_memory_moment)i);
        if (!memory)
            continue;
        json_t *object = json_object();
        set_text(writer, object, "moment", hw_view_moment_key(i));
        set_parts(writer, object, memory);
        set_live(writer, object, memory);
        append(writer, array, object);
    }
    return array;
}

static json_t *over_time(struct json_writer *writer)
{
    const struct hw_profile *profile = writer->view->profile;
    json_t *array = json_array();
    for (size_t i = 0; i < profile->memory_count; i++) {
        if (profile->memory[i].moment != HW_MOMENT_TIME)
            continue;
        json_t *object = json_object();
        set_parts(writer, object, &profile->memory[i]);
        set_live(writer, object, &profile->memory[i]);
        append(writer, array, object);
    }
    return array;
}

static void print_ledger(struct json_writer *writer)
{
    const struct hw_profile *profile = writer->view->profile;
    struct hw_view_stack stack = {0};
    struct hw_buffer title = {0};
    bool first = true;
    print_key(writer, "ledger");
    fputc('[', writer->stream);
    for (size_t i = 0; i < profile->ledger_count && !writer->failed; i++) {
        const struct hw_ledger_row *row = &profile->ledger[i];
        if (!hw_view_moment_key(row->moment))
            continue;
        json_t *object = json_object();
        set_text(writer, object, "moment", hw_view_moment_key(row->moment));
        set_text(writer, object, "kind", hw_ledger_kinds[row->kind].key);
        set_text(writer, object, "name", row->name ? hw_profile_string(profile, row->name) : NULL);
        hw_ledger_title(profile, row, &title);
        set_text(writer, object, "title", hw_buffer_text(&title));
        set_known(writer, object, "tid", row->tid != 0, row->tid);
        set_count(writer, object, "mappings", row->mappings);
        set_count(writer, object, "bytes", row->bytes);
        set_count(writer, object, "resident_bytes", row->resident);
        set_count(writer, object, "private_bytes", row->own);
        set_count(writer, object, "pss_bytes", row->pss);
        set_count(writer, object, "swap_bytes", row->swap);
        set_count(writer, object, "huge_page_bytes", row->huge);
        set_count(writer, object, "headline", hw_json_headline(writer, writer->view->ledger_leaves[i], &stack));
        hw_json_with_stack(writer, object, writer->view->ledger_leaves[i], first);
        first = false;
    }
    fputc(']', writer->stream);
    writer->failed |= title.failed;
    hw_buffer_free(&title);
    hw_view_stack_free(&stack);
}

static void print_mappings(struct json_writer *writer)
{
    const struct hw_profile *profile = writer->view->profile;
    struct hw_view_stack stack = {0};
    print_key(writer, "mappings");
    fputc('[', writer->stream);
    for (size_t i = 0; i < profile->mapping_count && !writer->failed; i++) {
        const struct hw_mapping *mapping = &profile->mappings[i];
        json_t *object = json_object();
        set_count(writer, object, "calls", mapping->calls);
        set_count(writer, object, "bytes", mapping->bytes);
        set_count(writer, object, "mapped_bytes", mapping->mapped_bytes);
        set_count(writer, object, "peak_bytes", mapping->peak_bytes);
        set_count(writer, object, "headline", hw_json_headline(writer, writer->view->mapping_leaves[i], &stack));
        hw_json_with_stack(writer, object, writer->view->mapping_leaves[i], !i);
    }
    fputc(']', writer->stream);
    hw_view_stack_free(&stack);
}

/* The parts of RSS, in their order: keys of "parts". */
static json_t *part_titles(struct json_writer *writer)
{
    json_t *array = json_array();
    for (size_t i = 0; i < hw_memory_part_count; i++) {
        json_t *object = json_object();
        set_text(writer, object, "part", hw_memory_parts[i].key);
        set_text(writer, object, "title", hw_memory_parts[i].label);
        append(writer, array, object);
    }
    return array;
}

void hw_json_memory(struct json_writer *writer)
{
    print_key(writer, "memory_parts");
    print_value(writer, part_titles(writer));
    print_key(writer, "memory");
    print_value(writer, at_moments(writer));
    print_key(writer, "ledger_over_time");
    print_value(writer, over_time(writer));
    print_ledger(writer);
    print_mappings(writer);
}
