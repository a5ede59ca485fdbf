// field_resolve.cpp - the late step: which struct, and where in it, the accesses are that optimisation has left.
//
// In this order: the mark of the early step; what stands at the same place of the source, if that is one thing; the
// struct path of the type-based alias analysis; another access to the same object that is known; what the debugging
// information says of the pointer.
#include "fields.h"
#include "order.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DebugProgramInstruction.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace hw
{

namespace
{

struct object {
    int64_t offset;
    DICompositeType *root;
    const MDNode *around;
};

class resolver
{
    Function &f;
    early_facts &facts;
    type_table &types;
    const DataLayout &layout;
    access_list list;
    std::map<std::vector<uint64_t>, SmallVector<object, 2>> objects; // by base and terms
    std::set<std::vector<uint64_t>> scalars;                         // the same, of no struct
    DenseMap<const Value *, DIType *> variables;                     // values of local variables: what they lead to
    DenseMap<const Value *, place> loaded;                           // where loads are from

    void add(Instruction &i, Value *pointer, uint64_t bytes, bool reads, bool writes, Value *times = nullptr,
             bool source = false);
    void add_memory(AnyMemIntrinsic &call);
    void add_masked(IntrinsicInst &call, bool write, Value *pointer);
    void add_operands(CallBase &call);
    void find_accesses();
    place standing_at(const Instruction &i, uint64_t bytes, bool write) const;
    void collect_variables();
    bool by_location(field_access &access);
    bool by_tag(field_access &access, bool *scalar);
    bool at_scalars(const field_access &access) const;
    bool by_object(field_access &access);
    bool by_variable(field_access &access);
    place of_base(const Value *base, unsigned depth);
    place place_in(place at, int64_t offset, const field_access &access);
    void find_around(field_access &access);
    void note(const field_access &access);
    std::vector<uint64_t> key_of(const field_access &access) const
    {
        std::vector<uint64_t> key = access.terms;
        key.push_back(uint64_t(uintptr_t(access.base)));
        return key;
    }

  public:
    resolver(Function &f, early_facts &facts)
        : f(f), facts(facts), types(*facts.types), layout(f.getParent()->getDataLayout())
    {
    }
    access_list run();
};

// ---- finding ----

void resolver::add(Instruction &i, Value *pointer, uint64_t bytes, bool reads, bool writes, Value *times, bool source)
{
    reads &= options().reads;
    writes &= options().writes;
    if ((!reads && !writes) || (pointer->getType()->isPointerTy() && !is_counted_pointer(pointer)))
        return;
    field_access access;
    access.at = &i;
    access.pointer = pointer;
    access.bytes = bytes;
    access.times = times;
    access.reads = reads;
    access.writes = writes;
    access.source = source;
    access.what = marked_place(i, source);
    if (pointer->getType()->isPointerTy()) {
        address a = decompose(pointer, layout);
        access.base = a.base;
        access.offset = a.offset;
        for (const address::term &term : a.terms) {
            access.terms.push_back(uint64_t(uintptr_t(term.variable)));
            access.terms.push_back(term.how);
            access.terms.push_back(term.scale);
        }
    }
    list.push_back(access);
}

void resolver::add_memory(AnyMemIntrinsic &call)
{
    const ConstantInt *constant = dyn_cast<ConstantInt>(call.getLength());
    uint64_t bytes = constant ? constant->getZExtValue() : 0;
    Value *length = constant ? nullptr : call.getLength();
    if (constant && !bytes)
        return;
    if (AnyMemTransferInst *transfer = dyn_cast<AnyMemTransferInst>(&call))
        add(call, transfer->getRawSource(), bytes, true, false, length, true);
    add(call, call.getRawDest(), bytes, false, true, length, false);
}

void resolver::add_masked(IntrinsicInst &call, bool write, Value *pointer)
{
    uint64_t lane_bytes;
    if (Value *mask = mask_of(call, write, lane_bytes))
        add(call, pointer, lane_bytes, !write, write, mask);
}

void resolver::add_operands(CallBase &call)
{
    operand_list operands;
    find_operands(call, operands);
    for (const memory_operand &one : operands)
        add(call, one.pointer, one.bytes, one.reads, one.writes, one.mask);
}

void resolver::find_accesses()
{
    for (BasicBlock *block : ReversePostOrderTraversal<Function *>(&f))
        for (Instruction &i : *block) {
            if (i.hasMetadata(LLVMContext::MD_nosanitize))
                continue;
            if (plain_access one = plain_access_of(i); one.type) {
                uint64_t bytes = layout.getTypeStoreSize(one.type).getKnownMinValue();
                if (isa<LoadInst>(i) && one.type->isPointerTy()) { // also of a variable, which is not counted
                    place from = marked_place(i, false);
                    loaded[&i] = from.known ? from : standing_at(i, bytes, false);
                }
                if (!one.reads || !one.writes || options().atomics)
                    add(i, one.pointer, bytes, one.reads, one.writes);
            } else if (AnyMemIntrinsic *memory = dyn_cast<AnyMemIntrinsic>(&i)) {
                add_memory(*memory);
            } else if (IntrinsicInst *intrinsic = dyn_cast<IntrinsicInst>(&i)) {
                Intrinsic::ID id = intrinsic->getIntrinsicID();
                if (id == Intrinsic::masked_load || id == Intrinsic::masked_gather)
                    add_masked(*intrinsic, false, intrinsic->getArgOperand(0));
                else if (id == Intrinsic::masked_store || id == Intrinsic::masked_scatter)
                    add_masked(*intrinsic, true, intrinsic->getArgOperand(1));
                else
                    add_operands(*intrinsic);
            } else if (CallBase *call = dyn_cast<CallBase>(&i)) {
                if (call->isInlineAsm())
                    add_operands(*call);
                for (unsigned n = 0; n < call->arg_size(); n++) { // the copy onto the callee's stack is made here
                    StructType *type =
                        call->isByValArgument(n) ? dyn_cast<StructType>(call->getParamByValType(n)) : nullptr;
                    DICompositeType *root = type ? types.by_llvm_type(type, layout.getTypeAllocSize(type)) : nullptr;
                    if (!root || !is_counted_pointer(call->getArgOperand(n)))
                        continue;
                    add(i, call->getArgOperand(n), size_of(root), true, false);
                    list.back().what = {root, 0, false, true, root};
                }
            }
        }
}

// ---- what is known of pointers ----

void resolver::collect_variables()
{
    auto note = [this](Value *value, DILocalVariable *variable, DIExpression *expression) {
        if (!value || !variable || !value->getType()->isPointerTy() ||
            (expression && expression->getNumElements() != 0) || !is_pointer(variable->getType()))
            return;
        DIType *target = pointee(variable->getType());
        if (!target || target->getTag() == dwarf::DW_TAG_unspecified_type)
            return;
        auto [entry, fresh] = variables.try_emplace(value, target);
        if (fresh || entry->second == target)
            return;
        if (!entry->second || !as_composite(entry->second) || !as_composite(target))
            entry->second = entry->second && as_composite(target) ? target : entry->second;
        else
            entry->second = nullptr; // one pointer, several structs that it leads to
    };
    for (Instruction &i : instructions(f)) {
        for (DbgRecord &record : i.getDbgRecordRange())
            if (DbgVariableRecord *one = dyn_cast<DbgVariableRecord>(&record))
                if (one->isDbgValue() && one->getNumVariableLocationOps() == 1)
                    note(one->getVariableLocationOp(0), one->getVariable(), one->getExpression());
    }
}

place resolver::of_base(const Value *base, unsigned depth)
{
    auto variable = variables.find(base);
    if (variable != variables.end())
        return variable->second ? place_of_object(types, variable->second) : place();
    if (isa<LoadInst>(base)) {
        auto from = loaded.find(base);
        return from == loaded.end() ? place() : place_behind(types, from->second);
    }
    if (const GlobalVariable *global = dyn_cast<GlobalVariable>(base)) {
        SmallVector<DIGlobalVariableExpression *, 1> expressions;
        global->getDebugInfo(expressions);
        return expressions.size() == 1 ? place_of_object(types, expressions[0]->getVariable()->getType()) : place();
    }
    if (const CallBase *call = dyn_cast<CallBase>(base)) {
        const Function *callee = call->getCalledFunction();
        const DISubprogram *program = callee ? callee->getSubprogram() : nullptr;
        if (!program || !program->getType())
            return {};
        DITypeRefArray of = program->getType()->getTypeArray();
        DIType *target = of.size() ? pointee(of[0]) : nullptr;
        return target ? place_of_object(types, target) : place();
    }
    if (const PHINode *phi = dyn_cast<PHINode>(base)) { // a list that is walked: what it begins with
        for (const Value *value : phi->incoming_values())
            if (depth < 4 && !isa<PHINode>(value) && !isa<Constant>(value)) {
                place one = of_base(value, depth + 1);
                if (one.known)
                    return one;
            }
    }
    return {};
}

// ---- resolving ----

// ACCESS is OFFSET bytes behind the begin of what lies AT, a struct or an array of them. Unknown: it cannot be.
place resolver::place_in(place at, int64_t offset, const field_access &access)
{
    int64_t size = int64_t(size_of(at.root));
    bool moves = false; // within the object
    for (size_t i = 2; i < access.terms.size() && size; i += 3)
        moves |= int64_t(access.terms[i]) % size != 0;
    if (!size || offset < 0 || (moves && offset >= size) ||
        (offset >= size && access.terms.empty() && offset % size + int64_t(access.bytes) > size))
        return {};
    uint64_t begin;
    at.offset = uint64_t(offset % size);
    DIType *element = array_at(types, at.root, at.offset, &begin);
    DICompositeType *composite = types.definition(as_composite(element));
    uint64_t step = composite ? size_of(composite) : 0;
    if (step && access.bytes && access.bytes <= step)
        return place_in(place_of_element(types, at, begin, composite), int64_t((at.offset - begin) % step), access);
    if (moves && !element)
        return {};
    at.offset = moves ? begin : at.offset;
    at.dynamic = moves;
    return at;
}

// What all accesses of the source are to that stand where I does, if that is one thing.
place resolver::standing_at(const Instruction &i, uint64_t bytes, bool write) const
{
    if (!i.getDebugLoc() || !bytes)
        return {};
    auto found = facts.by_location.find(location_key(i, bytes, write));
    return found == facts.by_location.end() ? place() : found->second;
}

bool resolver::by_location(field_access &access)
{
    place what = standing_at(*access.at, access.bytes, access.writes && !access.reads);
    if (what.known)
        access.what = what;
    return what.known;
}

// Nothing that stands at this place of the source is an access to a struct: bytes that became a word, for one.
bool resolver::at_scalars(const field_access &access) const
{
    if (!access.at->getDebugLoc())
        return false;
    auto found = facts.scalar_positions.find(position_key(*access.at));
    return found != facts.scalar_positions.end() && found->second;
}

bool resolver::by_tag(field_access &access, bool *scalar)
{
    const MDNode *tag = access.at->getMetadata(LLVMContext::MD_tbaa);
    if (!tag || tag->getNumOperands() < 3)
        return false;
    const MDNode *base = dyn_cast_or_null<MDNode>(tag->getOperand(0));
    const MDNode *member = dyn_cast_or_null<MDNode>(tag->getOperand(1));
    const MDString *name = base && base->getNumOperands() ? dyn_cast_or_null<MDString>(base->getOperand(0)) : nullptr;
    const ConstantInt *offset = mdconst::dyn_extract_or_null<ConstantInt>(tag->getOperand(2));
    if (!name || !offset)
        return false;
    if (base == member || base->getNumOperands() < 4) {
        *scalar = name->getString() != "omnipotent char";
        return false;
    }
    DICompositeType *root = types.by_tbaa_name(name->getString(), base);
    if (!root || offset->getZExtValue() >= size_of(root))
        return false;
    access.what = {root, offset->getZExtValue(), false, true, nullptr};
    return true;
}

bool resolver::by_object(field_access &access)
{
    if (!access.base)
        return false;
    auto found = objects.find(key_of(access));
    if (found == objects.end())
        return false;
    for (const object &one : found->second) {
        int64_t inside = access.offset - one.offset;
        if (inside >= 0 && inside + int64_t(access.bytes) <= int64_t(size_of(one.root))) {
            access.what = {one.root, uint64_t(inside), false, true, nullptr, one.around};
            return true;
        }
    }
    return false;
}

bool resolver::by_variable(field_access &access)
{
    place base = access.base ? of_base(access.base, 0) : place();
    if (base.known && !base.root)
        access.what.known = true;
    if (!base.known || !base.root)
        return false;
    place what = place_in(base, int64_t(base.offset) + access.offset, access);
    access.what = what.known ? what : access.what;
    return what.known;
}

// A struct path says nothing of the struct whose array the one with the field is an element of: the pointer may.
void resolver::find_around(field_access &access)
{
    place base = access.base ? of_base(access.base, 0) : place();
    if (!base.known || !base.root)
        return;
    place what = place_in(base, int64_t(base.offset) + access.offset, access);
    if (what.root == access.what.root && what.offset == access.what.offset && what.dynamic == access.what.dynamic)
        access.what.around = what.around;
}

// What is known of an access helps with others.
void resolver::note(const field_access &access)
{
    if (!access.what.known)
        return;
    if (isa<LoadInst>(access.at))
        loaded[access.at] = access.what;
    if (access.base && !access.what.root)
        scalars.insert(key_of(access));
    if (!access.base || !access.what.root || access.what.dynamic)
        return;
    SmallVector<object, 2> &here = objects[key_of(access)];
    object one = {access.offset - int64_t(access.what.offset), access.what.root, access.what.around};
    for (const object &other : here)
        if (other.offset == one.offset && other.root == one.root)
            return;
    here.push_back(one);
}

access_list resolver::run()
{
    find_accesses();
    collect_variables();
    std::vector<bool> scalar(list.size());
    for (size_t n = 0; n < list.size(); n++) {
        bool is_scalar = false;
        if (!list[n].what.known && !by_location(list[n]) && by_tag(list[n], &is_scalar))
            find_around(list[n]);
        scalar[n] = is_scalar;
        note(list[n]);
    }
    // Also those that are of no struct as far as their own types go: "*p" where p has turned out to be &s->field.
    for (int round = 0; round < 2; round++)
        for (size_t n = 0; n < list.size(); n++)
            if (!list[n].what.root && (by_object(list[n]) || by_variable(list[n])))
                note(list[n]);
    for (size_t n = 0; n < list.size(); n++) {
        field_access &access = list[n];
        access.object_offset = access.offset - int64_t(access.what.offset);
        if (!access.what.known)
            access.what.known = scalar[n] || (access.base && scalars.count(key_of(access))) || at_scalars(access);
    }
    return std::move(list);
}

} // namespace

access_list resolve_fields(Function &f, early_facts &facts)
{
    return resolver(f, facts).run();
}

} // namespace hw
