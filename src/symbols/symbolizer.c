/* symbolizer.c - the outside of the folder: tickets, and the passes over modules and units on several threads.
 *
 * A run sorts what is pending by module, indexes the modules that are new (first pass, one job a module), gives each
 * address to the unit that has code there, and resolves unit by unit (second pass, one job a unit; addresses that no
 * unit knows are one more job a module). Each worker opens its own handle on a module, because libdw's serve one
 * thread. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/growing.h"
#include "base/index.h"
#include "base/order.h"
#include "symbols/symbols_internal.h"

/* What hw_symbolizer_add was asked, and the answer. */
struct ticket {
    uint64_t address;
    uint32_t module;
    uint32_t frame_count; /* 0: not resolved yet */
    const struct hw_frame *frame;
};

/* Frames are handed out and never taken back: each worker fills chunks of its own, the symbolizer keeps them. */
struct frame_chunk {
    struct frame_chunk *next;
    size_t used, size;
    struct hw_frame frame[];
};

struct hw_symbolizer {
    unsigned threads;
    bool no_debuginfod;
    void (*progress)(void *closure, size_t done, size_t total);
    void *closure;
    char *sysroot;
    struct hw_debug_paths paths;
    struct hw_names *names;
    struct hw_module **module; /* each on its own: they hold locks */
    size_t module_count;
    struct ticket *ticket;
    size_t ticket_count, resolved_count; /* tickets below resolved_count have answers */
    size_t ticket_room;
    struct hw_index index; /* tickets by address and module */
    struct frame_chunk *frames;
    struct hw_types types;
    bool types_sorted;
};

/* One address of the current run. */
struct request {
    uint64_t address;
    uint32_t module, unit, ticket;
};

/* Requests of one unit (or of one module, those without a unit): a contiguous part of the sorted requests. */
struct job {
    size_t first, count;
};

struct worker;

struct run {
    struct hw_symbolizer *symbolizer;
    struct request *request;
    size_t request_count;
    struct job *job; /* of the second pass */
    size_t job_count;
    uint32_t *new_module; /* jobs of the first pass: numbers of modules */
    size_t new_module_count;
    bool (*do_job)(struct worker *worker, size_t job);
    size_t pass_jobs;
    atomic_size_t next_job, done;
    atomic_bool no_memory;
};

struct worker {
    struct run *run;
    pthread_t thread;
    struct hw_debug_file *file; /* one for each module; dwfl is NULL while it is not open */
    struct frame_chunk *frames;
    /* the current job, for the sink */
    const struct request *request;
    uint64_t *address;
    size_t address_capacity;
    bool leader; /* the thread that called hw_symbolizer_run */
};

enum { MOST_THREADS = 64, CHUNK_FRAMES = 4096 };

static const struct hw_frame unknown_frame;

/* ---- making and filling ---- */

struct hw_symbolizer *hw_symbolizer_new(const struct hw_symbolizer_options *options, struct hw_error *error)
{
    static const struct hw_symbolizer_options defaults;
    if (!options)
        options = &defaults;
    elf_version(EV_CURRENT);
    struct hw_symbolizer *symbolizer = calloc(1, sizeof *symbolizer);
    if (symbolizer) {
        long processors = sysconf(_SC_NPROCESSORS_ONLN);
        symbolizer->threads = options->threads ? options->threads : processors > 0 ? (unsigned)processors : 1;
        if (symbolizer->threads > MOST_THREADS)
            symbolizer->threads = MOST_THREADS;
        symbolizer->no_debuginfod = options->no_debuginfod;
        symbolizer->progress = options->progress;
        symbolizer->closure = options->closure;
        symbolizer->sysroot = strdup(options->sysroot ? options->sysroot : "");
        symbolizer->names = hw_names_new();
    }
    if (!symbolizer || !symbolizer->sysroot || !symbolizer->names ||
        !hw_debug_paths_init(&symbolizer->paths, symbolizer->sysroot)) {
        hw_error_set(error, "cannot prepare symbols: out of memory");
        hw_symbolizer_free(symbolizer);
        return NULL;
    }
    return symbolizer;
}

void hw_symbolizer_free(struct hw_symbolizer *symbolizer)
{
    if (!symbolizer)
        return;
    for (size_t i = 0; i < symbolizer->module_count; i++) {
        hw_module_clear(symbolizer->module[i]);
        free(symbolizer->module[i]);
    }
    for (struct frame_chunk *chunk = symbolizer->frames, *next; chunk; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    free(symbolizer->module);
    free(symbolizer->ticket);
    hw_index_free(&symbolizer->index);
    free(symbolizer->types.type);
    hw_debug_paths_free(&symbolizer->paths);
    hw_names_free(symbolizer->names);
    free(symbolizer->sysroot);
    free(symbolizer);
}

int hw_symbolizer_add_module(struct hw_symbolizer *symbolizer, const char *path, const uint8_t *build_id,
                             size_t build_id_size)
{
    struct hw_module *module = malloc(sizeof *module);
    struct hw_module **larger = realloc(symbolizer->module, (symbolizer->module_count + 1) * sizeof *larger);
    if (larger)
        symbolizer->module = larger;
    if (!module || !larger || !hw_module_init(module, path, build_id, build_id_size)) {
        free(module);
        return -1;
    }
    larger[symbolizer->module_count] = module;
    return (int)symbolizer->module_count++;
}

long hw_symbolizer_add(struct hw_symbolizer *symbolizer, int module, uint64_t address)
{
    if (module < 0 || (size_t)module >= symbolizer->module_count)
        return -1;
    if (!HW_GROW(symbolizer->ticket, symbolizer->ticket_room, symbolizer->ticket_count + 1))
        return -1;
    bool added;
    const uint32_t ticket = hw_index_intern(&symbolizer->index, (struct hw_key){address, (uint32_t)module},
                                            (uint32_t)symbolizer->ticket_count, &added);
    if (added)
        symbolizer->ticket[symbolizer->ticket_count++] =
            (struct ticket){.address = address, .module = (uint32_t)module, .frame = &unknown_frame};
    return ticket == HW_INDEX_NONE ? -1 : (long)ticket;
}

/* ---- what the workers do ---- */

static struct hw_debug_file *open_file(struct worker *worker, uint32_t number)
{
    struct hw_symbolizer *symbolizer = worker->run->symbolizer;
    struct hw_module *module = symbolizer->module[number];
    struct hw_debug_file *file = &worker->file[number];
    char problem[512]; /* the same that the index has noted, unless the file was replaced meanwhile */
    if (!file->dwfl && !hw_debug_file_open(file, &symbolizer->paths, module->path, module->build_id,
                                           module->build_id_size, problem, sizeof problem))
        return NULL;
    return file;
}

static bool index_module(struct worker *worker, size_t job)
{
    uint32_t number = worker->run->new_module[job];
    struct hw_symbolizer *symbolizer = worker->run->symbolizer;
    return hw_module_index(symbolizer->module[number], &symbolizer->paths, &worker->file[number]);
}

/* A sink for hw_unit_resolve; INDEX counts within the job. */
static bool keep_chain(void *closure, size_t index, const struct hw_frame *frame, uint32_t count)
{
    struct worker *worker = closure;
    struct frame_chunk *chunk = worker->frames;
    if (!chunk || chunk->size - chunk->used < count) {
        size_t size = count > CHUNK_FRAMES ? count : CHUNK_FRAMES;
        chunk = malloc(sizeof *chunk + size * sizeof *chunk->frame);
        if (!chunk)
            return false;
        *chunk = (struct frame_chunk){.next = worker->frames, .size = size};
        worker->frames = chunk;
    }
    struct ticket *ticket = &worker->run->symbolizer->ticket[worker->request[index].ticket];
    memcpy(chunk->frame + chunk->used, frame, count * sizeof *frame);
    ticket->frame = chunk->frame + chunk->used;
    ticket->frame_count = count;
    chunk->used += count;
    return true;
}

/* Addresses outside every unit: the symbol table's names. */
static bool resolve_by_symbols(struct worker *worker, const struct job *job)
{
    struct hw_symbolizer *symbolizer = worker->run->symbolizer;
    struct hw_module *module = symbolizer->module[worker->request->module];
    struct hw_debug_file *file = module->usable ? open_file(worker, worker->request->module) : NULL;
    for (size_t i = 0; i < job->count; i++) {
        struct hw_frame frame = {0};
        if (file && !hw_symbol_frame(module, file, symbolizer->names, worker->request[i].address, &frame))
            return false;
        if (!keep_chain(worker, i, &frame, 1))
            return false;
    }
    return true;
}

static bool resolve_job(struct worker *worker, size_t number)
{
    const struct job *job = &worker->run->job[number];
    struct hw_symbolizer *symbolizer = worker->run->symbolizer;
    worker->request = &worker->run->request[job->first];
    struct hw_debug_file *file =
        worker->request->unit == HW_NO_UNIT ? NULL : open_file(worker, worker->request->module);
    if (!file || !file->dwarf)
        return resolve_by_symbols(worker, job);
    if (worker->address_capacity < job->count) {
        uint64_t *address = realloc(worker->address, job->count * sizeof *address);
        if (!address)
            return false;
        worker->address = address;
        worker->address_capacity = job->count;
    }
    for (size_t i = 0; i < job->count; i++)
        worker->address[i] = worker->request[i].address;
    return hw_unit_resolve(symbolizer->module[worker->request->module], file, worker->request->unit, symbolizer->names,
                           worker->address, job->count, keep_chain, worker);
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    struct run *run = worker->run;
    size_t job;
    while (!run->no_memory && (job = atomic_fetch_add(&run->next_job, 1)) < run->pass_jobs) {
        if (!run->do_job(worker, job))
            run->no_memory = true;
        if (run->do_job != resolve_job)
            continue;
        size_t done = atomic_fetch_add(&run->done, run->job[job].count) + run->job[job].count;
        if (worker->leader && run->symbolizer->progress)
            run->symbolizer->progress(run->symbolizer->closure, done, run->request_count);
    }
    return NULL;
}

/* Does JOBS jobs with all workers, the caller being the first. Where a thread cannot be started the others do its part.
 */
static bool do_pass(struct run *run, struct worker *worker, unsigned threads,
                    bool (*do_job)(struct worker *worker, size_t job), size_t jobs)
{
    run->do_job = do_job;
    run->pass_jobs = jobs;
    run->next_job = 0;
    unsigned started = 1;
    while (started < threads && started < jobs &&
           pthread_create(&worker[started].thread, NULL, work, &worker[started]) == 0)
        started++;
    work(&worker[0]);
    for (unsigned i = 1; i < started; i++)
        pthread_join(worker[i].thread, NULL);
    return !run->no_memory;
}

/* ---- the run ---- */

static int compare_requests(const void *left, const void *right)
{
    const struct request *a = left, *b = right;
    return HW_ORDER(a->module, b->module) ?: HW_ORDER(a->unit, b->unit) ?: HW_ORDER(a->address, b->address);
}

static bool collect_requests(struct run *run)
{
    const struct hw_symbolizer *symbolizer = run->symbolizer;
    size_t pending = symbolizer->ticket_count - symbolizer->resolved_count;
    run->request = malloc((pending + 1) * sizeof *run->request);
    run->job = malloc((pending + 1) * sizeof *run->job);
    run->new_module = malloc((symbolizer->module_count + 1) * sizeof *run->new_module);
    if (!run->request || !run->job || !run->new_module)
        return false;
    for (size_t i = symbolizer->resolved_count; i < symbolizer->ticket_count; i++) {
        const struct ticket *ticket = &symbolizer->ticket[i];
        run->request[run->request_count++] =
            (struct request){.address = ticket->address, .module = ticket->module, .ticket = (uint32_t)i};
    }
    qsort(run->request, run->request_count, sizeof *run->request, compare_requests);
    for (size_t i = 0; i < run->request_count; i++) {
        uint32_t module = run->request[i].module;
        if ((i == 0 || run->request[i - 1].module != module) && !symbolizer->module[module]->indexed)
            run->new_module[run->new_module_count++] = module;
    }
    return true;
}

static void make_jobs(struct run *run)
{
    for (size_t i = 0; i < run->request_count; i++) {
        struct request *request = &run->request[i];
        request->unit = hw_module_find_unit(run->symbolizer->module[request->module], request->address);
    }
    qsort(run->request, run->request_count, sizeof *run->request, compare_requests);
    for (size_t i = 0; i < run->request_count; i++) {
        const struct request *request = &run->request[i];
        if (i == 0 || request[-1].module != request->module || request[-1].unit != request->unit)
            run->job[run->job_count++] = (struct job){.first = i};
        run->job[run->job_count - 1].count++;
    }
}

static bool make_workers(struct run *run, struct worker *worker, unsigned threads)
{
    for (unsigned i = 0; i < threads; i++) {
        worker[i] = (struct worker){.run = run, .leader = i == 0};
        worker[i].file = calloc(run->symbolizer->module_count + 1, sizeof *worker[i].file);
        if (!worker[i].file)
            return false;
    }
    return true;
}

static void end_workers(struct run *run, struct worker *worker, unsigned threads)
{
    struct hw_symbolizer *symbolizer = run->symbolizer;
    for (unsigned i = 0; i < threads; i++) {
        for (size_t j = 0; worker[i].file && j < symbolizer->module_count; j++)
            hw_debug_file_close(&worker[i].file[j]);
        free(worker[i].file);
        free(worker[i].address);
        while (worker[i].frames) {
            struct frame_chunk *chunk = worker[i].frames;
            worker[i].frames = chunk->next;
            chunk->next = symbolizer->frames;
            symbolizer->frames = chunk;
        }
    }
}

static bool do_run(struct run *run, struct worker *worker, unsigned threads)
{
    if (!collect_requests(run) || !make_workers(run, worker, threads))
        return false;
    if (!do_pass(run, worker, threads, index_module, run->new_module_count))
        return false;
    make_jobs(run);
    if (!do_pass(run, worker, threads, resolve_job, run->job_count))
        return false;
    run->symbolizer->resolved_count = run->symbolizer->ticket_count;
    if (run->symbolizer->progress && run->request_count)
        run->symbolizer->progress(run->symbolizer->closure, run->request_count, run->request_count);
    return true;
}

/* libdwfl asks debuginfod whenever the variable is set and has no other switch. Returns the value to restore, or NULL.
 */
static char *silence_debuginfod(const struct hw_symbolizer *symbolizer)
{
    const char *urls = symbolizer->no_debuginfod ? getenv("DEBUGINFOD_URLS") : NULL;
    char *saved = urls ? strdup(urls) : NULL;
    if (saved)
        unsetenv("DEBUGINFOD_URLS");
    return saved;
}

static void restore_debuginfod(char *urls)
{
    if (urls)
        setenv("DEBUGINFOD_URLS", urls, 1);
    free(urls);
}

bool hw_symbolizer_run(struct hw_symbolizer *symbolizer, struct hw_error *error)
{
    struct run run = {.symbolizer = symbolizer};
    struct worker worker[MOST_THREADS] = {0};
    char *urls = silence_debuginfod(symbolizer);
    bool ok = do_run(&run, worker, symbolizer->threads);
    end_workers(&run, worker, symbolizer->threads);
    restore_debuginfod(urls);
    free(run.request);
    free(run.job);
    free(run.new_module);
    if (!ok)
        hw_error_set(error, "cannot resolve symbols: out of memory");
    return ok;
}

/* ---- data and types ---- */

bool hw_symbolizer_data(struct hw_symbolizer *symbolizer, int module, struct hw_data *data, struct hw_error *error)
{
    *data = (struct hw_data){0};
    if (module < 0 || (size_t)module >= symbolizer->module_count)
        return true;
    struct hw_module *from = symbolizer->module[module];
    struct hw_debug_file file;
    char problem[512];
    char *urls = silence_debuginfod(symbolizer);
    bool done = true;
    if (hw_debug_file_open(&file, &symbolizer->paths, from->path, from->build_id, from->build_id_size, problem,
                           sizeof problem)) {
        done = hw_data_read(data, &file, symbolizer->names);
        hw_debug_file_close(&file);
    }
    hw_module_note_problem(from, problem);
    restore_debuginfod(urls);
    if (done)
        return true;
    hw_data_free(data);
    hw_error_set(error, "cannot read the symbols of data: out of memory");
    return false;
}

bool hw_symbolizer_fields(struct hw_symbolizer *symbolizer, int module, struct hw_field_query *query, size_t count,
                          struct hw_error *error)
{
    if (module < 0 || (size_t)module >= symbolizer->module_count || !count)
        return true;
    const struct hw_module *from = symbolizer->module[module];
    struct hw_debug_file file;
    char problem[512];
    char *urls = silence_debuginfod(symbolizer);
    bool done = true;
    if (hw_debug_file_open(&file, &symbolizer->paths, from->path, from->build_id, from->build_id_size, problem,
                           sizeof problem)) {
        done = hw_fields_find(&file, symbolizer->names, query, count);
        hw_debug_file_close(&file);
    }
    restore_debuginfod(urls);
    if (!done)
        hw_error_set(error, "cannot read the fields of variables: out of memory");
    return done;
}

bool hw_symbolizer_read_marks(struct hw_symbolizer *symbolizer, int module, struct hw_error *error)
{
    if (module < 0 || (size_t)module >= symbolizer->module_count)
        return true;
    struct hw_module *from = symbolizer->module[module];
    Elf *elf = NULL;
    int fd = hw_debug_file_plain(&symbolizer->paths, from->path, from->build_id, from->build_id_size, &elf);
    if (fd < 0)
        return true;
    const bool done = hw_marks_read(&symbolizer->types, &from->counting, elf, symbolizer->names);
    symbolizer->types_sorted = false;
    elf_end(elf);
    close(fd);
    if (!done)
        hw_error_set(error, "cannot read modules: out of memory");
    return done;
}

enum hw_counting hw_symbolizer_counting(const struct hw_symbolizer *symbolizer, int module)
{
    return module < 0 || (size_t)module >= symbolizer->module_count ? HW_COUNTING_UNKNOWN
                                                                    : symbolizer->module[module]->counting;
}

const char *hw_symbolizer_type(struct hw_symbolizer *symbolizer, uint64_t id)
{
    if (!symbolizer->types_sorted)
        hw_types_sort(&symbolizer->types);
    symbolizer->types_sorted = true;
    return hw_types_find(&symbolizer->types, id);
}

uint64_t hw_symbolizer_add_type(struct hw_symbolizer *symbolizer, const char *name)
{
    const uint64_t id = hw_type_id(name, strlen(name));
    name = hw_symbolizer_type(symbolizer, id) ? name : hw_names_intern(symbolizer->names, name);
    if (hw_symbolizer_type(symbolizer, id))
        return id;
    struct hw_types *types = &symbolizer->types;
    if (!name || !HW_GROW(types->type, types->capacity, types->count + 1))
        return 0;
    types->type[types->count++] = (struct hw_type){id, name};
    symbolizer->types_sorted = false;
    return id;
}

/* ---- for call_types.c ---- */

struct hw_module *hw_symbolizer_module(struct hw_symbolizer *symbolizer, int module)
{
    return module < 0 || (size_t)module >= symbolizer->module_count ? NULL : symbolizer->module[module];
}

struct hw_names *hw_symbolizer_names(struct hw_symbolizer *symbolizer)
{
    return symbolizer->names;
}

bool hw_symbolizer_open(struct hw_symbolizer *symbolizer, int module, struct hw_debug_file *file)
{
    const struct hw_module *from = symbolizer->module[module];
    char problem[512];
    char *urls = silence_debuginfod(symbolizer);
    const bool done = hw_debug_file_open(file, &symbolizer->paths, from->path, from->build_id, from->build_id_size,
                                         problem, sizeof problem);
    restore_debuginfod(urls);
    return done;
}

/* ---- answers ---- */

struct hw_frames hw_symbolizer_frames(const struct hw_symbolizer *symbolizer, long ticket)
{
    if (ticket < 0 || (size_t)ticket >= symbolizer->ticket_count || symbolizer->ticket[ticket].frame_count == 0)
        return (struct hw_frames){.frame = &unknown_frame, .count = 1};
    const struct ticket *answer = &symbolizer->ticket[ticket];
    return (struct hw_frames){.frame = answer->frame, .count = answer->frame_count};
}

const char *hw_symbolizer_module_problem(const struct hw_symbolizer *symbolizer, int module)
{
    if (module < 0 || (size_t)module >= symbolizer->module_count)
        return NULL;
    return symbolizer->module[module]->problem;
}

bool hw_symbolizer_module_has_debug_info(const struct hw_symbolizer *symbolizer, int module)
{
    return module >= 0 && (size_t)module < symbolizer->module_count && symbolizer->module[module]->has_debug_info;
}

bool hw_symbolizer_module_usable(const struct hw_symbolizer *symbolizer, int module)
{
    return module >= 0 && (size_t)module < symbolizer->module_count && symbolizer->module[module]->usable;
}

const char *hw_symbolizer_intern(struct hw_symbolizer *symbolizer, const char *text)
{
    return hw_names_intern(symbolizer->names, text);
}
