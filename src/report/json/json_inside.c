/* json_inside.c - what was seen inside operations of the allocator, in the JSON report: system calls, locks, events. */
#include "report/view/inside_names.h"
#include "report/json/json.h"

static void set_ns(struct json_writer *writer, json_t *object, const char *key, uint64_t ticks)
{
    set_count(writer, object, key, hw_profile_operation_ns(writer->view->profile->observed, ticks));
}

/* ---- system calls ---- */

static void set_call(struct json_writer *writer, json_t *object, const struct hw_profile_call *call)
{
    set_count(writer, object, "count", call->count);
    set_count(writer, object, "errors", call->errors);
    set_count(writer, object, "cycles", call->ticks);
    set_ns(writer, object, "time_ns", call->ticks);
    set_count(writer, object, "bytes", call->bytes);
}

static json_t *calls_by_kind(struct json_writer *writer, enum hw_system_call call)
{
    json_t *object = json_object();
    for (int kind = 0; kind < HW_OPERATION_KINDS; kind++) {
        const struct hw_profile_call sum = hw_profile_call_of(&writer->view->profile->observed->inside, call, kind);
        if (!sum.count)
            continue;
        json_t *one = json_object();
        set_call(writer, one, &sum);
        set(writer, object, hw_operation_kind_keys[kind], one);
    }
    return object;
}

static json_t *calls_by_phase(struct json_writer *writer, enum hw_system_call call)
{
    json_t *object = json_object();
    for (int phase = 0; phase < HW_PHASES; phase++) {
        uint64_t count = 0;
        for (int kind = 0; kind < HW_OPERATION_KINDS; kind++)
            count = hw_add_saturating(count, writer->view->profile->observed->inside.calls[call][phase][kind].count);
        set_count(writer, object, phase ? "parallel" : "serial", count);
    }
    return object;
}

static json_t *call_value(struct json_writer *writer, enum hw_system_call call)
{
    const struct hw_profile_call sum = hw_profile_call_of(&writer->view->profile->observed->inside, call, -1);
    json_t *object = json_object();
    set_text(writer, object, "name", hw_system_call_name(call));
    set_call(writer, object, &sum);
    set(writer, object, "by_phase", calls_by_phase(writer, call));
    set(writer, object, "by_kind", calls_by_kind(writer, call));
    return object;
}

static bool is_futex(enum hw_system_call call)
{
    return call == HW_CALL_FUTEX_WAIT || call == HW_CALL_FUTEX_WAKE || call == HW_CALL_FUTEX_OTHER;
}

static json_t *calls_value(struct json_writer *writer)
{
    const struct hw_profile_inside *inside = &writer->view->profile->observed->inside;
    json_t *array = json_array();
    for (int call = 0; call < HW_SYSTEM_CALLS; call++)
        if (!is_futex((enum hw_system_call)call) && hw_profile_call_of(inside, (enum hw_system_call)call, -1).count)
            append(writer, array, call_value(writer, (enum hw_system_call)call));
    return array;
}

static json_t *futex_value(struct json_writer *writer)
{
    json_t *object = json_object();
    set(writer, object, "waits", call_value(writer, HW_CALL_FUTEX_WAIT));
    set(writer, object, "wakes", call_value(writer, HW_CALL_FUTEX_WAKE));
    set(writer, object, "others", call_value(writer, HW_CALL_FUTEX_OTHER));
    return object;
}

/* ---- locks ---- */

static void set_use(struct json_writer *writer, json_t *object, uint32_t kind, const struct hw_lock_use *use)
{
    if (kind == HW_LOCK_FUTEX) {
        set_count(writer, object, "waits", use->contended);
        set_count(writer, object, "wakes", use->count);
        set_count(writer, object, "wait_cycles", use->wait_ticks);
        return;
    }
    set_count(writer, object, "acquisitions", use->count);
    set_count(writer, object, "contended", use->contended);
    set_count(writer, object, "refused", use->refused);
    set_count(writer, object, "wait_cycles", use->wait_ticks);
    set_count(writer, object, "held_cycles", use->held_ticks);
    set_count(writer, object, "critical_cycles", use->critical_ticks);
}

static json_t *uses_by_kind(struct json_writer *writer, const struct hw_operation_lock *lock)
{
    json_t *object = json_object();
    for (int kind = 0; kind < HW_OPERATION_KINDS; kind++) {
        struct hw_lock_use sum = {0};
        for (int phase = 0; phase < HW_PHASES; phase++)
            hw_lock_use_add(&sum, &lock->use[phase][kind]);
        if (!sum.count && !sum.contended && !sum.refused)
            continue;
        json_t *one = json_object();
        set_use(writer, one, lock->kind, &sum);
        set(writer, object, hw_operation_kind_keys[kind], one);
    }
    return object;
}

static json_t *lock_value(struct json_writer *writer, const struct hw_view_lock *view)
{
    const struct hw_operation_lock *lock = view->lock;
    const struct hw_lock_use sum = hw_lock_use_of(lock);
    json_t *object = json_object();
    char address[32];
    snprintf(address, sizeof address, "0x%llx", (unsigned long long)lock->address);
    set_text(writer, object, "type", hw_lock_kind_name(lock->kind));
    struct hw_buffer copy = {0};
    hw_lock_name(writer->view, view, &copy);
    set_text(writer, object, "name", hw_buffer_text(&copy));
    hw_buffer_free(&copy);
    set_text(writer, object, "symbol", view->symbol ? view->symbol->name : NULL);
    set_text(writer, object, "module", view->module == HW_NONE ? NULL : writer->view->modules[view->module].path);
    set(writer, object, "address", lock->kind == HW_LOCK_OTHERS || lock->locks ? json_null() : json_string(address));
    if (lock->locks)
        set_count(writer, object, "locks", lock->locks);
    set_use(writer, object, lock->kind, &sum);
    set_count(writer, object, "waiting_most", lock->waiting_most);
    set_count(writer, object, "wait_cycles_most", lock->wait_ticks_most);
    set_count(writer, object, "critical_cycles_most", lock->critical_ticks_most);
    set(writer, object, "by_kind", uses_by_kind(writer, lock));
    return object;
}

static json_t *locks_value(struct json_writer *writer)
{
    json_t *array = json_array();
    for (size_t i = 0; i < writer->view->lock_count; i++)
        append(writer, array, lock_value(writer, &writer->view->locks[i]));
    return array;
}

void hw_json_inside(struct json_writer *writer, json_t *object)
{
    const struct hw_profile_inside *inside = &writer->view->profile->observed->inside;
    set(writer, object, "syscalls", inside->calls_observed ? calls_value(writer) : json_null());
    set(writer, object, "futex", inside->calls_observed ? futex_value(writer) : json_null());
    set(writer, object, "locks", inside->present ? locks_value(writer) : json_null());
}

/* ---- events ---- */

void hw_json_events(struct json_writer *writer, json_t *object, const struct hw_profile_events *events)
{
    const uint32_t present = writer->view->profile->observed->inside.events_present;
    if (!events->samples)
        return;
    json_t *value = json_object();
    set_count(writer, value, "samples", events->samples);
    for (int event = 0; event < HW_OPERATION_EVENTS; event++)
        if (present >> event & 1)
            set_ratio(writer, value, hw_operation_event_name((enum hw_operation_event)event), events->sum[event],
                      events->samples);
    set(writer, object, "events", value);
}
