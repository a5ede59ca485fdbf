/* fields_small.c - structs of few bytes as a whole, which optimisation makes loads and stores of, by way of pointers
 * that only their types tell of; and bit-fields that share a byte. Prints what is done to each field, as the source has
 * it: test_fields.c. Built by `heapwise cc --fields`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))
#define ROUNDS   100
#define PAIR(name)                                                                                                     \
    struct name {                                                                                                      \
        int first, second;                                                                                             \
    }

PAIR(in_global);
PAIR(in_static);
PAIR(to_global);
PAIR(in_memory);
PAIR(in_volatile);
PAIR(in_variable);
PAIR(in_literal);
PAIR(in_function);
PAIR(in_array);
struct in_word {
    short first, second;
};
struct in_parts { /* 16 bytes: what is copied there lies in registers */
    long first, second;
};
struct in_four {
    long first, second, third, fourth;
};

struct in_global *global;
static struct in_static *of_file;
struct to_global *target;
struct in_literal *literal;
struct in_function *function;
struct in_array *array[4];
struct in_word *word;
struct in_parts *parts;
struct in_four *four;

/* ---- as a whole ---- */

NOINLINE static void clear_global(void)
{
    memset(global, 0, sizeof *global);
}

NOINLINE static void clear_static(void)
{
    memset((void *)of_file, 0, sizeof *of_file);
}

NOINLINE static void copy_to_global(struct to_global *from)
{
    memcpy(target, from, sizeof *target);
}

NOINLINE static void clear_in_memory(struct in_memory **at)
{
    memset(*at, 0, sizeof **at);
}

NOINLINE static void clear_in_volatile(struct in_volatile *volatile *at)
{
    memset(*at, 0, sizeof **at);
}

NOINLINE static void clear_in_variable(void *pointer)
{
    struct in_variable *volatile variable = pointer;
    memset((void *)variable, 0, sizeof *variable);
}

NOINLINE static void assign_literal(int number)
{
    *literal = (struct in_literal){number, number + 1};
}

static inline void clear(void *memory, size_t size) /* as headers that check sizes have it */
{
    memset(memory, 0, size);
}

NOINLINE static void clear_by_function(void)
{
    clear(function, sizeof *function);
}

NOINLINE static void clear_in_array(int index)
{
    memset(array[index & 3], 0, sizeof **array);
}

NOINLINE static void clear_word(void)
{
    memset(word, 0, sizeof *word);
}

NOINLINE static void assign_parts(long number)
{
    struct in_parts value = {number, number + 1};
    *parts = value;
}

NOINLINE static void copy_four(long number)
{
    struct in_four value = {number, number + 1, number + 2, number * 3};
    memcpy(four, &value, sizeof value);
}

/* ---- bit-fields ---- */

#define BITS(name)                                                                                                     \
    struct name {                                                                                                      \
        unsigned flag : 1, low : 2, high : 5;                                                                          \
        unsigned char other;                                                                                           \
    }

BITS(bits_written);
BITS(bits_counted);
BITS(bits_top);
BITS(bits_down);
BITS(bits_both);
BITS(bits_chosen);
BITS(bits_flipped);
BITS(bits_masked);
BITS(bits_multiplied);

NOINLINE static void write_bits(struct bits_written *bits, unsigned number)
{
    bits->flag = number & 1;
    bits->low = number & 3;
}

NOINLINE static void count_bits(struct bits_counted *bits)
{
    bits->low++;
}

NOINLINE static void count_top(struct bits_top *bits)
{
    bits->high += 3;
}

NOINLINE static void count_down(struct bits_down *bits, unsigned number)
{
    bits->low -= number;
}

NOINLINE static void write_and_count(struct bits_both *bits, unsigned number)
{
    bits->flag = number & 1;
    bits->low++;
}

NOINLINE static void choose(struct bits_chosen *bits, int number)
{
    if (number > 3)
        bits->flag = 1;
    else
        bits->flag = 0;
}

NOINLINE static void flip(struct bits_flipped *bits)
{
    bits->low ^= 3;
}

NOINLINE static void mask(struct bits_masked *bits, unsigned number)
{
    bits->low &= number;
}

NOINLINE static void multiply(struct bits_multiplied *bits, unsigned number)
{
    bits->flag = number & 1;
    bits->low *= number;
}

/* ---- */

static void *make(size_t size)
{
    void *memory = calloc(1, size);
    __asm__ volatile("" : "+r"(memory));
    return memory;
}

#define EACH(name, reads, writes)                                                                                      \
    printf("field %s|first|%d|%d\nfield %s|second|%d|%d\n", #name, reads, writes, #name, reads, writes)
#define EACH_BIT(name, flag_reads, flag_writes, low_reads, low_writes, high_reads, high_writes)                        \
    printf("field %s|flag|%d|%d\nfield %s|low|%d|%d\nfield %s|high|%d|%d\nfield %s|other|0|0\n", #name, flag_reads,    \
           flag_writes, #name, low_reads, low_writes, #name, high_reads, high_writes, #name)

int main(void)
{
    struct in_memory *memory = make(sizeof *memory);
    struct in_volatile *volatile of_volatile = make(sizeof *of_volatile);
    struct in_variable *variable = make(sizeof *variable);
    struct to_global *from = make(sizeof *from);
    struct bits_written *written = make(sizeof *written);
    struct bits_counted *counted = make(sizeof *counted);
    struct bits_top *top = make(sizeof *top);
    struct bits_down *down = make(sizeof *down);
    struct bits_both *both = make(sizeof *both);
    struct bits_chosen *chosen = make(sizeof *chosen);
    struct bits_flipped *flipped = make(sizeof *flipped);
    struct bits_masked *masked = make(sizeof *masked);
    struct bits_multiplied *multiplied = make(sizeof *multiplied);
    global = make(sizeof *global);
    of_file = make(sizeof *of_file);
    target = make(sizeof *target);
    literal = make(sizeof *literal);
    function = make(sizeof *function);
    for (int i = 0; i < 4; i++)
        array[i] = make(sizeof **array);
    word = make(sizeof *word);
    parts = make(sizeof *parts);
    four = make(sizeof *four);
    for (int i = 0; i < ROUNDS; i++) {
        clear_global();
        clear_static();
        copy_to_global(from);
        clear_in_memory(&memory);
        clear_in_volatile(&of_volatile);
        clear_in_variable(variable);
        assign_literal(i);
        clear_by_function();
        clear_in_array(i);
        clear_word();
        assign_parts(i);
        copy_four(i);
        write_bits(written, (unsigned)i);
        count_bits(counted);
        count_top(top);
        count_down(down, (unsigned)i);
        write_and_count(both, (unsigned)i);
        choose(chosen, i);
        flip(flipped);
        mask(masked, (unsigned)i);
        multiply(multiplied, (unsigned)i);
    }
    EACH(in_global, 0, ROUNDS);
    EACH(in_static, 0, ROUNDS);
    EACH(to_global, ROUNDS, ROUNDS);
    EACH(in_memory, 0, ROUNDS);
    EACH(in_volatile, 0, ROUNDS);
    EACH(in_variable, 0, ROUNDS);
    EACH(in_literal, 0, ROUNDS);
    EACH(in_function, 0, ROUNDS);
    EACH(in_array, 0, ROUNDS);
    EACH(in_word, 0, ROUNDS);
    EACH(in_parts, 0, ROUNDS);
    EACH(in_four, 0, ROUNDS);
    printf("field in_four|third|0|%d\nfield in_four|fourth|0|%d\n", ROUNDS, ROUNDS);
    EACH_BIT(bits_written, 0, ROUNDS, 0, ROUNDS, 0, 0);
    EACH_BIT(bits_counted, 0, 0, ROUNDS, ROUNDS, 0, 0);
    EACH_BIT(bits_top, 0, 0, 0, 0, ROUNDS, ROUNDS);
    EACH_BIT(bits_down, 0, 0, ROUNDS, ROUNDS, 0, 0);
    EACH_BIT(bits_both, 0, ROUNDS, ROUNDS, ROUNDS, 0, 0);
    EACH_BIT(bits_chosen, 0, ROUNDS, 0, 0, 0, 0);
    EACH_BIT(bits_flipped, 0, 0, ROUNDS, ROUNDS, 0, 0);
    EACH_BIT(bits_masked, 0, 0, ROUNDS, ROUNDS, 0, 0);
    EACH_BIT(bits_multiplied, 0, ROUNDS, ROUNDS, ROUNDS, 0, 0);
    return 0;
}
