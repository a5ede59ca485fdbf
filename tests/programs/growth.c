/* growth.c - places that grow in known ways, and dumps at moments that the program writes down.
 *
 *     growth ROUNDS MILLISECONDS [reset | late | free]
 *
 * After each round it says "moment BEFORE AFTER NAME=BYTES …": the clock before and after the dump (ns), and what is
 * live of each function's blocks. All blocks of a function have one size. With `reset` counts are reset in the middle;
 * with `late` the program says "ready" and waits for its standard input after each round instead of dumping; with
 * `free` everything is freed at the end. */
#include "program.h"

#include <stdint.h>
#include <time.h>

#include "heapwise/heapwise.h"

enum { MOST = 200000, SIZE = 1000, BLOCKS_PER_MS = 2 };

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Each function has blocks of its own. */
struct kind {
    const char *name;
    void *(*allocate)(void);
    void **blocks;
    size_t count;
};

#define FUNCTION(name)                                                                                                 \
    NOINLINE static void *name(void)                                                                                   \
    {                                                                                                                  \
        void *block = malloc(SIZE);                                                                                    \
        KEEP(block);                                                                                                   \
        return block;                                                                                                  \
    }

FUNCTION(grow_steadily)
FUNCTION(grow_late)
FUNCTION(warm_up)
FUNCTION(saw_tooth)
FUNCTION(wander)
FUNCTION(stay)
FUNCTION(shrink)

enum { STEADILY, LATE, WARM_UP, SAW_TOOTH, WANDER, STAY, SHRINK, KINDS };

void **kept_steadily; /* a variable that keeps what grows: its name is looked for */
static struct kind kinds[KINDS] = {
    {"grow_steadily", grow_steadily, NULL, 0},
    {"grow_late", grow_late, NULL, 0},
    {"warm_up", warm_up, NULL, 0},
    {"saw_tooth", saw_tooth, NULL, 0},
    {"wander", wander, NULL, 0},
    {"stay", stay, NULL, 0},
    {"shrink", shrink, NULL, 0},
};

NOINLINE static void bring_to(struct kind *kind, size_t count)
{
    MUST(count <= MOST);
    while (kind->count < count)
        kind->blocks[kind->count++] = kind->allocate();
    while (kind->count > count)
        free(kind->blocks[--kind->count]);
}

/* One call for each kind: the compiler would make copies of a loop's body for the round in which something begins. */
NOINLINE static size_t wanted(int kind, unsigned round, unsigned begin, size_t so_far)
{
    static size_t at_begin, draw = 7, walk = 500;
    if (round == begin && kind == STEADILY)
        at_begin = so_far;
    switch (kind) {
    case STEADILY:
        return so_far;
    case LATE:
        return round > begin ? (so_far - at_begin) / 4 : 0;
    case WARM_UP:
        return round >= begin ? at_begin : so_far;
    case SAW_TOOTH:
        return (round % 6 + 1) * 100;
    case WANDER:
        draw = (draw * 1103515245u + 12345u) & 0xffffffffu;
        walk += (draw >> 16) % 2 ? 40 : (size_t)-40;
        return walk < 5000 ? walk : 0;
    case STAY:
        return 50;
    default:
        return so_far / 4 < 4000 ? 4000 - so_far / 4 : 0;
    }
}

int main(int argc, char **argv)
{
    MUST(argc >= 3);
    alarm(300);
    const unsigned rounds = (unsigned)atoi(argv[1]), milliseconds = (unsigned)atoi(argv[2]);
    const char *how = argc > 3 ? argv[3] : "";
    for (int i = 0; i < KINDS; i++) {
        MUST((kinds[i].blocks = calloc(MOST, sizeof(void *))));
        if (i == STEADILY)
            kept_steadily = kinds[i].blocks;
    }
    const uint64_t start = now_ns();
    for (unsigned round = 0; round < rounds; round++) {
        const struct timespec rest = {milliseconds / 1000, milliseconds % 1000 * 1000000};
        nanosleep(&rest, NULL);
        const uint64_t elapsed = now_ns() - start;
        const size_t so_far = (size_t)(elapsed / 1000000) * BLOCKS_PER_MS;
        for (int i = 0; i < KINDS; i++)
            bring_to(&kinds[i], wanted(i, round, rounds / 3, so_far));
        if (!strcmp(how, "reset") && round == rounds / 2)
            MUST(heapwise_reset() == 0);
        const uint64_t before = now_ns();
        if (!strcmp(how, "late")) {
            char told;
            say("ready\n");
            if (read(0, &told, 1) != 1)
                _exit(3);
        } else {
            MUST(heapwise_dump() == 0);
        }
        say("moment %llu %llu grow_steadily=%zu grow_late=%zu warm_up=%zu saw_tooth=%zu wander=%zu stay=%zu "
            "shrink=%zu\n",
            (unsigned long long)before, (unsigned long long)now_ns(), kinds[STEADILY].count * SIZE,
            kinds[LATE].count * SIZE, kinds[WARM_UP].count * SIZE, kinds[SAW_TOOTH].count * SIZE,
            kinds[WANDER].count * SIZE, kinds[STAY].count * SIZE, kinds[SHRINK].count * SIZE);
    }
    for (int i = 0; !strcmp(how, "free") && i < KINDS; i++)
        bring_to(&kinds[i], 0);
    return 0;
}
