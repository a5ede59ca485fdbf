// operations.cpp - memory that intrinsics of the machine and assembly access.
//
// LLVM's loads, stores and its own intrinsics are accesses.cpp's. What is here are calls that become one instruction
// each: masked moves, gathers, scatters, unaligned loads, stores past the cache, atomics, saved states, and statements
// of assembly with memory operands. What cannot be seen is counted, so that the report can say how much it is.
#include "pass.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace hw
{

namespace
{

enum access_kind { ignored, reads_one, writes_one, updates_one, reads_bytes, writes_bytes, masked, scattered, unseen };

// By the beginning of the name behind "llvm.x86.", the longer before the shorter. BYTES 0: of the type that is loaded
// or stored. What is not here and takes no pointer accesses nothing.
const struct {
    const char *name;
    access_kind kind;
    unsigned bytes;
} machine[] = {
    {"aadd", updates_one, 0},
    {"aand", updates_one, 0},
    {"aesdec128kl", reads_bytes, 48},
    {"aesdec256kl", reads_bytes, 64},
    {"aesdecwide128kl", reads_bytes, 48},
    {"aesdecwide256kl", reads_bytes, 64},
    {"aesenc128kl", reads_bytes, 48},
    {"aesenc256kl", reads_bytes, 64},
    {"aesencwide128kl", reads_bytes, 48},
    {"aesencwide256kl", reads_bytes, 64},
    {"aor", updates_one, 0},
    {"atomic.", updates_one, 0},
    {"avx.ldu", reads_one, 0},
    {"avx.mask", masked, 0},
    {"avx10.vmovrs", reads_one, 0},
    {"avx2.gather", scattered, 0},
    {"avx2.mask", masked, 0},
    {"avx512.gatherpf", ignored, 0},
    {"avx512.gather", scattered, 0},
    {"avx512.mask.gather", scattered, 0},
    {"avx512.mask.pmov", masked, 0},
    {"avx512.mask.scatter", scattered, 0},
    {"avx512.scatterpf", ignored, 0},
    {"avx512.scatter", scattered, 0},
    {"axor", updates_one, 0},
    {"cldemote", ignored, 0},
    {"clflush", ignored, 0},
    {"clrssbsy", ignored, 0},
    {"clwb", ignored, 0},
    {"clzero", writes_bytes, 64},
    {"cmpccxadd", updates_one, 0},
    {"directstore", writes_one, 0},
    {"enqcmd", reads_bytes, 64}, // the second pointer; the first is a device
    {"fxrstor", reads_bytes, 512},
    {"fxsave", writes_bytes, 512},
    {"invpcid", reads_bytes, 16},
    {"ldtilecfg", reads_bytes, 64},
    {"llwpcb", ignored, 0},
    {"mmx.maskmovq", masked, 0},
    {"mmx.movnt", writes_one, 0},
    {"monitor", ignored, 0},
    {"movdir64b", reads_bytes, 64}, // the second pointer; the first is written
    {"movrs", reads_one, 0},
    {"prefetch", ignored, 0},
    {"rstorssp", ignored, 0},
    {"seh.", ignored, 0},
    {"sse.ldmxcsr", reads_one, 4},
    {"sse.stmxcsr", writes_one, 4},
    {"sse2.clflush", ignored, 0},
    {"sse2.maskmov", masked, 0},
    {"sse3.ldu", reads_one, 0},
    {"sse3.monitor", ignored, 0},
    {"sttilecfg", writes_bytes, 64},
    {"tile", unseen, 0}, // how large a tile is says the configuration
    {"umonitor", ignored, 0},
    {"vbcstne", reads_one, 2},
    {"vcvtne", reads_one, 0},
    {"wrss", ignored, 0},
    {"wruss", ignored, 0},
    {"xrstor", reads_bytes, 576}, // at least: which parts are there says the machine
    {"xsave", writes_bytes, 576},
};

// The pointers among the arguments: the last one comes first where there are two.
Value *pointer_of(const CallBase &call, unsigned nth = 0)
{
    Value *found[2] = {nullptr, nullptr};
    for (Value *argument : call.args())
        if (argument->getType()->isPointerTy()) {
            found[1] = found[0];
            found[0] = argument;
        }
    return found[nth];
}

bool is_machines(const CallBase &call, StringRef &name)
{
    const Function *callee = call.getCalledFunction();
    name = callee ? callee->getName() : StringRef();
    return name.consume_front("llvm.x86.");
}

class operand_finder
{
    CallBase &call;
    operand_list &list;
    const DataLayout &layout;
    IRBuilder<> code;

    unsigned lanes_of(const Value *vector)
    {
        const FixedVectorType *type = dyn_cast<FixedVectorType>(vector->getType());
        return type ? type->getNumElements() : 0;
    }
    uint64_t bytes_of(Type *type)
    {
        return layout.getTypeStoreSize(type).getKnownMinValue();
    }
    Value *mask_of(Value *value, unsigned lanes);
    void add(update::kind what, Value *pointer, uint64_t bytes, bool reads, bool writes, Value *mask = nullptr)
    {
        list.push_back({what, pointer, bytes, reads, writes, mask});
    }
    void add_bytes(Value *pointer, uint64_t bytes, bool reads, bool writes)
    {
        if (pointer)
            add(update::touch, pointer, bytes, reads, writes);
    }
    void add_masked(StringRef name);
    void add_scattered(StringRef name);
    void add_one(StringRef name, uint64_t bytes, bool reads, bool writes);
    bool add_machines(StringRef name);
    bool add_assembly(const InlineAsm &assembly);

  public:
    operand_finder(CallBase &call, operand_list &list)
        : call(call), list(list), layout(call.getModule()->getDataLayout()), code(&call)
    {
    }
    bool find();
};

// <LANES x i1> of a mask: bits of a number, or sign bits of elements.
Value *operand_finder::mask_of(Value *value, unsigned lanes)
{
    Type *bits = FixedVectorType::get(code.getInt1Ty(), lanes);
    if (value->getType()->isIntegerTy()) {
        value = code.CreateTrunc(value, code.getIntNTy(std::min(lanes, value->getType()->getIntegerBitWidth())));
        return lanes == value->getType()->getIntegerBitWidth() ? code.CreateBitCast(value, bits) : nullptr;
    }
    unsigned have = lanes_of(value);
    if (!have || have < lanes)
        return nullptr;
    if (!value->getType()->getScalarType()->isIntegerTy(1)) {
        Type *numbers =
            FixedVectorType::get(code.getIntNTy(unsigned(layout.getTypeSizeInBits(value->getType()) / have)), have);
        value = code.CreateICmpSLT(code.CreateBitCast(value, numbers), Constant::getNullValue(numbers));
    }
    if (have == lanes)
        return value;
    SmallVector<int, 16> first;
    for (unsigned lane = 0; lane < lanes; lane++)
        first.push_back(int(lane));
    return code.CreateShuffleVector(value, first);
}

// avx.maskload(pointer, mask), …maskstore(pointer, mask, data), maskmov(data, mask, pointer), pmov(pointer, data,
// mask).
void operand_finder::add_masked(StringRef name)
{
    bool write = !name.contains("maskload");
    Value *pointer = pointer_of(call), *mask = call.getArgOperand(1);
    unsigned lanes = lanes_of(mask);
    uint64_t bytes = lanes ? bytes_of(mask->getType()) / lanes : 0;
    if (name.contains(".pmov")) { // "qb": from 64 bits to bytes
        StringRef sizes = name.drop_front(name.find("pmov")).split('.').second;
        bytes = sizes.size() < 2 ? 0 : sizes[1] == 'b' ? 1 : sizes[1] == 'w' ? 2 : 4;
        mask = call.getArgOperand(2);
    } else if (name.contains("maskmov")) {
        lanes = unsigned(bytes_of(mask->getType()));
        mask = code.CreateBitCast(mask, FixedVectorType::get(code.getInt8Ty(), lanes));
        bytes = 1;
    }
    if (Value *on = lanes && bytes ? mask_of(mask, lanes) : nullptr)
        add(update::lanes, pointer, bytes, !write, write, on);
}

// gather(source, pointer, index, mask, scale), scatter(pointer, mask, index, data, scale).
void operand_finder::add_scattered(StringRef name)
{
    bool write = name.contains("scatter");
    if (call.arg_size() != 5 || !isa<ConstantInt>(call.getArgOperand(4)))
        return;
    Value *index = call.getArgOperand(2), *mask = call.getArgOperand(write ? 1 : 3);
    Type *data = write ? call.getArgOperand(3)->getType() : call.getType();
    FixedVectorType *vector = dyn_cast<FixedVectorType>(data);
    unsigned lanes = vector ? std::min(lanes_of(index), vector->getNumElements()) : 0;
    Value *on = lanes ? mask_of(mask, lanes) : nullptr;
    if (!on)
        return;
    if (lanes < lanes_of(index)) {
        SmallVector<int, 16> first;
        for (unsigned lane = 0; lane < lanes; lane++)
            first.push_back(int(lane));
        index = code.CreateShuffleVector(index, first);
    }
    Type *wide = FixedVectorType::get(code.getInt64Ty(), lanes);
    uint64_t scale = cast<ConstantInt>(call.getArgOperand(4))->getZExtValue();
    Value *distance = code.CreateMul(code.CreateSExt(index, wide), ConstantInt::get(wide, scale));
    Value *pointers = code.CreateGEP(code.getInt8Ty(), pointer_of(call), distance);
    add(update::gather, pointers, bytes_of(vector->getElementType()), !write, write, on);
}

// BYTES 0: of the number that is handed over or comes back.
void operand_finder::add_one(StringRef name, uint64_t bytes, bool reads, bool writes)
{
    for (Value *argument : call.args())
        if (!bytes && writes && !argument->getType()->isPointerTy() && !isa<ConstantInt>(argument))
            bytes = bytes_of(argument->getType());
    if (!bytes && !call.getType()->isVoidTy())
        bytes = bytes_of(call.getType());
    for (Value *argument : call.args())
        if (!bytes && !argument->getType()->isPointerTy())
            bytes = bytes_of(argument->getType());
    add(update::cell, pointer_of(call), bytes ? bytes : 1, reads, writes);
}

access_kind kind_of(StringRef name, unsigned *bytes)
{
    for (const auto &one : machine)
        if (name.starts_with(one.name)) {
            *bytes = one.bytes;
            return one.kind;
        }
    return unseen;
}

bool operand_finder::add_machines(StringRef name)
{
    unsigned bytes = 0;
    Value *first = pointer_of(call), *second = pointer_of(call, 1);
    if (!first || !call.mayReadOrWriteMemory())
        return true;
    if (!is_counted_pointer(first) && !(second && is_counted_pointer(second)))
        return true;
    switch (kind_of(name, &bytes)) {
    case ignored:
        return true;
    case reads_one:
        add_one(name, bytes, true, false);
        break;
    case writes_one:
        add_one(name, bytes, false, true);
        break;
    case updates_one:
        add_one(name, bytes, true, true);
        break;
    case reads_bytes:
        add_bytes(pointer_of(call), bytes, true, false);
        if (name.starts_with("movdir64b"))
            add_bytes(pointer_of(call, 1), bytes, false, true);
        break;
    case writes_bytes:
        add_bytes(pointer_of(call), bytes, false, true);
        break;
    case masked:
        add_masked(name);
        break;
    case scattered:
        add_scattered(name);
        break;
    case unseen:
        break;
    }
    return !list.empty();
}

// "m" operands are accessed once each, whatever their size, as by one instruction. Addresses in registers say nothing
// of what is done with them: they are unseen where the text looks like an access.
bool operand_finder::add_assembly(const InlineAsm &assembly)
{
    StringRef text = StringRef(assembly.getAsmString());
    if (text.trim().empty())
        return true; // only for the compiler: a barrier
    unsigned argument = 0;
    bool addresses = false;
    for (const InlineAsm::ConstraintInfo &one : assembly.ParseConstraints()) {
        if (one.Type == InlineAsm::isClobber || one.Type == InlineAsm::isLabel)
            continue;
        if (one.Type == InlineAsm::isOutput && !one.isIndirect)
            continue; // a value
        if (argument >= call.arg_size())
            break;
        Value *value = call.getArgOperand(argument);
        Type *type = call.getParamElementType(argument);
        argument++;
        if (one.isIndirect && type && value->getType()->isPointerTy()) {
            bool write = one.Type == InlineAsm::isOutput;
            if (is_counted_pointer(value))
                add(update::cell, value, std::max<uint64_t>(1, bytes_of(type)), !write, write);
        } else if (value->getType()->isPointerTy() && is_counted_pointer(value) && !isa<Function>(value)) {
            addresses = true;
        }
    }
    static const char *const strings[] = {"movs", "stos", "lods", "scas", "cmps", "xsave", "xrstor"};
    bool looks = text.contains('(') && !text.contains("(%rip)");
    for (const char *one : strings)
        looks |= text.contains(one);
    return !(addresses && looks);
}

bool operand_finder::find()
{
    StringRef name;
    if (const InlineAsm *assembly = dyn_cast<InlineAsm>(call.getCalledOperand()))
        return add_assembly(*assembly);
    if (is_machines(call, name))
        return add_machines(name);
    const IntrinsicInst *intrinsic = dyn_cast<IntrinsicInst>(&call);
    if (!intrinsic)
        return true;
    switch (intrinsic->getIntrinsicID()) { // which clang does not make for this machine
    case Intrinsic::vp_load:
    case Intrinsic::vp_store:
    case Intrinsic::vp_gather:
    case Intrinsic::vp_scatter:
    case Intrinsic::experimental_vp_strided_load:
    case Intrinsic::experimental_vp_strided_store:
    case Intrinsic::matrix_column_major_load:
    case Intrinsic::matrix_column_major_store:
        return false;
    default:
        return true;
    }
}

} // namespace

void find_operands(CallBase &call, operand_list &list)
{
    if (!operand_finder(call, list).find())
        call.setMetadata(unseen_operation, MDNode::get(call.getContext(), {}));
}

} // namespace hw
