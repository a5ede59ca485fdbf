/* fields_arrays.h - counting by hand for fields_arrays.c and fields_arrays.cpp: an access to a field of an element is
 * one to each array of structs around it as well. FIELDS, which those define before, are all that are counted. */
#include <stdio.h>

#define DEFINE(structure, field, name) static volatile long r_##structure##_##field, w_##structure##_##field;
FIELDS(DEFINE)

/* An access to PLACE, which is FIELD of STRUCTURE; and to those that OTHER and ANOTHER (structure_field) name. */
#define R1(one, place)                 (r_##one++, (place))
#define W1(one, place)                 (*(w_##one++, &(place)))
#define R2(one, other, place)          (r_##one++, r_##other++, (place))
#define W2(one, other, place)          (*(w_##one++, w_##other++, &(place)))
#define R3(one, other, another, place) (r_##one++, r_##other++, r_##another++, (place))
#define W3(one, other, another, place) (*(w_##one++, w_##other++, w_##another++, &(place)))

static void print(void)
{
#define PRINT(structure, field, name)                                                                                  \
    printf("field " #structure "|" name "|%ld|%ld\n", r_##structure##_##field, w_##structure##_##field);
    FIELDS(PRINT)
}
