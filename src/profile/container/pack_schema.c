/* pack_schema.c - the tagged fields of packed entries, by section (pack.h).
 *
 * The tag is the first number. It belongs to its field for ever: fields that are added get new numbers, at the end.
 * Lines stand in the order in which columns are written: what others refer to comes first. Places without a line
 * (arrays, reserved words, fields of newer versions) are packed word by word. Each word of 8 bytes is either covered by
 * fields completely or not at all; a test checks all of this. */
#include "profile/container/pack.h"

#include <string.h>

#define F(tag, type, name, predictor, ...)                                                                             \
    {                                                                                                                  \
        tag, offsetof(struct type, name), sizeof(((struct type *)0)->name), HW_PACK_##predictor,                       \
        {                                                                                                              \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }

// clang-format off
static const struct hw_pack_field maps[] = {
    F(1, hw_map_entry, start, PREVIOUS),
    F(2, hw_map_entry, end, FIELD, 1),
    F(3, hw_map_entry, offset, VALUE),
    F(4, hw_map_entry, bias, FIELD, 1),
    F(5, hw_map_entry, build_id_size, VALUE),
    F(6, hw_map_entry, path, PREVIOUS),
    F(7, hw_map_entry, loaded_tick, PREVIOUS),
    F(8, hw_map_entry, unloaded_tick, VALUE),
    F(9, hw_map_entry, flags, VALUE),
    F(10, hw_map_entry, unseen_operations, VALUE),
};

static const struct hw_pack_field stacks[] = {
    F(1, hw_stack_node, pc, VALUE),
    F(2, hw_stack_node, map, PREVIOUS),
    F(3, hw_stack_node, parent, PREVIOUS),
};

static const struct hw_pack_field contexts[] = {
    F(1, hw_context_entry, leaf, PREVIOUS),
    F(2, hw_context_entry, depth, PREVIOUS),
    F(3, hw_context_entry, flags, VALUE),
    F(4, hw_context_entry, first_tick, PREVIOUS),
};

static const struct hw_pack_field mibs[] = {
    F(1, hw_mib, context, PREVIOUS),
    F(2, hw_mib, last_alloc_cpu, PREVIOUS),
    F(3, hw_mib, last_free_cpu, PREVIOUS),
    F(4, hw_mib, allocations, VALUE),
    F(7, hw_mib, size_max, VALUE),
    F(5, hw_mib, bytes, PRODUCT, 7, 4),
    F(6, hw_mib, size_min, FIELD, 7),
    F(21, hw_mib, frees, FIELD, 4),
    F(9, hw_mib, live_blocks, DIFFERENCE, 4, 21),
    F(8, hw_mib, live_bytes, PRODUCT, 7, 9),
    F(10, hw_mib, last_alloc_tick, PREVIOUS),
    F(11, hw_mib, peak_epoch, PREVIOUS),
    F(13, hw_mib, peak_blocks, SIGNED),
    F(12, hw_mib, peak_bytes, PRODUCT, 7, 13),
    F(14, hw_mib, live_ticks, PRODUCT, 10, 9),
    F(15, hw_mib, alloc_thread, PREVIOUS),
    F(16, hw_mib, free_thread, PREVIOUS),
    F(17, hw_mib, alloc_threads, PREVIOUS),
    F(18, hw_mib, free_threads, PREVIOUS),
    F(19, hw_mib, samples, FIELD, 4),
    F(20, hw_mib, temporary, VALUE),
    F(24, hw_mib, lifetime_max, VALUE),
    F(22, hw_mib, lifetime_total, PRODUCT, 24, 21),
    F(23, hw_mib, lifetime_min, FIELD, 24),
    F(25, hw_mib, last_free_tick, SUM, 10, 23),
    F(26, hw_mib, migrated_cpu, VALUE),
    F(27, hw_mib, lifetime_overlaps, VALUE),
    F(28, hw_mib, same_alloc_cpu, FIELD, 21),
    F(29, hw_mib, same_free_cpu, FIELD, 21),
    F(30, hw_mib, previous_alloc_cpu, FIELD, 3),
    F(31, hw_mib, flags, VALUE),
    F(32, hw_mib, lifetime_total_high, VALUE),
    F(33, hw_mib, reallocations, VALUE),
    F(34, hw_mib, realloc_moved, FIELD, 33),
    F(35, hw_mib, realloc_grown_bytes, VALUE),
    F(36, hw_mib, realloc_shrunk_bytes, VALUE),
    F(37, hw_mib, inherited_frees, VALUE),
    F(38, hw_mib, inherited_freed_bytes, VALUE),
#define ADDED_MIB(member, tag)
#define ADDED_TICKS(member, tag)
#define ADDED_EVENT(member, tag)
#define ADDED_CODE(member, tag)
#define ADDED_ADDED(member, tag) F(tag, hw_mib, member, VALUE),
#define HW_NUMBER(type, member, adds, of, stored, as, ...) ADDED_##stored(member, as)
#include "profile/numbers.def"
};

static const struct hw_pack_field threads[] = {
    F(1, hw_thread_entry, serial, PREVIOUS),
    F(2, hw_thread_entry, tid, PREVIOUS),
    F(3, hw_thread_entry, allocations, VALUE),
    F(4, hw_thread_entry, frees, VALUE),
    F(5, hw_thread_entry, reallocations, VALUE),
    F(6, hw_thread_entry, temporary, VALUE),
    F(7, hw_thread_entry, bytes, VALUE),
    F(8, hw_thread_entry, live_bytes, SIGNED),
    F(9, hw_thread_entry, live_blocks, DIFFERENCE, 3, 4),
    F(10, hw_thread_entry, foreign_frees, VALUE),
    F(11, hw_thread_entry, foreign_reallocs, VALUE),
    F(12, hw_thread_entry, failed, VALUE),
    F(13, hw_thread_entry, nested, VALUE),
    F(14, hw_thread_entry, walks, VALUE),
    F(15, hw_thread_entry, verified, VALUE),
    F(16, hw_thread_entry, incomplete_walks, VALUE),
    F(17, hw_thread_entry, lost, VALUE),
};

static const struct hw_pack_field timeline[] = {
    F(1, hw_timeline_point, tick, PREVIOUS),
    F(2, hw_timeline_point, live_bytes, PREVIOUS),
    F(3, hw_timeline_point, rss_bytes, PREVIOUS),
    F(4, hw_timeline_point, allocations, PREVIOUS),
    F(5, hw_timeline_point, frees, PREVIOUS),
};

static const struct hw_pack_field free_stacks[] = {
    F(1, hw_free_stack, alloc_context, PREVIOUS),
    F(2, hw_free_stack, free_context, FIELD, 1),
    F(3, hw_free_stack, count, VALUE),
    F(4, hw_free_stack, bytes, VALUE),
};

static const struct hw_pack_field memory[] = {
    F(1, hw_memory_breakdown, tick, PREVIOUS),
    F(2, hw_memory_breakdown, moment, VALUE),
    F(3, hw_memory_breakdown, reserved0, VALUE),
    F(4, hw_memory_breakdown, rss, VALUE),
    F(5, hw_memory_breakdown, heap, VALUE),
    F(6, hw_memory_breakdown, file, VALUE),
    F(7, hw_memory_breakdown, stack, VALUE),
    F(8, hw_memory_breakdown, runtime, VALUE),
    F(9, hw_memory_breakdown, other, VALUE),
    F(10, hw_memory_breakdown, live_bytes, SIGNED),
    F(11, hw_memory_breakdown, swap, VALUE),
};

static const struct hw_pack_field notes[] = {
    F(1, hw_note, code, VALUE),
    F(2, hw_note, text, PREVIOUS),
    F(3, hw_note, count, VALUE),
    F(4, hw_note, tick, PREVIOUS),
};

static const struct hw_pack_field inherited[] = {
    F(1, hw_inherited, context, PREVIOUS),
    F(2, hw_inherited, reserved0, VALUE),
    F(3, hw_inherited, blocks, SIGNED),
    F(4, hw_inherited, bytes, SIGNED),
    F(5, hw_inherited, count_variance, VALUE),
    F(6, hw_inherited, bytes_variance, VALUE),
};

static const struct hw_pack_field access_info[] = {
    F(1, hw_access_info, flags, VALUE),
    F(2, hw_access_info, granule, VALUE),
    F(3, hw_access_info, planes, VALUE),
    F(4, hw_access_info, planes_most, VALUE),
    F(5, hw_access_info, harvest_tick, VALUE),
    F(6, hw_access_info, threads_sharing, VALUE),
    F(7, hw_access_info, modules, VALUE),
};

static const struct hw_pack_field access[] = {
    F(1, hw_access, context, PREVIOUS),
    F(2, hw_access, flags, VALUE),
    F(3, hw_access, type, PREVIOUS),
    F(4, hw_access, blocks, VALUE),
    F(5, hw_access, reads, VALUE),
    F(6, hw_access, writes, VALUE),
    F(7, hw_access, unsplit, VALUE),
    F(9, hw_access, accesses_max, VALUE),
    F(8, hw_access, accesses_min, FIELD, 9),
    F(10, hw_access, granules, VALUE),
    F(11, hw_access, granules_touched, FIELD, 10),
    F(14, hw_access, utilization_max, VALUE),
    F(12, hw_access, utilization_total, PRODUCT, 14, 4),
    F(13, hw_access, utilization_min, FIELD, 14),
    F(17, hw_access, density_max, VALUE),
    F(15, hw_access, density_total, PRODUCT, 17, 4),
    F(16, hw_access, density_min, FIELD, 17),
    F(20, hw_access, lifetime_density_max, VALUE),
    F(18, hw_access, lifetime_density_total, FIELD, 20),
    F(19, hw_access, lifetime_density_min, FIELD, 20),
    F(21, hw_access, never_accessed, VALUE),
    F(22, hw_access, written_never_read, VALUE),
    F(23, hw_access, shared_granules, VALUE),
    F(24, hw_access, shared_written, VALUE),
    F(25, hw_access, shared_writers, VALUE),
    F(26, hw_access, lines_false_shared, VALUE),
    F(27, hw_access, lines_true_shared, VALUE),
    F(28, hw_access, saturated_cells, VALUE),
    F(29, hw_access, not_owned, VALUE),
    F(30, hw_access, lines_handed_over, VALUE),
    F(31, hw_access, line_passes, VALUE),
    F(32, hw_access, lines_hot, VALUE),
};

static const struct hw_pack_field globals[] = {
    F(1, hw_global_granule, map, PREVIOUS),
    F(2, hw_global_granule, flags, VALUE),
    F(3, hw_global_granule, offset, PREVIOUS),
    F(4, hw_global_granule, reads, VALUE),
    F(5, hw_global_granule, writes, VALUE),
    F(6, hw_global_granule, unsplit, VALUE),
};

static const struct hw_pack_field histogram[] = {
    F(1, hw_histogram, context, PREVIOUS),
    F(2, hw_histogram, first_word, PREVIOUS),
    F(3, hw_histogram, saturated, VALUE),
};

static const struct hw_pack_field words[] = {
    F(1, hw_words, context, PREVIOUS),
    F(2, hw_words, free_context, VALUE),
    F(3, hw_words, first_word, PREVIOUS),
    F(4, hw_words, reserved0, VALUE),
    F(5, hw_words, saturated, VALUE),
};

static const struct hw_pack_field runs[] = {
    F(1, hw_run, executable, VALUE),
    F(2, hw_run, allocator, VALUE),
    F(3, hw_run, mode, VALUE),
    F(4, hw_run, build_id_size, VALUE),
    F(5, hw_run, sample_bytes, VALUE),
    F(6, hw_run, runs, VALUE),
    F(7, hw_run, duration_total_ns, VALUE),
    F(8, hw_run, duration_max_ns, VALUE),
    F(9, hw_run, first_start_realtime_ns, VALUE),
    F(10, hw_run, last_start_realtime_ns, VALUE),
    F(11, hw_run, peak_bytes_max, VALUE),
    F(12, hw_run, peak_rss_max_bytes, VALUE),
    F(13, hw_run, exited_zero, VALUE),
    F(14, hw_run, exited_nonzero, VALUE),
    F(15, hw_run, signalled, VALUE),
};

static const struct hw_pack_field locations[] = {
    F(1, hw_location, address, PREVIOUS),
    F(2, hw_location, map, PREVIOUS),
    F(3, hw_location, first_frame, PREVIOUS),
    F(4, hw_location, frame_count, VALUE),
    F(5, hw_location, reserved0, VALUE),
};

static const struct hw_pack_field frames[] = {
    F(1, hw_symbol_frame, function, PREVIOUS),
    F(2, hw_symbol_frame, linkage_name, FIELD, 1),
    F(3, hw_symbol_frame, file, PREVIOUS),
    F(4, hw_symbol_frame, line, PREVIOUS),
    F(5, hw_symbol_frame, column, VALUE),
    F(6, hw_symbol_frame, discriminator, VALUE),
    F(7, hw_symbol_frame, start_line, FIELD, 4),
    F(8, hw_symbol_frame, relative_line, DIFFERENCE, 4, 7),
    F(9, hw_symbol_frame, flags, VALUE),
    F(10, hw_symbol_frame, reserved0, VALUE),
};

static const struct hw_pack_field files[] = {
    F(1, hw_file_node, name, PREVIOUS),
    F(2, hw_file_node, parent, PREVIOUS),
};

static const struct hw_pack_field postings[] = {
    F(1, hw_posting, first_context, PREVIOUS),
    F(2, hw_posting, count, VALUE),
};

static const struct hw_pack_field types[] = {
    F(1, hw_type_name, id, PREVIOUS),
    F(2, hw_type_name, name, PREVIOUS),
    F(3, hw_type_name, reserved0, VALUE),
};

static const struct hw_pack_field data_symbols[] = {
    F(1, hw_data_name, address, PREVIOUS),
    F(2, hw_data_name, size, VALUE),
    F(3, hw_data_name, map, PREVIOUS),
    F(4, hw_data_name, flags, VALUE),
    F(5, hw_data_name, name, PREVIOUS),
    F(6, hw_data_name, reserved0, VALUE),
};

static const struct hw_pack_field llvm_frames[] = {
    F(1, hw_llvm_frame_entry, function, VALUE),
    F(2, hw_llvm_frame_entry, line_offset, PREVIOUS),
    F(3, hw_llvm_frame_entry, column, VALUE),
    F(4, hw_llvm_frame_entry, name, PREVIOUS),
    F(5, hw_llvm_frame_entry, inlined, VALUE),
};

static const struct hw_pack_field modules[] = {
    F(1, hw_module_mark, map, VALUE),
    F(2, hw_module_mark, flags, VALUE),
    F(3, hw_module_mark, path, VALUE),
    F(4, hw_module_mark, problem, VALUE),
};

static const struct hw_pack_field structs[] = {
    F(1, hw_struct, identity, VALUE),
    F(2, hw_struct, size, VALUE),
    F(3, hw_struct, name, PREVIOUS),
    F(4, hw_struct, file, PREVIOUS),
    F(5, hw_struct, line, PREVIOUS),
    F(6, hw_struct, flags, VALUE),
    F(7, hw_struct, alignment, VALUE),
    F(8, hw_struct, first_field, PREVIOUS),
    F(9, hw_struct, field_count, VALUE),
    F(10, hw_struct, reserved0, VALUE),
};

static const struct hw_pack_field struct_fields[] = {
    F(1, hw_field, name, PREVIOUS),
    F(2, hw_field, type_name, PREVIOUS),
    F(3, hw_field, declaration, PREVIOUS),
    F(4, hw_field, flags, VALUE),
    F(5, hw_field, offset, PREVIOUS),
    F(6, hw_field, size, VALUE),
    F(7, hw_field, bit_offset, VALUE),
    F(8, hw_field, bit_size, VALUE),
    F(9, hw_field, alignment, VALUE),
    F(10, hw_field, line, PREVIOUS),
    F(11, hw_field, member_offset, FIELD, 5),
    F(12, hw_field, member_size, FIELD, 6),
    F(13, hw_field, member_alignment, FIELD, 9),
    F(14, hw_field, part_offset, VALUE),
    F(15, hw_field, reads, VALUE),
    F(16, hw_field, writes, VALUE),
    F(17, hw_field, part, VALUE),
};

static const struct hw_pack_field field_groups[] = {
    F(1, hw_field_group, structure, PREVIOUS),
    F(2, hw_field_group, function, PREVIOUS),
    F(3, hw_field_group, line, PREVIOUS),
    F(4, hw_field_group, file, PREVIOUS),
    F(5, hw_field_group, first_member, PREVIOUS),
    F(6, hw_field_group, member_count, VALUE),
    F(7, hw_field_group, executions, VALUE),
};

static const struct hw_pack_field group_members[] = {
    F(1, hw_group_member, field, PREVIOUS),
    F(2, hw_group_member, reads, VALUE),
    F(3, hw_group_member, writes, VALUE),
    F(4, hw_group_member, flags, VALUE),
};

static const struct hw_pack_field field_windows[] = {
    F(1, hw_field_window, structure, PREVIOUS),
    F(2, hw_field_window, field_a, PREVIOUS),
    F(3, hw_field_window, field_b, PREVIOUS),
    F(4, hw_field_window, reserved0, VALUE),
    F(5, hw_field_window, weight, VALUE),
};

static const struct hw_pack_field fields_info[] = {
    F(1, hw_fields_info, flags, VALUE),
    F(2, hw_fields_info, modules, VALUE),
    F(3, hw_fields_info, harvest_tick, VALUE),
    F(4, hw_fields_info, before_registration, VALUE),
    F(5, hw_fields_info, windows, VALUE),
    F(6, hw_fields_info, period_ns, VALUE),
    F(7, hw_fields_info, window_ns, VALUE),
    F(8, hw_fields_info, groups, VALUE),
    F(9, hw_fields_info, groups_lost, VALUE),
};

static const struct hw_pack_field context_types[] = {
    F(1, hw_context_type, context, PREVIOUS),
    F(2, hw_context_type, flags, VALUE),
    F(3, hw_context_type, type, VALUE),
    F(4, hw_context_type, starts[0], VALUE),
    F(5, hw_context_type, starts[1], VALUE),
    F(6, hw_context_type, starts[2], VALUE),
    F(7, hw_context_type, starts[3], VALUE),
    F(8, hw_context_type, starts[4], VALUE),
    F(9, hw_context_type, starts[5], VALUE),
    F(10, hw_context_type, starts[6], VALUE),
    F(11, hw_context_type, starts[7], VALUE),
};
static const struct hw_pack_field sample_info[] = {
    F(1, hw_sample_info, source, VALUE),
    F(2, hw_sample_info, ended, VALUE),
    F(3, hw_sample_info, error, VALUE),
    F(4, hw_sample_info, signal, VALUE),
    F(5, hw_sample_info, frequency, VALUE),
    F(6, hw_sample_info, burst_length, VALUE),
    F(7, hw_sample_info, period, VALUE),
    F(8, hw_sample_info, threads, VALUE),
    F(9, hw_sample_info, bursts, VALUE),
    F(10, hw_sample_info, instructions, VALUE),
    F(11, hw_sample_info, steps, VALUE),
    F(12, hw_sample_info, reads, VALUE),
    F(13, hw_sample_info, writes, VALUE),
    F(14, hw_sample_info, heap_reads, VALUE),
    F(15, hw_sample_info, heap_writes, VALUE),
    F(16, hw_sample_info, global_reads, VALUE),
    F(17, hw_sample_info, global_writes, VALUE),
    F(18, hw_sample_info, stack_reads, VALUE),
    F(19, hw_sample_info, stack_writes, VALUE),
    F(20, hw_sample_info, thread_reads, VALUE),
    F(21, hw_sample_info, thread_writes, VALUE),
    F(22, hw_sample_info, in_runtime, VALUE),
    F(23, hw_sample_info, in_kernel, VALUE),
    F(24, hw_sample_info, blocked, VALUE),
    F(25, hw_sample_info, cut, VALUE),
    F(26, hw_sample_info, unknown, VALUE),
    F(27, hw_sample_info, lost, VALUE),
    F(28, hw_sample_info, throttled, VALUE),
    F(29, hw_sample_info, runs, VALUE),
    F(30, hw_sample_info, runs_ended, VALUE),
};

static const struct hw_pack_field sample_contexts[] = {
    F(1, hw_sample_context, context, PREVIOUS),
    F(2, hw_sample_context, flags, VALUE),
    F(3, hw_sample_context, reads, VALUE),
    F(4, hw_sample_context, writes, VALUE),
    F(5, hw_sample_context, lines, VALUE),
    F(6, hw_sample_context, lines_shared, VALUE),
    F(7, hw_sample_context, lines_true_shared, VALUE),
    F(8, hw_sample_context, lines_false_shared, VALUE),
    F(9, hw_sample_context, lines_writers, VALUE),
};

static const struct hw_pack_field allocator_info[] = {
    F(1, hw_allocator_info, flags, VALUE),
    F(2, hw_allocator_info, phase, VALUE),
    F(3, hw_allocator_info, shift_most, VALUE),
    F(4, hw_allocator_info, threads_alive, VALUE),
};

/* The others are words that no field covers. */
static const struct hw_pack_field operation_counts[] = {
    F(1, hw_operation_counts, count[0][0], VALUE),
};

static const struct hw_pack_field operation_calls[] = {
    F(1, hw_operation_call, call, PREVIOUS),
    F(2, hw_operation_call, phase, PREVIOUS),
    F(3, hw_operation_call, kind, PREVIOUS),
    F(4, hw_operation_call, count, VALUE),
    F(5, hw_operation_call, errors, VALUE),
    F(6, hw_operation_call, ticks, VALUE),
    F(7, hw_operation_call, bytes, VALUE),
};

static const struct hw_pack_field operation_locks[] = {
    F(1, hw_operation_lock, address, PREVIOUS),
    F(2, hw_operation_lock, offset, FIELD, 1),
    F(3, hw_operation_lock, map, PREVIOUS),
    F(4, hw_operation_lock, kind, PREVIOUS),
    F(5, hw_operation_lock, waiting_most, VALUE),
    F(6, hw_operation_lock, wait_ticks_most, VALUE),
    F(7, hw_operation_lock, critical_ticks_most, VALUE),
};

static const struct hw_pack_field operation_events[] = {
    F(1, hw_operation_events, bucket, PREVIOUS),
    F(2, hw_operation_events, phase, VALUE),
    F(3, hw_operation_events, kind, VALUE),
    F(4, hw_operation_events, present, PREVIOUS),
    F(5, hw_operation_events, samples, VALUE),
};

static const struct hw_pack_field operation_times[] = {
    F(1, hw_operation_times, phase, PREVIOUS),
    F(2, hw_operation_times, kind, PREVIOUS),
    F(3, hw_operation_times, bucket, PREVIOUS),
    F(4, hw_operation_times, reserved0, VALUE),
};

static const struct hw_pack_field operation_sites[] = {
    F(1, hw_operation_site, context, PREVIOUS),
    F(2, hw_operation_site, kind, VALUE),
};

static const struct hw_pack_field operation_lives[] = {
    F(1, hw_operation_lives, bucket, PREVIOUS),
    F(2, hw_operation_lives, reserved0, VALUE),
};

static const struct hw_pack_field slowest[] = {
    F(1, hw_slow_operation, context, PREVIOUS), F(2, hw_slow_operation, kind, VALUE),
    F(3, hw_slow_operation, phase, VALUE),      F(4, hw_slow_operation, thread, PREVIOUS),
    F(5, hw_slow_operation, shift, VALUE),      F(6, hw_slow_operation, reserved0, VALUE),
};

static const struct hw_pack_field stages[] = {
    F(1, hw_operation_stage, stage, PREVIOUS),  F(2, hw_operation_stage, phase, VALUE),
    F(3, hw_operation_stage, thread, PREVIOUS), F(4, hw_operation_stage, flags, VALUE),
    F(5, hw_operation_stage, begin, PREVIOUS),  F(6, hw_operation_stage, end, FIELD, 5),
};

/* Of these, too, the others are words. */
static const struct hw_pack_field places[] = {
    F(1, hw_places_info, flags, VALUE),
    F(2, hw_places_info, reserved0, VALUE),
};

static const struct hw_pack_field place_classes[] = {
    F(1, hw_usable_class, usable_least, PREVIOUS),
    F(2, hw_usable_class, usable_most, FIELD, 1),
};

static const struct hw_pack_field places_time[] = {
    F(1, hw_places_point, tick, PREVIOUS),           F(2, hw_places_point, requested_bytes, PREVIOUS),
    F(3, hw_places_point, internal_bytes, PREVIOUS), F(4, hw_places_point, blowup_bytes, PREVIOUS),
    F(5, hw_places_point, free_bytes, PREVIOUS),     F(6, hw_places_point, resident_bytes, PREVIOUS),
    F(7, hw_places_point, handed_out, PREVIOUS),     F(8, hw_places_point, handed_out_new, PREVIOUS),
    F(9, hw_places_point, mapping_ticks, PREVIOUS),  F(10, hw_places_point, heap_end_ticks, PREVIOUS),
    F(11, hw_places_point, advice_ticks, PREVIOUS),  F(12, hw_places_point, waiting_ticks, PREVIOUS),
    F(13, hw_places_point, shared_lines, PREVIOUS),  F(14, hw_places_point, external_bytes, PREVIOUS),
};

static const struct hw_pack_field places_moments[] = {
    F(1, hw_places_moment, tick, PREVIOUS),
    F(2, hw_places_moment, moment, VALUE),
    F(3, hw_places_moment, reserved0, VALUE),
};

static const struct hw_pack_field pinned[] = {
    F(1, hw_pinned, context, PREVIOUS), F(2, hw_pinned, moment, PREVIOUS), F(3, hw_pinned, blocks, VALUE),
    F(4, hw_pinned, bytes, VALUE),      F(5, hw_pinned, samples, VALUE),
};

static const struct hw_pack_field line_pairs[] = {
    F(1, hw_line_pair, context, PREVIOUS),
    F(2, hw_line_pair, other, PREVIOUS),
    F(3, hw_line_pair, active, VALUE),
    F(4, hw_line_pair, passive, VALUE),
};

static const struct hw_pack_field sample_counts[] = {
    F(1, hw_sample_count, kind, PREVIOUS),
    F(2, hw_sample_count, context, PREVIOUS),
    F(3, hw_sample_count, map, PREVIOUS),
    F(4, hw_sample_count, bytes, VALUE),
    F(5, hw_sample_count, offset, PREVIOUS),
    F(6, hw_sample_count, reads, VALUE),
    F(7, hw_sample_count, writes, VALUE),
};

/* Their texts are packed word by word. */
static const struct hw_pack_field allocator_facts[] = {
    F(1, hw_allocator_facts, flags, VALUE),
    F(2, hw_allocator_facts, style, VALUE),
    F(3, hw_allocator_facts, reuse, VALUE),
    F(4, hw_allocator_facts, thread_cache, VALUE),
    F(5, hw_allocator_facts, alignment, VALUE),
    F(6, hw_allocator_facts, alignment_small, VALUE),
    F(7, hw_allocator_facts, medium, VALUE),
    F(8, hw_allocator_facts, large, VALUE),
    F(9, hw_allocator_facts, large_rises_to, VALUE),
    F(10, hw_allocator_facts, least, VALUE),
    F(11, hw_allocator_facts, step, VALUE),
    F(12, hw_allocator_facts, header, VALUE),
    F(13, hw_allocator_facts, classes_step, VALUE),
};

static const struct hw_pack_field size_classes[] = {
    F(1, hw_size_class, size, PREVIOUS),
};

static const struct hw_pack_field predictions[] = {
    F(1, hw_allocator_prediction, replays, VALUE),
    F(2, hw_allocator_prediction, flags, VALUE),
    F(3, hw_allocator_prediction, speedup, VALUE),
    F(4, hw_allocator_prediction, low, FIELD, 3),
    F(5, hw_allocator_prediction, high, FIELD, 3),
};

static const struct hw_pack_field roles[] = {
    F(1, hw_thread_role, map, PREVIOUS),
    F(2, hw_thread_role, context, VALUE),
    F(3, hw_thread_role, routine, VALUE),
    F(4, hw_thread_role, threads, VALUE),
    F(5, hw_thread_role, reserved, VALUE),
};

static const struct hw_pack_field sides[] = {
    F(1, hw_side, context, PREVIOUS),
    F(2, hw_side, role, PREVIOUS),
    F(3, hw_side, kind, PREVIOUS),
    F(4, hw_side, sharing, PREVIOUS),
    F(5, hw_side, map, PREVIOUS),
    F(6, hw_side, code, PREVIOUS),
    F(7, hw_side, offset, PREVIOUS),
    F(8, hw_side, bytes, PREVIOUS),
    F(9, hw_side, reads, VALUE),
    F(10, hw_side, writes, VALUE),
    F(11, hw_side, lines, VALUE),
    F(12, hw_side, reserved0, VALUE),
};
// clang-format on

static const struct schema {
    const struct hw_pack_field *fields;
    size_t count;
} schemas[] = {
#define PACK(fields)                                                                          fields, sizeof(fields) / sizeof *(fields)
#define BY_WORD                                                                               maps, 0 /* no field has a tag: all that is written are words */
#define PLAIN                                                                                 NULL, 0
#define BYTES                                                                                 NULL, 0
#define HW_SECTION(number, name, entry, size, least, turn, flags, look_up, few, packing, ...) [number] = {packing},
#include "profile/sections.def"
};

const struct hw_pack_field *hw_pack_fields(uint32_t type, size_t *count)
{
    if (type >= sizeof schemas / sizeof *schemas || !schemas[type].fields)
        return NULL;
    *count = schemas[type].count;
    return schemas[type].fields;
}

bool hw_pack_field(uint32_t type, uint16_t tag, struct hw_pack_field *field)
{
    size_t count = 0;
    const struct hw_pack_field *fields = hw_pack_fields(type, &count);
    if (!fields)
        return false;
    if (tag >= HW_PACK_WORD) {
        const uint32_t offset = (tag - HW_PACK_WORD) * 8u;
        *field = (struct hw_pack_field){.tag = tag, .offset = (uint16_t)offset, .width = 8};
        return offset <= UINT16_MAX;
    }
    for (size_t i = 0; i < count; i++) {
        if (fields[i].tag != tag)
            continue;
        *field = fields[i];
        return true;
    }
    return false;
}

/* ---- values ---- */

void hw_pack_gather(const struct hw_pack_field *field, const unsigned char *entries, size_t entry_size, size_t count,
                    uint64_t *numbers)
{
    const unsigned char *at = entries + field->offset;
    uint16_t half;
    uint32_t word;
    if (field->width == 8) {
        for (size_t i = 0; i < count; i++, at += entry_size)
            memcpy(&numbers[i], at, sizeof *numbers);
    } else if (field->width == 4) {
        for (size_t i = 0; i < count; i++, at += entry_size) {
            memcpy(&word, at, sizeof word);
            numbers[i] = word;
        }
    } else {
        for (size_t i = 0; i < count; i++, at += entry_size) {
            memcpy(&half, at, sizeof half);
            numbers[i] = half;
        }
    }
}

bool hw_pack_predict(uint32_t type, unsigned predictor, const uint16_t reference[2], const unsigned char *entries,
                     size_t entry_size, size_t count, uint64_t *numbers)
{
    struct hw_pack_field fields[2];
    uint64_t others[512]; /* taken in pieces: no memory of its own is needed */
    if (predictor < HW_PACK_FIELD) {
        memset(numbers, 0, count * sizeof *numbers);
        return true;
    }
    for (size_t i = 0; i < (predictor == HW_PACK_FIELD ? 1 : 2); i++)
        if (!hw_pack_field(type, reference[i], &fields[i]) || fields[i].offset + fields[i].width > entry_size)
            return false;
    hw_pack_gather(&fields[0], entries, entry_size, count, numbers);
    for (size_t first = 0; predictor != HW_PACK_FIELD && first < count; first += sizeof others / sizeof *others) {
        size_t some = count - first;
        if (some > sizeof others / sizeof *others)
            some = sizeof others / sizeof *others;
        hw_pack_gather(&fields[1], entries + first * entry_size, entry_size, some, others);
        for (size_t i = 0; i < some; i++)
            numbers[first + i] = predictor == HW_PACK_SUM          ? numbers[first + i] + others[i]
                                 : predictor == HW_PACK_DIFFERENCE ? numbers[first + i] - others[i]
                                                                   : numbers[first + i] * others[i];
    }
    return true;
}
