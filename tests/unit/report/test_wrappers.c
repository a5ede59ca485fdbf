/* test_wrappers.c - which frames are folded as allocation wrappers, and what rules take out of a view. */
#include "report_check.h"

#include "support/recording.h"

#include "report/compare/diff.h"
#include "report/text/stack_fold.h"
#include "report/view/frame_roles.h"
#include "report/view/rules.h"

/* ---- profiles of stacks by name ---- */

/* The code at FIRST_ADDRESS + 16 N belongs to function N. A name "inner/outer" is two frames, the inner one inlined.
 * What begins with '?' has no name in the program. */
#define FIRST_ADDRESS 0x1000
#define MOST_NAMES    64

static char names[MOST_NAMES][64];
static size_t name_count;

static uint64_t address_of(const char *name, size_t size)
{
    size_t i = 0;
    while (i < name_count && (strlen(names[i]) != size || strncmp(names[i], name, size) != 0))
        i++;
    if (i == name_count) {
        assert_true(i < MOST_NAMES && size < sizeof *names);
        memcpy(names[name_count++], name, size);
    }
    return FIRST_ADDRESS + 16 * i;
}

static struct hw_frame frames[MOST_NAMES][2];
static char functions[2 * MOST_NAMES][64];

/* One pointer for one name, as of the symbolizer. */
static const char *interned(const char *name, size_t size)
{
    size_t i = 0;
    while (*functions[i] && (strlen(functions[i]) != size || strncmp(functions[i], name, size) != 0))
        i++;
    memcpy(functions[i], name, size);
    return functions[i];
}

static struct hw_frames resolve(void *closure, const char *module, uint64_t address)
{
    const size_t i = (address - FIRST_ADDRESS) / 16;
    if (i >= name_count)
        return (struct hw_frames){NULL, 0};
    const char *slash = strchr(names[i], '/');
    const size_t size = slash ? (size_t)(slash - names[i]) : strlen(names[i]);
    frames[i][0] =
        (struct hw_frame){.function = *names[i] == '?' ? NULL : interned(names[i], size), .inlined = slash != NULL};
    if (slash)
        frames[i][1] = (struct hw_frame){.function = interned(slash + 1, strlen(slash + 1))};
    return (struct hw_frames){frames[i], slash ? 2 : 1};
}

static struct report_sample *begin(void)
{
    struct report_sample *sample = calloc(1, sizeof *sample);
    assert_non_null(sample);
    sample->string_size = 1;
    sample->node_count = sample->context_count = 1;
    sample->nodes[0].map = HW_NONE;
    sample->thread = (struct hw_thread_entry){.serial = 1, .tid = 1};
    make_run(sample);
    make_maps(sample);
    sample->process.peak_bytes = 0;
    return sample;
}

/* Allocates COUNT blocks of SIZE bytes, all live at the peak, by the functions of STACK, parted by blanks, root first.
 */
static void add(struct report_sample *sample, const char *stack, uint64_t count, uint64_t size)
{
    uint32_t leaf = 0;
    for (const char *at = stack; *at;) {
        const size_t length = strcspn(at, " ");
        leaf = call(sample, leaf, MAP_PARSER, address_of(at, length));
        at += length + (at[length] != '\0');
    }
    at_peak(sample, allocate(sample, leaf, count, size, 0), count);
}

static struct hw_rules rules;

static void rule(enum hw_rule kind, const char *pattern)
{
    struct hw_error error = {""};
    if (!hw_rules_add(&rules, kind, pattern, &error))
        fail_msg("%s", error.message);
}

static struct reported open_with(struct report_sample *sample, struct hw_view_options options)
{
    struct image image = report_image(sample, true);
    struct memory_file file = memory_file(image.bytes, image.size);
    struct hw_error error = {""};
    struct reported reported = {.profile = hw_profile_read(file.path, &error)};
    close(file.fd);
    image_free(&image);
    assert_non_null(reported.profile);
    options.resolve = resolve;
    options.rules = rules.count ? &rules : NULL;
    reported.view = hw_view_new(reported.profile, &options, &error);
    assert_non_null(reported.view);
    return reported;
}

static void close_all(struct reported *reported)
{
    close_sample(reported);
    hw_rules_free(&rules);
    memset(names, 0, sizeof names);
    name_count = 0;
}

/* The stacks of all contexts in their order, root first: "main work|main"; a folded frame is in brackets. */
static void stacks_are(const struct hw_view *view, const char *expected)
{
    struct hw_buffer text = {0};
    struct hw_view_stack stack = {0};
    for (size_t i = 0; i < view->context_count; i++) {
        assert_true(hw_view_stack(view, view->contexts[i].sum.leaf, &stack));
        const size_t wrappers = hw_stack_wrappers(&stack);
        hw_buffer_add(&text, "%s", i ? "|" : "");
        for (size_t k = stack.count; k-- > 0;)
            hw_buffer_add(&text, k < wrappers ? "%s[%s]" : "%s%s", k + 1 < stack.count ? " " : "",
                          stack.frames[k].symbol->function ? stack.frames[k].symbol->function
                                                           : names[(stack.frames[k].address - FIRST_ADDRESS) / 16]);
    }
    assert_string_equal(hw_buffer_text(&text), expected);
    hw_buffer_free(&text);
    hw_view_stack_free(&stack);
}

/* ---- by name ---- */

static bool is_wrapper(const char *function)
{
    return hw_frame_role(&(struct hw_frame){.function = function}) & HW_FRAME_WRAPPER;
}

static void wrappers_are_known_by_name(void **state)
{
    static const char *const wrappers[] = {"zmalloc",
                                           "ztrymalloc_usable_internal",
                                           "zrealloc_usable",
                                           "xmalloc",
                                           "xstrdup",
                                           "g_malloc0",
                                           "g_slice_alloc",
                                           "operator new(unsigned long)",
                                           "operator new[](unsigned long, std::nothrow_t const&)",
                                           "clang::Decl::operator new(unsigned long, clang::ASTContext&)",
                                           "std::allocator_traits<std::allocator<int> >::allocate(int)",
                                           "std::__new_allocator<int>::allocate(unsigned long, void const*)",
                                           "std::_Vector_base<int, std::allocator<int> >::_M_allocate(unsigned long)",
                                           "__gnu_cxx::new_allocator<int>::allocate(unsigned long)",
                                           "__rust_alloc",
                                           "__rdl_alloc",
                                           "alloc::alloc::alloc",
                                           "<alloc::alloc::Global as core::alloc::Allocator>::allocate",
                                           "alloc::raw_vec::RawVec<T,A>::grow_one",
                                           "hashbrown::raw::RawTableInner::new_uninitialized",
                                           "PyMem_Malloc",
                                           "PyObject_Malloc",
                                           "_PyObject_GC_New",
                                           "PyDataMem_UserNEW",
                                           "luaM_malloc_",
                                           "llvm::allocate_buffer(unsigned long, unsigned long)",
                                           "void* llvm::safe_malloc(unsigned long)",
                                           "llvm::BumpPtrAllocatorImpl<llvm::MallocAllocator>::StartNewSlab()",
                                           "os::malloc(unsigned long, int)"};
    static const char *const others[] = {"main",
                                         "dictAddRaw",
                                         "_sdsnewlen",
                                         "_PyObject_Call",
                                         "PyObject_CallMethod",
                                         "mallocator_of_things",
                                         "parse(xmalloc)",
                                         "std::vector<int, std::allocator<int> >::push_back(int const&)",
                                         "alloc::vec::Vec<T>::push",
                                         "hashbrown::map::HashMap<K,V>::insert",
                                         "__libc_start_main",
                                         "llvm::parseIR(llvm::MemoryBufferRef)",
                                         "freezer"};
    for (size_t i = 0; i < sizeof wrappers / sizeof *wrappers; i++)
        if (!is_wrapper(wrappers[i]))
            fail_msg("%s should be a wrapper", wrappers[i]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (is_wrapper(others[i]))
            fail_msg("%s should be no wrapper", others[i]);
    assert_false(hw_frame_role(&(struct hw_frame){0}) & (HW_FRAME_WRAPPER | HW_FRAME_LIBRARY));
}

/* Only at the allocating end, and never the whole stack. */
static void only_the_allocating_end_is_folded(void **state)
{
    struct report_sample *sample = begin();
    add(sample, "main dictAddRaw zmalloc ztrymalloc_usable_internal", 1, 10);
    add(sample, "main xmalloc grow", 1, 10);
    add(sample, "xmalloc", 1, 10);
    add(sample, "main work zmalloc/inlined_caller", 1, 10);
    struct reported reported = open_with(sample, (struct hw_view_options){0});
    stacks_are(reported.view, "main dictAddRaw [zmalloc] [ztrymalloc_usable_internal]|main xmalloc grow|xmalloc|"
                              "main work inlined_caller [zmalloc]");
    struct hw_view_stack stack = {0};
    assert_true(hw_view_stack(reported.view, reported.view->contexts[0].sum.leaf, &stack));
    assert_int_equal(hw_stack_headline(&stack), 2);
    stack.unfolded = true;
    assert_int_equal(hw_stack_headline(&stack), 0);
    assert_int_equal(hw_stack_wrappers(&stack), 0);
    hw_view_stack_free(&stack);
    close_all(&reported);
}

/* In a stripped program the static functions below an exported wrapper have no names. */
static void nameless_code_below_a_wrapper_is_folded(void **state)
{
    struct report_sample *sample = begin();
    add(sample, "main encode PyMem_Realloc ?raw", 1, 10);
    add(sample, "main decode PyMem_Realloc ?arena ?new", 1, 10);
    add(sample, "main decode PyMem_Realloc ?arena xmalloc ?lowest", 1, 10);
    add(sample, "main encode PyMem_Realloc ?jumped_to", 1, 10);
    add(sample, "main decode PyMem_Realloc ?jumped_to", 1, 10);
    add(sample, "main ?resize ?jumped_to", 1, 10);
    struct reported reported = open_with(sample, (struct hw_view_options){0});
    stacks_are(reported.view, "main encode [PyMem_Realloc] [?raw]|main decode [PyMem_Realloc] [?arena] [?new]|"
                              "main decode [PyMem_Realloc] [?arena] [xmalloc] [?lowest]|"
                              "main encode [PyMem_Realloc] [?jumped_to]|main decode [PyMem_Realloc] [?jumped_to]|"
                              "main ?resize [?jumped_to]");
    assert_int_equal(reported.view->structural_count, 0);
    close_all(&reported);
    sample = begin();
    add(sample, "main encode PyMem_Realloc ?raw", 1, 10);
    reported = open_with(sample, (struct hw_view_options){.no_fold = true});
    stacks_are(reported.view, "main encode PyMem_Realloc ?raw");
    close_all(&reported);
}

/* What a wrapper calls back: code with a name, what that calls, and code that is called from elsewhere, too. */
static void callbacks_of_wrappers_are_not_folded(void **state)
{
    struct report_sample *sample = begin();
    add(sample, "main xmalloc on_failure", 1, 10);
    add(sample, "main xmalloc on_failure ?log", 1, 10);
    add(sample, "main xmalloc ?collect finalize", 1, 10);
    add(sample, "main xmalloc ?collect finalize ?list", 1, 10);
    add(sample, "main ?run ?parse", 1, 10);
    add(sample, "main ?run ?eval", 1, 10);
    add(sample, "main xmalloc ?eval", 1, 10);
    struct reported reported = open_with(sample, (struct hw_view_options){0});
    stacks_are(reported.view, "main xmalloc on_failure|main xmalloc on_failure ?log|main xmalloc ?collect finalize|"
                              "main xmalloc ?collect finalize ?list|main ?run ?parse|main ?run ?eval|"
                              "main xmalloc ?eval");
    close_all(&reported);
}

/* Exports have neither the frames nor traces of them. */
static void exports_leave_wrappers_out(void **state)
{
    for (int fold = 0; fold < 2; fold++) {
        struct report_sample *sample = begin();
        add(sample, "main a zmalloc ztrymalloc_usable", 1, 10);
        add(sample, "main a zmalloc/b", 1, 10);
        add(sample, "main zmalloc/b/c", 1, 10);
        struct reported reported = open_with(sample, (struct hw_view_options){.cut_wrappers = true, .no_fold = !fold});
        stacks_are(reported.view, fold ? "main a|main a b|main b/c"
                                       : "main a zmalloc ztrymalloc_usable|main a b zmalloc|"
                                         "main b/c zmalloc");
        close_all(&reported);
    }
}

/* ---- by structure ---- */

/* Contexts in which CALLERS functions call WRAPPER, for SIZES sizes of blocks. */
static void add_calls(struct report_sample *sample, const char *wrapper, int callers, int sizes)
{
    char stack[128];
    for (int i = 0; i < callers; i++) {
        snprintf(stack, sizeof stack, "main caller_%d %s", i, wrapper);
        add(sample, stack, 10, 16 + 8 * (uint64_t)(i % sizes));
    }
}

static void found_wrappers_are(struct report_sample *sample, const char *expected)
{
    struct reported reported = open_with(sample, (struct hw_view_options){0});
    struct hw_buffer text = {0};
    for (size_t i = 0; i < reported.view->structural_count; i++)
        hw_buffer_add(&text, "%s%s", i ? " " : "", reported.view->structural[i].symbol->function);
    assert_string_equal(hw_buffer_text(&text), expected);
    hw_buffer_free(&text);
    close_all(&reported);
}

static void wrappers_are_found_by_structure(void **state)
{
    struct report_sample *sample = begin();
    add_calls(sample, "get_memory", 10, 5);
    add(sample, "main other", 1, 10); /* 10 of 11 contexts: 90.9 % */
    found_wrappers_are(sample, "get_memory");
    sample = begin();
    add_calls(sample, "get_memory", 10, 5);
    struct reported reported = open_with(sample, (struct hw_view_options){0});
    struct hw_view_stack stack = {0};
    for (size_t i = 0; i < reported.view->context_count; i++) {
        assert_true(hw_view_stack(reported.view, reported.view->contexts[i].sum.leaf, &stack));
        assert_int_equal(hw_stack_headline(&stack), 1);
        assert_int_equal(hw_stack_wrappers(&stack), 1);
    }
    hw_view_stack_free(&stack);
    close_all(&reported);
    sample = begin(); /* no layer is looked for when nothing is folded */
    add_calls(sample, "get_memory", 10, 5);
    reported = open_with(sample, (struct hw_view_options){.no_fold = true});
    assert_int_equal(reported.view->structural_count, 0);
    close_all(&reported);
}

/* What stands above a known wrapper, or above one that was found. */
static void layers_of_wrappers_are_found(void **state)
{
    struct report_sample *sample = begin();
    add_calls(sample, "get_memory xmalloc", 10, 5);
    found_wrappers_are(sample, "get_memory");
    sample = begin();
    add_calls(sample, "get_checked get_memory", 10, 5);
    found_wrappers_are(sample, "get_checked get_memory"); /* only the outer one has many callers */
    sample = begin();
    add_calls(sample, "get_checked get_memory", 7, 5);
    found_wrappers_are(sample, "");
    sample = begin();
    add_calls(sample, "get_checked get_memory", 10, 5);
    add_calls(sample, "get_memory", 10, 5);
    found_wrappers_are(sample, "get_memory");
}

static void programs_that_allocate_are_not_wrappers(void **state)
{
    struct report_sample *sample = begin();
    add_calls(sample, "make_block", 7, 7);
    found_wrappers_are(sample, ""); /* too few callers */
    sample = begin();
    add_calls(sample, "make_node", 20, 1);
    found_wrappers_are(sample, ""); /* one type of objects */
    sample = begin();
    add_calls(sample, "get_memory", 10, 5);
    for (int i = 0; i < 3; i++) {
        char stack[64];
        snprintf(stack, sizeof stack, "main other_%d", i);
        add(sample, stack, 1000, 100);
    }
    found_wrappers_are(sample, ""); /* 10 of 13 contexts */
    sample = begin();
    for (int i = 0; i < 30; i++) {
        char stack[64];
        snprintf(stack, sizeof stack, "main eval apply_%d eval", i);
        add(sample, stack, 1, 16 + 8 * (uint64_t)i);
    }
    found_wrappers_are(sample, ""); /* recursion: eval stands above its callers, too */
    sample = begin();
    for (int i = 0; i < 30; i++) {
        char stack[64];
        snprintf(stack, sizeof stack, "main loop handler_%d", i);
        add(sample, stack, 1, 16 + 8 * (uint64_t)i);
    }
    found_wrappers_are(sample, ""); /* main and event loops are far from the allocator */
}

static struct hw_diff *diff_of(const struct reported *old, const struct reported *new)
{
    struct hw_error error = {""};
    struct hw_diff *diff = hw_diff_new(old->view, new->view, &error);
    assert_non_null(diff);
    return diff;
}

/* A wrapper of one of two builds is one in both: nothing has changed. */
static void a_wrapper_of_one_profile_is_one_of_both(void **state)
{
    struct report_sample *sample = begin();
    add_calls(sample, "get_memory", 10, 5);
    struct reported old = open_with(sample, (struct hw_view_options){0});
    sample = begin();
    add_calls(sample, "get_memory", 10, 5);
    for (int i = 0; i < 3; i++) {
        char stack[64];
        snprintf(stack, sizeof stack, "main other_%d", i);
        add(sample, stack, 1000, 100);
    }
    struct reported new = open_with(sample, (struct hw_view_options){0});
    assert_int_equal(old.view->structural_count, 1);
    assert_int_equal(new.view->structural_count, 0);
    struct hw_diff *diff = diff_of(&old, &new);
    assert_int_equal(new.view->structural_count, 1);
    size_t changed;
    free(hw_diff_sorted(diff, HW_MEASURE_BYTES, &changed));
    assert_int_equal(changed, 3);
    hw_diff_free(diff);
    close_sample(&old);
    close_all(&new);
}

/* Another wrapper around the allocator is no change of places. */
static void places_are_compared_without_wrappers(void **state)
{
    struct report_sample *sample = begin();
    add(sample, "main work zmalloc", 1, 10);
    struct reported old = open_with(sample, (struct hw_view_options){0});
    sample = begin();
    add(sample, "main work zmalloc_usable ztrymalloc_usable_internal", 1, 10);
    struct reported new = open_with(sample, (struct hw_view_options){0});
    struct hw_diff *diff = diff_of(&old, &new);
    assert_int_equal(diff->count, 1);
    hw_diff_free(diff);
    close_sample(&old);
    close_all(&new);
}

/* The same code of the same build is folded in both, although only one profile shows who calls it. */
static void nameless_code_is_folded_in_both(void **state)
{
    struct report_sample *sample = begin();
    add(sample, "main work xmalloc ?raw", 1, 10);
    struct reported old = open_with(sample, (struct hw_view_options){0});
    sample = begin();
    add(sample, "main work xmalloc ?raw", 1, 10);
    add(sample, "main rest ?raw", 1, 10);
    struct reported new = open_with(sample, (struct hw_view_options){0});
    stacks_are(new.view, "main work xmalloc ?raw|main rest ?raw");
    struct hw_diff *diff = diff_of(&old, &new);
    stacks_are(new.view, "main work [xmalloc] [?raw]|main rest [?raw]");
    hw_diff_free(diff);
    close_sample(&old);
    close_all(&new);
}

/* ---- rules ---- */

static void frames_are_hidden(void **state)
{
    struct report_sample *sample = begin();
    add(sample, "main test_case work", 1, 10);
    add(sample, "main test_case work/test_inline", 1, 10);
    add(sample, "main test_case", 1, 10);
    add(sample, "test_main test_case", 1, 10);
    add(sample, "other", 1, 10);
    rule(HW_RULE_HIDE, "^test_");
    struct reported reported = open_with(sample, (struct hw_view_options){0});
    stacks_are(reported.view, "main work|main work|main|test_main|other");
    assert_int_equal(reported.view->hidden, 4);
    assert_int_equal(reported.view->left_out.count, 0);
    close_all(&reported);
}

static void contexts_are_left_out(void **state)
{
    static const struct {
        const char *ignore, *focus, *left;
        uint64_t count, bytes;
    } rows[] = {{"^b$", NULL, "main a|main c", 1, 20},
                {NULL, "^b$", "main b", 2, 40},
                {"^(a|b)$", "main", "main c", 2, 30},
                {"^c", "^a|^c", "main a", 2, 50},
                {"^main$", NULL, "", 3, 60},
                {NULL, "nothing", "", 3, 60},
                {"no_function", NULL, "main a|main b|main c", 0, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct report_sample *sample = begin();
        add(sample, "main a", 1, 10);
        add(sample, "main b", 1, 20);
        add(sample, "main c", 1, 30);
        if (rows[i].ignore)
            rule(HW_RULE_IGNORE, rows[i].ignore);
        if (rows[i].focus)
            rule(HW_RULE_FOCUS, rows[i].focus);
        struct reported reported = open_with(sample, (struct hw_view_options){0});
        stacks_are(reported.view, rows[i].left);
        assert_int_equal(reported.view->left_out.count, rows[i].count);
        assert_int_equal(reported.view->left_out.bytes, rows[i].bytes);
        assert_int_equal(reported.view->left_out.peak, rows[i].bytes);
        assert_int_equal(hw_measure_whole(reported.view, HW_MEASURE_BYTES), 60);
        for (size_t k = 0; k < reported.view->context_count; k++)
            assert_int_equal(reported.view->contexts[k].index, k);
        close_all(&reported);
    }
}

static void rules_make_wrappers(void **state)
{
    struct report_sample *sample = begin();
    add(sample, "main work get", 1, 10);
    rule(HW_RULE_WRAPPER, "^get$");
    struct reported reported = open_with(sample, (struct hw_view_options){0});
    stacks_are(reported.view, "main work [get]");
    close_all(&reported);
}

/* The function is found wherever it stands. */
static void a_function_is_found_anywhere(void **state)
{
    struct report_sample *sample = begin();
    add(sample, "main work zmalloc", 1, 10);
    add(sample, "main work part", 1, 20);
    add(sample, "main rest", 1, 40);
    add(sample, "main other/work", 1, 80);
    struct reported reported = open_with(sample, (struct hw_view_options){.function = "work"});
    stacks_are(reported.view, "main work [zmalloc]|main work part|main work other");
    assert_int_equal(reported.view->named[0].count, 1);
    assert_int_equal(reported.view->named[0].bytes, 10);
    assert_int_equal(reported.view->named[1].count, 2);
    assert_int_equal(reported.view->named[1].bytes, 100);
    close_all(&reported);
}

static void file_gives(const char *text, const char *expected)
{
    struct hw_error error = {""};
    struct memory_file file = memory_file(text, strlen(text));
    const bool fine = hw_rules_read(&rules, file.path, &error);
    close(file.fd);
    assert_int_equal(fine, !expected);
    if (expected)
        assert_contains(error.message, expected);
}

/* The C library would take all memory for them, or all time. */
static void patterns_that_explode_are_refused(void **state)
{
    static const char *const too_large[] = {
        "a{3000}",
        "a{1,32767}",
        "(((a{1,255}){1,255}){1,255}){1,255}",
        "(ab{40}){60}",
        "x|(y[)]{50}){50}",
        "[[:alpha:])]{99999999999999999999}",
        "(((((((((((a+)+)+)+)+)+)+)+)+)+)+)+",
        "a{50}{50}",
        "a)(b{2001}",
    };
    static const char *const with_references[] = {"(a*)(a*)\\1\\2c", "(a|aa)*\\1c", "[(](x)\\1"};
    static const char *const fine[] = {
        "^std::(vector|map)<.*>::[a-z_]+\\(",
        "a{1,255}",
        "[]{9999}]",
        "[^]{9999}[:alpha:]{9999}]x",
        "\\{9999\\}",
        "a{1,30}b{1,30}",
        "operator new\\[\\]",
        "\\\\1",
    };
    struct hw_error error;
    for (size_t i = 0; i < sizeof too_large / sizeof *too_large; i++) {
        assert_false(hw_rules_add(&rules, HW_RULE_HIDE, too_large[i], &error));
        assert_contains(error.message, "too large");
    }
    for (size_t i = 0; i < sizeof with_references / sizeof *with_references; i++) {
        assert_false(hw_rules_add(&rules, HW_RULE_HIDE, with_references[i], &error));
        assert_contains(error.message, "back references");
    }
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++)
        if (!hw_rules_add(&rules, HW_RULE_HIDE, fine[i], &error))
            fail_msg("%s", error.message);
    char deep[4001];
    memset(deep, '(', 2000);
    memset(deep + 2000, ')', 2000);
    deep[4000] = '\0';
    assert_false(hw_rules_add(&rules, HW_RULE_HIDE, deep, &error));
    assert_contains(error.message, "(((...': it is too large");
    hw_rules_free(&rules);
}

static void files_of_rules_are_read(void **state)
{
    file_gives("# a comment\n\n  hide\t^a b$  \r\nwrapper x\nwrapper y|z\nfocus f", NULL);
    assert_int_equal(rules.count, 4);
    assert_string_equal(hw_rules_text(&rules, HW_RULE_HIDE, 0), "^a b$");
    assert_string_equal(hw_rules_text(&rules, HW_RULE_WRAPPER, 1), "y|z");
    assert_null(hw_rules_text(&rules, HW_RULE_WRAPPER, 2));
    assert_true(hw_rules_match(&rules, HW_RULE_WRAPPER, "lazy"));
    assert_false(hw_rules_match(&rules, HW_RULE_IGNORE, "lazy"));
    assert_false(hw_rules_match(NULL, HW_RULE_IGNORE, "lazy"));
    hw_rules_free(&rules);
    file_gives("hide a\n\nfold b\n", ":3: unknown rule 'fold' (known: wrapper, hide, ignore, focus)");
    file_gives("hide\n", ":1: hide needs a pattern");
    file_gives("hide a\nignore (\n", ":2: invalid regular expression '(': ");
    file_gives("hidea b\n", ":1: unknown rule 'hidea'");
    hw_rules_free(&rules);
    file_gives("\xef\xbb\xbfhide a\r\n\r\nfocus b\r", NULL);
    assert_string_equal(hw_rules_text(&rules, HW_RULE_HIDE, 0), "a");
    assert_string_equal(hw_rules_text(&rules, HW_RULE_FOCUS, 0), "b");
    hw_rules_free(&rules);
    char *large = malloc((1 << 20) + 2);
    memset(large, '\n', (1 << 20) + 1);
    large[(1 << 20) + 1] = '\0';
    file_gives(large, "larger than 1 MiB");
    large[1 << 20] = '\0';
    file_gives(large, NULL);
    char *end = large;
    for (int i = 0; i <= 1000; i++)
        end = stpcpy(end, "hide x\n");
    file_gives(large, ":1001: there are more than 1000 rules");
    free(large);
    hw_rules_free(&rules);
    struct hw_error error = {""};
    assert_false(hw_rules_read(&rules, "/dev/zero", &error));
    assert_string_equal(error.message, "/dev/zero: this is no file of rules: it is larger than 1 MiB");
    assert_false(hw_rules_read(&rules, "/nowhere/at/all", &error));
    assert_string_equal(error.message, "/nowhere/at/all: No such file or directory");
    assert_false(hw_rules_read(&rules, "/", &error));
    assert_string_equal(error.message, "/: Is a directory");
    assert_false(hw_rules_add(&rules, HW_RULE_HIDE, "", &error));
    hw_rules_free(&rules);
}

TEST_LIST(cmocka_unit_test(wrappers_are_known_by_name), cmocka_unit_test(only_the_allocating_end_is_folded),
          cmocka_unit_test(nameless_code_below_a_wrapper_is_folded),
          cmocka_unit_test(callbacks_of_wrappers_are_not_folded), cmocka_unit_test(exports_leave_wrappers_out),
          cmocka_unit_test(wrappers_are_found_by_structure), cmocka_unit_test(layers_of_wrappers_are_found),
          cmocka_unit_test(programs_that_allocate_are_not_wrappers),
          cmocka_unit_test(a_wrapper_of_one_profile_is_one_of_both),
          cmocka_unit_test(places_are_compared_without_wrappers), cmocka_unit_test(nameless_code_is_folded_in_both),
          cmocka_unit_test(frames_are_hidden), cmocka_unit_test(contexts_are_left_out),
          cmocka_unit_test(rules_make_wrappers), cmocka_unit_test(a_function_is_found_anywhere),
          cmocka_unit_test(patterns_that_explode_are_refused), cmocka_unit_test(files_of_rules_are_read))
