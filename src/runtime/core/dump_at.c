/* dump_at.c - dump-at=PERCENT: a dump when memory passes that share of its limit, before it is too late for one.
 *
 * What has a limit: memory of the cgroup (and of those around it), address space and data of the process. They are read
 * now and then, by the thread whose event comes next: what reading costs decides how often (budgets.c), but not when
 * live memory grows so fast that it might pass the mark and the limit in between. Between two events nothing is read: a program that fills one huge block at once reaches its limit unseen, but what the profile has
 * is then what the dump would have had. A process that begins beyond the mark has not passed it. A limit is passed again
 * when memory has been well below the mark in between. */
#include "base/cgroup.h"
#include "runtime/core/budgets.h"
#include "runtime/core/core.h"
#include "runtime/core/memory.h"

#include <sys/resource.h>
#include <time.h>

#define DUMPS_MOST 16 /* that a process writes for this */
#define BACK       8  /* below the mark by one part in so many: the next time counts again */
/* From one look to the next; sooner when live memory has grown by half of what is left up to the mark, and by this part
 * of the limit: */
#define LEAST_STEP 64
#define SOON_NS   1000000ull
#define LATEST_NS 100000000ull
#define RARELY_NS 1000000000ull /* where nothing has a limit: one may be set later */

enum limit { CGROUP, SPACE, DATA, LIMITS };

static struct {
    uint64_t next; /* tick of the next look */
    int64_t live, grows; /* live bytes then, and by how many more it is looked again before that */
    bool passed[LIMITS];
    bool looked;
    uint32_t dumps;
} at;

static struct hw_cgroup cgroup;
static bool cgroup_known;

bool hw_limits_cgroup(unsigned from, struct hw_cgroup_memory *memory)
{
    if (!cgroup_known)
        cgroup_known = hw_cgroup_find(&cgroup, hw_options.cgroup_from[0] ? hw_options.cgroup_from : "/proc/self");
    /* It may have been moved, and the old one removed. */
    return cgroup_known && (cgroup_known = hw_cgroup_read(&cgroup, from, memory));
}

/* NS in ticks, roughly. */
static uint64_t ticks(uint64_t ns)
{
    return hw_runtime.clock_is_tsc ? ns * 5 / 2 : ns;
}

void hw_dump_at_start(void)
{
    at.next = hw_options.dump_at ? 0 : UINT64_MAX;
    at.looked = false;
    at.dumps = 0;
    at.live = at.grows = 0;
}

/* Address space without what the runtime has reserved beside the program's limit. */
static bool read_space(uint64_t *used, uint64_t *limit)
{
    char text[128];
    uint64_t own;
    if (!hw_limits_space(limit, &own) || hw_read_file("/proc/self/statm", text, sizeof text) <= 0)
        return false;
    const char *cursor = text;
    *used = hw_parse_u64(&cursor, 10) * HW_PAGE;
    *used -= own < *used ? own : *used;
    return true;
}

static bool read_data(uint64_t *used, uint64_t *limit)
{
    static char text[4096];
    *limit = hw_soft_limit(RLIMIT_DATA);
    const char *value = *limit == ~0ull ? NULL : hw_status_of("/proc/self/status", "VmData:", text, sizeof text);
    *used = value ? hw_parse_u64(&value, 10) * 1024 : 0;
    return value;
}

static void add_mib(struct hw_text *text, uint64_t bytes)
{
    const uint64_t tenths = ((bytes >> 10) * 10 + 512) >> 10;
    hw_text_u64(text, tenths / 10);
    hw_text_char(text, '.');
    hw_text_u64(text, tenths % 10);
    hw_text_string(text, " MiB");
}

static void say_passed(enum limit which, uint64_t used, uint64_t limit, bool high)
{
    static const char *const names[LIMITS] = {[CGROUP] = "memory of the cgroup", [SPACE] = "address space",
                                              [DATA] = "data"};
    static const char *const limits[LIMITS] = {[SPACE] = " (ulimit -v)", [DATA] = " (ulimit -d)"};
    char line[200];
    struct hw_text text;
    hw_text_init(&text, line, sizeof line);
    hw_text_string(&text, names[which]);
    hw_text_string(&text, " passed ");
    hw_text_u64(&text, hw_options.dump_at);
    hw_text_string(&text, " % of its limit: ");
    add_mib(&text, used);
    hw_text_string(&text, " of ");
    add_mib(&text, limit);
    hw_text_string(&text, high ? " (memory.high)" : limits[which] ? limits[which] : "");
    hw_note_locked(HW_NOTE_DUMP_AT, line);
    if (hw_options.verbose)
        hw_message(line, NULL);
}

/* Whether a dump is to be written now; *LIMITED: whether memory has a limit at all; *LEFT: bytes up to the nearest mark.
 * Lock held. */
static bool look(bool *limited, uint64_t *left)
{
    struct {
        bool known, high;
        uint64_t used, limit;
    } now[LIMITS] = {{0}};
    struct hw_cgroup_memory memory;
    bool any = false, due = false;
    if (hw_limits_cgroup(hw_options.dump_at - hw_options.dump_at / BACK, &memory) && memory.limit) {
        now[CGROUP].known = true;
        now[CGROUP].used = memory.used;
        now[CGROUP].limit = memory.limit;
        now[CGROUP].high = memory.high;
    }
    now[SPACE].known = read_space(&now[SPACE].used, &now[SPACE].limit);
    now[DATA].known = read_data(&now[DATA].used, &now[DATA].limit);
    for (int i = 0; i < LIMITS; i++) {
        const uint64_t mark = now[i].limit / 100 * hw_options.dump_at;
        const bool beyond = now[i].known && now[i].used > mark;
        any |= now[i].known;
        if (now[i].known && !beyond) {
            const uint64_t more = mark - now[i].used, least = now[i].limit / LEAST_STEP;
            *left = more > least ? more < *left ? more : *left : least;
        }
        if (beyond && !at.passed[i] && at.looked && at.dumps < DUMPS_MOST) {
            say_passed((enum limit)i, now[i].used, now[i].limit, now[i].high);
            due = true;
        }
        at.passed[i] = beyond || (at.passed[i] && now[i].known && now[i].used > mark - mark / BACK);
    }
    at.looked = true;
    at.dumps += due;
    *limited = any;
    return due;
}

bool hw_dump_at_due(uint64_t tick, int64_t live)
{
    if (hw_likely(tick < at.next && live - at.live < at.grows) || at.next == UINT64_MAX || hw_quiet)
        return false;
    bool limited;
    uint64_t left = INT64_MAX;
    const uint64_t begin = hw_clock_read(CLOCK_THREAD_CPUTIME_ID);
    const bool due = look(&limited, &left);
    const uint64_t cost = hw_clock_read(CLOCK_THREAD_CPUTIME_ID) - begin,
                   pause = hw_budget_pause(HW_BUDGET_LIMITS, cost, SOON_NS);
    at.next = tick + ticks(!limited ? RARELY_NS : pause < LATEST_NS ? pause : LATEST_NS);
    at.live = live;
    at.grows = (int64_t)(left / 2);
    return due;
}

uint64_t hw_dump_at_next(uint64_t tick)
{
    return at.next == UINT64_MAX ? UINT64_MAX : tick + ticks(SOON_NS);
}
