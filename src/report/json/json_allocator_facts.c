/* json_allocator_facts.c - in the member "allocator" of the JSON report: how the allocator works, and what others would
 * do. */
#include "report/json/json.h"

static const char *const styles[] = {NULL, "sequential", "bibop"};
static const char *const reuses[] = {NULL, "lifo", "fifo", "mixed", "deferred"};
static const char *const caches[] = {NULL, "none", "freeing", "owning"};

static json_t *classes_value(struct json_writer *writer, const struct hw_profile_allocator *allocator)
{
    json_t *array = allocator->class_count ? json_array() : json_null();
    for (size_t i = 0; i < allocator->class_count; i++)
        append(writer, array, json_integer(clamped(allocator->classes[i].size)));
    return array;
}

static json_t *predictions_value(struct json_writer *writer, const struct hw_profile_allocator *allocator)
{
    json_t *array = json_array();
    for (size_t i = 0; i < allocator->prediction_count; i++) {
        const struct hw_allocator_prediction *prediction = &allocator->predictions[i];
        const bool there = prediction->replays > 0;
        json_t *object = json_object();
        set_text(writer, object, "allocator", prediction->allocator);
        set_text(writer, object, "version", known(prediction->version));
        set(writer, object, "speedup", there ? json_real((double)prediction->speedup * 1e-6) : json_null());
        set(writer, object, "low", there ? json_real((double)prediction->low * 1e-6) : json_null());
        set(writer, object, "high", there ? json_real((double)prediction->high * 1e-6) : json_null());
        set_text(writer, object, "problem", known(prediction->problem));
        append(writer, array, object);
    }
    return array;
}

void hw_json_allocator_facts(struct json_writer *writer, json_t *object)
{
    const struct hw_profile_allocator *allocator = writer->view->profile->observed;
    const struct hw_allocator_facts *facts = &allocator->facts;
    const bool there = allocator->facts_known;
    set_text(writer, object, "version", there ? known(facts->version) : NULL);
    set_text(writer, object, "style", styles[there ? facts->style : HW_STYLE_UNKNOWN]);
    set(writer, object, "size_classes", classes_value(writer, allocator));
    set_nonzero(writer, object, "size_classes_step", facts->classes_step);
    set_nonzero(writer, object, "size_least", facts->least);
    set_nonzero(writer, object, "size_step", facts->step);
    set_known(writer, object, "header_bytes", facts->step, facts->header);
    set_nonzero(writer, object, "medium_threshold", facts->medium);
    set_nonzero(writer, object, "large_threshold", facts->large);
    set_nonzero(writer, object, "large_threshold_rises_to", facts->large_rises_to);
    set_text(writer, object, "large_by", !facts->large ? NULL : facts->flags & HW_FACTS_LARGE_BY_BRK ? "brk" : "mmap");
    set_nonzero(writer, object, "alignment", facts->alignment);
    set_nonzero(writer, object, "alignment_small", facts->alignment_small);
    set_text(writer, object, "reuse", reuses[facts->reuse]);
    set_text(writer, object, "thread_cache", caches[facts->thread_cache]);
    set_text(writer, object, "facts_from",
             !there                           ? NULL
             : facts->flags & HW_FACTS_TOLD   ? "file"
             : facts->flags & HW_FACTS_PROBED ? "probe"
                                              : "name");
    set_text(writer, object, "facts_unknown", known(facts->why));
    set(writer, object, "prediction", predictions_value(writer, allocator));
}
