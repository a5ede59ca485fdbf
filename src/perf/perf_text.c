/* perf_text.c - see perf_text.h. */
#include "perf/perf_text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- data_src ---- */

/* Bits of union perf_mem_data_src, by their places in the number. */
enum { OP_LOAD = 1 << 1, OP_STORE = 1 << 2 };
enum {
    LEVEL_HIT = 1 << 1,
    LEVEL_MISS = 1 << 2,
    LEVEL_L1 = 1 << 3,
    LEVEL_LFB = 1 << 4,
    LEVEL_L2 = 1 << 5,
    LEVEL_L3 = 1 << 6,
    LEVEL_LOCAL_DRAM = 1 << 7,
    LEVEL_REMOTE_DRAM = 3 << 8,
    LEVEL_REMOTE_CACHE = 3 << 10,
    LEVEL_IO_OR_UNCACHED = 3 << 12,
};
enum { SNOOP_HITM = 1 << 4 };
/* mem_lvl_num. Numbers 5 and 6 are newer: another core's L2, and a cache on the memory's side. */
enum {
    NUMBER_L1 = 1,
    NUMBER_L2 = 2,
    NUMBER_L3 = 3,
    NUMBER_L4 = 4,
    NUMBER_L2_MHB = 5,
    NUMBER_MSC = 6,
    NUMBER_UNCACHED = 8,
    NUMBER_CXL = 9,
    NUMBER_IO = 10,
    NUMBER_ANY_CACHE = 11,
    NUMBER_LFB = 12,
    NUMBER_RAM = 13,
    NUMBER_PMEM = 14,
};

static enum hw_perf_level level_of_number(uint32_t number, bool remote)
{
    switch (number) {
    case NUMBER_L1:
        return remote ? HW_PERF_REMOTE_CACHE : HW_PERF_L1;
    case NUMBER_L2:
    case NUMBER_L2_MHB:
        return remote ? HW_PERF_REMOTE_CACHE : HW_PERF_L2;
    case NUMBER_L3:
    case NUMBER_L4:
        return remote ? HW_PERF_REMOTE_CACHE : HW_PERF_L3;
    case NUMBER_ANY_CACHE:
        return remote ? HW_PERF_REMOTE_CACHE : HW_PERF_UNKNOWN;
    case NUMBER_LFB:
        return HW_PERF_LFB;
    case NUMBER_RAM:
        return remote ? HW_PERF_REMOTE_DRAM : HW_PERF_DRAM;
    case NUMBER_MSC:
    case NUMBER_UNCACHED:
    case NUMBER_CXL:
    case NUMBER_IO:
    case NUMBER_PMEM:
        return HW_PERF_OTHER_MEMORY;
    default:
        return HW_PERF_UNKNOWN;
    }
}

static enum hw_perf_level level_of_bits(uint32_t bits)
{
    if (bits & LEVEL_MISS && !(bits & LEVEL_HIT)) /* the level that missed is said, not the one that served it */
        return HW_PERF_MISS;
    if (bits & LEVEL_REMOTE_DRAM)
        return HW_PERF_REMOTE_DRAM;
    if (bits & LEVEL_REMOTE_CACHE)
        return HW_PERF_REMOTE_CACHE;
    if (bits & LEVEL_LOCAL_DRAM)
        return HW_PERF_DRAM;
    if (bits & LEVEL_L3)
        return HW_PERF_L3;
    if (bits & LEVEL_L2)
        return HW_PERF_L2;
    if (bits & LEVEL_LFB)
        return HW_PERF_LFB;
    if (bits & LEVEL_L1)
        return HW_PERF_L1;
    return bits & LEVEL_IO_OR_UNCACHED ? HW_PERF_OTHER_MEMORY : HW_PERF_UNKNOWN;
}

static bool is_remote(enum hw_perf_level level)
{
    return level == HW_PERF_REMOTE_CACHE || level == HW_PERF_REMOTE_DRAM;
}

/* The word and the number of the level say the same; a kernel fills one of them, or both. A miss of memory: Intel's
 * words for what came from there ("L3 miss" with the bits of DRAM). */
struct hw_perf_source hw_perf_source_of(uint64_t data_src)
{
    const uint32_t operation = data_src & 31, bits = data_src >> 5 & 0x3fff, snoop = data_src >> 19 & 31,
                   number = data_src >> 33 & 15;
    const bool remote = data_src >> 37 & 1;
    struct hw_perf_source source = {0};
    const uint32_t beyond = LEVEL_LOCAL_DRAM | LEVEL_REMOTE_DRAM | LEVEL_REMOTE_CACHE;
    source.operation = operation & OP_LOAD    ? HW_PERF_LOAD
                       : operation & OP_STORE ? HW_PERF_STORE
                                              : HW_PERF_NO_OPERATION;
    source.level = level_of_bits(bits & beyond ? bits & ~(uint32_t)LEVEL_MISS : bits);
    if (source.level == HW_PERF_UNKNOWN)
        source.level = level_of_number(number, remote);
    else if (remote && source.level != HW_PERF_MISS)
        source.level = source.level == HW_PERF_DRAM || source.level == HW_PERF_REMOTE_DRAM ? HW_PERF_REMOTE_DRAM
                                                                                          : HW_PERF_REMOTE_CACHE;
    if (snoop & SNOOP_HITM)
        source.hitm = is_remote(source.level) ? HW_PERF_HITM_REMOTE : HW_PERF_HITM_LOCAL;
    return source;
}

/* The part of WORDS between NAME and the next '|', in BUFFER. */
static const char *part_of(const char *words, const char *name, char *buffer, size_t size)
{
    const char *at = strstr(words, name);
    const size_t length = at ? strcspn(at + strlen(name), "|\n") : 0;
    const size_t kept = length < size - 1 ? length : size - 1;
    memcpy(buffer, at ? at + strlen(name) : "", kept);
    buffer[kept] = '\0';
    return buffer;
}

static enum hw_perf_level level_of_words(const char *words)
{
    const bool remote = strstr(words, "Remote") != NULL, ram = strstr(words, "RAM") != NULL;
    if (ram)
        return remote ? HW_PERF_REMOTE_DRAM : HW_PERF_DRAM;
    if (remote)
        return HW_PERF_REMOTE_CACHE;
    if (strstr(words, "iss"))
        return HW_PERF_MISS;
    if (strstr(words, "L3") || strstr(words, "L4"))
        return HW_PERF_L3;
    if (strstr(words, "L2"))
        return HW_PERF_L2;
    if (strstr(words, "LFB") || strstr(words, "MAB"))
        return HW_PERF_LFB;
    if (strstr(words, "L1"))
        return HW_PERF_L1;
    return strstr(words, "Uncached") || strstr(words, "I/O") || strstr(words, "PMEM") || strstr(words, "CXL")
               ? HW_PERF_OTHER_MEMORY
               : HW_PERF_UNKNOWN;
}

struct hw_perf_source hw_perf_source_of_words(const char *words)
{
    char part[96];
    struct hw_perf_source source = {0};
    part_of(words, "|OP ", part, sizeof part);
    source.operation = strstr(part, "LOAD")    ? HW_PERF_LOAD
                       : strstr(part, "STORE") ? HW_PERF_STORE
                                               : HW_PERF_NO_OPERATION;
    source.level = level_of_words(part_of(words, "|LVL ", part, sizeof part));
    part_of(words, "|SNP ", part, sizeof part);
    if (strstr(part, "HitM") || strstr(part, "HITM"))
        source.hitm = is_remote(source.level) ? HW_PERF_HITM_REMOTE : HW_PERF_HITM_LOCAL;
    return source;
}

/* ---- words of a line ---- */

struct word {
    const char *at;
    size_t length;
};

static bool is_end(char c)
{
    return !c || c == '\n' || c == '\r';
}

/* The next word from *CURSOR on, which is behind it then. */
static struct word next_word(const char **cursor)
{
    const char *at = *cursor;
    while (*at == ' ' || *at == '\t')
        at++;
    const char *end = at;
    while (!is_end(*end) && *end != ' ' && *end != '\t')
        end++;
    *cursor = end;
    return (struct word){at, (size_t)(end - at)};
}

static bool read_digits(const char **at, const char *end, unsigned base, uint64_t *value)
{
    const char *start = *at;
    for (*value = 0; *at < end; (*at)++) {
        const int c = tolower((unsigned char)**at);
        const unsigned digit = c >= '0' && c <= '9' ? (unsigned)(c - '0') : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 : 16;
        if (digit >= base || *value > (UINT64_MAX - digit) / base)
            break;
        *value = *value * base + digit;
    }
    return *at > start;
}

/* All of WORD is a number. */
static bool is_number(struct word word, unsigned base, uint64_t *value)
{
    const char *at = word.at, *end = word.at + word.length;
    if (base == 16 && word.length > 2 && at[0] == '0' && at[1] == 'x')
        at += 2;
    return read_digits(&at, end, base, value) && at == end;
}

/* "37862.527660:" */
static bool is_time(struct word word, uint64_t *ns)
{
    const char *at = word.at, *end = word.at + word.length;
    uint64_t seconds, fraction, unit = 1000000000;
    if (!read_digits(&at, end, 10, &seconds) || at == end || *at++ != '.' || seconds > UINT64_MAX / unit - 1)
        return false;
    const char *digits = at;
    if (!read_digits(&at, end, 10, &fraction) || at - digits > 9 || at + 1 != end || *at != ':')
        return false;
    for (long i = at - digits; i > 0; i--)
        unit /= 10;
    *ns = seconds * 1000000000 + fraction * unit;
    return true;
}

/* "16905/16905", or one number for both. */
static bool is_process(struct word word, uint32_t *pid, uint32_t *tid)
{
    const char *at = word.at, *end = word.at + word.length;
    uint64_t first, second;
    if (!read_digits(&at, end, 10, &first))
        return false;
    second = first;
    if (at < end && *at == '/' && (at++, !read_digits(&at, end, 10, &second)))
        return false;
    if (at < end && *at == ':')
        at++;
    *pid = (uint32_t)first;
    *tid = (uint32_t)second;
    return at == end && first <= INT32_MAX && second <= INT32_MAX;
}

static bool begins(struct word word, const char *text)
{
    return word.length >= strlen(text) && memcmp(word.at, text, strlen(text)) == 0;
}

/* ---- lines ---- */

/* " [0x7ffe4a70e000(0x21000) @ 0x7ffffffde000 00:00 0 0]: rw-p [stack]" */
static enum hw_perf_line read_mapping(const char *at, struct hw_perf_mapping *mapping)
{
    uint64_t size;
    const char *end = at + strcspn(at, "\n");
    while (at < end && *at != '[')
        at++;
    if (end - at < 4 || memcmp(at, "[0x", 3))
        return HW_PERF_LINE_NOTHING;
    at += 3;
    if (!read_digits(&at, end, 16, &mapping->start) || end - at < 4 || memcmp(at, "(0x", 3))
        return HW_PERF_LINE_NOTHING;
    at += 3;
    if (!read_digits(&at, end, 16, &size) || mapping->start + size < mapping->start)
        return HW_PERF_LINE_NOTHING;
    mapping->end = mapping->start + size;
    const char *behind = strstr(at, "]: ");
    if (!behind || behind >= end)
        return HW_PERF_LINE_NOTHING;
    at = behind + 3;
    const struct word rights = next_word(&at), name = next_word(&at);
    mapping->writable = rights.length > 1 && rights.at[1] == 'w';
    mapping->kind = begins(name, "[stack")                         ? HW_PERF_REGION_STACK
                    : begins(name, "/") && !begins(name, "//anon") ? HW_PERF_REGION_FILE
                                                                   : HW_PERF_REGION_ANONYMOUS;
    return HW_PERF_LINE_MAPPING;
}

/* Behind the address. An IP has six digits at least: symbols may look like numbers. */
static void read_rest(const char *at, struct hw_perf_sample *sample)
{
    const size_t length = strcspn(at, "\n");
    const char *words = memchr(at, '|', length);
    uint64_t number;
    if (words) {
        const char *cursor = at;
        struct word last = {at, 0};
        while (cursor < words) {
            const char *before = cursor;
            const struct word word = next_word(&cursor);
            if (before == cursor || word.at >= words)
                break;
            last = word;
        }
        sample->has_source = true;
        if (last.at + last.length <= words && is_number(last, 16, &number))
            sample->source = hw_perf_source_of(number);
        else
            sample->source = hw_perf_source_of_words(words);
        for (const char *next = words; (next = memchr(next + 1, '|', (size_t)(at + length - next - 1)));)
            words = next;
        at = words + 1;
    }
    for (;;) {
        const struct word word = next_word(&at);
        const char *ahead = at;
        const struct word next = next_word(&ahead);
        uint64_t ip;
        if (!word.length)
            return;
        if (is_number(word, 10, &number) && next.length >= 6 && is_number(next, 16, &ip)) {
            sample->weight = number;
            sample->has_weight = true;
            sample->ip = ip;
            return;
        }
        if (word.length >= 6 && is_number(word, 16, &sample->ip))
            return;
        sample->ip = 0;
    }
}

static enum hw_perf_line read_comment(const char *line)
{
    static const char clock[] = "# clockid: ";
    if (!strncmp(line, "# perf version : ", 17))
        return HW_PERF_LINE_HEADER;
    if (strncmp(line, clock, sizeof clock - 1))
        return HW_PERF_LINE_NOTHING;
    return strncmp(line + sizeof clock - 1, "monotonic (", 11) ? HW_PERF_LINE_OTHER_CLOCK : HW_PERF_LINE_MONOTONIC;
}

enum hw_perf_line hw_perf_read_line(const char *line, struct hw_perf_sample *sample, struct hw_perf_mapping *mapping)
{
    const char *at = line;
    bool known = false;
    struct word word;
    *sample = (struct hw_perf_sample){0};
    *mapping = (struct hw_perf_mapping){0};
    if (*line == '#')
        return read_comment(line);
    /* The process is the last one before the time; the name before it may have spaces and numbers. */
    for (;;) {
        word = next_word(&at);
        if (!word.length)
            break;
        if (is_time(word, &sample->time_ns))
            break;
        known |= is_process(word, &sample->pid, &sample->tid);
    }
    if (!word.length) { /* a frame of a call stack is indented and begins with an address */
        const char *first = line;
        const struct word frame = next_word(&first);
        uint64_t address;
        return !frame.length || (line[0] != frame.at[0] && is_number(frame, 16, &address)) || *line == '\t'
                   ? HW_PERF_LINE_NOTHING
                   : HW_PERF_LINE_UNREAD;
    }
    const char *behind_time = at;
    word = next_word(&at);
    if (begins(word, "PERF_RECORD_")) {
        mapping->time_ns = sample->time_ns;
        const struct word process = next_word(&at);
        uint32_t tid;
        return begins(word, "PERF_RECORD_MMAP") && is_process(process, &mapping->pid, &tid)
                   ? read_mapping(at, mapping)
                   : HW_PERF_LINE_NOTHING;
    }
    if (!known)
        return HW_PERF_LINE_UNREAD;
    /* Behind the event's name, if there is one: it ends with a colon; before it there may be a period. */
    for (int i = 0; i < 3 && word.length; i++, word = next_word(&at))
        if (word.at[word.length - 1] == ':') {
            behind_time = at;
            break;
        }
    at = behind_time;
    if (!is_number(next_word(&at), 16, &sample->address))
        return HW_PERF_LINE_UNREAD;
    read_rest(at, sample);
    return HW_PERF_LINE_SAMPLE;
}
