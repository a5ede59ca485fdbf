/* test_growth.c - report --growth: what grew over the dumps of a run, beside what the program itself writes down (see
 * programs/growth.c) and a rate computed here by brute force. */
#include "support/check.h"
#include "support/recording.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROUNDS 24

/* ---- a run ---- */

struct moment {
    double before, after; /* s */
    char line[400];
};

static struct moment moments[256];
static size_t moment_count;

static void read_log(const char *out)
{
    moment_count = 0;
    for (const char *at = out; (at = strstr(at, "moment ")); at++) {
        unsigned long long before, after;
        struct moment *moment = &moments[moment_count++];
        assert_int_equal(sscanf(at, "moment %llu %llu %399[^\n]", &before, &after, moment->line), 3);
        moment->before = (double)before / 1e9;
        moment->after = (double)after / 1e9;
    }
}

static int64_t logged(size_t at, const char *function)
{
    char key[64];
    snprintf(key, sizeof key, "%s=", function);
    const char *found = strstr(moments[at].line, key);
    assert_non_null(found);
    return strtoll(found + strlen(key), NULL, 10);
}

/* Runs the program under `record`: its profile is p.hwprof in the directory. */
static char *run_growth(const char *const *arguments, const char *how, const char *options)
{
    const char *program = need_program("growth");
    char *directory = make_directory(), *profile = join_path(directory, "p.hwprof");
    char rounds[16];
    snprintf(rounds, sizeof rounds, "%d", ROUNDS);
    const char *argv[24] = {"record", "-q", "-o", profile};
    size_t count = 4;
    for (; arguments && *arguments; arguments++)
        argv[count++] = *arguments;
    argv[count++] = "--";
    argv[count++] = program;
    argv[count++] = rounds;
    argv[count++] = "25";
    argv[count++] = how;
    char environment[128];
    snprintf(environment, sizeof environment, "HEAPWISE_OPTIONS=%s", options ? options : "");
    const char *const set[] = {environment, NULL};
    struct run_result run = heapwise(argv, &(struct run_options){.environment = options ? set : NULL});
    assert_exit(&run, 0, "growth");
    read_log(run.out);
    assert_int_equal(moment_count, ROUNDS);
    run_result_free(&run);
    free(profile);
    return directory;
}

static json_t *growth_of(const char *directory, const char *file)
{
    char *path = join_path(directory, file);
    const char *const argv[] = {"report", "--growth", "--json", path, NULL};
    json_t *report = json_of(argv, 0);
    free(path);
    return report;
}

static const json_t *place_or_null(const json_t *report, const char *function)
{
    const json_t *place;
    size_t i;
    json_array_foreach(json_object_get(report, "places"), i,
                       place) if (strstr(stack_line(place), function)) return place;
    return NULL;
}

static const json_t *place_of(const json_t *report, const char *function)
{
    const json_t *place = place_or_null(report, function);
    if (!place)
        fail_msg("%s is not among the places that changed", function);
    return place;
}

static double real(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static int compare(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* The median of all slopes between the moments from FIRST on, as the program wrote them down. */
static double median_slope(const json_t *report, const char *function, size_t first)
{
    static double slopes[256 * 255 / 2];
    const json_t *times = json_object_get(report, "moments_ns");
    size_t count = 0;
    for (size_t i = first; i < moment_count; i++)
        for (size_t k = i + 1; k < moment_count; k++)
            slopes[count++] =
                (double)(logged(k, function) - logged(i, function)) /
                ((double)(json_integer_value(json_array_get(times, k)) - json_integer_value(json_array_get(times, i))) /
                 1e9);
    qsort(slopes, count, sizeof *slopes, compare);
    return count % 2 ? slopes[count / 2] : (slopes[count / 2 - 1] + slopes[count / 2]) / 2;
}

static size_t first_of(const json_t *report, const json_t *trend)
{
    const json_t *times = json_object_get(report, "moments_ns");
    for (size_t i = 0; i < json_array_size(times); i++)
        if (json_integer_value(json_array_get(times, i)) == json_number(trend, "since_ns"))
            return i;
    fail_msg("since_ns is none of the moments");
    return 0;
}

/* The numbers of a place are those of the program's log. */
static void assert_logged(const json_t *report, const char *function)
{
    const json_t *place = place_of(report, function), *bytes = json_object_get(place, "live_bytes");
    const json_t *blocks = json_object_get(place, "live_allocations");
    assert_int_equal(json_array_size(bytes), moment_count);
    for (size_t i = 0; i < moment_count; i++) {
        assert_int_equal(json_integer_value(json_array_get(bytes, i)), logged(i, function));
        assert_int_equal(json_integer_value(json_array_get(blocks, i)), logged(i, function) / 1000);
    }
    const json_t *trend = json_object_get(place, "bytes");
    const double expected = median_slope(report, function, first_of(report, trend)), rate = real(trend, "per_second");
    if (fabs(rate - expected) > 1e-6 * fabs(expected) + 1e-3)
        fail_msg("%s: %f B/s, and %f B/s by brute force", function, rate, expected);
    assert_true(real(trend, "low") <= rate && rate <= real(trend, "high"));
}

static const char *pattern_of(const json_t *report, const char *function)
{
    return json_text(place_of(report, function), "bytes.pattern");
}

/* ---- tests ---- */

static void rates_and_patterns_are_the_programs(void **state)
{
    static const char *const all[] = {"grow_steadily", "grow_late", "warm_up", "saw_tooth", "wander", "shrink"};
    char *directory = run_growth(NULL, "", NULL);
    json_t *report = growth_of(directory, "p.hwprof");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_logged(report, all[i]);
    /* Moments lie where the program had its dumps written. */
    const json_t *times = json_object_get(report, "moments_ns");
    for (size_t i = 0; i < moment_count; i++)
        for (size_t k = i + 1; k < moment_count; k++) {
            const double apart =
                (double)(json_integer_value(json_array_get(times, k)) - json_integer_value(json_array_get(times, i))) /
                1e9;
            assert_true(apart > (moments[k].before - moments[i].after) * 0.999 - 1e-4);
            assert_true(apart < (moments[k].after - moments[i].before) * 1.001 + 1e-4);
        }
    assert_string_equal(pattern_of(report, "grow_steadily"), "grows");
    assert_string_equal(pattern_of(report, "grow_late"), "grows");
    assert_string_equal(pattern_of(report, "warm_up"), "stopped");
    assert_string_equal(pattern_of(report, "saw_tooth"), "rises-falls");
    assert_string_not_equal(pattern_of(report, "wander"), "grows");
    assert_string_equal(pattern_of(report, "shrink"), "shrinks");
    assert_null(place_or_null(report, "stay"));
    /* What began later has the rate of then; what stopped did so where the program says. */
    assert_int_equal(first_of(report, json_object_get(place_of(report, "grow_late"), "bytes")), ROUNDS / 3);
    const size_t stopped = first_of(report, json_object_get(place_of(report, "warm_up"), "bytes"));
    assert_in_range(stopped, ROUNDS / 3 - 1, ROUNDS / 3 + 1);
    assert_int_equal(json_number(report, "steady"), 2);
    /* Steady ones come first, fastest first. */
    const json_t *places = json_object_get(report, "places");
    assert_non_null(strstr(stack_line(json_array_get(places, 0)), "grow_steadily"));
    assert_non_null(strstr(stack_line(json_array_get(places, 1)), "grow_late"));
    /* The program ended by itself: that moment is not used. */
    const json_t *files = json_object_get(report, "files");
    assert_int_equal(json_array_size(files), ROUNDS + 1);
    assert_string_equal(json_text(json_array_get(files, ROUNDS), "use"), "end-of-program");
    json_decref(report);
    remove_directory(directory);
}

static void text_says_it(void **state)
{
    char *directory = run_growth(NULL, "free", NULL), *path = join_path(directory, "p.dump3.hwprof");
    const char *const text[] = {"report", "--growth", "--no-pager", path, NULL};
    struct run_result run = heapwise(text, NULL);
    assert_exit(&run, 0, "report --growth");
    assert_contains(run.out, "Growth of growth");
    assert_contains(run.out, "24 moments from");
    assert_contains(run.out, "2 places steadily; fastest: grow_steadily, ");
    assert_contains(run.out, "stopped growing at about");
    assert_contains(run.out, "/s (95 % confidence: ");
    assert_null(strstr(run.out, "0 B/s to 0 B/s")); /* a rate that says nothing */
    assert_contains(run.out, "rises and falls back");
    assert_contains(run.out, "at this rate");
    assert_contains(run.out, "The end of the program is left out");
    run_result_free(&run);
    /* Only what was asked for. */
    const char *const focused[] = {"report", "--growth", "--json", "--ignore", "grow_", "--top", "1", path, NULL};
    json_t *report = json_of(focused, 0);
    assert_int_equal(json_array_size(json_object_get(report, "places")), 1);
    assert_null(place_or_null(report, "grow_"));
    assert_int_equal(json_number(report, "steady"), 0);
    json_decref(report);
    remove_directory(directory);
    free(path);
}

/* Dumps that are found beside a file, and are empty, cut, or no profiles at all: the others are reported, but not as if
 * these were not there. */
static void damaged_dumps_are_named(void **state)
{
    char *directory = run_growth(NULL, "", NULL), *path = join_path(directory, "p.hwprof"),
         *empty = join_path(directory, "p.dump5.hwprof"), *cut = join_path(directory, "p.dump7.hwprof"),
         *junk = join_path(directory, "p.dump40.hwprof"), *folder = join_path(directory, "p.dump41.hwprof");
    assert_int_equal(truncate(empty, 0), 0);
    assert_int_equal(truncate(cut, 20), 0);
    FILE *file = fopen(junk, "w");
    assert_non_null(file);
    fputs("no profile", file);
    fclose(file);
    assert_int_equal(mkdir(folder, 0755), 0);
    const char *const text[] = {"report", "--growth", "--full", "--no-pager", path, NULL};
    struct run_result run = heapwise(text, NULL);
    assert_int_equal(run.code, 2);
    const char *const names[] = {"p.dump5.hwprof", "p.dump7.hwprof", "p.dump40.hwprof", "p.dump41.hwprof"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_contains(run.err, names[i]);
    assert_contains(run.out, "4 files beside the others cannot be read: they are left out.");
    assert_contains(run.out, "22 moments from");
    run_result_free(&run);
    const char *const argv[] = {"report", "--growth", "--json", path, NULL};
    json_t *report = json_of(argv, 2), *entry;
    size_t damaged = 0, i;
    json_array_foreach(json_object_get(report, "files"), i, entry) if (!strcmp(json_text(entry, "use"), "damaged"))
    {
        assert_null(json_object_get(entry, "time_ns"));
        damaged++;
    }
    assert_int_equal(damaged, 4);
    assert_string_equal(pattern_of(report, "grow_steadily"), "grows");
    json_decref(report);
    const char *const check[] = {"check", "--max-growth", "1G", path, NULL};
    run = heapwise(check, NULL);
    assert_int_equal(run.code, 2);
    assert_contains(run.err, "p.dump40.hwprof");
    run_result_free(&run);
    remove_directory(directory);
    free(path);
    free(empty);
    free(cut);
    free(junk);
    free(folder);
}

static void groups_add_places_up(void **state)
{
    char *directory = run_growth(NULL, "", NULL), *path = join_path(directory, "p.hwprof");
    const char *const argv[] = {"report", "--growth", "--by", "function", "--json", path, NULL};
    json_t *report = json_of(argv, 0);
    const json_t *main = json_entry(report, "groups", "function", "main"),
                 *steadily = json_entry(report, "groups", "function", "grow_steadily");
    for (size_t i = 0; i < moment_count; i++) {
        int64_t sum = 0;
        static const char *const all[] = {"grow_steadily", "grow_late", "warm_up", "saw_tooth",
                                          "wander",        "stay",      "shrink"};
        for (size_t k = 0; k < sizeof all / sizeof *all; k++)
            sum += logged(i, all[k]);
        const int64_t tables = 7 * 200000 * 8;
        assert_int_equal(json_integer_value(json_array_get(json_object_get(main, "live_bytes"), i)), sum + tables);
        assert_int_equal(json_integer_value(json_array_get(json_object_get(steadily, "self_bytes"), i)),
                         logged(i, "grow_steadily"));
    }
    assert_string_equal(json_text(steadily, "bytes.pattern"), "grows");
    json_decref(report);
    static const char *const others[] = {"file", "line", "module", "type", "size"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const char *const text[] = {"report", "--growth", "--by", others[i], "--no-pager", path, NULL};
        struct run_result run = heapwise(text, NULL);
        assert_exit(&run, 0, others[i]);
        run_result_free(&run);
    }
    const char *const refused[] = {"report", "--growth", "--by", "thread", path, NULL};
    assert_refused(refused, "cannot be combined with --by thread");
    const char *const sorted[] = {"report", "--growth", "--sort", "peak", path, NULL};
    assert_refused(sorted, "cannot be combined with --section and --sort");
    remove_directory(directory);
    free(path);
}

static void few_moments_say_little(void **state)
{
    char *directory = run_growth(NULL, "", NULL);
    char *one = join_path(directory, "p.dump20.hwprof"), *other = join_path(directory, "p.dump4.hwprof"),
         *third = join_path(directory, "p.dump10.hwprof");
    /* In any order; of the same one twice nothing is left. */
    const char *const two[] = {"report", "--growth", "--json", one, other, NULL};
    json_t *report = json_of(two, 0);
    const json_t *place = place_of(report, "grow_steadily");
    assert_string_equal(json_text(place, "bytes.pattern"), "too-few");
    assert_true(isnan(real(json_object_get(place, "bytes"), "low")));
    assert_int_equal(json_integer_value(json_array_get(json_object_get(place, "live_bytes"), 0)),
                     logged(3, "grow_steadily"));
    assert_int_equal(json_integer_value(json_array_get(json_object_get(place, "live_bytes"), 1)),
                     logged(19, "grow_steadily"));
    assert_true(
        strstr(json_string_value(json_array_get(json_object_get(report, "notes"), 0)), "There are two moments"));
    json_decref(report);
    const char *const three[] = {"report", "--growth", "--json", one, third, other, NULL};
    report = json_of(three, 0);
    place = place_of(report, "grow_steadily");
    assert_string_equal(json_text(place, "bytes.pattern"), "too-few");
    assert_false(isnan(real(json_object_get(place, "bytes"), "low")));
    json_decref(report);
    const char *const few[] = {"report", "--growth", "--no-pager", one, third, other, NULL};
    struct run_result printed = heapwise(few, NULL);
    assert_exit(&printed, 0, "report --growth of three moments");
    assert_contains(printed.out, "; the rate is not certain");
    run_result_free(&printed);
    const char *const compared[] = {"diff", "--no-pager", other, one, NULL};
    struct run_result run = heapwise(compared, NULL);
    assert_exit(&run, 0, "diff of two dumps");
    assert_contains(run.out, "They are two moments of one run");
    run_result_free(&run);
    const char *const same[] = {"report", "--growth", one, one, NULL};
    assert_refused(same, "needs two moments");
    remove_directory(directory);
    free(one);
    free(other);
    free(third);
}

static void other_files_are_refused(void **state)
{
    char *directory = run_growth(NULL, "", NULL), *again = run_growth(NULL, "", NULL);
    char *one = join_path(directory, "p.dump1.hwprof"), *other = join_path(again, "p.dump2.hwprof"),
         *sum = join_path(directory, "sum.hwprof"), *broken = join_path(directory, "p.dump2.hwprof");
    const char *const runs[] = {"report", "--growth", one, other, NULL};
    assert_refused(runs, "are of different runs: heapwise diff");
    const char *const merge[] = {"merge", "-q", "-o", sum, one, other, NULL};
    struct run_result merged = heapwise(merge, NULL);
    assert_exit(&merged, 0, "merge");
    run_result_free(&merged);
    const char *const merged_one[] = {"report", "--growth", sum, one, NULL};
    assert_refused(merged_one, "it is a sum of several runs");
    /* A dump whose numbers are damaged is not passed over in silence. */
    struct stat status;
    assert_int_equal(stat(broken, &status), 0);
    const int file = open(broken, O_RDWR);
    for (off_t at = 4096; at < status.st_size; at += 512)
        assert_int_equal(pwrite(file, "damage", 6, at), 6);
    close(file);
    const char *const damaged[] = {"report", "--growth", one, broken, NULL};
    struct run_result run = heapwise(damaged, NULL);
    assert_int_equal(run.code, 2);
    assert_string_equal(run.out, "");
    run_result_free(&run);
    remove_directory(directory);
    remove_directory(again);
    free(one);
    free(other);
    free(sum);
    free(broken);
}

static void a_reset_changes_nothing(void **state)
{
    char *directory = run_growth(NULL, "reset", NULL);
    json_t *report = growth_of(directory, "p.hwprof");
    assert_logged(report, "grow_steadily");
    assert_logged(report, "warm_up");
    assert_string_equal(pattern_of(report, "grow_steadily"), "grows");
    json_decref(report);
    remove_directory(directory);
}

static void samples_make_it_less_certain(void **state)
{
    char *directory = run_growth(NULL, "", "sample-bytes=20000");
    json_t *report = growth_of(directory, "p.hwprof");
    const json_t *trend = json_object_get(place_of(report, "grow_steadily"), "bytes");
    const double truth = median_slope(report, "grow_steadily", 0), within = real(trend, "high") - real(trend, "low");
    assert_string_equal(json_text(trend, "pattern"), "grows");
    /* Blocks of 1000 bytes, each in the sample with p = 1 - exp(-1/20): the variance of what came in between. */
    const double blocks = (double)(logged(ROUNDS - 1, "grow_steadily") - logged(0, "grow_steadily")) / 1000;
    const json_t *times = json_object_get(report, "moments_ns");
    const double seconds =
        (double)(json_integer_value(json_array_get(times, ROUNDS - 1)) - json_integer_value(json_array_get(times, 0))) /
        1e9;
    const double p = 1 - exp(-0.05), deviation = 1000 * sqrt(blocks * (1 - p) / p) / seconds;
    assert_true(within > 3 * deviation); /* two on each side, and a fourth for the estimate of it */
    assert_true(fabs(real(trend, "per_second") - truth) < 5 * deviation);
    json_decref(report);
    remove_directory(directory);
}

static void keepers_of_what_grew_are_named(void **state)
{
    static const char *const keeps[] = {"--keeps", NULL};
    char *directory = run_growth(keeps, "", NULL);
    json_t *report = growth_of(directory, "p.hwprof");
    const json_t *keepers = json_object_get(place_of(report, "grow_steadily"), "keepers");
    if (!json_is_array(keepers))
        SKIP("AddressSanitizer's runtime: nothing was searched for");
    /* The table is in two variables, kept_steadily and kinds: together they have it. */
    int64_t kept = 0;
    for (size_t i = 0; i < json_array_size(keepers); i++)
        kept += json_number(json_array_get(keepers, i), "bytes");
    assert_int_equal(kept, logged(ROUNDS - 1, "grow_steadily"));
    json_decref(report);
    char *path = join_path(directory, "p.hwprof");
    const char *const text[] = {"report", "--growth", "--no-pager", path, NULL};
    struct run_result run = heapwise(text, NULL);
    assert_contains(run.out, "kept by ");
    run_result_free(&run);
    free(path);
    remove_directory(directory);
}

static void check_limits_growth(void **state)
{
    char *directory = run_growth(NULL, "", NULL), *path = join_path(directory, "p.hwprof");
    const char *const broken[] = {"check", "--max-growth", "1K", "--max-leaked", "1G", path, NULL};
    struct run_result run = heapwise(broken, NULL);
    assert_int_equal(run.code, 1);
    assert_contains(run.out, "max-growth: ");
    assert_contains(run.out, "/s is how fast places grow steadily");
    assert_contains(run.out, "more than 1.0 KiB/s");
    assert_contains(run.out, "grow_steadily");
    assert_contains(run.out, "max-leaked: ");
    run_result_free(&run);
    /* By the places that grow steadily: one that rises and falls beside them does not hide them. */
    const char *const kept[] = {"check", "--max-growth", "1G", "--json", path, NULL};
    json_t *report = json_of(kept, 0), *growth = growth_of(directory, "p.hwprof");
    const json_t *check = json_entry(report, "checks", "name", "max-growth");
    assert_string_equal(json_text(check, "verdict"), "kept");
    assert_string_equal(json_text(check, "measure"), "growth");
    const double rate = real(json_object_get(place_of(growth, "grow_steadily"), "bytes"), "per_second") +
                        real(json_object_get(place_of(growth, "grow_late"), "bytes"), "per_second");
    assert_true(fabs((double)json_number(check, "value") - rate) <= 1);
    json_decref(growth);
    json_decref(report);
    char *alone = join_path(directory, "alone.hwprof"), *dump = join_path(directory, "p.dump3.hwprof");
    assert_int_equal(rename(dump, alone), 0);
    const char *const lonely[] = {"check", "--max-growth", "1K", alone, NULL};
    assert_refused(lonely, "growth needs five moments of a run or more");
    remove_directory(directory);
    free(path);
    free(alone);
    free(dump);
}

TEST_LIST(cmocka_unit_test(check_limits_growth), cmocka_unit_test(rates_and_patterns_are_the_programs),
          cmocka_unit_test(text_says_it), cmocka_unit_test(damaged_dumps_are_named),
          cmocka_unit_test(groups_add_places_up), cmocka_unit_test(few_moments_say_little),
          cmocka_unit_test(other_files_are_refused), cmocka_unit_test(a_reset_changes_nothing),
          cmocka_unit_test(samples_make_it_less_certain), cmocka_unit_test(keepers_of_what_grew_are_named))
