// pass.h - the map of the plugin: what its files give each other.
//
// The plugin works on a module in two steps. The early one (plugin.cpp, types.cpp), before any optimisation, only
// marks: functions that are not to be counted, types of allocations. The late one, after all optimisations, counts what
// they have left: accesses.cpp finds a function's accesses and writes them down as updates of shadow memory;
// consolidate.cpp and loops.cpp replace updates by fewer ones with the same sum; emit.cpp turns what remains into code.
// With the granule 4 an update only says which words are used (words.cpp): the same words, whatever was consolidated,
// or left out because they have just been marked (marked.cpp).
// src/base/abi.h is the contract with the runtime. How fields of structs are counted has a map of its own: fields.h.
#ifndef HW_PASS_PASS_H
#define HW_PASS_PASS_H

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Analysis.h"
#include "llvm/IR/DebugLoc.h"
#include "llvm/IR/Instruction.h"
#include "llvm/IR/PassManager.h"
#include "llvm/IR/ValueHandle.h"
#include <string>
#include <vector>

namespace llvm
{
class CallBase;
class DataLayout;
class IRBuilderBase;
} // namespace llvm

namespace hw
{

// plugin.cpp: the options, prefix -heapwise-.
struct settings {
    unsigned granule; // 64, 8 or 4; 0: only fields are counted
    bool fields;
    bool consolidate;
    bool reads, writes, atomics;
    bool types;
    std::string output;      // pattern of the profile's name; empty: none given
    std::string ignore_list; // a special case list; empty: none
};
const settings &options();

// With the granule 4: bytes from an update's pointer + OFFSET that are accessed.
struct span {
    int64_t offset;
    uint64_t bytes;
    uint64_t alignment; // of the access: a fact about the address
    bool reads, writes;
};

// One update of shadow memory to come.
struct update {
    enum kind {
        cell,     // READS and WRITES, TIMES over if that is set, in the cell of POINTER
        range,    // READS and WRITES, FACTOR over if that is set, in the cells of POINTER + i * OTHER, i < TIMES
        grid,     // the same in those of POINTER + i * OTHER + k * ROW_STRIDE, i < TIMES, k < ROWS
        crossing, // READS and WRITES in the cell of POINTER + BYTES - 1, if that is not POINTER's
        lanes,    // the same in the cells of POINTER + i * BYTES for each lane i of the mask OTHER that is on
        gather,   // the same in the cells of those lanes of the vector POINTER
        packed,   // the same in the cells of POINTER + i * BYTES for i < number of lanes of the mask OTHER that are on
        touch,    // the same in each cell of the TIMES bytes from POINTER
        field,    // READS, TIMES over if that is set, in the counter of fields with the number POINTER
        copy,     // one read in each cell of the TIMES bytes from OTHER, one write in each of those from POINTER
    };
    kind what;
    uint32_t reads, writes; // at an execution
    uint32_t bytes;
    bool dead;               // another update does its work
    llvm::Instruction *at;   // the code goes before this instruction
    llvm::DebugLoc location; // of the access
    // Values available at AT; they follow replacements, because promotion and expansion come in between.
    llvm::WeakTrackingVH pointer, other, times, factor, rows, row_stride;
    llvm::WeakTrackingVH index;       // of a cell: that of the granule, if it is known already (granule_index)
    llvm::SmallVector<span, 1> spans; // with the granule 4, of a cell, crossing apart: all that it stands for

    update(kind what, llvm::Instruction *at, llvm::Value *pointer, uint32_t reads, uint32_t writes)
        : what(what), reads(reads), writes(writes), bytes(0), dead(false), at(at), location(at->getDebugLoc()),
          pointer(pointer)
    {
    }
};
typedef std::vector<update> update_list;

// accesses.cpp: whether POINTER may be that of memory that is counted: not provably the stack.
bool is_counted_pointer(const llvm::Value *pointer);

// accesses.cpp: what a load, a store or an atomic instruction accesses. TYPE is null for all others.
struct plain_access {
    llvm::Value *pointer;
    llvm::Type *type;
    llvm::Align alignment;
    bool reads, writes;
};
plain_access plain_access_of(llvm::Instruction &i);

// accesses.cpp: the mask of CALL, of which WRITE is known, and the bytes of a lane; null where no lane can be on.
llvm::Value *mask_of(llvm::CallBase &call, bool write, uint64_t &lane_bytes);

// accesses.cpp: the updates of F's accesses, one by one, in the order of instructions in each block.
update_list find_accesses(llvm::Function &f);

// consolidate.cpp: accesses off one base that are certain to be executed together become one update. Changes no code
// but for address computations.
void merge_updates(llvm::Function &f, llvm::FunctionAnalysisManager &analyses, update_list &updates);

// marked.cpp: with the granule 4, tests of words that have just been marked on every way there are left out.
void drop_marked(llvm::Function &f, update_list &updates);

// loops.cpp: whether the moment of counting does not matter across I. For FIELDS it does not matter whose memory is
// freed.
bool is_harmless(const llvm::Instruction &i, bool fields);

// loops.cpp: updates leave loops, as counters and ranges. Brings the loops concerned into simple form. All UPDATES are
// of cells, or all of fields.
void leave_loops(llvm::Function &f, llvm::FunctionAnalysisManager &analyses, update_list &updates);

// emit.cpp: the index of the cell of POINTER: of 8 bytes, or of 1 with the fine granule.
llvm::Value *granule_index(llvm::IRBuilderBase &code, llvm::Value *pointer, const llvm::DataLayout &layout);

// operations.cpp: what a call of an intrinsic of the machine, or a statement of assembly, accesses in memory.
struct memory_operand {
    update::kind what; // cell, touch, lanes or gather
    llvm::Value *pointer;
    uint64_t bytes;
    bool reads, writes;
    llvm::Value *mask; // of lanes and gather
};
typedef llvm::SmallVector<memory_operand, 2> operand_list;
// Appends the operands of CALL; may add code before it. Where memory is accessed in a way that cannot be seen, CALL
// gets the metadata `unseen_operation`.
inline const char unseen_operation[] = "heapwise.unseen";
void find_operands(llvm::CallBase &call, operand_list &list);

// emit.cpp: "add" or "or" NUMBER to what is at ADDRESS, of its type, in one instruction.
void update_memory(llvm::IRBuilderBase &code, const char *operation, llvm::Value *address, llvm::Value *number);

// emit.cpp: the code. Analyses are no longer valid afterwards.
void emit_updates(llvm::Function &f, llvm::FunctionAnalysisManager &analyses, update_list &updates);

// words.cpp: the granule 4.
inline bool by_words()
{
    return options().granule == 4;
}
void emit_words(const update &u, llvm::Value *plane);
// Spans that touch or overlap become one.
void join_spans(llvm::ArrayRef<span> from, llvm::SmallVectorImpl<span> &to);

// types.cpp: stores of the type's hash around allocations. note_types is the early step: clang's metadata become ours.
bool note_types(llvm::Module &m);
bool store_types(llvm::Module &m);

// module.cpp: what a module has once: constructor, note, output pattern, aligned globals. True for a module that is to
// be instrumented, which it is then marked as.
bool claim_module(llvm::Module &m);
// When all of it has been instrumented: the note.
void finish_module(llvm::Module &m);
// Marks the functions that annotations and the ignore list except (early: they must not be inlined into counted ones).
void mark_exempt(llvm::Module &m, bool early);
bool is_exempt(const llvm::Function &f);
// What __attribute__((annotate("TEXT"))) stands at: functions and variables, as the annotation has them.
llvm::SmallVector<llvm::Value *, 8> annotated_with(llvm::Module &m, llvm::StringRef text);
// A call of FUNCTION, which takes ARGUMENTS and returns nothing, in the constructor of the module.
void call_at_start(llvm::Module &m, const char *function, llvm::ArrayRef<llvm::Constant *> arguments);

} // namespace hw

#endif
