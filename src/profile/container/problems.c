/* problems.c - memory that lives as long as a profile, and the list of what is wrong with the file. */
#include "profile/container/container.h"

#include <stdlib.h>
#include <string.h>

struct hw_arena_block {
    struct hw_arena_block *next;
    uint64_t reserved; /* keeps what follows aligned to 16 bytes */
};

void *hw_arena_allocate(struct hw_arena *arena, size_t count, size_t size)
{
    size_t bytes;
    struct hw_arena_block *block = NULL;
    if (!__builtin_mul_overflow(count, size, &bytes) && !__builtin_add_overflow(bytes, sizeof *block, &bytes))
        block = calloc(1, bytes);
    if (!block) {
        arena->failed = true;
        return NULL;
    }
    block->next = arena->blocks;
    arena->blocks = block;
    return block + 1;
}

char *hw_arena_copy(struct hw_arena *arena, const char *string)
{
    size_t size = strlen(string) + 1;
    char *copy = hw_arena_allocate(arena, size, 1);
    if (copy)
        memcpy(copy, string, size);
    return copy;
}

void hw_arena_free(struct hw_arena *arena)
{
    struct hw_arena_block *block = arena->blocks;
    while (block) {
        struct hw_arena_block *next = block->next;
        free(block);
        block = next;
    }
    arena->blocks = NULL;
}

static void keep(struct hw_problems *problems, const char *sentence)
{
    /* One place more than the most, for the closing sentence. */
    if (!problems->sentences)
        problems->sentences = hw_arena_allocate(problems->arena, HW_PROBLEMS_MOST + 1, sizeof *problems->sentences);
    char *copy = problems->sentences ? hw_arena_copy(problems->arena, sentence) : NULL;
    if (copy)
        problems->sentences[problems->count++] = copy;
}

void hw_problem(struct hw_problems *problems, const char *format, ...)
{
    char sentence[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    for (size_t i = 0; i < problems->count; i++)
        if (strcmp(problems->sentences[i], sentence) == 0)
            return;
    if (problems->count < HW_PROBLEMS_MOST)
        keep(problems, sentence);
    else
        problems->left_out = true;
}

void hw_problems_finish(struct hw_problems *problems)
{
    if (problems->left_out)
        keep(problems, "There are further problems; they are not listed.");
}
