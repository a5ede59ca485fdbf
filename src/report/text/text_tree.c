/* text_tree.c - the tree of calls in a text report, from the root to the functions that allocate, or the other way.
 *
 * A call with one child in the tree and that child stand below one another: only branches are indented. Lines show
 * where a branch begins, and how far down it reaches. */
#include "report/text/text.h"

#include "report/text/human.h"
#include "report/view/groups.h"

#define LEAST_COLUMNS 24 /* that names get */
#define STEP          2

struct printing {
    struct hw_text *text;
    const struct hw_tree *tree;
    enum hw_measure_id measure;
    bool bottom_up;
    size_t column;          /* where names begin */
    size_t deeper;          /* nodes without room */
    struct hw_buffer rails; /* the lines before the name */
};

/* Where a branch begins; where its last sibling does; on the way to the next sibling; behind the last one. */
enum rail { FORK, LAST, PAST, BEHIND, RAILS };

static const char *rail_text(const struct hw_page *page, enum rail rail)
{
    static const char *const utf8[RAILS] = {"├ ", "└ ", "│ ", "  "}, *const ascii[RAILS] = {"+ ", "+ ", "| ", "  "};
    return (page->utf8 ? utf8 : ascii)[rail];
}

/* BRANCH: FORK or LAST when one begins here; RAILS: none does. */
static void print_call(const struct printing *printing, const struct hw_tree_node *node, enum rail branch)
{
    struct hw_text *text = printing->text;
    const struct hw_page *page = &text->page;
    const struct hw_view_frame frame = hw_text_frame(text->view, node->location, node->frame);
    char total[HW_HUMAN], self[HW_HUMAN];
    hw_text_measure(printing->measure, node->total, page->utf8, total);
    hw_text_measure(printing->measure, node->self, page->utf8, self);
    fprintf(page->stream, "%*s %8s", HW_RIGHT(10, total),
            HW_PERCENT((double)node->total, (double)printing->tree->whole));
    if (!printing->bottom_up)
        fprintf(page->stream, " %*s", HW_RIGHT(10, node->self ? self : "-"));
    const char *rails = hw_buffer_text(&printing->rails), *begins = branch == RAILS ? "" : rail_text(page, branch);
    hw_page_print(page, HW_FAINT, "  %s%s", rails, begins);
    const size_t indent = hw_text_width(rails) + hw_text_width(begins);
    const size_t mark = node->recurses ? hw_text_width(hw_page_ellipsis(page)) + 11 : 0;
    const size_t used = printing->column + indent + mark;
    hw_page_print(page, HW_NAME, "%s", hw_text_function(text, &frame, page->width > used + 8 ? page->width - used : 8));
    if (node->recurses)
        hw_page_print(page, HW_FAINT, " %s recursing", hw_page_ellipsis(page));
    fputc('\n', page->stream);
}

/* The node at INDEX and all below it. BRANCH is of its first line; the lines below continue it. */
static void print_below(struct printing *printing, uint32_t index, enum rail branch)
{
    const struct hw_tree *tree = printing->tree;
    const struct hw_page *page = &printing->text->page;
    const size_t before = printing->rails.used;
    const struct hw_tree_node *node = &tree->node[index];
    if (index)
        print_call(printing, node, branch);
    if (branch != RAILS)
        hw_buffer_add(&printing->rails, "%s", rail_text(page, branch == FORK ? PAST : BEHIND));
    while (node->children == 1) {
        node = &tree->node[tree->child[node->child]];
        print_call(printing, node, RAILS);
    }
    const size_t indent = hw_text_width(hw_buffer_text(&printing->rails)) + STEP;
    if (!printing->text->options->full && printing->column + indent + LEAST_COLUMNS > page->width)
        printing->deeper += node->children;
    else
        for (uint32_t i = 0; i < node->children; i++)
            print_below(printing, tree->child[node->child + i], i + 1 < node->children ? FORK : LAST);
    hw_buffer_cut(&printing->rails, before);
}

static void print_notes(const struct printing *printing)
{
    const struct hw_text *text = printing->text;
    const struct hw_page *page = &text->page;
    struct hw_buffer note = {0};
    hw_buffer_add(&note, "%s",
                  printing->bottom_up ? "Under each function: its callers."
                                      : "Under each function: what it calls. Self: allocated in it.");
    if (text->options->sums.least > 0)
        hw_buffer_add(&note, " Branches below %g %% are left out (--min-share).", 100 * text->options->sums.least);
    if (printing->deeper)
        hw_buffer_add(&note, " Too deep for this width: %s (--full shows them).", HW_OF(printing->deeper, "call"));
    fputc('\n', page->stream);
    hw_page_wrap(page, 0, "", hw_buffer_text(&note));
    printing->text->failed |= note.failed;
    hw_buffer_free(&note);
}

bool hw_text_tree(struct hw_text *text, enum hw_measure_id measure, void (*title)(struct hw_text *))
{
    const struct hw_page *page = &text->page;
    const struct hw_sums *sums = &text->options->sums;
    struct hw_tree tree;
    if (!hw_tree_make(&tree, text->view, measure, sums->bottom_up, sums->least, text->options->full))
        return false;
    struct printing printing = {.text = text,
                                .tree = &tree,
                                .measure = measure,
                                .bottom_up = sums->bottom_up,
                                .column = sums->bottom_up ? 21 : 32};
    title(text);
    hw_buffer_clear(&text->line);
    hw_buffer_add(&text->line, "Calls, %s: %s%s", sums->bottom_up ? "bottom up" : "top down",
                  hw_measures[measure].sentence, hw_view_sampled(text->view) ? " (estimated)" : "");
    hw_page_heading(page, hw_page_cut(page, &text->name, hw_buffer_text(&text->line), page->width));
    hw_page_print(page, HW_FAINT, "%10s %8s%s  %s", "total", "share", sums->bottom_up ? "" : "       self", "function");
    fputc('\n', page->stream);
    print_below(&printing, 0, RAILS);
    print_notes(&printing);
    text->failed |= printing.rails.failed;
    hw_buffer_free(&printing.rails);
    hw_tree_free(&tree);
    return true;
}
