/* test_symbols_damage.c - files that cannot serve for symbols, cut ones, and ones with flipped bits. */
#include <sys/stat.h>

#include "profile/profile.h"
#include "symbols_program.h"

/* ---- files that cannot serve ---- */

static void expect_problem(const char *path, const uint8_t *build_id, size_t build_id_size, const char *problem)
{
    static struct addresses addresses;
    addresses = (struct addresses){.address = {0, 1, 0x1234, 0x401234, UINT64_MAX}, .count = 5};
    struct session session = symbolize(path, build_id, build_id_size, NULL, &addresses);
    if (!strstr(problem_of(&session), problem) || strncmp(problem_of(&session), path, strlen(path)) != 0)
        fail_msg("'%s' instead of '%s: %s'", problem_of(&session), path, problem);
    for (size_t i = 0; i < addresses.count; i++) {
        struct hw_frames frames = hw_symbolizer_frames(session.symbolizer, session.ticket[i]);
        assert_int_equal(frames.count, 1);
        assert_null(frames.frame->function);
    }
    hw_symbolizer_free(session.symbolizer);
}

static void files_that_cannot_serve(void **state)
{
    char hex[64];
    uint8_t build_id[32];
    size_t size = read_build_id(shapes_program(), hex, build_id);
    build_id[size - 1] ^= 1;
    expect_problem(shapes_program(), build_id, size, "the file has changed since the run (another build id)");
    build_id[size - 1] ^= 1;
    expect_problem(shapes_program(), build_id, size - 1, "the file has changed since the run (another build id)");
    assert_true(shell("g++ -O0 -Wl,--build-id=none shapes.cc -o anonymous && g++ -c shapes.cc -o object.o"));
    expect_problem(in_place("anonymous"), build_id, size,
                   "the file has changed since the run (it has no build id now)");
    expect_problem(in_place("object.o"), NULL, 0, "neither a program nor a shared library");
    expect_problem(in_place("missing"), build_id, size, "cannot open: No such file or directory");
    expect_problem("", NULL, 0, "cannot open");
    expect_problem("[heap]", NULL, 0, "cannot open");
    expect_problem(place, NULL, 0, "not a regular file");
    assert_int_equal(mkfifo(in_place("fifo"), 0600), 0);
    expect_problem(in_place("fifo"), NULL, 0, "not a regular file");
    expect_problem("/dev/zero", NULL, 0, "not a regular file");
    expect_problem(in_place("shapes.cc"), NULL, 0, "not an ELF file");
    write_file(in_place("empty"), "", 0);
    expect_problem(in_place("empty"), NULL, 0, "not an ELF file");
    write_file(in_place("four"), "\177ELF", 4);
    expect_problem(in_place("four"), NULL, 0, "not an ELF file");
}

/* ---- damage ---- */

struct image {
    uint8_t *bytes;
    size_t size;
};

static struct image read_image(const char *path)
{
    struct stat status;
    FILE *stream = fopen(path, "r");
    assert_non_null(stream);
    assert_int_equal(fstat(fileno(stream), &status), 0);
    struct image image = {.bytes = malloc((size_t)status.st_size), .size = (size_t)status.st_size};
    assert_int_equal(fread(image.bytes, 1, image.size, stream), image.size);
    fclose(stream);
    return image;
}

/* Members of a type: sorted, each in the struct, none in another. */
static void ask_for_members(struct hw_call_types *types, const struct hw_call_type *type)
{
    struct hw_error error;
    struct hw_profile_struct structure;
    struct hw_profile_field *field;
    uint64_t end = 0;
    assert_true(hw_call_types_layout(types, type, &structure, &field, &error));
    assert_non_null(structure.file);
    for (size_t i = 0; i < structure.field_count; i++) {
        assert_true(field[i].name && field[i].type_name && field[i].declaration);
        assert_true(field[i].offset >= end && field[i].size <= structure.size);
        end = field[i].offset + field[i].size;
        assert_true(end <= structure.size);
    }
    free(field);
}

/* Asks what calls before all addresses return: whatever the file is, types have names and sizes. */
static void ask_for_types(const struct session *session, const struct addresses *addresses)
{
    struct hw_error error;
    struct hw_call_types *types = hw_call_types_new(session->symbolizer, &error);
    struct hw_call_query *query = calloc(addresses->count + 1, sizeof *query);
    assert_non_null(types);
    assert_non_null(query);
    for (size_t i = 0; i < addresses->count; i++)
        query[i].address = addresses->address[i] - 1;
    assert_true(hw_call_types_ask(types, session->module, query, addresses->count, &error));
    for (size_t i = 0; i < addresses->count; i++)
        for (uint32_t k = 0; k < query[i].count; k++) {
            assert_true(query[i].types[k].name && *query[i].types[k].name);
            assert_true(query[i].types[k].size > 0 && query[i].types[k].evidence);
            ask_for_members(types, &query[i].types[k]);
        }
    free(query);
    hw_call_types_free(types);
}

/* Every frame of every address as one text. What is promised of frames holds whatever the file is. */
static char *answers(const char *path, const struct addresses *addresses)
{
    struct session session = symbolize(path, NULL, 0, NULL, addresses);
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    for (size_t i = 0; i < addresses->count; i++) {
        struct hw_frames frames = hw_symbolizer_frames(session.symbolizer, session.ticket[i]);
        assert_true(frames.count >= 1);
        for (uint32_t j = 0; j < frames.count; j++) {
            const struct hw_frame *frame = &frames.frame[j];
            assert_int_equal(frame->inlined, j + 1 < frames.count);
            fprintf(stream, "%s %s %s:%u\n", frame->function ? frame->function : "",
                    frame->linkage_name ? frame->linkage_name : "", frame->file ? frame->file : "", frame->line);
        }
    }
    assert_int_equal(fclose(stream), 0);
    ask_for_types(&session, addresses);
    hw_symbolizer_free(session.symbolizer);
    return text;
}

/* Symbolizes what IMAGE has become: true when not all answers are those of the WHOLE file. */
static bool survive(const struct image *image, const struct addresses *addresses, const char *whole)
{
    write_file(in_place("damaged"), image->bytes, image->size);
    char *damaged = answers(in_place("damaged"), addresses);
    const bool differs = strcmp(damaged, whole) != 0;
    free(damaged);
    return differs;
}

static struct addresses every_tenth_address(const char *program)
{
    static struct addresses all;
    struct addresses some = {.count = 0};
    all = addresses_of(program);
    for (size_t i = 0; i < all.count; i += 10)
        some.address[some.count++] = all.address[i];
    return some;
}

static void truncated_files(void **state)
{
    static struct addresses addresses;
    addresses = every_tenth_address(shapes_program());
    struct image image = read_image(shapes_program());
    char *whole = answers(shapes_program(), &addresses);
    size_t full = image.size;
    assert_false(survive(&image, &addresses, whole));
    for (int i = 0; i < 40; i++) {
        image.size = i < 20 ? (size_t)i * 13 : full * (size_t)(i - 20) / 20;
        assert_true(survive(&image, &addresses, whole)); /* section headers are at the end */
    }
    free(whole);
    image.size = full - 1;
    write_file(in_place("cut"), image.bytes, image.size);
    struct session session = symbolize(in_place("cut"), NULL, 0, NULL, &addresses);
    assert_non_null(strstr(problem_of(&session), "cut: the file is cut short"));
    hw_symbolizer_free(session.symbolizer);
    free(image.bytes);
}

static uint32_t random_number(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    return *state ^= *state << 5;
}

/* Flips bits, a few at a time: anywhere, and in each of the sections that are decoded. */
static void flip_bits(const char *program, unsigned count)
{
    static const char *const sections[] = {
        "",           ".debug_info", ".debug_abbrev", ".debug_line", ".debug_rnglists",
        ".debug_str", ".symtab",     ".dynsym",       ".debug_addr", "header"};
    static struct addresses addresses;
    addresses = every_tenth_address(program);
    struct image image = read_image(program);
    uint8_t *original = malloc(image.size);
    memcpy(original, image.bytes, image.size);
    char *whole = answers(program, &addresses);
    uint32_t seed = 20240229;
    size_t found_sections = 0, differing = 0;
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        uint64_t start = 0, size = image.size;
        if (strcmp(sections[i], "header") == 0) {
            size = 1024;
        } else if (*sections[i]) {
            FILE *stream = output_of("readelf -SW '%s' | sed -n 's/^.*\\] \\%s  *[A-Z]* *[0-9a-f]* \\([0-9a-f]* "
                                     "[0-9a-f]*\\).*/\\1/p'",
                                     program, sections[i]);
            bool found = fscanf(stream, "%" SCNx64 " %" SCNx64, &start, &size) == 2 && size > 0;
            pclose(stream);
            if (!found)
                continue;
            found_sections++;
        }
        for (unsigned j = 0; j < count; j++) {
            memcpy(image.bytes, original, image.size);
            for (uint32_t bits = 1 + random_number(&seed) % 16; bits; bits--)
                image.bytes[start + random_number(&seed) % size] ^= (uint8_t)(1u << random_number(&seed) % 8);
            differing += survive(&image, &addresses, whole);
        }
    }
    assert_true(found_sections >= 6);
    assert_true(differing > 0);
    free(whole);
    free(original);
    free(image.bytes);
}

static unsigned mutations(void)
{
    const char *chosen = getenv("HEAPWISE_TEST_MUTATIONS"); /* for each kind */
    return chosen ? (unsigned)strtoul(chosen, NULL, 10) : 30;
}

static void flipped_bits_gcc(void **state)
{
    flip_bits(shapes_program(), mutations());
}

static void flipped_bits_clang(void **state)
{
    if (!have_command("clang++"))
        SKIP("there is no clang");
    assert_true(shell("clang++ -gdwarf-5 -O2 shapes.cc -o clang5"));
    flip_bits(in_place("clang5"), mutations());
}

TEST_LIST_WITH(make_place, NULL, cmocka_unit_test(files_that_cannot_serve), cmocka_unit_test(truncated_files),
               cmocka_unit_test(flipped_bits_gcc), cmocka_unit_test(flipped_bits_clang))
