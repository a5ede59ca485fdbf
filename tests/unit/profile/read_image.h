/* read_image.h - reads profile files that profile_writer.h has made, for the tests of the reader. */
#ifndef HW_TESTS_READ_IMAGE_H
#define HW_TESTS_READ_IMAGE_H

#include "profile/profile.h"
#include "profile_writer.h"
#include "support/check.h"

/* Reads an image and frees it; PROBLEM: part of a sentence that must be there, NULL: there must be none. */
HELPER struct hw_profile *read_image(struct image *image, const char *problem)
{
    struct memory_file file = memory_file(image->bytes, image->size);
    struct hw_error error = {""};
    struct hw_profile *profile = hw_profile_read(file.path, &error);
    close(file.fd);
    image_free(image);
    if (!profile)
        fail_msg("%s", error.message);
    bool found = false;
    for (size_t i = 0; i < profile->problem_count; i++) {
        found |= problem && strstr(profile->problems[i], problem);
        if (!problem)
            fail_msg("%s", profile->problems[i]);
    }
    if (problem && !found)
        fail_msg("no problem mentions '%s'", problem);
    return profile;
}

#endif
