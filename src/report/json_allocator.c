/* json_allocator.c - the member "allocator" of the JSON report: what was observed of the allocator itself. */
#include "report/json.h"

static const char *const phases[HW_PHASES] = {"serial", "parallel"};
static const char *const kinds[HW_OPERATION_KINDS] = {"new", "reused", "free", "calloc", "realloc", "aligned"};
static const char *const sizes[HW_SIZE_GROUPS] = {"small", "medium", "large", NULL};

static json_t *operation_value(struct json_writer *writer, int phase, int kind,
                               const struct hw_profile_operation *operation)
{
    json_t *object = json_object();
    set_text(writer, object, "phase", phases[phase]);
    set_text(writer, object, "kind", kinds[kind]);
    set_count(writer, object, "count", operation->count);
    return object;
}

static json_t *operations_value(struct json_writer *writer)
{
    const struct hw_profile_allocator *allocator = writer->view->profile->observed;
    json_t *array = json_array();
    for (int phase = 0; phase < HW_PHASES; phase++)
        for (int kind = 0; kind < HW_OPERATION_KINDS; kind++) {
            struct hw_profile_operation groups[HW_SIZE_GROUPS] = {{0}};
            struct hw_profile_events events[HW_SIZE_GROUPS] = {{0}};
            for (uint32_t bucket = 0; bucket < HW_SIZE_BUCKETS; bucket++)
                hw_profile_events_add(&events[hw_profile_size_group(allocator, bucket)],
                                      &allocator->inside.events[phase][kind][bucket]);
            for (uint32_t bucket = 0; bucket < HW_SIZE_BUCKETS; bucket++)
                hw_profile_operation_add(&groups[hw_profile_size_group(allocator, bucket)],
                                         &allocator->operations[phase][kind][bucket]);
            for (int size = 0; size < HW_SIZE_GROUPS; size++) {
                if (!groups[size].count)
                    continue;
                json_t *object = operation_value(writer, phase, kind, &groups[size]);
                set_text(writer, object, "size", sizes[size]);
                hw_json_events(writer, object, &events[size]);
                writer->failed |= json_array_append_new(array, object) != 0;
            }
        }
    return array;
}

/* The same by sizes, as they were counted. */
static json_t *buckets_value(struct json_writer *writer)
{
    const struct hw_profile_allocator *allocator = writer->view->profile->observed;
    json_t *array = json_array();
    for (int phase = 0; phase < HW_PHASES; phase++)
        for (int kind = 0; kind < HW_OPERATION_KINDS; kind++)
            for (uint32_t bucket = 0; bucket < HW_SIZE_BUCKETS; bucket++) {
                const struct hw_profile_operation *operation = &allocator->operations[phase][kind][bucket];
                if (!operation->count)
                    continue;
                json_t *object = operation_value(writer, phase, kind, operation);
                const bool unknown = bucket == HW_SIZE_BUCKET_UNKNOWN, last = bucket == HW_SIZE_BUCKET_LAST;
                set(writer, object, "least",
                    unknown ? json_null() : json_integer(clamped(hw_size_bucket_least(bucket))));
                set(writer, object, "most",
                    unknown || last ? json_null() : json_integer(clamped(hw_size_bucket_most(bucket))));
                writer->failed |= json_array_append_new(array, object) != 0;
            }
    return array;
}

void hw_json_allocator(struct json_writer *writer)
{
    const struct hw_profile *profile = writer->view->profile;
    if (!profile->observed)
        return;
    json_t *object = json_object();
    set_text(writer, object, "name", known(profile->allocator));
    hw_json_allocator_facts(writer, object);
    set(writer, object, "operations", operations_value(writer));
    set(writer, object, "operations_by_size", buckets_value(writer));
    hw_json_inside(writer, object);
    print_key(writer, "allocator");
    print_value(writer, object);
}
