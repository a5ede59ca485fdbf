// words.cpp - the granule 4: code that says which words of 4 bytes are used, and not how often.
//
// A word has a byte of shadow for reads and one for writes, whose high bit says "since the last sample". What counts is
// that the bit is set, so it is tested first, and set only where it is clear: hot words cost a load and a branch that
// is predicted, and their shadow stays clean in the cache. All words of an update are tested together, in loads of 1 to
// 8 bytes, with one branch; what is written in the cold branch are the bytes of these words and no others.
#include "pass.h"
#include "base/abi.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include <map>

using namespace llvm;

namespace hw
{

namespace
{

const int64_t word_bytes = 4;
const uint64_t recent = 0x80;  // the bit, in the cell of a word
const unsigned most_bytes = 8; // of cells that are tested with one load

int64_t floor_words(int64_t bytes)
{
    return bytes >= 0 ? bytes / word_bytes : -((word_bytes - 1 - bytes) / word_bytes);
}

// Cells that are tested with one load: those of the words [index + first, … + width) that the mask selects.
struct test {
    Value *index;
    int64_t first;
    bool write;
    unsigned width;    // 1, 2, 4 or 8 bytes
    uint64_t selected; // a bit for each byte
};

class word_emitter
{
    const update &u;
    Value *plane;
    const DataLayout &layout;
    Module &m;
    LLVMContext &context;
    MDNode *unseen; // !nosanitize
    SmallVector<test, 4> tests;

    Value *index_of(IRBuilder<> &code, Value *pointer)
    {
        return code.CreateLShr(code.CreatePtrToInt(pointer, code.getInt64Ty()), 2);
    }
    Value *cell(IRBuilder<> &code, const test &t, int64_t more = 0)
    {
        int64_t displacement = t.first + more + (t.write ? HW_ABI_WRITES_OFFSET : 0);
        Value *begin = code.CreateGEP(code.getInt8Ty(), plane, t.index);
        return displacement ? code.CreateConstGEP1_64(code.getInt8Ty(), begin, uint64_t(displacement)) : begin;
    }
    void add_tests(Value *index, const std::map<int64_t, unsigned> &words);
    void add_span(IRBuilder<> &code, Value *pointer, const span &s);
    void add_spans(IRBuilder<> &code, Value *pointer, ArrayRef<span> spans);
    Value *load(IRBuilder<> &code, const test &t);
    Value *missing(IRBuilder<> &code);
    void set(IRBuilder<> &code, const test &t, unsigned at, unsigned width);
    void mark(Instruction *before);
    void emit_spans(Instruction *before, Value *pointer, ArrayRef<span> spans);
    void call(IRBuilder<> &code, const char *name, ArrayRef<Value *> arguments);
    void emit_lanes();

  public:
    word_emitter(const update &u, Value *plane)
        : u(u), plane(plane), layout(u.at->getModule()->getDataLayout()), m(*u.at->getModule()),
          context(u.at->getContext()), unseen(MDNode::get(context, {}))
    {
    }
    void emit();
};

// WORDS: bit 0 read, bit 1 written, by distance from INDEX.
void word_emitter::add_tests(Value *index, const std::map<int64_t, unsigned> &words)
{
    for (unsigned kind = 0; kind < 2; kind++) {
        SmallVector<int64_t, 16> wanted;
        for (auto [word, kinds] : words)
            if (kinds >> kind & 1)
                wanted.push_back(word);
        for (size_t i = 0; i < wanted.size();) {
            test t = {index, wanted[i], kind == 1, 1, 0};
            for (; i < wanted.size() && wanted[i] - t.first < most_bytes; i++) {
                t.selected |= 1ull << (wanted[i] - t.first);
                while (wanted[i] - t.first >= t.width)
                    t.width *= 2;
            }
            tests.push_back(t);
        }
    }
}

// The words of a span whose address is known to nothing: the first and those that follow it surely, and the last.
void word_emitter::add_span(IRBuilder<> &code, Value *pointer, const span &s)
{
    Value *first = code.CreateConstGEP1_64(code.getInt8Ty(), pointer, uint64_t(s.offset));
    unsigned kinds = unsigned(s.reads) | unsigned(s.writes) << 1;
    std::map<int64_t, unsigned> words;
    for (uint64_t byte = 0; byte < s.bytes; byte += word_bytes)
        words[int64_t(byte / word_bytes)] = kinds;
    add_tests(index_of(code, first), words);
    if (s.bytes == 1 || (s.bytes <= word_bytes && s.alignment >= s.bytes))
        return;
    Value *last = code.CreateConstGEP1_64(code.getInt8Ty(), first, s.bytes - 1);
    add_tests(index_of(code, last), {{0, kinds}});
}

void word_emitter::add_spans(IRBuilder<> &code, Value *pointer, ArrayRef<span> spans)
{
    // Where the pointer lies in its word is known from one of the accesses, all of which are executed.
    bool known = pointer->getPointerAlignment(layout).value() >= uint64_t(word_bytes);
    int64_t phase = 0;
    for (const span &s : spans)
        if (!known && s.alignment >= uint64_t(word_bytes)) {
            known = true;
            phase = -s.offset & (word_bytes - 1);
        }
    if (!known) {
        SmallVector<span, 4> distinct;
        for (const span &s : spans) {
            bool found = false;
            for (span &d : distinct)
                if (d.offset == s.offset && d.bytes == s.bytes) {
                    d.reads |= s.reads;
                    d.writes |= s.writes;
                    d.alignment = std::max(d.alignment, s.alignment);
                    found = true;
                }
            if (!found)
                distinct.push_back(s);
        }
        for (const span &s : distinct)
            add_span(code, pointer, s);
        return;
    }
    std::map<int64_t, unsigned> words;
    for (const span &s : spans) {
        int64_t last = floor_words(phase + s.offset + int64_t(s.bytes) - 1);
        for (int64_t word = floor_words(phase + s.offset); word <= last; word++)
            words[word] |= unsigned(s.reads) | unsigned(s.writes) << 1;
    }
    // An offset that is a number of words is part of the displacement.
    APInt offset(64, 0);
    Value *base = phase ? pointer : pointer->stripAndAccumulateConstantOffsets(layout, offset, true);
    int64_t whole = 0;
    if (base != pointer && base->getType()->isPointerTy() && offset.getSExtValue() % word_bytes == 0 &&
        std::abs(offset.getSExtValue()) < 1 << 20) {
        pointer = base;
        whole = offset.getSExtValue() / word_bytes;
    }
    std::map<int64_t, unsigned> moved;
    for (auto [word, kinds] : words)
        moved[word + whole] = kinds;
    add_tests(index_of(code, pointer), moved);
}

Value *word_emitter::load(IRBuilder<> &code, const test &t)
{
    LoadInst *load = code.CreateAlignedLoad(code.getIntNTy(8 * t.width), cell(code, t), Align(1));
    load->setMetadata(LLVMContext::MD_nosanitize, unseen);
    return load;
}

// i1: some bit is clear.
Value *word_emitter::missing(IRBuilder<> &code)
{
    // Of equal shape: what is set in one and not in another is clear in both together.
    std::map<std::pair<unsigned, uint64_t>, Value *> shapes;
    for (const test &t : tests) {
        Value *&all = shapes[{t.width, t.selected}];
        Value *cells = load(code, t);
        all = all ? code.CreateAnd(all, cells) : cells;
    }
    Value *any = nullptr;
    for (auto [shape, cells] : shapes) {
        uint64_t mask = 0;
        for (unsigned i = 0; i < shape.first; i++)
            mask |= shape.second >> i & 1 ? recent << 8 * i : 0;
        if (shapes.size() == 1 && shape.first == 1)
            return code.CreateICmpSGE(cells, code.getInt8(0));
        Value *clear = code.CreateAnd(code.CreateNot(cells), ConstantInt::get(cells->getType(), mask));
        if (shapes.size() > 1)
            clear = code.CreateZExt(clear, code.getInt64Ty());
        any = any ? code.CreateOr(any, clear) : clear;
    }
    return code.CreateICmpNE(any, ConstantInt::get(any->getType(), 0));
}

void word_emitter::set(IRBuilder<> &code, const test &t, unsigned at, unsigned width)
{
    Type *type = code.getIntNTy(8 * width);
    Value *address = cell(code, t, at);
    update_memory(code, "or", address, ConstantInt::get(type, 0x8080808080808080ull >> (64 - 8 * width)));
}

void word_emitter::mark(Instruction *before)
{
    IRBuilder<> code(before);
    code.SetCurrentDebugLocation(u.location);
    Value *some = missing(code);
    Instruction *cold = SplitBlockAndInsertIfThen(some, before->getIterator(), false,
                                                  MDBuilder(context).createBranchWeights(1, 1 << 20));
    code.SetInsertPoint(cold);
    code.SetCurrentDebugLocation(u.location);
    for (const test &t : tests)
        for (unsigned at = 0; at < t.width;) {
            unsigned width = 1;
            if (!(t.selected >> at & 1)) {
                at++;
                continue;
            }
            while (width < most_bytes && at + 2 * width <= t.width &&
                   (t.selected >> at & ((1ull << 2 * width) - 1)) == (1ull << 2 * width) - 1)
                width *= 2;
            set(code, t, at, width);
            at += width;
        }
    tests.clear();
}

void word_emitter::emit_spans(Instruction *before, Value *pointer, ArrayRef<span> spans)
{
    IRBuilder<> code(before);
    code.SetCurrentDebugLocation(u.location);
    add_spans(code, pointer, spans);
    mark(before);
}

void word_emitter::call(IRBuilder<> &code, const char *name, ArrayRef<Value *> arguments)
{
    SmallVector<Type *, 5> types;
    for (Value *argument : arguments)
        types.push_back(argument->getType());
    FunctionCallee callee =
        m.getOrInsertFunction((Twine(name) + "4").str(), FunctionType::get(code.getVoidTy(), types, false));
    if (Function *function = dyn_cast<Function>(callee.getCallee())) {
        function->setDoesNotThrow();
        function->setWillReturn();
    }
    code.CreateCall(callee, arguments)->setDoesNotThrow();
}

void word_emitter::emit_lanes()
{
    Value *mask = u.other;
    unsigned lanes = cast<FixedVectorType>(mask->getType())->getNumElements();
    IRBuilder<> code(u.at);
    code.SetCurrentDebugLocation(u.location);
    if (u.what == update::packed) {
        Value *on = code.CreateBitCast(mask, code.getIntNTy(lanes));
        Value *number = code.CreateZExtOrTrunc(code.CreateUnaryIntrinsic(Intrinsic::ctpop, on), code.getInt64Ty());
        call(code, HW_ABI_TOUCH,
             {u.pointer, code.CreateMul(number, code.getInt64(u.bytes)), code.getInt64(u.reads),
              code.getInt64(u.writes)});
        return;
    }
    for (unsigned lane = 0; lane < lanes; lane++) {
        code.SetInsertPoint(u.at);
        Value *on = code.CreateExtractElement(mask, lane);
        Value *pointer = u.what == update::gather
                             ? code.CreateExtractElement(u.pointer, lane)
                             : code.CreateConstGEP1_64(code.getInt8Ty(), u.pointer, uint64_t(lane) * u.bytes);
        if (Constant *constant = dyn_cast<Constant>(on))
            if (constant->isNullValue())
                continue;
        Instruction *inside = SplitBlockAndInsertIfThen(on, u.at->getIterator(), false);
        call(*std::make_unique<IRBuilder<>>(inside), HW_ABI_TOUCH,
             {pointer, code.getInt64(u.bytes), code.getInt64(u.reads), code.getInt64(u.writes)});
    }
}

void word_emitter::emit()
{
    IRBuilder<> code(u.at);
    code.SetCurrentDebugLocation(u.location);
    auto length = [&] { return code.CreateZExtOrTrunc(u.times, code.getInt64Ty()); };
    switch (u.what) {
    case update::cell:
        if (u.times) { // never executed, it may have any address
            Value *ever = code.CreateICmpNE(u.times, ConstantInt::get(u.times->getType(), 0));
            emit_spans(SplitBlockAndInsertIfThen(ever, u.at->getIterator(), false), u.pointer, u.spans);
        } else
            emit_spans(u.at, u.pointer, u.spans);
        break;
    case update::range: {
        SmallVector<span, 2> spans;
        join_spans(u.spans, spans);
        for (const span &s : spans)
            call(code, HW_ABI_RANGE,
                 {code.CreateConstGEP1_64(code.getInt8Ty(), u.pointer, uint64_t(s.offset)), u.other, length(),
                  code.getInt64(s.bytes), code.getInt64(uint64_t(s.reads) | uint64_t(s.writes) << 1)});
        break;
    }
    case update::lanes:
    case update::gather:
    case update::packed:
        emit_lanes();
        break;
    case update::touch:
        call(code, HW_ABI_TOUCH, {u.pointer, length(), code.getInt64(u.reads), code.getInt64(u.writes)});
        break;
    case update::copy:
        call(code, HW_ABI_COPY, {u.pointer, u.other, length()});
        break;
    case update::grid:
    case update::crossing:
    case update::field:
        llvm_unreachable("not made for words");
    }
}

} // namespace

void join_spans(ArrayRef<span> from, SmallVectorImpl<span> &to)
{
    SmallVector<span, 8> sorted(from.begin(), from.end());
    llvm::sort(sorted, [](const span &a, const span &b) {
        return std::make_tuple(a.reads, a.writes, a.offset) < std::make_tuple(b.reads, b.writes, b.offset);
    });
    for (const span &s : sorted) {
        if (!s.bytes)
            continue;
        span *last = to.empty() ? nullptr : &to.back();
        if (last && last->reads == s.reads && last->writes == s.writes &&
            s.offset <= last->offset + int64_t(last->bytes))
            last->bytes = std::max(last->bytes, uint64_t(s.offset - last->offset) + s.bytes);
        else
            to.push_back(s);
    }
}

void emit_words(const update &u, Value *plane)
{
    word_emitter(u, plane).emit();
}

} // namespace hw
