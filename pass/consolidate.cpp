#include "pass.h"
void hw::merge_updates(llvm::Function &f, llvm::FunctionAnalysisManager &analyses, update_list &updates)
{
}
