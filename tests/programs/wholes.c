/* wholes.c - structs that are used as a whole: free_… in ways that are compiled anew with them, fixed_… as bytes.
 * test_fields.c checks what the profile says of each. Built by `heapwise cc --fields`. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
#define STRUCT(name)                                                                                                   \
    struct name {                                                                                                      \
        long first, second, third;                                                                                     \
    }

STRUCT(free_assigned);
STRUCT(free_copied);
STRUCT(free_cleared);
STRUCT(free_initialised);
STRUCT(free_literal);
STRUCT(free_passed);
STRUCT(free_returned);
STRUCT(free_inner);
STRUCT(free_sorted);
STRUCT(free_grown);
STRUCT(free_declared);
STRUCT(fixed_file);
STRUCT(fixed_descriptor);
STRUCT(fixed_compared);
STRUCT(fixed_to_buffer);
STRUCT(fixed_from_buffer);
STRUCT(fixed_union);
STRUCT(fixed_cast);
STRUCT(fixed_argument);
STRUCT(fixed_hashed);
STRUCT(fixed_elements);
STRUCT(fixed_inner);

struct free_pair { /* in registers */
    long first, second;
};
struct free_outer {
    long before;
    struct free_inner inner;
};
struct free_name { /* the name is no cast of the struct */
    char name[16];
    long first, second;
};
struct fixed_outer {
    long before;
    struct fixed_inner inner[2];
};

static volatile long sink;

/* A pointer to a NAME that nothing is known of. */
#define NEW(name, count)                                                                                               \
    struct name *name = calloc((count), sizeof *name);                                                                 \
    __asm__ volatile("" : "+r"(name));                                                                                 \
    name->first = 1;                                                                                                   \
    sink = name->first

static NOINLINE long pass(struct free_passed passed)
{
    return passed.second;
}

static NOINLINE struct free_returned give(const struct free_returned *from)
{
    return *from;
}

static NOINLINE struct free_pair swap(struct free_pair pair)
{
    return (struct free_pair){pair.second, pair.first};
}

static NOINLINE long own(struct free_declared *declared, size_t bytes)
{
    return declared->first + (long)bytes;
}

static NOINLINE unsigned hash(const void *data, size_t bytes)
{
    const unsigned char *at = data;
    unsigned sum = 0;
    for (size_t i = 0; i < bytes; i++)
        sum = sum * 31 + at[i];
    return sum;
}

static NOINLINE unsigned checksum(const uint8_t *at)
{
    return at[0];
}

static int compare(const void *left, const void *right)
{
    const struct free_sorted *a = left, *b = right;
    return (a->first > b->first) - (a->first < b->first);
}

static void frees(void)
{
    NEW(free_assigned, 2);
    free_assigned[1] = free_assigned[0];
    NEW(free_copied, 2);
    memcpy(&free_copied[1], free_copied, sizeof *free_copied);
    NEW(free_cleared, 2);
    memset(free_cleared, 0, 2 * sizeof *free_cleared);
    NEW(free_initialised, 1);
    struct free_initialised values = {.first = 1, .second = 22, .third = 333};
    __asm__ volatile("" ::"r"(&values) : "memory");
    *free_initialised = values;
    NEW(free_literal, 1);
    *free_literal = (struct free_literal){.third = sink};
    NEW(free_passed, 1);
    sink = pass(*free_passed);
    NEW(free_returned, 1);
    *free_returned = give(free_returned);
    NEW(free_pair, 1);
    *free_pair = swap(*free_pair);
    NEW(free_inner, 1);
    struct free_outer outer = {.before = sink};
    outer.inner = *free_inner;
    __asm__ volatile("" ::"r"(&outer) : "memory");
    *free_inner = outer.inner;
    NEW(free_sorted, 4);
    qsort(free_sorted, 4, sizeof *free_sorted, compare);
    NEW(free_grown, 2);
    free_grown = realloc(free_grown, 4 * sizeof *free_grown);
    sink = free_grown->first;
    NEW(free_declared, 1);
    sink = own(free_declared, sizeof *free_declared);
    NEW(free_name, 1);
    char *name = free_name->name;
    __asm__ volatile("" : "+r"(name));
    sink = name[0] + (long)strlen(free_name->name);
}

static void fixes(size_t count)
{
    static unsigned char buffer[64];
    FILE *null = fopen("/dev/null", "w");
    __asm__ volatile("" ::"r"(buffer) : "memory");
    NEW(fixed_file, 1);
    sink = null ? (long)fwrite(fixed_file, sizeof *fixed_file, 1, null) : 0;
    NEW(fixed_descriptor, 1);
    sink = null ? write(fileno(null), fixed_descriptor, sizeof *fixed_descriptor) : 0;
    NEW(fixed_compared, 2);
    sink = memcmp(fixed_compared, fixed_compared + 1, sizeof *fixed_compared);
    NEW(fixed_to_buffer, 1);
    memcpy(buffer, fixed_to_buffer, sizeof *fixed_to_buffer);
    NEW(fixed_from_buffer, 1);
    memcpy(fixed_from_buffer, buffer, sizeof *fixed_from_buffer);
    NEW(fixed_union, 1);
    union {
        struct fixed_union one;
        unsigned char bytes[sizeof(struct fixed_union)];
    } both;
    both.one = *fixed_union;
    __asm__ volatile("" ::"r"(&both) : "memory");
    sink = both.bytes[3];
    NEW(fixed_cast, 1);
    char *bytes = (char *)fixed_cast;
    __asm__ volatile("" : "+r"(bytes));
    sink = bytes[9];
    NEW(fixed_argument, 1);
    sink = checksum((const uint8_t *)fixed_argument);
    NEW(fixed_hashed, 1);
    sink = hash(fixed_hashed, sizeof *fixed_hashed);
    NEW(fixed_elements, 4);
    sink = hash(fixed_elements, count * sizeof *fixed_elements);
    NEW(fixed_inner, 1);
    struct fixed_outer outer = {.inner[1] = *fixed_inner};
    sink = hash(&outer, sizeof outer);
    if (null)
        fclose(null);
}

int main(int argc, char **argv)
{
    (void)argv;
    frees();
    fixes((size_t)argc);
    return 0;
}
