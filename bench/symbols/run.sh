#!/bin/sh
# Times the symbolizer on a C++ program that is generated here.
#
#     bench/symbols/run.sh SYMBOLS_BENCH [WORK_DIRECTORY]
#
# The program has 100 units that use the standard library's templates; it is built once for each compiler and kept in
# the work directory. CXXFLAGS adds compiler options.
set -eu

bench=$1
work=${2:-${TMPDIR:-/tmp}/heapwise-bench-symbols}
units=100
mkdir -p "$work"

generate() {
    unit=$1
    cat <<END
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <regex>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

namespace unit_$unit {
template <int N> struct record {
    std::string name;
    std::vector<std::string> words;
    std::map<std::string, std::vector<int>> index;
    int weight[N + 1];
};
template <int N> std::string work(const std::string &text) {
    std::unordered_map<std::string, std::unique_ptr<record<N>>> table;
    std::istringstream stream(text);
    std::string word;
    while (stream >> word) {
        auto &slot = table[word];
        if (!slot)
            slot = std::make_unique<record<N>>();
        slot->words.push_back(word + text);
        slot->index[word].push_back(N);
        slot->weight[word.size() % (N + 1)]++;
    }
    std::vector<std::pair<std::string, std::size_t>> order;
    for (auto &entry : table)
        order.emplace_back(entry.first, entry.second->words.size());
    std::sort(order.begin(), order.end(), [](const auto &a, const auto &b) { return a.second > b.second; });
    std::ostringstream out;
    std::function<void(std::size_t)> put = [&](std::size_t i) { out << order[i].first << order[i].second; };
    for (std::size_t i = 0; i < order.size(); i++)
        put(i);
    return out.str();
}
}
std::string entry_$unit(const std::string &text) {
    using namespace unit_$unit;
    std::string all = work<1>(text) + work<2>(text) + work<3>(text) + work<4>(text);
    static const std::regex pattern("a+b*$unit");
    return std::regex_replace(all, pattern, "x");
}
END
}

build() { # compiler
    name=$work/program-$1
    [ -x "$name" ] && return
    mkdir -p "$name.d"
    {
        echo '#include <iostream>'
        echo '#include <string>'
        i=0
        while [ $i -lt $units ]; do
            generate $i >"$name.d/unit_$i.cc"
            echo "std::string entry_$i(const std::string &);"
            i=$((i + 1))
        done
        echo 'int main() { std::string s = "a b c";'
        i=0
        while [ $i -lt $units ]; do
            echo "s += entry_$i(s).substr(0, 9);"
            i=$((i + 1))
        done
        echo 'std::cout << s; }'
    } >"$name.d/main.cc"
    ls "$name.d"/*.cc | xargs -P "$(nproc)" -I{} sh -c "$1 -O2 -g ${CXXFLAGS:-} -c {} -o {}.o"
    "$1" "$name.d"/*.o -o "$name"
    rm -r "$name.d"
}

for compiler in g++ clang++; do
    command -v "$compiler" >/dev/null || continue
    build "$compiler"
    size=$(($(stat -c %s "$work/program-$compiler") / 1048576))
    for threads in 1 2; do
        echo "$compiler, $size MiB, $threads threads: $("$bench" --threads $threads "$work/program-$compiler")"
    done
done
