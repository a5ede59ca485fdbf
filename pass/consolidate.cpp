// consolidate.cpp - accesses off one base that are certain to be executed together become one update.
//
// Together are: the same block, or control-equivalent blocks (the first dominates the second, the second post-dominates
// the first, both in the same loop), with nothing in between that may not come back: a call that throws, exits or
// jumps. The update moves to the first of the accesses, never past one: the memory that the later ones touch is then
// the same block's as the first's, because they are off the same base. It is attributed to the granule of the lowest
// address of the group, which is an address that is accessed: so the sum of each block is exact. The granule is exact
// where the base is known to be aligned; otherwise within the window of 32 bytes, which is what blocks are aligned to.
#include "order.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include <map>

using namespace llvm;

namespace hw
{

namespace
{

// What a group has in common, without the window.
typedef std::vector<uint64_t> group_key;

struct group {
    size_t leader; // the first update, which does the work of all
    int64_t leader_offset, lowest;
};

// An update that stays, but in the cell of another one that dominates it: the address of that is in the same block.
struct sharing {
    size_t follower, leader;
};

class merger
{
    Function &f;
    update_list &updates;
    const DataLayout &layout;
    DominatorTree &tree;
    execution_order order;
    std::map<group_key, SmallVector<group, 1>> groups;
    SmallVector<sharing, 16> shared;

    group_key key_of(const address &a);
    void merge(size_t n);

  public:
    merger(Function &f, FunctionAnalysisManager &analyses, update_list &updates)
        : f(f), updates(updates), layout(f.getParent()->getDataLayout()),
          tree(analyses.getResult<DominatorTreeAnalysis>(f)), order(f, analyses)
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
    if (by_words()) // each keeps its words: there is no window
        return key;
    int64_t window = options().granule == 8 ? (alignment >= 8 ? 8 : 1) : (alignment >= 64 ? 64 : 32);
    key.push_back(a.offset >> Log2_64(window));
    return key;
}

void merger::merge(size_t n)
{
    const size_t most_tried = 8;
    update &u = updates[n];
    address a = decompose(u.pointer, layout);
    SmallVector<group, 1> &candidates = groups[key_of(a)];
    for (size_t i = candidates.size(); i-- > 0 && candidates.size() - i <= most_tried;) {
        group &g = candidates[i];
        update &leader = updates[g.leader];
        if (!order.together(leader.at, u.at))
            continue;
        u.dead = true;
        if (by_words()) {
            for (span s : u.spans) {
                s.offset += a.offset - g.leader_offset;
                leader.spans.push_back(s);
            }
            return;
        }
        leader.reads += u.reads;
        leader.writes += u.writes;
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
    for (size_t i = candidates.size(); !by_words() && i-- > 0 && candidates.size() - i <= most_tried;)
        if (tree.dominates(updates[candidates[i].leader].at, u.at)) {
            shared.push_back({n, candidates[i].leader});
            break;
        }
    candidates.push_back({n, a.offset, a.offset});
}

void merger::run()
{
    DenseMap<const BasicBlock *, SmallVector<size_t, 8>> of_block;
    for (size_t n = 0; n < updates.size(); n++)
        of_block[updates[n].at->getParent()].push_back(n);
    for (BasicBlock *block : ReversePostOrderTraversal<Function *>(&f)) {
        auto found = of_block.find(block);
        if (found == of_block.end())
            continue;
        for (size_t n : found->second)
            if (updates[n].what == update::cell && !updates[n].times)
                merge(n);
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
