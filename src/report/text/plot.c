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

/* Heapwise's own memory, where it was read: by time, the greatest heap until then beside it. In between it is taken to
 * grow as that does, since it is mostly what is kept for each block. viewer/src/timeline.ts does the same. */
struct own {
    size_t count;
    struct {
        uint64_t time_ns, bytes, greatest;
    } at[HW_MOMENT_DUMP + 2]; /* the first one is the start */
};

static uint64_t greatest_until(const struct hw_profile *profile, uint64_t time_ns)
{
    uint64_t greatest = 0;
    for (size_t i = 0; i < profile->timeline_count && profile->timeline[i].time_ns <= time_ns; i++)
        greatest = hw_not_negative(profile->timeline[i].live_bytes) > greatest
                       ? hw_not_negative(profile->timeline[i].live_bytes)
                       : greatest;
    return greatest;
}

static void read_own(struct own *own, const struct hw_profile *profile)
{
    *own = (struct own){.count = 1};
    for (size_t i = 0; i < profile->memory_count; i++) {
        const struct hw_memory_breakdown *memory = &profile->memory[i];
        bool latest = memory->moment <= HW_MOMENT_DUMP && memory->runtime; /* later ones of a moment replace it */
        for (size_t k = i + 1; k < profile->memory_count; k++)
            latest &= profile->memory[k].moment != memory->moment;
        const uint64_t time_ns = hw_profile_ticks_to_ns(profile, memory->tick);
        size_t at = own->count;
        if (!latest)
            continue;
        for (; at > 1 && own->at[at - 1].time_ns > time_ns; at--)
            own->at[at] = own->at[at - 1];
        own->at[at].time_ns = time_ns;
        own->at[at].bytes = memory->runtime;
        own->at[at].greatest = greatest_until(profile, time_ns);
        own->count++;
    }
}

static uint64_t own_at(const struct own *own, uint64_t time_ns, uint64_t greatest)
{
    size_t next = 1;
    while (next < own->count && own->at[next].time_ns < time_ns)
        next++;
    if (next == own->count)
        return own->at[next - 1].bytes;
    const double bytes = (double)own->at[next - 1].bytes, change = (double)own->at[next].bytes - bytes;
    const double grown = (double)own->at[next].greatest - (double)own->at[next - 1].greatest;
    const double passed = (double)own->at[next].time_ns - (double)own->at[next - 1].time_ns;
    const double share = grown > 0 && change > 0 ? ((double)greatest - (double)own->at[next - 1].greatest) / grown
                         : passed > 0            ? ((double)time_ns - (double)own->at[next - 1].time_ns) / passed
                                                 : 1;
    return (uint64_t)(bytes + change * (share < 0 ? 0 : share > 1 ? 1 : share));
}

static void measure(struct plot *plot, const struct hw_profile *profile)
{
    struct own own;
    uint64_t greatest = 0;
    read_own(&own, profile);
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
            greatest = live > greatest ? live : greatest;
            if (points[next].rss_bytes) {
                const uint64_t part = own_at(&own, points[next].time_ns, greatest);
                rss = points[next].rss_bytes > part ? points[next].rss_bytes - part : 0;
            }
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

const char *hw_plot_cell(const struct hw_plot_scale *scale, uint64_t live, uint64_t rss, unsigned row)
{
    static const char *const eighths[] = {" ",      "\u2581", "\u2582", "\u2583", "\u2584",
                                          "\u2585", "\u2586", "\u2587", "\u2588"};
    const unsigned bottom = row * 8; /* eighths of a row high */
    const double unit = scale->rows * 8 / (double)scale->most;
    double height = (double)live * unit;
    if (live && height < 1)
        height = 1; /* little is not nothing */
    const unsigned level = (unsigned)(height + 0.5);
    const unsigned part = level <= bottom ? 0 : level - bottom > 8 ? 8 : level - bottom;
    const unsigned resident = (unsigned)((double)rss * unit + 0.5);
    const bool dot = scale->rss && resident > bottom && resident <= bottom + 8 && part < 8;
    if (dot && resident > level + 2)
        return scale->utf8 ? "\u00b7" : ".";
    return scale->utf8 ? eighths[part] : part >= 4 ? "#" : part ? "_" : " ";
}

static const char *cell(const struct plot *plot, bool utf8, unsigned c, unsigned row)
{
    const struct hw_plot_scale scale = {plot->scale, ROWS, plot->rss_fits, utf8};
    return hw_plot_cell(&scale, plot->live[c], plot->rss[c], row);
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
    const uint64_t rss = hw_view_peak_rss(profile), part = hw_view_own_memory(profile);
    const bool apart = part && part < rss;
    if (plot.rss_fits)
        fprintf(page->stream, "   %s resident%s %s\n", dots, apart ? ", at most about" : " (RSS), at most",
                HW_BYTES(apart ? rss - part : rss));
    else if (plot.most_rss)
        fprintf(page->stream, "\n%*sresident%s %s, does not fit this scale\n", LABEL, "",
                apart ? ", at most about" : " (RSS), at most", HW_BYTES(apart ? rss - part : rss));
    else
        fprintf(page->stream, "   resident memory was not read\n");
    if (plot.most_rss && apart)
        fprintf(page->stream, "%*sRSS with Heapwise's own memory: at most %s\n", LABEL, "", HW_BYTES(rss));
    return true;
}
