/* test_profile_pack.c - packed extents: the schema, chunks by themselves, newer versions, damage. */
#include "support/check.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile/container.h"
#include "profile/pack.h"
#include "profile/profile.h"
#include "profile/write.h"
#include "profile_writer.h"

/* ---- the schema ---- */

/* Tags are what files of all versions rely on: unique, and each word of an entry is covered whole or not at all. */
static void test_schema(void **state)
{
    for (uint32_t type = 0; type < HW_SECTION_KNOWN; type++) {
        const struct hw_section_rule *rule = hw_section_rule(type);
        size_t count;
        const struct hw_pack_field *fields = hw_pack_fields(type, &count), *field;
        unsigned char covered[1024] = {0};
        struct hw_pack_field found;
        if (!fields) {
            if (rule && type != HW_SECTION_DIRECTORY && type != HW_SECTION_PROCESS && type != HW_SECTION_STRINGS &&
                type != HW_SECTION_FUNCTIONS)
                fail_msg("pack_schema.c does not know the fields of the %s section", rule->name);
            continue;
        }
        assert_non_null(rule);
        assert_true(rule->size <= sizeof covered && rule->size % 8 == 0);
        for (field = fields; field < fields + count; field++) {
            assert_true(field->tag > 0 && field->tag < HW_PACK_WORD);
            assert_true(field->width == 2 || field->width == 4 || field->width == 8);
            assert_true(field->offset + field->width <= rule->size);
            for (size_t i = 0; i < field->width; i++)
                assert_int_equal(covered[field->offset + i]++, 0);
            for (const struct hw_pack_field *other = fields; other < field; other++)
                assert_int_not_equal(other->tag, field->tag);
            assert_true(hw_pack_field(type, field->tag, &found) && found.offset == field->offset);
            /* What it refers to stands before it. */
            for (int i = 0; i < 2; i++) {
                bool before = field->reference[i] == 0;
                for (const struct hw_pack_field *other = fields; other < field; other++)
                    before |= other->tag == field->reference[i];
                assert_true(before);
            }
            assert_int_equal(field->reference[0] != 0, field->predictor >= HW_PACK_FIELD);
            assert_int_equal(field->reference[1] != 0, field->predictor > HW_PACK_FIELD);
        }
        for (size_t word = 0; word < rule->size; word += 8)
            for (size_t i = 1; i < 8; i++)
                assert_int_equal(covered[word + i], covered[word]);
        assert_false(hw_pack_field(type, 0, &found));
        assert_false(hw_pack_field(type, HW_PACK_WORD - 1, &found));
        assert_true(hw_pack_field(type, HW_PACK_WORD + 3, &found) && found.offset == 24 && found.width == 8);
    }
}

/* Some numbers that may never change: files exist that have them. */
static void test_tags(void **state)
{
    static const struct {
        uint32_t type;
        uint16_t tag, offset;
    } fixed[] = {
        {HW_SECTION_MAPS, 1, offsetof(struct hw_map_entry, start)},
        {HW_SECTION_STACKS, 1, offsetof(struct hw_stack_node, pc)},
        {HW_SECTION_STACKS, 3, offsetof(struct hw_stack_node, parent)},
        {HW_SECTION_CONTEXTS, 4, offsetof(struct hw_context_entry, first_tick)},
        {HW_SECTION_MIBS, 4, offsetof(struct hw_mib, allocations)},
        {HW_SECTION_MIBS, 10, offsetof(struct hw_mib, last_alloc_tick)},
        {HW_SECTION_MIBS, 21, offsetof(struct hw_mib, frees)},
        {HW_SECTION_MIBS, 38, offsetof(struct hw_mib, inherited_freed_bytes)},
        {HW_SECTION_THREADS, 16, offsetof(struct hw_thread_entry, incomplete_walks)},
        {HW_SECTION_ACCESS, 3, offsetof(struct hw_access, type)},
        {HW_SECTION_ACCESS_LIVE, 28, offsetof(struct hw_access, saturated_cells)},
        {HW_SECTION_HISTOGRAM, 3, offsetof(struct hw_histogram, saturated)},
        {HW_SECTION_FRAMES, 10, offsetof(struct hw_symbol_frame, reserved0)},
    };
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        struct hw_pack_field field;
        assert_true(hw_pack_field(fixed[i].type, fixed[i].tag, &field));
        assert_int_equal(field.offset, fixed[i].offset);
    }
}

TEST_MAIN(cmocka_unit_test(test_schema), cmocka_unit_test(test_tags))
