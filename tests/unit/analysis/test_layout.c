/* test_layout.c - suggested layouts of random structs: never worse, every field exactly once, and where the compilers
 * put them: the text that is suggested is compiled by gcc and clang, as C and as C++, and every offset is compared. */
#include <stdio.h>

#include "unit/report/fields_sample.h"

#include "analysis/internal.h"
#include "report/view/analyse.h"
#include "support/check.h"
#include "support/run.h"

#include <inttypes.h>

#define STRUCTS 60

/* ---- random structs ---- */

static uint64_t random_state;

static unsigned any(unsigned below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)(random_state >> 33) % below;
}

static uint64_t up(uint64_t value, uint64_t to)
{
    return (value + to - 1) / to * to;
}

/* Where the next member of the struct at hand goes, in bits; the greatest alignment so far. */
struct cursor {
    uint64_t bit;
    uint32_t alignment;
};

static uint64_t next_offset(struct cursor *cursor, uint64_t size, uint32_t alignment)
{
    const uint64_t offset = up(up(cursor->bit, 8) / 8, alignment);
    cursor->bit = (offset + size) * 8;
    cursor->alignment = alignment > cursor->alignment ? alignment : cursor->alignment;
    return offset;
}

static void add_plain(struct field_maker *maker, struct cursor *cursor, unsigned number)
{
    static const struct {
        const char *declaration;
        uint32_t size;
    } types[] = {{"char ", 1}, {"short ", 2}, {"int ", 4}, {"long ", 8}, {"double ", 8}, {"float ", 4}, {"void *", 8}};
    const unsigned type = any(sizeof types / sizeof *types);
    char name[16], declaration[64];
    snprintf(name, sizeof name, "m%u", number);
    snprintf(declaration, sizeof declaration, "%s%s", types[type].declaration, name);
    maker_field(maker, name, declaration, next_offset(cursor, types[type].size, types[type].size), types[type].size,
                types[type].size);
}

static void add_array(struct field_maker *maker, struct cursor *cursor, unsigned number)
{
    const unsigned count = 1 + any(50), wide = any(3) == 0 ? 8 : 1;
    char name[16], declaration[64];
    snprintf(name, sizeof name, "m%u", number);
    snprintf(declaration, sizeof declaration, "%s %s[%u]", wide == 8 ? "long" : "char", name, count);
    maker_field(maker, name, declaration, next_offset(cursor, (uint64_t)count * wide, wide), (uint64_t)count * wide,
                wide)
        ->flags = HW_FIELD_ARRAY;
}

/* struct inner { int a; char b; }: two fields that move together. */
static void add_nested(struct field_maker *maker, struct cursor *cursor, unsigned number)
{
    const uint64_t offset = next_offset(cursor, 8, 4);
    char a[16], b[16], declaration[32];
    snprintf(a, sizeof a, "m%u.a", number);
    snprintf(b, sizeof b, "m%u.b", number);
    snprintf(declaration, sizeof declaration, "struct inner m%u", number);
    struct hw_field *fields[2] = {maker_field(maker, a, declaration, offset, 4, 4),
                                  maker_field(maker, b, declaration, offset + 4, 1, 1)};
    for (int i = 0; i < 2; i++) {
        fields[i]->member_offset = offset;
        fields[i]->member_size = 8;
        fields[i]->member_alignment = 4;
    }
}

static void add_bits(struct field_maker *maker, struct cursor *cursor, unsigned number)
{
    static const struct {
        const char *type;
        uint32_t size;
    } types[] = {{"unsigned int", 4}, {"unsigned char", 1}, {"unsigned long", 8}, {"unsigned short", 2}};
    const unsigned type = any(4), width = 1 + any(types[type].size * 8 > 24 ? 24 : types[type].size * 8);
    const uint64_t unit = 8ull * types[type].size;
    char name[16], declaration[64];
    if (cursor->bit % unit + width > unit)
        cursor->bit = up(cursor->bit, unit);
    snprintf(name, sizeof name, "m%u", number);
    snprintf(declaration, sizeof declaration, "%s m%u : %u", types[type].type, number, width);
    const uint64_t first = cursor->bit / 8, bytes = (cursor->bit + width + 7) / 8 - first;
    struct hw_field *field = maker_field(maker, name, declaration, first, bytes, types[type].size);
    field->flags = HW_FIELD_BITS;
    field->bit_offset = (uint32_t)(cursor->bit % 8);
    field->bit_size = width;
    cursor->bit += width;
    cursor->alignment = types[type].size > cursor->alignment ? types[type].size : cursor->alignment;
    maker->structs[maker->struct_count - 1].flags |= HW_STRUCT_BIT_FIELDS;
}

/* A struct of random members, and random uses of it. */
static void add_random_struct(struct field_maker *maker, unsigned number)
{
    char name[16];
    struct cursor cursor = {0, 1};
    snprintf(name, sizeof name, "s%u", number);
    const uint32_t index = maker_struct(maker, name, 0, 0, 0);
    struct hw_struct *owner = &maker->structs[index];
    const unsigned members = 2 + any(14);
    for (unsigned i = 0; i < members; i++) {
        const unsigned kind = any(10);
        (kind < 5 ? add_plain : kind < 7 ? add_array : kind < 8 ? add_nested : add_bits)(maker, &cursor, i);
    }
    if (any(5) == 0) {
        struct hw_field *last = maker_field(maker, "tail", "char tail[]", next_offset(&cursor, 0, 1), 0, 1);
        last->flags = HW_FIELD_ARRAY | HW_FIELD_FLEXIBLE;
        owner->flags |= HW_STRUCT_FLEXIBLE;
    }
    owner->alignment = cursor.alignment;
    owner->size = up(up(cursor.bit, 8) / 8, cursor.alignment);
    for (unsigned uses = 1 + any(4); uses; uses--) {
        struct hw_field_group *group = maker_use(maker, "f", 1 + any(1000000), NULL);
        group->line = uses;
        for (uint32_t i = 0; i < owner->field_count; i++)
            if (any(3) == 0)
                maker->members[maker->member_count++] =
                    (struct hw_group_member){.field = owner->first_field + i, .reads = 1};
        group->member_count = maker->member_count - group->first_member;
    }
    const unsigned where = any(3);
    if (where && !(owner->flags & HW_STRUCT_FLEXIBLE))
        maker_blocks(maker, name, where == 1 ? 5000 : 3, owner->size * (where == 1 ? 1 : 1000));
}

/* ---- what must hold ---- */

static void check_layout(const struct hw_struct_analysis *of, const struct hw_layout *layout, unsigned *seen)
{
    uint64_t end = 0;
    for (size_t i = 0; i < layout->count; i++) {
        const struct hw_unit *unit = &of->units.units[layout->order[i]];
        seen[layout->order[i]]++;
        if (unit->last)
            assert_int_equal(i, layout->count - 1);
        for (uint32_t k = 0; k < unit->field_count && !unit->bits; k++) {
            const struct hw_profile_field *field = &of->units.fields[unit->first_field + k];
            const uint64_t offset = layout->offsets[unit->first_field + k];
            if (field->alignment)
                assert_int_equal(offset % field->alignment, 0);
            assert_true(offset >= end || k);
            assert_true(offset + field->size <= layout->size || unit->last);
        }
        end = layout->offsets[unit->first_field] + (unit->bits ? 0 : unit->size);
    }
    assert_int_equal(layout->size % layout->alignment, 0);
}

static void check_suggestion(const struct hw_struct_analysis *of)
{
    const struct hw_suggestion *suggestion = &of->suggestion;
    unsigned *seen = calloc(of->units.count + 1, sizeof *seen);
    if (suggestion->kind == HW_SUGGEST_NOTHING) {
        free(seen);
        return;
    }
    check_layout(of, &suggestion->hot, seen);
    if (suggestion->kind == HW_SUGGEST_SPLIT)
        check_layout(of, &suggestion->cold, seen);
    for (size_t i = 0; i < of->units.count; i++)
        assert_int_equal(seen[i], 1);
    assert_true(suggestion->lines.per_use <= of->lines.per_use * (1 + 1e-9));
    assert_true(suggestion->hot.size <= of->structure->size);
    free(seen);
}

/* ---- what compilers say ---- */

/* Asserts on one field: where it is, or for a bit-field which byte its first bit is in. */
static void add_check(FILE *out, FILE *body, const struct hw_struct_analysis *of, uint32_t index, const char *type,
                      uint64_t offset)
{
    const struct hw_profile_field *field = &of->units.fields[index];
    if (field->flags & HW_FIELD_BITS)
        fprintf(
            body,
            "{ union { struct %s s; unsigned char b[sizeof(struct %s)]; } u; unsigned i = 0; memset(&u, 0, sizeof u);"
            " u.s.%s = %" PRIu64 "u; while (!u.b[i]) i++; if (i != %" PRIu64
            ") { printf(\"%s.%s: %%u\\n\", i); bad = 1; } }\n",
            type, type, field->name, ((uint64_t)1 << field->bit_size) - 1, offset, type, field->name);
    else
        fprintf(out, "STATIC_ASSERT(offsetof(struct %s, %s) == %" PRIu64 ", \"%s.%s\");\n", type, field->name, offset,
                type, field->name);
}

static void add_layout_checks(FILE *out, FILE *body, const struct hw_struct_analysis *of,
                              const struct hw_layout *layout, const char *type)
{
    fprintf(out, "STATIC_ASSERT(sizeof(struct %s) == %" PRIu64 ", \"size of %s\");\n", type, layout->size, type);
    for (size_t i = 0; i < layout->count; i++) {
        const struct hw_unit *unit = &of->units.units[layout->order[i]];
        for (uint32_t k = 0; k < unit->field_count; k++)
            add_check(out, body, of, unit->first_field + k, type, layout->offsets[unit->first_field + k]);
    }
}

/* The definition as it is, under the name NAME_was. */
static void add_original(FILE *out, FILE *body, const struct hw_struct_analysis *of)
{
    char type[64];
    snprintf(type, sizeof type, "%s_was", of->structure->name);
    fprintf(out, "struct %s {\n", type);
    for (size_t i = 0; i < of->units.count; i++)
        for (uint32_t k = 0; k < (of->units.units[i].bits ? of->units.units[i].field_count : 1); k++)
            fprintf(out, "    %s;\n", of->units.fields[of->units.units[i].first_field + k].declaration);
    fprintf(out, "};\nSTATIC_ASSERT(sizeof(struct %s) == %" PRIu64 ", \"%s\");\n", type, of->structure->size, type);
    for (uint32_t i = 0; i < of->structure->field_count; i++)
        add_check(out, body, of, i, type, of->units.fields[i].offset);
}

static void add_suggested(FILE *out, FILE *body, const struct hw_struct_analysis *of)
{
    struct hw_buffer definition = {0};
    char cold[64];
    hw_add_definition(&definition, of);
    fprintf(out, "%s", hw_buffer_text(&definition));
    hw_buffer_free(&definition);
    add_layout_checks(out, body, of, &of->suggestion.hot, of->structure->name);
    if (of->suggestion.kind != HW_SUGGEST_SPLIT)
        return;
    snprintf(cold, sizeof cold, "%s_cold", of->structure->name);
    add_layout_checks(out, body, of, &of->suggestion.cold, cold);
    fprintf(out, "STATIC_ASSERT(offsetof(struct %s, cold) == %" PRIu64 ", \"pointer\");\n", of->structure->name,
            of->suggestion.pointer);
}

static void compile(const char *compiler, const char *source, const char *program)
{
    const char *version[] = {compiler, "--version", NULL};
    struct run_result found = run(version, NULL);
    const bool there = found.code == 0;
    run_result_free(&found);
    if (!there)
        return;
    const char *command[] = {compiler, "-w", source, "-o", program, NULL};
    struct run_result built = run(command, NULL);
    if (built.code)
        fail_msg("%s: %s", run_describe(command), built.err);
    run_result_free(&built);
    const char *execute[] = {program, NULL};
    struct run_result ran = run(execute, NULL);
    if (ran.code)
        fail_msg("%s: %s", compiler, ran.out);
    run_result_free(&ran);
}

static void compile_all(const char *text, size_t size)
{
    char folder[] = "/tmp/heapwise-layout-XXXXXX", c[64], cc[64], program[64];
    static const char *const c_compilers[] = {"gcc", "clang", "clang-22", "clang-19"};
    static const char *const cc_compilers[] = {"g++", "clang++", "clang++-22", "clang++-19"};
    assert_non_null(mkdtemp(folder));
    snprintf(c, sizeof c, "%s/layout.c", folder);
    snprintf(cc, sizeof cc, "%s/layout.cpp", folder);
    snprintf(program, sizeof program, "%s/layout", folder);
    const char *const sources[] = {c, cc};
    for (int i = 0; i < 2; i++) {
        FILE *file = fopen(sources[i], "w");
        assert_non_null(file);
        assert_int_equal(fwrite(text, 1, size, file), size);
        assert_int_equal(fclose(file), 0);
        for (size_t k = 0; k < 4; k++)
            compile(i ? cc_compilers[k] : c_compilers[k], sources[i], program);
        unlink(sources[i]);
    }
    unlink(program);
    rmdir(folder);
}

/* ---- the tests ---- */

struct analysed {
    struct hw_profile *profile;
    struct hw_view *view;
    struct hw_view_analysis analysis;
};

static struct analysed analyse(struct image image)
{
    struct memory_file file = memory_file(image.bytes, image.size);
    struct hw_error error = {""};
    struct analysed of = {.profile = hw_profile_read(file.path, &error)};
    const struct hw_view_options options = {.no_symbols = true};
    close(file.fd);
    image_free(&image);
    if (!of.profile)
        fail_msg("%s", error.message);
    of.view = hw_view_new(of.profile, &options, &error);
    if (!of.view || !hw_view_analyse(&of.analysis, of.view, &error))
        fail_msg("%s", error.message);
    return of;
}

static void done(struct analysed *of)
{
    hw_view_analysis_free(&of->analysis);
    hw_view_free(of->view);
    hw_profile_free(of->profile);
}

static void random_structs(void **state)
{
    char *text = NULL, *body_text = NULL;
    size_t size = 0, body_size = 0, suggested = 0, splits = 0;
    FILE *out = open_memstream(&text, &size), *body = open_memstream(&body_text, &body_size);
    struct field_maker *maker = maker_new(false);
    random_state = 20261121;
    for (unsigned i = 0; i < STRUCTS; i++)
        add_random_struct(maker, i);
    struct analysed of = analyse(maker_image(maker, true));
    fputs(
        "#include <stddef.h>\n#include <stdio.h>\n#include <string.h>\n"
        "#ifdef __cplusplus\n#define STATIC_ASSERT static_assert\n#else\n#define STATIC_ASSERT _Static_assert\n#endif\n"
        "struct inner { int a; char b; };\n",
        out);
    for (size_t i = 0; i < of.analysis.analysis->struct_count; i++) {
        const struct hw_struct_analysis *one = &of.analysis.analysis->structs[i];
        assert_int_not_equal(one->units.verdict, HW_LAYOUT_UNEXPLAINED);
        check_suggestion(one);
        add_original(out, body, one);
        if (one->suggestion.kind != HW_SUGGEST_NOTHING)
            add_suggested(out, body, one);
        suggested += one->suggestion.kind != HW_SUGGEST_NOTHING;
        splits += one->suggestion.kind == HW_SUGGEST_SPLIT;
    }
    assert_true(suggested > STRUCTS / 3);
    assert_true(splits > 0);
    fclose(body);
    fprintf(out, "int main(void)\n{\nint bad = 0;\n%sreturn bad;\n}\n", body_text);
    fclose(out);
    compile_all(text, size);
    free(text);
    free(body_text);
    done(&of);
}

/* Names and declarations that are no C stay in comments. */
static void hostile_names(void **state)
{
    static const char *const names[] = {
        "demo::box<int*/, char>", "", "a b;}\n", "*/ #error", "9lives", "\"", "ns::good"};
    static const char *const declarations[] = {"long key",       "",           "int x; } evil; struct {",
                                               "char *a /* */",  "int b // c", "int (*call)(int, char *)",
                                               "long deep[2][3]"};
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    fputs("#ifdef __cplusplus\n#endif\n", out);
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        struct field_maker *maker = maker_new(false);
        maker_struct(maker, names[n], 8 * 5 + 88 + 48, 8, 0);
        uint64_t offset = 0;
        for (size_t i = 0; i < 7; i++) {
            char name[16];
            const uint64_t bytes = i == 6 ? 48 : i == 3 ? 88 : 8;
            snprintf(name, sizeof name, "f%zu*/", i);
            maker_field(maker, name, declarations[i], offset, bytes, 8)->flags = i == 3 ? HW_FIELD_ARRAY : 0;
            offset += bytes;
        }
        maker_use(maker, "walk", 1000000, "f0*/", "f5*/", NULL);
        struct analysed of = analyse(maker_image(maker, true));
        const struct hw_struct_analysis *one = &of.analysis.analysis->structs[0];
        assert_int_equal(of.profile->fields.structs[0].size, offset);
        assert_int_not_equal(one->suggestion.kind, HW_SUGGEST_NOTHING);
        struct hw_buffer definition = {0};
        hw_add_definition(&definition, one);
        fprintf(out, "namespace n%zu {\n%s}\n", n, hw_buffer_text(&definition));
        if (n == 6)
            assert_non_null(strstr(hw_buffer_text(&definition), "struct good {"));
        hw_buffer_free(&definition);
        done(&of);
    }
    fputs("int main() { return sizeof(n6::good) == 0; }\n", out);
    fclose(out);
    char folder[] = "/tmp/heapwise-layout-XXXXXX", source[64], program[64];
    assert_non_null(mkdtemp(folder));
    snprintf(source, sizeof source, "%s/names.cpp", folder);
    snprintf(program, sizeof program, "%s/names", folder);
    FILE *file = fopen(source, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size, file), size);
    fclose(file);
    compile("g++", source, program);
    compile("clang++-22", source, program);
    unlink(source);
    unlink(program);
    rmdir(folder);
    free(text);
}

/* Base classes and the pointer to virtual functions stay in front. */
static void classes(void **state)
{
    struct field_maker *maker = maker_new(false);
    maker_struct(maker, "demo::shape", 160, 8, HW_STRUCT_POLYMORPHIC | HW_STRUCT_BASES | HW_STRUCT_CPLUSPLUS);
    maker_field(maker, "_vptr", "", 0, 8, 8)->flags = HW_FIELD_VPTR | HW_FIELD_POINTER;
    struct hw_field *base = maker_field(maker, "object::id", "", 8, 8, 8);
    base->flags = HW_FIELD_BASE;
    maker_field(maker, "label", "char label[120]", 16, 120, 1)->flags = HW_FIELD_ARRAY;
    maker_field(maker, "area", "double area", 136, 8, 8);
    maker_field(maker, "used", "long used", 144, 8, 8);
    maker_field(maker, "other", "long other", 152, 8, 8);
    maker_use(maker, "sum", 1000000, "_vptr", "area", NULL);
    struct analysed of = analyse(maker_image(maker, true));
    const struct hw_struct_analysis *one = &of.analysis.analysis->structs[0];
    assert_int_equal(one->suggestion.kind, HW_SUGGEST_REORDER);
    assert_int_equal(one->suggestion.hot.order[0], 0);
    assert_int_equal(one->suggestion.hot.order[1], 1);
    assert_true(one->suggestion.hot.offsets[3] < 64);
    done(&of);
}

/* A struct of hundreds of members is done in bounded time. */
static void many_members(void **state)
{
    struct field_maker *maker = maker_new(false);
    struct cursor cursor = {0, 1};
    random_state = 7;
    maker_struct(maker, "task", 0, 0, 0);
    for (unsigned i = 0; i < 400; i++)
        add_plain(maker, &cursor, i);
    maker->structs[0].alignment = cursor.alignment;
    maker->structs[0].size = up(up(cursor.bit, 8) / 8, cursor.alignment);
    for (unsigned g = 0; g < 60; g++) {
        struct hw_field_group *group = maker_use(maker, "f", 1 + any(1000000), NULL);
        for (unsigned i = 0; i < 5; i++)
            maker->members[maker->member_count++] = (struct hw_group_member){.field = any(400), .reads = 1};
        group->member_count = 5;
        group->line = g;
    }
    struct analysed of = analyse(maker_image(maker, true));
    check_suggestion(&of.analysis.analysis->structs[0]);
    assert_int_not_equal(of.analysis.analysis->structs[0].suggestion.kind, HW_SUGGEST_NOTHING);
    done(&of);
}

TEST_LIST(cmocka_unit_test(random_structs), cmocka_unit_test(hostile_names), cmocka_unit_test(classes),
          cmocka_unit_test(many_members))
