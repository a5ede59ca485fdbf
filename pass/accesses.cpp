// accesses.cpp - finds what counts (abi.h, "What counts").
#include "pass.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace hw
{

namespace
{

// Memory intrinsics up to this constant length are counted inline: they touch two granules of 64 bytes at most.
const uint64_t inline_bytes = 64;

// Never the memory of a block or a global that reports show: the stack, thread-local variables, LLVM's own counters.
bool is_private_object(const Value *object)
{
    if (isa<AllocaInst>(object))
        return true;
    if (const Argument *argument = dyn_cast<Argument>(object))
        return argument->hasByValAttr() || argument->hasSwiftErrorAttr();
    if (const IntrinsicInst *intrinsic = dyn_cast<IntrinsicInst>(object))
        return intrinsic->getIntrinsicID() == Intrinsic::threadlocal_address;
    const GlobalVariable *global = dyn_cast<GlobalVariable>(object);
    if (!global)
        return false;
    return global->isThreadLocal() || global->getName().starts_with("__llvm") ||
           global->getName().starts_with("__prof") || global->getSection().starts_with("__llvm");
}

class access_finder
{
    update_list updates;
    const DataLayout &layout;

    update *add(update::kind what, Instruction &at, Value *pointer, bool reads, bool writes)
    {
        reads &= options().reads;
        writes &= options().writes;
        if (!reads && !writes)
            return nullptr;
        if (pointer->getType()->isPointerTy() && !is_counted_pointer(pointer))
            return nullptr;
        updates.emplace_back(what, &at, pointer, reads, writes);
        return &updates.back();
    }

    // One access of BYTES bytes.
    void add_access(Instruction &at, Value *pointer, uint64_t bytes, Align alignment, bool reads, bool writes)
    {
        update *u = bytes ? add(update::cell, at, pointer, reads, writes) : nullptr;
        if (u && by_words())
            u->spans.push_back({0, bytes, alignment.value(), u->reads != 0, u->writes != 0});
    }

    uint64_t bytes_of(Type *type) // scalable vectors: what they have at least
    {
        return layout.getTypeStoreSize(type).getKnownMinValue();
    }
    void add_span(Instruction &at, Value *pointer, uint64_t bytes, Align alignment, bool write);
    void add_masked(CallInst &call, update::kind what, bool write, Value *pointer);
    void add_intrinsic(IntrinsicInst &call);
    void add_memory_intrinsic(AnyMemIntrinsic &call);
    void add_operands(CallBase &call);

  public:
    access_finder(const DataLayout &layout) : layout(layout)
    {
    }
    update_list find(Function &f);
};

// BYTES bytes from POINTER, each granule once, without a call: the caller has seen to it that there are few.
void access_finder::add_span(Instruction &at, Value *pointer, uint64_t bytes, Align alignment, bool write)
{
    if (by_words()) {
        add_access(at, pointer, bytes, alignment, !write, write);
        return;
    }
    if (!add(update::cell, at, pointer, !write, write))
        return;
    uint64_t granule = options().granule;
    if (alignment.value() >= granule ? bytes <= granule
                                     : bytes == 1 || (isPowerOf2_64(bytes) && alignment.value() >= bytes))
        return; // one granule, wherever it lies
    add(update::crossing, at, pointer, !write, write)->bytes = bytes;
}

void access_finder::add_masked(CallInst &call, update::kind what, bool write, Value *pointer)
{
    uint64_t lane_bytes;
    Value *mask = mask_of(call, write, lane_bytes);
    if (!mask)
        return;
    if (update *u = add(what, call, pointer, !write, write)) {
        u->other = mask;
        u->bytes = uint32_t(lane_bytes);
    }
}

void access_finder::add_memory_intrinsic(AnyMemIntrinsic &call)
{
    Value *destination = call.getRawDest();
    Value *source = nullptr;
    Align source_alignment;
    if (AnyMemTransferInst *transfer = dyn_cast<AnyMemTransferInst>(&call)) {
        source = transfer->getRawSource();
        source_alignment = transfer->getSourceAlign().valueOrOne();
    }
    if (!options().writes || !is_counted_pointer(destination))
        destination = nullptr;
    if (source && (!options().reads || !is_counted_pointer(source)))
        source = nullptr;
    if (!destination && !source)
        return;
    ConstantInt *constant = dyn_cast<ConstantInt>(call.getLength());
    if (constant && constant->isZero())
        return;
    if (constant && constant->getZExtValue() <= (options().granule == 8 ? 8 : inline_bytes)) {
        uint64_t bytes = constant->getZExtValue();
        if (source)
            add_span(call, source, bytes, source_alignment, false);
        if (destination)
            add_span(call, destination, bytes, call.getDestAlign().valueOrOne(), true);
        return;
    }
    updates.emplace_back(source && destination ? update::copy : update::touch, &call,
                         destination ? destination : source, source != nullptr, destination != nullptr);
    updates.back().other = source;
    updates.back().times = call.getLength();
}

void access_finder::add_intrinsic(IntrinsicInst &call)
{
    if (AnyMemIntrinsic *memory = dyn_cast<AnyMemIntrinsic>(&call)) {
        add_memory_intrinsic(*memory);
        return;
    }
    switch (call.getIntrinsicID()) {
    case Intrinsic::masked_load:
        add_masked(call, update::lanes, false, call.getArgOperand(0));
        break;
    case Intrinsic::masked_store:
        add_masked(call, update::lanes, true, call.getArgOperand(1));
        break;
    case Intrinsic::masked_gather:
        add_masked(call, update::gather, false, call.getArgOperand(0));
        break;
    case Intrinsic::masked_scatter:
        add_masked(call, update::gather, true, call.getArgOperand(1));
        break;
    case Intrinsic::masked_expandload:
        add_masked(call, update::packed, false, call.getArgOperand(0));
        break;
    case Intrinsic::masked_compressstore:
        add_masked(call, update::packed, true, call.getArgOperand(1));
        break;
    default:
        add_operands(call);
    }
}

void access_finder::add_operands(CallBase &call)
{
    operand_list list;
    find_operands(call, list);
    for (const memory_operand &one : list) {
        if (one.what == update::cell) {
            add_access(call, one.pointer, one.bytes, Align(1), one.reads, one.writes);
        } else if (update *u = add(one.what, call, one.pointer, one.reads, one.writes)) {
            u->bytes = uint32_t(one.bytes);
            if (one.what == update::touch)
                u->times = ConstantInt::get(Type::getInt64Ty(call.getContext()), one.bytes);
            else
                u->other = one.mask;
        }
    }
}

update_list access_finder::find(Function &f)
{
    for (Instruction &i : instructions(f)) {
        if (i.hasMetadata(LLVMContext::MD_nosanitize))
            continue;
        if (plain_access one = plain_access_of(i); one.type) {
            if (!one.reads || !one.writes || options().atomics)
                add_access(i, one.pointer, bytes_of(one.type), one.alignment, one.reads, one.writes);
        } else if (IntrinsicInst *intrinsic = dyn_cast<IntrinsicInst>(&i)) {
            add_intrinsic(*intrinsic);
        } else if (CallBase *call = dyn_cast<CallBase>(&i)) {
            if (call->isInlineAsm())
                add_operands(*call);
            for (unsigned n = 0; n < call->arg_size(); n++) { // the copy onto the callee's stack is made here
                if (!call->isByValArgument(n))
                    continue;
                uint64_t bytes = layout.getTypeAllocSize(call->getParamByValType(n));
                if (update *u = bytes ? add(update::touch, i, call->getArgOperand(n), true, false) : nullptr)
                    u->times = ConstantInt::get(Type::getInt64Ty(i.getContext()), bytes);
            }
        }
    }
    return std::move(updates);
}

} // namespace

bool is_counted_pointer(const Value *pointer)
{
    if (pointer->getType()->getPointerAddressSpace() != 0 || pointer->isSwiftError())
        return false;
    SmallVector<const Value *, 4> objects;
    getUnderlyingObjects(pointer, objects, nullptr, 8);
    for (const Value *object : objects)
        if (!is_private_object(object))
            return true;
    return objects.empty();
}

plain_access plain_access_of(Instruction &i)
{
    if (LoadInst *load = dyn_cast<LoadInst>(&i))
        return {load->getPointerOperand(), load->getType(), load->getAlign(), true, false};
    if (StoreInst *store = dyn_cast<StoreInst>(&i))
        return {store->getPointerOperand(), store->getValueOperand()->getType(), store->getAlign(), false, true};
    if (AtomicRMWInst *rmw = dyn_cast<AtomicRMWInst>(&i))
        return {rmw->getPointerOperand(), rmw->getType(), rmw->getAlign(), true, true};
    if (AtomicCmpXchgInst *exchange = dyn_cast<AtomicCmpXchgInst>(&i))
        return {exchange->getPointerOperand(), exchange->getNewValOperand()->getType(), exchange->getAlign(), true,
                true};
    return {nullptr, nullptr, Align(1), false, false};
}

Value *mask_of(CallBase &call, bool write, uint64_t &lane_bytes)
{
    Value *mask = nullptr; // versions differ: the last vector of i1 of a store, the first of a load
    Type *data = write ? call.getArgOperand(0)->getType() : call.getType();
    for (Value *argument : call.args())
        if (argument->getType()->isVectorTy() && argument->getType()->getScalarType()->isIntegerTy(1) &&
            (write || !mask))
            mask = argument;
    FixedVectorType *lanes = dyn_cast<FixedVectorType>(data);
    if (!mask || !lanes || (isa<Constant>(mask) && cast<Constant>(mask)->isNullValue()))
        return nullptr;
    lane_bytes = call.getModule()->getDataLayout().getTypeStoreSize(lanes->getElementType());
    return mask;
}

update_list find_accesses(Function &f)
{
    // Accesses that cannot be executed have no place in the dominator tree: emit.cpp drops their updates.
    return access_finder(f.getParent()->getDataLayout()).find(f);
}

} // namespace hw
