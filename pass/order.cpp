// order.cpp - see order.h.
#include "order.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/Analysis/CFG.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/GetElementPtrTypeIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace hw
{

// Adds V * SCALE. Additions of constants inside V go to the offset; under an extension only those that cannot wrap:
// where they would, the address is poison, and the access would not have been reached.
static void add_term(address &a, Value *v, int64_t scale)
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

// All that can follow FIRST before SECOND comes back without fail, and leads to SECOND before it leads to FIRST again.
bool execution_order::clear_between(const BasicBlock *first, const BasicBlock *second)
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
bool execution_order::blocks_together(const BasicBlock *first, const BasicBlock *second)
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

execution_order::execution_order(Function &f, FunctionAnalysisManager &analyses)
    : f(f), analyses(analyses), tree(analyses.getResult<DominatorTreeAnalysis>(f)),
      loops(analyses.getResult<LoopAnalysis>(f))
{
    for (BasicBlock &block : f) {
        block_facts &here = facts[&block];
        for (Instruction &i : block) {
            if (here.barriers && i.mayReadOrWriteMemory())
                phases[&i] = here.barriers;
            if (isa<ReturnInst>(i) || isa<UnreachableInst>(i) || i.isDebugOrPseudoInst())
                continue;
            if (!isGuaranteedToTransferExecutionToSuccessor(&i) ||
                (isa<CallBase>(i) && cast<CallBase>(i).hasFnAttr(Attribute::ReturnsTwice)))
                here.barriers++;
            if (i.isVolatile() || i.isAtomic())
                here.may_spin = true;
        }
    }
}

bool execution_order::together(const Instruction *first, const Instruction *second)
{
    const BasicBlock *from = first->getParent(), *to = second->getParent();
    if (from == to)
        return phases.lookup(first) == phases.lookup(second);
    return !phases.lookup(second) && phases.lookup(first) == facts[from].barriers && blocks_together(from, to);
}

} // namespace hw
