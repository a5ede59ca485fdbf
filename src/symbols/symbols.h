/* symbols.h - from an address in a module to functions, inline chain, file and line.
 *
 * Works after the run, outside the profiled process, from module path + build id + address. Separate debug files are
 * found by build id, .gnu_debuglink and, when DEBUGINFOD_URLS is set, debuginfod. C++ and Rust names are demangled.
 * Not thread-safe per object; hw_symbolizer_run uses threads of its own. With no_debuginfod it takes DEBUGINFOD_URLS
 * out of the environment while it runs (libdwfl has no other switch): no other thread should use the environment then.
 */
#ifndef HW_SYMBOLS_SYMBOLS_H
#define HW_SYMBOLS_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct hw_symbolizer;

/* The function of a frame that stands between a signal handler and the code it interrupted. */
#define HW_SIGNAL_FRAME "<signal handler called>"

/* One function of the inline chain at an address. Strings are owned by the symbolizer and live as long as it does;
 * they are interned: equal strings have equal pointers. */
struct hw_frame {
    const char *function;     /* demangled; NULL when there is nothing better than module + offset */
    const char *linkage_name; /* as in the symbol table, not demangled; NULL when unknown */
    const char *file; /* source path as the compiler recorded it, made absolute with the compilation directory; NULL */
    uint32_t line, column;  /* 0: unknown */
    uint32_t discriminator; /* DWARF's: distinguishes blocks of code that share the line; 0: the only or first one */
    uint32_t start_line;    /* of the function: where it is declared, as DWARF says; 0: unknown */
    uint32_t relative_line; /* where LINE is not known: the line within the function, whose first is 1; 0: unknown */
    bool inlined;           /* this function was inlined into the next frame of the chain */
};

/* The chain for one address, innermost (most deeply inlined) first. count >= 1; the last is not inlined. */
struct hw_frames {
    const struct hw_frame *frame;
    uint32_t count;
};

struct hw_symbolizer_options {
    unsigned threads;    /* 0: one for each processor */
    bool no_debuginfod;  /* do not ask debuginfod even when DEBUGINFOD_URLS is set */
    const char *sysroot; /* prefix for module paths and for /usr/lib/debug, or NULL */
    /* Called now and then, from the thread that called hw_symbolizer_run, with addresses done and in all; or NULL. */
    void (*progress)(void *closure, size_t done, size_t total);
    void *closure;
};

/* OPTIONS may be NULL. NULL with ERROR set when there is no memory. */
struct hw_symbolizer *hw_symbolizer_new(const struct hw_symbolizer_options *options, struct hw_error *error);
void hw_symbolizer_free(struct hw_symbolizer *symbolizer);

/* Adds a module; returns its number, or -1. PATH: the file that was mapped; "[vdso]" is allowed (this process's own
 * vDSO serves if its build id is the same). BUILD_ID (BUILD_ID_SIZE bytes, may be 0): a file with another build id is
 * not used (hw_symbolizer_module_problem then says so). No file is opened before hw_symbolizer_run. */
int hw_symbolizer_add_module(struct hw_symbolizer *symbolizer, const char *path, const uint8_t *build_id,
                             size_t build_id_size);

/* Asks for ADDRESS: as in the ELF file (p_vaddr based, load bias taken off), pointing INTO the call instruction
 * (return address - 1). Adding an address twice costs nothing. Returns a ticket >= 0 for hw_symbolizer_frames, -1 on
 * no memory. */
long hw_symbolizer_add(struct hw_symbolizer *symbolizer, int module, uint64_t address);

/* Resolves all that was added since the last run. False with ERROR only when there is no memory; files that cannot be
 * read leave frames without names, see hw_symbolizer_module_problem. */
bool hw_symbolizer_run(struct hw_symbolizer *symbolizer, struct hw_error *error);

/* The answer for a ticket, after hw_symbolizer_run. Always at least one frame (all fields NULL/0 when unknown). */
struct hw_frames hw_symbolizer_frames(const struct hw_symbolizer *symbolizer, long ticket);

/* Why a module's names are poor, as one sentence that starts with the module's path ("…: no debug information, so no
 * files and lines", "…: the file has changed since the run (another build id)", "…: cannot open: …"), or NULL
 * when there is nothing to say. */
const char *hw_symbolizer_module_problem(const struct hw_symbolizer *symbolizer, int module);

/* ---- data and types ---- */

/* A variable. */
struct hw_data_symbol {
    uint64_t address, size;   /* as in the ELF file; size > 0 */
    const char *name;         /* readable */
    const char *linkage_name; /* without a version; NULL where only the readable name was kept */
};

struct hw_data_section {
    uint64_t start, end;
    const char *name;
};

/* The data of a module. Names live as long as the symbolizer. */
struct hw_data {
    const struct hw_data_symbol *symbol; /* sorted by address; none lies within another */
    size_t symbol_count;
    const struct hw_data_symbol *local; /* thread-local variables, likewise: offsets in the thread-local data */
    size_t local_count;
    const struct hw_data_section *section; /* that hold data, in the order of the file */
    size_t section_count;
};

/* What the module's file and its debug file say of its data, for hw_data_free; all empty when no file serves. Not while
 * hw_symbolizer_run. False with ERROR when there is no memory. */
bool hw_symbolizer_data(struct hw_symbolizer *symbolizer, int module, struct hw_data *data, struct hw_error *error);
void hw_data_free(struct hw_data *data);

/* A place in a variable: ADDRESS as in the ELF file, or in thread-local data if it is LOCAL. The answers are NULL where
 * no debug information says it: VARIABLE ("server", "lookup()::cache" of one that a function keeps), PATH (".db",
 * "[3].next", "" if it is all of it) and TYPE ("struct entry", "std::string"): what the pointer there, in C or C++, is
 * declared to point to; with WHOLE all pointers of the variable. */
struct hw_field_query {
    uint64_t address;
    bool local, whole;
    const char *variable, *path, *type;
};
/* Answers COUNT queries, not while hw_symbolizer_run. Strings live as long as the symbolizer. False with ERROR when
 * there is no memory. */
bool hw_symbolizer_fields(struct hw_symbolizer *symbolizer, int module, struct hw_field_query *query, size_t count,
                          struct hw_error *error);

/* ---- types of blocks, without a run of the program: call_types.c ---- */

/* How it is known what a call returns a pointer to. */
enum hw_type_evidence {
    HW_TYPE_UNKNOWN,
    HW_TYPE_RUN,         /* the program said it (heapwise cc) */
    HW_TYPE_CONSTRUCTOR, /* a member function is called on it: the constructor */
    HW_TYPE_ALLOCATOR,   /* a template of the language's library allocates: std::allocator<T>, Box<T> */
    HW_TYPE_VARIABLE,    /* a variable has it */
    HW_TYPE_MEMBER,      /* it is stored to a member, an element or a global variable */
    HW_TYPE_RESULT,      /* the function that returns it declares it */
    HW_TYPE_ARGUMENT,    /* it is passed to a function that declares it */
    HW_TYPE_EVIDENCES
};

#define HW_FIRST_PARTS 4

struct hw_call_type {
    const char *name;         /* "struct node" of C, "Circle" of C++ and Rust */
    uint64_t size;            /* sizeof, not 0 */
    int64_t offset;           /* of it from what the call returned */
    uint64_t tail, tail_size; /* it ends with an array of elements of tail_size bytes, from `tail` on, which may have
                               * more of them than declared; tail_size is 0: it does not */
    uint32_t evidence; /* a bit for each enum hw_type_evidence */
    bool scalar;                       /* a number or a pointer: no struct, class, union */
    const char *first[HW_FIRST_PARTS]; /* types of what it begins with: first members and bases */
    const void *entry;                 /* private: in the debug information */
};

struct hw_call_query {
    uint64_t address; /* in the call instruction, as for hw_symbolizer_add */
    /* The answer: what the result is used as, each type once. */
    const struct hw_call_type *types;
    uint32_t count;
    bool known;        /* the code was read, and the function is known */
    bool returned;     /* the caller returns it to its own caller: */
    int64_t returned_offset; /* what it returns begins there */
    bool returns_type; /* the caller declares to return something else than void * */
    bool single;       /* the call is operator new for one object (or of std::allocator) */
};

/* Asks many times with the files open in between. Not while hw_symbolizer_run; the modules' addresses have been
 * resolved before. NULL and false with ERROR when there is no memory. */
struct hw_call_types;
struct hw_call_types *hw_call_types_new(struct hw_symbolizer *symbolizer, struct hw_error *error);
void hw_call_types_free(struct hw_call_types *types);
/* Answers COUNT queries about MODULE; answers live as long as TYPES, names as long as the symbolizer. Only code of
 * x86-64 is read. */
bool hw_call_types_ask(struct hw_call_types *types, int module, struct hw_call_query *query, size_t count,
                       struct hw_error *error);

/* The members of a type that TYPES has answered: FIELDS (to.field_count of them) to be freed, sorted, none in another.
 * All empty for scalars. Strings live as long as the symbolizer. False with ERROR when there is no memory. */
struct hw_profile_struct;
struct hw_profile_field;
bool hw_call_types_layout(struct hw_call_types *types, const struct hw_call_type *type, struct hw_profile_struct *to,
                          struct hw_profile_field **fields, struct hw_error *error);

/* The id of a type with NAME, which hw_symbolizer_type then knows; 0 when there is no memory. */
uint64_t hw_symbolizer_add_type(struct hw_symbolizer *symbolizer, const char *name);

/* What the code of a module does (base/abi.h): heapwise cc, or clang -fmemory-profile, makes it count its accesses. */
enum hw_counting { HW_COUNTING_UNKNOWN, HW_COUNTING_NO, HW_COUNTING_YES };

/* Reads what the compiler left in the module's own file: whether its code counts, and names of types. A file that
 * cannot be read says nothing. False with ERROR when there is no memory. */
bool hw_symbolizer_read_marks(struct hw_symbolizer *symbolizer, int module, struct hw_error *error);
enum hw_counting hw_symbolizer_counting(const struct hw_symbolizer *symbolizer, int module);

/* The name of a type in the modules read so far, or NULL. Lives as long as the symbolizer. */
const char *hw_symbolizer_type(struct hw_symbolizer *symbolizer, uint64_t id);

/* True when the module has DWARF line information. */
bool hw_symbolizer_module_has_debug_info(const struct hw_symbolizer *symbolizer, int module);

/* True when the module's file, or a debug file of it, was read by hw_symbolizer_run: an address without a name has
 * none. */
bool hw_symbolizer_module_usable(const struct hw_symbolizer *symbolizer, int module);

/* The one copy of TEXT, which lives as long as the symbolizer: for names from elsewhere that are compared with its own.
 * NULL when there is no memory. Not while hw_symbolizer_run. */
const char *hw_symbolizer_intern(struct hw_symbolizer *symbolizer, const char *text);

/* The readable form of a linkage name, to be freed; NULL when it is in no known scheme (C), or no memory. */
char *hw_readable_name(const char *linkage_name);

/* ---- locate.c: for profiles that know less than addresses and paths ---- */

/* Finds files by their build ids: FILES, then the directory of PROFILE (a path, or NULL), the current one, and those of
 * the system's libraries. NULL when there is no memory. */
struct hw_locator;
struct hw_locator *hw_locator_new(const char *const *files, size_t count, const char *profile);
void hw_locator_free(struct hw_locator *locator);
/* The path of a file with this build id, which lives as long as the locator; NULL when there is none. */
const char *hw_locator_find(struct hw_locator *locator, const uint8_t *build_id, size_t size);

/* Called for a function with its linkage name and where it is declared (FILE may be NULL, LINE 0). False ends it. */
typedef bool hw_function_sink(void *closure, const char *linkage_name, const char *file, uint32_t line);
/* Lists the functions in the debug information of the program or library at PATH, inlined ones included; some more than
 * once. False when the file cannot be read. */
bool hw_list_functions(const char *path, hw_function_sink *sink, void *closure);

#endif
