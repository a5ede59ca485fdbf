/* size.c - see size.h. */
#include "base/size.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool hw_size_read(const char *text, uint64_t *value)
{
    static const char letters[] = "KMGT";
    char *end;
    if (!isdigit((unsigned char)*text))
        return false;
    errno = 0;
    const unsigned long long number = strtoull(text, &end, 10);
    if (errno)
        return false;
    const char *letter = *end ? strchr(letters, toupper((unsigned char)*end)) : NULL;
    const unsigned shift = letter ? 10 * (unsigned)(letter - letters + 1) : 0;
    end += letter != NULL;
    const bool fine = !*end || strcasecmp(end, "B") == 0 || (letter && strcasecmp(end, "iB") == 0) ||
                      (letter && strcasecmp(end, "i") == 0);
    if (!fine || number > UINT64_MAX >> shift)
        return false;
    *value = (uint64_t)number << shift;
    return true;
}
