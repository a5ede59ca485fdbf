/* mix.c - see mix.h. The text is lines of words: a key, then numbers. */
#include "allocators/mix.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const hw_mix_kind_names[HW_MIX_KINDS] = {"malloc", "calloc", "realloc", "aligned", "free"};

struct out {
    char *text;
    size_t size, used;
};

__attribute__((format(printf, 2, 3))) static void add(struct out *out, const char *format, ...)
{
    va_list arguments;
    if (out->used >= out->size)
        return;
    va_start(arguments, format);
    const int length = vsnprintf(out->text + out->used, out->size - out->used, format, arguments);
    va_end(arguments);
    out->used += length > 0 ? (size_t)length : 0;
}

size_t hw_mix_print(const struct hw_mix *mix, char *text, size_t size)
{
    struct out out = {text, size, 0};
    add(&out, "mix 1\nseed %" PRIu64 "\nthreads %u\nlive %" PRIu64 "\nlimit %" PRIu64 "\nfresh %" PRIu64 "\n",
        mix->seed, mix->threads, mix->live_most, mix->limit, mix->fresh);
    for (unsigned b = 0; b < HW_SIZE_BUCKETS; b++) {
        const struct hw_mix_bucket *bucket = &mix->of[b];
        uint64_t all = 0;
        for (int phase = 0; phase < HW_MIX_PHASES; phase++)
            for (int kind = 0; kind < HW_MIX_FREE; kind++)
                all += bucket->count[phase][kind];
        if (all == 0)
            continue;
        for (int phase = 0; phase < HW_MIX_PHASES; phase++) {
            add(&out, "count %u %d", b, phase);
            for (int kind = 0; kind < HW_MIX_FREE; kind++)
                add(&out, " %" PRIu64, bucket->count[phase][kind]);
            add(&out, "\n");
        }
        add(&out, "lives %u %" PRIu64 " %" PRIu64, b, bucket->kept, bucket->crossed);
        for (int k = 0; k < HW_MIX_LIFE_BITS; k++)
            add(&out, " %" PRIu64, bucket->lives[k]);
        add(&out, "\n");
    }
    add(&out, "end\n");
    return out.used < out.size ? out.used : 0;
}

/* Reads COUNT numbers of the line at *TEXT. */
static bool numbers(const char **text, uint64_t *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char *end;
        *text += strspn(*text, " ");
        values[i] = strtoull(*text, &end, 10);
        if (end == *text)
            return false;
        *text = end;
    }
    return **text == '\n';
}

static bool take_bucket(struct hw_mix *mix, const char **text, bool lives)
{
    uint64_t values[2 + HW_MIX_LIFE_BITS + 1];
    if (!numbers(text, values, lives ? 3 + HW_MIX_LIFE_BITS : 2 + HW_MIX_FREE) || values[0] >= HW_SIZE_BUCKETS)
        return false;
    struct hw_mix_bucket *bucket = &mix->of[values[0]];
    if (lives) {
        bucket->kept = values[1];
        bucket->crossed = values[2];
        memcpy(bucket->lives, values + 3, sizeof bucket->lives);
        return true;
    }
    if (values[1] >= HW_MIX_PHASES)
        return false;
    memcpy(bucket->count[values[1]], values + 2, sizeof bucket->count[0]);
    return true;
}

static bool take_line(struct hw_mix *mix, const char **text)
{
    char key[16];
    uint64_t value;
    const size_t length = strcspn(*text, " \n");
    if (length >= sizeof key)
        return false;
    memcpy(key, *text, length);
    key[length] = '\0';
    *text += length;
    if (strcmp(key, "count") == 0 || strcmp(key, "lives") == 0)
        return take_bucket(mix, text, *key == 'l');
    if (!numbers(text, &value, 1))
        return false;
    if (strcmp(key, "mix") == 0)
        return value == 1;
    if (strcmp(key, "seed") == 0)
        mix->seed = value;
    else if (strcmp(key, "threads") == 0)
        mix->threads = value < HW_MIX_THREADS_MOST ? (uint32_t)value : HW_MIX_THREADS_MOST;
    else if (strcmp(key, "live") == 0)
        mix->live_most = value;
    else if (strcmp(key, "limit") == 0)
        mix->limit = value;
    else if (strcmp(key, "fresh") == 0)
        mix->fresh = value;
    else
        return false;
    return true;
}

bool hw_mix_parse(struct hw_mix *mix, const char *text)
{
    memset(mix, 0, sizeof *mix);
    while (strncmp(text, "end\n", 4) != 0) {
        if (!*text || !take_line(mix, &text))
            return false;
        text++;
    }
    return mix->threads > 0;
}

uint64_t hw_mix_allocations(const struct hw_mix *mix, int phase)
{
    uint64_t all = 0;
    for (unsigned b = 0; b < HW_SIZE_BUCKETS; b++)
        for (int kind = 0; kind < HW_MIX_FREE; kind++)
            all += mix->of[b].count[phase][kind];
    return all;
}
