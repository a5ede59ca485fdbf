/* recording.c - see recording.h. */
#include "support/recording.h"

#include "counter/counter.h"
#include "support/check.h"
#include "test_config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- places ---- */

const char *heapwise_path(void)
{
    const char *path = getenv("HEAPWISE_TEST_HEAPWISE");
    return path ? path : TEST_HEAPWISE;
}

const char *runtime_path(void)
{
    const char *path = getenv("HEAPWISE_TEST_RUNTIME");
    return path ? path : TEST_RUNTIME;
}

const char *program_path(const char *name)
{
    static char paths[16][PATH_MAX];
    static unsigned next;
    char *path = paths[next++ % 16];
    snprintf(path, PATH_MAX, "%s/%s", TEST_PROGRAMS, name);
    return access(path, R_OK) == 0 ? path : NULL;
}

const char *need_program(const char *name)
{
    const char *path = program_path(name);
    if (!path)
        SKIP("%s was not built", name);
    return path;
}

static char *made[64];
static size_t made_count;
static pid_t made_by;

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *position)
{
    return remove(path);
}

static void remove_all(void)
{
    for (size_t i = 0; i < made_count; i++)
        if (made[i] && getpid() == made_by && !getenv("HEAPWISE_TEST_KEEP"))
            nftw(made[i], remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

char *make_directory(void)
{
    if (made_by != getpid()) {
        made_by = getpid();
        atexit(remove_all);
    }
    const char *base = getenv("TMPDIR");
    char *path;
    if (asprintf(&path, "%s/heapwise-test.XXXXXX", base ? base : "/tmp") < 0 || !mkdtemp(path))
        fail_msg("cannot make a directory: %s", strerror(errno));
    chmod(path, 0755);
    for (size_t i = 0; i < 64; i++) {
        if (!made[i]) {
            made[i] = path;
            made_count = made_count > i ? made_count : i + 1;
            return path;
        }
    }
    return path;
}

void remove_directory(char *path)
{
    if (!path)
        return;
    for (size_t i = 0; i < made_count; i++)
        if (made[i] == path)
            made[i] = NULL;
    if (!getenv("HEAPWISE_TEST_KEEP"))
        nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    free(path);
}

char *test_directory;

int make_test_directory(void **state)
{
    (void)state;
    test_directory = make_directory();
    return 0;
}

int remove_test_directory(void **state)
{
    (void)state;
    remove_directory(test_directory);
    return 0;
}

char *join_path(const char *directory, const char *name)
{
    char *path;
    if (asprintf(&path, "%s/%s", directory, name) < 0)
        fail_msg("no memory");
    return path;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

char **list_files(const char *directory, const char *suffix, size_t *count)
{
    char **list = calloc(1, sizeof *list);
    *count = 0;
    DIR *stream = opendir(directory);
    for (struct dirent *entry; stream && (entry = readdir(stream));) {
        size_t length = strlen(entry->d_name), tail = strlen(suffix);
        if (entry->d_name[0] == '.' || length < tail || strcmp(entry->d_name + length - tail, suffix) != 0)
            continue;
        list = realloc(list, (*count + 2) * sizeof *list);
        list[(*count)++] = join_path(directory, entry->d_name);
        list[*count] = NULL;
    }
    if (stream)
        closedir(stream);
    qsort(list, *count, sizeof *list, compare_names);
    return list;
}

void free_list(char **list)
{
    for (char **item = list; item && *item; item++)
        free(*item);
    free(list);
}

bool have_command(const char *name)
{
    const char *path = getenv("PATH");
    char *copy = strdup(path ? path : "/usr/bin:/bin"), *rest = copy;
    bool found = false;
    for (char *directory; !found && (directory = strsep(&rest, ":"));) {
        char *full = join_path(directory, name);
        found = access(full, X_OK) == 0;
        free(full);
    }
    free(copy);
    return found;
}

/* ---- recording ---- */

static size_t length_of(const char *const *list)
{
    size_t count = 0;
    while (list && list[count])
        count++;
    return count;
}

struct run_result heapwise(const char *const arguments[], const struct run_options *options)
{
    size_t count = length_of(arguments);
    const char **argv = calloc(count + 2, sizeof *argv);
    argv[0] = heapwise_path();
    memcpy(argv + 1, arguments, count * sizeof *argv);
    struct run_result result = run(argv, options);
    free(argv);
    return result;
}

json_t *json_of(const char *const arguments[], int code)
{
    struct run_result result = heapwise(arguments, NULL);
    json_error_t error;
    assert_exit(&result, code, arguments[0]);
    json_t *object = json_loads(result.out, 0, &error);
    if (!object)
        fail_msg("heapwise %s: not JSON: %s at line %d", arguments[0], error.text, error.line);
    run_result_free(&result);
    return object;
}

/* Every profile that a test reads: its numbers can all be true (src/profile/model/invariants.c). */
static void assert_consistent(const json_t *report, const char *file)
{
    size_t i, k;
    const json_t *one, *sentence;
    json_t *all = json_is_array(report) ? json_incref((json_t *)report) : json_pack("[O]", report);
    json_array_foreach(all, i, one)
    {
        json_array_foreach(json_object_get(one, "contradictions"), k, sentence)
            print_error("%s: %s\n", file, json_string_value(sentence));
        if (k)
            fail_msg("%s contradicts itself", file);
    }
    json_decref(all);
}

json_t *load_report(const char *file, int expected_code)
{
    const char *const arguments[] = {"report", "--json", file, NULL};
    struct run_result result = heapwise(arguments, NULL);
    if (expected_code >= 0 && (result.code != expected_code || result.timed_out))
        fail_msg("heapwise report --json %s: exit code %d, signal %d%s instead of exit code %d; stderr:\n%s", file,
                 result.code, result.signal, result.timed_out ? " (out of time)" : "", expected_code, result.err);
    json_error_t error;
    json_t *report = result.out_size ? json_loadb(result.out, result.out_size, 0, &error) : NULL;
    if (result.out_size && !report)
        fail_msg("heapwise report --json %s: not JSON: %s at line %d column %d", file, error.text, error.line,
                 error.column);
    run_result_free(&result);
    assert_consistent(report, file);
    return report;
}

static void sort_by_start(struct recording *recording)
{
    for (size_t i = 1; i < recording->file_count; i++) {
        for (size_t j = i; j > 0; j--) {
            int64_t before = recording->reports[j - 1]
                                 ? json_number_or_none(recording->reports[j - 1], "process.started_ns")
                                 : INT64_MAX;
            int64_t here =
                recording->reports[j] ? json_number_or_none(recording->reports[j], "process.started_ns") : INT64_MAX;
            if (before <= here)
                break;
            json_t *report = recording->reports[j];
            recording->reports[j] = recording->reports[j - 1];
            recording->reports[j - 1] = report;
            char *file = recording->files[j];
            recording->files[j] = recording->files[j - 1];
            recording->files[j - 1] = file;
        }
    }
}

struct recording record_and_load(const char *const argv[], const struct record_options *options)
{
    static const struct record_options defaults;
    if (!options)
        options = &defaults;
    struct recording recording = {.directory = make_directory()};
    char *file = options->file ? strdup(options->file) : join_path(recording.directory, "%e.%p.%n.hwprof");
    size_t extra = length_of(options->arguments), count = length_of(argv), used = 0;
    const char **record = calloc(extra + count + 8, sizeof *record);
    record[used++] = heapwise_path();
    record[used++] = "record";
    record[used++] = "-o";
    record[used++] = file;
    for (size_t i = 0; i < extra; i++)
        record[used++] = options->arguments[i];
    record[used++] = "--";
    for (size_t i = 0; i < count; i++)
        record[used++] = argv[i];

    struct run_options run_options = options->run;
    size_t variables = length_of(run_options.environment);
    const char **environment = calloc(variables + 3, sizeof *environment);
    if (variables)
        memcpy(environment, run_options.environment, variables * sizeof *environment);
    char *heapwise_options = NULL;
    if (options->options) {
        if (asprintf(&heapwise_options, "HEAPWISE_OPTIONS=%s", options->options) < 0)
            fail_msg("no memory");
        environment[variables++] = heapwise_options;
    }
    environment[variables] = NULL;
    run_options.environment = environment;
    recording.run = run(record, &run_options);
    free(environment);
    free(heapwise_options);
    if (recording.run.timed_out)
        fail_msg("out of time: %s; stderr:\n%s", run_describe(record), recording.run.err);
    recording.files = list_files(recording.directory, ".hwprof", &recording.file_count);
    recording.reports = calloc(recording.file_count + 1, sizeof *recording.reports);
    if (!options->no_report) {
        if (recording.file_count == 0 && !options->may_fail)
            fail_msg("no profile was written: %s: exit code %d, signal %d; stderr:\n%s", run_describe(record),
                     recording.run.code, recording.run.signal, recording.run.err);
        for (size_t i = 0; i < recording.file_count; i++)
            recording.reports[i] = load_report(recording.files[i], options->may_fail ? -1 : 0);
        sort_by_start(&recording);
        recording.report = recording.reports[0];
    }
    free(file);
    free(record);
    return recording;
}

void recording_free(struct recording *recording)
{
    for (size_t i = 0; i < recording->file_count; i++)
        json_decref(recording->reports[i]);
    free(recording->reports);
    free_list(recording->files);
    run_result_free(&recording->run);
    remove_directory(recording->directory);
    *recording = (struct recording){0};
}

/* ---- what a report says ---- */

static const json_t *json_at(const json_t *object, const char *path)
{
    char copy[128];
    snprintf(copy, sizeof copy, "%s", path);
    char *rest = copy;
    for (char *key; object && (key = strsep(&rest, "."));)
        object = json_object_get(object, key);
    return object;
}

int64_t json_number_or_none(const json_t *object, const char *path)
{
    const json_t *value = json_at(object, path);
    if (json_is_integer(value))
        return json_integer_value(value);
    if (json_is_real(value))
        return (int64_t)json_real_value(value);
    return INT64_MIN;
}

int64_t json_number(const json_t *object, const char *path)
{
    int64_t value = json_number_or_none(object, path);
    if (value == INT64_MIN)
        fail_msg("the report has no number \"%s\"", path);
    return value;
}

const char *json_text(const json_t *object, const char *path)
{
    const char *text = json_string_value(json_at(object, path));
    return text ? text : "";
}

const json_t *json_entry(const json_t *object, const char *list, const char *key, const char *text)
{
    size_t index;
    const json_t *entry;
    json_array_foreach(json_object_get(object, list), index, entry)
    {
        if (strcmp(json_text(entry, key), text) == 0)
            return entry;
    }
    fail_msg("nothing in %s has %s %s", list, key, text);
    return NULL;
}

const json_t *usable_class(const json_t *report, int64_t size)
{
    const json_t *class;
    size_t index;
    json_array_foreach(json_at(report, "allocator.memory_by_class"), index, class)
    {
        if (size >= json_number(class, "usable_least") && size <= json_number(class, "usable_most"))
            return class;
    }
    fail_msg("no class of %lld bytes", (long long)size);
    return NULL;
}

bool report_says(const json_t *report, const char *word)
{
    size_t index;
    const json_t *sentence;
    json_array_foreach(json_object_get(report, "not_observed"), index, sentence)
    {
        if (json_is_string(sentence) && strcasestr(json_string_value(sentence), word))
            return true;
    }
    return false;
}

struct totals report_totals(const json_t *report)
{
    return (struct totals){
        .allocations = json_number(report, "totals.allocations"),
        .frees = json_number(report, "totals.frees"),
        .reallocations = json_number(report, "totals.reallocations"),
        .temporary = json_number(report, "totals.temporary_allocations"),
        .bytes = json_number(report, "totals.bytes_allocated"),
        .live_allocations = json_number(report, "totals.live_allocations"),
        .live_bytes = json_number(report, "totals.live_bytes"),
        .peak_bytes = json_number(report, "totals.peak_bytes"),
    };
}

size_t stack_depth(const json_t *context)
{
    return json_array_size(json_object_get(context, "stack"));
}

const char *stack_function(const json_t *context, size_t index)
{
    return json_text(json_array_get(json_object_get(context, "stack"), index), "function");
}

const char *stack_line(const json_t *context)
{
    static char line[4096];
    size_t used = 0;
    line[0] = 0;
    for (size_t i = 0; i < stack_depth(context) && used < sizeof line - 256; i++) {
        const char *function = stack_function(context, i);
        const json_t *frame = json_array_get(json_object_get(context, "stack"), i);
        const char *module = strrchr(json_text(frame, "module"), '/');
        used += (size_t)snprintf(line + used, sizeof line - used, "%s%.200s", used ? " < " : "",
                                 *function ? function
                                 : module  ? module + 1
                                           : "?");
    }
    return line;
}

bool is_function(const char *name, const char *function)
{
    size_t length = strlen(function);
    return strncmp(name, function, length) == 0 && (name[length] == 0 || name[length] == '.');
}

static bool stack_has(const json_t *context, const char *function)
{
    for (size_t i = 0; i < stack_depth(context); i++)
        if (is_function(stack_function(context, i), function))
            return true;
    return false;
}

static int64_t number_or_zero(const json_t *object, const char *path)
{
    int64_t value = json_number_or_none(object, path);
    return value == INT64_MIN ? 0 : value;
}

static void lower(int64_t *value, int64_t other)
{
    if (other != INT64_MIN && other < *value)
        *value = other;
}

static void raise_to(int64_t *value, int64_t other)
{
    if (other > *value)
        *value = other;
}

struct sums report_sums(const json_t *report, const char *function)
{
    struct sums sums = {.size_min = INT64_MAX, .lifetime_min_ns = INT64_MAX};
    size_t index;
    const json_t *context;
    json_array_foreach(json_object_get(report, "contexts"), index, context)
    {
        if (function && !stack_has(context, function))
            continue;
        sums.contexts++;
        sums.allocations += json_number(context, "allocations");
        sums.frees += json_number(context, "frees");
        sums.reallocations += json_number(context, "reallocations");
        sums.temporary += json_number(context, "temporary");
        sums.bytes += json_number(context, "bytes");
        sums.live_allocations += json_number(context, "live_allocations");
        sums.live_bytes += json_number(context, "live_bytes");
        sums.peak_bytes += number_or_zero(context, "peak_bytes");
        lower(&sums.size_min, json_number_or_none(context, "size.min"));
        raise_to(&sums.size_max, json_number_or_none(context, "size.max"));
        sums.lifetime_total_ns += number_or_zero(context, "lifetime_ns.total");
        lower(&sums.lifetime_min_ns, json_number_or_none(context, "lifetime_ns.min"));
        raise_to(&sums.lifetime_max_ns, json_number_or_none(context, "lifetime_ns.max"));
        sums.migrated_cpu += number_or_zero(context, "migrated_cpu");
        sums.lifetime_overlaps += number_or_zero(context, "lifetime_overlaps");
        sums.same_alloc_cpu += number_or_zero(context, "same_alloc_cpu");
        sums.same_free_cpu += number_or_zero(context, "same_free_cpu");
    }
    return sums;
}

static void print_stacks(const json_t *report)
{
    size_t index;
    const json_t *context;
    json_array_foreach(json_object_get(report, "contexts"), index, context)
    {
        if (index < 40)
            print_error("  %5lld  %s\n", (long long)number_or_zero(context, "allocations"), stack_line(context));
    }
}

const json_t *only_context(const json_t *report, const char *function)
{
    const json_t *found = NULL;
    int count = 0;
    size_t index;
    const json_t *context;
    json_array_foreach(json_object_get(report, "contexts"), index, context)
    {
        if (stack_has(context, function)) {
            found = context;
            count++;
        }
    }
    if (count != 1) {
        print_stacks(report);
        fail_msg("%d contexts have %s in their stack, not one", count, function);
    }
    return found;
}

/* ---- the counter ---- */

static int compare_starts(const void *a, const void *b)
{
    const struct counter *x = a, *y = b;
    return (x->started_ns > y->started_ns) - (x->started_ns < y->started_ns);
}

struct counted read_counters(const char *directory)
{
    struct counted counted = {0};
    size_t count;
    char **files = list_files(directory, ".count", &count);
    struct counter *counters = calloc(count + 1, sizeof *counters);
    for (size_t i = 0; i < count; i++) {
        int file = open(files[i], O_RDONLY | O_CLOEXEC);
        if (file < 0 || read(file, &counters[counted.process_count], sizeof *counters) != sizeof *counters ||
            counters[counted.process_count].magic != COUNTER_MAGIC)
            fail_msg("%s: not a count", files[i]);
        close(file);
        counted.process_count++;
    }
    free_list(files);
    qsort(counters, counted.process_count, sizeof *counters, compare_starts);
    counted.processes = calloc(counted.process_count + 1, sizeof *counted.processes);
    for (size_t i = 0; i < counted.process_count; i++) {
        const struct counter *from = &counters[i];
        struct counted_process *to = &counted.processes[i];
        to->pid = (int64_t)from->pid;
        memcpy(to->executable, from->executable, sizeof to->executable);
        to->foreign_frees = (int64_t)from->foreign_frees;
        to->foreign_reallocations = (int64_t)from->foreign_reallocations;
        to->totals = (struct totals){
            .allocations = (int64_t)from->allocations,
            .frees = (int64_t)from->frees,
            .reallocations = (int64_t)from->reallocations,
            .temporary = (int64_t)from->temporary,
            .bytes = (int64_t)from->bytes,
            .live_allocations = (int64_t)from->live_blocks,
            .live_bytes = (int64_t)from->live_bytes,
            .peak_bytes = (int64_t)from->peak_bytes,
            .peak_most = (int64_t)from->peak_most,
        };
    }
    free(counters);
    return counted;
}

/* ENVIRONMENT with the counter: allocated list whose last two strings are allocated as well. */
static const char **counter_environment(const char *const *environment, const char *directory)
{
    size_t count = length_of(environment);
    const char **list = calloc(count + 3, sizeof *list);
    const char *preload = getenv("LD_PRELOAD");
    for (size_t i = 0; i < count; i++) {
        list[i] = environment[i];
        if (strncmp(environment[i], "LD_PRELOAD=", 11) == 0)
            preload = environment[i] + 11;
    }
    if (asprintf((char **)&list[count], "LD_PRELOAD=%s%s%s", TEST_COUNTER, preload && *preload ? ":" : "",
                 preload && *preload ? preload : "") < 0 ||
        asprintf((char **)&list[count + 1], "HEAPWISE_TEST_COUNTER=%s", directory) < 0)
        fail_msg("no memory");
    return list;
}

static void free_counter_environment(const char **list)
{
    size_t count = length_of(list);
    free((char *)list[count - 1]);
    free((char *)list[count - 2]);
    free(list);
}

struct counted count_run(const char *const argv[], const struct run_options *options)
{
    struct run_options with = options ? *options : (struct run_options){0};
    char *directory = make_directory();
    chmod(directory, 0777);
    const char **environment = counter_environment(with.environment, directory);
    with.environment = environment;
    struct run_result result = run(argv, &with);
    free_counter_environment(environment);
    struct counted counted = read_counters(directory);
    counted.run = result;
    remove_directory(directory);
    if (counted.process_count == 0)
        fail_msg("nothing was counted: %s: exit code %d, stderr:\n%s", run_describe(argv), result.code, result.err);
    return counted;
}

struct recording record_with_counter(const char *const argv[], const struct record_options *options,
                                     struct counted *counted)
{
    if (TEST_SANITIZED)
        SKIP("the counter cannot be preloaded into tools built with AddressSanitizer");
    struct record_options with = options ? *options : (struct record_options){0};
    char *directory = make_directory();
    chmod(directory, 0777);
    const char **environment = counter_environment(with.run.environment, directory);
    with.run.environment = environment;
    struct recording recording = record_and_load(argv, &with);
    free_counter_environment(environment);
    *counted = read_counters(directory);
    remove_directory(directory);
    return recording;
}

const struct counted_process *counted_process(const struct counted *counted, const json_t *report)
{
    int64_t pid = json_number(report, "process.pid");
    const char *executable = json_text(report, "process.executable");
    for (size_t i = 0; i < counted->process_count; i++)
        if (counted->processes[i].pid == pid && strcmp(counted->processes[i].executable, executable) == 0)
            return &counted->processes[i];
    fail_msg("nothing was counted for process %lld, %s", (long long)pid, executable);
    return NULL;
}

struct totals counted_totals(const struct counted *counted, const json_t *report)
{
    return counted_process(counted, report)->totals;
}

void counted_free(struct counted *counted)
{
    run_result_free(&counted->run);
    free(counted->processes);
    *counted = (struct counted){0};
}

/* ---- assertions ---- */

static void compare_number(const char *name, int64_t expected, int64_t actual, int64_t tolerance, char *message,
                           size_t size)
{
    int64_t difference = expected > actual ? expected - actual : actual - expected;
    size_t used = strlen(message);
    if (difference > tolerance)
        snprintf(message + used, size - used, "%s  %s: %lld, should be %lld", used ? "\n" : "", name, (long long)actual,
                 (long long)expected);
}

void assert_totals_equal(const char *what, struct totals expected, struct totals actual)
{
    char message[1024] = "";
#define COMPARE(field, tolerance)                                                                                      \
    compare_number(#field, expected.field, actual.field, tolerance, message, sizeof message)
    COMPARE(allocations, 0);
    COMPARE(frees, 0);
    COMPARE(reallocations, 0);
    COMPARE(temporary, 0);
    COMPARE(bytes, 0);
    COMPARE(live_allocations, 0);
    COMPARE(live_bytes, 0);
    if (actual.peak_bytes > expected.peak_bytes && actual.peak_bytes <= expected.peak_most)
        expected.peak_bytes = actual.peak_bytes;
    COMPARE(peak_bytes, expected.peak_bytes / 100);
#undef COMPARE
    if (message[0])
        fail_msg("%s:\n%s", what, message);
}

static struct totals totals_of(const struct sums *sums)
{
    return (struct totals){
        .allocations = sums->allocations,
        .frees = sums->frees,
        .reallocations = sums->reallocations,
        .temporary = sums->temporary,
        .bytes = sums->bytes,
        .live_allocations = sums->live_allocations,
        .live_bytes = sums->live_bytes,
        .peak_bytes = sums->peak_bytes,
    };
}

void assert_function_totals(const json_t *report, const char *function, struct totals expected)
{
    const struct sums sums = report_sums(report, function);
    struct totals found = totals_of(&sums);
    found.temporary = expected.temporary;
    found.peak_bytes = expected.peak_bytes;
    assert_totals_equal(function, expected, found);
}

static void compare_contexts_with_totals(const json_t *report, int64_t under_way)
{
    const struct totals totals = report_totals(report);
    const struct sums sums = report_sums(report, NULL);
    struct totals summed = totals_of(&sums);
    if (llabs(summed.peak_bytes - totals.peak_bytes) <= under_way)
        summed.peak_bytes = totals.peak_bytes;
    assert_totals_equal("sums over contexts against the report's totals", totals, summed);
}

void assert_contexts_sum_to_totals(const json_t *report)
{
    compare_contexts_with_totals(report, 0);
}

void assert_contexts_sum_to_totals_under_way(const json_t *report, int64_t bytes)
{
    compare_contexts_with_totals(report, bytes);
}

void assert_contexts_sum_to_totals_but_peak(const json_t *report)
{
    compare_contexts_with_totals(report, INT64_MAX);
}

void assert_exit(const struct run_result *result, int code, const char *what)
{
    if (result->timed_out || result->code != code)
        fail_msg("%s: exit code %d, signal %d%s instead of exit code %d; stdout:\n%.2000s\nstderr:\n%.2000s", what,
                 result->code, result->signal, result->timed_out ? " (out of time)" : "", code, result->out,
                 result->err);
}

void assert_refused(const char *const arguments[], const char *message)
{
    struct run_result result = heapwise(arguments, NULL);
    assert_exit(&result, 2, message);
    assert_contains(result.err, message);
    assert_int_equal(result.out_size, 0);
    run_result_free(&result);
}

void compile_or_skip(const char *const argv[], const char *name)
{
    struct run_result built = run(argv, NULL);
    if (built.code == 127 || strstr(built.err, "not found") || strstr(built.err, "no plugin"))
        SKIP("no compiler for %s", name);
    if (built.code != 0)
        fail_msg("%s cannot be built:\n%s", name, built.err);
    run_result_free(&built);
}

void assert_contains(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" is not in:\n%.2000s", part, text);
}

void assert_lacks(const char *text, const char *part)
{
    if (strstr(text, part))
        fail_msg("\"%s\" should not be in:\n%.2000s", part, text);
}
