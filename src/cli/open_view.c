/* open_view.c - see open_view.h. */
#include "cli/open_view.h"

#include "cli/cli.h"

int hw_open_view(struct hw_opened *opened, const struct hw_view_arguments *names, const char *path)
{
    struct hw_error error = {""};
    int code = HW_VERB_FINE;
    *opened = (struct hw_opened){.profile = hw_profile_read(path, &error)};
    for (size_t i = 0; opened->profile && i < opened->profile->problem_count; i++) {
        hw_say("%s: %s: %s", names->verb, path, opened->profile->problems[i]);
        code = HW_VERB_USAGE;
    }
    hw_say_contradictions(opened->profile, path);
    if (opened->profile)
        opened->view = hw_view_new(opened->profile, &names->view, &error);
    hw_view_arguments_clear_progress(names);
    if (opened->view)
        return code;
    hw_say("%s: %s", names->verb, error.message);
    return HW_VERB_USAGE;
}

void hw_opened_close(struct hw_opened *opened)
{
    hw_view_free(opened->view);
    hw_profile_free(opened->profile);
    *opened = (struct hw_opened){0};
}
