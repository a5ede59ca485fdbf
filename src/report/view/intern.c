/* intern.c - see intern.h. */
#include "report/view/intern.h"

#include <stdlib.h>
#include <string.h>

#include "base/growing.h"

uint32_t hw_intern(struct hw_intern *strings, const char *text)
{
    const size_t size = strlen(text);
    bool added = false;
    if (!size)
        return 0;
    const uint32_t number =
        strings->failed || !HW_GROW(strings->at, strings->room, (size_t)strings->count + 1)
            ? HW_INDEX_NONE
            : hw_index_intern(&strings->index, hw_key_of("", 0, text, size), strings->count, &added);
    if (added) {
        strings->at[strings->count++] = strings->text.used;
        hw_buffer_bytes(&strings->text, text, size + 1);
    }
    strings->failed |= number == HW_INDEX_NONE || strings->text.failed;
    return strings->failed ? 0 : number + 1;
}

void hw_intern_free(struct hw_intern *strings)
{
    hw_buffer_free(&strings->text);
    hw_index_free(&strings->index);
    free(strings->at);
    *strings = (struct hw_intern){0};
}
