// types.cpp - passes the type of the next block to the runtime.
//
// clang 22's -fsanitize=alloc-token gives allocations metadata: !alloc_token !{"type", i1 contains pointers}. The
// metadata are kept, the attribute that would make clang rename the calls is not. Elsewhere the type is inferred from
// the struct path of the accesses to the block in the function that allocates it.
#include "pass.h"
#include "base/abi.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"
#include <map>

using namespace llvm;

namespace hw
{

namespace
{

uint64_t type_id(StringRef name)
{
    uint64_t hash = 0xcbf29ce484222325;
    for (unsigned char byte : name)
        hash = (hash ^ byte) * 0x100000001b3;
    return hash;
}

bool is_allocation(const CallBase &call)
{
    if (call.hasFnAttr(Attribute::AllocSize) || call.returnDoesNotAlias())
        return call.getType()->isPointerTy() && !call.isInlineAsm();
    return false;
}

StringRef string_of(const Metadata *node)
{
    const MDString *string = dyn_cast_or_null<MDString>(node);
    return string ? string->getString() : StringRef();
}

StringRef token_type(const CallBase &call)
{
    const MDNode *token = call.getMetadata("alloc_token");
    return token && token->getNumOperands() ? string_of(token->getOperand(0)) : StringRef();
}

// The struct that a struct-path tag starts from; nothing for a scalar. C++ names are mangled there: "_ZTS4node".
StringRef base_type(const MDNode *tag)
{
    if (!tag || tag->getNumOperands() < 3)
        return {};
    const MDNode *base = dyn_cast_or_null<MDNode>(tag->getOperand(0));
    if (!base || base == tag->getOperand(1) || base->getNumOperands() < 4) // name, then member and offset pairs
        return {};
    return string_of(base->getOperand(0));
}

// The type that all tagged accesses off BLOCK agree in.
std::string inferred_type(const CallBase &block, const DataLayout &layout)
{
    StringRef found;
    SmallVector<std::pair<const Value *, int64_t>, 8> todo = {{&block, 0}};
    for (unsigned n = 0; n < todo.size() && n < 64; n++) {
        auto [value, offset] = todo[n];
        for (const User *user : value->users()) {
            if (const GetElementPtrInst *step = dyn_cast<GetElementPtrInst>(user)) {
                APInt bytes(64, 0);
                if (step->getPointerOperand() == value && step->accumulateConstantOffset(layout, bytes))
                    todo.push_back({step, offset + bytes.getSExtValue()});
                continue;
            }
            const StoreInst *store = dyn_cast<StoreInst>(user);
            if (!isa<LoadInst>(user) && !(store && store->getPointerOperand() == value))
                continue;
            const MDNode *tag = cast<Instruction>(user)->getMetadata(LLVMContext::MD_tbaa);
            StringRef name = base_type(tag);
            const ConstantInt *place = name.empty() ? nullptr : mdconst::dyn_extract<ConstantInt>(tag->getOperand(2));
            if (!place || place->getSExtValue() != offset)
                continue;
            if (!found.empty() && found != name)
                return {};
            found = name;
        }
    }
    if (found.starts_with("_ZTS")) // a simple or nested name: the digits show where its parts end
        found = found.drop_front(4);
    std::string name;
    StringRef rest = found;
    if (rest.consume_front("N"))
        rest.consume_back("E");
    while (!rest.empty() && isDigit(rest.front())) {
        unsigned length;
        if (rest.consumeInteger(10, length) || length > rest.size())
            return found.str();
        name += (name.empty() ? "" : "::") + rest.take_front(length).str();
        rest = rest.drop_front(length);
    }
    return rest.empty() ? name : found.str();
}

class type_writer
{
    Module &m;
    std::map<std::string, GlobalVariable *> names;
    GlobalVariable *variable = nullptr;

    void name_type(const std::string &name);
    void store(Instruction *before, uint64_t id, const DebugLoc &location);

  public:
    type_writer(Module &m) : m(m)
    {
    }
    void announce(CallBase &call, const std::string &name);
    bool finish();
};

void type_writer::name_type(const std::string &name)
{
    GlobalVariable *&string = names[name];
    if (string)
        return;
    Constant *contents = ConstantDataArray::getString(m.getContext(), name);
    string = new GlobalVariable(m, contents->getType(), true, GlobalValue::PrivateLinkage, contents, "heapwise.type");
    string->setSection(HW_ABI_TYPES_SECTION);
    string->setAlignment(Align(1));
}

void type_writer::store(Instruction *before, uint64_t id, const DebugLoc &location)
{
    if (!variable)
        variable = m.getGlobalVariable(HW_ABI_TYPE);
    if (!variable)
        variable = new GlobalVariable(m, Type::getInt64Ty(m.getContext()), false, GlobalValue::ExternalLinkage, nullptr,
                                      HW_ABI_TYPE, nullptr, GlobalValue::InitialExecTLSModel);
    IRBuilder<> code(before);
    code.SetCurrentDebugLocation(location);
    StoreInst *store = code.CreateStore(code.getInt64(id), code.CreateThreadLocalAddress(variable));
    store->setMetadata(LLVMContext::MD_nosanitize, MDNode::get(m.getContext(), {}));
    // The store is for the callee: nothing may take it for dead.
    store->setVolatile(true);
}

void type_writer::announce(CallBase &call, const std::string &name)
{
    name_type(name);
    store(&call, type_id(name), call.getDebugLoc());
    Instruction *after = call.getNextNode();
    if (InvokeInst *invoke = dyn_cast<InvokeInst>(&call)) { // when it throws the hook has taken the type
        BasicBlock *next = invoke->getNormalDest();
        if (!next->getUniquePredecessor())
            next = SplitEdge(invoke->getParent(), next);
        after = &*next->getFirstInsertionPt();
    }
    store(after, 0, call.getDebugLoc());
}

bool type_writer::finish()
{
    SmallVector<GlobalValue *, 16> kept;
    for (auto &[name, string] : names)
        kept.push_back(string);
    appendToUsed(m, kept);
    return !names.empty();
}

} // namespace

bool note_types(Module &m)
{
#if LLVM_VERSION_MAJOR >= 22
    for (Function &f : m)
        f.removeFnAttr(Attribute::SanitizeAllocToken);
    return true;
#else
    return false;
#endif
}

bool store_types(Module &m)
{
    type_writer types(m);
    for (Function &f : m) {
        if (f.isDeclaration() || is_exempt(f))
            continue;
        SmallVector<std::pair<CallBase *, std::string>, 8> found;
        for (Instruction &i : instructions(f)) {
            CallBase *call = dyn_cast<CallBase>(&i);
            if (!call || isa<CallBrInst>(call) || call->isMustTailCall())
                continue;
            std::string name = token_type(*call).str();
            if (name.empty() && is_allocation(*call))
                name = inferred_type(*call, m.getDataLayout());
            if (!name.empty())
                found.push_back({call, name});
        }
        for (auto &[call, name] : found)
            types.announce(*call, name);
    }
    return types.finish();
}

} // namespace hw
