/* test_profile_fields.c - the reader on counted fields: merging by identity, sums over groups, damage. */
#include <stdio.h>

#include "profile/container/container.h"
#include "profile/merge/merge.h"
#include "profile/container/write.h"
#include "read_image.h"

static void test_none(void **state)
{
    struct sample sample = sample_new();
    struct hw_profile *profile = read_image(&sample.image, NULL);
    assert_false(profile->fields.counted);
    assert_int_equal(profile->fields.struct_count, 0);
    assert_int_equal(profile->contexts[0].type, 0);
    hw_profile_free(profile);
}

static void check_node(const struct hw_profile *profile, const struct hw_profile_struct *node)
{
    static const char *const names[6] = {"pos.x", "pos.y", "next", "kind", "mark", "name"};
    const struct hw_profile_field *fields = &profile->fields.fields[node->first_field];
    assert_string_equal(node->name, "node");
    assert_string_equal(node->file, "node.c");
    assert_int_equal(node->size, 40);
    assert_int_equal(node->field_count, 6);
    assert_int_equal(node->flags, HW_STRUCT_BIT_FIELDS | HW_STRUCT_WHOLE);
    assert_int_equal(node->whole_reads, 5);
    for (size_t i = 0; i < 6; i++) {
        assert_string_equal(fields[i].name, names[i]);
        assert_int_equal(fields[i].reads, i < 3 ? 100 + 11 + 5 : 5);
        assert_int_equal(fields[i].writes, 0);
    }
    assert_string_equal(fields[0].declaration, "struct vec pos");
    assert_int_equal(fields[1].member_offset, 0);
    assert_int_equal(fields[4].bit_offset, 3);
    assert_int_equal(node->reads, 3 * 111 + 6 * 5);
}

static void test_merged(void **state)
{
    for (int sealed = 0; sealed < 2; sealed++) {
        struct sample sample = sample_new();
        sample_add_fields(&sample);
        if (sealed)
            image_seal(&sample.image);
        struct hw_profile *profile = read_image(&sample.image, NULL);
        const struct hw_profile_fields *fields = &profile->fields;
        assert_true(fields->counted);
        assert_int_equal(fields->struct_count, 2); /* one name, two layouts */
        assert_int_equal(fields->structs[0].identity, 1000);
        assert_int_equal(fields->structs[0].reads, 3);
        assert_int_equal(fields->fields[fields->structs[0].first_field].writes, 4);
        check_node(profile, &fields->structs[1]);

        assert_int_equal(fields->structs[1].group_count, 2); /* of the two entries: added up */
        const struct hw_profile_field_group *groups = &fields->groups[fields->structs[1].first_group];
        assert_int_equal(groups[0].executions, 111);
        assert_int_equal(groups[0].member_count, 3);
        assert_string_equal(groups[0].function, "walk");
        assert_int_equal(groups[1].executions, 5);
        assert_int_equal(fields->members[groups[1].first_member].field, HW_NONE);
        assert_int_equal(fields->unattributed_reads, 20);
        assert_int_equal(fields->unattributed_writes, 40);
        assert_int_equal(fields->attributed_reads, 3 + 3 * 111 + 6 * 5);

        assert_int_equal(fields->structs[1].window_count, 2);
        const struct hw_profile_field_window *windows = &fields->windows[fields->structs[1].first_window];
        assert_int_equal(windows[0].weight, 60);
        assert_int_equal(windows[1].weight, 57);
        assert_int_equal(fields->info.windows, 12);
        assert_int_equal(fields->harvest_ns, 2000000);
        assert_int_equal(profile->contexts[0].type, 78);
        assert_int_equal(profile->contexts[1].type, 79);
        hw_profile_free(profile);
    }
}

static void test_types_of_accesses(void **state)
{
    struct sample sample = sample_new();
    sample_add_accesses(&sample);
    sample_add_fields(&sample);
    struct hw_profile *profile = read_image(&sample.image, NULL);
    assert_int_equal(profile->contexts[0].type, 77);
    assert_true(profile->contexts[0].types_differ);
    hw_profile_free(profile);
}

/* What is damaged is left out, with a sentence, and all else stays. */
static void test_damage(void **state)
{
    for (int damage = 0; damage < 11; damage++) {
        struct sample sample = sample_new();
        struct field_sample added = sample_add_fields(&sample);
        struct hw_struct *structs = image_data(&sample.image, added.structs);
        struct hw_field *fields = image_data(&sample.image, added.fields);
        struct hw_field_group *groups = image_data(&sample.image, added.groups);
        struct hw_group_member *members = image_data(&sample.image, added.members);
        struct hw_field_window *windows = image_data(&sample.image, added.windows);
        struct hw_context_type *types = image_data(&sample.image, added.types);
        const char *problem = NULL;
        switch (damage) {
        case 0:
            structs[1].field_count = 100;
            problem = "fields of a struct are not there";
            break;
        case 1:
            structs[1].first_field = HW_NONE;
            problem = "fields of a struct are not there";
            break;
        case 2:
            structs[1].size = 48;
            problem = "same identity";
            break;
        case 3:
            structs[2].first_field = 0;
            problem = "same fields";
            break;
        case 4:
            fields[2].size = UINT64_MAX;
            fields[8].size = UINT64_MAX;
            problem = "ends before it begins";
            break;
        case 5:
            groups[0].structure = 3;
            problem = "names what is not there";
            break;
        case 6:
            groups[0].first_member = 7;
            problem = "names what is not there";
            break;
        case 7:
            members[1].field = 12; /* of another struct */
            problem = "names what is not there";
            break;
        case 8:
            windows[0].field_b = 0;
            problem = "names what is not there";
            break;
        case 9:
            types[0].context = 4;
            problem = "names a context";
            break;
        case 10:
            fields[0].name = 1 << 20;
            problem = "Strings are missing";
            break;
        }
        struct hw_profile *profile = read_image(&sample.image, problem);
        assert_true(profile->fields.counted);
        assert_int_equal(profile->fields.unattributed_reads, 20);
        hw_profile_free(profile);
    }
}

/* Sums stop; a group has as many accesses as there are, not fewer. */
static void test_overflow(void **state)
{
    struct sample sample = sample_new();
    struct field_sample added = sample_add_fields(&sample);
    struct hw_field_group *groups = image_data(&sample.image, added.groups);
    groups[0].executions = UINT64_MAX - 3;
    struct hw_profile *profile = read_image(&sample.image, NULL);
    assert_int_equal(profile->fields.groups[0].executions, UINT64_MAX);
    assert_int_equal(profile->fields.fields[profile->fields.structs[1].first_field].reads, UINT64_MAX);
    assert_int_equal(profile->fields.attributed_reads, UINT64_MAX);
    hw_profile_free(profile);
}

/* Entries that are shared by many groups do not make more of them than the file has. */
static void test_members_shared(void **state)
{
    struct sample sample = sample_new();
    struct field_sample added = sample_add_fields(&sample);
    struct hw_field_group *groups = image_data(&sample.image, added.groups);
    for (int i = 0; i < 5; i++) {
        groups[i] = groups[0];
        groups[i].line = (uint32_t)i;
        groups[i].executions = 1;
    }
    struct hw_profile *profile = read_image(&sample.image, "names what is not there");
    assert_int_equal(profile->fields.group_count, 2);
    hw_profile_free(profile);
}

/* COUNT profiles, as one. */
static struct hw_profile *merged(struct hw_profile *const *profiles, size_t count, unsigned char **bytes, size_t *size)
{
    struct hw_merge *merge = hw_merge_new();
    struct hw_arena arena = {0};
    struct hw_tables tables;
    struct hw_error error = {""};
    const struct hw_write_options options = {.packed = true};
    for (size_t i = 0; i < count; i++)
        if (!hw_merge_add(merge, profiles[i], &error))
            fail_msg("%s", error.message);
    if (!hw_merge_finish(merge, &arena, &tables, &error))
        fail_msg("%s", error.message);
    *bytes = hw_tables_serialize(&tables, &options, size, &error);
    assert_non_null(*bytes);
    hw_merge_free(merge);
    hw_arena_free(&arena);
    struct hw_profile *profile = hw_profile_read_bytes(*bytes, *size, "merged", &error);
    if (!profile)
        fail_msg("%s", error.message);
    for (size_t i = 0; i < profile->problem_count; i++)
        fail_msg("%s", profile->problems[i]);
    return profile;
}

/* Two processes, one of which has other counts and a struct of its own. */
static void two_profiles(struct hw_profile *profiles[2])
{
    struct sample sample = sample_new();
    sample_add_fields(&sample);
    profiles[0] = read_image(&sample.image, NULL);
    sample = sample_new();
    struct field_sample added = sample_add_fields(&sample);
    struct hw_struct *structs = image_data(&sample.image, added.structs);
    struct hw_field *fields = image_data(&sample.image, added.fields);
    struct hw_field_group *groups = image_data(&sample.image, added.groups);
    struct hw_context_type *types = image_data(&sample.image, added.types);
    structs[2].identity = 1002;
    structs[0].flags |= HW_STRUCT_ABI;
    groups[0].executions = 1000;
    groups[1].line = 99;
    groups[2].object = 77;
    fields[0].part = 4711;
    fields[0].part_offset = 8;
    types[0].type = 5;
    profiles[1] = read_image(&sample.image, NULL);
}

static void test_several_processes(void **state)
{
    (void)state;
    struct hw_profile *profiles[2], *turned[2];
    unsigned char *bytes, *other_bytes;
    size_t size, other_size;
    two_profiles(profiles);
    turned[0] = profiles[1];
    turned[1] = profiles[0];
    struct hw_profile *sum = merged(profiles, 2, &bytes, &size), *other = merged(turned, 2, &other_bytes, &other_size);
    assert_int_equal(size, other_size);
    assert_memory_equal(bytes, other_bytes, size);
    hw_profile_free(other);
    free(other_bytes);
    other = merged(&sum, 1, &other_bytes, &other_size); /* once more: the same */
    assert_int_equal(size, other_size);
    assert_memory_equal(bytes, other_bytes, size);

    const struct hw_profile_fields *fields = &sum->fields;
    assert_int_equal(fields->struct_count, 3);
    const struct hw_profile_struct *node = &fields->structs[0];
    while (node->field_count != 6)
        node++;
    assert_int_equal(node->flags, HW_STRUCT_BIT_FIELDS | HW_STRUCT_WHOLE | HW_STRUCT_ABI);
    assert_int_equal(node->group_count, 4);
    assert_int_equal(fields->groups[node->first_group].executions, 111 + 1000);
    assert_int_equal(fields->groups[node->first_group].object, 0);
    assert_int_equal(fields->groups[node->first_group + 1].executions, 11);
    assert_int_equal(fields->groups[node->first_group + 1].object, 77);
    assert_int_equal(fields->fields[node->first_field].part, 4711);
    assert_int_equal(fields->fields[node->first_field].part_offset, 8);
    assert_int_equal(fields->fields[node->first_field].reads, 111 + 1011 + 5 + 5);
    assert_int_equal(node->whole_reads, 10);
    assert_int_equal(fields->windows[node->first_window].weight, 2 * 60);
    assert_int_equal(fields->info.windows, 24);
    assert_int_equal(fields->unattributed_writes, 80);
    for (size_t i = 0; i < 3; i++)
        if (fields->structs[i].field_count == 1)
            assert_int_equal(fields->structs[i].reads, 3); /* counted in no group */
    size_t differ = 0;
    for (size_t i = 0; i < sum->context_count; i++) {
        assert_true(sum->contexts[i].type != 0);
        differ += sum->contexts[i].types_differ;
    }
    assert_int_equal(differ, 1);
    hw_profile_free(sum);
    hw_profile_free(other);
    free(bytes);
    free(other_bytes);
    hw_profile_free(profiles[0]);
    hw_profile_free(profiles[1]);
}

TEST_LIST(cmocka_unit_test(test_none), cmocka_unit_test(test_merged), cmocka_unit_test(test_types_of_accesses),
          cmocka_unit_test(test_damage), cmocka_unit_test(test_overflow), cmocka_unit_test(test_members_shared),
          cmocka_unit_test(test_several_processes))
