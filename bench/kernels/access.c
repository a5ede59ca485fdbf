/* access.c - ten small kernels, each with one way of using memory: access KERNEL [ROUNDS]
 *
 * Blocks come from malloc, every result is printed so that nothing is optimised away, and the plain program takes
 * between 0.1 and 2 seconds. The kernels do nothing to suit or to hinder a profiler: they are what -O2 makes of them.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))
/* Memory behind POINTER may have changed and may be looked at. */
#define KEEP(pointer) __asm__ volatile("" : : "r"(pointer) : "memory")

static uint64_t seed = 0x9e3779b97f4a7c15ull;

static inline uint64_t next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void *get(size_t size)
{
    void *block = malloc(size);
    if (!block)
        abort();
    return block;
}

/* Replaces blocks of 16 to 271 bytes at random; the first and the last byte of each are written. */
NOINLINE static uint64_t churn_blocks(long steps, uint64_t state)
{
    enum { SLOTS = 1024 };
    char *slots[SLOTS] = {0};
    uint64_t bytes = 0;
    for (long i = 0; i < steps; i++) {
        uint64_t r = next(&state);
        size_t size = 16 + (r >> 32) % 256;
        char **slot = &slots[r % SLOTS];
        free(*slot);
        *slot = get(size);
        (*slot)[0] = (char)r;
        (*slot)[size - 1] = (char)i;
        bytes += size;
    }
    for (int i = 0; i < SLOTS; i++)
        free(slots[i]);
    return bytes;
}

static uint64_t churn(long rounds)
{
    return churn_blocks(rounds * 1000000, seed);
}

/* Sixteen allocations from below forty frames, on one of two ways down. */
NOINLINE static uint64_t descend_left(int depth, uint32_t way);

NOINLINE static uint64_t bottom(uint32_t way)
{
    char *blocks[16];
    uint64_t sum = 0;
    for (int i = 0; i < 16; i++) {
        blocks[i] = get(24 + (way + (uint32_t)i) % 8 * 16);
        blocks[i][0] = (char)i;
    }
    for (int i = 0; i < 16; i++) {
        sum += (uint64_t)blocks[i][0];
        free(blocks[i]);
    }
    return sum;
}

NOINLINE static uint64_t descend_right(int depth, uint32_t way)
{
    uint64_t sum = depth == 0 ? bottom(way) : descend_left(depth - 1, way);
    KEEP(&way);
    return sum + (uint64_t)depth;
}

NOINLINE static uint64_t descend_left(int depth, uint32_t way)
{
    uint64_t sum = depth == 0 ? bottom(way) : way & 1 ? descend_left(depth - 1, way) : descend_right(depth - 1, way);
    KEEP(&way);
    return sum + (uint64_t)depth;
}

static uint64_t depth(long rounds)
{
    uint64_t sum = 0;
    for (long i = 0; i < rounds * 40000; i++)
        sum += descend_left(38, (uint32_t)i / 4);
    return sum;
}

/* Sums 256 KiB again and again. */
NOINLINE static uint64_t sum_of(const uint32_t *values, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return sum;
}

static uint64_t sum(long rounds)
{
    enum { COUNT = 65536 };
    uint32_t *values = get(COUNT * sizeof *values);
    uint64_t total = 0;
    for (size_t i = 0; i < COUNT; i++)
        values[i] = (uint32_t)next(&seed);
    for (long i = 0; i < rounds * 1000; i++) {
        total += sum_of(values, COUNT);
        KEEP(values);
    }
    free(values);
    return total;
}

/* Follows a ring through a million nodes in random order, each a block of its own. */
struct node {
    struct node *next;
    uint64_t value;
};

NOINLINE static uint64_t follow(const struct node *node, long steps)
{
    uint64_t sum = 0;
    for (long i = 0; i < steps; i++) {
        sum += node->value;
        node = node->next;
    }
    return sum;
}

static uint64_t chase(long rounds)
{
    enum { COUNT = 1000000 };
    struct node **nodes = get(COUNT * sizeof *nodes);
    for (size_t i = 0; i < COUNT; i++)
        nodes[i] = get(sizeof **nodes);
    for (size_t i = COUNT - 1; i > 0; i--) {
        size_t k = next(&seed) % (i + 1);
        struct node *node = nodes[i];
        nodes[i] = nodes[k];
        nodes[k] = node;
    }
    for (size_t i = 0; i < COUNT; i++) {
        nodes[i]->next = nodes[(i + 1) % COUNT];
        nodes[i]->value = i;
    }
    uint64_t sum = follow(nodes[0], rounds * COUNT);
    for (size_t i = 0; i < COUNT; i++)
        free(nodes[i]);
    free(nodes);
    return sum;
}

/* Shuffles structs of 32 bytes in place. */
struct record {
    uint64_t key, a, b, c;
};

NOINLINE static void shuffle_records(struct record *records, size_t count, uint64_t state)
{
    for (size_t i = count - 1; i > 0; i--) {
        size_t k = (uint32_t)next(&state) * (i + 1) >> 32;
        struct record record = records[i];
        records[i] = records[k];
        records[k] = record;
    }
}

static uint64_t shuffle(long rounds)
{
    enum { COUNT = 8192 };
    struct record *records = get(COUNT * sizeof *records);
    for (size_t i = 0; i < COUNT; i++)
        records[i] = (struct record){i, i + 1, i + 2, i + 3};
    for (long i = 0; i < rounds * 100; i++)
        shuffle_records(records, COUNT, next(&seed));
    uint64_t first = records[0].key;
    free(records);
    return first;
}

/* The textbook's matrix product, 256 by 256. */
NOINLINE static void multiply(double *c, const double *a, const double *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) {
            double sum = 0;
            for (size_t k = 0; k < n; k++)
                sum += a[i * n + k] * b[k * n + j];
            c[i * n + j] = sum;
        }
    }
}

static uint64_t matrix(long rounds)
{
    enum { SIDE = 256 };
    double *a = get(SIDE * SIDE * sizeof *a), *b = get(SIDE * SIDE * sizeof *b), *c = get(SIDE * SIDE * sizeof *c);
    for (size_t i = 0; i < SIDE * SIDE; i++) {
        a[i] = (double)(next(&seed) % 100);
        b[i] = (double)(next(&seed) % 100);
    }
    for (long i = 0; i < rounds; i++) {
        multiply(c, a, b, SIDE);
        KEEP(c);
    }
    uint64_t corner = (uint64_t)c[SIDE * SIDE - 1];
    free(a);
    free(b);
    free(c);
    return corner;
}

/* A table of chains: counts how often each of 50,000 keys came. */
struct entry {
    struct entry *next;
    uint64_t key, count;
};

NOINLINE static struct entry *look_up(struct entry **table, size_t mask, uint64_t key)
{
    struct entry **slot = &table[key * 0x9e3779b97f4a7c15ull >> 32 & mask];
    for (struct entry *entry = *slot; entry; entry = entry->next)
        if (entry->key == key)
            return entry;
    struct entry *entry = get(sizeof *entry);
    *entry = (struct entry){*slot, key, 0};
    return *slot = entry;
}

static uint64_t hash(long rounds)
{
    enum { SIZE = 65536, KEYS = 50000 };
    struct entry **table = calloc(SIZE, sizeof *table);
    uint64_t most = 0;
    for (long i = 0; i < rounds * 100000; i++) {
        struct entry *entry = look_up(table, SIZE - 1, next(&seed) % KEYS);
        if (++entry->count > most)
            most = entry->count;
    }
    for (size_t i = 0; i < SIZE; i++) {
        for (struct entry *entry = table[i], *rest; entry; entry = rest) {
            rest = entry->next;
            free(entry);
        }
    }
    free(table);
    return most;
}

/* Moves particles: eight fields of a struct, read and written. */
struct particle {
    float x, y, z, vx, vy, vz, mass;
    uint32_t steps;
};

NOINLINE static void move_particle(struct particle *p, float dt)
{
    p->x += p->vx * dt;
    p->y += p->vy * dt;
    p->z += p->vz * dt;
    if (p->x > 100 || p->x < 0)
        p->vx = -p->vx;
    if (p->y > 100 || p->y < 0)
        p->vy = -p->vy;
    if (p->z > 100 || p->z < 0)
        p->vz = -p->vz;
    p->steps++;
}

static uint64_t fields(long rounds)
{
    enum { COUNT = 4096 };
    struct particle **particles = get(COUNT * sizeof *particles);
    for (size_t i = 0; i < COUNT; i++) {
        particles[i] = get(sizeof **particles);
        *particles[i] =
            (struct particle){.x = (float)(i % 100), .y = (float)(i % 90), .z = 50, .vx = 1, .vy = 2, .vz = 3};
    }
    for (long r = 0; r < rounds * 20; r++)
        for (size_t i = 0; i < COUNT; i++)
            move_particle(particles[i], 0.25f);
    uint64_t steps = 0;
    for (size_t i = 0; i < COUNT; i++) {
        steps += particles[i]->steps + (uint64_t)particles[i]->z;
        free(particles[i]);
    }
    free(particles);
    return steps;
}

/* Two threads, each with blocks of its own. */
static void *churn_thread(void *rounds)
{
    return (void *)churn_blocks((intptr_t)rounds * 1000000, (uintptr_t)&rounds | 1);
}

static uint64_t threads(long rounds)
{
    pthread_t other;
    if (pthread_create(&other, NULL, churn_thread, (void *)rounds))
        abort();
    churn_thread((void *)rounds);
    pthread_join(other, NULL);
    return (uint64_t)rounds;
}

/* Copies 64 KiB between two blocks. */
static uint64_t copy(long rounds)
{
    enum { SIZE = 65536 };
    char *from = get(SIZE), *to = get(SIZE);
    memset(from, 1, SIZE);
    for (long i = 0; i < rounds * 10000; i++) {
        memcpy(to, from, SIZE);
        KEEP(to);
        from[i % SIZE] = (char)i;
    }
    uint64_t last = (uint64_t)to[SIZE - 1];
    free(from);
    free(to);
    return last;
}

/* Two threads sum one block of 4 KiB. Not one of the ten: it shows what reading together costs. */
static uint32_t *common;

static uint64_t read_common(long rounds)
{
    uint64_t sum = 0;
    for (long i = 0; i < rounds * 1000; i++) {
        sum += sum_of(common, 1024);
        KEEP(common);
    }
    return sum;
}

static void *read_thread(void *rounds)
{
    return (void *)read_common((intptr_t)rounds);
}

static uint64_t readers(long rounds)
{
    pthread_t other;
    common = calloc(1024, sizeof *common);
    if (!common || pthread_create(&other, NULL, read_thread, (void *)rounds))
        abort();
    uint64_t sum = read_common(rounds);
    pthread_join(other, NULL);
    free(common);
    return sum;
}

static const struct kernel {
    const char *name;
    uint64_t (*run)(long rounds);
    long rounds; /* when none are given */
} kernels[] = {
    {"churn", churn, 10},      {"depth", depth, 20},   {"sum", sum, 30},           {"chase", chase, 5},
    {"shuffle", shuffle, 100}, {"matrix", matrix, 20}, {"hash", hash, 200},        {"fields", fields, 1000},
    {"threads", threads, 10},  {"copy", copy, 20},     {"readers", readers, 2000},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof kernels / sizeof *kernels; i++) {
        if (strcmp(argv[1], kernels[i].name) == 0) {
            long rounds = argc > 2 ? atol(argv[2]) : kernels[i].rounds;
            printf("%s %ld: %llu\n", kernels[i].name, rounds, (unsigned long long)kernels[i].run(rounds));
            return 0;
        }
    }
    fprintf(stderr, "usage: access KERNEL [ROUNDS]\n");
    return 2;
}
