/* human.c - see human.h. */
#include "report/text/human.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "analysis/share.h"

const char *hw_human_bytes(char *buffer, uint64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024) {
        snprintf(buffer, HW_HUMAN, "%u B", (unsigned)bytes);
        return buffer;
    }
    double value = (double)bytes / 1024;
    size_t unit = 0;
    while (value >= 1023.95 &&
           unit + 1 < sizeof units / sizeof *units) { /* what would round to 1024.0 is the next unit */
        value /= 1024;
        unit++;
    }
    snprintf(buffer, HW_HUMAN, "%.1f %s", value, units[unit]);
    return buffer;
}

const char *hw_human_count(char *buffer, uint64_t count)
{
    char digits[24];
    size_t length = (size_t)snprintf(digits, sizeof digits, "%llu", (unsigned long long)count);
    char *out = buffer;
    for (size_t i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0)
            *out++ = ',';
        *out++ = digits[i];
    }
    *out = '\0';
    return buffer;
}

const char *hw_human_of(char *buffer, uint64_t count, const char *noun)
{
    hw_human_count(buffer, count);
    const size_t used = strlen(buffer), length = strlen(noun);
    const char *plural = length && noun[length - 1] == 's' ? "es" : "s";
    snprintf(buffer + used, HW_HUMAN - used, " %s%s", noun, count == 1 ? "" : plural);
    return buffer;
}

/* Three significant digits: 1.52, 15.2, 152. */
static void three_digits(char *buffer, double value, const char *unit)
{
    int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    snprintf(buffer, HW_HUMAN, "%.*f %s", decimals, value, unit);
}

const char *hw_human_many(char *buffer, uint64_t count)
{
    static const char *const units[] = {"M", "G", "T", "P", "E"};
    if (count < 10000000)
        return hw_human_count(buffer, count);
    double value = (double)count / 1e6;
    size_t unit = 0;
    while (value >= 999.5 && unit + 1 < sizeof units / sizeof *units) {
        value /= 1000;
        unit++;
    }
    three_digits(buffer, value, units[unit]);
    return buffer;
}

const char *hw_human_ratio(char *buffer, double ratio)
{
    if (ratio >= 99.95)
        return hw_human_many(buffer, ratio < 1e18 ? (uint64_t)(ratio + 0.5) : (uint64_t)1e18);
    if (ratio > 0 && ratio < 0.005)
        snprintf(buffer, HW_HUMAN, "<0.01");
    else
        snprintf(buffer, HW_HUMAN, "%.*f", ratio < 9.995 ? 2 : 1, ratio);
    return buffer;
}

const char *hw_human_ns(char *buffer, uint64_t ns, bool utf8)
{
    const double seconds = (double)ns / 1e9;
    if (ns < 1000)
        snprintf(buffer, HW_HUMAN, "%u ns", (unsigned)ns);
    else if (ns < 999500)
        three_digits(buffer, (double)ns / 1e3, utf8 ? "\u00b5s" : "us");
    else if (ns < 999500000)
        three_digits(buffer, (double)ns / 1e6, "ms");
    else if (seconds < 59.95)
        three_digits(buffer, seconds, "s");
    else {
        const uint64_t whole = (uint64_t)(seconds + 0.5);
        if (whole < 3600)
            snprintf(buffer, HW_HUMAN, "%u min %02u s", (unsigned)(whole / 60), (unsigned)(whole % 60));
        else
            snprintf(buffer, HW_HUMAN, "%llu h %02u min", (unsigned long long)(whole / 3600),
                     (unsigned)(whole / 60 % 60));
    }
    return buffer;
}

const char *hw_human_change(char *buffer, double old, double new)
{
    if (old == new) {
        *buffer = '\0';
    } else if (new / old >= 100) {
        hw_human_count(buffer, (uint64_t)(new / old));
        strcat(buffer, " times");
    } else {
        hw_human_hundredths(buffer, fabs(new - old) / old);
        if (*buffer != '<') {
            memmove(buffer + 1, buffer, strlen(buffer) + 1);
            *buffer = new > old ? '+' : '-';
        }
    }
    return buffer;
}

const char *hw_human_percent(char *buffer, double part, double whole)
{
    return hw_human_hundredths(buffer, hw_share(part, whole));
}

const char *hw_human_hundredths(char *buffer, double ratio)
{
    const double percent = 100 * ratio;
    if (isnan(ratio))
        memcpy(buffer, "-", 2);
    else if (percent > 0 && percent < 0.05)
        snprintf(buffer, HW_HUMAN, "<0.1 %%");
    else if (percent >= 99.95 && ratio < 1)
        snprintf(buffer, HW_HUMAN, ">99.9 %%");
    else if (percent >= 99.95)
        snprintf(buffer, HW_HUMAN, "%.0f %%", percent);
    else
        snprintf(buffer, HW_HUMAN, "%.1f %%", percent);
    return buffer;
}
