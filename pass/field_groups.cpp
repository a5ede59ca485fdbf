// field_groups.cpp - accesses that are executed together share a counter; those to one object are a group.
//
// A counter says how often its first access is executed; all that are certain to be executed equally often go with it
// (order.h), whatever objects they are to. What a group counts is then known from its members alone, and that its
// fields were used together, on one object, is exact.
#include "fields.h"
#include "order.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/KnownBits.h"
#include "llvm/Support/xxhash.h"

using namespace llvm;

namespace hw
{

namespace
{

// ---- which fields ----

// Bits of V, a number of at most 64 bits, that may be 1.
uint64_t may_be_set(Value *v, const DataLayout &layout, ScalarEvolution &evolution)
{
    uint64_t bits = (~computeKnownBits(v, layout).Zero).getZExtValue();
    bits &= maskTrailingOnes<uint64_t>(v->getType()->getIntegerBitWidth());
    if (evolution.isSCEVable(v->getType())) // what a loop counts up to
        bits &= maskTrailingOnes<uint64_t>(evolution.getUnsignedRangeMax(evolution.getSCEV(v)).getActiveBits());
    return bits;
}

// An "or" of which the compiler has found out that no bit is set in both.
bool is_disjoint(const Value *v)
{
    const PossiblyDisjointInst *disjoint = dyn_cast<PossiblyDisjointInst>(v);
    return disjoint && disjoint->isDisjoint();
}

// Where V, a number of at most 64 bits, may have its lowest 1: what it is added to stays as it is below that.
unsigned lowest_bit(Value *v, const DataLayout &layout, ScalarEvolution &evolution)
{
    uint64_t bits = may_be_set(v, layout, evolution);
    return bits ? unsigned(countr_zero(bits)) : v->getType()->getIntegerBitWidth();
}

// Bits of V, a value of at most 64 bits that was loaded from POINTER, that make a difference to anything but what is
// stored there again at their own places (POINTER is nullptr once they have been moved).
uint64_t used_bits(const Value *v, const Value *pointer, const DataLayout &layout, ScalarEvolution &evolution,
                   unsigned depth)
{
    auto bits_of = [&](const Value *of, const Value *at) { return used_bits(of, at, layout, evolution, depth + 1); };
    unsigned width = v->getType()->getIntegerBitWidth();
    uint64_t all = maskTrailingOnes<uint64_t>(width), used = 0;
    if (depth > 6)
        return all;
    for (const User *user : v->users()) {
        const Instruction *i = dyn_cast<Instruction>(user);
        if (!i)
            return all;
        const ConstantInt *constant = i->getNumOperands() > 1 ? dyn_cast<ConstantInt>(i->getOperand(1)) : nullptr;
        uint64_t number = constant && constant->getBitWidth() <= 64 ? constant->getZExtValue() : 0;
        uint64_t next = 0, above, changed;
        unsigned lowest;
        Value *other;
        KnownBits known;
        if (i->getType()->isIntegerTy() && i->getType()->getIntegerBitWidth() <= 64 &&
            i->getOpcode() != Instruction::Load)
            switch (i->getOpcode()) {
            case Instruction::Add:
                next = bits_of(i, pointer);
                if (!(may_be_set(i->getOperand(0), layout, evolution) &
                      may_be_set(i->getOperand(1), layout, evolution)))
                    break; // an "or"
                [[fallthrough]];
            case Instruction::Sub: // each bit from the other number's lowest one on goes into all above it
                lowest = i->getOperand(0) == v                ? lowest_bit(i->getOperand(1), layout, evolution)
                         : i->getOpcode() == Instruction::Add ? lowest_bit(i->getOperand(0), layout, evolution)
                                                              : 0;
                next = lowest ? bits_of(i, pointer) & maskTrailingOnes<uint64_t>(lowest) : 0;
                above = bits_of(i, nullptr);
                next |=
                    maskTrailingOnes<uint64_t>(64 - unsigned(countl_zero(above))) & ~maskTrailingOnes<uint64_t>(lowest);
                break;
            case Instruction::Mul:
                lowest = lowest_bit(i->getOperand(i->getOperand(0) == v ? 1 : 0), layout, evolution);
                above = bits_of(i, nullptr);
                next = lowest < 64 ? maskTrailingOnes<uint64_t>(64 - unsigned(countl_zero(above))) >> lowest : 0;
                break;
            case Instruction::Select:
            case Instruction::PHI:
                next = isa<SelectInst>(i) && i->getOperand(0) == v ? all : bits_of(i, pointer);
                break;
            case Instruction::And:
            case Instruction::Or:
            case Instruction::Xor: // where the other number leaves it to this one what comes of it, that is a use
                next = bits_of(i, pointer);
                other = i->getOperand(i->getOperand(0) == v ? 1 : 0);
                known = computeKnownBits(other, layout);
                if (i->getOpcode() == Instruction::And) {
                    changed = ~(known.Zero | known.One).getZExtValue();
                    next &= ~known.Zero.getZExtValue();
                } else {
                    changed = is_disjoint(i) ? 0 : may_be_set(other, layout, evolution);
                    if (i->getOpcode() == Instruction::Or) {
                        changed &= ~known.One.getZExtValue();
                        next &= ~known.One.getZExtValue();
                    }
                }
                if (changed & all)
                    next |= bits_of(i, nullptr) & changed;
                break;
            case Instruction::LShr:
                next = constant && number < width ? bits_of(i, nullptr) << number : all;
                break;
            case Instruction::AShr:
                next = constant && number < width ? bits_of(i, nullptr) : all;
                if (next != all || number) { // what is shifted in is the sign
                    uint64_t high = maskLeadingOnes<uint64_t>(unsigned(number)) >> (64 - width);
                    next = (next << number) | (next & high ? uint64_t(1) << (width - 1) : 0);
                }
                break;
            case Instruction::Shl:
                next = constant && number < width ? bits_of(i, nullptr) >> number : all;
                break;
            case Instruction::Trunc:
            case Instruction::ZExt:
                next = bits_of(i, pointer);
                break;
            case Instruction::SExt:
                next = bits_of(i, pointer);
                next |= next >> width ? uint64_t(1) << (width - 1) : 0;
                break;
            case Instruction::ICmp:
                next = cast<ICmpInst>(i)->isSigned() && constant && (constant->isZero() || constant->isMinusOne())
                           ? uint64_t(1) << (width - 1)
                           : all;
                break;
            default:
                next = all;
            }
        else if (const StoreInst *store = dyn_cast<StoreInst>(i))
            next = store->getPointerOperand() == pointer ? 0 : all;
        else
            next = all;
        used |= next & all;
    }
    return used;
}

// Bits of V, which is stored at POINTER, that are not what was there before.
uint64_t changed_bits(const Value *v, const Value *pointer, const DataLayout &layout, ScalarEvolution &evolution,
                      unsigned depth)
{
    uint64_t all = maskTrailingOnes<uint64_t>(v->getType()->getIntegerBitWidth());
    const BinaryOperator *op = dyn_cast<BinaryOperator>(v);
    auto left_of = [&](const Value *w) { return changed_bits(w, pointer, layout, evolution, depth + 1); };
    if (const LoadInst *load = dyn_cast<LoadInst>(v))
        return load->getPointerOperand() == pointer ? 0 : all;
    if (depth > 8)
        return all;
    if (const SelectInst *select = dyn_cast<SelectInst>(v))
        return left_of(select->getTrueValue()) | left_of(select->getFalseValue());
    if (const PHINode *phi = dyn_cast<PHINode>(v)) {
        uint64_t changed = 0;
        for (const Value *value : phi->incoming_values())
            changed |= changed == all ? 0 : changed_bits(value, pointer, layout, evolution, depth + 3);
        return changed;
    }
    if (!op)
        return all;
    const ConstantInt *constant = dyn_cast<ConstantInt>(op->getOperand(1));
    uint64_t number = constant ? constant->getZExtValue() : 0;
    switch (op->getOpcode()) {
    case Instruction::And: {
        auto masked = [&](Value *one, Value *mask) {
            return left_of(one) | (all & ~computeKnownBits(mask, layout).One.getZExtValue());
        };
        return masked(op->getOperand(0), op->getOperand(1)) & masked(op->getOperand(1), op->getOperand(0));
    }
    case Instruction::Sub:
        return left_of(op->getOperand(0)) |
               (all & ~maskTrailingOnes<uint64_t>(lowest_bit(op->getOperand(1), layout, evolution)));
    case Instruction::Add: // of a value that has no bit in common with the other is an "or"
        if (may_be_set(op->getOperand(0), layout, evolution) & may_be_set(op->getOperand(1), layout, evolution)) {
            auto sum = [&](Value *one, Value *other) {
                return left_of(one) | (all & ~maskTrailingOnes<uint64_t>(lowest_bit(other, layout, evolution)));
            };
            return sum(op->getOperand(0), op->getOperand(1)) & sum(op->getOperand(1), op->getOperand(0));
        }
        [[fallthrough]];
    case Instruction::Or:
    case Instruction::Xor: {
        if (constant)
            return left_of(op->getOperand(0)) | number;
        uint64_t first = may_be_set(op->getOperand(0), layout, evolution),
                 second = may_be_set(op->getOperand(1), layout, evolution),
                 common = is_disjoint(op) ? first & second : 0;
        return (left_of(op->getOperand(0)) | (second & ~common)) & (left_of(op->getOperand(1)) | (first & ~common));
    }
    default:
        return all;
    }
}

uint64_t touched_bits(const field_access &access, ScalarEvolution &evolution)
{
    if (LoadInst *load = dyn_cast<LoadInst>(access.at)) {
        if (load->getType()->isIntegerTy() && load->getType()->getIntegerBitWidth() <= 64)
            return used_bits(load, load->getPointerOperand(), load->getDataLayout(), evolution, 0);
    } else if (StoreInst *store = dyn_cast<StoreInst>(access.at)) {
        Type *type = store->getValueOperand()->getType();
        if (type->isIntegerTy() && type->getIntegerBitWidth() <= 64)
            return changed_bits(store->getValueOperand(), store->getPointerOperand(), store->getDataLayout(), evolution,
                                0);
    }
    return ~uint64_t(0);
}

// How well an alternative of a union suits what the machine does.
int suitability(const field &one, const field_access &access, uint64_t offset)
{
    Type *type = nullptr;
    if (LoadInst *load = dyn_cast<LoadInst>(access.at))
        type = load->getType();
    else if (StoreInst *store = dyn_cast<StoreInst>(access.at))
        type = store->getValueOperand()->getType();
    bool is_float = StringRef(one.type).contains("float") || StringRef(one.type).contains("double");
    int score = (one.offset == offset ? 4 : 0) + (one.size == access.bytes ? 8 : 0);
    if (type)
        score += type->isPointerTy()         ? ((one.flags & HW_FIELD_POINTER) ? 2 : 0)
                 : type->isFloatingPointTy() ? (is_float ? 2 : 0)
                                             : (!is_float && !(one.flags & HW_FIELD_POINTER) ? 2 : 0);
    return score;
}

// The fields of TO that ACCESS is an access to, with how often each. HW_NONE: all of them.
std::map<uint32_t, uint32_t> fields_of(const structure &of, const field_access &access, ScalarEvolution &evolution)
{
    std::map<uint32_t, uint32_t> result;
    uint64_t offset = access.what.offset, bytes = access.bytes ? access.bytes : 1;
    const std::vector<field> &fields = of.fields;
    if (access.what.dynamic || (!access.bytes && offset)) {
        uint32_t best = HW_NONE;
        for (uint32_t i = 0; i < fields.size(); i++)
            if (fields[i].offset <= offset &&
                (offset < fields[i].offset + fields[i].size || (fields[i].flags & HW_FIELD_FLEXIBLE)) &&
                (best == HW_NONE || ((fields[i].flags & HW_FIELD_ARRAY) && !(fields[best].flags & HW_FIELD_ARRAY)) ||
                 ((fields[i].flags & HW_FIELD_FLEXIBLE) && !(fields[best].flags & HW_FIELD_FLEXIBLE) &&
                  fields[i].offset == offset)))
                best = i;
        if (best != HW_NONE)
            result[best] = 1;
        return result;
    }
    if (of.size && offset == 0 && bytes % of.size == 0 && fields.size() > 1 && !isa<LoadInst>(access.at) &&
        !isa<StoreInst>(access.at)) {
        result[HW_NONE] = uint32_t(std::min<uint64_t>(bytes / of.size, UINT32_MAX));
        return result;
    }
    // An access may go on into the next objects of an array.
    uint64_t bits = 0;
    bool has_bits = false;
    for (uint64_t done = 0; done < bytes;) {
        uint64_t from = done ? 0 : offset;
        uint64_t here = of.size > from ? std::min(bytes - done, of.size - from) : bytes - done;
        int best = -1;
        uint32_t alternative = HW_NONE;
        for (uint32_t i = 0; i < fields.size(); i++) {
            const field &one = fields[i];
            uint64_t end = one.offset + std::max<uint64_t>(one.size, (one.flags & HW_FIELD_FLEXIBLE) ? bytes : 0);
            if (one.offset >= from + here || end <= from)
                continue;
            if (one.flags & HW_FIELD_BITS) {
                if (!has_bits)
                    bits = touched_bits(access, evolution);
                has_bits = true;
                int64_t first = int64_t(one.offset * 8 + one.bit_offset) - int64_t(from * 8);
                uint64_t mask = maskTrailingOnes<uint64_t>(std::min(one.bit_size, 64u));
                mask = first >= 0 ? (first < 64 ? mask << first : 0) : (first > -64 ? mask >> -first : 0);
                if (bytes <= 8 && !(bits & mask))
                    continue;
            }
            if (one.flags & HW_FIELD_UNION) {
                int score = suitability(one, access, from);
                if (score > best) {
                    best = score;
                    alternative = i;
                }
                continue;
            }
            result[i]++;
        }
        if (alternative != HW_NONE)
            result[alternative]++;
        done += here;
    }
    return result;
}

// The array of structs ELEMENT that begins at OFFSET; HW_NONE: there is none.
uint32_t array_field(const structure &of, uint64_t offset, const DICompositeType *element)
{
    uint32_t best = HW_NONE;
    for (uint32_t i = 0; i < of.fields.size(); i++)
        if ((of.fields[i].flags & HW_FIELD_ARRAY) && of.fields[i].offset == offset &&
            (best == HW_NONE || of.fields[i].element == element))
            best = i;
    return best;
}

// ---- groups ----

struct object_group {
    DICompositeType *root; // nullptr: not known
    bool inherited;        // part of an object of another group
    const Value *base;
    std::vector<uint64_t> terms;
    int64_t offset;
    bool vague; // where exactly it begins is not known
    std::map<uint32_t, std::pair<uint32_t, uint32_t>> members;
    DebugLoc location;
};

struct region {
    Instruction *leader;
    std::vector<object_group> groups;
};

class grouper
{
    Function &f;
    early_facts &facts;
    field_table &table;
    DominatorTree &tree;
    execution_order order;
    ScalarEvolution &evolution;
    DenseMap<const BasicBlock *, SmallVector<size_t, 2>> of_block;
    std::vector<region> regions;
    update_list updates;
    std::map<std::vector<uint64_t>, uint32_t> objects; // their numbers

    uint32_t object_of(const object_group &group);
    region &region_of(Instruction *at);
    void add_to(std::vector<object_group> &groups, const field_access &access);
    std::map<uint32_t, std::pair<uint32_t, uint32_t>> &members_of(std::vector<object_group> &groups,
                                                                  const field_access &access, DICompositeType *root,
                                                                  int64_t offset, bool vague, bool inherited = false);
    void add_parts(std::vector<object_group> &groups, const field_access &access, const structure &of,
                   const std::map<uint32_t, uint32_t> &fields, int64_t offset, bool vague, unsigned depth);
    bool add_variable(const field_access &access);
    void emit_groups(const std::vector<object_group> &groups, uint32_t counter);
    update counter_update(Instruction *at, uint32_t counter);

  public:
    grouper(Function &f, FunctionAnalysisManager &analyses, early_facts &facts, field_table &table)
        : f(f), facts(facts), table(table), tree(analyses.getResult<DominatorTreeAnalysis>(f)), order(f, analyses),
          evolution(analyses.getResult<ScalarEvolutionAnalysis>(f))
    {
    }
    update_list run();
};

region &grouper::region_of(Instruction *at)
{
    const unsigned most = 16;
    const DomTreeNode *node = options().consolidate ? tree.getNode(at->getParent()) : nullptr;
    for (unsigned n = 0; node && n < most; n++, node = node->getIDom())
        for (size_t one : reverse(of_block[node->getBlock()]))
            if (order.together(regions[one].leader, at))
                return regions[one];
    of_block[at->getParent()].push_back(regions.size());
    regions.push_back({at, {}});
    return regions.back();
}

// The members of the group for the object of type ROOT (nullptr: not known) that ACCESS is to, which begins OFFSET
// bytes behind base and terms; VAGUE: or somewhere in its array.
std::map<uint32_t, std::pair<uint32_t, uint32_t>> &grouper::members_of(std::vector<object_group> &groups,
                                                                       const field_access &access,
                                                                       DICompositeType *root, int64_t offset,
                                                                       bool vague, bool inherited)
{
    std::vector<uint64_t> terms;
    // A flexible array goes on behind the end, and its struct is no element of an array.
    bool endless = root && vague && (table.describe(root).flags & HW_STRUCT_FLEXIBLE);
    int64_t size = root ? int64_t(size_of(root)) : 0;
    for (size_t i = 0; root && !endless && i + 2 < access.terms.size(); i += 3) // which object, not which element in it
        if (!vague || std::abs(int64_t(access.terms[i + 2])) >= size)
            terms.insert(terms.end(), access.terms.begin() + i, access.terms.begin() + i + 3);
    object_group *group = nullptr;
    for (object_group &one : groups) {
        bool same = one.root == root && one.inherited == inherited;
        if (root)
            same &= one.base == access.base && one.terms == terms &&
                    (vague || one.vague ? endless || std::abs(one.offset - offset) < size : one.offset == offset);
        if (same) {
            group = &one;
            break;
        }
    }
    if (!group) {
        groups.push_back({root, inherited, access.base, terms, offset, vague, {}, access.at->getDebugLoc()});
        group = &groups.back();
    }
    if (group->vague && !vague) {
        group->vague = false;
        group->offset = offset;
    }
    return group->members;
}

static void add_member(std::pair<uint32_t, uint32_t> &member, const field_access &access, uint32_t times)
{
    member.first += access.reads ? times : 0;
    member.second += access.writes ? times : 0;
}

// The field of INNER, a part of another struct, that is ONE there; HW_NONE: it has none like it.
static uint32_t field_of_part(const structure &inner, const field &one)
{
    for (uint32_t i = 0; i < inner.fields.size(); i++) {
        const field &candidate = inner.fields[i];
        if (candidate.offset + one.part_offset == one.offset && candidate.bit_offset == one.bit_offset &&
            candidate.size == one.size && StringRef(one.name).ends_with(candidate.name))
            return i;
    }
    return HW_NONE;
}

// What is done to a field is done to the same field of the base or the struct by value that it lies in, too.
void grouper::add_parts(std::vector<object_group> &groups, const field_access &access, const structure &of,
                        const std::map<uint32_t, uint32_t> &fields, int64_t offset, bool vague, unsigned depth)
{
    std::map<std::pair<DICompositeType *, uint64_t>, std::map<uint32_t, uint32_t>> parts;
    for (auto [number, times] : fields) {
        if (number == HW_NONE) { // all parts, each once
            for (const field &one : of.fields)
                if (one.part)
                    parts[{one.part, one.part_offset}][HW_NONE] = times;
            continue;
        }
        const field &one = of.fields[number];
        uint32_t inner = one.part ? field_of_part(table.describe(one.part), one) : HW_NONE;
        if (inner != HW_NONE)
            parts[{one.part, one.part_offset}][inner] += times;
    }
    for (const auto &[part, inner] : parts) {
        int64_t begin = offset + int64_t(part.second);
        auto &members = members_of(groups, access, part.first, begin, vague, true);
        for (auto [number, times] : inner)
            add_member(members[number], access, times);
        if (depth < 16)
            add_parts(groups, access, table.describe(part.first), inner, begin, vague, depth + 1);
    }
}

void grouper::add_to(std::vector<object_group> &groups, const field_access &access)
{
    auto add = [&access](std::pair<uint32_t, uint32_t> &member, uint32_t times) { add_member(member, access, times); };
    DICompositeType *root = access.what.root;
    if (!root) {
        add(members_of(groups, access, nullptr, access.object_offset, true)[HW_NONE], 1);
        return;
    }
    std::map<uint32_t, uint32_t> fields = fields_of(table.describe(root), access, evolution);
    if (fields.empty())
        return; // padding
    uint32_t all = 0;
    const bool vague = access.what.dynamic || !access.base;
    auto &members = members_of(groups, access, root, access.object_offset, vague);
    for (auto [field, times] : fields) {
        add(members[field], times);
        all += times;
    }
    add_parts(groups, access, table.describe(root), fields, access.object_offset, vague, 0);
    int64_t offset = access.object_offset;
    for (const MDNode *next = access.what.around; next;) {
        enclosing outer = enclosing_at(next);
        uint32_t array = array_field(table.describe(outer.root), outer.offset, root);
        offset -= int64_t(outer.offset);
        if (array != HW_NONE) {
            add(members_of(groups, access, outer.root, offset, true)[array], all);
            add_parts(groups, access, table.describe(outer.root), {{array, all}}, offset, true, 0);
        }
        root = outer.root;
        next = outer.around;
    }
}

// The same in all groups of one object: the pointers to it are the same values.
uint32_t grouper::object_of(const object_group &group)
{
    if (!group.root || !group.base || group.vague || group.inherited)
        return 0;
    std::vector<uint64_t> key = {uint64_t(uintptr_t(group.root)), uint64_t(uintptr_t(group.base)),
                                 uint64_t(group.offset)};
    key.insert(key.end(), group.terms.begin(), group.terms.end());
    uint32_t ordinal = objects.insert({key, uint32_t(objects.size())}).first->second;
    uint64_t hash =
        xxh3_64bits((f.getParent()->getSourceFileName() + "\n" + f.getName() + "\n" + Twine(ordinal)).str());
    uint32_t number = uint32_t(hash ^ hash >> 32);
    return number ? number : 1;
}

void grouper::emit_groups(const std::vector<object_group> &groups, uint32_t counter)
{
    for (const object_group &one : groups) {
        std::vector<group_member> members;
        for (auto [field, counts] : one.members)
            members.push_back({field, counts.first, counts.second, one.inherited});
        table.add_group(one.root, members, counter, object_of(one), one.location, f);
    }
}

update grouper::counter_update(Instruction *at, uint32_t counter)
{
    update result(update::field, at, ConstantInt::get(Type::getInt64Ty(f.getContext()), counter), 1, 0);
    return result;
}

// An access that is executed a number of times that is not known here. False: once will do.
bool grouper::add_variable(const field_access &access)
{
    Type *word = Type::getInt64Ty(f.getContext());
    IRBuilder<> code(access.at);
    Value *times = nullptr;
    field_access one = access;
    if (access.times->getType()->isVectorTy()) { // a mask
        unsigned lanes = cast<FixedVectorType>(access.times->getType())->getNumElements();
        if (Constant *mask = dyn_cast<Constant>(access.times); mask && mask->isAllOnesValue())
            times = code.getInt64(lanes);
        else
            times = code.CreateZExtOrTrunc(
                code.CreateUnaryIntrinsic(Intrinsic::ctpop, code.CreateBitCast(access.times, code.getIntNTy(lanes))),
                word);
    } else { // a length, of whole objects
        const structure &of = table.describe(access.what.root);
        if (access.what.offset || access.what.dynamic || !of.size)
            return false;
        times = code.CreateUDiv(code.CreateZExtOrTrunc(access.times, word), code.getInt64(of.size));
        one.bytes = of.size;
    }
    std::vector<object_group> groups;
    add_to(groups, one);
    if (groups.empty())
        return true;
    uint32_t counter = table.new_counter();
    emit_groups(groups, counter);
    updates.push_back(counter_update(access.at, counter));
    updates.back().times = times;
    return true;
}

update_list grouper::run()
{
    for (field_access &access : resolve_fields(f, facts)) {
        if ((access.what.known && !access.what.root) || !tree.isReachableFromEntry(access.at->getParent()))
            continue;
        if (access.times && access.what.root && add_variable(access))
            continue;
        add_to(region_of(access.at).groups, access);
    }
    for (region &one : regions) {
        if (one.groups.empty())
            continue;
        uint32_t counter = table.new_counter();
        emit_groups(one.groups, counter);
        updates.push_back(counter_update(one.leader, counter));
    }
    return std::move(updates);
}

} // namespace

update_list count_fields(Function &f, FunctionAnalysisManager &analyses, early_facts &facts, field_table &table)
{
    return grouper(f, analyses, facts, table).run();
}

} // namespace hw
