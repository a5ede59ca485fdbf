// loops.cpp - updates leave loops.
//
// In a loop that contains nothing but computation (no call that could free memory, synchronise or fail to come back)
// the moment of counting does not matter, only the sum. So
//
//   an address that does not change is counted with the number of executions, once;
//   an address that goes in equal steps is counted as a range, once.
//
// The number is computed before the loop, from scalar evolution, if the loop has one exit and is counted; otherwise it
// is kept in a register and the update goes to each exit. Inner loops come first; what has left them may go on
// outwards.
#include "pass.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/Analysis/CFG.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"
#include <map>

using namespace llvm;

namespace hw
{

namespace
{

const unsigned most_exits = 6;    // of a loop whose updates go to its exits
const unsigned most_counters = 3; // registers that a loop is made to keep
const unsigned most_spans = 2;    // of a range, by words: each is a call
const unsigned short_trip = 8;    // up to this a range costs more than it saves
const unsigned expansion_budget = 6;

class loop_leaver
{
    Function &f;
    update_list &updates;
    const DataLayout &layout;
    DominatorTree &tree;
    LoopInfo &loops;
    ScalarEvolution &evolution;
    const TargetTransformInfo &target;
    SCEVExpander expander;
    Type *word;
    SmallVector<AllocaInst *, 8> counters;
    DenseMap<BasicBlock *, SmallVector<size_t, 8>> of_block; // indexes of live updates
    DenseMap<BasicBlock *, Instruction *> starts;            // where flushes go in an exit

    // Of the current loop.
    Loop *loop = nullptr;
    BasicBlock *preheader = nullptr;
    SmallVector<BasicBlock *, 8> exits, exiting;
    const SCEV *back_edges = nullptr; // taken, of a loop with one exit; or nullptr
    bool exits_fit = false;
    std::map<unsigned, AllocaInst *> counter_of; // by class, see class_of
    std::map<BasicBlock *, unsigned> classes;

    void add(update u)
    {
        of_block[u.at->getParent()].push_back(updates.size());
        updates.push_back(std::move(u));
    }
    void enter(Loop *next);
    bool every_iteration(BasicBlock *block);
    bool in_first_iteration(BasicBlock *block);
    const SCEV *executions(BasicBlock *block);
    unsigned class_of(BasicBlock *block);
    AllocaInst *counter(Instruction *at);
    Value *at_preheader(const SCEV *expression, Type *type, bool cheap);
    BasicBlock *unguarded(BasicBlock *block, SmallVectorImpl<std::pair<Value *, bool>> &guards);
    Value *guarded(Value *number, ArrayRef<std::pair<Value *, bool>> guards);
    Value *before_loop(Value *value);
    bool leave_cell(size_t n);
    bool leave_range(size_t n);
    bool leave(size_t n)
    {
        // Words: each execution of an inner loop marks its words anew, since they may have been sampled meanwhile.
        if (!updates[n].spans.empty() && !loop->isInnermost())
            return false;
        bool single = updates[n].what == update::cell || updates[n].what == update::field;
        return single ? leave_cell(n) : leave_range(n);
    }

  public:
    loop_leaver(Function &f, FunctionAnalysisManager &analyses, update_list &updates)
        : f(f), updates(updates), layout(f.getParent()->getDataLayout()),
          tree(analyses.getResult<DominatorTreeAnalysis>(f)), loops(analyses.getResult<LoopAnalysis>(f)),
          evolution(analyses.getResult<ScalarEvolutionAnalysis>(f)), target(analyses.getResult<TargetIRAnalysis>(f)),
#if LLVM_VERSION_MAJOR >= 22
          expander(evolution, "heapwise", false),
#else
          expander(evolution, layout, "heapwise", false),
#endif
          word(Type::getInt64Ty(f.getContext()))
    {
    }
    void run(ArrayRef<Loop *> inner_first);
};

void loop_leaver::enter(Loop *next)
{
    loop = next;
    preheader = loop->getLoopPreheader();
    exits.clear();
    exiting.clear();
    counter_of.clear();
    classes.clear();
    loop->getUniqueExitBlocks(exits);
    loop->getExitingBlocks(exiting);
    exits_fit = exits.size() <= most_exits;
    for (BasicBlock *exit : exits)
        if (exit->isEHPad() || exit->getFirstInsertionPt() == exit->end())
            exits_fit = false;
    back_edges = nullptr;
    if (exiting.size() == 1) {
        const SCEV *count = evolution.getBackedgeTakenCount(loop);
        if (!isa<SCEVCouldNotCompute>(count) && evolution.getTypeSizeInBits(count->getType()) <= 64)
            back_edges = evolution.getNoopOrZeroExtend(count, word);
    }
}

bool loop_leaver::every_iteration(BasicBlock *block)
{
    return loops.getLoopFor(block) == loop && tree.dominates(block, loop->getLoopLatch());
}

// Whether BLOCK is executed whenever the loop is entered.
bool loop_leaver::in_first_iteration(BasicBlock *block)
{
    for (BasicBlock *exit : exiting)
        if (!tree.dominates(block, exit))
            return false;
    return !exiting.empty();
}

// How often BLOCK, which is executed at every iteration, is executed each time the loop is entered. Or nullptr.
const SCEV *loop_leaver::executions(BasicBlock *block)
{
    if (!back_edges)
        return nullptr;
    if (!tree.dominates(block, exiting[0]))
        return back_edges; // the last iteration leaves before it
    return evolution.getAddExpr(back_edges, evolution.getOne(word));
}

// Blocks of one class are executed equally often: those of every iteration with no exit in between. Others are classes
// of their own.
unsigned loop_leaver::class_of(BasicBlock *block)
{
    if (classes.empty()) {
        SmallVector<BasicBlock *, 16> always; // from the latch up to the header
        for (BasicBlock *up = loop->getLoopLatch(); up; up = tree.getNode(up)->getIDom()->getBlock()) {
            always.push_back(up);
            if (up == loop->getHeader())
                break;
        }
        unsigned next = 1;
        for (size_t n = always.size(); n-- > 0;) {
            if (loops.getLoopFor(always[n]) == loop)
                classes[always[n]] = next;
            for (BasicBlock *exit : exiting)
                if (tree.dominates(always[n], exit) && (n == 0 || !tree.dominates(always[n - 1], exit))) {
                    next++;
                    break;
                }
        }
        for (BasicBlock *other : loop->blocks())
            if (!classes.count(other))
                classes[other] = 1000 + classes.size();
    }
    return classes[block];
}

// A variable that counts the executions of AT, from 0 each time the loop is entered. It becomes a register later on.
AllocaInst *loop_leaver::counter(Instruction *at)
{
    unsigned wanted = class_of(at->getParent());
    auto found = counter_of.find(wanted);
    if (found != counter_of.end())
        return found->second;
    if (counter_of.size() >= most_counters)
        return nullptr;
    IRBuilder<> code(&*f.getEntryBlock().getFirstInsertionPt());
    AllocaInst *variable = code.CreateAlloca(word, nullptr, "heapwise.count");
    counters.push_back(variable);
    code.SetInsertPoint(preheader->getTerminator());
    code.CreateStore(code.getInt64(0), variable);
    code.SetInsertPoint(at);
    code.CreateStore(code.CreateAdd(code.CreateLoad(word, variable), code.getInt64(1)), variable);
    return counter_of[wanted] = variable;
}

Value *loop_leaver::at_preheader(const SCEV *expression, Type *type, bool cheap)
{
    Instruction *place = preheader->getTerminator();
    if (!expander.isSafeToExpandAt(expression, place))
        return nullptr;
    if (cheap && expander.isHighCostExpansion(expression, loop, expansion_budget, &target, place))
        return nullptr;
    return expander.expandCodeFor(expression, type, place->getIterator());
}

// BLOCK is executed whenever the block returned is and the guards, which do not change in the loop, are as noted.
BasicBlock *loop_leaver::unguarded(BasicBlock *block, SmallVectorImpl<std::pair<Value *, bool>> &guards)
{
    while (!every_iteration(block) && guards.size() < 3 && loops.getLoopFor(block) == loop) {
        BasicBlock *up = block->getSinglePredecessor();
        BranchInst *branch = up ? dyn_cast<BranchInst>(up->getTerminator()) : nullptr;
        if (!branch || !loop->contains(up))
            break;
        if (branch->isConditional()) {
            if (!loop->isLoopInvariant(branch->getCondition()) || loop->isLoopExiting(up) ||
                branch->getSuccessor(0) == branch->getSuccessor(1))
                break;
            guards.push_back({branch->getCondition(), branch->getSuccessor(0) == block});
        }
        block = up;
    }
    return block;
}

// NUMBER if all guards are as noted, 0 otherwise.
Value *loop_leaver::guarded(Value *number, ArrayRef<std::pair<Value *, bool>> guards)
{
    IRBuilder<> code(preheader->getTerminator());
    for (auto [condition, on] : guards) {
        Value *sure = code.CreateFreeze(condition); // the first iteration may not evaluate it
        number =
            on ? code.CreateSelect(sure, number, code.getInt64(0)) : code.CreateSelect(sure, code.getInt64(0), number);
    }
    return number;
}

// VALUE, which does not change in the loop, where the loop begins. Or nullptr.
Value *loop_leaver::before_loop(Value *value)
{
    if (loop->isLoopInvariant(value))
        return value;
    const SCEV *expression = evolution.isSCEVable(value->getType()) ? evolution.getSCEV(value) : nullptr;
    if (!expression || !evolution.isLoopInvariant(expression, loop))
        return nullptr;
    return at_preheader(expression, value->getType(), true);
}

// A range that an inner loop has left goes further out when it is the same each time, or when it moves on in steps so
// small that the other order of the two loops, of which the sum knows nothing, has far fewer granules to visit.
bool loop_leaver::leave_range(size_t n)
{
    if (updates[n].what != update::range && updates[n].what != update::grid)
        return false;
    update u = updates[n];
    SmallVector<std::pair<Value *, bool>, 3> guards;
    BasicBlock *block = unguarded(u.at->getParent(), guards);
    const SCEV *number = every_iteration(block) ? executions(block) : nullptr;
    const SCEV *start = evolution.getSCEV(u.pointer), *step = nullptr;
    if (!number)
        return false;
    if (!evolution.isLoopInvariant(start, loop)) {
        const SCEVAddRecExpr *recurrence = dyn_cast<SCEVAddRecExpr>(start);
        if (u.what != update::range || u.factor || !recurrence || recurrence->getLoop() != loop ||
            !recurrence->isAffine())
            return false;
        const SCEVConstant *constant = dyn_cast<SCEVConstant>(recurrence->getStepRecurrence(evolution));
        const ConstantInt *row = dyn_cast<ConstantInt>(u.other);
        if (!constant || constant->getAPInt().abs().uge(options().granule) ||
            (row && row->getValue().abs().ult(options().granule)) || constant->getType() != word)
            return false;
        step = constant;
        start = recurrence->getStart();
    }
    Value *parts[] = {u.pointer, u.other, u.times, u.factor, u.rows, u.row_stride};
    for (unsigned i = 1; i < std::size(parts); i++)
        if (parts[i] && !(parts[i] = before_loop(parts[i])))
            return false;
    Value *pointer = at_preheader(start, u.pointer->getType(), true);
    Value *times = pointer ? at_preheader(number, word, true) : nullptr;
    if (!times)
        return false;
    times = guarded(times, guards);
    update out = u;
    out.at = preheader->getTerminator();
    out.pointer = pointer;
    out.other = parts[1];
    out.times = parts[2];
    out.rows = parts[4];
    out.row_stride = parts[5];
    if (step) {
        out.what = update::grid;
        out.rows = parts[2];
        out.row_stride = parts[1];
        out.other = cast<SCEVConstant>(step)->getValue();
        out.times = times;
    } else {
        IRBuilder<> code(out.at);
        out.factor = parts[3] ? code.CreateMul(parts[3], times) : times;
        // Not a single cell without an execution: the addresses may be any then.
        out.times = code.CreateSelect(code.CreateICmpEQ(times, code.getInt64(0)), code.getInt64(0), parts[2]);
    }
    updates[n].dead = true;
    add(out);
    return true;
}

// Takes update N out of the loop. False: it stays.
bool loop_leaver::leave_cell(size_t n)
{
    update u = updates[n];
    SmallVector<std::pair<Value *, bool>, 3> guards;
    BasicBlock *block = unguarded(u.at->getParent(), guards);
    if (!evolution.isSCEVable(u.pointer->getType()))
        return false;
    const SCEV *address = evolution.getSCEV(u.pointer);
    const SCEV *step = nullptr;
    bool always = every_iteration(block);
    if (!evolution.isLoopInvariant(address, loop)) {
        const SCEVAddRecExpr *recurrence = dyn_cast<SCEVAddRecExpr>(address);
        if (!recurrence || recurrence->getLoop() != loop || !recurrence->isAffine() || u.times || !always)
            return false;
        step = recurrence->getStepRecurrence(evolution);
        address = recurrence->getStart();
        if (!evolution.isLoopInvariant(step, loop) || evolution.getTypeSizeInBits(step->getType()) != 64)
            return false;
        SmallVector<span, 4> spans;
        join_spans(u.spans, spans);
        if (spans.size() > most_spans)
            return false;
        unsigned trips = evolution.getSmallConstantMaxTripCount(loop);
        if (trips && trips <= short_trip)
            return false;
    }
    const SCEV *number = always ? executions(block) : nullptr;
    if (u.times) { // an inner loop's number of times, or the product
        const SCEV *inner = evolution.getSCEV(u.times);
        if (!number || !evolution.isLoopInvariant(inner, loop))
            return false;
        number = evolution.getMulExpr(number, inner);
    }
    const SCEVConstant *constant = dyn_cast_or_null<SCEVConstant>(number);
    // With the granule 4 once is enough, wherever the loop is left: the update only has to be certain.
    bool once = !u.spans.empty() && !step && always && guards.empty() && !u.times && in_first_iteration(block);
    bool in_advance =
        number && expander.isSafeToExpandAt(number, preheader->getTerminator()) &&
        !expander.isHighCostExpansion(number, loop, expansion_budget, &target, preheader->getTerminator());
    if (!once && !in_advance && (u.times || !exits_fit))
        return false;

    // From here on code is made.
    Value *pointer = !step && loop->isLoopInvariant(u.pointer) ? (Value *)u.pointer
                                                               : at_preheader(address, u.pointer->getType(), true);
    Value *stride = pointer && step ? at_preheader(step, word, true) : nullptr;
    if (!pointer || (step && !stride))
        return false;
    update out = u;
    out.what = step ? update::range : u.what;
    out.pointer = pointer;
    out.index = nullptr;
    out.other = stride;
    if (once) {
        out.at = preheader->getTerminator();
        updates[n].dead = true;
        add(out);
        return true;
    }
    if (in_advance) {
        out.at = preheader->getTerminator();
        if (u.spans.empty() && !step && guards.empty() && constant && constant->getAPInt().ult(1 << 16) &&
            u.reads < 16 && u.writes < 16) {
            out.reads *= constant->getAPInt().getZExtValue();
            out.writes *= constant->getAPInt().getZExtValue();
        } else {
            out.times =
                guarded(expander.expandCodeFor(number, word, preheader->getTerminator()->getIterator()), guards);
        }
        updates[n].dead = true;
        add(out);
        return true;
    }
    AllocaInst *variable = counter(u.at);
    if (!variable)
        return false;
    updates[n].dead = true;
    for (BasicBlock *exit : exits) {
        Instruction *start = starts[exit];
        IRBuilder<> code(start);
        out.at = start;
        out.times = code.CreateLoad(word, variable);
        add(out);
    }
    return true;
}

void loop_leaver::run(ArrayRef<Loop *> inner_first)
{
    for (size_t n = 0; n < updates.size(); n++)
        if (!updates[n].dead && tree.isReachableFromEntry(updates[n].at->getParent()))
            of_block[updates[n].at->getParent()].push_back(n);
    // Before any code is made: of what is made for counters some goes again.
    for (Loop *next : inner_first) {
        SmallVector<BasicBlock *, 8> out;
        next->getUniqueExitBlocks(out);
        for (BasicBlock *exit : out)
            if (exit->getFirstInsertionPt() != exit->end())
                starts[exit] = &*exit->getFirstInsertionPt();
    }
    for (Loop *next : inner_first) {
        enter(next);
        for (BasicBlock *block : loop->blocks()) {
            auto found = of_block.find(block);
            if (found == of_block.end())
                continue;
            SmallVector<size_t, 8> here = found->second; // leave() adds to of_block
            SmallVector<size_t, 8> staying;
            for (size_t n : here)
                if (!leave(n))
                    staying.push_back(n);
            of_block[block] = staying;
        }
    }
    PromoteMemToReg(counters, tree);
}

} // namespace

bool is_harmless(const Instruction &i, bool fields)
{
    if (i.isVolatile() || i.isAtomic() || i.isEHPad() || isa<FenceInst>(i))
        return false;
    const CallBase *call = dyn_cast<CallBase>(&i);
    if (!call)
        return true;
    if (!isa<CallInst>(call) || call->isInlineAsm() || call->hasFnAttr(Attribute::ReturnsTwice))
        return false;
    if (isa<IntrinsicInst>(call) && !call->mayHaveSideEffects())
        return true;
    if (isa<DbgInfoIntrinsic>(call) || isa<LifetimeIntrinsic>(call) || isa<AssumeInst>(call) ||
        isa<AnyMemIntrinsic>(call))
        return true;
    if (!call->doesNotThrow() || !call->hasFnAttr(Attribute::WillReturn))
        return false;
    if (fields)
        return true;
    if (!call->hasFnAttr(Attribute::NoFree))
        return false;
    return call->hasFnAttr(Attribute::NoSync) || call->onlyReadsMemory() || call->onlyAccessesArgMemory();
}

void leave_loops(Function &f, FunctionAnalysisManager &analyses, update_list &updates)
{
    LoopInfo &loops = analyses.getResult<LoopAnalysis>(f);
    if (loops.empty() || f.callsFunctionThatReturnsTwice() || f.isPresplitCoroutine())
        return;
    SmallPtrSet<const BasicBlock *, 16> counted;
    bool fields = !updates.empty() && updates[0].what == update::field;
    for (const update &u : updates)
        if (!u.dead)
            counted.insert(u.at->getParent());
    // A loop is fit if all blocks in it are; an outer one is not when an inner one is not.
    SmallVector<Loop *, 8> fit;
    SmallPtrSet<const Loop *, 8> unfit;
    SmallVector<Loop *, 8> order = loops.getLoopsInPreorder();
    for (Loop *loop : reverse(order)) {
        bool harmless = !unfit.count(loop), counts = false;
        for (BasicBlock *block : loop->blocks()) {
            if (!harmless)
                break;
            counts |= counted.count(block) != 0;
            if (loops.getLoopFor(block) == loop) // the others have been checked
                for (const Instruction &i : *block)
                    harmless &= is_harmless(i, fields);
        }
        if (!harmless)
            for (Loop *outer = loop; outer; outer = outer->getParentLoop())
                unfit.insert(outer);
        else if (counts)
            fit.push_back(loop);
    }
    if (fit.empty())
        return;
    ReversePostOrderTraversal<const Function *> blocks(&f);
    if (containsIrreducibleCFG<const BasicBlock *>(blocks, loops))
        return;
    DominatorTree &tree = analyses.getResult<DominatorTreeAnalysis>(f);
    SmallVector<Loop *, 8> simple;
    bool changed = false;
    for (Loop *loop : fit) { // all of them before scalar evolution looks
        if (!loop->isLoopSimplifyForm())
            changed |= simplifyLoop(loop, &tree, &loops, nullptr, nullptr, nullptr, false);
        if (loop->isLoopSimplifyForm())
            simple.push_back(loop);
    }
    if (changed) { // what is known from earlier passes no longer holds
        PreservedAnalyses kept;
        kept.preserve<DominatorTreeAnalysis>();
        kept.preserve<LoopAnalysis>();
        analyses.invalidate(f, kept);
    }
    loop_leaver(f, analyses, updates).run(simple);
}

} // namespace hw
