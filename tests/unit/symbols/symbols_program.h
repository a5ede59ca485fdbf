/* symbols_program.h - a program whose symbols are known, compiled in a place of its own, and its addresses. */
#ifndef TESTS_UNIT_SYMBOLS_PROGRAM_H
#define TESTS_UNIT_SYMBOLS_PROGRAM_H

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/check.h"
#include "support/recording.h"
#include "symbols/symbols.h"

/* ---- the program under study ---- */

static const char shapes_source[] =
    "#include <algorithm>\n"
    "#include <vector>\n"
    "extern \"C\" int rand(void);\n"
    "namespace shapes {\n"
    "struct point { int x, y; point(int a) : x(a), y(rand()) {} ~point() { volatile int z = x; (void)z; } };\n"
    "template <typename T, int N> struct ring {\n"
    "    std::vector<T> items;\n"
    "    ring() { items.reserve(N); }\n"
    "    void push(T value) {\n"
    "        if (items.size() < N) items.push_back(value);\n"
    "        else items[rand() % N] = value;\n"
    "    }\n"
    "    T &last() { return items.back(); }\n"
    "};\n"
    "namespace { int hidden(int n) { return n * 3 + rand(); } }\n"
    "static inline int middle(int n) {\n"
    "    auto twice = [n](int k) { return hidden(k) * n; };\n"
    "    return twice(n) + twice(n + 1);\n"
    "}\n"
    "struct base { virtual int area(int) = 0; virtual ~base() {} };\n"
    "struct square : base { int side = 3; int area(int n) override { return middle(n) * side; } };\n"
    "}\n"
    "static __attribute__((noinline)) int local_class(int n) {\n"
    "    struct local { int m; __attribute__((noinline)) int run(int k) { m += rand() % k; return m; } };\n"
    "    local l{n};\n"
    "    return l.run(n) + l.run(n + 2);\n"
    "}\n"
    "__attribute__((noinline)) int unused(int n) { return n + rand(); }\n"
    "extern \"C\" __attribute__((noinline)) int plain(int n) {\n"
    "    shapes::ring<shapes::point, 8> r;\n"
    "    for (int i = 0; i < n; i++) r.push(shapes::point(i));\n"
    "    return r.last().y;\n"
    "}\n"
    "int main(int argc, char **argv) {\n"
    "    shapes::base *b = new shapes::square;\n"
    "    int total = 0;\n"
    "    for (int i = 1; i < argc + 5; i++) total += b->area(i) + local_class(i) + plain(i + 10);\n"
    "    std::vector<int> v(10, total);\n"
    "    std::sort(v.begin(), v.end(), [](int a, int c) { return a > c; });\n"
    "    delete b;\n"
    "    return v[0] == 42;\n"
    "}\n";

enum { SHAPES_LINES = 45, MOST_ADDRESSES = 6000, MOST_FRAMES = 64 };

static char *place; /* of everything that is made here */

static inline void write_file(const char *path, const void *bytes, size_t size)
{
    FILE *stream = fopen(path, "w");
    assert_non_null(stream);
    assert_int_equal(fwrite(bytes, 1, size, stream), size);
    assert_int_equal(fclose(stream), 0);
}

/* Runs a shell command in the place; returns whether it succeeded. */
__attribute__((format(printf, 1, 2))) static inline bool shell(const char *format, ...)
{
    char command[4096], *line;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    assert_true(asprintf(&line, "cd '%s' && { %s; } >shell.log 2>&1", place, command) > 0);
    bool ok = system(line) == 0;
    free(line);
    return ok;
}

static inline FILE *output_of(const char *format, ...) __attribute__((format(printf, 1, 2)));
static inline FILE *output_of(const char *format, ...)
{
    char command[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    FILE *stream = popen(command, "r");
    assert_non_null(stream);
    return stream;
}

static inline const char *in_place(const char *name)
{
    static char paths[8][PATH_MAX];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, PATH_MAX, "%s/%s", place, name);
    return path;
}

static inline int make_place(void **state)
{
    unsetenv("DEBUGINFOD_URLS");
    place = make_directory();
    write_file(in_place("shapes.cc"), shapes_source, sizeof shapes_source - 1);
    return 0;
}

/* shapes, g++ -O2 -g, built once. */
static inline const char *shapes_program(void)
{
    if (access(in_place("shapes"), X_OK) != 0)
        assert_true(shell("g++ -g -O2 shapes.cc -o shapes"));
    return in_place("shapes");
}

/* ---- its addresses, and its build id ---- */

struct addresses {
    uint64_t address[MOST_ADDRESSES];
    size_t count;
};

/* Every third byte of the program's own functions (the start-up code's have no debug information). */
static inline struct addresses addresses_of(const char *program)
{
    struct addresses found = {.count = 0};
    FILE *stream = output_of("nm -n -S --defined-only '%s'", program);
    char line[4096], type, name[2048];
    uint64_t start, size, last_start = 0;
    while (fgets(line, sizeof line, stream)) {
        if (sscanf(line, "%" SCNx64 " %" SCNx64 " %c %2047s", &start, &size, &type, name) != 4 || !strchr("tTwW", type))
            continue;
        if ((name[0] == '_' && name[1] != 'Z') || start == last_start)
            continue;
        last_start = start;
        for (uint64_t i = 0; i < size && found.count < MOST_ADDRESSES; i += 3)
            found.address[found.count++] = start + i;
    }
    pclose(stream);
    assert_true(found.count > 100);
    return found;
}

static inline size_t read_build_id(const char *program, char hex[64], uint8_t build_id[32])
{
    FILE *stream = output_of("readelf -n '%s' | sed -n 's/ *Build ID: //p'", program);
    assert_non_null(fgets(hex, 64, stream));
    pclose(stream);
    hex[strcspn(hex, "\n")] = '\0';
    size_t size = strlen(hex) / 2;
    for (size_t i = 0; i < size; i++)
        assert_int_equal(sscanf(hex + 2 * i, "%2hhx", &build_id[i]), 1);
    return size;
}

/* ---- running the symbolizer ---- */

struct session {
    struct hw_symbolizer *symbolizer;
    int module;
    long ticket[MOST_ADDRESSES];
};

static inline struct session symbolize(const char *path, const uint8_t *build_id, size_t build_id_size,
                                       const struct hw_symbolizer_options *options, const struct addresses *addresses)
{
    struct session session;
    struct hw_error error = {""};
    session.symbolizer = hw_symbolizer_new(options, &error);
    assert_non_null(session.symbolizer);
    session.module = hw_symbolizer_add_module(session.symbolizer, path, build_id, build_id_size);
    assert_int_equal(session.module, 0);
    for (size_t i = 0; i < addresses->count; i++) {
        session.ticket[i] = hw_symbolizer_add(session.symbolizer, session.module, addresses->address[i]);
        assert_true(session.ticket[i] >= 0);
    }
    if (!hw_symbolizer_run(session.symbolizer, &error))
        fail_msg("%s", error.message);
    return session;
}

static inline const char *problem_of(const struct session *session)
{
    const char *problem = hw_symbolizer_module_problem(session->symbolizer, session->module);
    return problem ? problem : "";
}

/* Compares FILE's names with the judge's for PROGRAM, which has the same code. */

#endif
