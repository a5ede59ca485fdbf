/* text_source.c - the source of a function with what its lines allocate. */
#include "report/text/text.h"

#include "report/text/human.h"
#include "report/view/source.h"

#define NUMBERS 21 /* columns of the sums */

static void print_sum(struct hw_text *text, enum hw_measure_id measure, uint64_t value)
{
    char number[HW_HUMAN];
    fprintf(text->page.stream, "%*s ",
            HW_RIGHT(10, value ? hw_text_measure(measure, value, text->page.utf8, number) : "."));
}

static void print_line(struct hw_text *text, enum hw_measure_id measure, const struct hw_source_line *line,
                       size_t digits)
{
    const struct hw_page *page = &text->page;
    const size_t column = NUMBERS + 1 + digits + 2;
    const char *source = line->text ? hw_page_clean(page, &text->name, line->text) : "(not read)";
    print_sum(text, measure, line->self);
    print_sum(text, measure, line->total);
    hw_page_print(page, HW_FAINT, " %*u", (int)digits, (unsigned)line->number);
    if (*source && (text->options->full || page->width > column + 10))
        hw_page_print(page, line->counted ? HW_STRONG : HW_PLAIN, "  %s",
                      text->options->full ? source : hw_page_cut(page, &text->line, source, page->width - column));
    fputc('\n', page->stream);
}

static size_t digits_of(uint32_t number)
{
    size_t digits = 1;
    while (number /= 10)
        digits++;
    return digits;
}

static void print_file(struct hw_text *text, enum hw_measure_id measure, const struct hw_source_file *file)
{
    const struct hw_page *page = &text->page;
    const size_t digits = digits_of(file->line[file->line_count - 1].number);
    fputc('\n', page->stream);
    hw_page_print(page, HW_STRONG, "%s", hw_page_clean(page, &text->name, file->path ? file->path : file->name));
    fputc('\n', page->stream);
    hw_page_print(page, HW_FAINT, "%10s %10s  %*s", "self", "total", (int)digits, "");
    fputc('\n', page->stream);
    for (size_t i = 0; i < file->line_count; i++) {
        if (i && file->line[i].number > file->line[i - 1].number + 1)
            fprintf(page->stream, "%*s\n", HW_RIGHT(NUMBERS + 1 + digits, hw_page_ellipsis(page)));
        print_line(text, measure, &file->line[i], digits);
    }
}

static void print_notes(struct hw_text *text, const struct hw_source *source)
{
    const struct hw_page *page = &text->page;
    bool found = true;
    fputc('\n', page->stream);
    for (size_t i = 0; i < source->count; i++) {
        found &= source->file[i].path != NULL;
        if (source->file[i].problem)
            hw_page_wrap(page, 2, "! ", source->file[i].problem);
    }
    if (!found)
        hw_page_wrap(page, 0, "", "--source-path OLD=NEW says where files are whose paths begin with OLD.");
    hw_page_wrap(page, 0, "",
                 "Self: allocated by the line. Total: also by what it calls; each call stack counts once. The sums are "
                 "those of --by line.");
}

bool hw_text_source(struct hw_text *text, enum hw_measure_id measure, void (*title)(struct hw_text *),
                    struct hw_error *error)
{
    const struct hw_page *page = &text->page;
    const struct hw_source_options *options = text->options->sums.source;
    struct hw_source *source = hw_source_new(text->view, measure, text->options->full, options, error);
    if (!source)
        return false;
    title(text);
    hw_page_clean(page, &text->place, options->function);
    hw_buffer_clear(&text->line);
    hw_buffer_add(&text->line, "%s: %s%s", hw_buffer_text(&text->place), hw_measures[measure].sentence,
                  hw_view_sampled(text->view) ? " (estimated)" : "");
    hw_page_heading(page, hw_page_cut(page, &text->name, hw_buffer_text(&text->line), page->width));
    for (size_t i = 0; i < source->count; i++)
        print_file(text, measure, &source->file[i]);
    if (source->count)
        print_notes(text, source);
    else
        hw_page_wrap(
            page, 0, "",
            "Nothing of this is allocated in it or in what it calls, or its lines are not known. Lines are known "
            "of code with debug information (-g).");
    hw_source_free(source);
    return true;
}
