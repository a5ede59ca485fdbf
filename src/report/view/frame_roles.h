/* frame_roles.h - which frames of a stack name it: allocation wrappers and library code are passed by.
 *
 * A frame is a wrapper by its name (frame_roles.def), by a rule of the user (rules.h), as nameless code below such a
 * one, or by structure (both structure.c). It is folded where everything between it and the allocator is a wrapper,
 * too. */
#ifndef HW_REPORT_VIEW_FRAME_ROLES_H
#define HW_REPORT_VIEW_FRAME_ROLES_H

#include "report/view/view.h"

/* Bits by frame of a location. */
enum hw_frame_role {
    HW_FRAME_WRAPPER = 1,  /* allocates for its caller */
    HW_FRAME_LIBRARY = 2,  /* of a language's library */
    HW_FRAME_HIDDEN = 4,   /* rules: is not shown */
    HW_FRAME_IGNORED = 8,  /* rules: its contexts are left out */
    HW_FRAME_FOCUSED = 16, /* rules: its contexts are kept */
    HW_FRAME_NAMED = 32,   /* is the function that was asked for */
    HW_FRAME_KNOWN = 128   /* the role was decided */
};

/* The role of a function by its names and its source file. */
uint8_t hw_frame_role(const struct hw_frame *symbol);

/* Where the qualified name begins in "void std::vector<int>::push_back(int&&)": demangled instances of templates begin
 * with the type they return. */
const char *hw_qualified_name(const char *function);

/* The index of the frame that names a stack, 0 in an empty one: the innermost frame that is the program's own code,
 * and no wrapper unless the stack is unfolded. The next best when there is none. */
size_t hw_stack_headline(const struct hw_view_stack *stack);

/* How many frames are left without the code that starts processes and threads; at least 1 of a stack that has any. */
size_t hw_stack_without_start(const struct hw_view_stack *stack);

/* How many frames at the allocating end are folded: wrappers that follow one another, always before the headline. */
size_t hw_stack_wrappers(const struct hw_view_stack *stack);

/* Gives all frames of the view's locations their roles: by name, and by the rules of OPTIONS. False when there is no
 * memory. */
bool hw_view_make_roles(struct hw_view *view, const struct hw_view_options *options);

static inline uint8_t hw_location_role(const struct hw_view_location *location, uint32_t frame)
{
    return location->roles ? location->roles[frame] : 0;
}

#endif
