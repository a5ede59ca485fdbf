/* test_analysis.c - findings on profiles made by hand: each kind where there is a problem, none where there is none;
 * lines counted by a second, plain method. */
#include <stdio.h>

#include "support/check.h"
#include "unit/report/fields_sample.h"

#include "analysis/internal.h"
#include "profile/profile.h"

#include <math.h>

/* ---- a profile and its analysis ---- */

struct analysed {
    struct hw_profile *profile;
    const struct hw_profile_context **contexts;
    struct hw_analysis *analysis;
};

static bool words_of(const void *closure, size_t context, uint64_t *words, size_t count)
{
    const struct hw_profile *profile = closure;
    bool any = false;
    for (size_t i = 0; i < profile->histogram_count; i++)
        if (profile->histogram[i].context == profile->contexts[context].id)
            for (size_t k = 0; k < HW_HISTOGRAM_WORDS && profile->histogram[i].first_word + k < count; any = true, k++)
                words[profile->histogram[i].first_word + k] += profile->histogram[i].words[k];
    return any;
}

static struct analysed analyse(struct image image)
{
    struct memory_file file = memory_file(image.bytes, image.size);
    struct hw_error error = {""};
    struct analysed of = {.profile = hw_profile_read(file.path, &error)};
    close(file.fd);
    image_free(&image);
    if (!of.profile)
        fail_msg("%s", error.message);
    for (size_t i = 0; i < of.profile->problem_count; i++)
        fail_msg("%s", of.profile->problems[i]);
    of.contexts = calloc(of.profile->context_count + 1, sizeof *of.contexts);
    for (size_t i = 0; i < of.profile->context_count; i++)
        of.contexts[i] = &of.profile->contexts[i];
    const struct hw_analysis_input input = {
        .profile = of.profile,
        .contexts = of.contexts,
        .context_count = of.profile->context_count,
        .words = words_of,
        .word_bytes = of.profile->access_info.granule < 64 ? of.profile->access_info.granule : 0,
        .periods = of.profile->access_info.granule == 4,
        .closure = of.profile};
    of.analysis = hw_analysis_new(&input, &error);
    if (!of.analysis)
        fail_msg("%s", error.message);
    return of;
}

static void done(struct analysed *of)
{
    hw_analysis_free(of->analysis);
    hw_profile_free(of->profile);
    free(of->contexts);
}

static const struct hw_finding *find(const struct analysed *of, enum hw_finding_kind kind)
{
    for (size_t i = 0; i < of->analysis->finding_count; i++)
        if (of->analysis->findings[i].kind == kind)
            return &of->analysis->findings[i];
    return NULL;
}

static const struct hw_finding *must_find(const struct analysed *of, enum hw_finding_kind kind)
{
    const struct hw_finding *finding = find(of, kind);
    if (!finding)
        fail_msg("no finding %s", hw_finding_kind_names[kind]);
    return finding;
}

static void must_find_nothing(const struct analysed *of)
{
    for (size_t i = 0; i < of->analysis->finding_count; i++)
        fail_msg("finding %s", hw_finding_kind_names[of->analysis->findings[i].kind]);
}

/* ---- structs ---- */

static void nothing_counted(void **state)
{
    struct analysed of = analyse(report_image(report_sample(), true));
    assert_int_equal(of.analysis->struct_count, 0);
    must_find_nothing(&of);
    done(&of);
}

static void spread_fields(void **state)
{
    struct field_maker *maker = maker_new(false);
    add_spread_node(maker, 1000000, 50000000);
    struct analysed of = analyse(maker_image(maker, true));
    assert_int_equal(of.analysis->struct_count, 1);
    const struct hw_struct_analysis *node = &of.analysis->structs[0];
    assert_int_equal(node->objects.placement, HW_PLACE_SINGLE);
    assert_int_equal(node->objects.live, 1000000);
    assert_int_equal(node->padding, 7);
    /* key at 0, value at 64, next at 128: three lines wherever the block begins */
    assert_true(fabs(node->lines.per_use - (50e6 * 3 + 1e6 * 3.25 + 1e5 * 2) / 51.1e6) < 0.02);
    const struct hw_finding *finding = must_find(&of, HW_FINDING_LAYOUT);
    assert_ptr_equal(finding, of.analysis->findings); /* the first */
    assert_true(finding->certain && node->objects.starts_assumed && !finding->may_lie_well);
    assert_int_equal(finding->structure, 0);
    assert_int_equal(finding->context_count, 1);
    assert_int_equal(node->suggestion.kind, HW_SUGGEST_REORDER);
    /* 24 bytes at one place: in one line at three of four places where blocks begin */
    assert_true(node->suggestion.lines.per_use < 1.5);
    assert_true(finding->lines > 50e6 * 1.4 && finding->lines < 51.1e6 * 2);
    assert_int_equal(node->suggestion.hot.size, 136);
    done(&of);
}

/* Two fields that are used together lie in one line at three of the four places in a line where blocks can begin. Where
 * they do begin was not counted: all may lie well, so that the mean is no certain gain. */
static void places_that_were_not_counted(void **state)
{
    struct field_maker *maker = maker_new(false);
    maker_struct(maker, "node", 120, 8, 0);
    maker_field(maker, "id", "int id", 0, 4, 4);
    maker_field(maker, "pad", "char pad[100]", 4, 100, 1)->flags = HW_FIELD_ARRAY;
    maker_field(maker, "w", "double w", 104, 8, 8);
    maker_field(maker, "next", "struct node *next", 112, 8, 8)->flags = HW_FIELD_POINTER;
    maker_use(maker, "walk", 50000000, "w", "next", NULL);
    maker_blocks(maker, "node", 1000000, 120);
    struct analysed of = analyse(maker_image(maker, true));
    const struct hw_struct_analysis *node = &of.analysis->structs[0];
    assert_true(node->objects.starts_assumed);
    assert_true(fabs(node->lines.per_use - 1.25) < 0.01 && fabs(node->least_lines - 1) < 0.01);
    const struct hw_finding *finding = must_find(&of, HW_FINDING_LAYOUT);
    assert_true(finding->may_lie_well);
    assert_false(finding->certain);
    done(&of);
}

static void good_struct(void **state)
{
    struct field_maker *maker = maker_new(false);
    add_good_point(maker, 1000000, 500000000);
    struct analysed of = analyse(maker_image(maker, true));
    assert_int_equal(of.analysis->struct_count, 1);
    assert_true(fabs(of.analysis->structs[0].lines.per_use - 1) < 1e-9);
    assert_true(fabs(of.analysis->structs[0].fragmentation) < 1e-9);
    assert_int_equal(of.analysis->structs[0].suggestion.kind, HW_SUGGEST_NOTHING);
    must_find_nothing(&of);
    done(&of);
}

/* What fits into a cache costs nothing. */
static void few_objects(void **state)
{
    struct field_maker *maker = maker_new(false);
    add_spread_node(maker, 100, 500000000);
    struct analysed of = analyse(maker_image(maker, true));
    assert_true(of.analysis->structs[0].lines.per_use > 2.9);
    assert_true(of.analysis->structs[0].lines.missed < 1);
    must_find_nothing(&of);
    done(&of);
}

/* How many there are is not known: said, and ranked below what is certain. */
static void unknown_objects(void **state)
{
    struct field_maker *maker = maker_new(false);
    add_spread_node(maker, 1000000, 50000000);
    maker->type_count = 0;
    maker->sample->mibs[1].size_min = 8; /* blocks of several sizes: none is taken for a node */
    struct analysed of = analyse(maker_image(maker, true));
    assert_int_equal(of.analysis->structs[0].objects.placement, HW_PLACE_UNKNOWN);
    const struct hw_finding *finding = must_find(&of, HW_FINDING_LAYOUT);
    assert_false(finding->certain);
    assert_int_equal(finding->context_count, 0);
    done(&of);
}

static void objects_by_size(void **state)
{
    struct field_maker *maker = maker_new(false);
    add_spread_node(maker, 1000000, 50000000);
    maker->type_count = 0;
    struct analysed of = analyse(maker_image(maker, true));
    assert_int_equal(of.analysis->structs[0].objects.placement, HW_PLACE_SINGLE);
    assert_true(of.analysis->structs[0].objects.by_size);
    assert_int_equal(of.analysis->structs[0].objects.live, 1000000);
    done(&of);
}

/* Elements of an array that is walked: a hot part of its own is worth more than an order. */
static void split_in_arrays(void **state)
{
    struct field_maker *maker = maker_new(false);
    maker_struct(maker, "body", 64, 8, 0);
    maker_field(maker, "x", "double x", 0, 8, 8);
    for (int i = 0; i < 6; i++) {
        char name[16], declaration[24];
        snprintf(name, sizeof name, "m%d", i);
        snprintf(declaration, sizeof declaration, "long m%d", i);
        maker_field(maker, name, declaration, 8 + 8 * (uint64_t)i, 8, 8);
    }
    maker_field(maker, "y", "double y", 56, 8, 8);
    maker_use(maker, "step", 100000000, "x", "y", NULL);
    maker_use(maker, "load", 100000, "=", "m0", "m1", "m2", "m3", "m4", "m5", NULL);
    maker_blocks(maker, "body", 1, 64 * 100000);
    struct analysed of = analyse(maker_image(maker, true));
    const struct hw_struct_analysis *body = &of.analysis->structs[0];
    assert_int_equal(body->objects.placement, HW_PLACE_ARRAY);
    assert_int_equal(body->objects.live, 100000);
    assert_true(fabs(body->lines.per_use - 1) < 0.01);
    assert_int_equal(body->suggestion.kind, HW_SUGGEST_SPLIT);
    assert_int_equal(body->suggestion.hot.size, 24); /* x, y, the pointer */
    assert_int_equal(body->suggestion.cold.size, 48);
    assert_int_equal(body->suggestion.pointer, 16);
    assert_true(fabs(body->suggestion.lines.per_use - 24.0 / 64) < 0.01);
    must_find(&of, HW_FINDING_LAYOUT);
    done(&of);
}

/* 48 bytes that are used together and begin anywhere in a line. */
static void astride(void **state)
{
    struct field_maker *maker = maker_new(false);
    maker_struct(maker, "cell", 48, 8, 0);
    for (int i = 0; i < 6; i++) {
        char name[16], declaration[24];
        snprintf(name, sizeof name, "v%d", i);
        snprintf(declaration, sizeof declaration, "long v%d", i);
        maker_field(maker, name, declaration, 8 * (uint64_t)i, 8, 8);
    }
    maker_use(maker, "visit", 100000000, "v0", "v1", "v2", "v3", "v4", "v5", NULL);
    maker_blocks(maker, "cell", 1000000, 48);
    struct analysed of = analyse(maker_image(maker, true));
    assert_true(fabs(of.analysis->structs[0].lines.per_use - 1.5) < 1e-9);
    assert_true(fabs(of.analysis->structs[0].aligned_lines - 1) < 1e-9);
    const struct hw_finding *finding = must_find(&of, HW_FINDING_ASTRIDE);
    assert_true(fabs(finding->lines / 50e6 - 1) < 0.01);
    assert_null(find(&of, HW_FINDING_LAYOUT));
    done(&of);
}

static void padding(void **state)
{
    struct field_maker *maker = maker_new(false);
    maker_struct(maker, "item", 24, 8, 0);
    maker_field(maker, "a", "char a", 0, 1, 1);
    maker_field(maker, "b", "long b", 8, 8, 8);
    maker_field(maker, "c", "char c", 16, 1, 1);
    maker_use(maker, "visit", 2000000, "b", NULL);
    maker_blocks(maker, "item", 1000000, 24);
    struct analysed of = analyse(maker_image(maker, true));
    assert_int_equal(of.analysis->structs[0].padding, 14);
    assert_int_equal(of.analysis->structs[0].suggestion.hot.size, 16);
    assert_true(must_find(&of, HW_FINDING_PADDING)->bytes == 8e6);
    done(&of);
}

static void unused_fields(void **state)
{
    struct field_maker *maker = maker_new(false);
    maker_struct(maker, "entry", 64, 8, 0);
    for (int i = 0; i < 8; i++) {
        char name[16], declaration[24];
        snprintf(name, sizeof name, "f%d", i);
        snprintf(declaration, sizeof declaration, "long f%d", i);
        maker_field(maker, name, declaration, 8 * (uint64_t)i, 8, 8);
    }
    maker_use(maker, "visit", 1000000, "f0", "f1", "f2", "f3", "=", "f4", "f5", NULL);
    maker_blocks(maker, "entry", 1000000, 64);
    struct analysed of = analyse(maker_image(maker, true));
    const struct hw_finding *unread = must_find(&of, HW_FINDING_UNREAD_FIELDS),
                            *unused = must_find(&of, HW_FINDING_UNUSED_FIELDS);
    assert_int_equal(unread->field_count, 2);
    assert_int_equal(unread->fields[0], 4);
    assert_int_equal(unread->writes, 2000000);
    assert_true(unread->bytes == 16e6);
    assert_int_equal(unused->field_count, 2);
    assert_int_equal(unused->fields[1], 7);
    done(&of);
    /* An address that is passed on may be used where nothing is counted. */
    maker = maker_new(false);
    maker_struct(maker, "entry", 64, 8, 0);
    for (int i = 0; i < 8; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%d", i);
        struct hw_field *field = maker_field(maker, name, "long f", 8 * (uint64_t)i, 8, 8);
        field->flags = i >= 4 ? HW_FIELD_ESCAPES : 0;
    }
    maker_use(maker, "visit", 1000000, "f0", "f1", "f2", "f3", "=", "f4", "f5", NULL);
    maker_blocks(maker, "entry", 1000000, 64);
    of = analyse(maker_image(maker, true));
    assert_null(find(&of, HW_FINDING_UNREAD_FIELDS));
    assert_null(find(&of, HW_FINDING_UNUSED_FIELDS));
    done(&of);
}

/* The order that must stay. */
static void fixed_orders(void **state)
{
    static const struct {
        uint32_t flag;
        enum hw_layout_verdict verdict;
    } rows[] = {{HW_STRUCT_UNION, HW_LAYOUT_UNION},
                {HW_STRUCT_PACKED, HW_LAYOUT_PACKED},
                {HW_STRUCT_WHOLE, HW_LAYOUT_WHOLE},
                {HW_STRUCT_ABI, HW_LAYOUT_ABI},
                {HW_STRUCT_NO_NAMES, HW_LAYOUT_NO_NAMES}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct field_maker *maker = maker_new(false);
        add_spread_node(maker, 1000000, 50000000);
        maker->structs[0].flags |= rows[i].flag;
        struct analysed of = analyse(maker_image(maker, true));
        assert_int_equal(of.analysis->structs[0].units.verdict, rows[i].verdict);
        assert_int_equal(of.analysis->structs[0].suggestion.kind, HW_SUGGEST_NOTHING);
        assert_null(find(&of, HW_FINDING_LAYOUT));
        done(&of);
    }
    /* Members where no rule puts them: an attribute that is not known. */
    struct field_maker *maker = maker_new(false);
    add_spread_node(maker, 1000000, 50000000);
    maker->structs[0].size = 192;
    struct analysed of = analyse(maker_image(maker, true));
    assert_int_equal(of.analysis->structs[0].units.verdict, HW_LAYOUT_UNEXPLAINED);
    done(&of);
}

/* Groups of one object are one use; of several, or of unknown ones, several. */
static void uses_of_objects(void **state)
{
    for (uint32_t object = 0; object < 3; object++) {
        struct field_maker *maker = maker_new(false);
        maker_struct(maker, "pair", 80, 8, 0);
        maker_field(maker, "a", "long a", 0, 8, 8);
        maker_field(maker, "gap", "char gap[64]", 8, 64, 1)->flags = HW_FIELD_ARRAY;
        maker_field(maker, "b", "long b", 72, 8, 8);
        maker_use(maker, "find", 1000000, "a", NULL)->object = object ? 1 : 0;
        maker_use(maker, "find", 400000, "b", NULL)->object = object;
        maker_blocks(maker, "pair", 100000, 80);
        struct analysed of = analyse(maker_image(maker, true));
        const struct hw_struct_analysis *pair = &of.analysis->structs[0];
        const bool together = object == 1;
        assert_true(pair->visits.executions == (together ? 1e6 : 1.4e6));
        assert_int_equal(pair->affinity_count, together);
        if (together)
            assert_int_equal(pair->affinity[0].together, 400000);
        assert_int_equal(pair->suggestion.kind, together ? HW_SUGGEST_REORDER : HW_SUGGEST_NOTHING);
        done(&of);
    }
}

/* Accesses that are in no group are uses by themselves; RFC ratio; windows. */
static void counts_without_groups(void **state)
{
    struct field_maker *maker = maker_new(false);
    maker_struct(maker, "pair", 16, 8, 0);
    maker_field(maker, "a", "long a", 0, 8, 8)->reads = 700;
    maker_field(maker, "b", "long b", 8, 8, 8)->writes = 100;
    maker->windows[maker->window_count++] = (struct hw_field_window){0, 0, 1, 0, 55};
    struct analysed of = analyse(maker_image(maker, true));
    const struct hw_struct_analysis *pair = &of.analysis->structs[0];
    assert_true(pair->visits.executions == 800);
    assert_int_equal(pair->rfc_ratio, 7);
    assert_int_equal(pair->affinity_count, 1);
    assert_int_equal(pair->affinity[0].weight, 55);
    assert_int_equal(pair->affinity[0].together, 0);
    must_find_nothing(&of);
    done(&of);
}

/* Structs that begin with the same members are used through each other: the beginning stays, and is not called unused.
 */
static void common_beginnings(void **state)
{
    for (int alike = 0; alike < 2; alike++) {
        struct field_maker *maker = maker_new(false);
        for (int i = 0; i < 2; i++) {
            maker_struct(maker, i ? "header" : "table", i ? 32 : 160, 8, 0);
            maker_field(maker, "next", "void *next", 0, 8, 8);
            maker_field(maker, i && !alike ? "other" : "kind", "long kind", 8, 8, 8);
            maker_field(maker, "mark", "long mark", 16, 8, 8);
            if (i) {
                maker_field(maker, "end", "long end", 24, 8, 8);
                continue;
            }
            maker_field(maker, "name", "char name[80]", 24, 80, 1)->flags = HW_FIELD_ARRAY;
            maker_field(maker, "u0", "double u0", 104, 8, 8);
            maker_field(maker, "u1", "double u1", 112, 8, 8);
            maker_field(maker, "u2", "double u2", 120, 8, 8);
            maker_field(maker, "u3", "double u3", 128, 8, 8);
            maker_field(maker, "a", "long a", 136, 8, 8);
            maker_field(maker, "b", "long b", 144, 8, 8);
            maker_field(maker, "c", "long c", 152, 8, 8);
            maker_use(maker, "visit", 10000000, "mark", "a", "b", "c", NULL);
            maker_blocks(maker, "table", 100000, 160);
        }
        maker_use(maker, "sweep", 10, "next", NULL);
        struct analysed of = analyse(maker_image(maker, true));
        const struct hw_struct_analysis *table = &of.analysis->structs[0];
        assert_string_equal(table->structure->name, "table");
        assert_int_equal(table->prefix, alike ? 3 : 0);
        assert_int_equal(table->suggestion.kind, HW_SUGGEST_REORDER);
        for (uint32_t i = 0; i < 3 && alike; i++)
            assert_int_equal(table->suggestion.hot.order[i], i);
        assert_int_equal(must_find(&of, HW_FINDING_UNUSED_FIELDS)->field_count, alike ? 4 : 6);
        done(&of);
    }
}

/* Blocks of unknown type that have the size of two structs are none's. */
static void rivals(void **state)
{
    struct field_maker *maker = maker_new(false);
    add_spread_node(maker, 1000000, 50000000);
    maker->type_count = 0;
    maker_struct(maker, "other", 136, 8, 0);
    maker_field(maker, "x", "long x[17]", 0, 136, 8)->flags = HW_FIELD_ARRAY;
    maker_use(maker, "f", 5, "x", NULL);
    struct analysed of = analyse(maker_image(maker, true));
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(of.analysis->structs[i].objects.placement, HW_PLACE_UNKNOWN);
    done(&of);
}

/* ---- lines, counted plainly ---- */

/* Distinct lines of a walk over COUNT elements from START on, divided by COUNT. */
static double walked_lines(uint64_t start, uint64_t size, uint64_t offset, uint64_t bytes, uint64_t offset2,
                           uint64_t bytes2, size_t count)
{
    unsigned char *seen = calloc((start + size * count) / 64 + 2, 1);
    size_t lines = 0;
    for (size_t i = 0; i < count; i++)
        for (uint64_t byte = 0; byte < size; byte++) {
            const bool touched =
                (byte >= offset && byte < offset + bytes) || (byte >= offset2 && byte < offset2 + bytes2);
            unsigned char *line = &seen[(start + i * size + byte) / 64];
            lines += touched && !*line;
            *line |= touched;
        }
    free(seen);
    return (double)lines / (double)count;
}

static void lines_of_walks(void **state)
{
    uint32_t *seen = calloc(HW_LINES_SEEN, sizeof *seen);
    struct hw_line_counter counter = {.seen = seen};
    for (uint64_t size = 16; size <= 400; size += 8) {
        const uint64_t offsets[2] = {size / 3 / 8 * 8, size - 8};
        struct hw_touch touches[2] = {{0, 8}, {1, 8}};
        struct hw_visit visit = {.executions = 1, .touch_count = 2, .walk = true};
        const struct hw_visits visits = {.visits = &visit, .count = 1, .touches = touches};
        for (unsigned start = 0; start < 64; start += 16) {
            struct hw_ground ground = {.placement = HW_PLACE_ARRAY, .live = 6400};
            ground.share[start / 8] = 1;
            const double lines = hw_lines_of_visit(&counter, &ground, &visits, &visit, offsets, size, UINT64_MAX);
            const double plain = walked_lines(start, size, offsets[0], 8, offsets[1], 8, 6400);
            if (fabs(lines - plain) > 0.002)
                fail_msg("size %d start %u: %f lines, not %f", (int)size, start, lines, plain);
        }
    }
    free(seen);
}

/* ---- blocks ---- */

static struct hw_access *block_sample(struct field_maker *maker, uint64_t blocks, uint64_t size, unsigned granule)
{
    struct report_sample *sample = maker->sample;
    sample->process.mode = HW_MODE_ACCESS;
    sample->access_info = (struct hw_access_info){.flags = HW_ACCESS_SPLIT | HW_ACCESS_HARVESTED,
                                                  .granule = granule,
                                                  .planes = 4,
                                                  .planes_most = 256,
                                                  .harvest_tick = 2000000000,
                                                  .modules = 1};
    for (uint32_t i = 0; i < 64; i++)
        sample->accesses[i] = sample_access(i);
    struct hw_mib *mib = maker_blocks(maker, NULL, blocks, size);
    mib->frees = blocks;
    mib->live_blocks = mib->live_bytes = 0;
    return &sample->accesses[mib->context];
}

static void sparse_blocks(void **state)
{
    for (int touched = 5; touched <= 60; touched += 55) {
        struct field_maker *maker = maker_new(false);
        count_accesses(block_sample(maker, 1000, 4096, 64), 1000, 4096, 64, (uint64_t)touched, 1000, 10);
        struct analysed of = analyse(maker_image(maker, true));
        const struct hw_finding *finding = find(&of, HW_FINDING_SPARSE);
        assert_int_equal(finding != NULL, touched == 5);
        if (finding) {
            assert_int_equal(finding->part, 59000);
            assert_int_equal(finding->blocks, 1000);
            assert_true(fabs(finding->bytes - 4096000 * (1 - 5.0 / 64)) < 1000);
        } else
            must_find_nothing(&of);
        done(&of);
    }
}

static void unused_words(void **state)
{
    for (int hole = 0; hole < 2; hole++) {
        struct field_maker *maker = maker_new(false);
        count_accesses(block_sample(maker, 10000, 80, 8), 10000, 80, 10, hole ? 7 : 10, 100, 10);
        struct hw_histogram *histogram = &maker->sample->histogram[maker->sample->histogram_count++];
        *histogram = (struct hw_histogram){.context = 1};
        for (int i = 0; i < 10; i++)
            histogram->words[i] = hole && i >= 3 && i < 6 ? 0 : 1000;
        struct analysed of = analyse(maker_image(maker, true));
        if (hole) {
            const struct hw_finding *finding = must_find(&of, HW_FINDING_UNUSED_WORDS);
            assert_int_equal(finding->first_byte, 24);
            assert_int_equal(finding->end_byte, 48);
            assert_int_equal(finding->part, 24);
            assert_true(finding->bytes == 240000);
            assert_null(find(&of, HW_FINDING_SPARSE));
        } else
            must_find_nothing(&of);
        done(&of);
    }
}

/* Of words that a sampler saw fewer are enough, and others are said. */
static void used_words(void **state)
{
    for (unsigned granule = 4; granule <= 8; granule += 4) {
        struct field_maker *maker = maker_new(false);
        count_accesses(block_sample(maker, 10000, 128, granule), 10000, 128, 128 / granule, 128 / granule, 10, 10);
        struct hw_histogram *histogram = &maker->sample->histogram[maker->sample->histogram_count++];
        *histogram = (struct hw_histogram){.context = 1};
        for (unsigned i = 0; i < 128 / granule; i++)
            histogram->words[i] = i < 4 ? 2000 : i < 20 ? i == 4 : 1;
        struct analysed of = analyse(maker_image(maker, true));
        if (granule == 4) {
            assert_int_equal(must_find(&of, HW_FINDING_HEADER)->end_byte, 16);
            const struct hw_finding *finding = must_find(&of, HW_FINDING_UNUSED_WORDS);
            assert_int_equal(finding->first_byte, 20);
            assert_int_equal(finding->end_byte, 80);
            assert_int_equal(finding->periods, 8000 + 1 + 12);
        } else
            assert_null(find(&of, HW_FINDING_HEADER));
        done(&of);
    }
}

static void hot_header(void **state)
{
    for (int hot = 0; hot < 2; hot++) {
        struct field_maker *maker = maker_new(false);
        count_accesses(block_sample(maker, 10000, 256, 8), 10000, 256, 32, 32, 1000, 10);
        struct hw_histogram *histogram = &maker->sample->histogram[maker->sample->histogram_count++];
        *histogram = (struct hw_histogram){.context = 1};
        for (int i = 0; i < 32; i++)
            histogram->words[i] = i < 2 && hot ? 5000000 : 10000;
        struct analysed of = analyse(maker_image(maker, true));
        if (hot) {
            const struct hw_finding *finding = must_find(&of, HW_FINDING_HEADER);
            assert_int_equal(finding->end_byte, 16);
            assert_true(finding->lines > 3e6 && finding->lines < 5e6);
        } else
            must_find_nothing(&of);
        done(&of);
    }
}

static void shared_lines(void **state)
{
    for (unsigned granule = 8; granule <= 64; granule += 56) {
        for (int shared = 0; shared < 2; shared++) {
            struct field_maker *maker = maker_new(false);
            struct hw_access *access = block_sample(maker, 1000, 64, granule);
            count_accesses(access, 1000, 64, granule == 8 ? 8 : 1, granule == 8 ? 8 : 1, 50000, 50000);
            access->shared_granules = 500; /* read by all, written by one: no problem */
            if (shared && granule == 8)
                access->lines_false_shared = 400;
            else if (shared)
                access->shared_written = access->shared_writers = 400;
            struct analysed of = analyse(maker_image(maker, true));
            if (shared) {
                const struct hw_finding *finding =
                    must_find(&of, granule == 8 ? HW_FINDING_FALSE_SHARING : HW_FINDING_SHARED_WRITES);
                assert_int_equal(finding->part, 400);
                assert_int_equal(finding->whole, 1000);
                assert_int_equal(finding->context_count, 1);
                assert_int_equal(finding->writes, 50000000);
            } else
                must_find_nothing(&of);
            done(&of);
        }
    }
}

/* Findings come in the order of what they cost. */
static void rank(void **state)
{
    struct field_maker *maker = maker_new(false);
    add_spread_node(maker, 1000000, 50000000);
    add_good_point(maker, 1000, 500);
    maker_struct(maker, "item", 24, 8, 0);
    maker_field(maker, "a", "char a", 0, 1, 1);
    maker_field(maker, "b", "long b", 8, 8, 8);
    maker_field(maker, "c", "char c", 16, 1, 1);
    maker_use(maker, "visit", 2000000, "b", NULL);
    maker_blocks(maker, "item", 1000000, 24);
    struct analysed of = analyse(maker_image(maker, true));
    assert_true(of.analysis->finding_count >= 2);
    for (size_t i = 1; i < of.analysis->finding_count; i++)
        assert_true(of.analysis->findings[i - 1].cost >= of.analysis->findings[i].cost);
    assert_int_equal(of.analysis->findings[0].kind, HW_FINDING_LAYOUT);
    assert_non_null(find(&of, HW_FINDING_PADDING));
    done(&of);
}

/* ---- what blocks hold ---- */

#define CONTENT_CONTEXTS 40

static struct hw_analysis *analyse_contents(const struct hw_contents *sums, bool pools)
{
    static struct hw_profile profile;
    static const struct hw_content_info info = {.bytes = 100000000};
    static struct hw_profile_context contexts[CONTENT_CONTEXTS];
    static const struct hw_profile_context *context[CONTENT_CONTEXTS];
    static const struct hw_contents *of[CONTENT_CONTEXTS];
    struct hw_error error = {""};
    profile = (struct hw_profile){.content_search = &info, .process = {.peak_bytes = 100000000}};
    for (size_t i = 0; i < CONTENT_CONTEXTS; i++) {
        contexts[i].pool = pools;
        context[i] = &contexts[i];
        of[i] = sums[i].blocks ? &sums[i] : NULL;
    }
    const struct hw_analysis_input input = {
        .profile = &profile, .contexts = context, .context_count = CONTENT_CONTEXTS, .contents = of};
    struct hw_analysis *analysis = hw_analysis_new(&input, &error);
    assert_non_null(analysis);
    return analysis;
}

static void contents_of_one_place(void **state)
{
    /* 3 + 2 + 1.5 + 1.25 MB: each byte is in one finding */
    const struct hw_contents sums[CONTENT_CONTEXTS] = {[7] = {.blocks = 100000,
                                                              .bytes = 9000000,
                                                              .identical_blocks = 62500,
                                                              .identical_bytes = 3000000,
                                                              .repeated = 12500,
                                                              .zero_blocks = 10,
                                                              .zero_bytes = 2500000,
                                                              .tail_blocks = 100,
                                                              .unused_tail_bytes = 4000000,
                                                              .avoidable_bytes = 7750000,
                                                              .avoidable_copies = 3000000,
                                                              .avoidable_zeros = 2000000,
                                                              .avoidable_ends = 1500000}};
    static const struct {
        enum hw_finding_kind kind;
        double bytes;
    } expected[] = {
        {HW_FINDING_COPIES, 3e6}, {HW_FINDING_ZEROS, 2e6}, {HW_FINDING_ENDS, 1.5e6}, {HW_FINDING_UNWRITTEN, 1.25e6}};
    struct hw_analysis *analysis = analyse_contents(sums, false);
    assert_int_equal(analysis->finding_count, 4);
    for (size_t i = 0; i < 4; i++) {
        const struct hw_finding *finding = &analysis->findings[i];
        assert_int_equal(finding->kind, expected[i].kind);
        assert_true(finding->bytes >= expected[i].bytes && finding->bytes <= expected[i].bytes && finding->certain);
        assert_true(finding->context_count == 1 && finding->contexts[0] == 7 && finding->whole == 100000000);
    }
    assert_true(fabs(analysis->findings[0].times - 6) < 1e-9);
    assert_int_equal(analysis->findings[0].block_bytes, 48);
    hw_analysis_free(analysis);
}

/* 1 % of the peak in a place; 10 % in places that have less, pools left out. */
static void contents_of_small_places(void **state)
{
    static const struct {
        uint64_t bytes;
        bool pools;
        size_t findings, contexts;
    } runs[] = {{1000000, false, CONTENT_CONTEXTS, 1},
                {999999, false, 1, CONTENT_CONTEXTS},
                {999999, true, 0, 0},
                {250000, false, 1, CONTENT_CONTEXTS},
                {249999, false, 0, 0}};
    for (size_t run = 0; run < sizeof runs / sizeof *runs; run++) {
        struct hw_contents sums[CONTENT_CONTEXTS] = {{0}};
        for (size_t i = 0; i < CONTENT_CONTEXTS; i++)
            sums[i] = (struct hw_contents){.blocks = 1,
                                           .bytes = runs[run].bytes,
                                           .avoidable_bytes = runs[run].bytes,
                                           .avoidable_zeros = runs[run].bytes};
        struct hw_analysis *analysis = analyse_contents(sums, runs[run].pools);
        assert_int_equal(analysis->finding_count, runs[run].findings);
        if (analysis->finding_count)
            assert_int_equal(analysis->findings[0].context_count, runs[run].contexts);
        hw_analysis_free(analysis);
    }
}

/* ---- pages that few blocks keep ---- */

/* What an arena of its own frees, as measured with docs/pinned.md: a place whose blocks stay at random, which has PEAK
 * bytes of ALL at the peak, and its blocks of SIZE on PAGES now. */
static double arena_gain(uint64_t blocks, uint64_t size, uint64_t pages, int64_t peak, uint64_t all)
{
    const struct hw_heap_pages heap = {.resident_bytes = pages * 4096};
    const struct hw_pin pin = {
        .blocks = blocks + 1, /* one is large, on no page of these */
        .own_bytes = blocks * size + (1 << 20),
        .pages = pages + 256,
        .sole_pages = pages + 256,
        .packed_bytes = blocks * size,
        .packed_blocks = blocks,
    };
    struct hw_page_group group = {.pages = pages, .live_bytes = blocks * size};
    for (size_t i = 1; i < HW_PAGE_GROUP_CONTEXTS; i++)
        group.contexts[i] = HW_NONE;
    const struct hw_profile profile = {.process = {.peak_bytes = all},
                                       .heap_pages = &heap,
                                       .pins = &pin,
                                       .pin_count = 1,
                                       .page_groups = &group,
                                       .page_group_count = 1,
                                       .context_entry_count = 1};
    const struct hw_profile_context context = {.live_bytes = (int64_t)(blocks * size), .peak_bytes = peak};
    const struct hw_profile_context *const contexts[] = {&context};
    static const uint32_t context_of[] = {0};
    const struct hw_analysis_input input = {
        .profile = &profile, .contexts = contexts, .context_count = 1, .context_of = context_of};
    struct hw_error error = {""};
    struct hw_analysis *analysis = hw_analysis_new(&input, &error);
    assert_non_null(analysis);
    double gain = 0;
    for (size_t i = 0; i < analysis->finding_count; i++)
        if (analysis->findings[i].kind == HW_FINDING_PINNED) {
            gain = analysis->findings[i].bytes;
            assert_int_equal(blocks, analysis->findings[i].blocks);
            assert_int_equal(size, analysis->findings[i].block_bytes);
        }
    hw_analysis_free(analysis);
    return gain / (1 << 20);
}

static void arenas(void **state)
{
    /* One place has the whole heap. */
    assert_true(fabs(arena_gain(6000, 2008, 7166, 30000l * 2008, 30000ul * 2008)) < 1e-9);
    /* A fifth or a tenth of 20,000 blocks stays, which lay between blocks that are gone. */
    const double large = arena_gain(4000, 2008, 5375, 20000l * 2008, 60000000);
    assert_true(large > 1.9 && large < 3.2);
    const double medium = arena_gain(2000, 760, 2150, 20000l * 760, 35000000);
    assert_true(medium > 1 && medium < 2);
    const double small = arena_gain(2000, 141, 1823, 20000l * 141, 22400000);
    assert_true(small > 4.3 && small < 4.9);
}

TEST_LIST(cmocka_unit_test(nothing_counted), cmocka_unit_test(spread_fields),
          cmocka_unit_test(places_that_were_not_counted), cmocka_unit_test(good_struct), cmocka_unit_test(few_objects),
          cmocka_unit_test(unknown_objects), cmocka_unit_test(objects_by_size), cmocka_unit_test(split_in_arrays),
          cmocka_unit_test(astride), cmocka_unit_test(padding), cmocka_unit_test(unused_fields),
          cmocka_unit_test(fixed_orders), cmocka_unit_test(uses_of_objects), cmocka_unit_test(counts_without_groups),
          cmocka_unit_test(lines_of_walks), cmocka_unit_test(sparse_blocks), cmocka_unit_test(unused_words),
          cmocka_unit_test(used_words), cmocka_unit_test(hot_header), cmocka_unit_test(shared_lines),
          cmocka_unit_test(rank), cmocka_unit_test(common_beginnings), cmocka_unit_test(rivals),
          cmocka_unit_test(contents_of_one_place), cmocka_unit_test(contents_of_small_places),
          cmocka_unit_test(arenas))
