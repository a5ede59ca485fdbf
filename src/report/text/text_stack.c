/* text_stack.c - frames and stacks as text. */
#include "report/text/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

struct hw_text hw_text_begin(const struct hw_view *view, const struct hw_report_options *options, FILE *stream)
{
    return (struct hw_text){.view = view,
                            .options = options,
                            .page = {.stream = stream,
                                     .width = options->width < 60 ? 60 : options->width,
                                     .color = options->color,
                                     .utf8 = options->utf8}};
}

bool hw_text_done(struct hw_text *text)
{
    const bool failed =
        text->failed || text->line.failed || text->name.failed || text->place.failed || text->cleaned.failed;
    hw_view_stack_free(&text->stack);
    hw_fold_free(&text->fold);
    hw_buffer_free(&text->line);
    hw_buffer_free(&text->name);
    hw_buffer_free(&text->place);
    hw_buffer_free(&text->cleaned);
    return !failed;
}

#define STACK_LINES    16 /* longer stacks are folded in the middle */
#define LEAST_NAME     16 /* columns of a function's name beside its place */
#define WIDEST_WRAPPER 40
#define WIDEST_OF_MANY 34 /* so that ", …" behind it fits into 80 columns, too */

/* ---- names ---- */

/* Copies "operator<" and its like, whose brackets are none. Returns the bytes of NAME that were used, 0 if it is not
 * one. */
static size_t copy_operator(struct hw_buffer *out, const char *name, bool at_word)
{
    static const char word[] = "operator";
    if (!at_word || strncmp(name, word, sizeof word - 1))
        return 0;
    size_t size = sizeof word - 1;
    if (!strncmp(name + size, "()", 2))
        size += 2;
    else
        size += strspn(name + size, "<>=!-");
    hw_buffer_bytes(out, name, size);
    return size;
}

/* Bytes of the bracketed text at NAME, which begins with OPEN; 0 when it is not closed. */
static size_t bracketed(const char *name, char open, char close)
{
    size_t depth = 0;
    for (size_t i = 0; name[i]; i++) {
        if (name[i] == open)
            depth++;
        else if (name[i] == close && !(close == '>' && i && name[i - 1] == '-') && --depth == 0)
            return i + 1;
    }
    return 0;
}

/* NAME with what stands between brackets OPEN and CLOSE left out. */
static void collapse(struct hw_buffer *out, const char *name, char open, char close, const char *ellipsis)
{
    hw_buffer_clear(out);
    for (size_t i = 0; name[i];) {
        const bool at_word = i == 0 || !(isalnum((unsigned char)name[i - 1]) || name[i - 1] == '_');
        size_t size = copy_operator(out, name + i, at_word);
        if (size) {
            i += size;
            continue;
        }
        const bool bracket = name[i] == open && strncmp(name + i, "(anonymous namespace)", 21);
        size = bracket && i ? bracketed(name + i, open, close) : 0;
        if (size > 2)
            hw_buffer_add(out, "%c%s%c", open, ellipsis, close);
        else
            hw_buffer_bytes(out, name + i, size ? size : 1);
        i += size ? size : 1;
    }
}

static void swap_name(struct hw_text *text)
{
    const struct hw_buffer swap = text->name;
    text->name = text->cleaned;
    text->cleaned = swap;
}

/* "<main::Record as core::clone::Clone>::clone" without the trait. */
static void leave_out_trait(struct hw_text *text)
{
    const char *name = hw_buffer_text(&text->name), *as = strstr(name, " as ");
    const size_t self = *name == '<' ? bracketed(name, '<', '>') : 0;
    if (!self || !as || as > name + self)
        return;
    hw_buffer_clear(&text->cleaned);
    hw_buffer_bytes(&text->cleaned, name, (size_t)(as - name));
    hw_buffer_add(&text->cleaned, " as %s>%s", hw_page_ellipsis(&text->page), name + self);
    swap_name(text);
}

/* Makes text->name fit: first without the returned type, then without parameters, without template arguments, without
 * the trait, and at last without its middle. */
static void shorten(struct hw_text *text, size_t columns)
{
    static const char brackets[][2] = {{'(', ')'}, {'<', '>'}};
    const char *ellipsis = hw_page_ellipsis(&text->page);
    if (hw_text_width(hw_buffer_text(&text->name)) > columns) {
        hw_buffer_clear(&text->cleaned);
        hw_buffer_add(&text->cleaned, "%s", hw_qualified_name(hw_buffer_text(&text->name)));
        swap_name(text);
    }
    for (size_t i = 0; i < 2 && hw_text_width(hw_buffer_text(&text->name)) > columns; i++) {
        collapse(&text->cleaned, hw_buffer_text(&text->name), brackets[i][0], brackets[i][1], ellipsis);
        swap_name(text);
    }
    if (hw_text_width(hw_buffer_text(&text->name)) > columns)
        leave_out_trait(text);
    const char *name = hw_buffer_text(&text->name);
    const size_t width = hw_text_width(name), mark = hw_text_width(ellipsis);
    if (width <= columns || columns <= mark)
        return;
    const size_t head = (columns - mark) / 3; /* of a qualified name both ends say something */
    hw_buffer_clear(&text->cleaned);
    hw_buffer_bytes(&text->cleaned, name, hw_text_cut(name, head));
    hw_buffer_add(&text->cleaned, "%s%s", ellipsis, name + hw_text_cut(name, width - (columns - mark - head)));
    swap_name(text);
}

const char *hw_text_function(struct hw_text *text, const struct hw_view_frame *frame, size_t columns)
{
    hw_buffer_clear(&text->name);
    if (frame->symbol->function) {
        hw_page_clean(&text->page, &text->name, frame->symbol->function);
    } else if (frame->module && frame->module->kind != HW_MODULE_GENERATED) {
        hw_page_clean(&text->page, &text->name, frame->module->name);
        hw_buffer_add(&text->name, "+0x%" PRIx64, frame->address);
    } else {
        hw_buffer_add(&text->name, "0x%" PRIx64, frame->address);
    }
    if (columns && !text->options->full)
        shorten(text, columns);
    return hw_buffer_text(&text->name);
}

const char *hw_text_place(struct hw_text *text, const struct hw_view_frame *frame)
{
    hw_buffer_clear(&text->place);
    const struct hw_frame *symbol = frame->symbol;
    if (symbol->file) {
        const char *slash = strrchr(symbol->file, '/');
        const char *file = slash && slash[1] && !text->options->full ? slash + 1 : symbol->file;
        hw_page_clean(&text->page, &text->place, file);
        if (symbol->line)
            hw_buffer_add(&text->place, ":%" PRIu32, symbol->line);
    } else if (symbol->relative_line) {
        hw_buffer_add(&text->place, "line %" PRIu32 " of it", symbol->relative_line);
    } else if (frame->module && frame->module->kind == HW_MODULE_GENERATED) {
        hw_buffer_add(&text->place, "generated code");
    } else if (frame->module && symbol->function) {
        hw_page_clean(&text->page, &text->place, text->options->full ? frame->module->path : frame->module->name);
    } else if (!frame->module) {
        hw_buffer_add(&text->place, "in no known module");
    }
    return hw_buffer_text(&text->place);
}

size_t hw_text_named(struct hw_text *text, const struct hw_view_frame *frame, size_t room, bool *placed)
{
    const char *place = hw_text_place(text, frame);
    const size_t width = *place ? 2 + hw_text_width(place) : 0;
    const bool fits = width + LEAST_NAME <= room;
    const char *function = hw_text_function(text, frame, fits ? room - width : room);
    const size_t used = hw_text_width(function);
    hw_page_print(&text->page, HW_NAME, "%s", function);
    *placed = !width || used + width <= room;
    if (width && *placed)
        hw_page_print(&text->page, HW_PLAIN, "  %s", place);
    return used + (*placed ? width : 0);
}

/* ---- stacks ---- */

bool hw_text_load(struct hw_text *text, uint32_t leaf)
{
    if (!hw_view_stack(text->view, leaf, &text->stack) ||
        !hw_fold_stack(&text->fold, &text->stack, STACK_LINES, text->options->full)) {
        text->failed = true;
        return false;
    }
    return text->stack.count > 0;
}

/* "… 12 times": after a function that calls itself, or on a line of its own for a group. */
static void print_times(struct hw_text *text, const struct hw_fold_item *item, const char *before)
{
    if (text->summed)
        hw_page_print(&text->page, HW_FAINT, "%s%s recursing", before, hw_page_ellipsis(&text->page));
    else
        hw_page_print(&text->page, HW_FAINT, "%s%s %" PRIu32 " times", before, hw_page_ellipsis(&text->page),
                      item->times);
}

static void print_frame(struct hw_text *text, const struct hw_fold_item *item, size_t columns)
{
    const struct hw_page *page = &text->page;
    const bool headline = item->frame == text->fold.headline;
    const struct hw_view_frame *frame = &text->stack.frames[item->frame];
    const char *place = hw_text_place(text, frame);
    const size_t room = page->width - 8, wide = hw_text_width(place); /* a place is never cut: the name is */
    const size_t rest = wide + LEAST_NAME < room ? room - wide : LEAST_NAME;
    const char *function = hw_text_function(text, frame, *place && rest < columns ? rest : columns);
    fprintf(page->stream, "    %s ", headline ? ">" : " ");
    hw_page_print(page, headline ? HW_STRONG : HW_PLAIN, "%s", function);
    const size_t width = hw_text_width(function);
    if (*place) {
        hw_page_pad(page, 2 + (width < columns && rest >= columns ? columns - width : 0));
        hw_page_print(page, HW_FAINT, "%s", place);
    }
    if (item->times > 1)
        print_times(text, item, "  ");
    fputc('\n', page->stream);
}

/* The column the functions get: as wide as they are when shortened to the room that the places leave. */
static size_t function_columns(struct hw_text *text)
{
    size_t widest = 0, place = 0;
    for (size_t i = 0; i < text->fold.count; i++) {
        if (text->fold.items[i].kind != HW_FOLD_FRAME)
            continue;
        size_t width = hw_text_width(hw_text_place(text, &text->stack.frames[text->fold.items[i].frame]));
        if (text->fold.items[i].times > 1)
            width += 14;
        place = width > place ? width : place;
    }
    if (place > text->page.width / 2) /* such lines are not aligned */
        place = text->page.width / 2;
    const size_t room = text->page.width - 6 - 2 - place;
    for (size_t i = 0; i < text->fold.count && widest < room; i++) {
        if (text->fold.items[i].kind != HW_FOLD_FRAME)
            continue;
        const struct hw_view_frame *frame = &text->stack.frames[text->fold.items[i].frame];
        const size_t width = hw_text_width(hw_text_function(text, frame, room));
        widest = width > widest ? width : widest;
    }
    return widest < room ? widest : room;
}

/* "2 allocation wrappers folded: ztrymalloc_usable_internal, zmalloc", as many names as there is room for. */
static void print_wrappers(struct hw_text *text, size_t count)
{
    const struct hw_page *page = &text->page;
    hw_buffer_clear(&text->line);
    hw_buffer_add(&text->line, "%s %zu allocation wrapper%s folded:", hw_page_ellipsis(page), count,
                  count == 1 ? "" : "s");
    for (size_t i = 0; i < count; i++) {
        const char *name = hw_text_function(text, &text->stack.frames[i],
                                            !i && count > 1 ? WIDEST_OF_MANY : WIDEST_WRAPPER);
        const size_t used = hw_text_width(hw_buffer_text(&text->line)) + hw_text_width(name) + 2;
        if (i && used + (i + 1 < count ? 3 : 0) + 6 > page->width) {
            hw_buffer_add(&text->line, ", %s", hw_page_ellipsis(page));
            break;
        }
        hw_buffer_add(&text->line, "%s %s", i ? "," : "", name);
    }
    hw_page_print(page, HW_FAINT, "      %s", hw_buffer_text(&text->line));
    fputc('\n', page->stream);
}

void hw_text_stack(struct hw_text *text)
{
    const struct hw_page *page = &text->page;
    const size_t columns = function_columns(text);
    for (size_t i = 0; i < text->fold.count; i++) {
        const struct hw_fold_item *item = &text->fold.items[i];
        if (item->kind == HW_FOLD_FRAME) {
            print_frame(text, item, columns);
        } else if (item->kind == HW_FOLD_WRAPPERS) {
            print_wrappers(text, item->frames);
        } else if (item->kind == HW_FOLD_GAP) {
            hw_page_print(page, HW_FAINT, "      %s %zu frames left out (--full shows them)", hw_page_ellipsis(page),
                          item->frames);
            fputc('\n', page->stream);
        } else {
            hw_page_print(page, HW_FAINT, "      these %zu frames ", item->frames);
            print_times(text, item, "");
            fputc('\n', page->stream);
        }
    }
}
