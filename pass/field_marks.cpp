// field_marks.cpp - the early step: before any optimisation, each access gets to know the struct and the offset that
// the source names.
//
// At that point clang's addresses still have types, every local variable lies in memory and has its declaration beside
// it: so it is known what a pointer leads to from where it is kept. The LLVM types of address computations decide where
// a cast has made it something else. What is known goes along as metadata, !heapwise.field, which optimisation drops
// where it merges accesses: for those there is a table by source location.
#include "fields.h"
#include "base/abi.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/DebugProgramInstruction.h"
#include "llvm/IR/GetElementPtrTypeIterator.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include <mutex>

using namespace llvm;

namespace hw
{

namespace
{

const char kind_name[] = "heapwise.field";
enum { is_dynamic = 1, is_known = 2, is_of_struct = 4 };
const unsigned mark_operands = 4; // of a place

class marker
{
    Module &m;
    early_facts &facts;
    type_table &types;
    const DataLayout &layout;
    unsigned kind;
    DenseMap<const Value *, DIType *> declared; // memory of a variable
    DenseMap<const Value *, place> known;
    DenseMap<const StructType *, DICompositeType *> exact; // LLVM types of variables with a declaration
    DenseMap<const AllocaInst *, place> kept;              // where what is kept in a pointer variable leads to

    void note_declaration(const Value *storage, const DIVariable *variable, const DIExpression *expression);
    void note_record(DbgVariableRecord &record);
    void collect_declarations();
    void collect_abi();
    DICompositeType *composite_of(StructType *type, const place &hint);
    bool is_made_of(const place &at, Type *element);
    bool step_over(place &at, Type *element, const ConstantInt *index);
    bool step_into_array(place &at, Type *element, const ConstantInt *index);
    bool step_into_struct(place &at, StructType *type, uint64_t index);
    place step(const GEPOperator *gep, unsigned depth);
    place find(const Value *pointer, unsigned depth);
    place result_of(const CallBase &call);
    place element_of_array(const CallBase &call, unsigned depth);
    place passed(const Argument *argument, unsigned depth);
    place kept_in(const AllocaInst *variable, unsigned depth);
    const MDNode *around_of(const place &declared, const place &kept) const;
    Metadata *number(uint64_t n)
    {
        return ConstantAsMetadata::get(ConstantInt::get(Type::getInt64Ty(m.getContext()), n));
    }
    void append(SmallVectorImpl<Metadata *> &operands, const place &what);
    void note_location(Instruction &i, const place &what, uint64_t bytes, bool write);
    void fix(DICompositeType *type, unsigned depth);
    bool is_length_of(const place &what, const Value *length) const;
    bool is_same_struct(const place &a, const place &b);
    bool is_of_compiler(const Value *memory) const;
    void note_copy(const Value *to, const Value *from, const Value *length, bool assigns);
    void note_bytes(const Value *pointer);
    void note_outside(const CallBase &call);
    void note_call(const CallBase &call);
    void note_escape(const Value *pointer);
    void mark(Instruction &i);

  public:
    marker(Module &m, early_facts &facts)
        : m(m), facts(facts), types(*facts.types), layout(m.getDataLayout()),
          kind(m.getContext().getMDKindID(kind_name))
    {
    }
    void run();
};

// ---- what variables are declared as ----

void marker::note_declaration(const Value *storage, const DIVariable *variable, const DIExpression *expression)
{
    if (!storage || !variable || (expression && expression->getNumElements() != 0))
        return;
    declared.try_emplace(storage, variable->getType());
    const AllocaInst *memory = dyn_cast<AllocaInst>(storage);
    const GlobalVariable *global = dyn_cast<GlobalVariable>(storage);
    Type *type = memory ? memory->getAllocatedType() : global ? global->getValueType() : nullptr;
    DICompositeType *composite = types.definition(as_composite(variable->getType()));
    StructType *llvm_type = dyn_cast_or_null<StructType>(type);
    if (composite && llvm_type && llvm_type->isSized() && layout.getTypeAllocSize(llvm_type) == size_of(composite))
        exact.try_emplace(llvm_type, composite);
}

// With optimisation clang describes memory by assignments, before we come.
void marker::note_record(DbgVariableRecord &record)
{
    if (record.isDbgDeclare())
        note_declaration(record.getAddress(), record.getVariable(), record.getExpression());
    else if (record.isDbgAssign() && record.getExpression()->getNumElements() == 0)
        note_declaration(record.getAddress(), record.getVariable(), record.getAddressExpression());
}

void marker::collect_declarations()
{
    for (GlobalVariable &global : m.globals()) {
        SmallVector<DIGlobalVariableExpression *, 1> expressions;
        global.getDebugInfo(expressions);
        for (DIGlobalVariableExpression *one : expressions)
            note_declaration(&global, one->getVariable(), one->getExpression());
    }
    for (Function &f : m)
        for (Instruction &i : instructions(f)) {
            for (DbgRecord &record : i.getDbgRecordRange())
                if (DbgVariableRecord *one = dyn_cast<DbgVariableRecord>(&record))
                    note_record(*one);
        }
}

// HEAPWISE_ABI(type) of <heapwise/heapwise.h> makes a pointer to the type and annotates it.
void marker::collect_abi()
{
    for (Value *value : annotated_with(m, HW_ABI_FIXED_LAYOUT)) {
        auto found = declared.find(value->stripPointerCasts());
        DICompositeType *type = found == declared.end() ? nullptr : as_composite(pointee(found->second));
        if (type)
            facts.struct_flags[types.definition(type)] |= HW_STRUCT_ABI;
    }
}

// ---- where pointers lead to ----

// The struct that clang had in mind when it wrote TYPE. HINT: what is known of the address.
DICompositeType *marker::composite_of(StructType *type, const place &hint)
{
    if (!type->isSized())
        return nullptr;
    auto found = exact.find(type);
    if (found != exact.end())
        return found->second;
    DICompositeType *result = types.by_llvm_type(type, layout.getTypeAllocSize(type));
    if (!result && hint.root && hint.offset == 0 && types.named_like(hint.root, type))
        result = hint.root; // a class as a base has another size; or there are several of this name
    return result;
}

// What lies AT is an ELEMENT, or the first of an array of them.
bool marker::is_made_of(const place &at, Type *element)
{
    while (ArrayType *array = dyn_cast<ArrayType>(element))
        element = array->getElementType();
    StructType *fields = dyn_cast<StructType>(element);
    if (!fields || !fields->isSized() || !at.root || at.offset || at.dynamic ||
        layout.getTypeAllocSize(fields) != size_of(at.root))
        return false;
    if (types.named_like(at.root, fields))
        return true;
    uint64_t begin;
    DICompositeType *named = composite_of(fields, place());
    DIType *first = array_at(types, at.root, 0, &begin); // which may be what is meant, if it is as large as all
    return named ? named == at.root : !first || size_of(first) != size_of(at.root);
}

// By INDEX elements on (nullptr: it is not known by how many): another object of the same kind, or one further inside
// an array. False: what lies there is not known.
bool marker::step_over(place &at, Type *element, const ConstantInt *index)
{
    uint64_t stride = element->isSized() ? layout.getTypeAllocSize(element).getFixedValue() : 0, begin;
    if ((index && index->isZero()) || !at.known || !at.root)
        return true;
    if (is_made_of(at, element) || (element->isStructTy() && at.offset == 0 && stride == size_of(at.root)))
        return true;
    if (DIType *inner = array_at(types, at.root, at.offset, &begin)) {
        DICompositeType *composite = types.definition(as_composite(inner));
        if (composite && stride != 1) {
            at = place_of_element(types, at, begin, composite);
        } else if (composite && index && index->getSExtValue() >= 0 && size_of(composite)) { // by hand
            uint64_t bytes = at.offset - begin + index->getZExtValue();
            at = place_of_element(types, at, begin, composite);
            at.offset = bytes % size_of(composite);
        } else {
            at.offset = begin;
            at.dynamic = true;
        }
        return true;
    }
    if (index && index->getSExtValue() >= 0 && at.offset + index->getZExtValue() * stride < size_of(at.root)) {
        at.offset += index->getZExtValue() * stride; // bytes, of a base class or by hand
        return true;
    }
    return stride == size_of(at.root) && at.offset == 0;
}

// To an ELEMENT of the array that the address is that of.
bool marker::step_into_array(place &at, Type *element, const ConstantInt *index)
{
    uint64_t begin;
    if (!at.known || is_made_of(at, element))
        return true;
    if (StructType *inner = dyn_cast<StructType>(element)) {
        uint64_t stride = inner->isSized() ? layout.getTypeAllocSize(inner).getFixedValue() : 0;
        DICompositeType *composite =
            at.root ? types.definition(as_composite(array_at(types, at.root, at.offset, &begin))) : nullptr;
        if (composite && size_of(composite) == stride) {
            at = place_of_element(types, at, begin, composite);
            return true;
        }
        composite = composite_of(inner, at);
        at = {types.definition(composite), 0, false, true, composite};
        return composite;
    }
    if (at.root && !(index && index->isZero() && element->isArrayTy())) {
        if (array_at(types, at.root, at.offset, &begin))
            at.offset = begin;
        at.dynamic = true;
    }
    return true;
}

// To a member of a struct, what lies there being known as one, or taken for one by a cast.
bool marker::step_into_struct(place &at, StructType *type, uint64_t index)
{
    auto wanted = [&](DICompositeType *candidate) {
        auto found = exact.find(type);
        return found != exact.end() ? found->second == candidate : types.named_like(candidate, type);
    };
    bool inside = at.known && at.root && !at.dynamic && contains(types, at.root, at.offset, wanted);
    if (!inside) {
        uint64_t begin;
        DICompositeType *element =
            at.root ? types.definition(as_composite(array_at(types, at.root, at.offset, &begin))) : nullptr;
        DICompositeType *composite = composite_of(type, at);
        if (element && wanted(element))
            at = place_of_element(types, at, begin, element);
        else if (composite && (!at.root || at.root != composite || at.offset))
            at = {composite, 0, false, true, composite};
        else if (!composite && !(at.root && (type->isLiteral() || !type->hasName())) &&
                 !(at.known && at.root && type->getName().contains("anon")))
            return false;
    }
    at.offset += layout.getStructLayout(type)->getElementOffset(unsigned(index)).getFixedValue();
    at.type = nullptr;
    return true;
}

place marker::step(const GEPOperator *gep, unsigned depth)
{
    place at = find(gep->getPointerOperand(), depth + 1);
    if (gep->getType()->isVectorTy())
        return {};
    bool first = true;
    for (gep_type_iterator index = gep_type_begin(gep), end = gep_type_end(gep); index != end; ++index, first = false) {
        const ConstantInt *constant = dyn_cast<ConstantInt>(index.getOperand());
        StructType *fields = index.getStructTypeOrNull();
        bool known = fields  ? step_into_struct(at, fields, constant->getZExtValue())
                     : first ? step_over(at, index.getIndexedType(), constant)
                             : step_into_array(at, index.getIndexedType(), constant);
        if (!known)
            return {};
    }
    if (at.root && at.offset >= std::max<uint64_t>(1, size_of(at.root)) && !at.dynamic) {
        uint64_t begin; // a flexible array lies behind the end
        if (!array_at(types, at.root, at.offset, &begin))
            return {};
        at.dynamic = true;
    }
    return at;
}

place marker::result_of(const CallBase &call)
{
    const Function *callee = call.getCalledFunction();
    const DISubprogram *program = callee ? callee->getSubprogram() : nullptr;
    if (!program || !program->getType())
        return {};
    DITypeRefArray list = program->getType()->getTypeArray();
    DIType *target = list.size() ? pointee(list[0]) : nullptr;
    return target ? place_of_object(types, target) : place();
}

static bool is_in_std(const DIScope *scope)
{
    for (; isa_and_nonnull<DINamespace>(scope); scope = scope->getScope())
        if (scope->getName() == "std" && !isa_and_nonnull<DINamespace>(scope->getScope()))
            return true;
    return false;
}

static bool is_std_array(const DIScope *type)
{
    return isa_and_nonnull<DICompositeType>(type) && type->getName().starts_with("array<") &&
           is_in_std(type->getScope());
}

// The array that a call leads into: the functions of std::array are what brackets are to an array. Else nullptr.
static const Value *std_array_of(const CallBase &call)
{
    const Function *callee = call.getCalledFunction();
    const DISubprogram *program = callee ? callee->getSubprogram() : nullptr;
    if (!program || !program->getType() || !call.arg_size() || !call.getType()->isPointerTy() ||
        !call.getArgOperand(0)->getType()->isPointerTy())
        return nullptr;
    DITypeRefArray list = program->getType()->getTypeArray();
    bool get = program->getName().starts_with("get<") && is_in_std(program->getScope()) && list.size() > 1 &&
               is_std_array(as_composite(pointee(list[1])));
    return get || is_std_array(program->getScope()) ? call.getArgOperand(0) : nullptr;
}

// What CALL returns the address of, if that is an element of a std::array which is a member of a struct.
place marker::element_of_array(const CallBase &call, unsigned depth)
{
    const Value *array = std_array_of(call);
    if (!array)
        return {};
    place at = find(array, depth + 1);
    const LoadInst *load = dyn_cast<LoadInst>(array);
    if (const AllocaInst *variable = load ? dyn_cast<AllocaInst>(load->getPointerOperand()) : nullptr) {
        place kept = kept_in(variable, depth + 1); // "for (point &p : o->points)" has a reference to the array
        at = kept.known ? kept : at;
    }
    uint64_t begin;
    bool nested = is_std_array(at.root) && at.around && !at.offset; // itself an element
    if (!at.known || !at.root || at.dynamic || (is_std_array(at.root) && !nested) ||
        !contains(types, at.root, at.offset, [](DICompositeType *type) { return is_std_array(type); }))
        return {};
    DIType *element = array_at(types, at.root, at.offset, &begin), *target = result_of(call).type;
    DICompositeType *composite = types.definition(as_composite(element));
    if (!element || (composite ? composite != types.definition(as_composite(target)) : element != target))
        return {};
    if (nested && composite) // the class and its only member are one array
        return {composite, 0, false, true, composite, at.around};
    if (composite)
        return place_of_element(types, at, begin, composite);
    if (!nested)
        return {at.root, begin, true, true, nullptr, at.around};
    enclosing outer = enclosing_at(at.around);
    return {outer.root, outer.offset, true, true, nullptr, outer.around};
}

// What all callers of a function that nobody else can call pass for ARGUMENT.
place marker::passed(const Argument *argument, unsigned depth)
{
    const Function *f = argument->getParent();
    place result;
    bool first = true;
    if (!f->hasLocalLinkage() || f->hasAddressTaken())
        return {};
    for (const User *user : f->users()) {
        const CallBase *call = dyn_cast<CallBase>(user);
        if (!call || call->getCalledFunction() != f || call->arg_size() <= argument->getArgNo())
            return {};
        place one = find(call->getArgOperand(argument->getArgNo()), depth + 1);
        result = first ? one : common_place(one, result);
        if (!result.known || !result.root)
            return {};
        first = false;
    }
    return result;
}

// A pointer variable that always leads to the same field, or moves within one array: "int *p = &s->field". What its
// own type says is less than that. Unknown if it may lead elsewhere.
place marker::kept_in(const AllocaInst *variable, unsigned depth)
{
    auto [entry, fresh] = kept.try_emplace(variable, place());
    if (!fresh)
        return entry->second;
    SmallVector<const Value *, 4> values;
    for (const User *user : variable->users()) {
        const StoreInst *store = dyn_cast<StoreInst>(user);
        if (store && store->getPointerOperand() == variable)
            values.push_back(store->getValueOperand());
        else if (!isa<LoadInst>(user) && !isa<LifetimeIntrinsic>(user))
            return {};
    }
    place result;
    bool moves = false, first = true;
    for (const Value *value : values) {
        const Value *from = value->stripInBoundsOffsets(); // p++
        const LoadInst *own = dyn_cast<LoadInst>(from);
        if (own && own->getPointerOperand() == variable) {
            moves |= from != value;
            continue;
        }
        if (isa<ConstantPointerNull>(value))
            continue;
        const Argument *argument = dyn_cast<Argument>(value);
        place one = argument ? passed(argument, depth + 1) : find(value, depth + 1);
        result = first ? one : common_place(one, result);
        if (!result.known || !result.root)
            return {};
        first = false;
    }
    uint64_t begin;
    auto type = declared.find(variable);
    bool over_elements = result.around && !result.offset && !result.dynamic && type != declared.end() &&
                         place_of_object(types, pointee(type->second)).root == result.root;
    if (moves && result.known && !over_elements) {
        DIType *element = array_at(types, result.root, result.offset, &begin);
        if (!element || as_composite(element))
            return {};
        result.offset = begin;
        result.dynamic = true;
    }
    kept[variable] = result;
    return result;
}

// What is around the struct that lies where a variable leads to: DECLARED by the type of the variable, KEPT in it.
const MDNode *marker::around_of(const place &declared, const place &kept) const
{
    uint64_t begin;
    if (!kept.known || !kept.root || declared.offset)
        return nullptr;
    if (kept.root == declared.root && !kept.offset && !kept.dynamic)
        return kept.around;
    DICompositeType *element = types.definition(as_composite(array_at(types, kept.root, kept.offset, &begin)));
    bool is_element = element && element == declared.root && (kept.dynamic || kept.offset == begin);
    return is_element ? place_of_element(types, kept, begin, element).around : nullptr;
}

place marker::find(const Value *pointer, unsigned depth)
{
    if (depth > 64 || !pointer->getType()->isPointerTy())
        return {};
    auto memory = declared.find(pointer);
    if (memory != declared.end())
        return place_of_object(types, memory->second);
    auto [entry, fresh] = known.try_emplace(pointer, place());
    if (!fresh)
        return entry->second;
    place result;
    if (const GEPOperator *gep = dyn_cast<GEPOperator>(pointer)) {
        result = step(gep, depth);
    } else if (const LoadInst *load = dyn_cast<LoadInst>(pointer)) {
        result = place_behind(types, find(load->getPointerOperand(), depth + 1));
        const AllocaInst *variable = dyn_cast<AllocaInst>(load->getPointerOperand());
        place kept = variable ? kept_in(variable, depth + 1) : place();
        if (result.root)
            result.around = around_of(result, kept);
        else if (kept.known)
            result = kept;
    } else if (const AllocaInst *variable = dyn_cast<AllocaInst>(pointer)) {
        StructType *type = dyn_cast<StructType>(variable->getAllocatedType());
        if (DICompositeType *composite = type ? composite_of(type, place()) : nullptr)
            result = {composite, 0, false, true, composite};
    } else if (const GlobalVariable *global = dyn_cast<GlobalVariable>(pointer)) { // of another translation unit
        Type *type = global->getValueType();
        while (ArrayType *array = dyn_cast<ArrayType>(type))
            type = array->getElementType();
        StructType *fields = dyn_cast<StructType>(type);
        DICompositeType *composite = fields ? composite_of(fields, place()) : nullptr;
        if (composite || !fields)
            result = {composite, 0, false, true, composite};
    } else if (const CallBase *call = dyn_cast<CallBase>(pointer)) {
        const IntrinsicInst *intrinsic = dyn_cast<IntrinsicInst>(call);
        const Value *same = call->getReturnedArgOperand();
        if (intrinsic && (intrinsic->getIntrinsicID() == Intrinsic::launder_invariant_group ||
                          intrinsic->getIntrinsicID() == Intrinsic::strip_invariant_group ||
                          intrinsic->getIntrinsicID() == Intrinsic::threadlocal_address))
            result = find(intrinsic->getArgOperand(0), depth + 1);
        else
            result = element_of_array(*call, depth);
        if (!result.known && !intrinsic)
            result = result_of(*call);
        if (!result.known && same)
            result = find(same, depth + 1);
    } else if (const Argument *argument = dyn_cast<Argument>(pointer)) {
        StructType *type = argument->hasByValAttr()       ? dyn_cast<StructType>(argument->getParamByValType())
                           : argument->hasStructRetAttr() ? dyn_cast<StructType>(argument->getParamStructRetType())
                                                          : nullptr;
        if (DICompositeType *composite = type ? composite_of(type, place()) : nullptr)
            result = {composite, 0, false, true, composite};
    } else if (const PHINode *phi = dyn_cast<PHINode>(pointer)) {
        bool first = true;
        for (const Value *value : phi->incoming_values()) {
            if (isa<ConstantPointerNull>(value) || isa<UndefValue>(value))
                continue;
            place one = find(value, depth + 1);
            result = first ? one : common_place(one, result);
            first = false;
        }
    } else if (const SelectInst *select = dyn_cast<SelectInst>(pointer)) {
        place one = find(select->getTrueValue(), depth + 1), other = find(select->getFalseValue(), depth + 1);
        if (isa<ConstantPointerNull>(select->getTrueValue()) || isa<ConstantPointerNull>(select->getFalseValue()))
            result = one.known ? one : other;
        else
            result = common_place(one, other);
    }
    known[pointer] = result;
    return result;
}

// ---- marks ----

void marker::append(SmallVectorImpl<Metadata *> &operands, const place &what)
{
    bool is_struct = what.known && what.root;
    operands.push_back(is_struct ? static_cast<Metadata *>(what.root) : what.known ? what.type : nullptr);
    operands.push_back(number(what.offset));
    operands.push_back(
        number((what.dynamic ? is_dynamic : 0) | (what.known ? is_known : 0) | (is_struct ? is_of_struct : 0)));
    operands.push_back(const_cast<MDNode *>(what.around));
}

void marker::note_location(Instruction &i, const place &what, uint64_t bytes, bool write)
{
    if (!i.getDebugLoc())
        return;
    auto [scalar, unseen] = facts.scalar_positions.try_emplace(position_key(i), true);
    scalar->second &= what.known && !what.root;
    auto [entry, fresh] = facts.by_location.try_emplace(location_key(i, bytes, write), what);
    if (!fresh)
        entry->second = common_place(entry->second, what);
}

// ---- what is done to a struct as a whole ----
//
// Assigning, passing, returning and clearing are compiled anew when members change places. Whoever takes a struct for
// bytes is not: a file, a socket, a hash, a comparison, a buffer. Its order is fixed, and that of what lies in it.

void marker::fix(DICompositeType *type, unsigned depth)
{
    type = types.definition(type);
    uint32_t &flags = facts.struct_flags[type];
    if (flags & HW_STRUCT_WHOLE || depth > 16)
        return;
    flags |= HW_STRUCT_WHOLE;
    for (DINode *node : type->getElements()) {
        DIDerivedType *part = dyn_cast_or_null<DIDerivedType>(node);
        if (!part || part->isStaticMember() ||
            (part->getTag() != dwarf::DW_TAG_member && part->getTag() != dwarf::DW_TAG_inheritance))
            continue;
        DIType *element = element_of(strip(part->getBaseType()));
        if (DICompositeType *inner = as_composite(element ? element : part->getBaseType()))
            fix(inner, depth + 1);
    }
}

// WHAT begins an object, and LENGTH is the size of one or of several.
bool marker::is_length_of(const place &what, const Value *length) const
{
    uint64_t size = what.known && what.root && what.offset == 0 && !what.dynamic ? size_of(what.root) : 0;
    const BinaryOperator *product = dyn_cast<BinaryOperator>(length);
    if (product && product->getOpcode() == Instruction::Mul)
        length = isa<ConstantInt>(product->getOperand(0)) ? product->getOperand(0) : product->getOperand(1);
    const ConstantInt *bytes = dyn_cast<ConstantInt>(length);
    return size && bytes && bytes->getValue().getActiveBits() <= 64 && !bytes->isZero() &&
           bytes->getZExtValue() % size == 0;
}

// One struct, or a member of the type of the other; none of a union, which gives its bytes another shape.
bool marker::is_same_struct(const place &a, const place &b)
{
    if (!a.known || !b.known || !a.root || !b.root)
        return false;
    if (a.root == b.root && a.offset == b.offset)
        return true;
    const place &outer = size_of(a.root) >= size_of(b.root) ? a : b, &inner = &outer == &a ? b : a;
    if (inner.offset || outer.dynamic || outer.root->getTag() == dwarf::DW_TAG_union_type ||
        !contains(types, outer.root, outer.offset, [&](DICompositeType *type) { return type == inner.root; }))
        return false;
    for (const field &one : types.describe(outer.root).fields)
        if ((one.flags & HW_FIELD_UNION) && one.offset >= outer.offset &&
            one.offset < outer.offset + size_of(inner.root))
            return false;
    return true;
}

// Memory that only the compiler knows: constants of initialisers, values on their way to a call or back.
bool marker::is_of_compiler(const Value *memory) const
{
    memory = memory->stripPointerCasts();
    if (const GlobalVariable *global = dyn_cast<GlobalVariable>(memory))
        return global->hasPrivateLinkage() && global->isConstant() && global->hasInitializer() &&
               !isa<ConstantDataSequential>(global->getInitializer()); // a string
    if (const Argument *argument = dyn_cast<Argument>(memory))
        return argument->hasByValAttr() || argument->hasStructRetAttr();
    const AllocaInst *variable = dyn_cast<AllocaInst>(memory);
    return variable && !variable->isArrayAllocation() && !isa<ArrayType>(variable->getAllocatedType()) &&
           !declared.count(variable);
}

// ASSIGNS: the source has an assignment there, which only copies between objects of one type.
void marker::note_copy(const Value *to, const Value *from, const Value *length, bool assigns)
{
    place places[] = {find(to, 0), find(from, 0)};
    bool compared = places[0].known && places[0].root && places[1].known && places[1].root;
    if (is_same_struct(places[0], places[1]) || (assigns && !compared) || is_of_compiler(to) || is_of_compiler(from))
        return;
    for (const place &one : places)
        if (is_length_of(one, length))
            fix(one.root, 0);
}

static bool is_byte(DIType *type)
{
    const DIBasicType *basic = type ? dyn_cast<DIBasicType>(strip(type)) : nullptr;
    return basic && basic->getSizeInBits() == 8 && basic->getEncoding() != dwarf::DW_ATE_boolean;
}

// POINTER is taken for one to a byte, or to the bytes of an array: a cast, if it leads to a struct.
void marker::note_bytes(const Value *pointer)
{
    place at = find(pointer, 0);
    if (!at.known || !at.root || at.offset || at.dynamic)
        return;
    for (const field &one : types.describe(at.root).fields) // not "p->name" where that comes first
        if (one.offset == 0 && (one.size == 1 || (one.flags & (HW_FIELD_ARRAY | HW_FIELD_FLEXIBLE))))
            return;
    fix(at.root, 0);
}

// What parameter NUMBER of the callee is declared as; nullptr: not known.
static DIType *parameter_of(const CallBase &call, unsigned number)
{
    const Function *callee = call.getCalledFunction();
    const DISubprogram *program = callee ? callee->getSubprogram() : nullptr;
    if (!program || !program->getType() || callee->hasStructRetAttr())
        return nullptr;
    DITypeRefArray list = program->getType()->getTypeArray();
    return list.size() > callee->arg_size() && number < callee->arg_size() ? list[number + 1] : nullptr;
}

// The bytes of what it is given are none of a function that allocates, frees or sorts.
static bool keeps_objects(StringRef name)
{
    return name.contains("alloc") || name.starts_with("_Zdl") || name.starts_with("_Zda") || name == "free_sized" ||
           name == "qsort" || name == "qsort_r" || name == "bsearch" || name == "memset" || name == "__memset_chk" ||
           name == "bzero" || name == "explicit_bzero";
}

// What goes to functions of other modules, which may be ones that do not count: field_table.cpp.
void marker::note_outside(const CallBase &call)
{
    const Function *callee = call.getCalledFunction();
    if (!callee || !callee->isDeclaration() || callee->isIntrinsic() || keeps_objects(callee->getName()) ||
        callee->getName() == "free" || callee->getName() == "__dynamic_cast" || callee->getName().starts_with("__cxa_"))
        return;
    for (unsigned i = 0; i < call.arg_size(); i++) {
        const Value *argument = call.getArgOperand(i);
        if (!argument->getType()->isPointerTy() || call.isByValArgument(i) ||
            isa<Constant>(argument->stripPointerCasts()))
            continue;
        DIType *parameter = parameter_of(call, i), *target = parameter ? pointee(parameter) : nullptr;
        DICompositeType *declared = target ? types.definition(as_composite(target)) : nullptr;
        place at = find(argument, 0);
        DICompositeType *own = at.known && at.root ? types.definition(at.root) : nullptr;
        // Of an address whose parameter is not known the whole object may be meant.
        bool typed = declared || (!parameter && i < callee->arg_size());
        if (declared || own)
            facts.outside[{declared ? declared : own, callee->getName().str()}] |= typed;
    }
}

void marker::note_call(const CallBase &call)
{
    StringRef name = call.getCalledFunction() ? call.getCalledFunction()->getName() : StringRef();
    note_outside(call);
    name.consume_back(".inline"); // of headers that check sizes
    if (keeps_objects(name))
        return;
    if ((name == "memcpy" || name == "memmove" || name == "mempcpy" || name == "__memcpy_chk" ||
         name == "__memmove_chk" || name == "__mempcpy_chk") &&
        call.arg_size() >= 3) {
        note_copy(call.getArgOperand(0), call.getArgOperand(1), call.getArgOperand(2), false);
        return;
    }
    for (unsigned i = 0; i < call.arg_size(); i++) {
        const Value *argument = call.getArgOperand(i);
        DIType *parameter = parameter_of(call, i), *target = parameter ? pointee(parameter) : nullptr;
        if (!argument->getType()->isPointerTy() || call.isByValArgument(i) ||
            call.paramHasAttr(i, Attribute::StructRet) || (target && as_composite(target)))
            continue;
        if (is_byte(target))
            note_bytes(argument);
        place at = find(argument, 0);
        for (const Use &length : call.args())
            if (is_length_of(at, length))
                fix(at.root, 0);
    }
}

// The address of a field, or of an element, goes into a call, into memory or back to a caller.
void marker::note_escape(const Value *pointer)
{
    place at = find(pointer, 0);
    const GEPOperator *gep = dyn_cast<GEPOperator>(pointer);
    bool is_field = gep ? isa<StructType>(gep->getSourceElementType()) && gep->getNumIndices() >= 2 : at.dynamic;
    if (!at.known || !at.root || (!is_field && !at.around))
        return;
    bool escapes = false;
    for (const Use &use : pointer->uses()) {
        const User *user = use.getUser();
        const CallBase *call = dyn_cast<CallBase>(user);
        const StoreInst *store = dyn_cast<StoreInst>(user);
        escapes |= (call && !isa<IntrinsicInst>(call) && call->isArgOperand(&use) && std_array_of(*call) != pointer) ||
                   (store && store->getValueOperand() == pointer) || isa<ReturnInst>(user) || isa<PtrToIntInst>(user);
    }
    if (!escapes)
        return;
    auto note = [&](DICompositeType *root, uint64_t offset) {
        facts.struct_flags[root] |= HW_STRUCT_ESCAPES;
        facts.escaping[root].insert(offset);
    };
    if (is_field)
        note(at.root, at.offset);
    for (const MDNode *around = at.around; around; around = enclosing_at(around).around)
        note(enclosing_at(around).root, enclosing_at(around).offset);
}

void marker::mark(Instruction &i)
{
    SmallVector<Metadata *, 2 * mark_operands> operands;
    if (isa<GEPOperator>(i) || (isa<CallBase>(i) && std_array_of(cast<CallBase>(i))))
        note_escape(&i);
    if (const StoreInst *store = dyn_cast<StoreInst>(&i)) {
        place behind = store->getValueOperand()->getType()->isPointerTy()
                           ? place_behind(types, find(store->getPointerOperand(), 0))
                           : place();
        if (behind.known && !behind.root && is_byte(behind.type))
            note_bytes(store->getValueOperand());
    }
    if (plain_access one = plain_access_of(i); one.type) {
        place at = find(one.pointer, 0);
        uint64_t bytes = layout.getTypeStoreSize(one.type).getKnownMinValue();
        note_location(i, at, bytes, isa<StoreInst>(i));
        if (!at.known)
            return;
        append(operands, at);
    } else if (AnyMemIntrinsic *memory = dyn_cast<AnyMemIntrinsic>(&i)) {
        place to = find(memory->getRawDest(), 0), from;
        append(operands, to);
        const ConstantInt *constant = dyn_cast<ConstantInt>(memory->getLength());
        uint64_t bytes = constant ? constant->getZExtValue() : 0; // of few bytes becomes a load and a store
        note_location(i, to, bytes, true);
        if (AnyMemTransferInst *transfer = dyn_cast<AnyMemTransferInst>(memory)) {
            from = find(transfer->getRawSource(), 0);
            note_copy(transfer->getRawDest(), transfer->getRawSource(), memory->getLength(),
                      i.hasMetadata(LLVMContext::MD_tbaa_struct));
            append(operands, from);
            note_location(i, from, bytes, false);
        }
        if (!to.known && !from.known)
            return;
    } else if (CallBase *call = dyn_cast<CallBase>(&i)) {
        if (isa<IntrinsicInst>(call))
            return;
        note_call(*call);
        return;
    } else {
        return;
    }
    i.setMetadata(kind, MDNode::get(m.getContext(), operands));
}

void marker::run()
{
    collect_declarations();
    collect_abi();
    for (Function &f : m)
        for (Instruction &i : instructions(f))
            mark(i);
}

} // namespace

early_facts &facts_of(Module &m)
{
    static std::mutex lock;
    static std::map<Module *, early_facts> of;
    std::lock_guard<std::mutex> held(lock);
    early_facts &facts = of[&m];
    if (!facts.types)
        facts.types = std::make_shared<type_table>(m);
    return facts;
}

std::vector<uint64_t> position_key(const Instruction &i)
{
    const DebugLoc &location = i.getDebugLoc();
    const DISubprogram *program = location.get()->getScope()->getSubprogram();
    return {uint64_t(uintptr_t(program)), location.getLine(), location.getCol()};
}

std::vector<uint64_t> location_key(const Instruction &i, uint64_t bytes, bool write)
{
    std::vector<uint64_t> key = position_key(i);
    key.push_back(bytes);
    key.push_back(write);
    return key;
}

void mark_fields(Module &m)
{
    early_facts &facts = facts_of(m);
    facts = early_facts();
    facts.types = std::make_shared<type_table>(m);
    marker(m, facts).run();
}

place marked_place(const Instruction &i, bool source)
{
    place result;
    const MDNode *node = i.getMetadata(kind_name);
    unsigned first = source ? mark_operands : 0;
    if (!node || node->getNumOperands() < first + mark_operands)
        return result;
    ConstantInt *offset = mdconst::extract<ConstantInt>(node->getOperand(first + 1));
    ConstantInt *flags = mdconst::extract<ConstantInt>(node->getOperand(first + 2));
    if (flags->getZExtValue() & is_of_struct)
        result.root = cast<DICompositeType>(node->getOperand(first));
    else
        result.type = dyn_cast_or_null<DIType>(node->getOperand(first));
    result.offset = offset->getZExtValue();
    result.known = flags->getZExtValue() & is_known;
    result.dynamic = flags->getZExtValue() & is_dynamic;
    result.around = dyn_cast_or_null<MDNode>(node->getOperand(first + 3));
    return result;
}

void drop_marks(Function &f)
{
    for (Instruction &i : instructions(f))
        i.setMetadata(kind_name, nullptr);
}

} // namespace hw
