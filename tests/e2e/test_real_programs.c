/* test_real_programs.c - programs as installed behave the same under record: output, exit code; and their totals are
 * those of the counter that is preloaded into the very same processes. */
#include "support/check.h"
#include "support/recording.h"
#include "test_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct real {
    const char *const *argv;
    const char *const *environment;
    const char *input;
    const char *directory;
    int code;
    size_t processes; /* that leave a profile, at least */
    bool threads;     /* of the program's own, still running at the end: totals may differ by events in flight */
};

static bool close_enough(int64_t a, int64_t b)
{
    int64_t difference = llabs(a - b);
    return difference <= 20 + (a > b ? a : b) / 1000;
}

/* Every process that both have seen: the same totals. */
static void compare_processes(const struct recording *recording, const struct counted *counted, bool threads)
{
    size_t compared = 0;
    for (size_t i = 0; i < recording->file_count; i++) {
        const json_t *report = recording->reports[i];
        int64_t pid = json_number(report, "process.pid");
        const char *executable = json_text(report, "process.executable");
        size_t of_pid = 0;
        for (size_t k = 0; k < recording->file_count; k++)
            of_pid += json_number(recording->reports[k], "process.pid") == pid &&
                      strcmp(json_text(recording->reports[k], "process.executable"), executable) == 0;
        size_t counts = 0, at = 0;
        for (size_t k = 0; k < counted->process_count; k++) {
            if (counted->processes[k].pid == pid && strcmp(counted->processes[k].executable, executable) == 0) {
                counts++;
                at = k;
            }
        }
        /* a fork that executes the same program again would need more than pid and name to tell them apart */
        if (of_pid != 1 || counts != 1)
            continue;
        struct totals expected = counted->processes[at].totals, found = report_totals(report);
        char what[600];
        snprintf(what, sizeof what, "process %lld, %.500s", (long long)pid, executable);
        compared++;
        if (json_is_true(json_object_get(json_object_get(report, "process"), "forked"))) {
            /* frees of inherited blocks: unknown to the counter, marked by Heapwise */
            expected.peak_bytes = found.peak_bytes;
        }
        if (threads) {
            if (!close_enough(expected.allocations, found.allocations) || !close_enough(expected.frees, found.frees) ||
                !close_enough(expected.bytes, found.bytes))
                assert_totals_equal(what, expected, found);
            continue;
        }
        assert_totals_equal(what, expected, found);
        assert_contexts_sum_to_totals(report);
    }
    if (compared == 0)
        fail_msg("no process could be compared: %zu profiles, %zu counts", recording->file_count,
                 counted->process_count);
}

static void check_real(const struct real *real)
{
    /* as installed by the system: not what shims of a user's PATH make of the names */
    setenv("PATH", "/usr/bin:/bin", 1);
    if (!have_command(real->argv[0]))
        SKIP("%s is not installed", real->argv[0]);
    const struct run_options options = {
        .environment = real->environment, .input = real->input, .directory = real->directory, .timeout_s = 30};
    struct run_result plain = run(real->argv, &options);
    if (plain.signal) /* as a shell and record say it */
        plain.code = 128 + plain.signal;
    assert_exit(&plain, real->code, run_describe(real->argv));

    struct counted counted = {0};
    const struct record_options record = {.run = options, .arguments = (const char *const[]){"-q", NULL}};
    bool together = !TEST_SANITIZED;
    struct recording recording =
        together ? record_with_counter(real->argv, &record, &counted) : record_and_load(real->argv, &record);
    assert_exit(&recording.run, real->code, run_describe(real->argv));
    assert_int_equal(recording.run.out_size, plain.out_size);
    assert_memory_equal(recording.run.out, plain.out, plain.out_size);
    assert_string_equal(recording.run.err, plain.err);
    if (recording.file_count < real->processes)
        fail_msg("%zu profiles instead of %zu", recording.file_count, real->processes);
    if (together)
        compare_processes(&recording, &counted, real->threads);
    counted_free(&counted);
    recording_free(&recording);
    run_result_free(&plain);
}
#define ARGV(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_bash(void **state)
{
    check_real(&(struct real){
        .argv = ARGV("bash", "--norc", "-c",
                     "declare -A m; for i in {1..500}; do m[k$i]=$((i * i)); done; "
                     "f() { local x=$1; ((x > 0)) && f $((x - 1)); echo -n .; }; f 20; echo; "
                     "echo ${m[k7]} ${#m[@]} $(echo sub | tr a-z A-Z) | cat; trap 'echo trapped' EXIT; exit 3"),
        .code = 3,
        .processes = 4,
    });
}

static void test_bash_pipeline_and_jobs(void **state)
{
    check_real(&(struct real){
        .argv = ARGV("bash", "--norc", "-c",
                     "for i in 1 2 3 4 5; do (sleep 0.01; echo job $i) & wait $!; done; "
                     "seq 1 1000 | sort -r | head -3; false | true; echo ${PIPESTATUS[@]}; kill -TERM $$; sleep 5"),
        .code = 143,
        .processes = 10,
    });
}

static void test_sort(void **state)
{
    char *input = malloc(200000);
    size_t used = 0;
    for (unsigned i = 0; i < 5000; i++)
        used += (size_t)sprintf(input + used, "%u some words\n", i * 2654435761u);
    const char *const environment[] = {"LC_ALL=C.UTF-8", NULL};
    check_real(&(struct real){.argv = ARGV("sort", "--parallel=2", "-S", "1M", "-n"),
                              .environment = environment,
                              .input = input,
                              .processes = 1});
    check_real(&(struct real){.argv = ARGV("sort", "/no/such/file"), .code = 2, .processes = 1});
    free(input);
}

static void test_xz(void **state)
{
    check_real(&(struct real){.argv = ARGV("xz", "-T1", "-6", "--stdout", "/etc/services"), .processes = 1});
    check_real(&(struct real){.argv = ARGV("xz", "-T2", "-0", "--stdout", "/etc/services"), .processes = 1});
    check_real(&(struct real){.argv = ARGV("xz", "-d"), .input = "this is not compressed", .code = 1, .processes = 1});
}

static void test_git(void **state)
{
    char *directory = make_directory();
    const char *const environment[] = {"GIT_AUTHOR_NAME=a",
                                       "GIT_AUTHOR_EMAIL=a@example.org",
                                       "GIT_AUTHOR_DATE=2020-01-01T00:00:00Z",
                                       "GIT_COMMITTER_NAME=a",
                                       "GIT_COMMITTER_EMAIL=a@example.org",
                                       "GIT_COMMITTER_DATE=2020-01-01T00:00:00Z",
                                       "GIT_CONFIG_GLOBAL=/dev/null",
                                       "GIT_CONFIG_NOSYSTEM=1",
                                       "GIT_PAGER=cat",
                                       "GIT_DIR",
                                       "GIT_WORK_TREE",
                                       "GIT_INDEX_FILE",
                                       NULL};
    check_real(&(struct real){
        .argv = ARGV(
            "sh", "-c",
            "rm -rf r && git init -q -b main r && cd r && for i in 1 2 3; do seq $i 100 >f$i; git add f$i; "
            "git commit -q -m $i; done; git log --stat --format=%H%s; git gc -q; git fsck 2>&1; git diff HEAD~1 | tail -3; "
            "git checkout -q no-such-branch"),
        .environment = environment,
        .directory = directory,
        .code = 1,
        .processes = 10,
    });
    remove_directory(directory);
}

static void test_perl(void **state)
{
    const char *const environment[] = {"PERL_HASH_SEED=0", "PERL_PERTURB_KEYS=0", NULL};
    check_real(&(struct real){
        .argv = ARGV(
            "perl", "-e",
            "my %h; $h{$_} = [1..$_ % 10] for 1..5000; print scalar(keys %h), \"\\n\"; "
            "my $p = fork; if (!$p) { print \"child\\n\"; exit 0 } waitpid $p, 0; "
            "print `echo backtick`; $SIG{ALRM} = sub { die \"alarm\\n\" }; eval { alarm 1; select undef, undef, undef, 5 }; "
            "print $@; die \"dead\\n\""),
        .environment = environment,
        .code = 4, /* errno of the interrupted select */
        .processes = 2,
    });
}

static void test_python(void **state)
{
    const char *const environment[] = {"PYTHONHASHSEED=0", "PYTHONDONTWRITEBYTECODE=1", NULL};
    check_real(&(struct real){
        .argv = ARGV(
            "python3", "-I", "-c",
            "import json, threading, subprocess, re, collections\n"
            "d = {str(i): list(range(i % 20)) for i in range(5000)}\n"
            "s = json.dumps(d); print(len(s), len(json.loads(s)))\n"
            "r = []\n"
            "ts = [threading.Thread(target=lambda k=k: r.append(sum(i * k for i in range(20000)))) for k in range(4)]\n"
            "[t.start() for t in ts]; [t.join() for t in ts]; print(sorted(r))\n"
            "print(subprocess.run(['echo', 'sub'], capture_output=True).stdout)\n"
            "raise SystemExit(9)\n"),
        .environment = environment,
        .code = 9,
        .processes = 2,
        .threads = true,
    });
}

static void test_sqlite(void **state)
{
    check_real(&(struct real){
        .argv = ARGV("sqlite3", ":memory:"),
        .input =
            "CREATE TABLE t(a, b); WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 10000) "
            "INSERT INTO t SELECT x, hex(x * 7919) FROM n; SELECT count(*), max(b) FROM t; CREATE INDEX i ON t(b); "
            "SELECT a FROM t ORDER BY b LIMIT 5;\nSELECT no_such_column FROM t;\n",
        .code = 1,
        .processes = 1,
    });
}

static void test_gcc(void **state)
{
    if (!program_path("hello"))
        SKIP("no compiler");
    char *directory = make_directory(), *source = join_path(directory, "t.c");
    FILE *file = fopen(source, "w");
    fputs("#include <stdio.h>\n#include <stdlib.h>\nstatic int f(int n) { return n < 2 ? n : f(n - 1) + f(n - 2); }\n"
          "int main(int c, char **v) { printf(\"%d\\n\", f(c + 10)); return 0; }\n",
          file);
    fclose(file);
    check_real(
        &(struct real){.argv = ARGV("gcc", "-O2", "-g", "-o", "t", "t.c"), .directory = directory, .processes = 4});
    struct run_result result = run(ARGV("./t"), &(struct run_options){.directory = directory});
    assert_string_equal(result.out, "89\n");
    run_result_free(&result);
    file = fopen(source, "w");
    fputs("int main(void) { return }\n", file);
    fclose(file);
    check_real(&(struct real){.argv = ARGV("gcc", "-c", "t.c"), .directory = directory, .code = 1, .processes = 2});
    free(source);
    remove_directory(directory);
}

static void test_node(void **state)
{
    check_real(&(struct real){
        .argv = ARGV(
            "node", "-e",
            "const a = []; for (let i = 0; i < 50000; i++) a.push({ i, s: 'x'.repeat(i % 50) });"
            "const z = require('zlib'); const d = z.gzipSync(Buffer.from(JSON.stringify(a)));"
            "console.log(z.gunzipSync(d).length); const { Worker } = require('worker_threads');"
            "const w = new Worker('require(\"worker_threads\").parentPort.postMessage([1, 2, 3].map(x => x * x))', { eval: true });"
            "w.on('message', m => console.log(m)); w.on('exit', () => process.exit(4));"),
        .code = 4,
        .processes = 1,
        .threads = true,
    });
}

static void test_lua(void **state)
{
    check_real(&(struct real){
        .argv =
            ARGV("lua5.4", "-e",
                 "local function t(d) if d == 0 then return {} end return {t(d - 1), t(d - 1)} end "
                 "local n = 0; local function c(x) n = n + 1; if x[1] then c(x[1]) c(x[2]) end end "
                 "c(t(14)) print(n) local co = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end) "
                 "print(co(), co(), co()) print(pcall(error, 'caught')) error('out', 0)"),
        .code = 1,
        .processes = 1,
    });
}

/* Programs that ask what is preloaded, or look at their own environment, may see the difference; tools about libraries
 * must work. */
static void test_small_tools(void **state)
{
    check_real(&(struct real){.argv = ARGV("true"), .processes = 1});
    check_real(&(struct real){.argv = ARGV("false"), .code = 1, .processes = 1});
    check_real(&(struct real){.argv = ARGV("date", "-u", "-d", "@0"), .processes = 1});
    check_real(&(struct real){.argv = ARGV("ls", "/usr"), .processes = 1});
    check_real(&(struct real){.argv = ARGV("find", "/usr/share/doc/libc6", "-type", "f"), .processes = 1});
    check_real(&(struct real){
        .argv = ARGV("awk", "BEGIN { for (i = 0; i < 10000; i++) a[i] = i * i; print length(a); exit 7 }"),
        .code = 7,
        .processes = 1});
    check_real(&(struct real){.argv = ARGV("tar", "-cf", "-", "--sort=name", "/etc/services"), .processes = 1});
    check_real(&(struct real){.argv = ARGV("timeout", "-s", "KILL", "0.2", "sleep", "5"), .code = 137, .processes = 1});
}

TEST_LIST(cmocka_unit_test(test_bash), cmocka_unit_test(test_bash_pipeline_and_jobs), cmocka_unit_test(test_sort),
          cmocka_unit_test(test_xz), cmocka_unit_test(test_git), cmocka_unit_test(test_perl),
          cmocka_unit_test(test_python), cmocka_unit_test(test_sqlite), cmocka_unit_test(test_gcc),
          cmocka_unit_test(test_node), cmocka_unit_test(test_lua), cmocka_unit_test(test_small_tools))
