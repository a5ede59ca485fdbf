/* arena.c - sessions that stay lie between requests that go: one in 40 has a session, of two blocks. With "arena" the
 * sessions are cut from mappings of their own. With "small" requests have the sizes of sessions, too, for allocators
 * that keep sizes apart. Prints the resident bytes at the end, as the kernel counts them, after malloc_trim(0). */
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define REQUESTS   400000u
#define EVERY      40u
#define POOL_BYTES (1u << 20)

struct session {
    char *name;
    uint64_t id, more[3];
};

static struct session *sessions[REQUESTS / EVERY];
static char *requests[REQUESTS];
static int pooled, small;

static void *take(size_t size)
{
    static char *pool, *end;
    size = (size + 15) & ~(size_t)15;
    if (pool == end || (size_t)(end - pool) < size) {
        pool = mmap(NULL, POOL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (pool == MAP_FAILED)
            exit(3);
        end = pool + POOL_BYTES;
    }
    pool += size;
    return pool - size;
}

__attribute__((noinline)) static struct session *new_session(uint64_t id)
{
    struct session *session = pooled ? take(sizeof *session) : malloc(sizeof *session);
    memset(session, 1, sizeof *session);
    session->id = id;
    return session;
}

__attribute__((noinline)) static char *new_name(uint64_t id)
{
    char *name = pooled ? take(24) : malloc(24);
    snprintf(name, 24, "session %lu", (unsigned long)id);
    return name;
}

__attribute__((noinline)) static char *new_request(size_t size)
{
    char *request = malloc(size);
    return memset(request, 2, size);
}

static uint64_t resident(void)
{
    unsigned long size, pages;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%lu %lu", &size, &pages) != 2)
        exit(4);
    fclose(file);
    return (uint64_t)pages * 4096;
}

int main(int argc, char **argv)
{
    uint64_t seed = 1;
    alarm(300);
    for (int i = 1; i < argc; i++) {
        pooled |= !strcmp(argv[i], "arena");
        small |= !strcmp(argv[i], "small");
    }
    for (size_t i = 0; i < REQUESTS; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        requests[i] = new_request(small ? 17 + (seed >> 33) % 32 : 50 + (seed >> 33) % 150);
        if (i % EVERY == 0) {
            sessions[i / EVERY] = new_session(i);
            sessions[i / EVERY]->name = new_name(i);
        }
    }
    for (size_t i = 0; i < REQUESTS; i++)
        free(requests[i]);
    malloc_trim(0);
    printf("%llu\n", (unsigned long long)resident());
    fflush(stdout);
    return 0;
}
