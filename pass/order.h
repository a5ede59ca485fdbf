// order.h - what consolidation knows of addresses, and of which instructions are executed together.
#ifndef HW_PASS_ORDER_H
#define HW_PASS_ORDER_H

#include "pass.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/PostDominators.h"
#include "llvm/IR/Dominators.h"

namespace hw
{

enum extension { as_is, sign_extended, zero_extended };

// An address as base + sum of variable * scale + offset.
struct address {
    struct term {
        llvm::Value *variable;
        extension how;
        int64_t scale;
        bool operator<(const term &other) const
        {
            return variable != other.variable ? std::less<llvm::Value *>()(variable, other.variable) : how < other.how;
        }
    };
    llvm::Value *base;
    llvm::SmallVector<term, 2> terms;
    int64_t offset;
};

address decompose(llvm::Value *pointer, const llvm::DataLayout &layout);

// Which instructions are certain to be executed equally often: the same block, or control-equivalent blocks, with
// nothing in between that may not come back (a barrier).
class execution_order
{
    struct block_facts {
        unsigned barriers = 0;
        bool may_spin = false; // has a volatile or atomic load, which a loop may wait for
    };
    llvm::Function &f;
    llvm::FunctionAnalysisManager &analyses;
    llvm::DominatorTree &tree;
    llvm::LoopInfo &loops;
    llvm::PostDominatorTree *back_tree = nullptr;
    bool irreducible = false;
    llvm::DenseMap<const llvm::BasicBlock *, block_facts> facts;
    llvm::DenseMap<const llvm::Instruction *, unsigned> phases; // barriers before it in its block, if there are any
    llvm::DenseMap<std::pair<const llvm::BasicBlock *, const llvm::BasicBlock *>, bool> known;

    bool clear_between(const llvm::BasicBlock *first, const llvm::BasicBlock *second);
    bool blocks_together(const llvm::BasicBlock *first, const llvm::BasicBlock *second);

  public:
    execution_order(llvm::Function &f, llvm::FunctionAnalysisManager &analyses);
    // SECOND, which may touch memory, is executed exactly once each time that FIRST is, after it and before FIRST is
    // again. In one block FIRST is taken to come first.
    bool together(const llvm::Instruction *first, const llvm::Instruction *second);
};

} // namespace hw

#endif
