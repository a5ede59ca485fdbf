/* selection.c - see selection.h. */
#include "report/words/selection.h"

#include <inttypes.h>

#include "report/text/human.h"
#include "report/view/rules.h"

/* "12.3 % of the bytes at the peak (3.4 MiB)"; of all bytes where no peak is known. */
static void add_share(const struct hw_view *view, const struct hw_view_part *part, struct hw_buffer *out)
{
    const bool peak = hw_view_measured(view, HW_MEASURED_PEAK) && view->profile->process.peak_bytes;
    const uint64_t own = peak ? part->peak : part->bytes;
    const uint64_t whole = peak ? view->profile->process.peak_bytes : view->totals.bytes;
    hw_buffer_add(out, "%s of the bytes %s (%s)", HW_PERCENT((double)own, (double)whole),
                  peak ? "at the peak" : "allocated", HW_BYTES(own));
}

static void add_function(const struct hw_view *view, struct hw_buffer *out)
{
    const struct hw_view_part *own = &view->named[0], *calls = &view->named[1];
    hw_buffer_add(out, "Only places with ");
    hw_buffer_clean(out, view->function, HW_CLEAN_UTF8);
    hw_buffer_add(out, " on their stacks.");
    if (own->count) {
        hw_buffer_add(out, " It allocates in %s: ", HW_OF(own->count, "place"));
        add_share(view, own, out);
        hw_buffer_add(out, ".");
    }
    if (calls->count) {
        hw_buffer_add(out,
                      own->count ? " Functions that it calls allocate in %s: "
                                 : " It allocates nothing itself; functions that it calls do, in %s: ",
                      HW_OF(calls->count, "place"));
        add_share(view, calls, out);
        hw_buffer_add(out, ".");
    }
    hw_buffer_add(out, "\n");
}

/* "ignore 'a', focus 'b'" */
static void add_rules(const struct hw_view *view, const enum hw_rule *kinds, size_t count, struct hw_buffer *out)
{
    const char *before = "", *text;
    for (size_t k = 0; k < count; k++)
        for (size_t i = 0; (text = hw_rules_text(view->rules, kinds[k], i)); i++) {
            hw_buffer_add(out, "%s%s '", before, hw_rule_names[kinds[k]]);
            hw_buffer_clean(out, text, HW_CLEAN_UTF8);
            hw_buffer_add(out, "'");
            before = ", ";
        }
}

static void add_left_out(const struct hw_view *view, struct hw_buffer *out)
{
    static const enum hw_rule contexts[] = {HW_RULE_FOCUS, HW_RULE_IGNORE}, frames[] = {HW_RULE_HIDE};
    const struct hw_rules *rules = view->rules;
    if (rules->of[HW_RULE_FOCUS] || rules->of[HW_RULE_IGNORE]) {
        hw_buffer_add(out, "Left out: %s with ", HW_OF(view->left_out.count, "place"));
        add_share(view, &view->left_out, out);
        hw_buffer_add(out, ", by ");
        add_rules(view, contexts, 2, out);
        hw_buffer_add(out, ". Totals include what is left out.\n");
    }
    if (rules->of[HW_RULE_HIDE]) {
        hw_buffer_add(out, "Frames are hidden in %s, by ", HW_OF(view->hidden, "place"));
        add_rules(view, frames, 1, out);
        hw_buffer_add(out, ".\n");
    }
    if (rules->file) {
        hw_buffer_add(out, "Rules from ");
        hw_buffer_clean(out, rules->file, HW_CLEAN_UTF8);
        hw_buffer_add(out, " apply (--rules none ignores them).\n");
    }
}

static void add_structural(const struct hw_view *view, struct hw_buffer *out)
{
    hw_buffer_add(out, "%s folded, since many functions allocate through %s: ",
                  view->structural_count == 1 ? "An allocation wrapper is" : "Allocation wrappers are",
                  view->structural_count == 1 ? "it" : "them");
    for (size_t i = 0; i < view->structural_count; i++) {
        const struct hw_view_frame *frame = &view->structural[i];
        hw_buffer_add(out, "%s", i ? ", " : "");
        if (frame->symbol->function) {
            hw_buffer_clean(out, frame->symbol->function, HW_CLEAN_UTF8);
        } else {
            hw_buffer_clean(out, frame->module->name, HW_CLEAN_UTF8);
            hw_buffer_add(out, "+0x%" PRIx64, frame->address);
        }
    }
    hw_buffer_add(out, " (--no-fold shows %s).\n", view->structural_count == 1 ? "it" : "them");
}

void hw_left_out(const struct hw_view *view, struct hw_buffer *out)
{
    if (view->function)
        add_function(view, out);
    if (view->rules)
        add_left_out(view, out);
}

void hw_selection(const struct hw_view *view, struct hw_buffer *out)
{
    hw_left_out(view, out);
    if (view->structural_count)
        add_structural(view, out);
}
