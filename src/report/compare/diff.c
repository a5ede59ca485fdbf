/* diff.c - see diff.h. */
#include "report/compare/diff.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "report/text/human.h"
#include "report/view/frame_roles.h"
#include "report/view/merged.h"
#include "report/words/selection.h"
#include "base/index.h"

/* ---- names ---- */

/* Whether TEXT (SIZE bytes) is a word that compilers put behind a dot. */
static bool is_clone_word(const char *text, size_t size)
{
    static const char *const words[] = {"isra",       "part", "cold", "constprop", "lto_priv",
                                        "localalias", "llvm", "str",  "warm",      "unlikely"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == size && !memcmp(words[i], text, size))
            return true;
    return false;
}

static bool is_number(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (!isdigit((unsigned char)text[i]))
            return false;
    return size > 0;
}

/* How much of NAME (SIZE bytes) is left without ".isra.0" and its like at the end. */
static size_t without_clone(const char *name, size_t size)
{
    size_t kept = size, end = size;
    while (end) {
        size_t dot = end;
        while (dot && name[dot - 1] != '.')
            dot--;
        if (dot < 2)
            return kept;
        if (is_clone_word(name + dot, end - dot))
            kept = dot - 1;
        else if (!is_number(name + dot, end - dot))
            return kept;
        end = dot - 1;
    }
    return kept;
}

/* "::h0123456789abcdef" at the end, as Rust has it. */
static size_t without_hash(const char *name, size_t size)
{
    if (size < 20 || memcmp(name + size - 19, "::h", 3))
        return size;
    for (size_t i = size - 16; i < size; i++)
        if (!isxdigit((unsigned char)name[i]))
            return size;
    return size - 19;
}

void hw_diff_plain_name(struct hw_buffer *out, const char *name)
{
    const char *clone = strstr(name, " [clone ");
    size_t size = clone ? (size_t)(clone - name) : strlen(name);
    const char *version = memchr(name, '@', size);
    if (version && version > name && !memchr(name, '(', size))
        size = (size_t)(version - name);
    hw_buffer_bytes(out, name, without_hash(name, without_clone(name, size)));
}

/* ---- places ---- */

struct builder {
    struct hw_diff *diff;
    struct hw_intern files; /* of source files, and types behind them */
    struct hw_index paths;  /* (path, name) -> path */
    struct hw_buffer text;
};

/* A context as it is matched. */
struct item {
    uint32_t path;
    uint32_t files; /* number of the names of its files */
    uint32_t type;  /* of files and type */
    uint32_t context;
    uint8_t side;
};

/* "libfoo.so.1.2" is another "libfoo.so.1.3". */
static void module_name(struct hw_buffer *out, const char *name)
{
    const char *so = strstr(name, ".so");
    hw_buffer_bytes(out, name, so ? (size_t)(so - name) + 3 : strlen(name));
}

/* The number of the name of an entry of a location's chain. */
static uint32_t name_of(struct builder *builder, enum hw_diff_side side, const struct hw_view_location *location,
                        uint32_t index)
{
    const struct hw_view *view = builder->diff->view[side];
    const struct hw_view_module *module = location->module == HW_NONE ? NULL : &view->modules[location->module];
    const char *function = location->frames.frame[index].function;
    hw_buffer_clear(&builder->text);
    if (function) {
        hw_diff_plain_name(&builder->text, function);
    } else if (module && module->kind != HW_MODULE_GENERATED) {
        hw_buffer_add(&builder->text, "\001"); /* no name of a function */
        module_name(&builder->text, module->name);
        if (builder->diff->same_build[side][location->module])
            hw_buffer_add(&builder->text, "+0x%" PRIx64, location->address);
    } else {
        hw_buffer_add(&builder->text, "\001generated code");
    }
    struct hw_intern *names = &builder->diff->names;
    const uint32_t known = names->count, name = hw_intern(names, hw_buffer_text(&builder->text));
    if (names->count > known)
        builder->diff->name_kind[name] = (uint8_t)(module ? module->kind : HW_MODULE_GENERATED);
    return name;
}

/* The path that calling NAME from PATH leads to: back to where NAME is on it already, else one further. */
static uint32_t step(struct builder *builder, uint32_t path, uint32_t name)
{
    struct hw_diff *diff = builder->diff;
    for (uint32_t at = path; at; at = diff->paths[at].parent)
        if (diff->paths[at].name == name)
            return at;
    bool new;
    const uint32_t next =
        hw_index_intern(&builder->paths, (struct hw_key){path, name}, (uint32_t)diff->path_count, &new);
    if (new)
        diff->paths[diff->path_count++] = (struct hw_diff_path){path, name};
    return next;
}

/* By node of a view: its path, and the number of the names of its files, root first. By location: the names of its
 * frames. */
struct walked {
    uint32_t *path, *files;
    uint32_t **names;
    size_t locations;
};

static void free_walked(struct walked *walked)
{
    for (size_t i = 0; walked->names && i < walked->locations; i++)
        free(walked->names[i]);
    free(walked->names);
    free(walked->path);
    free(walked->files);
}

static bool walk(struct builder *builder, enum hw_diff_side side, struct walked *walked)
{
    const struct hw_view *view = builder->diff->view[side];
    struct hw_buffer files = {0};
    *walked =
        (struct walked){calloc(view->node_count + 1, sizeof(uint32_t)), calloc(view->node_count + 1, sizeof(uint32_t)),
                        calloc(view->location_count + 1, sizeof(uint32_t *)), view->location_count};
    uint32_t **names = walked->names, *file = calloc(view->location_count + 1, sizeof *file);
    bool fine = walked->path && walked->files && names && file;
    for (size_t i = 0; fine && i < view->location_count; i++) {
        const struct hw_view_location *location = &view->locations[i];
        fine = (names[i] = malloc(location->frames.count * sizeof **names)) != NULL;
        hw_buffer_clear(&files);
        for (uint32_t k = location->frames.count; fine && k-- > 0;) {
            const char *path = location->frames.frame[k].file;
            names[i][k] = name_of(builder, side, location, k);
            hw_buffer_add(&files, "%s\n", path ? basename(path) : "");
        }
        file[i] = hw_intern(&builder->files, hw_buffer_text(&files));
    }
    for (size_t i = 1; fine && i < view->node_count; i++) {
        const struct hw_view_node *node = &view->nodes[i];
        uint32_t path = walked->path[node->parent];
        for (uint32_t k = view->locations[node->location].frames.count; k-- > 0;)
            path = step(builder, path, names[node->location][k]);
        walked->path[i] = path;
        walked->files[i] = file[node->location];
    }
    free(file);
    fine = fine && !files.failed;
    hw_buffer_free(&files);
    return fine;
}

/* The files along a path: where it has been before, in it the files are those of the first time. A stack is then
 * described by the files of the leaf and of its callers, folded into one number. */
static uint32_t files_of(struct builder *builder, const struct hw_view *view, const struct walked *walked,
                         uint32_t leaf)
{
    uint64_t hash = 14695981039346656037u;
    uint32_t last = HW_NONE;
    for (uint32_t node = leaf; node; node = view->nodes[node].parent) {
        if (walked->files[node] != last) /* how often one file follows upon itself depends on inlining and recursion */
            hash = (hash ^ walked->files[node]) * 1099511628211u;
        last = walked->files[node];
    }
    char text[24];
    snprintf(text, sizeof text, "\001%" PRIx64, hash);
    return hw_intern(&builder->files, text);
}

/* The path of a stack without its folded wrappers: how a program wraps its allocator is no difference of places. */
static uint32_t path_of(struct builder *builder, const struct hw_view *view, const struct walked *walked, uint32_t leaf,
                        struct hw_view_stack *stack, uint32_t *first)
{
    *first = leaf;
    if (!hw_view_stack(view, leaf, stack))
        return HW_NONE;
    size_t wrappers = hw_stack_wrappers(stack);
    for (; wrappers; *first = view->nodes[*first].parent) {
        const struct hw_view_node *node = &view->nodes[*first];
        const uint32_t frames = view->locations[node->location].frames.count;
        if (wrappers < frames) {
            uint32_t path = walked->path[node->parent];
            for (uint32_t k = frames; k-- > wrappers;)
                path = step(builder, path, walked->names[node->location][k]);
            return path;
        }
        wrappers -= frames;
    }
    return walked->path[*first];
}

static bool make_items(struct builder *builder, enum hw_diff_side side, struct item *items, size_t *count)
{
    const struct hw_view *view = builder->diff->view[side];
    struct walked walked;
    struct hw_view_stack stack = {0};
    bool fine = walk(builder, side, &walked);
    for (size_t i = 0; fine && i < view->context_count; i++) {
        const struct hw_profile_context *sum = &view->contexts[i].sum;
        /* What only the code says may be known of one of the two builds. */
        const char *type = sum->type_evidence ? NULL : hw_view_type(view, sum);
        struct item *item = &items[(*count)++];
        uint32_t first;
        const uint32_t path = path_of(builder, view, &walked, sum->leaf, &stack, &first);
        fine = path != HW_NONE;
        *item = (struct item){.path = path,
                              .files = files_of(builder, view, &walked, first),
                              .context = (uint32_t)i,
                              .side = (uint8_t)side};
        builder->diff->path_of[side][i] = item->path;
        hw_buffer_clear(&builder->text);
        hw_buffer_add(&builder->text, "\002%" PRIu32 " %d %s", item->files, sum->pool, type ? type : "");
        item->type = hw_intern(&builder->files, hw_buffer_text(&builder->text));
    }
    free_walked(&walked);
    hw_view_stack_free(&stack);
    return fine;
}

/* ---- matching ---- */

static int compare_items(const void *left, const void *right)
{
    const struct item *a = left, *b = right;
    return HW_ORDER(a->path, b->path) ?: HW_ORDER(a->files, b->files) ?: HW_ORDER(a->type, b->type) ?:
           HW_ORDER(a->side, b->side) ?: HW_ORDER(a->context, b->context);
}

#define TAKEN 2 /* a side that is none: the item is in a place */

static void add_item(struct hw_diff *diff, struct hw_diff_place *place, struct item *item)
{
    const struct hw_view *view = diff->view[item->side];
    const struct hw_view_context *context = &view->contexts[item->context];
    uint32_t *shown = &place->context[item->side];
    for (enum hw_measure_id id = 0; id < HW_MEASURES; id++) {
        uint64_t *value = &place->value[item->side][id];
        *value = hw_add_saturating(*value, hw_measure_value(view, id, context));
    }
    if (*shown == HW_NONE || view->contexts[*shown].sum.bytes < context->sum.bytes)
        *shown = item->context;
    place->contexts[item->side]++;
    diff->place_of[item->side][item->context] = (uint32_t)diff->count;
    item->side = TAKEN;
}

/* Makes a place of the items that are left among COUNT. */
static void make_place(struct hw_diff *diff, struct item *items, size_t count)
{
    struct hw_diff_place *place = &diff->places[diff->count];
    *place = (struct hw_diff_place){.context = {HW_NONE, HW_NONE}};
    for (size_t i = 0; i < count; i++)
        if (items[i].side != TAKEN)
            add_item(diff, place, &items[i]);
    diff->count += place->contexts[HW_OLD] || place->contexts[HW_NEW];
}

static bool has_both(const struct item *items, size_t count)
{
    bool has[TAKEN + 1] = {false};
    for (size_t i = 0; i < count; i++)
        has[items[i].side] = true;
    return has[HW_OLD] && has[HW_NEW];
}

/* The part of an item that a level of matching compares. */
static uint64_t key_of(const struct item *item, int level)
{
    return level == 0 ? item->type : level == 1 ? item->files : 0;
}

/* Items of one path, which lie together: sorted by files, then type. */
static void match_path(struct hw_diff *diff, struct item *items, size_t count)
{
    for (int level = 0; level < 3; level++)
        for (size_t first = 0, end; first < count; first = end) {
            for (end = first + 1; end < count && key_of(&items[end], level) == key_of(&items[first], level);)
                end++;
            if (has_both(items + first, end - first))
                make_place(diff, items + first, end - first);
        }
    /* What only one side has: apart by files and type. */
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && items[end].type == items[first].type;)
            end++;
        make_place(diff, items + first, end - first);
    }
}

static void match(struct hw_diff *diff, struct item *items, size_t count)
{
    if (count)
        qsort(items, count, sizeof *items, compare_items);
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && items[end].path == items[first].path;)
            end++;
        match_path(diff, items + first, end - first);
    }
}

/* ---- the whole ---- */

static bool same_build(const struct hw_view_module *module, const struct hw_view *other)
{
    for (size_t i = 0; module->build_id_size && i < other->module_count; i++)
        if (other->modules[i].build_id_size == module->build_id_size &&
            !memcmp(other->modules[i].build_id, module->build_id, module->build_id_size))
            return true;
    return false;
}

static bool prepare(struct builder *builder)
{
    struct hw_diff *diff = builder->diff;
    size_t frames = 0, names = 0;
    for (int side = 0; side < HW_SIDES; side++) {
        const struct hw_view *view = diff->view[side];
        for (size_t i = 1; i < view->node_count; i++)
            frames += view->locations[view->nodes[i].location].frames.count;
        for (size_t i = 0; i < view->location_count; i++)
            names += view->locations[i].frames.count;
        diff->path_of[side] = calloc(view->context_count + 1, sizeof *diff->path_of[side]);
        diff->place_of[side] = calloc(view->context_count + 1, sizeof *diff->place_of[side]);
        diff->same_build[side] = calloc(view->module_count + 1, sizeof(bool));
        if (!diff->path_of[side] || !diff->place_of[side] || !diff->same_build[side])
            return false;
        for (size_t i = 0; i < view->module_count; i++)
            diff->same_build[side][i] = same_build(&view->modules[i], diff->view[!side]);
    }
    diff->paths = malloc((frames + 1) * sizeof *diff->paths);
    diff->name_kind = calloc(names + 1, sizeof *diff->name_kind);
    if (!diff->paths || !diff->name_kind)
        return false;
    diff->paths[0] = (struct hw_diff_path){0, 0};
    diff->path_count = 1;
    return hw_index_make(&builder->paths, frames + 1);
}

static bool same_run(const struct hw_profile *a, const struct hw_profile *b)
{
    return a->process.pid == b->process.pid && a->process.start_realtime_ns == b->process.start_realtime_ns &&
           a->process.start_realtime_ns && !hw_is_merged(a) && !hw_is_merged(b);
}

static void sum_up(struct hw_diff *diff)
{
    for (int side = 0; side < HW_SIDES; side++)
        for (enum hw_measure_id id = 0; id < HW_MEASURES; id++)
            diff->total[side][id] = hw_measure_whole(diff->view[side], id);
}

struct hw_diff *hw_diff_new(struct hw_view *old, struct hw_view *new, struct hw_error *error)
{
    struct hw_diff *diff = calloc(1, sizeof *diff);
    const size_t most = old->context_count + new->context_count;
    struct item *items = malloc((most + 1) * sizeof *items);
    struct builder builder = {.diff = diff};
    size_t count = 0;
    bool fine = false;
    if (diff && items && (diff->places = malloc((most + 1) * sizeof *diff->places))) {
        diff->view[HW_OLD] = old;
        diff->view[HW_NEW] = new;
        diff->same_run = same_run(old->profile, new->profile);
        fine = hw_view_share_wrappers(old, new) && prepare(&builder) && make_items(&builder, HW_OLD, items, &count) &&
               make_items(&builder, HW_NEW, items, &count) && !diff->names.failed && !builder.files.failed &&
               !builder.text.failed;
    }
    if (fine) {
        match(diff, items, count);
        sum_up(diff);
        for (int side = 0; side < HW_SIDES; side++)
            fine &= hw_kept_places_make(&diff->kept[side], diff->view[side]->keeps, diff->place_of[side]);
    }
    hw_intern_free(&builder.files);
    hw_index_free(&builder.paths);
    hw_buffer_free(&builder.text);
    free(items);
    if (fine)
        return diff;
    hw_diff_free(diff);
    hw_error_set(error, "not enough memory to compare the profiles");
    return NULL;
}

void hw_diff_free(struct hw_diff *diff)
{
    if (!diff)
        return;
    free(diff->places);
    free(diff->paths);
    free(diff->name_kind);
    hw_intern_free(&diff->names);
    for (int side = 0; side < HW_SIDES; side++) {
        free(diff->path_of[side]);
        free(diff->place_of[side]);
        free(diff->same_build[side]);
        hw_kept_places_free(&diff->kept[side]);
    }
    free(diff);
}

const char *hw_diff_unknown(const struct hw_diff *diff, enum hw_measure_id id)
{
    const char *why = hw_measure_unknown(diff->view[HW_OLD], id);
    return why ? why : hw_measure_unknown(diff->view[HW_NEW], id);
}

enum hw_measure_id hw_diff_usual(const struct hw_diff *diff)
{
    return hw_diff_unknown(diff, HW_MEASURE_PEAK) ? HW_MEASURE_BYTES : HW_MEASURE_PEAK;
}

bool hw_diff_is_nameless(const struct hw_diff *diff, const struct hw_diff_place *place)
{
    const enum hw_diff_side side = place->context[HW_NEW] != HW_NONE ? HW_NEW : HW_OLD;
    if (place->contexts[HW_OLD] <= 1 && place->contexts[HW_NEW] <= 1)
        return false;
    for (uint32_t at = diff->path_of[side][place->context[side]]; at; at = diff->paths[at].parent) {
        const char *name = hw_interned(&diff->names, diff->paths[at].name);
        if (*name == '\001' && !strchr(name, '+') && diff->name_kind[diff->paths[at].name] == HW_MODULE_PROGRAM)
            return true;
    }
    return false;
}

/* ---- order ---- */

struct ranked {
    uint64_t change;
    uint32_t index;
};

static int compare_ranked(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    return HW_ORDER(b->change, a->change) ?: HW_ORDER(a->index, b->index);
}

uint32_t *hw_diff_sorted(const struct hw_diff *diff, enum hw_measure_id id, size_t *count)
{
    struct ranked *ranked = malloc((diff->count + 1) * sizeof *ranked);
    uint32_t *order = malloc((diff->count + 1) * sizeof *order);
    *count = 0;
    for (size_t i = 0; ranked && order && i < diff->count; i++) {
        const uint64_t old = diff->places[i].value[HW_OLD][id], new = diff->places[i].value[HW_NEW][id];
        if (old != new)
            ranked[(*count)++] = (struct ranked){new > old ? new - old : old - new, (uint32_t)i};
    }
    if (ranked && order) {
        qsort(ranked, *count, sizeof *ranked, compare_ranked);
        for (size_t i = 0; i < *count; i++)
            order[i] = ranked[i].index;
        free(ranked);
        return order;
    }
    free(ranked);
    free(order);
    return NULL;
}

/* ---- what makes them hard to compare ---- */

static const char *mode_name(const struct hw_view *view)
{
    const char *name = hw_mode_name(view->profile->process.mode);
    return name ? name : "unknown";
}

static uint64_t runs_of(const struct hw_view *view)
{
    return hw_is_merged(view->profile) ? view->profile->process.runs : 1;
}

static void sampling_notes(const struct hw_view *old, const struct hw_view *new, struct hw_buffer *out)
{
    static const char *const names[] = {"The old profile", "The new profile"};
    const struct hw_view *const views[] = {old, new};
    if (old->profile->observed && new->profile->observed) {
        hw_buffer_add(out, "Blocks and bytes by place are estimates in allocator mode: small changes of places may be "
                           "chance; numbers of operations, live bytes and the peak are exact.\n");
        return;
    }
    if (hw_view_sampled(old) && hw_view_sampled(new)) {
        hw_buffer_add(out, "Both profiles were sampled: small changes may be chance.\n");
        if (old->profile->process.sample_bytes != new->profile->process.sample_bytes)
            hw_buffer_add(out, "They were sampled differently: one allocation for every %s and for every %s.\n",
                          HW_BYTES(old->profile->process.sample_bytes), HW_BYTES(new->profile->process.sample_bytes));
        return;
    }
    for (int i = 0; i < 2; i++)
        if (hw_view_sampled(views[i]))
            hw_buffer_add(out, "%s was sampled, the other one is exact: small changes may be chance%s.\n", names[i],
                          views[i]->profile->process.sample_bytes ? ", and its reallocations count as allocations"
                                                                  : "");
}

/* Programs and libraries of somebody's own whose names one profile lacks: then no place of theirs is found again. */
static void unnamed_notes(const struct hw_diff *diff, struct hw_buffer *out)
{
    static const char *const which[] = {"old", "new"};
    for (int i = 0; i < 2; i++) {
        const struct hw_view *view = diff->view[i];
        const struct hw_view_module *first = NULL;
        size_t count = 0;
        for (size_t k = 0; k < view->module_count; k++) {
            const struct hw_view_module *module = &view->modules[k];
            if (!module->used || !module->examined || module->usable || module->kind != HW_MODULE_PROGRAM ||
                !module->problem)
                continue;
            first = first ? first : module;
            count++;
        }
        if (!first)
            continue;
        hw_buffer_add(out, "In the %s profile the names are missing of ", which[i]);
        hw_buffer_clean(out, first->problem, HW_CLEAN_UTF8);
        if (count > 1)
            hw_buffer_add(out, ", and of %s", HW_OF(count - 1, "more file"));
        hw_buffer_add(out, ". Their places appear as gone or new (record --symbolize keeps names).\n");
    }
}

/* Places that are sums, because the names that would distinguish them are missing. */
static void nameless_notes(const struct hw_diff *diff, struct hw_buffer *out)
{
    size_t count = 0;
    for (size_t i = 0; i < diff->count; i++)
        count += hw_diff_is_nameless(diff, &diff->places[i]);
    if (count)
        hw_buffer_add(
            out,
            "%s %s many stacks together: functions on them have no names, and addresses cannot be compared "
            "between different programs or builds. Names come from a build that is not stripped, from packages "
            "with debug symbols, or from DEBUGINFOD_URLS.\n",
            HW_OF(count, "place"), count == 1 ? "takes" : "take");
}

/* What is not shown of either. */
static void selection_notes(const struct hw_diff *diff, struct hw_buffer *out)
{
    static const char *const names[] = {"The old profile", "The new profile", "Both profiles"};
    struct hw_buffer sentences[HW_SIDES] = {{0}};
    for (int side = 0; side < HW_SIDES; side++)
        hw_selection(diff->view[side], &sentences[side]);
    const bool same = !strcmp(hw_buffer_text(&sentences[HW_OLD]), hw_buffer_text(&sentences[HW_NEW]));
    for (int side = 0; side < HW_SIDES; side++) {
        for (const char *at = same && side ? "" : hw_buffer_text(&sentences[side]); *at;) {
            const size_t size = strcspn(at, "\n") + 1;
            hw_buffer_add(out, "%s: ", names[same ? HW_SIDES : side]);
            hw_buffer_bytes(out, at, size);
            at += size;
        }
        out->failed |= sentences[side].failed;
        hw_buffer_free(&sentences[side]);
    }
}

void hw_diff_notes(const struct hw_diff *diff, struct hw_buffer *out)
{
    const struct hw_view *old = diff->view[HW_OLD], *new = diff->view[HW_NEW];
    const struct hw_profile *a = old->profile, *b = new->profile;
    selection_notes(diff, out);
    sampling_notes(old, new, out);
    if (a->process.mode != b->process.mode && !a->llvm && !b->llvm)
        hw_buffer_add(out, "They were recorded in different modes (%s, %s).\n", mode_name(old), mode_name(new));
    if (runs_of(old) != runs_of(new))
        hw_buffer_add(out, "They add up different numbers of runs (%s, %s): sums grow with the runs.\n",
                      HW_COUNT(runs_of(old)), HW_COUNT(runs_of(new)));
    if (diff->same_run && a->duration_ns != b->duration_ns)
        hw_buffer_add(out, "They are two moments of one run: heapwise report --growth shows what grew in between, how "
                           "fast, and who keeps it.\n");
    if (!old->keeps != !new->keeps)
        hw_buffer_add(out, "Only the %s profile says who keeps blocks (record --keeps).\n", new->keeps ? "new" : "old");
    if (a->running || b->running)
        hw_buffer_add(out, "A process was still running: its profile goes up to the moment when it was read.\n");
    const char *first = basename(a->executable ? a->executable : ""),
               *second = basename(b->executable ? b->executable : "");
    if (*first && *second && strcmp(first, second)) {
        hw_buffer_add(out, "They are of different programs (");
        hw_buffer_clean(out, first, HW_CLEAN_UTF8);
        hw_buffer_add(out, ", ");
        hw_buffer_clean(out, second, HW_CLEAN_UTF8);
        hw_buffer_add(out, ").\n");
    }
    const size_t before = out->used;
    unnamed_notes(diff, out);
    if (out->used == before) /* else it has been said why */
        nameless_notes(diff, out);
    if (!a->llvm != !b->llvm)
        hw_buffer_add(out, "The %s profile is one of LLVM's, in which names of functions can be others.\n",
                      a->llvm ? "old" : "new");
    if (a->allocator && b->allocator && *a->allocator && *b->allocator && strcmp(a->allocator, b->allocator)) {
        hw_buffer_add(out, "They used different allocators (");
        hw_buffer_clean(out, a->allocator, HW_CLEAN_UTF8);
        hw_buffer_add(out, ", ");
        hw_buffer_clean(out, b->allocator, HW_CLEAN_UTF8);
        hw_buffer_add(out, ").\n");
    }
}

/* ---- limits ---- */

size_t hw_diff_check(const struct hw_diff *diff, struct hw_diff_limit *limits, size_t count)
{
    size_t broken = 0;
    for (size_t i = 0; i < count; i++) {
        const double old = (double)diff->total[HW_OLD][limits[i].id], new = (double)diff->total[HW_NEW][limits[i].id];
        const double most = limits[i].percent ? old * limits[i].amount / 100 : limits[i].amount;
        limits[i].broken = new - old > most;
        broken += limits[i].broken;
    }
    return broken;
}
