/* static_sqlite.c - SQLite, linked statically, with an allocator of the program in between that counts what passes. It
 * prints: allocations, frees, reallocations, bytes asked for by allocations. */
#include "program.h"

#include <malloc.h>
#include <sqlite3.h>
#include <stdio.h>

static long allocations, frees, reallocations, bytes;
static sqlite3_mem_methods usual;

/* SQLite asks its allocator for a header of its own with each block: here there is none. */
NOINLINE static void *counted_malloc(int size)
{
    void *block = malloc((size_t)size);
    allocations += block != NULL;
    bytes += block ? size : 0;
    HERE();
    return block;
}

NOINLINE static void counted_free(void *block)
{
    frees += block != NULL;
    free(block);
    HERE();
}

NOINLINE static void *counted_realloc(void *block, int size)
{
    void *fresh = realloc(block, (size_t)size);
    reallocations += fresh != NULL;
    HERE();
    return fresh;
}

static int size_of(void *block)
{
    return block ? (int)malloc_usable_size(block) : 0;
}

static int rounded(int size)
{
    return (size + 7) & ~7;
}

static int begin(void *unused)
{
    return SQLITE_OK;
}

static void end(void *unused)
{
}

int main(void)
{
    sqlite3_mem_methods mine = {counted_malloc, counted_free, counted_realloc, size_of, rounded, begin, end, NULL};
    sqlite3 *base;
    MUST(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &usual) == SQLITE_OK);
    MUST(sqlite3_config(SQLITE_CONFIG_MALLOC, &mine) == SQLITE_OK);
    MUST(sqlite3_open(":memory:", &base) == SQLITE_OK);
    MUST(sqlite3_exec(base, "create table t(a integer primary key, b text); begin", NULL, NULL, NULL) == SQLITE_OK);
    for (int i = 0; i < 2000; i++) {
        char *text = sqlite3_mprintf("insert into t(b) values('%d %d %d')", i, i * i, i * 7919);
        MUST(text && sqlite3_exec(base, text, NULL, NULL, NULL) == SQLITE_OK);
        sqlite3_free(text);
    }
    MUST(sqlite3_exec(base, "commit; create index i on t(b); select count(*) from t group by length(b)", NULL, NULL,
                      NULL) == SQLITE_OK);
    MUST(sqlite3_close(base) == SQLITE_OK);
    MUST(sqlite3_shutdown() == SQLITE_OK);
    printf("%ld %ld %ld %ld\n", allocations, frees, reallocations, bytes);
    return 0;
}
