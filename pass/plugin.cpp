// plugin.cpp - what clang and opt load: options and the places in the pipeline.
//
//     clang -fplugin=HeapwisePass-22.so -fpass-plugin=HeapwisePass-22.so -mllvm -heapwise-granule=8 …
//
// -fplugin loads the plugin early enough for its options to be known; without options -fpass-plugin alone does.
#include "fields.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#if LLVM_VERSION_MAJOR >= 22
#include "llvm/Plugins/PassPlugin.h"
#else
#include "llvm/Passes/PassPlugin.h"
#endif
#include "llvm/Support/CommandLine.h"

using namespace llvm;

namespace
{

cl::opt<unsigned> granule("heapwise-granule", cl::init(64), cl::value_desc("64|8|4|0"),
                          cl::desc("Bytes of memory that share a counter; 0: none are counted"));
cl::opt<bool> fields("heapwise-fields", cl::desc("Count the fields of structs"));
cl::opt<bool> no_consolidate("heapwise-no-consolidate", cl::desc("One update for each access"));
cl::opt<std::string> output("heapwise-output", cl::value_desc("pattern"), cl::desc("Name of the profile"));
cl::opt<std::string> ignore_list("heapwise-ignore-list", cl::value_desc("file"),
                                 cl::desc("Functions and source files that are not counted (fun:, src:)"));
cl::opt<bool> reads("heapwise-reads", cl::init(true), cl::desc("Count loads"));
cl::opt<bool> writes("heapwise-writes", cl::init(true), cl::desc("Count stores"));
cl::opt<bool> atomics("heapwise-atomics", cl::init(true), cl::desc("Count atomic read-modify-writes"));
cl::opt<bool> types("heapwise-types", cl::init(true), cl::desc("Record the types of allocated blocks"));

struct early_pass : PassInfoMixin<early_pass> {
    PreservedAnalyses run(Module &m, ModuleAnalysisManager &)
    {
        hw::mark_exempt(m, true);
        hw::note_types(m);
        if (fields)
            hw::mark_fields(m);
        return PreservedAnalyses::none();
    }
    static bool isRequired() // also at -O0
    {
        return true;
    }
};

struct counting_pass : PassInfoMixin<counting_pass> {
    PreservedAnalyses run(Module &m, ModuleAnalysisManager &analyses);
    static bool isRequired()
    {
        return true;
    }
};

// The updates for what is counted of F: of cells, of fields or of both.
void instrument(Function &f, FunctionAnalysisManager &analyses, hw::early_facts &facts, hw::field_table &table)
{
    hw::update_list of_fields, updates;
    if (hw::options().fields) { // first: the others change address computations
        of_fields = hw::count_fields(f, analyses, facts, table);
        hw::drop_marks(f);
    }
    if (hw::options().granule)
        updates = hw::find_accesses(f);
    if (hw::options().consolidate && !updates.empty()) {
        hw::merge_updates(f, analyses, updates);
        if (hw::by_words())
            hw::drop_marked(f, updates);
        if (!f.hasOptNone())
            hw::leave_loops(f, analyses, updates);
    }
    if (hw::options().consolidate && !of_fields.empty() && !f.hasOptNone()) {
        if (!updates.empty())
            analyses.invalidate(f, PreservedAnalyses::none());
        hw::leave_loops(f, analyses, of_fields);
    }
    updates.insert(updates.end(), of_fields.begin(), of_fields.end());
    if (updates.empty())
        return;
    hw::emit_updates(f, analyses, updates);
    analyses.invalidate(f, PreservedAnalyses::none());
}

PreservedAnalyses counting_pass::run(Module &m, ModuleAnalysisManager &analyses)
{
    if (!hw::claim_module(m))
        return PreservedAnalyses::all();
    FunctionAnalysisManager &of_functions = analyses.getResult<FunctionAnalysisManagerModuleProxy>(m).getManager();
    hw::early_facts none;
    hw::early_facts &facts = hw::options().fields ? hw::facts_of(m) : none;
    hw::field_table table(m, facts);
    for (Function &f : m)
        if (!f.isDeclaration() && !hw::is_exempt(f))
            instrument(f, of_functions, facts, table);
    if (hw::options().fields) {
        table.finish();
        facts = hw::early_facts();
    }
    if (hw::options().types)
        hw::store_types(m);
    hw::finish_module(m);
    return PreservedAnalyses::none();
}

void register_passes(PassBuilder &builder)
{
    builder.registerPipelineStartEPCallback(
        [](ModulePassManager &passes, OptimizationLevel) { passes.addPass(early_pass()); });
#if LLVM_VERSION_MAJOR >= 20
    builder.registerOptimizerLastEPCallback(
        [](ModulePassManager &passes, OptimizationLevel, ThinOrFullLTOPhase) { passes.addPass(counting_pass()); });
#else
    builder.registerOptimizerLastEPCallback(
        [](ModulePassManager &passes, OptimizationLevel) { passes.addPass(counting_pass()); });
#endif
    // opt -passes=heapwise, for tests
    builder.registerPipelineParsingCallback(
        [](StringRef name, ModulePassManager &passes, ArrayRef<PassBuilder::PipelineElement>) {
            if (name == "heapwise-early")
                passes.addPass(early_pass());
            else if (name == "heapwise")
                passes.addPass(counting_pass());
            else
                return false;
            return true;
        });
}

} // namespace

const hw::settings &hw::options()
{
    static const settings chosen = {granule, fields, !no_consolidate, reads,      writes,
                                    atomics, types,  output,          ignore_list};
    return chosen;
}

extern "C" LLVM_ATTRIBUTE_WEAK __attribute__((visibility("default"))) PassPluginLibraryInfo llvmGetPassPluginInfo()
{
    return {LLVM_PLUGIN_API_VERSION, "Heapwise", "1", register_passes};
}
