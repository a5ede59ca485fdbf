/* layout_text.c - a suggested layout as C text to paste.
 *
 * Declarations are the program's own text, by way of its debugging information. What could be anything but one
 * declaration (comments, several statements, directives) is shown in a comment instead. */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "report/view/analyse.h"

/* Whether TEXT is nothing but one declaration, so that a semicolon may follow it. */
static bool is_declaration(const char *text)
{
    int round = 0, square = 0;
    if (!isalpha((unsigned char)*text) && *text != '_' && *text != ':')
        return false;
    for (const char *at = text; *at; at++) {
        if (!isprint((unsigned char)*at) || strchr(";#\"'\\{}@$`?!", *at) || (at[0] == '/' && strchr("/*", at[1])) ||
            (at[0] == '*' && at[1] == '/'))
            return false;
        round += (*at == '(') - (*at == ')');
        square += (*at == '[') - (*at == ']');
        if (round < 0 || square < 0)
            return false;
    }
    return round == 0 && square == 0;
}

/* Text inside a comment. */
static void add_comment(struct hw_buffer *out, const char *text)
{
    for (; *text; text++) {
        const bool end = text[0] == '*' && text[1] == '/';
        if (!isprint((unsigned char)*text) || *text == '\\')
            hw_buffer_add(out, "?");
        else
            hw_buffer_add(out, "%c%s", *text, end ? " " : "");
    }
}

static bool is_identifier(const char *text)
{
    if (!isalpha((unsigned char)*text) && *text != '_')
        return false;
    for (; *text; text++)
        if (!isalnum((unsigned char)*text) && *text != '_')
            return false;
    return true;
}

/* The name that a definition can have: the last component, without template arguments; "suggested" when it has none. */
static void add_tag(struct hw_buffer *out, const struct hw_profile_struct *structure)
{
    const char *name = structure->name, *end = name + strcspn(name, "<");
    if (strncmp(name, "struct ", 7) == 0)
        name += 7;
    const char *start = end;
    while (start > name && (isalnum((unsigned char)start[-1]) || start[-1] == '_'))
        start--;
    if (start == end || isdigit((unsigned char)*start))
        hw_buffer_add(out, "suggested");
    else
        hw_buffer_bytes(out, start, (size_t)(end - start));
}

static void begin_definition(struct hw_buffer *out, const struct hw_profile_struct *structure, const char *suffix)
{
    hw_buffer_add(out, "struct ");
    add_tag(out, structure);
    hw_buffer_add(out, "%s {", suffix);
    if (!is_identifier(structure->name) && !*suffix) {
        hw_buffer_add(out, " /* ");
        add_comment(out, *structure->name ? structure->name : "it has no name");
        hw_buffer_add(out, " */");
    }
    hw_buffer_add(out, "\n");
}

/* One member, once however many fields it has. */
static void add_member(struct hw_buffer *out, const struct hw_profile_field *field, uint64_t offset)
{
    const bool fixed = field->flags & (HW_FIELD_BASE | HW_FIELD_VPTR);
    if (fixed || !is_declaration(field->declaration)) {
        hw_buffer_add(out, "    /* %s", fixed ? "stays in front: " : "");
        add_comment(out, *field->declaration && !fixed ? field->declaration : field->name);
        hw_buffer_add(out, ", %" PRIu64 " bytes */\n", field->member_size);
        return;
    }
    hw_buffer_add(out, "    %s", field->declaration);
    if ((field->flags & HW_FIELD_BITS) && field->member_size <= field->size && !strchr(field->declaration, ':'))
        hw_buffer_add(out, " : %u", (unsigned)field->bit_size);
    hw_buffer_add(out, ";");
    if (offset % HW_LINE == 0 && offset)
        hw_buffer_add(out, " /* line %" PRIu64 " */", offset / HW_LINE);
    hw_buffer_add(out, "\n");
}

static void add_members(struct hw_buffer *out, const struct hw_units *units, const struct hw_layout *layout)
{
    for (size_t i = 0; i < layout->count; i++) {
        const struct hw_unit *unit = &units->units[layout->order[i]];
        for (uint32_t k = 0; k < unit->field_count; k++) {
            const struct hw_profile_field *field = &units->fields[unit->first_field + k];
            if (!k || unit->bits)
                add_member(out, field, layout->offsets[unit->first_field + k]);
        }
    }
}

static bool has_last(const struct hw_units *units, const struct hw_layout *layout)
{
    return layout->count && units->units[layout->order[layout->count - 1]].last;
}

void hw_add_definition(struct hw_buffer *out, const struct hw_struct_analysis *of)
{
    const struct hw_suggestion *suggestion = &of->suggestion;
    if (suggestion->kind == HW_SUGGEST_SPLIT) {
        begin_definition(out, of->structure, "_cold");
        add_members(out, &of->units, &suggestion->cold);
        hw_buffer_add(out, "};\n\n");
    }
    if (suggestion->kind == HW_SUGGEST_NOTHING)
        return;
    begin_definition(out, of->structure, "");
    struct hw_layout front = suggestion->hot;
    const bool split = suggestion->kind == HW_SUGGEST_SPLIT, last = split && has_last(&of->units, &front);
    front.count -= last;
    add_members(out, &of->units, &front);
    if (split) {
        hw_buffer_add(out, "    struct ");
        add_tag(out, of->structure);
        hw_buffer_add(out, "_cold *cold;\n");
    }
    if (last) {
        front.order += front.count;
        front.count = 1;
        add_members(out, &of->units, &front);
    }
    hw_buffer_add(out, "};\n");
}
