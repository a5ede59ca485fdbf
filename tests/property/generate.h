/* generate.h - random programs whose accesses are known: the same seed gives the same program everywhere. */
#ifndef TESTS_PROPERTY_GENERATE_H
#define TESTS_PROPERTY_GENERATE_H

#include <stdint.h>
#include <stdio.h>

/* Writes the program of SEED: C and C++ at once, see property.h. It has no undefined behaviour, ends, and prints the
 * same every time. */
void generate_program(FILE *out, uint64_t seed);

#endif
