/* groups.h - sums over the places of a view: by function, file, module, type …; callers and callees; trees of calls.
 *
 * Self is what a place's headline (the frame that it is named after) allocates, total is what passes through a frame.
 * Frames inside of the headline and start code are left out, unless everything is asked for. A stack counts once for a
 * group that is on it several times. Time is linear in the frames of the tree of calls, and of the contexts' stacks. */
#ifndef HW_REPORT_VIEW_GROUPS_H
#define HW_REPORT_VIEW_GROUPS_H

#include "report/view/measure.h"

enum hw_by {
#define HW_BY(id, ...) HW_BY_##id,
#include "report/view/groups.def"
    HW_BYS
};

struct hw_by_key {
    const char *key, *title;
    bool of_frames;
    const char *sentence;
};
extern const struct hw_by_key hw_by_keys[HW_BYS];

/* HW_BYS: there is no such key. */
enum hw_by hw_by_find(const char *key);

/* Reports that are made of sums, instead of sections. */
enum hw_sums_shape { HW_SUMS_NONE, HW_SUMS_GROUPS, HW_SUMS_SANDWICH, HW_SUMS_TREE, HW_SUMS_SOURCE };
struct hw_source_options;
struct hw_sums {
    enum hw_sums_shape shape;
    enum hw_by by;
    bool chosen; /* the measure is; else it is the usual one */
    enum hw_measure_id measure;
    const char *function;                   /* of the sandwich */
    bool bottom_up;                         /* the tree */
    bool share_given;                       /* LEAST was */
    double least;                           /* share of the whole that a branch of the tree has, 0 to 1 */
    const struct hw_source_options *source; /* of the source: source.h */
};

/* The measure that SUMS asks for; HW_MEASURES with ERROR when VIEW does not have it. */
enum hw_measure_id hw_sums_measure(const struct hw_view *view, const struct hw_sums *sums, struct hw_error *error);

struct hw_group {
    uint32_t location, frame; /* one of its frames, HW_NONE: it has none */
    const char *name;         /* of a type; NULL: not known */
    bool main;                /* the main thread */
    uint32_t thread;          /* + 1: index of a thread; 0: none, and the frame is where its threads started */
    uint64_t threads;         /* how many it is, where THREAD says one */
    enum hw_thread_names names;
    uint64_t size_most; /* of a size: the greatest of the class, a power of two; 0: not known */
    uint64_t self, total;
};

struct hw_groups {
    struct hw_group *group; /* of totals above 0, greatest first; then by self */
    size_t count;
    uint64_t total; /* of all contexts in the view */
    uint64_t none;  /* of those without a stack, which are in no group of frames */
};

/* Where the stack's thread started, as far as the stack reaches that. False: it is not known, or the main thread's. */
bool hw_stack_thread_start(const struct hw_view *view, const struct hw_view_stack *stack, uint32_t *location,
                           uint32_t *frame);

/* FULL: frames inside of the headline and start code are in groups, too, and threads are one group for each name, not
 * for names that differ in digits. False when there is no memory. */
bool hw_groups_make(struct hw_groups *groups, const struct hw_view *view, enum hw_by by, enum hw_measure_id measure,
                    bool full);
void hw_groups_free(struct hw_groups *groups);

/* Who calls a function, and what it calls. Every stack counts once in each list: for the caller of the outermost call,
 * and for what the innermost one calls. */
struct hw_sandwich {
    struct hw_group *callers, *callees; /* `total` alone; greatest first */
    size_t caller_count, callee_count;
    struct hw_group function; /* one of those with the name; with its sums */
    size_t functions;         /* so many have it */
    uint64_t uncalled;        /* its total where it has no caller */
};

/* FUNCTION: as shown, as in the symbol table, without parameters, or the last part of the name. False with ERROR when
 * there is no memory, or no such function: it says which names are near. */
bool hw_sandwich_make(struct hw_sandwich *sandwich, const struct hw_view *view, const char *function,
                      enum hw_measure_id measure, bool full, struct hw_error *error);
void hw_sandwich_free(struct hw_sandwich *sandwich);

/* A call, or all calls of a function that calls itself there. */
struct hw_tree_node {
    uint32_t parent;
    uint32_t location, frame; /* one of the function's frames */
    uint32_t function;
    bool recurses;
    uint64_t self, total;
    uint32_t child, children; /* a range of hw_tree.child */
};

struct hw_tree {
    struct hw_tree_node *node; /* 0 is the root */
    size_t count, room;
    uint32_t *child; /* nodes with enough of the total; those of a node follow one another, greatest first */
    size_t child_count;
    uint64_t whole; /* of which shares are */
};

/* Detours from a function to itself are cut out. BOTTOM_UP: the root's children are the functions that allocate, the
 * children of a node those that call it. Nodes with less than LEAST (0 to 1) of the whole are not in `child`. False
 * when there is no memory. */
bool hw_tree_make(struct hw_tree *tree, const struct hw_view *view, enum hw_measure_id measure, bool bottom_up,
                  double least, bool full);
void hw_tree_free(struct hw_tree *tree);

#endif
