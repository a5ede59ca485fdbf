/* perf_source.c - see perf_source.h. */
#include "base/arch/x86_64/decode.h"
#include "base/sys.h"
#include "runtime/samples/perf_ring.h"
#include "runtime/samples/perf_source.h"

#define ALL_STORES 0x82d0u /* MEM_INST_RETIRED, MEM_UOPS_RETIRED before: umask, event */
#define ALL_LOADS  0x81d0u
#define PRECISE    2

/* DEVICES/A/B/C, up to SIZE bytes of it; the length, or -errno. */
static long read_part(const char *devices, const char *device, const char *folder, const char *name, char *buffer,
                      size_t size)
{
    char path[512];
    hw_text_join(path, sizeof path, devices, "/", device, folder ? "/" : "", folder ? folder : "", "/", name);
    return hw_read_file(path, buffer, size);
}

static bool device_type(const char *devices, const char *device, uint32_t *type)
{
    char text[32];
    const char *cursor = text;
    if (read_part(devices, device, NULL, "type", text, sizeof text) <= 0 || text[0] < '0' || text[0] > '9')
        return false;
    *type = (uint32_t)hw_parse_u64(&cursor, 10);
    return true;
}

/* Puts VALUE where a format such as "config1:0-15" or "config:0-7,32-35" says. */
static bool place_bits(const char *format, uint64_t value, struct hw_perf_event *event)
{
    uint64_t *word = hw_starts_with(format, "config:")    ? &event->config
                     : hw_starts_with(format, "config1:") ? &event->config1
                     : hw_starts_with(format, "config2:") ? &event->config2
                                                          : NULL;
    if (!word)
        return false;
    while (*format != ':')
        format++;
    do {
        format++;
        if (*format < '0' || *format > '9')
            return false;
        uint64_t low = hw_parse_u64(&format, 10), high = low;
        if (*format == '-') {
            format++;
            high = hw_parse_u64(&format, 10);
        }
        if (high > 63 || low > high)
            return false;
        for (uint64_t bit = low; bit <= high; bit++, value >>= 1)
            *word = (*word & ~(1ull << bit)) | (value & 1) << bit;
    } while (*format == ',');
    return true;
}

/* A term such as "umask=0x1": NAME of up to the '='. */
static bool place_term(const char *devices, const char *device, const char *name, uint64_t value,
                       struct hw_perf_event *event)
{
    char format[64];
    if (read_part(devices, device, "format", name, format, sizeof format) > 0)
        return place_bits(format, value, event);
    if (hw_streq(name, "event"))
        return place_bits("config:0-7", value, event);
    return hw_streq(name, "umask") && place_bits("config:8-15", value, event);
}

/* The event NAME of DEVICE. False when there is none, or it cannot be understood. */
static bool read_event(const char *devices, const char *device, const char *name, struct hw_perf_event *event)
{
    char text[256], term[32];
    if (read_part(devices, device, "events", name, text, sizeof text) <= 0)
        return false;
    for (const char *cursor = text; *cursor && *cursor != '\n';) {
        size_t length = 0;
        for (; *cursor && *cursor != '=' && *cursor != ',' && *cursor != '\n'; cursor++)
            if (length + 1 < sizeof term)
                term[length++] = *cursor;
        term[length] = '\0';
        uint64_t value = 1;
        if (*cursor == '=') {
            cursor++;
            bool hexadecimal = cursor[0] == '0' && (cursor[1] | 0x20) == 'x';
            cursor += hexadecimal ? 2 : 0;
            value = hw_parse_u64(&cursor, hexadecimal ? 16 : 10);
        }
        if (!length || !place_term(devices, device, term, value, event))
            return false;
        if (*cursor == ',')
            cursor++;
        else if (*cursor && *cursor != '\n')
            return false;
    }
    return true;
}

/* Loads and stores of one kind of core. */
static void add_core(const char *devices, const char *device, bool estimated, struct hw_perf_source *source)
{
    uint32_t type;
    if (!device_type(devices, device, &type))
        return;
    const struct hw_perf_event none = {.type = type, .precise = PRECISE};
    struct hw_perf_event loads = none, stores = none, leader = {.type = type, .leader = true};
    bool has_loads = read_event(devices, device, "mem-loads", &loads);
    bool has_stores = read_event(devices, device, "mem-stores", &stores);
    bool all = has_stores && (stores.config & 0xffff) == ALL_STORES;
    source->estimated_loads |= all && has_loads;
    if (all && !estimated) {
        loads = none;
        loads.config = ALL_LOADS;
        source->event[source->count++] = loads;
    } else if (has_loads) {
        if (read_event(devices, device, "mem-loads-aux", &leader))
            source->event[source->count++] = leader;
        source->event[source->count++] = loads;
        source->exact = false;
    }
    if (has_stores)
        source->event[source->count++] = stores;
    if (has_loads || has_stores)
        source->unsaid_flags = !has_loads ? HW_TOUCH_WRITE : !has_stores ? HW_TOUCH_READ : 0;
}

static bool find_ibs(const char *devices, struct hw_perf_source *source)
{
    struct hw_perf_event event = {0};
    char format[64];
    if (!device_type(devices, "ibs_op", &event.type))
        return false;
    /* Operations rather than cycles, where the processor can. */
    source->exact =
        read_part(devices, "ibs_op", "format", "cnt_ctl", format, sizeof format) > 0 && place_bits(format, 1, &event);
    event.with_kernel =
        read_part(devices, "ibs_op", "format", "swfilt", format, sizeof format) <= 0 || !place_bits(format, 1, &event);
    source->name = "IBS";
    source->event[source->count++] = event;
    return true;
}

bool hw_perf_source_find(const char *devices, bool estimated, struct hw_perf_source *source)
{
    static const char *const cores[] = {"cpu", "cpu_core", "cpu_atom"};
    *source = (struct hw_perf_source){.name = "PEBS", .exact = true};
    if (find_ibs(devices, source))
        return true;
    for (unsigned i = 0; i < sizeof cores / sizeof *cores && source->count + 3 <= HW_PERF_EVENTS; i++)
        add_core(devices, cores[i], estimated, source);
    return source->count != 0;
}

void hw_perf_attributes(const struct hw_perf_event *event, uint64_t period, uint64_t data,
                        struct perf_event_attr *attributes)
{
    *attributes = (struct perf_event_attr){
        .type = event->type,
        .size = sizeof *attributes,
        .config = event->config,
        .config1 = event->config1,
        .config2 = event->config2,
        .exclude_kernel = !event->with_kernel,
        .exclude_hv = !event->with_kernel,
    };
    if (event->leader)
        return;
    attributes->sample_period = period;
    attributes->sample_type = HW_PERF_SAMPLE_TYPE;
    attributes->sample_regs_user = HW_PERF_SAMPLE_REGISTERS;
    attributes->precise_ip = event->precise;
    attributes->disabled = 1;
    attributes->sigtrap = 1;
    attributes->remove_on_exec = 1;
    attributes->sig_data = data;
}

bool hw_perf_kernel_will_do(const char *release)
{
    uint64_t major = hw_parse_u64(&release, 10), minor = 0;
    if (*release == '.') {
        release++;
        minor = hw_parse_u64(&release, 10);
    }
    return major > 5 || (major == 5 && minor >= 18);
}
