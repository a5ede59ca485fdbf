// field_types.cpp - debugging information -> structs and their fields, with names and identities.
#include "fields.h"
#include "base/abi.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/Module.h"
#include <algorithm>

using namespace llvm;

namespace hw
{

namespace
{

const unsigned deepest = 32;
const size_t most_fields = 4096;

bool is_aggregate_tag(unsigned tag)
{
    return tag == dwarf::DW_TAG_structure_type || tag == dwarf::DW_TAG_class_type || tag == dwarf::DW_TAG_union_type;
}

// The last part of a readable name, without template arguments: "vector" of "std::vector<int>".
std::string simple_name(StringRef name)
{
    std::string plain;
    int depth = 0;
    for (char c : name) {
        depth += c == '<';
        if (depth == 0)
            plain += c;
        depth -= c == '>' && depth > 0;
    }
    size_t at = plain.rfind("::");
    return at == std::string::npos ? plain : plain.substr(at + 2);
}

// Of an LLVM type: "class.ns::name.12" -> "name". A class as a base, "class.name.base", is another type.
std::string llvm_name(const StructType *type)
{
    StringRef name = type->hasName() ? type->getName() : StringRef();
    if (!name.consume_front("struct.") && !name.consume_front("class.") && !name.consume_front("union."))
        return {};
    size_t dot = name.rfind('.');
    if (dot != StringRef::npos && dot + 1 < name.size() && all_of(name.substr(dot + 1), isDigit))
        name = name.take_front(dot);
    name.consume_back(".base");
    return name == "anon" ? std::string() : simple_name(name);
}

DIType *base_of(const DIType *type)
{
    if (const DIDerivedType *derived = dyn_cast_or_null<DIDerivedType>(type))
        return derived->getBaseType();
    if (const DICompositeType *composite = dyn_cast_or_null<DICompositeType>(type))
        return composite->getBaseType();
    return nullptr;
}

int64_t count_of(const DISubrange *range)
{
    if (ConstantInt *count = dyn_cast_if_present<ConstantInt *>(range->getCount()))
        return count->getSExtValue();
    return -1;
}

// Elements of an array type; 0: not known or none.
uint64_t elements_of(const DICompositeType *array)
{
    uint64_t count = 1;
    for (DINode *node : array->getElements()) {
        const DISubrange *range = dyn_cast_or_null<DISubrange>(node);
        int64_t here = range ? count_of(range) : -1;
        count = here > 0 ? count * uint64_t(here) : 0;
    }
    return count;
}

class hash
{
    uint64_t value = 0xcbf29ce484222325;

  public:
    void add(StringRef bytes)
    {
        for (unsigned char byte : bytes)
            value = (value ^ byte) * 0x100000001b3;
        value *= 0x100000001b3; // the 0 behind it
    }
    void add(uint64_t number)
    {
        for (int i = 0; i < 8; i++, number >>= 8)
            value = (value ^ (number & 255)) * 0x100000001b3;
    }
    uint64_t get() const
    {
        return value;
    }
};

} // namespace

DIType *strip(DIType *type)
{
    for (unsigned depth = 0; type && depth < 64; depth++) {
        switch (type->getTag()) {
        case dwarf::DW_TAG_typedef:
        case dwarf::DW_TAG_const_type:
        case dwarf::DW_TAG_volatile_type:
        case dwarf::DW_TAG_restrict_type:
        case dwarf::DW_TAG_atomic_type:
        case dwarf::DW_TAG_template_alias:
            type = base_of(type);
            break;
        default:
            return type;
        }
    }
    return type;
}

DICompositeType *as_composite(DIType *type)
{
    DICompositeType *composite = dyn_cast_or_null<DICompositeType>(strip(type));
    return composite && is_aggregate_tag(composite->getTag()) ? composite : nullptr;
}

bool is_pointer(DIType *type)
{
    type = strip(type);
    return type && (type->getTag() == dwarf::DW_TAG_pointer_type || type->getTag() == dwarf::DW_TAG_reference_type ||
                    type->getTag() == dwarf::DW_TAG_rvalue_reference_type);
}

DIType *pointee(DIType *type)
{
    return is_pointer(type) ? strip(base_of(strip(type))) : nullptr;
}

uint64_t size_of(DIType *type)
{
    type = strip(type);
    return type ? type->getSizeInBits() / 8 : 0;
}

DIType *element_of(DIType *type)
{
    DICompositeType *array = dyn_cast_or_null<DICompositeType>(strip(type));
    if (!array || array->getTag() != dwarf::DW_TAG_array_type || array->isVector())
        return nullptr;
    DIType *inner = element_of(array->getBaseType());
    return inner ? inner : strip(array->getBaseType());
}

// ---- names ----

type_table::type_table(Module &m)
{
    DebugInfoFinder finder;
    finder.processModule(m);
    for (DICompileUnit *unit : finder.compile_units()) {
#if LLVM_VERSION_MAJOR >= 22
        unsigned language = unit->getSourceLanguage().getUnversionedName();
#else
        unsigned language = unit->getSourceLanguage();
#endif
        cplusplus |= dwarf::isCPlusPlus(dwarf::SourceLanguage(language));
    }
    for (DIType *type : finder.types()) {
        if (type->getTag() == dwarf::DW_TAG_typedef) {
            DIType *base = cast<DIDerivedType>(type)->getBaseType();
            DICompositeType *named = dyn_cast_or_null<DICompositeType>(base);
            if (named && is_aggregate_tag(named->getTag()) && named->getName().empty())
                typedef_names.emplace(named, type->getName().str());
        }
        DICompositeType *composite = dyn_cast<DICompositeType>(type);
        if (!composite || !is_aggregate_tag(composite->getTag()) || composite->isForwardDecl())
            continue;
        if (!composite->getIdentifier().empty())
            by_identifier.emplace(composite->getIdentifier().str(), composite);
    }
    for (DIType *type : finder.types()) { // all typedefs are known now
        DICompositeType *composite = dyn_cast<DICompositeType>(type);
        if (!composite || !is_aggregate_tag(composite->getTag()) || composite->isForwardDecl())
            continue;
        auto named = typedef_names.find(composite);
        std::string name = named != typedef_names.end() ? named->second : composite->getName().str();
        if (!name.empty())
            by_name[simple_name(name)].push_back(composite);
    }
}

DICompositeType *type_table::definition(DICompositeType *type) const
{
    if (!type || !type->isForwardDecl())
        return type;
    auto found = by_identifier.find(type->getIdentifier().str());
    if (!type->getIdentifier().empty() && found != by_identifier.end())
        return found->second;
    auto named = by_name.find(simple_name(type->getName()));
    if (named != by_name.end())
        for (DICompositeType *candidate : named->second)
            if (name_of(candidate) == name_of(type))
                return candidate;
    return type;
}

std::string type_table::scope_of(const DIScope *scope) const
{
    if (!scope || !cplusplus) // in C a name is a name
        return {};
    if (const DINamespace *space = dyn_cast<DINamespace>(scope)) {
        StringRef name = space->getName();
        return scope_of(space->getScope()) + (name.empty() ? "(anonymous namespace)" : name.str()) + "::";
    }
    if (const DICompositeType *outer = dyn_cast<DICompositeType>(scope))
        return name_of(outer) + "::";
    if (const DISubprogram *function = dyn_cast<DISubprogram>(scope))
        return function->getName().str() + "()::";
    if (const DILexicalBlockBase *block = dyn_cast<DILexicalBlockBase>(scope))
        return scope_of(block->getScope());
    return {};
}

std::string type_table::name_of(const DICompositeType *type) const
{
    auto named = typedef_names.find(type);
    std::string name = named != typedef_names.end() ? named->second : type->getName().str();
    if (name.empty()) {
        const char *kind = type->getTag() == dwarf::DW_TAG_union_type ? "union" : "struct";
        StringRef file = type->getFilename();
        name = std::string("(") + kind + " at " + file.substr(file.rfind('/') + 1).str() + ":" +
               std::to_string(type->getLine()) + ")";
    }
    return scope_of(type->getScope()) + name;
}

// The C declaration of INNER as something of TYPE; the type alone if INNER is empty.
std::string type_table::text_of(DIType *type, const std::string &inner) const
{
    auto joined = [&inner](const std::string &left) {
        if (inner.empty())
            return left;
        return left + (inner[0] == '[' || (inner[0] == '(' && inner[1] == ')') ? "" : " ") + inner;
    };
    if (!type)
        return joined("void");
    switch (type->getTag()) {
    case dwarf::DW_TAG_const_type:
    case dwarf::DW_TAG_volatile_type:
    case dwarf::DW_TAG_restrict_type: {
        const char *word = type->getTag() == dwarf::DW_TAG_const_type      ? "const"
                           : type->getTag() == dwarf::DW_TAG_volatile_type ? "volatile"
                                                                           : "restrict";
        DIType *base = base_of(type);
        if (base && base->getTag() == dwarf::DW_TAG_pointer_type)
            return text_of(base, word + (inner.empty() ? "" : " " + inner));
        return std::string(word) + " " + text_of(base, inner);
    }
    case dwarf::DW_TAG_atomic_type:
        return joined("_Atomic(" + text_of(base_of(type)) + ")");
    case dwarf::DW_TAG_pointer_type:
    case dwarf::DW_TAG_reference_type:
    case dwarf::DW_TAG_rvalue_reference_type: {
        const char *sign = type->getTag() == dwarf::DW_TAG_pointer_type     ? "*"
                           : type->getTag() == dwarf::DW_TAG_reference_type ? "&"
                                                                            : "&&";
        DIType *base = base_of(type);
        bool word = !inner.empty() && (isAlpha(inner[0])) &&
                    (StringRef(inner).starts_with("const") || StringRef(inner).starts_with("volatile") ||
                     StringRef(inner).starts_with("restrict"));
        std::string pointer = sign + (word ? " " + inner : inner);
        bool wraps =
            base && (base->getTag() == dwarf::DW_TAG_array_type || base->getTag() == dwarf::DW_TAG_subroutine_type);
        return text_of(base, wraps ? "(" + pointer + ")" : pointer);
    }
    case dwarf::DW_TAG_array_type: {
        const DICompositeType *array = cast<DICompositeType>(type);
        std::string suffix;
        for (DINode *node : array->getElements()) {
            const DISubrange *range = dyn_cast_or_null<DISubrange>(node);
            int64_t count = range ? count_of(range) : -1;
            suffix += count >= 0 ? "[" + std::to_string(count) + "]" : "[]";
        }
        return text_of(array->getBaseType(), inner + suffix);
    }
    case dwarf::DW_TAG_subroutine_type: {
        DITypeRefArray list = cast<DISubroutineType>(type)->getTypeArray();
        std::string arguments;
        for (unsigned i = 1; i < list.size(); i++)
            arguments += (i > 1 ? ", " : "") + (list[i] ? text_of(list[i]) : std::string("..."));
        return text_of(list.size() ? list[0] : nullptr,
                       inner + "(" + (arguments.empty() && !cplusplus ? "void" : arguments) + ")");
    }
    case dwarf::DW_TAG_ptr_to_member_type:
        return joined(text_of(base_of(type)) + " (member)");
    case dwarf::DW_TAG_typedef:
        return joined(scope_of(type->getScope()) + type->getName().str());
    case dwarf::DW_TAG_enumeration_type:
    case dwarf::DW_TAG_structure_type:
    case dwarf::DW_TAG_class_type:
    case dwarf::DW_TAG_union_type: {
        const DICompositeType *composite = cast<DICompositeType>(type);
        const char *tag = type->getTag() == dwarf::DW_TAG_enumeration_type ? "enum "
                          : type->getTag() == dwarf::DW_TAG_union_type     ? "union "
                                                                           : "struct ";
        return joined((cplusplus || typedef_names.count(composite) ? "" : tag) + name_of(composite));
    }
    default:
        return joined(type->getName().empty() ? "?" : type->getName().str());
    }
}

// ---- layout ----

uint32_t type_table::alignment_of(DIType *type, unsigned depth) const
{
    uint64_t least = type ? type->getAlignInBits() / 8 : 1;
    type = strip(type);
    if (!type || depth > deepest)
        return 1;
    least = std::max<uint64_t>(least, type->getAlignInBits() / 8);
    if (DIType *element = element_of(type))
        return std::max<uint64_t>(least, alignment_of(element, depth + 1));
    if (DICompositeType *composite = as_composite(type)) {
        uint64_t alignment = std::max<uint64_t>(1, least);
        for (DINode *node : definition(composite)->getElements()) {
            DIDerivedType *member = dyn_cast_or_null<DIDerivedType>(node);
            if (!member || member->isStaticMember() ||
                (member->getTag() != dwarf::DW_TAG_member && member->getTag() != dwarf::DW_TAG_inheritance))
                continue;
            uint64_t here =
                std::max<uint64_t>(member->getAlignInBits() / 8, alignment_of(member->getBaseType(), depth + 1));
            if (member->isBitField() || member->getOffsetInBits() / 8 % here == 0)
                alignment = std::max(alignment, here);
        }
        uint64_t size = size_of(composite);
        return size % alignment ? 1 : alignment;
    }
    if (type->getTag() == dwarf::DW_TAG_enumeration_type || type->getTag() == dwarf::DW_TAG_base_type) {
        uint64_t size = type->getSizeInBits() / 8;
        if (DIBasicType *basic = dyn_cast<DIBasicType>(type))
            if (basic->getEncoding() == dwarf::DW_ATE_complex_float)
                size /= 2;
        return std::max<uint64_t>({1, least, isPowerOf2_64(size) ? std::min<uint64_t>(size, 16) : 1});
    }
    if (is_pointer(type) || type->getTag() == dwarf::DW_TAG_ptr_to_member_type)
        return 8;
    return std::max<uint64_t>(1, least);
}

// A type that others can have pointers to.
static bool is_named(const DICompositeType *type)
{
    return !type->getName().empty() || !type->getIdentifier().empty();
}

// Appends what TYPE, at OFFSET_BITS of the struct, consists of. MEMBER: of the struct itself, what it belongs to.
// AROUND: what TYPE is that of.
void type_table::flatten(structure &to, const DICompositeType *type, uint64_t offset_bits, const std::string &prefix,
                         const field *member, const field *around, uint32_t flags, unsigned depth)
{
    bool is_union = type->getTag() == dwarf::DW_TAG_union_type;
    flags |= is_union ? HW_FIELD_UNION : 0;
    for (DINode *node : type->getElements()) {
        DIDerivedType *part = dyn_cast_or_null<DIDerivedType>(node);
        if (!part || part->isStaticMember() || depth > deepest || to.fields.size() >= most_fields)
            continue;
        bool base = part->getTag() == dwarf::DW_TAG_inheritance;
        if (base)
            to.flags |= HW_STRUCT_BASES;
        if ((!base && part->getTag() != dwarf::DW_TAG_member) || (base && part->isVirtual()))
            continue; // where a virtual base lies depends on the object
        DIType *stripped = strip(part->getBaseType());
        DICompositeType *inner = definition(as_composite(stripped));
        uint64_t bits = offset_bits + part->getOffsetInBits();
        field one;
        one.name = prefix + part->getName().str();
        one.flags = flags | (base ? HW_FIELD_BASE : 0);
        one.offset = bits / 8;
        one.line = part->getLine();
        one.alignment = std::max<uint32_t>(alignment_of(part->getBaseType(), 0), part->getAlignInBits() / 8);
        one.size = size_of(stripped);
        if (part->isBitField()) {
            one.flags |= HW_FIELD_BITS;
            one.bit_offset = bits % 8;
            one.bit_size = part->getSizeInBits();
            one.size = (one.bit_offset + one.bit_size + 7) / 8;
            to.flags |= HW_STRUCT_BIT_FIELDS;
        } else if (one.offset % one.alignment) {
            to.flags |= HW_STRUCT_PACKED;
        }
        if (part->isArtificial() && part->getName().starts_with("_vptr")) {
            one.name = prefix + "_vptr";
            one.flags |= HW_FIELD_VPTR;
            to.flags |= HW_STRUCT_POLYMORPHIC;
        }
        if (const DICompositeType *array = element_of(stripped) ? cast<DICompositeType>(stripped) : nullptr) {
            one.flags |= HW_FIELD_ARRAY;
            one.element = definition(as_composite(element_of(stripped)));
            if (!elements_of(array)) {
                one.flags |= HW_FIELD_FLEXIBLE;
                one.size = 0;
                to.flags |= HW_STRUCT_FLEXIBLE;
            }
        }
        if (is_pointer(stripped))
            one.flags |= HW_FIELD_POINTER;
        if (!member) {
            one.declaration = base ? text_of(part->getBaseType())
                                   : text_of(part->getBaseType(), part->getName().str()) +
                                         (one.bit_size ? " : " + std::to_string(one.bit_size) : std::string());
            one.member_offset = one.offset;
            one.member_size = one.size;
            one.member_alignment = one.alignment;
        } else {
            one.declaration = member->declaration;
            one.member_offset = member->member_offset;
            one.member_size = member->member_size;
            one.member_alignment = member->member_alignment;
        }
        one.part = around ? around->part : nullptr;
        one.part_offset = around ? around->part_offset : 0;
        if (!one.part && inner && (is_named(inner) || typedef_names.count(inner))) {
            one.part = inner;
            one.part_offset = one.offset;
        }
        if (inner && !inner->isForwardDecl() && !inner->getElements().empty()) {
            std::string name = base ? simple_name(inner->getName()) : part->getName().str();
            std::string next = name.empty() ? prefix : prefix + name + (base ? "::" : ".");
            size_t before = to.fields.size();
            flatten(to, inner, bits, next, member ? member : &one, &one, one.flags, depth + 1);
            if (to.fields.size() > before || base)
                continue;
        }
        if (!one.size && !(one.flags & HW_FIELD_FLEXIBLE))
            continue;
        if (inner && one.size == 1 && !inner->isForwardDecl() && inner->getElements().empty() && base)
            continue; // an empty base takes no room
        one.type = text_of(part->getBaseType());
        to.fields.push_back(one);
    }
}

const structure &type_table::describe(DICompositeType *type)
{
    type = definition(type);
    std::unique_ptr<structure> &known = described[type];
    if (known)
        return *known;
    known = std::make_unique<structure>();
    structure &to = *known;
    to.name = name_of(type);
    to.size = size_of(type);
    to.line = type->getLine();
    SmallString<256> file(type->getFilename());
    if (!file.empty() && file[0] != '/' && !type->getDirectory().empty())
        file = (type->getDirectory() + "/" + type->getFilename()).str();
    to.file = file.str().str();
    to.flags =
        (cplusplus ? HW_STRUCT_CPLUSPLUS : 0) | (type->getTag() == dwarf::DW_TAG_union_type ? HW_STRUCT_UNION : 0);
    to.alignment = alignment_of(type, 0);
    flatten(to, type, 0, "", nullptr, nullptr, 0, 0);
    std::stable_sort(to.fields.begin(), to.fields.end(), [](const field &a, const field &b) {
        return a.offset != b.offset ? a.offset < b.offset : a.bit_offset < b.bit_offset;
    });
    hash identity;
    identity.add(to.name);
    identity.add(to.size);
    for (const field &one : to.fields) {
        identity.add(one.name);
        identity.add(one.offset);
        identity.add(uint64_t(one.bit_offset));
        identity.add(one.bit_size ? uint64_t(one.bit_size) : one.size);
        identity.add(one.type);
    }
    to.identity = identity.get();
    return to;
}

// ---- from LLVM's types and tags ----

DICompositeType *type_table::by_llvm_type(const StructType *type, uint64_t size)
{
    std::string name = llvm_name(type);
    auto found = by_name.find(name);
    if (name.empty() || found == by_name.end())
        return nullptr;
    DICompositeType *result = nullptr;
    for (DICompositeType *candidate : found->second) {
        if (size_of(candidate) != size)
            continue;
        if (result && describe(result).identity != describe(candidate).identity)
            return nullptr;
        result = candidate;
    }
    return result;
}

bool type_table::named_like(const DICompositeType *type, const StructType *like) const
{
    auto named = typedef_names.find(type);
    std::string name = named != typedef_names.end() ? named->second : type->getName().str();
    return !name.empty() && simple_name(name) == llvm_name(like);
}

DICompositeType *type_table::by_tbaa_name(StringRef name, const MDNode *node)
{
    auto exact = by_identifier.find(name.str());
    if (exact != by_identifier.end())
        return exact->second;
    if (name.starts_with("_ZTS"))
        return nullptr;
    auto found = by_name.find(name.str());
    if (found == by_name.end())
        return nullptr;
    // In C a name can be that of several types: the members' names, types and offsets distinguish them.
    DICompositeType *result = nullptr;
    for (DICompositeType *candidate : found->second) {
        SmallVector<uint64_t, 16> offsets;
        for (DINode *part : candidate->getElements())
            if (DIDerivedType *member = dyn_cast_or_null<DIDerivedType>(part))
                if (member->getTag() == dwarf::DW_TAG_member && !member->isBitField())
                    offsets.push_back(member->getOffsetInBits() / 8);
        bool fits = true;
        for (unsigned i = 2; i < node->getNumOperands(); i += 2)
            if (ConstantInt *offset = mdconst::dyn_extract_or_null<ConstantInt>(node->getOperand(i)))
                fits &= is_contained(offsets, offset->getZExtValue());
        if (!fits)
            continue;
        if (result && describe(result).identity != describe(candidate).identity)
            return nullptr;
        result = candidate;
    }
    return result;
}

// ---- places ----

place place_of_object(const type_table &types, DIType *type)
{
    place result;
    result.known = type != nullptr;
    result.type = strip(type);
    if (DICompositeType *composite = as_composite(type))
        result.root = types.definition(composite);
    else if (DICompositeType *element = as_composite(element_of(type))) // an array of them is as good as one
        result.root = types.definition(element);
    return result;
}

enclosing enclosing_at(const MDNode *around)
{
    return {cast<DICompositeType>(around->getOperand(0)),
            mdconst::extract<ConstantInt>(around->getOperand(1))->getZExtValue(),
            cast_or_null<MDNode>(around->getOperand(2))};
}

place place_of_element(const type_table &types, const place &of, uint64_t begin, DICompositeType *element)
{
    LLVMContext &context = of.root->getContext();
    Metadata *offset = ConstantAsMetadata::get(ConstantInt::get(Type::getInt64Ty(context), begin));
    Metadata *link[] = {of.root, offset, const_cast<MDNode *>(of.around)};
    return {types.definition(element), 0, false, true, element, MDNode::get(context, link)};
}

place common_place(const place &a, const place &b)
{
    if (a.known != b.known || a.root != b.root || a.offset != b.offset || a.dynamic != b.dynamic)
        return {};
    place both = a;
    both.type = a.type == b.type ? a.type : nullptr;
    both.around = a.around == b.around ? a.around : nullptr;
    return both;
}

// The leaf at OFFSET of TYPE that ACCEPT takes; goes through nested structs and elements of arrays.
static DIType *leaf_at(const type_table &types, DICompositeType *type, uint64_t offset,
                       function_ref<bool(DIType *)> accept, unsigned depth)
{
    if (!type || depth > deepest)
        return nullptr;
    for (DINode *node : types.definition(type)->getElements()) {
        DIDerivedType *part = dyn_cast_or_null<DIDerivedType>(node);
        if (!part || part->isStaticMember() || part->isBitField() || part->isVirtual() ||
            (part->getTag() != dwarf::DW_TAG_member && part->getTag() != dwarf::DW_TAG_inheritance))
            continue;
        DIType *what = strip(part->getBaseType());
        uint64_t begin = part->getOffsetInBits() / 8, size = size_of(what);
        DIType *element = element_of(what);
        if (offset < begin || (offset >= begin + size && !(element && !size)))
            continue;
        uint64_t inside = offset - begin;
        if (element) {
            what = element;
            inside = size_of(element) ? inside % size_of(element) : inside;
        }
        if (DICompositeType *inner = as_composite(what)) {
            if (DIType *found = leaf_at(types, inner, inside, accept, depth + 1))
                return found;
        } else if (inside == 0 && accept(what)) {
            return what;
        }
    }
    return nullptr;
}

place place_behind(const type_table &types, const place &at)
{
    if (!at.known)
        return {};
    DIType *pointer = nullptr;
    if (at.root) {
        auto leads_to_struct = [](DIType *type) { return as_composite(pointee(type)) != nullptr; };
        auto leads_anywhere = [](DIType *type) { return is_pointer(type); };
        pointer = leaf_at(types, at.root, at.offset, leads_to_struct, 0);
        if (!pointer)
            pointer = leaf_at(types, at.root, at.offset, leads_anywhere, 0);
    } else {
        DIType *element = element_of(at.type);
        pointer = element ? element : at.type;
    }
    DIType *target = pointee(pointer);
    return target ? place_of_object(types, target) : place();
}

bool contains(const type_table &types, DICompositeType *root, uint64_t offset,
              function_ref<bool(DICompositeType *)> is_wanted)
{
    for (unsigned depth = 0; root && depth < deepest; depth++) {
        root = types.definition(root);
        if (offset == 0 && is_wanted(root))
            return true;
        DICompositeType *next = nullptr;
        uint64_t next_offset = 0;
        for (DINode *node : root->getElements()) {
            DIDerivedType *part = dyn_cast_or_null<DIDerivedType>(node);
            if (!part || part->isStaticMember() || part->isBitField() || part->isVirtual() ||
                (part->getTag() != dwarf::DW_TAG_member && part->getTag() != dwarf::DW_TAG_inheritance))
                continue;
            uint64_t begin = part->getOffsetInBits() / 8;
            DICompositeType *inner = as_composite(part->getBaseType());
            if (!inner || offset < begin || offset - begin >= std::max<uint64_t>(1, size_of(inner)))
                continue;
            if (root->getTag() == dwarf::DW_TAG_union_type) { // more than one may fit
                if (contains(types, inner, offset - begin, is_wanted))
                    return true;
                continue;
            }
            if (offset == begin && is_wanted(types.definition(inner)))
                return true;
            next = inner;
            next_offset = offset - begin;
        }
        root = next;
        offset = next_offset;
    }
    return false;
}

DIType *array_at(const type_table &types, DICompositeType *root, uint64_t offset, uint64_t *begin_of_array)
{
    uint64_t start = 0;
    for (unsigned depth = 0; root && depth < deepest; depth++) {
        DICompositeType *next = nullptr;
        uint64_t next_start = start;
        for (DINode *node : types.definition(root)->getElements()) {
            DIDerivedType *part = dyn_cast_or_null<DIDerivedType>(node);
            if (!part || part->isStaticMember() || part->isBitField() || part->isVirtual() ||
                (part->getTag() != dwarf::DW_TAG_member && part->getTag() != dwarf::DW_TAG_inheritance))
                continue;
            DIType *what = strip(part->getBaseType());
            uint64_t begin = start + part->getOffsetInBits() / 8, size = size_of(what);
            DIType *element = element_of(what);
            if (offset < begin || (offset >= begin + size && !(element && !size)))
                continue;
            if (element) {
                *begin_of_array = begin;
                return element;
            }
            if (DICompositeType *inner = as_composite(what)) {
                next = inner;
                next_start = begin;
            }
        }
        root = next;
        start = next_start;
    }
    return nullptr;
}

} // namespace hw
