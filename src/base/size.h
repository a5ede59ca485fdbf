/* size.h - sizes as people write them. */
#ifndef HW_BASE_SIZE_H
#define HW_BASE_SIZE_H

#include <stdbool.h>
#include <stdint.h>

/* TEXT: a number of bytes, or with a unit, large or small, which is a power of 1024: 131072, 128k, 128K, 128KB, 128KiB,
 * 4M, 1G, 1T. False: it is something else, or does not fit. */
bool hw_size_read(const char *text, uint64_t *value);

#endif
