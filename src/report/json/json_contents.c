/* json_contents.c - "contents" of the JSON report: what live blocks hold. */
#include "report/json/json.h"

#include <stdlib.h>

#include "report/view/contents.h"

static json_t *examples_of(struct json_writer *writer, uint32_t context)
{
    size_t count;
    const struct hw_content_example *example = hw_contents_examples(writer->view, context, &count);
    struct hw_buffer bytes = {0};
    json_t *array = json_array();
    for (const struct hw_content_example *end = example + count; example < end; example++) {
        json_t *object = json_object();
        hw_buffer_clear(&bytes);
        const bool text = hw_content_text(example, &bytes);
        set_count(writer, object, "bytes", example->size);
        set_count(writer, object, "copies", example->copies);
        set_known(writer, object, "copies_here", example->here != 0, example->here);
        set_text(writer, object, "text", example->shown && text ? hw_buffer_text(&bytes) : NULL);
        set_text(writer, object, "hex", example->shown && !text ? hw_buffer_text(&bytes) : NULL);
        append(writer, array, object);
    }
    writer->failed |= bytes.failed;
    hw_buffer_free(&bytes);
    return array;
}

static json_t *row_of(struct json_writer *writer, const struct hw_contents *sum)
{
    json_t *object = json_object();
    set_count(writer, object, "context", sum->context);
    set_count(writer, object, "blocks", sum->blocks);
    set_count(writer, object, "bytes", sum->bytes);
    set_count(writer, object, "identical_blocks", sum->identical_blocks);
    set_count(writer, object, "identical_bytes", sum->identical_bytes);
    set_count(writer, object, "identical_bytes_error", sum->identical_error);
    set_count(writer, object, "repeated_contents", sum->repeated);
    set_count(writer, object, "zero_blocks", sum->zero_blocks);
    set_count(writer, object, "zero_bytes", sum->zero_bytes);
    set_count(writer, object, "never_written_bytes", sum->never_written_bytes);
    set_count(writer, object, "absent_bytes", sum->absent_bytes);
    set_count(writer, object, "tail_blocks", sum->tail_blocks);
    set_count(writer, object, "unused_tail_bytes", sum->unused_tail_bytes);
    set_count(writer, object, "avoidable_bytes", sum->avoidable_bytes);
    set_count(writer, object, "avoidable_copies", sum->avoidable_copies);
    set_count(writer, object, "avoidable_zeros", sum->avoidable_zeros);
    set_count(writer, object, "avoidable_ends", sum->avoidable_ends);
    set_count(writer, object, "unread_bytes", sum->unread_bytes);
    set(writer, object, "examples", examples_of(writer, sum->context));
    return object;
}

json_t *hw_json_contents(struct json_writer *writer)
{
    size_t count;
    if (!writer->view->profile->content_search)
        return json_null();
    const struct hw_contents **sorted = hw_contents_sorted(writer->view, &count);
    json_t *array = json_array();
    writer->failed |= !sorted;
    for (size_t i = 0; sorted && i < count; i++)
        append(writer, array, row_of(writer, sorted[i]));
    free(sorted);
    return array;
}

json_t *hw_json_content_search(struct json_writer *writer)
{
    const struct hw_profile *profile = writer->view->profile;
    const struct hw_content_info *info = profile->content_search;
    if (!info)
        return json_null();
    json_t *object = json_object();
    set_text(writer, object, "moment",
             hw_contents_before_peak(profile) ? "before-peak" : hw_view_moment_key(info->moment));
    set_count(writer, object, "time_ns", hw_profile_ticks_to_ns(profile, info->tick));
    set_count(writer, object, "duration_ns", info->duration_ns);
    set_count(writer, object, "blocks", info->blocks);
    set_count(writer, object, "bytes", info->bytes);
    set_count(writer, object, "peak_bytes", profile->process.peak_bytes);
    set_count(writer, object, "memory_bytes", info->memory_bytes);
    set(writer, object, "filled", json_boolean(info->flags & HW_CONTENT_FILLED));
    set(writer, object, "samples", json_boolean(info->flags & HW_CONTENT_SAMPLES));
    set(writer, object, "pages_known", json_boolean(!(info->flags & HW_CONTENT_BLIND)));
    set_count(writer, object, "one_content_in", 1ull << (info->sampled & 31));
    set_count(writer, object, "identical_bytes_error", info->identical_error);
    set_count(writer, object, "unread_bytes", info->unread_bytes);
    set_count(writer, object, "swapped_bytes", info->swapped_bytes);
    set_count(writer, object, "unwritten_bytes", info->unwritten_bytes);
    set_count(writer, object, "threads_missed", info->threads_missed);
    set(writer, object, "most_frequent", examples_of(writer, HW_NONE));
    return object;
}
