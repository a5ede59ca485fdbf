/* frame_roles.c - see frame_roles.h. */
#include "report/view/frame_roles.h"

#include <ctype.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/view/rules.h"

/* ---- roles by name ---- */

enum where { BEGINS, IS, HAS, ENDS, LINKAGE, FILE_ };

static const struct role {
    enum hw_frame_role role;
    enum where where;
    uint32_t size; /* of the text */
    const char *text;
} roles[] = {
#define WHERE_BEGINS                  BEGINS
#define WHERE_IS                      IS
#define WHERE_HAS                     HAS
#define WHERE_ENDS                    ENDS
#define WHERE_LINKAGE                 LINKAGE
#define WHERE_FILE                    FILE_
#define HW_ROLE(role_, where_, text_) {HW_FRAME_##role_, WHERE_##where_, sizeof text_ - 1, text_},
#include "report/view/frame_roles.def"
};

#define ROLES (sizeof roles / sizeof *roles)

const char *hw_qualified_name(const char *function)
{
    const char *name = function;
    int depth = 0;
    for (const char *at = function; *at; at++) {
        depth += *at == '<' ? 1 : *at == '>' ? -1 : 0;
        if (depth == 0 && *at == '(' && at > function)
            break;
        if (depth == 0 && *at == ' ' && at[1] && at[1] != '(')
            name = at + 1;
    }
    return strncmp(function, "operator ", 9) ? name : function;
}

static bool begins(const char *text, const struct role *role)
{
    return *text == *role->text && !strncmp(text, role->text, role->size);
}

static bool is_library_name(const char *name)
{
    for (size_t i = 0; i < ROLES; i++)
        if (roles[i].role == HW_FRAME_LIBRARY && roles[i].where == BEGINS && begins(name, &roles[i]))
            return true;
    return false;
}

/* Methods of Rust that belong to the library although their name begins otherwise: "<T as alloc::slice::…>::to_vec",
 * "<[T]>::sort". What a crate implements itself, "<main::Record as core::clone::Clone>::clone", does not. */
static bool is_rust_library_method(const char *function)
{
    if (*function != '<')
        return false;
    const char *self = function + 1 + strspn(function + 1, "&*[(");
    const char *as = strstr(self, " as "), *end = strchr(self, '>');
    if (!end)
        return false;
    if (!as || end < as)
        return self > function + 1 || !strncmp(self, "str>", 4);
    for (const char *at = self; at < as; at++)
        if (at[0] == ':' && at[1] == ':') /* the type of some crate; the library's own are in the table */
            return is_library_name(self);
    return is_library_name(as + 4);
}

/* What a readable name is compared as. */
struct name {
    const char *whole, *qualified;
    size_t stem; /* bytes of it without parameters, and without digits and '_' at the end */
};

static struct name make_name(const char *function)
{
    struct name name = {function, hw_qualified_name(function), strcspn(function, "(<")};
    while (name.stem && (isdigit((unsigned char)function[name.stem - 1]) || function[name.stem - 1] == '_'))
        name.stem--;
    return name;
}

static bool has_role(const struct role *role, const struct name *name, const char *linkage, const char *file)
{
    switch (role->where) {
    case BEGINS:
        return name->whole && (begins(name->whole, role) || begins(name->qualified, role));
    case IS:
        return name->whole && !strcmp(name->whole, role->text);
    case HAS:
        return name->whole && strstr(name->whole, role->text);
    case ENDS:
        return name->whole && name->stem >= role->size &&
               !strncasecmp(name->whole + name->stem - role->size, role->text, role->size);
    case LINKAGE:
        return linkage && begins(linkage, role);
    default:
        return file && !fnmatch(role->text, file, 0);
    }
}

uint8_t hw_frame_role(const struct hw_frame *symbol)
{
    const struct name name = symbol->function ? make_name(symbol->function) : (struct name){0};
    uint8_t found = HW_FRAME_KNOWN;
    if (name.whole && is_rust_library_method(name.whole))
        found |= HW_FRAME_LIBRARY;
    for (size_t i = 0; i < ROLES; i++)
        if (!(found & roles[i].role) && has_role(&roles[i], &name, symbol->linkage_name, symbol->file))
            found |= (uint8_t)roles[i].role;
    return found;
}

/* ---- the frame that names a stack ---- */

static uint8_t role_of(const struct hw_view_frame *frame)
{
    return frame->role & HW_FRAME_KNOWN ? frame->role : hw_frame_role(frame->symbol);
}

static bool is_system(const struct hw_view_frame *frame)
{
    return !frame->module || frame->module->kind != HW_MODULE_PROGRAM;
}

size_t hw_stack_headline(const struct hw_view_stack *stack)
{
    const size_t none = stack->count;
    size_t own = none, in_program = none;
    for (size_t i = 0; i < stack->count; i++) {
        const struct hw_view_frame *frame = &stack->frames[i];
        if (is_system(frame))
            continue;
        const uint8_t role = role_of(frame);
        if (in_program == none)
            in_program = i;
        if (role & HW_FRAME_LIBRARY)
            continue;
        if (own == none)
            own = i;
        if (stack->unfolded || !(role & HW_FRAME_WRAPPER))
            return i;
    }
    return own != none ? own : in_program != none ? in_program : 0;
}

size_t hw_stack_wrappers(const struct hw_view_stack *stack)
{
    const size_t most = stack->unfolded ? 0 : hw_stack_headline(stack);
    size_t count = 0;
    while (count < most && role_of(&stack->frames[count]) & HW_FRAME_WRAPPER)
        count++;
    return count;
}

/* ---- the roles of a view ---- */

/* Names are interned: each is compared once. */
struct known_roles {
    const struct hw_view *view;
    const struct hw_view_options *options;
    struct hw_index by_name, by_file;
    bool failed;
};

static bool is_named(const struct hw_frame *symbol, const char *function)
{
    return (symbol->function && !strcmp(symbol->function, function)) ||
           (symbol->linkage_name && !strcmp(symbol->linkage_name, function));
}

/* What rules match: the name as it is shown. */
static uint8_t role_by_rules(const struct hw_view *view, const struct hw_rules *rules,
                             const struct hw_view_location *location, const struct hw_frame *symbol)
{
    const struct hw_view_module *module = location->module == HW_NONE ? NULL : &view->modules[location->module];
    char shown[512];
    const char *name = symbol->function;
    if (!name) {
        const bool file = module && module->kind != HW_MODULE_GENERATED;
        snprintf(shown, sizeof shown, "%s%s0x%" PRIx64, file ? module->name : "", file ? "+" : "", location->address);
        name = shown;
    }
    return (hw_rules_match(rules, HW_RULE_WRAPPER, name) ? HW_FRAME_WRAPPER : 0) |
           (hw_rules_match(rules, HW_RULE_HIDE, name) ? HW_FRAME_HIDDEN : 0) |
           (hw_rules_match(rules, HW_RULE_IGNORE, name) ? HW_FRAME_IGNORED : 0) |
           (hw_rules_match(rules, HW_RULE_FOCUS, name) ? HW_FRAME_FOCUSED : 0);
}

static uint32_t role_by_file(struct known_roles *known, const char *file)
{
    const struct hw_key key = {(uintptr_t)file, 0};
    uint32_t role = hw_index_find(&known->by_file, key);
    bool added;
    if (role == HW_INDEX_NONE) {
        role = hw_frame_role(&(struct hw_frame){.file = file});
        known->failed |= hw_index_intern(&known->by_file, key, role, &added) == HW_INDEX_NONE;
    }
    return role;
}

static uint8_t make_role(struct known_roles *known, const struct hw_view_location *location,
                         const struct hw_frame *symbol)
{
    const struct hw_view_options *options = known->options;
    const struct hw_key key = {(uintptr_t)symbol->function, (uintptr_t)symbol->linkage_name};
    const bool any_name = symbol->function || symbol->linkage_name;
    uint32_t role = any_name ? hw_index_find(&known->by_name, key) : HW_INDEX_NONE;
    if (role == HW_INDEX_NONE) {
        const struct hw_frame by_name = {.function = symbol->function, .linkage_name = symbol->linkage_name};
        bool added;
        role = hw_frame_role(&by_name);
        if (options->rules)
            role |= role_by_rules(known->view, options->rules, location, symbol);
        if (options->function && is_named(symbol, options->function))
            role |= HW_FRAME_NAMED;
        if (any_name)
            known->failed |= hw_index_intern(&known->by_name, key, role, &added) == HW_INDEX_NONE;
    }
    if (symbol->file && !(role & HW_FRAME_LIBRARY))
        role |= role_by_file(known, symbol->file);
    return (uint8_t)role;
}

bool hw_view_make_roles(struct hw_view *view, const struct hw_view_options *options)
{
    struct known_roles known = {.view = view, .options = options};
    size_t count = 0;
    for (size_t i = 0; i < view->location_count; i++)
        count += view->locations[i].frames.count;
    uint8_t *roles_of = malloc(count + 1);
    view->roles_of_frames = roles_of;
    if (!roles_of)
        return false;
    for (size_t i = 0; i < view->location_count; i++) {
        struct hw_view_location *location = &view->locations[i];
        location->roles = roles_of;
        for (uint32_t k = 0; k < location->frames.count; k++)
            *roles_of++ = make_role(&known, location, &location->frames.frame[k]);
    }
    hw_index_free(&known.by_name);
    hw_index_free(&known.by_file);
    return !known.failed;
}
