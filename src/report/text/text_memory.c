/* text_memory.c - heap beside resident memory: over time, and what the difference is made of. */
#include "report/text/text.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "report/text/human.h"
#include "report/text/plot.h"
#include "report/view/memory_parts.h"

void hw_text_timeline(struct hw_text *text)
{
    hw_page_heading(&text->page, "Heap and resident memory over time");
    if (!hw_plot_timeline(&text->page, text->view->profile))
        fputs("There are too few points in time for a timeline.\n", text->page.stream);
}

/* ---- the parts of RSS ---- */

#define LABEL_WIDTH 50

/* A size with its sign: -1.2 MiB. */
static const char *signed_bytes(char buffer[static HW_HUMAN + 1], int64_t bytes)
{
    buffer[0] = '-';
    hw_human_bytes(buffer + 1, bytes < 0 ? -(uint64_t)bytes : (uint64_t)bytes);
    return bytes < 0 ? buffer : buffer + 1;
}

struct moment {
    const char *name;
    const struct hw_memory_breakdown *memory;
};

static void print_line(const struct hw_page *page, const char *label, const struct moment *moments, size_t count,
                       const struct hw_memory_part *part)
{
    char value[HW_HUMAN + 1];
    fprintf(page->stream, "%-*s", LABEL_WIDTH, label);
    for (size_t i = 0; i < count; i++)
        fprintf(page->stream, " %13s",
                signed_bytes(value, part ? part->value(moments[i].memory) : (int64_t)moments[i].memory->rss));
    fputc('\n', page->stream);
}

static void print_table(const struct hw_page *page, const struct moment *moments, size_t count)
{
    char line[LABEL_WIDTH + 64];
    size_t at = (size_t)snprintf(line, sizeof line, "%-*s", LABEL_WIDTH, "");
    for (size_t i = 0; i < count; i++)
        at += (size_t)snprintf(line + at, sizeof line - at, " %13s", moments[i].name);
    hw_page_print(page, HW_FAINT, "%s", line);
    fputc('\n', page->stream);
    for (size_t i = 0; i < hw_memory_part_count; i++) {
        bool any = false;
        for (size_t k = 0; k < count; k++)
            any = any || hw_memory_parts[i].value(moments[k].memory);
        if (any)
            print_line(page, hw_memory_parts[i].label, moments, count, &hw_memory_parts[i]);
    }
    print_line(page, "Resident memory (RSS)", moments, count, NULL);
}

/* "… 18.9 MiB more than its heap blocks: mostly memory that the allocator keeps around the blocks (12.0 MiB) and …" */
static void print_sentence(struct hw_text *text, const struct moment *moment)
{
    const struct hw_memory_breakdown *memory = moment->memory;
    const int64_t more = (int64_t)memory->rss - memory->live_bytes;
    struct hw_buffer *line = &text->line;
    hw_buffer_clear(line);
    hw_buffer_add(line, "RSS is %s %s than the heap blocks %s", HW_BYTES(more < 0 ? -(uint64_t)more : (uint64_t)more),
                  more < 0 ? "less" : "more", moment->name);
    if (more < 0) {
        hw_buffer_add(line, ": a part of the blocks was not in memory: not written until then, %s.",
                      memory->swap ? "released (madvise), or swapped out" : "or released (madvise)");
    } else {
        const struct hw_memory_part *first = NULL, *second = NULL;
        for (size_t i = 0; i < hw_memory_part_count; i++) {
            const struct hw_memory_part *part = &hw_memory_parts[i];
            if (!part->words || part->value(memory) <= 0)
                continue;
            if (!first || part->value(memory) > first->value(memory)) {
                second = first;
                first = part;
            } else if (!second || part->value(memory) > second->value(memory)) {
                second = part;
            }
        }
        if (first)
            hw_buffer_add(line, ": mostly %s (%s)", first->words, HW_BYTES((uint64_t)first->value(memory)));
        if (second)
            hw_buffer_add(line, " and %s (%s)", second->words, HW_BYTES((uint64_t)second->value(memory)));
        hw_buffer_add(line, ".");
    }
    if (memory->swap)
        hw_buffer_add(line, " %s more are swapped out.", HW_BYTES(memory->swap));
    hw_page_wrap(&text->page, 0, "", hw_buffer_text(line));
}

/* RSS is read now and then: the look that counts as the one at the peak may be a little beside it. */
static bool at_peak(const struct hw_view *view, const struct hw_memory_breakdown *memory, uint64_t part)
{
    const uint64_t peak = view->profile->process.peak_bytes, live = hw_not_negative(memory->live_bytes);
    return live >= peak - peak / part;
}

static void print_when(struct hw_text *text, const struct hw_memory_breakdown *memory)
{
    hw_buffer_clear(&text->line);
    hw_buffer_add(&text->line, "RSS was read %s into the run, when %s were live; the peak is %s.",
                  HW_NS(hw_profile_ticks_to_ns(text->view->profile, memory->tick), text->page.utf8),
                  HW_BYTES(hw_not_negative(memory->live_bytes)), HW_BYTES(text->view->profile->process.peak_bytes));
    hw_page_wrap(&text->page, 0, "", hw_buffer_text(&text->line));
}

/* What a forked child inherited, or what there was before attach, is in none of the counts, but in the memory. */
static void print_inherited(struct hw_text *text)
{
    const struct hw_profile *profile = text->view->profile;
    const uint32_t flags = profile->process.flags & (HW_PROCESS_ATTACHED | HW_PROCESS_FORKED | HW_PROCESS_MERGED);
    const bool attached = flags & HW_PROCESS_ATTACHED && flags != (HW_PROCESS_ATTACHED | HW_PROCESS_FORKED);
    const uint64_t bytes = attached ? profile->process.older_bytes : hw_not_negative(profile->process.inherited_bytes);
    if (!bytes || (!attached && profile->process.flags & HW_PROCESS_RESET) || profile->places)
        return;
    hw_buffer_clear(&text->line);
    hw_buffer_add(&text->line,
                  attached ? "The heap blocks are those since heapwise attach. Blocks from before it, %s of them then "
                             "as the allocator counts, count as memory around them."
                           : "The heap blocks are those that this process allocated. Blocks from before the fork, %s "
                             "of them then, count as memory around them.",
                  HW_BYTES(bytes));
    hw_page_wrap(&text->page, 0, "", hw_buffer_text(&text->line));
}

/* ---- beside RSS, and who mapped it ---- */

static void print_beside(struct hw_text *text, const struct moment *moment)
{
    const struct hw_memory_breakdown *memory = moment->memory;
    struct hw_buffer *line = &text->line;
    hw_buffer_clear(line);
    hw_buffer_add(line, "Beside RSS %s: page tables %s", moment->name, HW_BYTES(memory->page_tables));
    if (memory->pss)
        hw_buffer_add(line, "; Pss %s (pages shared with other processes count in parts)", HW_BYTES(memory->pss));
    if (memory->huge)
        hw_buffer_add(line, "; in transparent huge pages %s", HW_BYTES(memory->huge));
    if (memory->known & HW_MEMORY_CGROUP)
        hw_buffer_add(line, "; the whole cgroup %s", HW_BYTES(memory->cgroup));
    if (memory->known & HW_MEMORY_CGROUP_PEAK)
        hw_buffer_add(line, ", at most %s", HW_BYTES(memory->cgroup_peak));
    if (memory->known & HW_MEMORY_CGROUP && memory->cgroup_limit)
        hw_buffer_add(line, ", limit %s", HW_BYTES(memory->cgroup_limit));
    hw_buffer_add(line, ".");
    hw_page_wrap(&text->page, 0, "", hw_buffer_text(line));
}

#define ROWS_SHOWN 8

static int compare_rows(const void *left, const void *right, void *closure)
{
    const struct hw_ledger_row *rows = closure;
    const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return HW_ORDER(rows[b].resident, rows[a].resident) ?: HW_ORDER(a, b);
}

static void print_row(struct hw_text *text, size_t index)
{
    const struct hw_ledger_row *row = &text->view->profile->ledger[index];
    const uint32_t leaf = text->view->ledger_leaves[index];
    const struct hw_page *page = &text->page;
    const char *words = hw_ledger_kinds[row->kind].words;
    fprintf(page->stream, "%10s  %s", HW_BYTES(row->resident), words);
    const size_t used = 12 + strlen(words), room = page->width > used + 12 ? page->width - used : 12;
    bool placed;
    if (row->kind == HW_LEDGER_MAPPED && hw_text_load(text, leaf)) {
        hw_text_named(text, &text->stack.frames[text->fold.headline], room, &placed);
    } else if (row->kind == HW_LEDGER_MAPPED) {
        fputs("(unknown stack)", page->stream);
    } else if (row->name) {
        hw_page_clean(page, &text->name, hw_profile_string(text->view->profile, row->name));
        fputs(hw_page_cut(page, &text->line, hw_buffer_text(&text->name), room), page->stream);
    } else if (row->kind == HW_LEDGER_STACK || row->kind == HW_LEDGER_FILE || row->kind == HW_LEDGER_MODULE) {
        fputs("others", page->stream);
    }
    fputc('\n', page->stream);
}

/* Those of the first moment in the table. */
static void print_rows(struct hw_text *text, const struct moment *moment)
{
    const struct hw_profile *profile = text->view->profile;
    uint32_t *order = malloc((profile->ledger_count + 1) * sizeof *order);
    size_t count = 0;
    text->failed |= !order;
    for (uint32_t i = 0; order && i < profile->ledger_count; i++)
        if (profile->ledger[i].moment == moment->memory->moment && profile->ledger[i].resident)
            order[count++] = i;
    if (count)
        qsort_r(order, count, sizeof *order, compare_rows, (void *)profile->ledger);
    const struct hw_report_options *options = text->options;
    const bool whole = options->full || (!options->sections && !options->brief);
    const size_t most = options->top ? options->top : whole ? count : ROWS_SHOWN, shown = count < most ? count : most;
    if (shown)
        fprintf(text->page.stream, "\nResident memory by who mapped it, %s\n", moment->name);
    for (size_t i = 0; i < shown; i++)
        print_row(text, order[i]);
    if (shown < count)
        hw_page_print(&text->page, HW_FAINT, "%10s  and %zu more (--top)\n", "", count - shown);
    free(order);
}

void hw_text_memory(struct hw_text *text)
{
    const struct hw_view *view = text->view;
    const struct hw_memory_breakdown *peak = hw_view_memory(view, HW_MOMENT_PEAK);
    const bool near = peak && !at_peak(view, peak, 50);
    const struct moment all[] = {{near ? "near the peak" : "at the peak", peak},
                                 {"at the dump", hw_view_memory(view, HW_MOMENT_DUMP)},
                                 {hw_text_end(view->profile), hw_view_memory(view, HW_MOMENT_END)}};
    struct moment moments[3];
    size_t count = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].memory)
            moments[count++] = all[i];
    hw_page_heading(&text->page, "Why RSS differs from the heap");
    if (!count) {
        fputs("The parts of resident memory were not recorded.\n", text->page.stream);
        return;
    }
    print_table(&text->page, moments, count < 2 ? count : 2);
    print_sentence(text, &moments[0]);
    if (peak && !at_peak(view, peak, 500))
        print_when(text, peak);
    print_inherited(text);
    if (!(moments[0].memory->known & HW_MEMORY_LEDGER))
        return;
    print_beside(text, &moments[0]);
    print_rows(text, &moments[0]);
}
