// emit.cpp - turns updates into code.
//
// A counter is `shr $6; add $n, (plane, index, 8)`: one instruction, which a signal cannot interrupt half-way, whatever
// optimisation or none makes of the code around it. The plane is loaded once, where it dominates all updates
// outside of every loop, so that paths without accesses do not pay for it.
#include "fields.h"
#include "base/abi.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace hw
{

namespace
{

// Below this a number of reads and one of writes can be added together (abi.h).
const uint64_t inline_limit = 1 << 24;

class emitter
{
    Function &f;
    Module &m;
    const DataLayout &layout;
    Value *plane = nullptr;  // nullptr: loaded anew for each update
    Value *fields = nullptr; // the counters of fields in it; the same
    Type *word;              // i64
    MDNode *unseen;          // !nosanitize
    bool fine = options().granule == 8;

    Instruction *load_plane(Instruction *before);
    Value *load_fields(Instruction *before);
    Instruction *place_for(DominatorTree &tree, LoopInfo *loops, const update_list &updates, bool of_fields);
    void emit_field(IRBuilder<> &code, const update &u);
    Value *granule_of(IRBuilder<> &code, Value *pointer)
    {
        return granule_index(code, pointer, layout);
    }
    Value *cell_at(IRBuilder<> &code, Value *index);
    void count(IRBuilder<> &code, Value *index, Value *reads, Value *writes);
    void count_flags(IRBuilder<> &code, Value *pointer, Value *on, const update &u);
    void call(IRBuilder<> &code, const char *name, ArrayRef<Value *> arguments);
    void emit_cell(IRBuilder<> &code, const update &u);
    void emit_lanes(IRBuilder<> &code, const update &u);
    void emit_range(IRBuilder<> &code, const update &u);

  public:
    emitter(Function &f) : f(f), m(*f.getParent()), layout(m.getDataLayout())
    {
        word = Type::getInt64Ty(f.getContext());
        unseen = MDNode::get(f.getContext(), {});
    }
    void place_plane(DominatorTree &tree, LoopInfo *loops, const update_list &updates);
    void emit(const update &u);
};

Instruction *emitter::load_plane(Instruction *before)
{
    GlobalVariable *variable = m.getGlobalVariable(HW_ABI_PLANE);
    if (!variable)
        variable = new GlobalVariable(m, PointerType::getUnqual(f.getContext()), false, GlobalValue::ExternalLinkage,
                                      nullptr, HW_ABI_PLANE, nullptr, GlobalValue::InitialExecTLSModel);
    IRBuilder<> code(before);
    Value *address = code.CreateThreadLocalAddress(variable);
    LoadInst *load = code.CreateLoad(variable->getValueType(), address, "heapwise.plane");
    load->setMetadata(LLVMContext::MD_nosanitize, unseen);
    return load;
}

Value *emitter::load_fields(Instruction *before)
{
    Value *own = load_plane(before);
    IRBuilder<> code(before);
    LoadInst *base = code.CreateLoad(word, fields_base(m), "heapwise.base");
    base->setMetadata(LLVMContext::MD_nosanitize, unseen);
    return code.CreateGEP(code.getInt8Ty(), own, base);
}

// Where what the updates have in common is loaded: where it dominates all of them, outside of every loop. Or nullptr.
Instruction *emitter::place_for(DominatorTree &tree, LoopInfo *loops, const update_list &updates, bool of_fields)
{
    auto concerned = [of_fields](const update &u) { return !u.dead && (u.what == update::field) == of_fields; };
    BasicBlock *place = nullptr;
    for (const update &u : updates)
        if (concerned(u))
            place = place ? tree.findNearestCommonDominator(place, u.at->getParent()) : u.at->getParent();
    if (!place)
        return nullptr;
    while ((loops && loops->getLoopFor(place)) || place->getFirstInsertionPt() == place->end())
        place = tree.getNode(place)->getIDom()->getBlock();
    Instruction *before = place->getTerminator();
    for (const update &u : updates)
        if (concerned(u) && u.at->getParent() == place && (u.at == before || u.at->comesBefore(before)))
            before = u.at;
    return before;
}

void emitter::place_plane(DominatorTree &tree, LoopInfo *loops, const update_list &updates)
{
    if (f.isPresplitCoroutine()) // may go on in another thread
        return;
    Instruction *of_cells = place_for(tree, loops, updates, false), *of_fields = place_for(tree, loops, updates, true);
    if (of_cells)
        plane = load_plane(of_cells);
    if (of_fields)
        fields = load_fields(of_fields);
}

Value *emitter::cell_at(IRBuilder<> &code, Value *index)
{
    return code.CreateGEP(fine ? code.getInt8Ty() : word, plane, index);
}

// Adds READS and WRITES, i64 or nullptr, both below inline_limit, to the cell.
void emitter::count(IRBuilder<> &code, Value *index, Value *reads, Value *writes)
{
    Value *cell = cell_at(code, index);
    if (fine) {
        auto byte = [&code](Value *number) {
            Value *capped = code.CreateBinaryIntrinsic(Intrinsic::umin, number, code.getInt64(255));
            return code.CreateTrunc(capped, code.getInt8Ty());
        };
        if (reads)
            update_memory(code, "add", cell, byte(reads));
        if (writes)
            update_memory(code, "add", code.CreateConstGEP1_64(code.getInt8Ty(), cell, HW_ABI_WRITES_OFFSET),
                          byte(writes));
        return;
    }
    // Two additions where both are due, not one of 64 bits: its load would wait until an addition to a half that was
    // made just before has reached the cache.
    if (reads)
        update_memory(code, "add", cell, code.CreateTrunc(reads, code.getInt32Ty()));
    if (writes)
        update_memory(code, "add", code.CreateConstGEP1_64(code.getInt8Ty(), cell, 4),
                      code.CreateTrunc(writes, code.getInt32Ty()));
}

// Counts U in POINTER's cell as often as ON says, an i64. What is not on may have any address: nothing is added to cell
// 0.
void emitter::count_flags(IRBuilder<> &code, Value *pointer, Value *on, const update &u)
{
    Value *index = granule_of(code, pointer);
    if (!isa<Constant>(on))
        index = code.CreateSelect(code.CreateICmpNE(on, code.getInt64(0)), index, code.getInt64(0));
    count(code, index, u.reads ? code.CreateMul(on, code.getInt64(u.reads)) : nullptr,
          u.writes ? code.CreateMul(on, code.getInt64(u.writes)) : nullptr);
}

void emitter::call(IRBuilder<> &code, const char *name, ArrayRef<Value *> arguments)
{
    SmallVector<Type *, 5> types;
    for (Value *argument : arguments)
        types.push_back(argument->getType());
    FunctionCallee callee = m.getOrInsertFunction((Twine(name) + (fine ? "8" : "64")).str(),
                                                  FunctionType::get(code.getVoidTy(), types, false));
    if (Function *function = dyn_cast<Function>(callee.getCallee())) {
        function->setDoesNotThrow();
        function->setWillReturn();
    }
    code.CreateCall(callee, arguments)->setDoesNotThrow();
}

void emitter::emit_cell(IRBuilder<> &code, const update &u)
{
    Value *reads = u.reads ? code.getInt64(u.reads) : nullptr;
    Value *writes = u.writes ? code.getInt64(u.writes) : nullptr;
    if (!u.times) {
        count(code, u.index ? (Value *)u.index : granule_of(code, u.pointer), reads, writes);
        return;
    }
    // None at all, with which the address may be any, goes the long way, too.
    Value *fits = code.CreateICmpULT(code.CreateSub(u.times, code.getInt64(1)),
                                     code.getInt64(inline_limit / std::max(u.reads, u.writes) - 1));
    Value *all_reads = reads ? code.CreateMul(u.times, reads) : nullptr;
    Value *all_writes = writes ? code.CreateMul(u.times, writes) : nullptr;
    Instruction *small, *large;
    SplitBlockAndInsertIfThenElse(fits, u.at->getIterator(), &small, &large,
                                  MDBuilder(f.getContext()).createBranchWeights(1 << 20, 1));
    code.SetInsertPoint(small);
    count(code, granule_of(code, u.pointer), all_reads, all_writes);
    code.SetInsertPoint(large);
    code.SetCurrentDebugLocation(u.location);
    call(code, HW_ABI_ADD,
         {u.pointer, all_reads ? all_reads : code.getInt64(0), all_writes ? all_writes : code.getInt64(0)});
}

void emitter::emit_field(IRBuilder<> &code, const update &u)
{
    Value *address = code.CreateGEP(word, fields ? fields : load_fields(u.at), (Value *)u.pointer);
    Value *number = u.times ? code.CreateMul((Value *)u.times, code.getInt64(u.reads)) : code.getInt64(u.reads);
    update_memory(code, "add", address, number);
}

void emitter::emit_lanes(IRBuilder<> &code, const update &u)
{
    Value *mask = u.other;
    unsigned lanes = cast<FixedVectorType>(mask->getType())->getNumElements();
    Type *bits = code.getIntNTy(lanes);
    if (u.what == update::packed || (u.what == update::lanes && options().consolidate && !fine)) {
        Value *on = code.CreateBitCast(mask, bits);
        Value *number = code.CreateZExtOrTrunc(code.CreateUnaryIntrinsic(Intrinsic::ctpop, on), word);
        if (u.what == update::packed) {
            call(code, HW_ABI_RANGE,
                 {u.pointer, code.getInt64(u.bytes), number, code.getInt64(u.reads), code.getInt64(u.writes)});
            return;
        }
        // One update for all lanes, in the granule of the first that is on.
        Value *first = code.CreateZExtOrTrunc(code.CreateBinaryIntrinsic(Intrinsic::cttz, on, code.getFalse()), word);
        Value *pointer = code.CreateGEP(code.getInt8Ty(), u.pointer, code.CreateMul(first, code.getInt64(u.bytes)));
        count_flags(code, pointer, number, u);
        return;
    }
    for (unsigned lane = 0; lane < lanes; lane++) {
        Value *on = code.CreateZExt(code.CreateExtractElement(mask, lane), word);
        Value *pointer = u.what == update::gather
                             ? code.CreateExtractElement(u.pointer, lane)
                             : code.CreateConstGEP1_64(code.getInt8Ty(), u.pointer, uint64_t(lane) * u.bytes);
        if (Constant *constant = dyn_cast<Constant>(on))
            if (constant->isNullValue())
                continue;
        count_flags(code, pointer, on, u);
    }
}

void emitter::emit_range(IRBuilder<> &code, const update &u)
{
    auto times_factor = [&](uint32_t number) -> Value * {
        Value *each = code.getInt64(number);
        return u.factor ? code.CreateMul(each, u.factor) : each;
    };
    Value *reads = times_factor(u.reads), *writes = times_factor(u.writes), *start = u.pointer, *times = u.times;
    if (u.what == update::grid) { // a range for each row; the loop is run once at least
        // Where one number is 0 the other may be anything.
        Value *none =
            code.CreateOr(code.CreateICmpEQ(u.rows, code.getInt64(0)), code.CreateICmpEQ(times, code.getInt64(0)));
        Value *rows = code.CreateSelect(none, code.getInt64(1), u.rows);
        times = code.CreateSelect(none, code.getInt64(0), times);
#if LLVM_VERSION_MAJOR >= 20
        auto [body, row] = SplitBlockAndInsertSimpleForLoop(rows, u.at->getIterator());
#else
        auto [body, row] = SplitBlockAndInsertSimpleForLoop(rows, u.at);
#endif
        code.SetInsertPoint(body);
        code.SetCurrentDebugLocation(u.location);
        start = code.CreateGEP(code.getInt8Ty(), start, code.CreateMul(row, u.row_stride));
    }
    call(code, HW_ABI_RANGE, {start, u.other, times, reads, writes});
}

void emitter::emit(const update &u)
{
    Value *shared = plane;
    if (!plane && u.what != update::field)
        plane = load_plane(u.at);
    if (by_words() && u.what != update::field) {
        emit_words(u, plane);
        plane = shared;
        return;
    }
    IRBuilder<> code(u.at);
    code.SetCurrentDebugLocation(u.location);
    auto length = [&] { return code.CreateZExtOrTrunc(u.times, word); };
    switch (u.what) {
    case update::cell:
        emit_cell(code, u);
        break;
    case update::range:
    case update::grid:
        emit_range(code, u);
        break;
    case update::crossing: {
        Value *last = code.CreateConstGEP1_64(code.getInt8Ty(), u.pointer, u.bytes - 1);
        Value *index = granule_of(code, last);
        Value *crosses = code.CreateZExt(code.CreateICmpNE(index, granule_of(code, u.pointer)), word);
        count(code, index, u.reads ? crosses : nullptr, u.writes ? crosses : nullptr);
        break;
    }
    case update::lanes:
    case update::gather:
    case update::packed:
        emit_lanes(code, u);
        break;
    case update::field:
        emit_field(code, u);
        break;
    case update::touch:
        call(code, HW_ABI_TOUCH, {u.pointer, length(), code.getInt64(u.reads), code.getInt64(u.writes)});
        break;
    case update::copy:
        call(code, HW_ABI_COPY, {u.pointer, u.other, length()});
        break;
    }
    plane = shared;
}

// The counted function writes to memory now, and reads thread-local memory; what was found out before no longer holds,
// and with link-time optimisation passes to come would go by it.
void forget_memory_effects(Function &f)
{
    f.removeFnAttr(Attribute::Memory);
    f.removeFnAttr(Attribute::Speculatable);
    for (User *user : f.users())
        if (CallBase *call = dyn_cast<CallBase>(user))
            call->removeFnAttr(Attribute::Memory);
}

} // namespace

// As assembly: a load, an operation and a store would be three instructions without optimisation, and with link-time
// optimisation passes to come would keep the counter in a register through a loop. Bytes saturate when they are added
// to: 255 stays, even if another thread comes in between.
void update_memory(IRBuilderBase &code, const char *operation, Value *address, Value *number)
{
    Type *type = number->getType();
    unsigned bits = type->getIntegerBitWidth();
    const char *suffix = bits == 8 ? "b" : bits == 16 ? "w" : bits == 32 ? "l" : "q";
    std::string text = std::string(operation) + suffix + " $1, $0";
    if (bits == 8 && StringRef(operation) == "add")
        text += "\n\tjae 1f\n\tmovb $$255, $0\n1:";
    std::string constraints = std::string("=*m,") +
                              (bits == 8    ? "qi"
                               : bits == 64 ? "re"
                                            : "ri") +
                              ",*m,~{dirflag},~{fpsr},~{flags}";
    FunctionType *shape = FunctionType::get(code.getVoidTy(), {address->getType(), type, address->getType()}, false);
    CallInst *call = code.CreateCall(InlineAsm::get(shape, text, constraints, false), {address, number, address});
    Attribute element = Attribute::get(code.getContext(), Attribute::ElementType, type);
    call->addParamAttr(0, element);
    call->addParamAttr(2, element);
    call->setMemoryEffects(MemoryEffects::argMemOnly());
    call->setDoesNotThrow();
    call->setMetadata(LLVMContext::MD_nosanitize, MDNode::get(code.getContext(), {}));
}

Value *granule_index(IRBuilderBase &code, Value *pointer, const DataLayout &layout)
{
    // An offset that cannot lead out of the granule of what it is added to does not matter.
    APInt offset(64, 0);
    Value *base = pointer->stripAndAccumulateConstantOffsets(layout, offset, true);
    if (base != pointer && offset.isNonNegative() && base->getType()->isPointerTy() &&
        offset.ult(std::min<uint64_t>(options().granule, base->getPointerAlignment(layout).value())))
        pointer = base;
    return code.CreateLShr(code.CreatePtrToInt(pointer, code.getInt64Ty()), Log2_32(options().granule));
}

void emit_updates(Function &f, FunctionAnalysisManager &analyses, update_list &updates)
{
    DominatorTree &tree = analyses.getResult<DominatorTreeAnalysis>(f);
    for (update &u : updates)
        if (!u.dead && !tree.isReachableFromEntry(u.at->getParent()))
            u.dead = true;
    emitter code(f);
    code.place_plane(tree, &analyses.getResult<LoopAnalysis>(f), updates);
    for (const update &u : updates)
        if (!u.dead)
            code.emit(u);
    forget_memory_effects(f);
}

} // namespace hw
