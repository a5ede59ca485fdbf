/* options.c - HEAPWISE_OPTIONS and the name of the profile.
 *
 * The environment is read from /proc/self/environ because the first hook runs before libc has set up its own; where
 * /proc is missing libc's environ serves. */
#include "base/abi.h"
#include "base/launcher.h"
#include "runtime/access/access.h"
#include "runtime/core/core.h"
#include "runtime/core/file.h"

#include <sys/utsname.h>

struct hw_options hw_options;
extern char **environ __attribute__((weak));
extern void *__libc_stack_end __attribute__((weak)); /* glibc's: where the kernel put argc, argv and the environment */

/* HW_ABI_OUTPUT: the pattern that was given when the program was built. */
extern const char __heapwise_output[] __attribute__((weak, visibility("default")));

static uint64_t parse_size(const char *value)
{
    uint64_t number = hw_parse_u64(&value, 10);
    switch (*value | 0x20) {
    case 'k':
        return number << 10;
    case 'm':
        return number << 20;
    case 'g':
        return number << 30;
    default:
        return number;
    }
}

/* Seconds, with a fraction or without, in nanoseconds. */
static uint64_t parse_seconds(const char *value)
{
    uint64_t ns = hw_parse_u64(&value, 10), unit = 1000000000;
    ns = ns > UINT64_MAX / 2 / unit ? UINT64_MAX / 2 : ns * unit;
    if (*value == '.')
        for (value++; *value >= '0' && *value <= '9'; value++) {
            unit /= 10;
            ns += (uint64_t)(*value - '0') * unit;
        }
    return ns && ns < 1000000 ? 1000000 : ns; /* a file each millisecond is more than enough */
}

enum option_kind { OPTION_TEXT, OPTION_NAME, OPTION_U32, OPTION_SIZE, OPTION_HEX, OPTION_SECONDS };
static const struct option {
    const char *name;
    enum option_kind kind;
    void *value;
    const char *help; /* NULL: heapwise record and tests set it, nobody else needs it */
} option_table[] = {
    {"output", OPTION_TEXT, hw_options.output,
     "name of the profile: %e executable, %p pid, %h host, %n number, %c colon, %%"},
    {"session", OPTION_HEX, &hw_options.session, NULL},
    {"launcher", OPTION_HEX, &hw_options.launcher, NULL},
    {"pid-namespace", OPTION_SIZE, &hw_options.pid_namespace, NULL},
    {"start", OPTION_NAME, hw_options.start, "off: count nothing until heapwise start PID"},
    {"mode", OPTION_NAME, hw_options.mode, "heap, or allocator: what the allocator itself does and costs"},
    {"dispatch", OPTION_U32, &hw_options.dispatch,
     "mode=allocator: 0: do not observe system calls inside the allocator"},
    {"operation-events", OPTION_NAME, hw_options.operation_events,
     "mode=allocator: events counted during operations: auto, software (the kernel's only), none"},
    {"sample-bytes", OPTION_SIZE, &hw_options.sample_bytes, "mean bytes between sampled allocations; 0: count all"},
    {"sample-accesses", OPTION_SIZE, &hw_options.sample_accesses,
     "sample memory accesses, times a second of CPU time, 1 to 1000; 0: no"},
    {"sample-period", OPTION_SIZE, &hw_options.sample_period,
     "accesses between two samples by the processor; 0: by sample-accesses"},
    {"event-sources", OPTION_TEXT, hw_options.event_sources, NULL},
    {"table", OPTION_SIZE, &hw_options.table_entries, "most contexts kept in memory; 0: no limit"},
    {"depth", OPTION_U32, &hw_options.depth, "most frames of a stack, 1 to 256"},
    {"free-stacks", OPTION_U32, &hw_options.free_stacks, "1: record where blocks are freed as well"},
    {"leaks", OPTION_U32, &hw_options.leaks,
     "1: at the end, find blocks that nothing points to; 2: pointers in memory that the program mapped count, too"},
    {"keeps", OPTION_U32, &hw_options.keeps, "1: with leaks=1: record what keeps the others"},
    {"contents", OPTION_U32, &hw_options.contents,
     "1: at the end and in dumps, examine what live blocks hold: copies, zeros, unused ends"},
    {"contents-fill", OPTION_U32, &hw_options.contents_fill,
     "1: with contents=1: fill new blocks, to see which bytes are never written"},
    {"contents-peak", OPTION_SIZE, &hw_options.contents_peak,
     "with contents=1: examine near the peak instead, from so many live bytes on"},
    {"contents-samples", OPTION_U32, &hw_options.contents_samples,
     "0: with contents=1: no bytes of blocks in the profile"},
    {"pinned", OPTION_U32, &hw_options.pinned,
     "1: at the end and in dumps, record which blocks keep pages resident that are mostly free"},
    {"valgrind-requests", OPTION_U32, &hw_options.valgrind_requests,
     "1: record blocks that the program announces to Valgrind; 2: and answer that Valgrind is there"},
    {"log-blocks", OPTION_SIZE, &hw_options.block_log,
     "1: log when and where each block lies, for heapwise import; or most bytes of that log (1G)"},
    {"block-table", OPTION_U32, &hw_options.block_table, NULL},
    {"dump-interval", OPTION_SECONDS, &hw_options.dump_interval_ns,
     "seconds (also 0.5) between dumps NAME.dumpN.hwprof; 0: none"},
    {"dump-at", OPTION_U32, &hw_options.dump_at,
     "percent: dump when memory passes that share of its limit (cgroup, ulimit -v, ulimit -d); 0: no"},
    {"cgroup-from", OPTION_TEXT, hw_options.cgroup_from, NULL},
    {"dump-signal", OPTION_U32, &hw_options.dump_signal,
     "signal that requests a dump; 0: none (62 when accesses are counted)"},
    {"windows", OPTION_U32, &hw_options.windows, "0: do not sample which fields are used at nearly the same time"},
    {"words-period", OPTION_U32, &hw_options.words_period_ms,
     "built with --granule=4: period of the sampler of used words, in milliseconds"},
    {"words-thread", OPTION_U32, &hw_options.words_thread,
     "0: no thread for the sampler of used words; allocations scan instead"},
    {"verbose", OPTION_U32, &hw_options.verbose, "1: print on standard error what the runtime does"},
};

static void print_help(void)
{
    hw_message("HEAPWISE_OPTIONS=key=value:key=value", NULL);
    for (size_t i = 0; i < sizeof option_table / sizeof *option_table; i++) {
        char line[256];
        struct hw_text text;
        if (!option_table[i].help)
            continue;
        hw_text_init(&text, line, sizeof line);
        hw_text_string(&text, "  ");
        hw_text_string(&text, option_table[i].name);
        hw_text_string(&text, "=");
        switch (option_table[i].kind) {
        case OPTION_TEXT:
        case OPTION_NAME:
            hw_text_string(&text, option_table[i].value);
            break;
        case OPTION_U32:
            if (*(uint32_t *)option_table[i].value == HW_NONE)
                hw_text_string(&text, "auto");
            else
                hw_text_u64(&text, *(uint32_t *)option_table[i].value);
            break;
        case OPTION_SECONDS:
            hw_text_u64(&text, *(uint64_t *)option_table[i].value / 1000000000);
            break;
        default:
            hw_text_u64(&text, *(uint64_t *)option_table[i].value);
        }
        while (text.used < 28)
            hw_text_char(&text, ' ');
        hw_text_string(&text, option_table[i].help);
        hw_message(line, NULL);
    }
}

static void set_option(const char *name, const char *value)
{
    for (size_t i = 0; i < sizeof option_table / sizeof *option_table; i++) {
        const struct option *option = &option_table[i];
        if (!hw_streq(option->name, name))
            continue;
        const char *cursor = value;
        switch (option->kind) {
        case OPTION_TEXT:
            hw_text_join(option->value, sizeof hw_options.output, value);
            break;
        case OPTION_NAME:
            hw_text_join(option->value, sizeof hw_options.mode, value);
            break;
        case OPTION_U32:
            *(uint32_t *)option->value = (uint32_t)hw_parse_u64(&cursor, 10);
            break;
        case OPTION_SIZE:
            *(uint64_t *)option->value = parse_size(value);
            break;
        case OPTION_SECONDS:
            *(uint64_t *)option->value = parse_seconds(value);
            break;
        case OPTION_HEX:
            *(uint64_t *)option->value = hw_parse_u64(&cursor, 16);
        }
        return;
    }
    if (hw_streq(name, "help"))
        print_help();
    else if (*name)
        hw_message("unknown key in HEAPWISE_OPTIONS (help=1 lists them): ", name);
}

static void parse_options(const char *text)
{
    hw_text_join(hw_options.text, sizeof hw_options.text, text);
    while (*text) {
        char name[64], value[sizeof hw_options.output];
        struct hw_text to;
        hw_text_init(&to, name, sizeof name);
        while (*text && *text != '=' && *text != ':')
            hw_text_char(&to, *text++);
        hw_text_init(&to, value, sizeof value);
        if (*text == '=')
            for (text++; *text && *text != ':'; text++)
                hw_text_char(&to, *text);
        if (*text == ':')
            text++;
        set_option(name, value);
    }
}

/* The runtime may be here before libc has set environ. */
static char **initial_environment(void)
{
    if (&environ && environ)
        return environ;
    if (!&__libc_stack_end || !__libc_stack_end)
        return NULL;
    return (char **)__libc_stack_end + *(long *)__libc_stack_end + 2;
}

/* The value of HEAPWISE_OPTIONS, in STORAGE when it had to be read from /proc; NULL when it is not set. */
static const char *find_variable(char *storage, size_t size)
{
    static const char name[] = "HEAPWISE_OPTIONS=";
    int fd = hw_open("/proc/self/environ", O_RDONLY, 0);
    if (fd < 0) {
        for (char **v = initial_environment(); v && *v; v++)
            if (hw_starts_with(*v, name))
                return *v + sizeof name - 1;
        return NULL;
    }
    const char *found = NULL;
    size_t matched = 0; /* characters of the present variable's name that agree; SIZE_MAX: another variable */
    struct hw_text value = {storage, size, 0};
    char buffer[1024];
    for (long n; !found && (n = hw_read_full(fd, buffer, sizeof buffer)) > 0;)
        for (long i = 0; i < n && !found; i++) {
            char c = buffer[i];
            if (matched == sizeof name - 1) {
                if (c)
                    hw_text_char(&value, c);
                else
                    found = storage;
            } else if (!c)
                matched = 0;
            else if (matched != SIZE_MAX)
                matched = c == name[matched] ? matched + 1 : SIZE_MAX;
        }
    hw_close(fd);
    return found;
}

void hw_options_read(void)
{
    static char storage[4096];
    if (!hw_memprof_output(hw_options.output, sizeof hw_options.output))
        hw_text_join(hw_options.output, sizeof hw_options.output, "%e.%p.hwprof");
    if (__heapwise_output && *__heapwise_output)
        hw_text_join(hw_options.output, sizeof hw_options.output, __heapwise_output);
    hw_text_join(hw_options.mode, sizeof hw_options.mode, "heap");
    hw_text_join(hw_options.start, sizeof hw_options.start, "on");
    hw_options.depth = HW_DEPTH_MAX;
    hw_options.dump_signal = HW_NONE;
    hw_options.windows = 1;
    hw_options.dispatch = 1;
    hw_text_join(hw_options.operation_events, sizeof hw_options.operation_events, "auto");
    hw_options.words_period_ms = 20;
    hw_options.words_thread = 1;
    hw_options.contents_samples = 1;
    const char *text = hw_attach_options();
    if (!text)
        text = find_variable(storage, sizeof storage);
    if (text)
        parse_options(text);
    if (hw_options.words_period_ms < 1 || hw_options.words_period_ms > 3600000)
        hw_options.words_period_ms = 20;
    if (hw_options.block_log == 1)
        hw_options.block_log = 1ull << 30;
    if (hw_options.depth < 1 || hw_options.depth > HW_DEPTH_MAX)
        hw_options.depth = HW_DEPTH_MAX;
    if (hw_options.dump_at > 99) {
        hw_message("HEAPWISE_OPTIONS: dump-at takes a percentage from 1 to 99, or 0; it is 99 now", NULL);
        hw_options.dump_at = 99;
    }
    if (hw_options.sample_accesses > 1000)
        hw_options.sample_accesses = 1000;
}

/* ---- the profile's name ---- */

void hw_output_executable(char *name, size_t size)
{
    char path[1024];
    hw_read_link("/proc/self/exe", path, sizeof path);
    hw_executable_name(name, size, path);
}

void hw_output_name(char *name, size_t size, const char *executable, unsigned attempt)
{
    struct utsname host;
    if (hw_sys(SYS_uname, &host) != 0)
        host.nodename[0] = 0;
    const struct hw_name_parts parts = {executable, host.nodename, hw_file_pid ? hw_file_pid : (uint64_t)hw_getpid()};
    hw_expand_name(name, size, hw_options.output, &parts, attempt);
}
