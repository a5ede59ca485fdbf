/* pairs_report.c - see pairs_report.h. */
#include "cli/pairs_report.h"

#include <math.h>
#include <stdio.h>

#include "report/text/human.h"

#define TEXT HW_CHANGE_TEXT

static const char *amount(char *buffer, double value, enum hw_metric_unit unit)
{
    if (!(value > 0))
        snprintf(buffer, TEXT, "-");
    else if (unit == HW_UNIT_SECONDS)
        snprintf(buffer, TEXT,
                 value < 0.01 ? "%.3f ms"
                 : value < 1  ? "%.1f ms"
                              : "%.3f s",
                 value < 1 ? value * 1e3 : value);
    else if (unit == HW_UNIT_RATE && value < 1000)
        snprintf(buffer, TEXT, "%.2f", value);
    else
        snprintf(buffer, TEXT, "%s",
                 unit == HW_UNIT_BYTES ? HW_BYTES((uint64_t)llround(value)) : HW_MANY((uint64_t)llround(value)));
    return buffer;
}

const char *hw_change_text(char buffer[HW_CHANGE_TEXT], double ratio)
{
    if (ratio >= 3)
        snprintf(buffer, TEXT, "%.1f times", ratio);
    else
        snprintf(buffer, TEXT, "%+.1f %%", fabs(ratio - 1) < 0.0005 ? 0.0 : 100 * (ratio - 1));
    return buffer;
}

const char *hw_interval_text(char buffer[HW_CHANGE_TEXT], const struct hw_ratio *ratio)
{
    *buffer = '\0';
    if (!ratio->known)
        return buffer;
    if (ratio->high >= 3)
        snprintf(buffer, TEXT, "(%.1f to %.1f times)", ratio->low, ratio->high);
    else
        snprintf(buffer, TEXT, "(%+.1f to %+.1f %%)", 100 * (ratio->low - 1), 100 * (ratio->high - 1));
    return buffer;
}

void hw_pairs_print_head(const char *a, const char *b)
{
    printf("  %-14s %10s %10s %8s %s\n", "median", a, b, "change", "95 % interval");
}

void hw_pairs_print_row(const struct hw_pairs *pairs, enum hw_metric metric)
{
    static const char *const verdicts[] = {"", "no difference", "better", "worse"};
    const struct hw_metric_kind *kind = &hw_metric_kinds[metric];
    const struct hw_change change = hw_pairs_change(pairs, metric, 0);
    char a[TEXT], b[TEXT], value[TEXT] = "-", range[TEXT];
    if (metric >= HW_METRIC_RSS_AFTER && metric != HW_METRIC_FAULTS && !(change.a > 0) && !(change.b > 0))
        return;
    if (change.ratio.value > 0)
        hw_change_text(value, change.ratio.value);
    printf("  %-14s %10s %10s %8s", kind->title, amount(a, change.a, kind->unit), amount(b, change.b, kind->unit),
           value);
    if (change.ratio.known)
        printf(" %-18s %s", hw_interval_text(range, &change.ratio), verdicts[change.verdict]);
    putchar('\n');
}

json_t *hw_ratio_json(const struct hw_ratio *ratio)
{
    if (!(ratio->value > 0))
        return json_null();
    return json_pack("{s:f,s:o,s:o}", "value", ratio->value, "low", ratio->known ? json_real(ratio->low) : json_null(),
                     "high", ratio->known ? json_real(ratio->high) : json_null());
}

json_t *hw_known_json(double value)
{
    return value > 0 ? json_real(value) : json_null();
}

json_t *hw_text_json(const char *text)
{
    json_t *string = json_string(text);
    return string ? string : json_string("(not UTF-8)");
}
