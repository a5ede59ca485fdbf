// module.cpp - what an instrumented module has once, and which of its functions are counted.
#include "pass.h"
#include "base/abi.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SpecialCaseList.h"
#include "llvm/Support/VirtualFileSystem.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;

namespace hw
{

namespace
{

const char marked_module[] = "heapwise";            // module flag: instrumented already
const char marked_function[] = "heapwise-no-count"; // function attribute

const char constructor_name[] = "heapwise.module_ctor";

// One note an object; sections of notes are roots of the linker's garbage collection.
void add_note(Module &m, unsigned unseen_operations)
{
    LLVMContext &context = m.getContext();
    Type *word = Type::getInt32Ty(context);
    auto number = [word](uint32_t n) { return ConstantInt::get(word, n); };
    std::string name = HW_ABI_NOTE_NAME;
    uint32_t name_bytes = name.size() + 1;
    name.resize(alignTo(name_bytes, 4));
    Constant *contents = ConstantStruct::getAnon(
        {number(name_bytes), number(4 * sizeof(uint32_t)), number(HW_ABI_NOTE_TYPE),
         ConstantDataArray::getString(context, name, false), number(HW_ABI_VERSION), number(options().granule),
         number((options().consolidate ? HW_ABI_CONSOLIDATED : 0) | (options().fields ? HW_ABI_COUNTS_FIELDS : 0)),
         number(unseen_operations)},
        true);
    GlobalVariable *note =
        new GlobalVariable(m, contents->getType(), true, GlobalValue::PrivateLinkage, contents, "heapwise.note");
    note->setSection(HW_ABI_NOTE_SECTION);
    note->setAlignment(Align(4));
    appendToCompilerUsed(m, {note});
}

void add_output(Module &m)
{
    if (options().output.empty() || m.getNamedValue(HW_ABI_OUTPUT))
        return;
    Constant *contents = ConstantDataArray::getString(m.getContext(), options().output);
    GlobalVariable *output =
        new GlobalVariable(m, contents->getType(), true, GlobalValue::WeakAnyLinkage, contents, HW_ABI_OUTPUT);
    output->setComdat(m.getOrInsertComdat(HW_ABI_OUTPUT));
    appendToCompilerUsed(m, {output});
}

// A variable that owns its granules can be reported by its symbol. Small ones that are many would grow the program:
// only what a name stands for, and no constant that the linker merges.
void align_globals(Module &m)
{
    for (GlobalVariable &global : m.globals()) {
        if (global.isDeclarationForLinker() || global.hasSection() || global.hasPrivateLinkage() ||
            global.isThreadLocal() || global.hasCommonLinkage() || global.hasAppendingLinkage() || !global.hasName() ||
            global.getAddressSpace() != 0)
            continue;
        if (global.getName().starts_with("llvm.") || global.getName().starts_with("__") || global.isConstant() ||
            global.isInterposable())
            continue;
        if (global.getAlign().valueOrOne() < Align(64))
            global.setAlignment(Align(64));
    }
}

const SpecialCaseList *ignored()
{
    static std::unique_ptr<SpecialCaseList> list =
        options().ignore_list.empty()
            ? nullptr
            : SpecialCaseList::createOrDie({options().ignore_list}, *vfs::getRealFileSystem());
    return list.get();
}

void mark(Value *value)
{
    if (Function *f = dyn_cast<Function>(value->stripPointerCastsAndAliases()))
        f->addFnAttr(marked_function);
}

} // namespace

SmallVector<Value *, 8> annotated_with(Module &m, StringRef text)
{
    SmallVector<Value *, 8> found;
    GlobalVariable *annotations = m.getGlobalVariable("llvm.global.annotations");
    ConstantArray *entries =
        annotations && annotations->hasInitializer() ? dyn_cast<ConstantArray>(annotations->getInitializer()) : nullptr;
    if (!entries)
        return found;
    for (Value *entry : entries->operands()) {
        ConstantStruct *parts = dyn_cast<ConstantStruct>(entry);
        GlobalVariable *variable =
            parts ? dyn_cast<GlobalVariable>(parts->getOperand(1)->stripPointerCasts()) : nullptr;
        ConstantDataArray *string =
            variable && variable->hasInitializer() ? dyn_cast<ConstantDataArray>(variable->getInitializer()) : nullptr;
        if (string && string->isCString() && string->getAsCString() == text)
            found.push_back(parts->getOperand(0));
    }
    return found;
}

void call_at_start(Module &m, const char *function, ArrayRef<Constant *> arguments)
{
    LLVMContext &context = m.getContext();
    Type *nothing = Type::getVoidTy(context);
    Function *constructor = m.getFunction(constructor_name);
    if (!constructor) {
        constructor = Function::createWithDefaultAttr(FunctionType::get(nothing, false), GlobalValue::InternalLinkage,
                                                      0, constructor_name, &m);
        constructor->addFnAttr(Attribute::NoUnwind);
        ReturnInst::Create(context, BasicBlock::Create(context, "", constructor));
        appendToGlobalCtors(m, constructor, 1);
    }
    SmallVector<Type *, 2> types;
    for (Constant *argument : arguments)
        types.push_back(argument->getType());
    FunctionCallee callee = m.getOrInsertFunction(function, FunctionType::get(nothing, types, false));
    IRBuilder<> code(constructor->getEntryBlock().getTerminator());
    code.CreateCall(callee, SmallVector<Value *, 2>(arguments.begin(), arguments.end()));
}

void mark_exempt(Module &m, bool early)
{
    for (Value *value : annotated_with(m, HW_ABI_NO_COUNT))
        mark(value);
    for (GlobalIFunc &ifunc : m.ifuncs()) // resolvers run before thread-local storage is there
        mark(ifunc.getResolver());
    if (const SpecialCaseList *list = ignored()) {
        bool whole = list->inSection("heapwise", "src", m.getSourceFileName());
        for (Function &f : m)
            if (whole || list->inSection("heapwise", "fun", f.getName()))
                mark(&f);
    }
    if (!early)
        return;
    for (Function &f : m)
        if (f.hasFnAttribute(marked_function) && !f.hasFnAttribute(Attribute::AlwaysInline))
            f.addFnAttr(Attribute::NoInline);
}

bool is_exempt(const Function &f)
{
    return f.hasFnAttribute(marked_function) || f.hasFnAttribute(Attribute::DisableSanitizerInstrumentation) ||
           f.hasFnAttribute(Attribute::Naked) || f.hasAvailableExternallyLinkage() ||
           f.getName().starts_with("__heapwise_") || f.getName().starts_with("__memprof_") ||
           f.getName().starts_with("heapwise.");
}

bool claim_module(Module &m)
{
    if (m.getModuleFlag(marked_module))
        return false;
    m.addModuleFlag(Module::Max, marked_module, options().granule);
    if (options().granule != 64 && options().granule != 8 && options().granule != 4 && options().granule != 0) {
        m.getContext().emitError("-heapwise-granule must be 64, 8 or 4, or with -heapwise-fields 0");
        return false;
    }
    mark_exempt(m, false);
    if (options().granule) {
        align_globals(m);
        call_at_start(m, HW_ABI_INIT, {ConstantInt::get(Type::getInt32Ty(m.getContext()), options().granule)});
    }
    add_output(m);
    return true;
}

void finish_module(Module &m)
{
    unsigned operations = 0;
    for (Function &f : m)
        for (Instruction &i : instructions(f))
            if (i.hasMetadata(unseen_operation)) {
                operations++;
                i.setMetadata(unseen_operation, nullptr);
            }
    add_note(m, operations);
}

} // namespace hw
