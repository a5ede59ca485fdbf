/* text_access.c - counted accesses in a text report: facts of a place, what all blocks have together, globals. */
#include "report/text/text.h"

#include <inttypes.h>
#include <string.h>

#include "report/text/human.h"

unsigned hw_text_granule(const struct hw_view *view)
{
    const unsigned granule = view->profile->access_info.granule;
    return granule == 8 || granule == 4 ? granule : 64;
}

void hw_text_not_counted(struct hw_text *text)
{
    hw_page_wrap(&text->page, 0, "",
                 "Accesses were not counted: that takes a program built with heapwise cc (see heapwise cc --help).");
}

double hw_text_per_byte(const struct hw_profile_access *access)
{
    if (!access->blocks || (!access->density_total && !hw_profile_access_total(access)))
        return 0;
    return (double)(access->density_total ? access->density_total : 1) / 1000 / (double)access->blocks;
}

static bool is_lower_bound(const struct hw_profile_access *access)
{
    return access->saturated_cells || access->overflown;
}

void hw_text_add_accesses(struct hw_buffer *out, uint64_t reads, uint64_t writes, uint64_t unsplit, const char *noun,
                          bool lower_bound)
{
    const uint64_t told = hw_add_saturating(reads, writes), all = hw_add_saturating(told, unsplit);
    hw_buffer_add(out, "%s%s", lower_bound ? "at least " : "", HW_COUNT(all));
    if (*noun)
        hw_buffer_add(out, " %s%s", noun, all == 1 ? "" : "es");
    if (told && !unsplit)
        hw_buffer_add(out, " (%s reads)", HW_PERCENT((double)reads, (double)told));
    else if (unsplit / 100 > told)
        hw_buffer_add(out, " (reads and writes not distinguished)");
    else if (told)
        hw_buffer_add(out, " (%s reads, %s not distinguished)", HW_PERCENT((double)reads, (double)all),
                      HW_PERCENT((double)unsplit, (double)all));
}

/* ---- lists ---- */

static void cold_title(const struct hw_text *text, struct hw_buffer *out)
{
    hw_buffer_add(out, "Cold: less than one access per %d bytes in the whole run, by size at the peak", HW_COLD_BYTES);
}

static void untouched_title(const struct hw_text *text, struct hw_buffer *out)
{
    const struct hw_profile_access *all = &text->view->profile->access.all;
    const unsigned granule = hw_text_granule(text->view);
    hw_buffer_add(out, "Never touched: %s of %s, in granules of %u B", HW_BYTES(hw_untouched_granules(all) * granule),
                  HW_BYTES(all->granules * granule), granule);
}

/* Blocks that were allocated by code whose accesses are not counted: most likely it uses them itself. */
struct uncounted {
    uint64_t blocks, never_accessed, never_read, untouched, cold; /* untouched: granules; cold: bytes at the peak */
    const struct hw_view_module *first;                           /* whose most blocks they are */
    bool others;
};

static struct uncounted uncounted_of(const struct hw_view *view)
{
    struct uncounted of = {0};
    uint64_t most = 0;
    for (size_t i = 0; i < view->context_count; i++) {
        const struct hw_profile_context *sum = &view->contexts[i].sum;
        const struct hw_view_module *owner = sum->access ? hw_view_uncounted_owner(view, sum) : NULL;
        if (!owner)
            continue;
        const struct hw_profile_access *access = &sum->access->all;
        of.blocks += access->blocks;
        of.never_accessed += access->never_accessed;
        of.never_read += access->written_never_read;
        of.untouched += hw_untouched_granules(access);
        of.cold += hw_sort_value(HW_SORT_COLD, &view->contexts[i]);
        if (!of.first || access->never_accessed > most) {
            most = access->never_accessed;
            of.first = owner;
        }
    }
    for (size_t i = 0; of.first && i < view->context_count; i++) {
        const struct hw_view_module *owner = hw_view_uncounted_owner(view, &view->contexts[i].sum);
        of.others |= owner && owner != of.first;
    }
    return of;
}

/* What is said of blocks that nobody seems to use, where there is code that does not count. */
static const char *by_whom(const struct hw_view *view)
{
    const struct hw_view_module *first;
    bool partly = false;
    for (size_t i = 0; i < view->module_count; i++)
        partly |= view->modules[i].unseen_operations != 0;
    return partly || hw_view_uncounted_libraries(view, false, &first) || uncounted_of(view).blocks
               ? " by code that counts"
               : "";
}

/* "119,850 of them (63.1 %) come from libstdc++.so.6 …": what is said of blocks that such code may well use. In
 * text->line; false: there is nothing to say. */
static bool uncounted_remark(struct hw_text *text, enum hw_sort_key key)
{
    const struct uncounted of = uncounted_of(text->view);
    const struct hw_profile_access *all = &text->view->profile->access.all;
    const unsigned granule = hw_text_granule(text->view);
    const uint64_t values[HW_SORT_KEYS] = {[HW_SORT_NEVER_ACCESSED] = of.never_accessed,
                                           [HW_SORT_NEVER_READ] = of.never_read,
                                           [HW_SORT_UNTOUCHED] = of.untouched * granule,
                                           [HW_SORT_COLD] = of.cold};
    const uint64_t wholes[HW_SORT_KEYS] = {[HW_SORT_NEVER_ACCESSED] = all->never_accessed,
                                           [HW_SORT_NEVER_READ] = all->written_never_read,
                                           [HW_SORT_UNTOUCHED] = hw_untouched_granules(all) * granule,
                                           [HW_SORT_COLD] = text->view->profile->process.peak_bytes};
    if (!values[key])
        return false;
    hw_buffer_clear(&text->line);
    hw_buffer_add(&text->line, "%s of %s (%s) %s allocated in ",
                  key == HW_SORT_COLD || key == HW_SORT_UNTOUCHED ? HW_BYTES(values[key]) : HW_COUNT(values[key]),
                  key == HW_SORT_COLD ? "the peak" : "them", HW_PERCENT((double)values[key], (double)wholes[key]),
                  values[key] == 1 ? "is" : "are");
    hw_buffer_add(&text->line, "%s%s, whose accesses are not counted: they may well be used.",
                  hw_page_clean(&text->page, &text->cleaned, of.first->name), of.others ? " and others" : "");
    return true;
}

void hw_text_uncounted(struct hw_text *text, enum hw_sort_key key)
{
    if (text->view->profile->access_counted && uncounted_remark(text, key))
        hw_page_wrap(&text->page, 0, "", hw_buffer_text(&text->line));
}

static void blocks_title(const char *what, const char *whom, uint64_t blocks, uint64_t all, struct hw_buffer *out)
{
    hw_buffer_add(out, "%s%s: %s", what, whom, HW_OF(blocks, "block"));
    if (blocks)
        hw_buffer_add(out, " (%s)", HW_PERCENT((double)blocks, (double)all));
}

void hw_text_access_title(const struct hw_text *text, enum hw_sort_key key, struct hw_buffer *out)
{
    const struct hw_profile_access *all = &text->view->profile->access.all;
    switch (key) {
    case HW_SORT_ACCESSES:
        if (hw_profile_counts_periods(text->view->profile)) {
            hw_buffer_add(out, "Most used: %s", HW_OF(hw_profile_access_total(all), "word period"));
            break;
        }
        hw_buffer_add(out, "Most accesses: ");
        hw_text_add_accesses(out, all->reads, all->writes, all->unsplit, "", is_lower_bound(all));
        break;
    case HW_SORT_DENSITY:
        hw_buffer_add(out, "Most accesses per byte, on average over blocks");
        break;
    case HW_SORT_COLD:
        cold_title(text, out);
        break;
    case HW_SORT_UNTOUCHED:
        untouched_title(text, out);
        break;
    case HW_SORT_NEVER_ACCESSED:
        blocks_title("Never accessed", by_whom(text->view), all->never_accessed, all->blocks, out);
        break;
    case HW_SORT_NEVER_READ:
        blocks_title("Written but never read", by_whom(text->view), all->written_never_read, all->blocks, out);
        break;
    default:
        hw_buffer_add(out, "Shared between threads: %s of %u B", HW_OF(all->shared_granules, "granule"),
                      hw_text_granule(text->view));
        if (all->lines_false_shared)
            hw_buffer_add(out, ", %s falsely", HW_OF(all->lines_false_shared, "cache line"));
    }
}

/* ---- facts ---- */

/* By words: how many are used at all, and in how many periods. */
static void word_facts(const struct hw_text *text, const struct hw_profile_context *sum, struct hw_buffer *facts)
{
    const struct hw_profile_access *access = &sum->access->all;
    const uint64_t all = hw_profile_access_total(access);
    hw_buffer_add(facts, "%s%s (%s reads)\n", is_lower_bound(access) ? "at least " : "", HW_OF(all, "word period"),
                  HW_PERCENT((double)access->reads, (double)all));
    hw_buffer_add(facts, "%s of words used", HW_PERCENT((double)access->granules_touched, (double)access->granules));
    if (access->utilization_min != access->utilization_max)
        hw_buffer_add(facts, " (a block: %s to %s)", HW_PERCENT(access->utilization_min, 10000),
                      HW_PERCENT(access->utilization_max, 10000));
    hw_buffer_add(facts, "\n");
}

static void amount_facts(const struct hw_text *text, const struct hw_profile_context *sum, struct hw_buffer *facts)
{
    const struct hw_profile_access *access = &sum->access->all;
    const uint64_t all = hw_profile_access_total(access);
    if (hw_profile_counts_periods(text->view->profile)) {
        word_facts(text, sum, facts);
        return;
    }
    hw_text_add_accesses(facts, access->reads, access->writes, access->unsplit, "access", is_lower_bound(access));
    if (all && access->blocks > 1 && access->accesses_min != access->accesses_max)
        hw_buffer_add(facts, "\n%s to %s a block", HW_COUNT(access->accesses_min), HW_COUNT(access->accesses_max));
    hw_buffer_add(facts, "\n");
    if (!all)
        return;
    hw_buffer_add(facts, "%s per byte", HW_RATIO(hw_text_per_byte(access)));
    if (access->lifetime_density_total)
        hw_buffer_add(facts, ", %s per byte and second",
                      HW_RATIO((double)access->lifetime_density_total / 1000 / (double)access->blocks));
    hw_buffer_add(facts, "\n");
    if (!hw_view_measured(text->view, HW_MEASURED_GRANULES))
        return;
    hw_buffer_add(facts, "%s touched", HW_PERCENT((double)access->granules_touched, (double)access->granules));
    if (access->utilization_min != access->utilization_max)
        hw_buffer_add(facts, " (a block: %s to %s)", HW_PERCENT(access->utilization_min, 10000),
                      HW_PERCENT(access->utilization_max, 10000));
    hw_buffer_add(facts, "\n");
}

static void unused_facts(const struct hw_profile_access *access, struct hw_buffer *facts)
{
    if (access->never_accessed && access->never_accessed < access->blocks)
        hw_buffer_add(facts, "%s never accessed\n", HW_OF(access->never_accessed, "block"));
    if (access->written_never_read)
        hw_buffer_add(facts, "%s written but never read\n",
                      access->written_never_read == access->blocks ? "all blocks"
                                                                   : HW_OF(access->written_never_read, "block"));
}

/* Who does what to granules that several threads touch: only readers, one writer, several writers. */
static void sharing_facts(const struct hw_profile_access *access, struct hw_buffer *facts)
{
    const struct {
        uint64_t count;
        const char *what;
    } parts[] = {{access->shared_granules - access->shared_written, "only read"},
                 {access->shared_written - access->shared_writers, "written by one thread"},
                 {access->shared_writers, "written by several"}};
    bool any = false;
    if (access->shared_granules)
        hw_buffer_add(facts, "%s shared by threads\n", HW_OF(access->shared_granules, "granule"));
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (!parts[i].count)
            continue;
        hw_buffer_add(facts, "%s%s %s", any ? ", " : "", HW_MANY(parts[i].count), parts[i].what);
        any = true;
    }
    if (any)
        hw_buffer_add(facts, "\n");
    /* With granules of 64 bytes: nothing of the two. */
    if (access->lines_false_shared || access->lines_true_shared) {
        hw_buffer_add(facts, "%s falsely shared", HW_OF(access->lines_false_shared, "cache line"));
        if (access->lines_true_shared)
            hw_buffer_add(facts, ", %s truly", HW_MANY(access->lines_true_shared));
        hw_buffer_add(facts, "\n");
    }
    if (access->lines_handed_over)
        hw_buffer_add(facts, "%s handed over: filled by one thread, used by another\n",
                      HW_OF(access->lines_handed_over, "cache line"));
}

void hw_text_access_facts(struct hw_text *text, const struct hw_profile_context *sum, struct hw_buffer *facts)
{
    const struct hw_profile_access *access = &sum->access->all;
    const char *type = hw_view_type(text->view, sum);
    if (type)
        hw_buffer_add(facts, "type %s\n", hw_page_clean(&text->page, &text->cleaned, type));
    else if (access->flags & HW_ACCESS_TYPES_DIFFER)
        hw_buffer_add(facts, "several types\n");
    const struct hw_view_module *owner = hw_view_uncounted_owner(text->view, sum);
    if (owner)
        hw_buffer_add(facts, "accesses by %s are not counted\n",
                      hw_page_clean(&text->page, &text->cleaned, owner->name));
    else if (hw_view_used_unseen(text->view, sum))
        hw_buffer_add(facts, "used by code that does not count, too\n");
    if (!access->blocks) {
        hw_buffer_add(facts, "accesses not known\n");
        return;
    }
    if (access->never_accessed == access->blocks)
        hw_buffer_add(facts, "%s%s\n", owner ? "no other accesses" : "never accessed",
                      owner ? "" : by_whom(text->view));
    else
        amount_facts(text, sum, facts);
    unused_facts(access, facts);
    sharing_facts(access, facts);
    if (access->not_owned)
        hw_buffer_add(facts, "%s may count a neighbour's accesses\n",
                      access->not_owned == access->blocks ? "its blocks" : HW_OF(access->not_owned, "block"));
}

/* ---- all blocks ---- */

void hw_text_access_totals(struct hw_text *text)
{
    const struct hw_profile_access *all = &text->view->profile->access.all;
    const unsigned granule = hw_text_granule(text->view);
    struct hw_buffer facts = {0};
    if (!hw_view_measured(text->view, HW_MEASURED_GRANULES))
        return;
    fputc('\n', text->page.stream);
    const struct uncounted of = uncounted_of(text->view);
    hw_buffer_add(&facts, "%s of %s never accessed%s\n", HW_COUNT(all->never_accessed), HW_OF(all->blocks, "block"),
                  by_whom(text->view));
    if (of.never_accessed)
        hw_buffer_add(&facts, "%s of these allocated in %s, whose accesses are not counted\n",
                      HW_COUNT(of.never_accessed), hw_page_clean(&text->page, &text->cleaned, of.first->name));
    if (text->view->profile->access_info.flags & HW_ACCESS_SPLIT)
        hw_buffer_add(&facts, "%s written but never read\n", HW_COUNT(all->written_never_read));
    hw_buffer_add(&facts, "%s of %s never touched", HW_BYTES(hw_untouched_granules(all) * granule),
                  HW_BYTES(all->granules * granule));
    if (of.untouched)
        hw_buffer_add(&facts, " (%s of it in such blocks)", HW_BYTES(of.untouched * granule));
    hw_buffer_add(&facts, "\n");
    const struct hw_view_module *first;
    const size_t unseen = hw_view_uncounted_libraries(text->view, false, &first);
    if (unseen)
        hw_buffer_add(&facts, "%s%s not counted\n", hw_page_clean(&text->page, &text->cleaned, first->name),
                      unseen > 1 ? " and others are" : " is");
    if (text->view->profile->process.threads_seen > 1 || hw_profile_access_shared(all))
        hw_buffer_add(&facts, "%s shared between threads\n", HW_BYTES(all->shared_granules * granule));
    if (all->lines_false_shared)
        hw_buffer_add(&facts, "%s falsely shared\n", HW_OF(all->lines_false_shared, "cache line"));
    hw_page_facts(&text->page, 5, hw_buffer_text(&facts));
    text->failed |= facts.failed;
    hw_buffer_free(&facts);
}

/* ---- globals ---- */

#define SYMBOL_COLUMN 48
#define REMARK_COLUMN 20

/* "counts, limits", in text->line. */
static const char *symbol_names(struct hw_text *text, const struct hw_view_global *global)
{
    hw_buffer_clear(&text->line);
    for (uint32_t i = 0; i < global->symbol_count; i++)
        hw_buffer_add(&text->line, "%s%s", i ? ", " : "",
                      hw_page_clean(&text->page, &text->cleaned, global->symbols[i].name));
    return hw_buffer_text(&text->line);
}

/* Whether the names of an entry are too long for its line. */
static bool names_are_apart(struct hw_text *text, const struct hw_view_global *global)
{
    return global->symbol_count > 1 && hw_text_width(symbol_names(text, global)) > text->page.width - SYMBOL_COLUMN;
}

/* "counts", "counts, limits", "7 variables", "parser+0x4010 (.rodata)". In text->name. */
static const char *global_name(struct hw_text *text, const struct hw_view_global *global)
{
    const struct hw_view_module *module = global->module == HW_NONE ? NULL : &text->view->modules[global->module];
    hw_buffer_clear(&text->name);
    if (names_are_apart(text, global)) {
        hw_buffer_add(&text->name, "%u variables", (unsigned)global->symbol_count);
    } else if (global->symbol_count) {
        hw_buffer_add(&text->name, "%s", symbol_names(text, global));
    } else {
        if (module)
            hw_buffer_add(&text->name, "%s+", hw_page_clean(&text->page, &text->cleaned, module->name));
        hw_buffer_add(&text->name, "0x%" PRIx64, global->address);
        if (global->section)
            hw_buffer_add(&text->name, " (%s)", hw_page_clean(&text->page, &text->cleaned, global->section));
    }
    return hw_buffer_text(&text->name);
}

static void print_remark(struct hw_text *text, const struct hw_view_global *global)
{
    const struct hw_view_module *module = global->module == HW_NONE ? NULL : &text->view->modules[global->module];
    struct hw_buffer facts = {0};
    if (names_are_apart(text, global))
        hw_page_wrap(&text->page, REMARK_COLUMN, "", symbol_names(text, global));
    if (module && global->symbol_count && !(module->flags & HW_MAP_MAIN))
        hw_buffer_add(&facts, "in %s\n", hw_page_clean(&text->page, &text->cleaned, module->name));
    if (global->symbol_count > 1)
        hw_buffer_add(&facts, "in the same granules\n");
    if (global->in_shared_granules)
        hw_buffer_add(&facts, "up to %s more, in granules it shares with others\n",
                      HW_MANY(global->in_shared_granules));
    if (global->shared_granules)
        hw_buffer_add(&facts, "%s shared by threads, %s\n", HW_OF(global->shared_granules, "granule"),
                      global->shared_writers   ? "several write"
                      : global->shared_written ? "one writes"
                                               : "all only read");
    if (global->lines_false || global->lines_true)
        hw_buffer_add(&facts, "in %s\n",
                      global->lines_false ? HW_OF(global->lines_false, "falsely shared line")
                                          : HW_OF(global->lines_true, "truly shared line"));
    if (global->lines_handed)
        hw_buffer_add(&facts, "handed over: filled by one thread, used by another\n");
    if (global->saturated)
        hw_buffer_add(&facts, "at least: cells reached their limit\n");
    hw_page_facts(&text->page, REMARK_COLUMN, hw_buffer_text(&facts));
    text->failed |= facts.failed;
    hw_buffer_free(&facts);
}

static uint64_t total_of(const struct hw_view_global *global)
{
    return hw_add_saturating(hw_add_saturating(global->reads, global->writes), global->unsplit);
}

static void print_global(struct hw_text *text, const struct hw_view_global *global, uint64_t whole)
{
    const struct hw_page *page = &text->page;
    const uint64_t told = hw_add_saturating(global->reads, global->writes);
    fprintf(page->stream, "%10s %8s %7s %10s %7s  ", HW_MANY(total_of(global)),
            HW_PERCENT((double)total_of(global), (double)whole),
            global->unsplit > told / 100 ? "-" : HW_PERCENT((double)global->reads, (double)told),
            HW_BYTES(global->size), global->size ? HW_RATIO((double)total_of(global) / (double)global->size) : "-");
    const char *name = global_name(text, global);
    hw_page_print(page, HW_NAME, "%s",
                  text->options->full ? name : hw_page_cut(page, &text->line, name, page->width - SYMBOL_COLUMN));
    fputc('\n', page->stream);
    print_remark(text, global);
}

void hw_text_globals(struct hw_text *text)
{
    const struct hw_page *page = &text->page;
    const struct hw_view *view = text->view;
    const uint64_t whole =
        hw_add_saturating(hw_add_saturating(view->global_reads, view->global_writes), view->global_unsplit);
    const size_t top = hw_text_top(text);
    size_t shown = 0;
    hw_buffer_clear(&text->line);
    const bool periods = hw_profile_counts_periods(view->profile);
    hw_buffer_add(&text->line, periods ? "Use of global variables" : "Accesses to global variables");
    if (view->profile->access_counted && view->global_count && periods) {
        hw_buffer_add(&text->line, ": %s", HW_OF(whole, "word period"));
    } else if (view->profile->access_counted && view->global_count) {
        hw_buffer_add(&text->line, ": ");
        hw_text_add_accesses(&text->line, view->global_reads, view->global_writes, view->global_unsplit, "", false);
    }
    hw_page_heading(page, hw_buffer_text(&text->line));
    if (!view->profile->access_counted) {
        hw_text_not_counted(text);
        return;
    }
    if (!view->global_count) {
        fputs(view->profile->access_info.flags & HW_ACCESS_HARVESTED ? "There were none.\n" : "They are not known.\n",
              page->stream);
        return;
    }
    hw_page_print(page, HW_FAINT, "%10s %8s %7s %10s %7s  %s", periods ? "periods" : "accesses", "share", "reads",
                  "size", "a byte", "symbol");
    fputc('\n', page->stream);
    while (shown < view->global_count && shown < top && !text->failed &&
           (text->options->top || !shown || total_of(&view->globals[shown]) >= whole / 1000))
        print_global(text, &view->globals[shown++], whole);
    if (shown < view->global_count)
        fprintf(page->stream, "%*s%s and %s more\n", SYMBOL_COLUMN, "", hw_page_ellipsis(page),
                HW_COUNT(view->global_count - shown));
}
