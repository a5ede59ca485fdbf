/* text_inside.c - what was seen inside operations of the allocator, in a text report: system calls, locks, events. */
#include "report/text/human.h"
#include "report/view/inside_names.h"
#include "report/text/text.h"

static const char *const kinds[HW_OPERATION_KINDS] = {"malloc (new)", "malloc (reused)", "free",
                                                      "calloc",       "realloc",         "aligned"};

static const struct hw_profile_inside *inside_of(const struct hw_text *text)
{
    return &text->view->profile->observed->inside;
}

static const char *time_of(const struct hw_text *text, char *buffer, uint64_t ticks)
{
    return hw_human_ns(buffer, hw_profile_operation_ns(text->view->profile->observed, ticks), text->page.utf8);
}
#define TIME(text, ticks) time_of((text), (char[HW_HUMAN]){0}, (ticks))

/* ---- system calls ---- */

/* The kind of operation that makes most of them, "malloc (new) 63.6 %, …": the JSON report has all. */
static void add_shares(const struct hw_text *text, enum hw_system_call call, uint64_t count, struct hw_buffer *out)
{
    int most = 0, kinds_with = 0;
    uint64_t counts[HW_OPERATION_KINDS];
    for (int kind = 0; kind < HW_OPERATION_KINDS; kind++) {
        counts[kind] = hw_profile_call_of(inside_of(text), call, kind).count;
        kinds_with += counts[kind] != 0;
        most = counts[kind] > counts[most] ? kind : most;
    }
    hw_buffer_add(out, "%s", kinds[most]);
    if (kinds_with > 1)
        hw_buffer_add(out, " %s", HW_PERCENT((double)counts[most], (double)count));
}

static void print_calls(struct hw_text *text)
{
    const struct hw_profile_inside *inside = inside_of(text);
    hw_page_heading(&text->page, "System calls inside the allocator");
    if (!inside->calls_seen) {
        hw_page_print(&text->page, HW_PLAIN, "%s\n", "None: no operation needed the kernel.");
        return;
    }
    hw_page_print(&text->page, HW_FAINT, "  %-11s %11s %7s %10s %10s  %s\n", "call", "count", "failed", "time", "bytes",
                  "in");
    for (int i = 0; i < HW_SYSTEM_CALLS; i++) {
        const enum hw_system_call call = (enum hw_system_call)i;
        const struct hw_profile_call sum = hw_profile_call_of(inside, call, -1);
        if (!sum.count)
            continue;
        hw_buffer_clear(&text->line);
        add_shares(text, call, sum.count, &text->line);
        hw_page_print(&text->page, HW_PLAIN, "  %-11s %11s %7s %*s %10s  %s\n", hw_system_call_name(call),
                      HW_MANY(sum.count), sum.errors ? HW_MANY(sum.errors) : "-",
                      HW_RIGHT(10, call == HW_CALL_UNSEEN ? "-" : TIME(text, sum.ticks)),
                      sum.bytes ? HW_BYTES(sum.bytes) : "-", hw_buffer_text(&text->line));
    }
}

/* ---- locks ---- */

static void print_lock(struct hw_text *text, const struct hw_view_lock *lock)
{
    const struct hw_lock_use use = hw_lock_use_of(lock->lock);
    const bool futex = lock->lock->kind == HW_LOCK_FUTEX;
    hw_buffer_clear(&text->line);
    hw_lock_name(text->view, lock, &text->line);
    hw_page_print(&text->page, HW_PLAIN, "  %11s %10s %*s %*s %4s  %-8s %s\n", futex ? "-" : HW_MANY(use.count),
                  HW_MANY(use.contended), HW_RIGHT(10, TIME(text, use.wait_ticks)),
                  HW_RIGHT(10, futex ? "-" : TIME(text, use.held_ticks)),
                  lock->lock->waiting_most ? HW_COUNT(lock->lock->waiting_most) : "-",
                  hw_lock_kind_name(lock->lock->kind),
                  hw_page_clean(&text->page, &text->cleaned, hw_buffer_text(&text->line)));
}

static void print_locks(struct hw_text *text)
{
    const struct hw_view *view = text->view;
    const size_t shown = view->lock_count < hw_text_top(text) ? view->lock_count : hw_text_top(text);
    hw_page_heading(&text->page, "Locks inside the allocator");
    if (!view->lock_count) {
        hw_page_print(&text->page, HW_PLAIN, "%s\n",
                      inside_of(text)->calls_observed
                          ? "No pthread lock was taken, and no other lock was waited for."
                          : "No pthread lock was taken; whether other locks were waited for is not known.");
        return;
    }
    hw_page_print(&text->page, HW_FAINT, "  %11s %10s %10s %10s %4s  %-8s %s\n", "taken", "waited for", "waiting",
                  "held", "most", "kind", "lock");
    for (size_t i = 0; i < shown; i++)
        print_lock(text, &view->locks[i]);
    if (view->lock_count > shown)
        hw_page_print(&text->page, HW_FAINT, "  %s and %s more\n", hw_page_ellipsis(&text->page),
                      HW_OF(view->lock_count - shown, "lock"));
}

/* ---- events ---- */

static void print_events(struct hw_text *text)
{
    const struct hw_profile_inside *inside = inside_of(text);
    bool any = false;
    for (int phase = 0; phase < HW_PHASES; phase++)
        for (int kind = 0; kind < HW_OPERATION_KINDS; kind++) {
            struct hw_profile_events sum = {0};
            for (uint32_t bucket = 0; bucket < HW_SIZE_BUCKETS; bucket++)
                hw_profile_events_add(&sum, &inside->events[phase][kind][bucket]);
            if (!sum.samples)
                continue;
            if (!any)
                hw_page_heading(&text->page, "Events per operation, mean (number of samples)");
            any = true;
            hw_buffer_clear(&text->line);
            hw_buffer_add(&text->line, "%s, %s:", kinds[kind], phase ? "several threads" : "one thread");
            for (int event = 0; event < HW_OPERATION_EVENTS; event++)
                if (inside->events_present >> event & 1)
                    hw_buffer_add(&text->line, " %s %s;", HW_RATIO((double)sum.sum[event] / (double)sum.samples),
                                  hw_operation_event_name((enum hw_operation_event)event));
            hw_buffer_add(&text->line, " (%s)", HW_COUNT(sum.samples));
            hw_page_wrap(&text->page, 2, "", hw_buffer_text(&text->line));
        }
}

void hw_text_inside(struct hw_text *text)
{
    if (!text->view->profile->observed || !inside_of(text)->present)
        return;
    if (inside_of(text)->calls_observed)
        print_calls(text);
    print_locks(text);
    print_events(text);
}
