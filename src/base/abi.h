/* abi.h - the contract between instrumented code and the runtime.
 *
 * The pass (pass/), the compiler driver (src/cli) and the runtime (src/runtime) include it: C and C++, no code.
 *
 * A granule is 64 (or, with --granule 8 or 4, 8 or 4) bytes of address space; a cell is its counter in shadow memory.
 * Every thread counts into a shadow of its own, its plane: the thread-local __heapwise_plane (initial-exec model) is
 * what cell addresses are computed from. It is valid in every thread at every moment, never changes while a function
 * runs, and for every address the cell can be read and written. All arithmetic is modulo 2^64.
 *
 *   granule 64   cell(a) = plane + (a >> 6 << 3): two little-endian u32, reads at +0, writes at +4. Code adds to either
 *                with one 32-bit addition, or to both with one 64-bit addition of reads + (writes << 32), both below
 *                2^24; greater numbers go through __heapwise_add_64. Where 2^32 is passed: see the runtime's planes.c.
 *   granule 8    cell(a) = plane + (a >> 3): one byte of reads; the byte of writes is HW_ABI_WRITES_OFFSET bytes
 *                further. Additions saturate at 255.
 *   granule 4    cell(a) = plane + (a >> 2): one byte of reads, and one of writes HW_ABI_WRITES_OFFSET bytes further.
 *                Code sets the bit HW_ABI_RECENT of each where it is not set yet, and changes nothing else in them: the
 *                other seven bits count samples. It does not say how often: an access marks every word that it touches,
 *                reads and writes apart, and when several are certain to be executed together, or one is executed
 *                again and again, once is enough. What it writes to are bytes of words that are accessed, no others.
 *
 * What counts: one load, store or atomic operation that the compiler left counts 1 in the granule of its first byte,
 * whatever its width (atomic read-modify-write: one read and one write; compare-exchange: the same, whether it succeeds
 * or not). A masked operation, a gather or a scatter counts 1 for each lane that is switched on, at that lane's
 * address. Memory intrinsics count 1 in every granule touched: reads in the source, writes in the destination. */
#ifndef HW_BASE_ABI_H
#define HW_BASE_ABI_H

#define HW_ABI_VERSION 1

/* Granule 8: from the cell of reads to the cell of writes, a displacement that fits into an x86 address. */
#define HW_ABI_WRITES_OFFSET 0x7fff0000

/* Granule 4: accessed since the last sample. */
#define HW_ABI_RECENT 0x80

/* Thread-local variables of the runtime (both uintptr_t-sized, initial-exec).
 *
 * HW_ABI_TYPE: the pass stores HW_ABI type hash of the allocated type here immediately before a call of an allocation
 * function whose type is known, and 0 immediately after it. The allocation hook takes it. */
#define HW_ABI_PLANE "__heapwise_plane"
#define HW_ABI_TYPE  "__heapwise_type"

/* Functions of the runtime. Callable from any thread and from signal handlers; none allocates or throws. The suffix is
 * the granule: _64, _8 or _4.
 *
 *   void __heapwise_init_v1(uint32_t granule)
 *        called by a constructor of priority 1 (internal linkage, one for each object). The name carries the version.
 *   void __heapwise_add_G(const void *address, uint64_t reads, uint64_t writes)
 *        adds to one cell, numbers of any size
 *   void __heapwise_range_G(const void *start, int64_t stride, uint64_t count, uint64_t reads, uint64_t writes)
 *        adds READS and WRITES to the cell of start + i * stride, for i = 0 … count - 1 (count may be 0)
 *   void __heapwise_touch_G(const void *start, uint64_t bytes, uint64_t reads, uint64_t writes)
 *        adds READS and WRITES once to each cell touched by BYTES bytes from START (0: none)
 *   void __heapwise_copy_G(const void *destination, const void *source, uint64_t bytes)
 *        touch of the source with one read and of the destination with one write
 *
 * With the granule 4 there is no _add; numbers of reads and writes mean "none" or "some", and
 *   void __heapwise_range_4(const void *start, int64_t stride, uint64_t count, uint64_t bytes, uint64_t kinds)
 *        marks the words of BYTES bytes from start + i * stride, for i = 0 … count - 1; kinds: HW_ABI_READS, …_WRITES
 */
#define HW_ABI_READS  1
#define HW_ABI_WRITES 2
#define HW_ABI_INIT   "__heapwise_init_v1"
#define HW_ABI_ADD    "__heapwise_add_"
#define HW_ABI_RANGE  "__heapwise_range_"
#define HW_ABI_TOUCH  "__heapwise_touch_"
#define HW_ABI_COPY   "__heapwise_copy_"

/* The file name pattern given at compile time: `const char __heapwise_output[]`, weak, default visibility, in a COMDAT
 * of its own. The environment overrides it. */
#define HW_ABI_OUTPUT "__heapwise_output"

/* Every instrumented object carries an ELF note, so that the runtime knows at its start, before any constructor, that
 * the program counts accesses and with which granule: section HW_ABI_NOTE_SECTION (type SHT_NOTE, alloc, align 4), name
 * "Heapwise", type HW_ABI_NOTE_TYPE, description four u32: HW_ABI_VERSION, granule, flags, and how many operations on
 * memory in the object cannot be counted (of gcc's objects it is not known). */
#define HW_ABI_NOTE_SECTION ".note.heapwise"
#define HW_ABI_NOTE_NAME    "Heapwise"
#define HW_ABI_NOTE_TYPE    1
enum {
    HW_ABI_CONSOLIDATED = 1 << 0,  /* flags: updates were consolidated */
    HW_ABI_CALLBACKS = 1 << 1,     /* counted by calls (gcc -fsanitize=thread) */
    HW_ABI_COUNTS_FIELDS = 1 << 2, /* fields of structs are counted; granule may be 0: no cells then */
};

/* Names of allocated types: NUL-terminated strings, one after the other (0 bytes between them mean nothing), in the
 * section HW_ABI_TYPES_SECTION. A type's id is the 64-bit FNV-1a hash of its name without the NUL: start from
 * 0xcbf29ce484222325, for each byte xor it in, then multiply by 0x100000001b3. */
#define HW_ABI_TYPES_SECTION "heapwise_types"

/* Fields of structs. A module numbers its counters, 64 bits each: counter n of the calling thread is at
 * __heapwise_plane + base + 8 n, where base is a variable of the module. Code adds to it with one addition. The base is
 * HW_ABI_FIELDS_SCRATCH until a constructor of priority 1 registers the module's table, and then wherever the runtime
 * has room; all of it is in the shadow of addresses that no program has, so that it is never a cell.
 *
 *   void __heapwise_fields_v1(const struct hw_fields_table *table, uint64_t *base)
 *        copies the table and sets the base
 *
 * The table, one piece of memory: struct hw_fields_table, then the structures of the profile (src/profile/format.h)
 * hw_struct, hw_field, hw_field_group and hw_group_member, as many as it says, with indexes into the table itself, then
 * strings, that begin with an empty one. `executions` of a group is the number of its counter; several groups may have
 * one.
 *
 *   void __heapwise_outside_v1(const struct hw_outside *list, uint32_t count)
 *        says, behind the table, to which functions outside the module pointers to its structs go
 *
 * The identity of a struct: FNV-1a as above, over the name and a 0, the size (8 bytes, little-endian), and for each
 * field name and 0, offset, bit offset, size (of a bit-field in bits), name of the type and 0. */
#define HW_ABI_FIELDS         "__heapwise_fields_v1"
#define HW_ABI_FIELDS_VERSION 1
#define HW_ABI_FIELDS_SCRATCH ((0x0c0000000000ull - 0x800000000ull) >> 3) /* address 12 TiB - 32 GiB */
struct hw_fields_table {
    unsigned version; /* HW_ABI_FIELDS_VERSION */
    unsigned counters;
    unsigned structs, fields, groups, members;
    unsigned string_bytes;
    unsigned entry_bytes; /* sizes of the four structures, added up: another version has others */
};

#define HW_ABI_OUTSIDE "__heapwise_outside_v1"
struct hw_outside {
    unsigned long identity;
    const void *function;
    unsigned long typed; /* the parameter is declared as a pointer to the struct, or it is not known as what */
};

/* A pointer to a type carries this annotation when the type's layout is agreed upon with others: HEAPWISE_ABI. */
#define HW_ABI_FIXED_LAYOUT "heapwise:abi"

/* A function carries this annotation (llvm.global.annotations) when it must not be counted: HEAPWISE_NO_COUNT of
 * <heapwise/heapwise.h>. */
#define HW_ABI_NO_COUNT "heapwise:no-count"

#endif
