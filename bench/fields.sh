# fields.sh - what counting the fields of structs costs: `heapwise cc --fields` against plain clang-22 -O2, and against the same
# program, compiled with the frame pointers that stacks need, whose heap alone is recorded.
#
# A part of bench/run, which sources it after access.sh: uses its functions. Lua, SQLite and the kernels, side by side, round by round;
# then compile time. Tables for people go to stdout, the same as Markdown to build/bench/fields/results.md.
#
# FIELDS_ONLY="lua sqlite chase compile" measures only those.

fields=$out/fields

build_fields() {
    [ -n "$clang" ] || { say "clang-22 is needed" && return 1; }
    [ -n "$heapwise" ] || { say "Heapwise is not built" && return 1; }
    build_lua && build_sqlite || return 1
    lua_src=$(source_of lua5.4 src/lua.c)
    read -r sqlite_src sqlite_flags < <(sqlite_source)
    mkdir -p "$fields/profiles"
    local way compiler
    for way in plain heap fields; do
        [ $way != fields ] && [ -x "$fields/$way/speedtest1" ] && [ "$fields/$way/access" -nt "$here/kernels/access.c" ] && continue
        compiler=("$clang" -O2)
        [ $way = heap ] && compiler+=(-fno-omit-frame-pointer -mno-omit-leaf-frame-pointer -fno-optimize-sibling-calls)
        [ $way = fields ] && compiler=("$heapwise" cc --fields -O2)
        say "building for counted fields: $way"
        rm -rf "${fields:?}/$way"
        { compile_all "$fields/$way" "${compiler[@]}" && link_all "$fields/$way" "${compiler[@]}"; } >"$fields/build-$way.log" 2>&1 ||
            { say "cannot be built, see $fields/build-$way.log" && return 1; }
    done
}

# fields_against TITLE PROGRAM ARGUMENT…: one workload, its lines in times.tsv.
fields_against() {
    local title=$1 program=$2 profiles=$fields/profiles
    shift 2
    rm -rf "$profiles" && mkdir -p "$profiles"
    "$out/compare" -n "$rounds" $json --title "$title" --versus heap --append "$fields/times.tsv" \
        ::: plain "$fields/plain/$program" "$@" \
        ::: heap LD_PRELOAD="$(dirname "$heapwise")/../lib/heapwise/libheapwise.so" HEAPWISE_OPTIONS="output=$profiles/%e.%p.heap" \
        "$fields/heap/$program" "$@" \
        ::: fields HEAPWISE_OPTIONS="output=$profiles/%e.%p.hwprof" "$fields/fields/$program" "$@"
}

# Times are CPU seconds, the least of the rounds. Fields: what they add to a recorded heap, as a share of plain.
fields_table() {
    awk -F '\t' '
        $2 == "plain" || $2 == "heap" || $2 == "fields" { least[$1, $2] = $5; if (!($1 in seen)) order[++count] = $1; seen[$1] = 1 }
        END {
            print "| workload | plain s | heap s | fields s | heap / plain | fields / plain | fields alone, of plain |"
            print "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
            for (i = 1; i <= count; i++) {
                w = order[i]; p = least[w, "plain"]; h = least[w, "heap"]; f = least[w, "fields"]
                printf "| %s | %.3f | %.3f | %.3f | %.2f | %.2f | %.2f |\n", w, p, h, f, h / p, f / p, (f - h) / p
            }
        }' "$fields/times.tsv" | tee "$fields/results.md"
}

measure_fields() {
    rm -f "$fields/times.tsv" "$fields/results.md"
    each_workload "${FIELDS_ONLY:-}" fields_against
    [ ! -f "$fields/times.tsv" ] || fields_table
    ! is_wanted "${FIELDS_ONLY:-}" compile || fields_compile
    say "the tables are in $fields/results.md"
}

# CPU seconds of compiling sqlite3.c: plain with the debug information that fields need, and with fields.
fields_compile() {
    local objects=$fields/compile
    mkdir -p "$objects"
    "$out/compare" -n 3 $json --title "compile sqlite3.c" --versus plain \
        ::: plain "$clang" -O2 -g $sqlite_flags -c -o "$objects/plain.o" "$out/sqlite/sqlite3.c" \
        ::: fields "$heapwise" cc --fields -O2 $sqlite_flags -c -o "$objects/fields.o" "$out/sqlite/sqlite3.c"
}
