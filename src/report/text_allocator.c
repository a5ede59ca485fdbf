/* text_allocator.c - what was observed of the allocator itself, in a text report. */
#include "report/text.h"

#include "report/human.h"

static const char *const kinds[HW_OPERATION_KINDS] = {
    "malloc, new place", "malloc, reused place", "free", "calloc", "realloc", "aligned",
};
static const char *const sizes[HW_SIZE_GROUPS] = {"small", "medium", "large", "size not known"};

static void print_operations(struct hw_text *text)
{
    const struct hw_profile_allocator *allocator = text->view->profile->observed;
    hw_page_print(&text->page, HW_FAINT, "  %-9s %-21s %-15s %15s\n", "threads", "operation", "size", "count");
    for (int phase = 0; phase < HW_PHASES; phase++)
        for (int kind = 0; kind < HW_OPERATION_KINDS; kind++)
            for (int size = 0; size < HW_SIZE_GROUPS; size++) {
                struct hw_profile_operation sum = {0};
                for (uint32_t bucket = 0; bucket < HW_SIZE_BUCKETS; bucket++)
                    if ((int)hw_profile_size_group(allocator, bucket) == size)
                        hw_profile_operation_add(&sum, &allocator->operations[phase][kind][bucket]);
                if (sum.count)
                    hw_page_print(&text->page, HW_PLAIN, "  %-9s %-21s %-15s %15s\n", phase ? "several" : "one",
                                  kinds[kind], sizes[size], HW_COUNT(sum.count));
            }
}

void hw_text_allocator(struct hw_text *text)
{
    if (!text->view->profile->observed)
        return;
    hw_page_heading(&text->page, "Operations of the allocator");
    print_operations(text);
    hw_text_inside(text);
    hw_text_allocator_facts(text);
}
