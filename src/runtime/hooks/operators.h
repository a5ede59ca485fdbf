/* operators.h - every replaceable form of C++ operator new and delete, by its Itanium ABI name (64-bit size_t). */
#ifndef HW_RUNTIME_HOOKS_OPERATORS_H
#define HW_RUNTIME_HOOKS_OPERATORS_H

/*  X(index, symbol, aligned, nothrow) */
#define HW_NEW_FORMS(X)                                                                                                \
    X(0, _Znwm, 0, 0)                                                                                                  \
    X(1, _Znam, 0, 0)                                                                                                  \
    X(2, _ZnwmRKSt9nothrow_t, 0, 1)                                                                                    \
    X(3, _ZnamRKSt9nothrow_t, 0, 1)                                                                                    \
    X(4, _ZnwmSt11align_val_t, 1, 0)                                                                                   \
    X(5, _ZnamSt11align_val_t, 1, 0)                                                                                   \
    X(6, _ZnwmSt11align_val_tRKSt9nothrow_t, 1, 1)                                                                     \
    X(7, _ZnamSt11align_val_tRKSt9nothrow_t, 1, 1)

/*  X(index, symbol): the arguments behind the pointer are passed on as they are. */
#define HW_DELETE_FORMS(X)                                                                                             \
    X(0, _ZdlPv)                                                                                                       \
    X(1, _ZdaPv)                                                                                                       \
    X(2, _ZdlPvm)                                                                                                      \
    X(3, _ZdaPvm)                                                                                                      \
    X(4, _ZdlPvRKSt9nothrow_t)                                                                                         \
    X(5, _ZdaPvRKSt9nothrow_t)                                                                                         \
    X(6, _ZdlPvSt11align_val_t)                                                                                        \
    X(7, _ZdaPvSt11align_val_t)                                                                                        \
    X(8, _ZdlPvmSt11align_val_t)                                                                                       \
    X(9, _ZdaPvmSt11align_val_t)                                                                                       \
    X(10, _ZdlPvSt11align_val_tRKSt9nothrow_t)                                                                         \
    X(11, _ZdaPvSt11align_val_tRKSt9nothrow_t)

enum { HW_NEW_COUNT = 8, HW_DELETE_COUNT = 12 };
extern __attribute__((visibility("hidden"))) const char *const hw_new_names[HW_NEW_COUNT];
extern __attribute__((visibility("hidden"))) const char *const hw_delete_names[HW_DELETE_COUNT];

#endif
