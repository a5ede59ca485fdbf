/* plot.c - see plot.h.
 *
 * A column of the picture is an interval of time and shows the greatest values in it, so that a short peak is not lost
 * between two columns; where an interval has no point of its own, the last value still holds. */
#include "report/text/plot.h"

#include <string.h>

#include "report/text/human.h"
#include "report/view/view.h"

#define ROWS         8
#define LABEL        11 /* columns left of the axis */
#define MOST_COLUMNS 110

struct plot {
    uint64_t live[MOST_COLUMNS], rss[MOST_COLUMNS];
    unsigned columns;
    uint64_t most_live, most_rss, scale;
    bool rss_fits;
};

static void measure(struct plot *plot, const struct hw_profile *profile)
{
    const struct hw_profile_point *points = profile->timeline;
    const size_t count = profile->timeline_count;
    const uint64_t end =
        profile->duration_ns > points[count - 1].time_ns ? profile->duration_ns : points[count - 1].time_ns;
    uint64_t live = 0, rss = 0; /* of the latest point */
    size_t next = 0;
    for (unsigned c = 0; c < plot->columns; c++) {
        const double until = (double)end * (c + 1) / plot->columns;
        plot->live[c] = live;
        plot->rss[c] = rss;
        bool first = true;
        for (; next < count && ((double)points[next].time_ns < until || c + 1 == plot->columns); next++) {
            live = hw_not_negative(points[next].live_bytes);
            rss = points[next].rss_bytes ? points[next].rss_bytes : rss;
            plot->live[c] = first || live > plot->live[c] ? live : plot->live[c];
            plot->rss[c] = rss > plot->rss[c] ? rss : plot->rss[c];
            first = false;
        }
        /* The peak itself may lie between two points of the timeline. */
        if ((double)profile->peak_time_ns < until && profile->process.peak_bytes > plot->live[c] &&
            (double)profile->peak_time_ns >= (double)end * c / plot->columns)
            plot->live[c] = profile->process.peak_bytes;
        plot->most_live = plot->live[c] > plot->most_live ? plot->live[c] : plot->most_live;
        plot->most_rss = plot->rss[c] > plot->most_rss ? plot->rss[c] : plot->most_rss;
    }
    plot->rss_fits = plot->most_rss && plot->most_rss / 5 <= plot->most_live;
    plot->scale = plot->rss_fits && plot->most_rss > plot->most_live ? plot->most_rss : plot->most_live;
}

/* What stands at column C of the row whose bottom is BOTTOM eighths of a row high. */
static const char *cell(const struct plot *plot, bool utf8, unsigned c, unsigned row)
{
    static const char *const eighths[] = {" ",      "\u2581", "\u2582", "\u2583", "\u2584",
                                          "\u2585", "\u2586", "\u2587", "\u2588"};
    const unsigned bottom = row * 8;
    const double unit = ROWS * 8 / (double)plot->scale;
    double live = (double)plot->live[c] * unit;
    if (plot->live[c] && live < 1)
        live = 1; /* little is not nothing */
    const unsigned level = (unsigned)(live + 0.5);
    const unsigned part = level <= bottom ? 0 : level - bottom > 8 ? 8 : level - bottom;
    const unsigned rss = (unsigned)((double)plot->rss[c] * unit + 0.5);
    const bool dot = plot->rss_fits && rss > bottom && rss <= bottom + 8 && part < 8;
    if (dot && rss > level + 2)
        return utf8 ? "\u00b7" : ".";
    return utf8 ? eighths[part] : part >= 4 ? "#" : part ? "_" : " ";
}

static void print_row(const struct hw_page *page, const struct plot *plot, unsigned row)
{
    const bool top = row == ROWS - 1, half = row == ROWS / 2 - 1;
    const char *label = top ? HW_BYTES(plot->scale) : half ? HW_BYTES(plot->scale / 2) : "";
    fprintf(page->stream, "%*s %s", LABEL - 2, label, page->utf8 ? "\u2502" : "|");
    unsigned used = plot->columns;
    while (used && !strcmp(cell(plot, page->utf8, used - 1, row), " "))
        used--; /* no blanks at the end of lines */
    for (unsigned c = 0; c < used; c++)
        fputs(cell(plot, page->utf8, c, row), page->stream);
    fputc('\n', page->stream);
}

bool hw_plot_timeline(const struct hw_page *page, const struct hw_profile *profile)
{
    struct plot plot = {.columns = page->width - LABEL - 1};
    if (plot.columns > MOST_COLUMNS)
        plot.columns = MOST_COLUMNS;
    if (profile->timeline_count < 2)
        return false;
    measure(&plot, profile);
    if (!plot.scale)
        return false;
    for (unsigned row = ROWS; row-- > 0;)
        print_row(page, &plot, row);
    fprintf(page->stream, "%*s %s", LABEL - 2, "0 B", page->utf8 ? "\u2514" : "+");
    for (unsigned c = 0; c < plot.columns; c++)
        fputs(page->utf8 ? "\u2500" : "-", page->stream);
    const char *end = HW_NS(profile->duration_ns, page->utf8);
    fprintf(page->stream, "\n%*s0 s%*s%s\n", LABEL, "", (int)(plot.columns - 3 - hw_text_width(end)), "", end);
    const char *area = page->utf8 ? "\u2588" : "#", *dots = page->utf8 ? "\u00b7" : ".";
    fprintf(page->stream, "%*s%s live heap, at most %s", LABEL, "", area, HW_BYTES(plot.most_live));
    if (plot.rss_fits)
        fprintf(page->stream, "   %s resident (RSS), at most %s\n", dots, HW_BYTES(hw_view_peak_rss(profile)));
    else if (plot.most_rss)
        fprintf(page->stream, "\n%*sresident (RSS), at most %s, does not fit this scale\n", LABEL, "",
                HW_BYTES(hw_view_peak_rss(profile)));
    else
        fprintf(page->stream, "   resident memory was not read\n");
    return true;
}
