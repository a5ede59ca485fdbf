/* probe.c - built at configure time: can this clang make fuzzers? */
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    return size > 100 && bytes[100] == 0;
}
