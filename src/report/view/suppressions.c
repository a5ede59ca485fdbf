/* suppressions.c - see suppressions.h.
 *
 * LeakSanitizer's files have lines "leak:PATTERN". A pattern is looked for anywhere in the function, source file and
 * module of each frame; * stands for anything, ^ and $ for begin and end.
 *
 * Valgrind's have groups in braces: a name, "Memcheck:Leak", perhaps "match-leak-kinds:", and frames from the innermost
 * one on, which have to follow each other: "fun:" (C++: mangled), "obj:" and "src:" with patterns of * and ?, that have
 * to fit as a whole, or "..." for any number of frames. The innermost frame there is the function of the allocator,
 * which stacks here do not have: it fits if any of them does. Functions that were inlined have their bare names there,
 * and those of libc the names that programs call. Groups about other errors are skipped. */
#include "report/view/suppressions.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/growing.h"
#include "report/view/view.h"

enum frame_kind { FUNCTION, OBJECT, SOURCE, ANY };
struct hw_suppression_frame {
    enum frame_kind kind;
    char *pattern;
};

/* ---- patterns ---- */

/* LeakSanitizer's. */
static bool found_in(const char *pattern, const char *text)
{
    bool begin = *pattern == '^', anything = false;
    if (!text || !*text)
        return false;
    for (pattern += begin; *pattern;) {
        if (*pattern == '*') {
            pattern++;
            begin = false;
            anything = true;
            continue;
        }
        if (*pattern == '$')
            return !*text || anything;
        char part[1024];
        const size_t length = strcspn(pattern, "*$");
        if (length >= sizeof part)
            return false;
        memcpy(part, pattern, length);
        part[length] = '\0';
        const char *found = strstr(text, part);
        if (!found || (begin && found != text))
            return false;
        text = found + length;
        pattern += length;
        begin = anything = false;
    }
    return true;
}

/* Valgrind's. */
static bool fits(const char *pattern, const char *text)
{
    const char *star = NULL, *from = NULL;
    while (*text) {
        if (*pattern == '*') {
            star = ++pattern;
            from = text;
        } else if (*pattern == '?' || *pattern == *text) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star;
            text = ++from;
        } else
            return false;
    }
    while (*pattern == '*')
        pattern++;
    return !*pattern;
}

/* ---- reading ---- */

struct reading {
    struct hw_suppressions *suppressions;
    const char *path;
    unsigned line;
    FILE *file;
    char *text; /* of the line */
    size_t room;
    struct hw_error *error;
};

static bool fail(const struct reading *reading, const char *why, const char *what)
{
    hw_error_set(reading->error, "%s:%u: %s%s%.60s%s", reading->path, reading->line, why, *what ? " '" : "", what,
                 *what ? "'" : "");
    return false;
}

/* The next line that says something, without blanks around it; NULL at the end. */
static char *next_line(struct reading *reading)
{
    for (ssize_t length; (length = getline(&reading->text, &reading->room, reading->file)) >= 0;) {
        char *begin = reading->text;
        if (!reading->line++ && !strncmp(begin, "\xef\xbb\xbf", 3)) { /* some editors mark UTF-8 */
            begin += 3;
            length -= 3;
        }
        while (length > 0 && isspace((unsigned char)begin[length - 1]))
            begin[--length] = '\0';
        while (isspace((unsigned char)*begin))
            begin++;
        if (*begin && *begin != '#')
            return begin;
    }
    return NULL;
}

static struct hw_suppression *add(const struct reading *reading, const char *name)
{
    struct hw_suppressions *list = reading->suppressions;
    if (!HW_GROW(list->of, list->room, list->count + 1))
        return NULL;
    struct hw_suppression *made = &list->of[list->count];
    *made = (struct hw_suppression){.name = strdup(name), .file = reading->path, .line = reading->line};
    list->count += made->name != NULL;
    return made->name ? made : NULL;
}

#define ALL_LOST (1u << HW_LEAK_DEFINITE | 1u << HW_LEAK_INDIRECT)

static bool read_line(const struct reading *reading, const char *line)
{
    if (strncmp(line, "leak:", 5) || !line[5])
        return fail(reading, "expected leak:PATTERN, or a group of Valgrind's in braces, not", line);
    struct hw_suppression *made = add(reading, line);
    if (!made || !(made->pattern = strdup(line + 5)))
        return fail(reading, "not enough memory", "");
    made->kinds = ALL_LOST;
    return true;
}

static bool read_kinds(const struct reading *reading, char *list, uint32_t *kinds)
{
    static const struct {
        const char *name;
        uint32_t kinds;
    } known[] = {{"definite", 1u << HW_LEAK_DEFINITE}, {"indirect", 1u << HW_LEAK_INDIRECT},
                 {"possible", 1u << HW_LEAK_POSSIBLE}, {"reachable", 1u << HW_LEAK_REACHABLE},
                 {"all", (1u << HW_LEAK_CLASSES) - 1}, {"none", 0}};
    enum { KNOWN = sizeof known / sizeof *known };
    *kinds = 0;
    for (char *rest = NULL, *word = strtok_r(list, ", \t", &rest); word; word = strtok_r(NULL, ", \t", &rest)) {
        size_t i = 0;
        while (i < KNOWN && strcmp(known[i].name, word))
            i++;
        if (i == KNOWN)
            return fail(reading,
                        "match-leak-kinds: is a list of definite, indirect, possible, reachable, all, none, not", word);
        *kinds |= known[i].kinds;
    }
    return true;
}

static bool add_frame(const struct reading *reading, struct hw_suppression *made, const char *line)
{
    static const char *const words[] = {[FUNCTION] = "fun:", [OBJECT] = "obj:", [SOURCE] = "src:"};
    enum frame_kind kind = FUNCTION;
    while (kind < ANY && strncmp(line, words[kind], 4))
        kind++;
    if (kind == ANY && strcmp(line, "..."))
        return fail(reading, "expected fun:, obj:, src: or ..., not", line);
    struct hw_suppression_frame *frames = realloc(made->frames, (made->frame_count + 1) * sizeof *frames);
    char *pattern = frames ? strdup(kind == ANY ? "" : line + 4) : NULL;
    made->frames = frames ? frames : made->frames;
    if (!pattern)
        return fail(reading, "not enough memory", "");
    made->frames[made->frame_count++] = (struct hw_suppression_frame){kind, pattern};
    return true;
}

/* "Memcheck,Other:Leak": a list of tools, and one kind. */
static bool is_of_memcheck(const char *line)
{
    static const char tool[] = "Memcheck";
    const char *const end = strchr(line, ':');
    for (const char *word = line; end && word < end; word += strcspn(word, ",:") + 1)
        if (strcspn(word, ",:") == sizeof tool - 1 && !strncmp(word, tool, sizeof tool - 1))
            return true;
    return false;
}

/* False with an error: Valgrind does not know the kind either, and the group would be of no use without a word. */
static bool read_kind(const struct reading *reading, const char *line, bool *leak)
{
    const char *const kind = strchr(line, ':');
    if (!kind)
        return fail(reading, "expected the kind of error, such as Memcheck:Leak, not", line);
    *leak = is_of_memcheck(line) && !strcmp(kind, ":Leak");
    if (!*leak && is_of_memcheck(line) && !strncasecmp(kind + 1 + strspn(kind + 1, " \t"), "leak", 4))
        return fail(reading, "expected Memcheck:Leak (tools may be a list, the kind is one word), not", line);
    return true;
}

/* After "{". */
static bool read_group(struct reading *reading)
{
    const unsigned begin = reading->line;
    char *line = next_line(reading), *name = line ? strdup(line) : NULL;
    bool fine = name && strcmp(name, "}") && (line = next_line(reading)) && strcmp(line, "}");
    struct hw_suppression *made = NULL;
    bool leak = false;
    if (!fine)
        fail(reading, "a group needs a name and the kind of error, such as Memcheck:Leak", "");
    else
        fine = read_kind(reading, line, &leak);
    if (fine && leak) {
        made = add(reading, name);
        fine = made || fail(reading, "not enough memory", "");
        if (made) {
            made->kinds = (1u << HW_LEAK_CLASSES) - 1;
            made->line = begin;
        }
    }
    free(name);
    while (fine && (line = next_line(reading)) && strcmp(line, "}")) {
        if (made && !strncmp(line, "match-leak-kinds:", 17))
            fine = read_kinds(reading, line + 17, &made->kinds);
        else if (made)
            fine = add_frame(reading, made, line);
    }
    if (fine && !line) {
        reading->line = begin;
        return fail(reading, "the group that begins here has no end }", "");
    }
    if (fine && made && !made->frame_count)
        return fail(reading, "a group needs at least one frame", "");
    return fine;
}

bool hw_suppressions_read(struct hw_suppressions *suppressions, const char *path, struct hw_error *error)
{
    struct reading reading = {.suppressions = suppressions, .path = path, .error = error};
    reading.file = fopen(path, "re");
    if (!reading.file) {
        hw_error_set(error, "%s: %s", path, strerror(errno));
        return false;
    }
    bool fine = true;
    errno = 0;
    for (char *line; fine && (line = next_line(&reading));)
        fine = strcmp(line, "{") ? read_line(&reading, line) : read_group(&reading);
    if (fine && ferror(reading.file)) {
        hw_error_set(error, "%s: %s", path, strerror(errno));
        fine = false;
    }
    free(reading.text);
    fclose(reading.file);
    return fine;
}

void hw_suppressions_free(struct hw_suppressions *suppressions)
{
    for (size_t i = 0; i < suppressions->count; i++) {
        struct hw_suppression *of = &suppressions->of[i];
        for (size_t k = 0; k < of->frame_count; k++)
            free(of->frames[k].pattern);
        free(of->frames);
        free(of->pattern);
        free(of->name);
    }
    free(suppressions->of);
    *suppressions = (struct hw_suppressions){0};
}

/* ---- stacks ---- */

/* Does MATCH find PATTERN in the name of a function of the allocator? */
static bool is_allocation(const char *pattern, bool (*match)(const char *, const char *))
{
    static const char *const names[] = {"malloc",
                                        "calloc",
                                        "realloc",
                                        "reallocarray",
                                        "memalign",
                                        "posix_memalign",
                                        "aligned_alloc",
                                        "valloc",
                                        "pvalloc",
                                        "_Znwm",
                                        "_Znam",
                                        "_ZnwmRKSt9nothrow_t",
                                        "_ZnamRKSt9nothrow_t",
                                        "_ZnwmSt11align_val_t",
                                        "_ZnamSt11align_val_t",
                                        "_ZnwmSt11align_val_tRKSt9nothrow_t",
                                        "_ZnamSt11align_val_tRKSt9nothrow_t",
                                        "operator new(unsigned long)",
                                        "operator new[](unsigned long)"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (match(pattern, names[i]))
            return true;
    return false;
}

/* The name as the source has it: "vector" of "std::vector<int>::vector(unsigned long)". */
static bool fits_bare(const char *pattern, const char *function)
{
    char bare[1024];
    const char *begin = function, *at = function;
    for (int depth = 0; *at; at++) {
        if (depth == 0 && !strncmp(at, "operator", 8))
            at += 8 + strcspn(at + 8, "(");
        if (*at == '<')
            depth++;
        else if (*at == '>')
            depth--;
        else if (depth == 0 && !strncmp(at, "(anonymous ", 11))
            at += strcspn(at, ")");
        else if (depth == 0 && (*at == ' ' || *at == ':'))
            begin = at + 1;
        else if (depth == 0 && *at == '(')
            break;
        if (!*at)
            break;
    }
    const size_t length = (size_t)(at - begin);
    if (length >= sizeof bare)
        return false;
    memcpy(bare, begin, length);
    bare[length] = '\0';
    return fits(pattern, bare);
}

/* libc's own names of functions that programs call without that: __strdup, __GI___strdup. */
static const char *as_called(const char *name)
{
    if (!strncmp(name, "_Z", 2))
        return name;
    name += strspn(name, "_");
    return strncmp(name, "GI_", 3) ? name : name + 3 + strspn(name + 3, "_");
}

static bool is_function(const char *pattern, const struct hw_frame *symbol)
{
    const char *const name = symbol->linkage_name ? symbol->linkage_name : symbol->function;
    return name && (fits(pattern, name) || fits(pattern, as_called(name)) ||
                    (symbol->inlined && symbol->function && fits_bare(pattern, symbol->function)));
}

static bool is_frame(const struct hw_suppression_frame *wanted, const struct hw_view_frame *frame)
{
    const struct hw_frame *symbol = frame->symbol;
    if (wanted->kind == OBJECT)
        return frame->module && fits(wanted->pattern, frame->module->path);
    if (wanted->kind == FUNCTION)
        return is_function(wanted->pattern, symbol);
    if (!symbol->file)
        return false;
    const char *slash = strrchr(symbol->file, '/'), *base = slash ? slash + 1 : symbol->file;
    char with_line[1024];
    snprintf(with_line, sizeof with_line, "%s:%u", base, symbol->line);
    return fits(wanted->pattern, symbol->file) || fits(wanted->pattern, base) || fits(wanted->pattern, with_line);
}

static bool follow(const struct hw_suppression_frame *wanted, size_t count, const struct hw_view_frame *frames,
                   size_t frame_count)
{
    for (; count; wanted++, count--) {
        if (wanted->kind == ANY) {
            for (size_t skipped = 0; skipped <= frame_count; skipped++)
                if (follow(wanted + 1, count - 1, frames + skipped, frame_count - skipped))
                    return true;
            return false;
        }
        if (!frame_count || !is_frame(wanted, frames))
            return false;
        frames++;
        frame_count--;
    }
    return true;
}

/* How many frames at the begin of a group may be functions of the allocator. In Valgrind posix_memalign has two. */
static size_t frames_of_allocator(const struct hw_suppression *suppression)
{
    const struct hw_suppression_frame *frame = suppression->frames;
    if (frame->kind != OBJECT && !(frame->kind == FUNCTION && is_allocation(frame->pattern, fits)))
        return 0;
    const bool two = suppression->frame_count > 1 && frame[0].kind == FUNCTION && frame[1].kind == FUNCTION &&
                     fits(frame[0].pattern, "memalign") && !strcmp(frame[1].pattern, "posix_memalign");
    return two ? 2 : 1;
}

static bool is_in_frame(const char *pattern, const struct hw_view_frame *frame)
{
    const struct hw_frame *symbol = frame->symbol;
    return found_in(pattern, symbol->function) || found_in(pattern, symbol->linkage_name) ||
           (symbol->function && found_in(pattern, as_called(symbol->function))) || found_in(pattern, symbol->file) ||
           (frame->module && found_in(pattern, frame->module->path));
}

static bool matches(const struct hw_suppression *suppression, const struct hw_view_stack *stack)
{
    if (suppression->pattern) {
        for (size_t i = 0; i < stack->count; i++)
            if (is_in_frame(suppression->pattern, &stack->frames[i]))
                return true;
        return false;
    }
    for (size_t unseen = frames_of_allocator(suppression) + 1; unseen-- > 0;)
        if (follow(suppression->frames + unseen, suppression->frame_count - unseen, stack->frames, stack->count))
            return true;
    return false;
}

const char *hw_suppression_doubt(const struct hw_suppression *suppression, uint64_t blocks)
{
    if (suppression->pattern)
        return blocks || !is_allocation(suppression->pattern, found_in)
                   ? NULL
                   : "stacks begin with the caller of malloc or new; name that, or a library";
    if (!blocks || suppression->frames->kind != FUNCTION)
        return NULL;
    for (size_t i = frames_of_allocator(suppression); i < suppression->frame_count; i++)
        if (suppression->frames[i].kind != ANY)
            return NULL;
    return "these are all blocks of its kinds, since the function of the allocator is not recorded";
}

/* ---- contexts ---- */

static void take(struct hw_suppressed *sum, uint64_t *blocks, uint64_t *bytes)
{
    sum->blocks = hw_add_saturating(sum->blocks, *blocks);
    sum->bytes = hw_add_saturating(sum->bytes, *bytes);
    *blocks = *bytes = 0;
}

static void suppress(struct hw_profile_context *sum, const struct hw_suppression *suppression, struct hw_suppressed *by)
{
    if (suppression->kinds & 1u << HW_LEAK_DEFINITE)
        take(by, &sum->definite_blocks, &sum->definite_bytes);
    if (suppression->kinds & 1u << HW_LEAK_INDIRECT)
        take(by, &sum->indirect_blocks, &sum->indirect_bytes);
    if (suppression->kinds & 1u << HW_LEAK_POSSIBLE)
        take(by, &sum->possible_blocks, &sum->possible_bytes);
}

bool hw_view_suppress(struct hw_view *view, const struct hw_suppressions *suppressions)
{
    struct hw_view_stack stack = {0};
    bool fine = true;
    if (!suppressions || !suppressions->count || !view->profile->leak_search)
        return true;
    view->suppressions = suppressions;
    view->suppressed = calloc(suppressions->count, sizeof *view->suppressed);
    fine = view->suppressed != NULL;
    for (size_t i = 0; fine && i < view->context_count; i++) {
        struct hw_profile_context *sum = &view->contexts[i].sum;
        if (!sum->definite_blocks && !sum->indirect_blocks && !sum->possible_blocks)
            continue;
        fine = hw_view_stack(view, sum->leaf, &stack);
        for (size_t k = 0; fine && k < suppressions->count; k++)
            if (matches(&suppressions->of[k], &stack))
                suppress(sum, &suppressions->of[k], &view->suppressed[k]);
    }
    hw_view_stack_free(&stack);
    return fine;
}
