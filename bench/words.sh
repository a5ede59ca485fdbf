# words.sh - what telling used words of 4 bytes costs: `heapwise cc --granule=4` against plain clang-22 -O2; beside them the
# same program whose heap alone is recorded, and one whose accesses are counted by 64 bytes, which both is part of it.
#
# A part of bench/run, which sources it after access.sh: uses its functions. Lua, SQLite and the kernels, side by side, round by
# round; then the sizes of the code. Tables for people go to stdout, the same as Markdown to build/bench/words/results.md.
#
# WORDS_ONLY="lua sqlite chase size" measures only those.

words=$out/words

build_words() {
    [ -n "$clang" ] || { say "clang-22 is needed" && return 1; }
    [ -n "$heapwise" ] || { say "Heapwise is not built" && return 1; }
    build_lua && build_sqlite || return 1
    lua_src=$(source_of lua5.4 src/lua.c)
    read -r sqlite_src sqlite_flags < <(sqlite_source)
    mkdir -p "$words/profiles"
    local way compiler
    for way in plain heap counts words; do
        [[ $way == @(plain|heap) ]] && [ -x "$words/$way/speedtest1" ] && [ "$words/$way/access" -nt "$here/kernels/access.c" ] && continue
        compiler=("$clang" -O2)
        [ $way = heap ] && compiler+=(-fno-omit-frame-pointer -mno-omit-leaf-frame-pointer -fno-optimize-sibling-calls)
        [ $way = counts ] && compiler=("$heapwise" cc -O2)
        [ $way = words ] && compiler=("$heapwise" cc --granule=4 -O2)
        say "building for used words: $way"
        rm -rf "${words:?}/$way"
        { compile_all "$words/$way" "${compiler[@]}" && link_all "$words/$way" "${compiler[@]}"; } >"$words/build-$way.log" 2>&1 ||
            { say "cannot be built, see $words/build-$way.log" && return 1; }
    done
}

# words_against TITLE PROGRAM ARGUMENT…: one workload, its lines in times.tsv.
words_against() {
    local title=$1 program=$2 profiles=$words/profiles
    shift 2
    rm -rf "$profiles" && mkdir -p "$profiles"
    "$out/compare" -n "$rounds" $json --title "$title" --versus counts --append "$words/times.tsv" \
        ::: plain "$words/plain/$program" "$@" \
        ::: heap LD_PRELOAD="$(dirname "$heapwise")/../lib/heapwise/libheapwise.so" HEAPWISE_OPTIONS="output=$profiles/%e.%p.heap" \
        "$words/heap/$program" "$@" \
        ::: counts HEAPWISE_OPTIONS="output=$profiles/%e.%p.hwprof" "$words/counts/$program" "$@" \
        ::: words HEAPWISE_OPTIONS="output=$profiles/%e.%p.hwprof" "$words/words/$program" "$@"
    rm -rf "$profiles" && mkdir -p "$profiles"
}

# Times are CPU seconds of all threads, the sampler's included, the least of the rounds. Added: of plain.
words_table() {
    awk -F '\t' '
        { least[$1, $2] = $5; if (!($1 in seen)) order[++count] = $1; seen[$1] = 1 }
        END {
            print "| workload | plain s | heap s | counts s | words s | heap added | counts added | words added | words over heap | |"
            print "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |"
            for (i = 1; i <= count; i++) {
                w = order[i]; p = least[w, "plain"]; h = least[w, "heap"]; c = least[w, "counts"]; o = least[w, "words"]
                printf "| %s | %.3f | %.3f | %.3f | %.3f | %.2f | %.2f | %.2f | %.2f | %s |\n", w, p, h, c, o,
                    h / p - 1, c / p - 1, o / p - 1, (o - h) / p, o / p - 1 <= 0.8 ? "met" : "missed"
            }
        }' "$words/times.tsv" | tee "$words/results.md"
}

measure_words() {
    rm -f "$words/times.tsv" "$words/results.md"
    each_workload "${WORDS_ONLY:-}" words_against
    [ ! -f "$words/times.tsv" ] || words_table
    ! is_wanted "${WORDS_ONLY:-}" size || words_sizes
    say "the tables are in $words/results.md"
}

# Bytes of code of the objects, which is instrumentation only.
words_sizes() {
    local way
    {
        echo
        echo "| code, KiB | sqlite3.o | Lua | kernels |"
        echo "| --- | ---: | ---: | ---: |"
        for way in plain counts words; do
            printf '| %s | %d | %d | %d |\n' "$way" $(($(text_of "$words/$way/sqlite3.o") / 1024)) \
                $(($(text_of "$words/$way"/lua_*.o) / 1024)) $(($(text_of "$words/$way/access.o") / 1024))
        done
    } | tee -a "$words/results.md"
}
