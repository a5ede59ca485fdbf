// marked.cpp - with the granule 4: words that are certain to be marked already are not tested again.
//
// A mark says "since the last look", so it counts for what follows at once, and not for what comes later: a fact that
// words are marked ends at everything that may take time or change cells (calls that may wait, free or not come back,
// see is_harmless) and at the head of every loop, since each iteration marks anew. Between those it holds where it
// holds on all ways that lead there. What is known of is bytes off a base; the words that they lie in follow, and where
// one of the accesses is aligned to words, whole words.
#include "order.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include <map>

using namespace llvm;

namespace hw
{

namespace
{

const size_t most_facts = 256;
const int64_t word_bytes = 4;

// Of one base: its number, whether of writes, and which eight bytes; to a bit for each byte.
struct place {
    unsigned base;
    bool write;
    int64_t window;
    bool operator<(const place &other) const
    {
        return std::tie(base, write, window) < std::tie(other.base, other.write, other.window);
    }
};

struct state {
    std::map<place, uint8_t> marked;
    std::map<unsigned, int64_t> phases; // of bases: an offset, modulo 4, at which a word begins

    void keep_common(const state &other)
    {
        for (auto at = marked.begin(); at != marked.end();) {
            auto found = other.marked.find(at->first);
            at->second = found == other.marked.end() ? 0 : at->second & found->second;
            at = at->second ? std::next(at) : marked.erase(at);
        }
        for (auto at = phases.begin(); at != phases.end();)
            at = other.phases.count(at->first) ? std::next(at) : phases.erase(at);
    }
};

class marked_words
{
    Function &f;
    update_list &updates;
    const DataLayout &layout;
    std::map<std::vector<uint64_t>, unsigned> bases;
    DenseMap<const Instruction *, SmallVector<size_t, 1>> of_instruction;
    DenseMap<const BasicBlock *, state> behind; // blocks

    unsigned number_of(const address &a);
    void visit(update &u, state &now);

  public:
    marked_words(Function &f, update_list &updates) : f(f), updates(updates), layout(f.getParent()->getDataLayout())
    {
    }
    void run();
};

unsigned marked_words::number_of(const address &a)
{
    std::vector<uint64_t> key = {uint64_t(uintptr_t(a.base))};
    for (const address::term &term : a.terms) {
        key.push_back(uint64_t(uintptr_t(term.variable)));
        key.push_back(term.how);
        key.push_back(term.scale);
    }
    return bases.try_emplace(key, bases.size()).first->second;
}

int64_t floor_to(int64_t value, int64_t unit)
{
    return value - ((value % unit) + unit) % unit;
}

// Calls EACH for the bytes [first, end) in pieces: which eight bytes, and a bit for each of those in it.
template <typename function> bool all_windows(int64_t first, int64_t end, function each)
{
    for (int64_t window = floor_to(first, 8); window < end; window += 8) {
        uint8_t bits = 255;
        if (first > window)
            bits &= uint8_t(255 << (first - window));
        if (end < window + 8)
            bits &= uint8_t(255 >> (window + 8 - end));
        if (!each(window / 8, bits))
            return false;
    }
    return true;
}

void marked_words::visit(update &u, state &now)
{
    address a = decompose(u.pointer, layout);
    unsigned base = number_of(a);
    auto known = now.phases.find(base);
    uint64_t alignment = a.base->getPointerAlignment(layout).value();
    for (const address::term &term : a.terms)
        alignment = std::min<uint64_t>(alignment, term.scale ? term.scale & -term.scale : alignment);
    if (known == now.phases.end() && alignment >= uint64_t(word_bytes))
        known = now.phases.insert({base, 0}).first;
    if (known == now.phases.end())
        for (const span &s : u.spans)
            if (s.alignment >= uint64_t(word_bytes)) {
                known = now.phases.insert({base, (a.offset + s.offset) & (word_bytes - 1)}).first;
                break;
            }
    bool aligned = known != now.phases.end();
    auto is_marked = [&](const span &s, bool write) {
        int64_t first = a.offset + s.offset;
        return all_windows(first, first + int64_t(s.bytes), [&](int64_t window, uint8_t bits) {
            auto found = now.marked.find({base, write, window});
            return found != now.marked.end() && (found->second & bits) == bits;
        });
    };
    SmallVector<span, 4> left;
    for (span s : u.spans) {
        s.reads &= !is_marked(s, false);
        s.writes &= !is_marked(s, true);
        if (s.reads || s.writes)
            left.push_back(s);
    }
    for (const span &s : left) {
        int64_t first = a.offset + s.offset, end = first + int64_t(s.bytes);
        if (aligned) {
            first = floor_to(first - known->second, word_bytes) + known->second;
            end = floor_to(end - known->second + word_bytes - 1, word_bytes) + known->second;
        }
        for (bool write : {false, true})
            if ((write ? s.writes : s.reads) && now.marked.size() < most_facts)
                all_windows(first, end, [&](int64_t window, uint8_t bits) {
                    now.marked[{base, write, window}] |= bits;
                    return true;
                });
    }
    if (left.empty()) {
        u.dead = true;
        return;
    }
    if (aligned) { // no bytes, but a fact about the address
        int64_t at = floor_to(left[0].offset + a.offset - known->second, word_bytes) + known->second - a.offset;
        left.push_back({at, 0, uint64_t(word_bytes), false, false});
    }
    u.spans.assign(left.begin(), left.end());
}

void marked_words::run()
{
    for (size_t n = 0; n < updates.size(); n++)
        if (!updates[n].dead && updates[n].what == update::cell && !updates[n].times)
            of_instruction[updates[n].at].push_back(n);
    for (BasicBlock *block : ReversePostOrderTraversal<Function *>(&f)) {
        state now;
        bool first = true, loop_head = false;
        for (BasicBlock *before : predecessors(block))
            loop_head |= !behind.count(before); // or one that is never reached
        for (BasicBlock *before : predecessors(block)) {
            if (loop_head)
                break;
            if (first)
                now = behind[before];
            else
                now.keep_common(behind[before]);
            first = false;
        }
        for (Instruction &i : *block) {
            auto found = of_instruction.find(&i);
            if (found != of_instruction.end())
                for (size_t n : found->second)
                    visit(updates[n], now);
            if (!is_harmless(i, false))
                now.marked.clear();
        }
        behind[block] = std::move(now);
    }
}

} // namespace

void drop_marked(Function &f, update_list &updates)
{
    if (updates.size() > 1)
        marked_words(f, updates).run();
}

} // namespace hw
