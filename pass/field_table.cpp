// field_table.cpp - the module's table of structs, groups and counters (base/abi.h, struct hw_fields_table).
#include "fields.h"
#include "base/abi.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;

namespace hw
{

uint32_t field_table::text(const std::string &string)
{
    if (string.empty())
        return 0;
    auto [entry, fresh] = offsets.try_emplace(string, uint32_t(strings.size()));
    if (fresh) {
        strings += string;
        strings += '\0';
    }
    return entry->second;
}

void field_table::add_group(DICompositeType *root, std::vector<group_member> members, uint32_t counter, uint32_t object,
                            const DebugLoc &location, const Function &f)
{
    group one = {HW_NONE, 0, 0, 0, counter, object, std::move(members)};
    if (root) {
        root = facts.types->definition(root);
        one.structure = structs.insert({root, uint32_t(structs.size())}).first->second;
    }
    const DISubprogram *program = location ? location.get()->getScope()->getSubprogram() : f.getSubprogram();
    StringRef name = program ? program->getLinkageName() : f.getName();
    if (name.empty() && program)
        name = program->getName();
    one.function = text(name.str());
    if (program) {
        SmallString<256> file(program->getFilename());
        if (!file.empty() && file[0] != '/' && !program->getDirectory().empty())
            file = (program->getDirectory() + "/" + program->getFilename()).str();
        one.file = text(file.str().str());
        one.line = location ? location.getLine() : program->getLine();
    }
    groups.push_back(std::move(one));
}

namespace
{

template <typename T> void append(std::string &to, const T &entry)
{
    to.append(reinterpret_cast<const char *>(&entry), sizeof entry);
}

} // namespace

// What code counts in, before the table is registered and after.
GlobalVariable *fields_base(Module &m)
{
    GlobalVariable *base = m.getGlobalVariable("heapwise.fields_base", true);
    if (!base)
        base = new GlobalVariable(m, Type::getInt64Ty(m.getContext()), false, GlobalValue::InternalLinkage,
                                  ConstantInt::get(Type::getInt64Ty(m.getContext()), HW_ABI_FIELDS_SCRATCH),
                                  "heapwise.fields_base");
    return base;
}

void field_table::finish()
{
    LLVMContext &context = m.getContext();
    std::string struct_bytes, field_bytes, group_bytes, member_bytes;
    uint32_t field_count = 0, member_count = 0;
    if (groups.empty())
        return;
    for (const auto &[type, function] : outside()) // others' parts may be of them
        structs.insert({type, uint32_t(structs.size())});
    std::vector<uint32_t> first_fields;
    for (auto &[type, index] : structs) {
        const structure &from = describe(type);
        struct hw_struct to = {};
        to.identity = from.identity;
        to.size = from.size;
        to.name = text(from.name);
        to.file = text(from.file);
        to.line = from.line;
        to.flags = from.flags;
        auto flags = facts.struct_flags.find(type);
        to.flags |= flags == facts.struct_flags.end() ? 0 : flags->second;
        to.alignment = from.alignment;
        to.first_field = field_count;
        to.field_count = uint32_t(from.fields.size());
        first_fields.push_back(field_count);
        append(struct_bytes, to);
        const std::set<uint64_t> &escaping = facts.escaping[type];
        for (const field &one : from.fields) {
            struct hw_field entry = {};
            entry.name = text(one.name);
            entry.type_name = text(one.type);
            entry.declaration = text(one.declaration);
            entry.flags = one.flags | (escaping.count(one.offset) ? HW_FIELD_ESCAPES : 0);
            entry.offset = one.offset;
            entry.size = one.size;
            entry.bit_offset = one.bit_offset;
            entry.bit_size = one.bit_size;
            entry.alignment = one.alignment;
            entry.line = one.line;
            entry.member_offset = one.member_offset;
            entry.member_size = one.member_size;
            entry.member_alignment = one.member_alignment;
            if (one.part) {
                entry.part = describe(one.part).identity;
                entry.part_offset = uint32_t(one.part_offset);
            }
            append(field_bytes, entry);
            field_count++;
        }
    }
    for (const group &from : groups) {
        struct hw_field_group to = {};
        to.structure = from.structure;
        to.function = from.function;
        to.file = from.file;
        to.line = from.line;
        to.first_member = member_count;
        to.member_count = uint32_t(from.members.size());
        to.executions = from.counter;
        to.object = from.object;
        append(group_bytes, to);
        for (const group_member &one : from.members) {
            struct hw_group_member entry = {};
            entry.field = one.field == HW_NONE ? HW_NONE : first_fields[from.structure] + one.field;
            entry.reads = one.reads;
            entry.writes = one.writes;
            entry.flags = one.inherited ? HW_MEMBER_INHERITED : 0;
            append(member_bytes, entry);
            member_count++;
        }
    }
    struct hw_fields_table header = {};
    header.version = HW_ABI_FIELDS_VERSION;
    header.counters = counters;
    header.structs = uint32_t(structs.size());
    header.fields = field_count;
    header.groups = uint32_t(groups.size());
    header.members = member_count;
    header.string_bytes = uint32_t(strings.size());
    header.entry_bytes = sizeof(struct hw_struct) + sizeof(struct hw_field) + sizeof(struct hw_field_group) +
                         sizeof(struct hw_group_member);
    std::string all;
    append(all, header);
    all += struct_bytes + field_bytes + group_bytes + member_bytes + strings;
    Constant *contents = ConstantDataArray::getString(context, all, false);
    GlobalVariable *table =
        new GlobalVariable(m, contents->getType(), true, GlobalValue::PrivateLinkage, contents, "heapwise.fields");
    table->setAlignment(Align(8));
    call_at_start(m, HW_ABI_FIELDS, {table, fields_base(m)});
    finish_outside();
}

// What facts.outside says, of functions that are still called.
std::vector<std::pair<DICompositeType *, Function *>> field_table::outside()
{
    std::vector<std::pair<DICompositeType *, Function *>> result;
    for (const auto &[key, typed] : facts.outside) {
        Function *function = m.getFunction(key.second);
        bool called = false;
        if (!function || !function->isDeclaration())
            continue;
        for (const User *user : function->users())
            called |= isa<CallBase>(user) && cast<CallBase>(user)->getCalledOperand() == function;
        if (called)
            result.push_back({key.first, function});
    }
    return result;
}

void field_table::finish_outside()
{
    LLVMContext &context = m.getContext();
    std::vector<Constant *> entries;
    for (const auto &[type, function] : outside()) {
        Type *word = Type::getInt64Ty(context);
        bool typed = facts.outside[{type, function->getName().str()}];
        entries.push_back(ConstantStruct::getAnon(
            {ConstantInt::get(word, describe(type).identity), function, ConstantInt::get(word, typed)}));
    }
    if (entries.empty())
        return;
    ArrayType *shape = ArrayType::get(entries[0]->getType(), entries.size());
    // Not constant: in a program at a fixed address the linker would put its own stubs for the functions there.
    GlobalVariable *list = new GlobalVariable(m, shape, false, GlobalValue::PrivateLinkage,
                                              ConstantArray::get(shape, entries), "heapwise.outside");
    list->setAlignment(Align(8));
    call_at_start(m, HW_ABI_OUTSIDE, {list, ConstantInt::get(Type::getInt32Ty(context), entries.size())});
}

} // namespace hw
