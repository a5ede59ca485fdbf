// consolidate.cpp - accesses off one base that are certain to be executed together become one update.
//
// Together are: the same block, or control-equivalent blocks (the first dominates the second, the second post-dominates
// the first, both in the same loop), with nothing in between that may not come back: a call that throws, exits or
// jumps. The update moves to the first of the accesses, never past one: the memory that the later ones touch is then
// the same block's as the first's, because they are off the same base. It is attributed to the granule of the lowest
// address of the group, which is an address that is accessed: so the sum of each block is exact. The granule is exact
// where the base is known to be aligned; otherwise within the window of 32 bytes, which is what blocks are aligned to.
#include "pass.h"
#include "llvm/Analysis/CFG.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/PostDominators.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/GetElementPtrTypeIterator.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include <map>

using namespace llvm;

namespace hw
{

namespace
{

enum extension { as_is, sign_extended, zero_extended };

// An address as base + sum of variable * scale + offset.
struct address {
    struct term {
        Value *variable;
        extension how;
        int64_t scale;
        bool operator<(const term &other) const
        {
            return variable != other.variable ? std::less<Value *>()(variable, other.variable) : how < other.how;
        }
    };
    Value *base;
    SmallVector<term, 2> terms;
    int64_t offset;
};

// Adds V * SCALE. Additions of constants inside V go to the offset; under an extension only those that cannot wrap:
// where they would, the address is poison, and the access would not have been reached.
void add_term(address &a, Value *v, int64_t scale)
{
    extension how = v->getType()->getIntegerBitWidth() < 64 ? sign_extended : as_is; // as getelementptr has it
    for (;;) {
        if (ConstantInt *constant = dyn_cast<ConstantInt>(v)) {
            a.offset += (how == zero_extended ? int64_t(constant->getZExtValue()) : constant->getSExtValue()) * scale;
            return;
        }
        Operator *op = dyn_cast<Operator>(v);
        if (!op)
            break;
        if (how == as_is && op->getOpcode() == Instruction::SExt) {
            how = sign_extended;
            v = op->getOperand(0);
            continue;
        }
        if (how == as_is && op->getOpcode() == Instruction::ZExt) {
            PossiblyNonNegInst *non_negative = dyn_cast<PossiblyNonNegInst>(v);
            how = non_negative && non_negative->hasNonNeg() ? sign_extended : zero_extended;
            v = op->getOperand(0);
            continue;
        }
        ConstantInt *constant = op->getNumOperands() == 2 ? dyn_cast<ConstantInt>(op->getOperand(1)) : nullptr;
        if (!constant || constant->getBitWidth() > 64)
            break;
        bool disjoint = isa<PossiblyDisjointInst>(v) && cast<PossiblyDisjointInst>(v)->isDisjoint();
        OverflowingBinaryOperator *wraps = dyn_cast<OverflowingBinaryOperator>(op);
        if (op->getOpcode() == Instruction::Add || disjoint) {
            bool free = how == as_is || (disjoint && how == zero_extended) ||
                        (wraps && (how == sign_extended ? wraps->hasNoSignedWrap() : wraps->hasNoUnsignedWrap()));
            if (!free)
                break;
            a.offset += (how == zero_extended ? int64_t(constant->getZExtValue()) : constant->getSExtValue()) * scale;
        } else if (op->getOpcode() == Instruction::Shl && how == as_is && constant->getZExtValue() < 32) {
            scale <<= constant->getZExtValue();
        } else {
            break;
        }
        v = op->getOperand(0);
    }
    for (address::term &known : a.terms)
        if (known.variable == v && known.how == how) {
            known.scale += scale;
            return;
        }
    a.terms.push_back({v, how, scale});
}

address decompose(Value *pointer, const DataLayout &layout)
{
    address a = {pointer, {}, 0};
    while (GEPOperator *step = dyn_cast<GEPOperator>(a.base)) {
        if (step->getType()->isVectorTy() || step->getSourceElementType()->isScalableTy())
            break;
        for (gep_type_iterator at = gep_type_begin(step), end = gep_type_end(step); at != end; ++at) {
            if (StructType *fields = at.getStructTypeOrNull()) {
                unsigned field = cast<ConstantInt>(at.getOperand())->getZExtValue();
                a.offset += layout.getStructLayout(fields)->getElementOffset(field).getFixedValue();
            } else {
                add_term(a, at.getOperand(), at.getSequentialElementStride(layout).getFixedValue());
            }
        }
        a.base = step->getPointerOperand();
    }
    std::sort(a.terms.begin(), a.terms.end());
    return a;
}

// What a group has in common, without the window.
typedef std::vector<uint64_t> group_key;

struct group {
    size_t leader;  // the first update, which does the work of all
    unsigned phase; // barriers before it in its block
    int64_t leader_offset, lowest;
};

// An update that stays, but in the cell of another one that dominates it: the address of that is in the same block.
struct sharing {
    size_t follower, leader;
};

struct block_facts {
    unsigned barriers = 0;
    bool may_spin = false; // has a volatile or atomic load, which a loop may wait for
};

class merger
{
    Function &f;
    FunctionAnalysisManager &analyses;
    update_list &updates;
    const DataLayout &layout;
    DominatorTree &tree;
    LoopInfo &loops;
    PostDominatorTree *back_tree = nullptr;
    bool irreducible = false;
    DenseMap<const BasicBlock *, block_facts> facts;
    DenseMap<std::pair<const BasicBlock *, const BasicBlock *>, bool> known;
    std::map<group_key, SmallVector<group, 1>> groups;
    SmallVector<sharing, 16> shared;

    group_key key_of(const address &a);
    bool clear_between(const BasicBlock *first, const BasicBlock *second);
    bool together(const BasicBlock *first, const BasicBlock *second);
    void merge(size_t n, unsigned phase);

  public:
    merger(Function &f, FunctionAnalysisManager &analyses, update_list &updates)
        : f(f), analyses(analyses), updates(updates), layout(f.getParent()->getDataLayout()),
          tree(analyses.getResult<DominatorTreeAnalysis>(f)), loops(analyses.getResult<LoopAnalysis>(f))
    {
    }
    void run();
};

group_key merger::key_of(const address &a)
{
    uint64_t alignment = a.base->getPointerAlignment(layout).value();
    group_key key = {uint64_t(uintptr_t(a.base))};
    for (const address::term &term : a.terms) {
        key.push_back(uint64_t(uintptr_t(term.variable)));
        key.push_back(term.how);
        key.push_back(term.scale);
        alignment = std::min<uint64_t>(alignment, term.scale ? term.scale & -term.scale : alignment);
    }
    int64_t window = options().granule == 8 ? (alignment >= 8 ? 8 : 1) : (alignment >= 64 ? 64 : 32);
    key.push_back(a.offset >> Log2_64(window));
    return key;
}

// All that can follow FIRST before SECOND comes back without fail, and leads to SECOND before it leads to FIRST again.
bool merger::clear_between(const BasicBlock *first, const BasicBlock *second)
{
    const unsigned most = 32;
    SmallPtrSet<const BasicBlock *, 16> seen;
    SmallVector<const BasicBlock *, 16> todo(succ_begin(first), succ_end(first));
    Loop *loop = loops.getLoopFor(first);
    while (!todo.empty()) {
        const BasicBlock *block = todo.pop_back_val();
        if (block == first)
            return false;
        if (block == second || !seen.insert(block).second)
            continue;
        if (seen.size() > most)
            return false;
        const block_facts &here = facts[block];
        if (here.barriers || (here.may_spin && loops.getLoopFor(block) != loop))
            return false;
        todo.append(succ_begin(block), succ_end(block));
    }
    return true;
}

// SECOND is executed exactly once each time that FIRST is, before FIRST is again.
bool merger::together(const BasicBlock *first, const BasicBlock *second)
{
    if (loops.getLoopFor(first) != loops.getLoopFor(second) || !tree.dominates(first, second))
        return false;
    auto [entry, fresh] = known.try_emplace({first, second}, false);
    if (!fresh)
        return entry->second;
    if (!back_tree) {
        back_tree = &analyses.getResult<PostDominatorTreeAnalysis>(f);
        ReversePostOrderTraversal<const Function *> order(&f);
        irreducible = containsIrreducibleCFG<const BasicBlock *>(order, loops);
    }
    bool result = !irreducible && back_tree->dominates(second, first) && clear_between(first, second);
    known[{first, second}] = result;
    return result;
}

void merger::merge(size_t n, unsigned phase)
{
    const size_t most_tried = 8;
    update &u = updates[n];
    address a = decompose(u.pointer, layout);
    BasicBlock *block = u.at->getParent();
    SmallVector<group, 1> &candidates = groups[key_of(a)];
    for (size_t i = candidates.size(); i-- > 0 && candidates.size() - i <= most_tried;) {
        group &g = candidates[i];
        update &leader = updates[g.leader];
        BasicBlock *first = leader.at->getParent();
        bool merges = first == block ? g.phase == phase
                                     : phase == 0 && g.phase == facts[first].barriers && together(first, block);
        if (!merges)
            continue;
        leader.reads += u.reads;
        leader.writes += u.writes;
        u.dead = true;
        if (a.offset < g.lowest) {
            g.lowest = a.offset;
            IRBuilder<> code(leader.at);
            Value *pointer = a.base;
            int64_t offset = a.offset;
            if (!a.terms.empty()) {
                pointer = leader.pointer;
                offset -= g.leader_offset;
                g.leader_offset = a.offset;
            }
            leader.pointer = offset ? code.CreateGEP(code.getInt8Ty(), pointer, code.getInt64(offset)) : pointer;
        }
        return;
    }
    for (size_t i = candidates.size(); i-- > 0 && candidates.size() - i <= most_tried;)
        if (tree.dominates(updates[candidates[i].leader].at, u.at)) {
            shared.push_back({n, candidates[i].leader});
            break;
        }
    candidates.push_back({n, phase, a.offset, a.offset});
}

void merger::run()
{
    DenseMap<const BasicBlock *, SmallVector<size_t, 8>> of_block;
    for (size_t n = 0; n < updates.size(); n++)
        of_block[updates[n].at->getParent()].push_back(n);
    ReversePostOrderTraversal<Function *> order(&f);
    DenseMap<size_t, unsigned> phases;
    for (BasicBlock *block : order) {
        block_facts &here = facts[block];
        auto found = of_block.find(block);
        size_t next = 0, end = found == of_block.end() ? 0 : found->second.size();
        for (Instruction &i : *block) {
            for (; next < end && updates[found->second[next]].at == &i; next++)
                phases[found->second[next]] = here.barriers;
            if (isa<ReturnInst>(i) || isa<UnreachableInst>(i) || i.isDebugOrPseudoInst())
                continue;
            if (!isGuaranteedToTransferExecutionToSuccessor(&i) ||
                (isa<CallBase>(i) && cast<CallBase>(i).hasFnAttr(Attribute::ReturnsTwice)))
                here.barriers++;
            if (i.isVolatile() || i.isAtomic())
                here.may_spin = true;
        }
    }
    for (BasicBlock *block : order) {
        auto found = of_block.find(block);
        if (found == of_block.end())
            continue;
        for (size_t n : found->second)
            if (updates[n].what == update::cell && !updates[n].times)
                merge(n, phases[n]);
    }
    for (auto [follower, leader] : shared) { // in the order of dominance
        update &first = updates[leader];
        if (!first.index) {
            IRBuilder<> code(first.at);
            code.SetCurrentDebugLocation(first.location);
            first.index = granule_index(code, first.pointer, layout);
        }
        updates[follower].index = first.index;
    }
}

} // namespace

void merge_updates(Function &f, FunctionAnalysisManager &analyses, update_list &updates)
{
    if (updates.size() > 1)
        merger(f, analyses, updates).run();
}

} // namespace hw
