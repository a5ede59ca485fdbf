# access.sh - what counting accesses costs: `heapwise cc` against clang-22 -fmemory-profile and against plain clang-22 -O2.
#
# A part of bench/run, which sources it: uses its functions and variables. Twelve workloads (Lua, SQLite and ten kernels, see
# kernels/access.c), each built three times; run time and memory side by side, then compile time, then size. Tables for people
# go to stdout, the same as Markdown to build/bench/access/results.md.
#
# ACCESS_ONLY="churn sum compile size" measures only those. HEAPWISE_BENCH_CC names another way to compile, `heapwise cc` otherwise.

access=$out/access
clang=$(command -v clang-22) || true
heapwise_cc=(${HEAPWISE_BENCH_CC:-"$heapwise" cc})
access_kernels=(churn depth sum chase shuffle matrix hash fields threads copy)

# What LLVM's manual of MemProf recommends beside -fmemory-profile.
memprof_flags=(-gmlt -fdebug-info-for-profiling -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer
    -fno-optimize-sibling-calls -Wl,--build-id)

# compile_all OBJECTS COMPILER…: the objects of all three programs into the folder OBJECTS.
compile_all() {
    local objects=$1
    shift
    mkdir -p "$objects"
    "$@" -pthread -c -o "$objects/access.o" "$here/kernels/access.c" &&
        compile_lua "$objects" "$@" && compile_sqlite "$objects" "$@" &&
        "$@" $sqlite_flags -I"$out/sqlite" -c -o "$objects/speedtest1.o" "$sqlite_src/test/speedtest1.c"
}

compile_lua() {
    local objects=$1 source
    shift
    for source in "$lua_src"/src/!(luac).c; do
        source=${source##*/}
        "$@" -std=gnu99 -DLUA_USE_LINUX -I"$out/lua-include" -c -o "$objects/lua_${source%.c}.o" "$lua_src/src/$source" || return 1
    done
}

compile_sqlite() {
    local objects=$1
    shift
    "$@" $sqlite_flags -c -o "$objects/sqlite3.o" "$out/sqlite/sqlite3.c"
}

# link_all OBJECTS COMPILER…: the three programs beside their objects.
link_all() {
    local objects=$1
    shift
    "$@" -pthread -o "$objects/access" "$objects/access.o" &&
        "$@" -o "$objects/lua" "$objects"/lua_*.o -Wl,-E -lm -ldl &&
        "$@" -o "$objects/speedtest1" "$objects/speedtest1.o" "$objects/sqlite3.o" -lpthread -ldl -lm
}

# The three ways to compile: plain, clang, heapwise.
compiler_of() {
    case $1 in
    plain) compiler=("$clang" -O2) ;;
    clang) compiler=("$clang" -O2 "${memprof_flags[@]}" -fmemory-profile="$access/profiles" -Wno-unused-command-line-argument) ;;
    heapwise) compiler=("${heapwise_cc[@]}" -O2) ;;
    esac
}

build_access() {
    local way compiler
    [ -n "$clang" ] || { say "clang-22 is needed" && return 1; }
    [ -n "$heapwise${HEAPWISE_BENCH_CC:-}" ] || { say "Heapwise is not built" && return 1; }
    build_lua && build_sqlite || return 1
    lua_src=$(source_of lua5.4 src/lua.c)
    read -r sqlite_src sqlite_flags < <(sqlite_source)
    mkdir -p "$access/profiles"
    for way in plain clang heapwise; do
        compiler_of $way
        # Built anew every time, but for the two that do not change with Heapwise.
        [ $way != heapwise ] && [ -x "$access/$way/speedtest1" ] && [ "$access/$way/access" -nt "$here/kernels/access.c" ] && continue
        say "building for counted accesses: $way"
        rm -rf "${access:?}/$way"
        { compile_all "$access/$way" "${compiler[@]}" && link_all "$access/$way" "${compiler[@]}"; } >"$access/build-$way.log" 2>&1 ||
            { say "cannot be built, see $access/build-$way.log" && return 1; }
    done
}

# against TITLE PROGRAM ARGUMENT…: one workload, its lines in times.tsv.
against() {
    local title=$1 program=$2 profiles=$access/profiles options=()
    shift 2
    [ "$title" = readers ] || options=(--target heapwise:share:0.5)
    rm -rf "$profiles" && mkdir -p "$profiles"
    "$out/compare" -n "$rounds" $json --title "$title" --versus clang --append "$access/times.tsv" "${options[@]}" \
        ::: plain "$access/plain/$program" "$@" \
        ::: clang "$access/clang/$program" "$@" \
        ::: heapwise HEAPWISE_OPTIONS="output=$profiles/%e.%p.hwprof" "$access/heapwise/$program" "$@"
    rm -rf "$profiles" && mkdir -p "$profiles"
}

# is_wanted ONLY WHAT: whether WHAT is among the names ONLY, or there are none.
is_wanted() { [[ -z $1 || " $1 " == *" $2 "* ]]; }

# each_workload ONLY AGAINST: calls AGAINST with title, program and arguments of each workload that is wanted.
each_workload() {
    local what
    for what in lua sqlite "${access_kernels[@]}" readers; do
        is_wanted "$1" "$what" || continue
        case $what in
        lua) "$2" lua lua "$here/lua/binary_trees.lua" ;;
        sqlite) "$2" sqlite speedtest1 --size 40 ;;
        *) "$2" "$what" access "$what" ;;
        esac
    done
}

measure_access() {
    rm -f "$access/times.tsv" "$access/compile.tsv" "$access/sizes.tsv" "$access/results.md"
    each_workload "${ACCESS_ONLY:-}" against
    [ ! -f "$access/times.tsv" ] || times_table
    ! is_wanted "${ACCESS_ONLY:-}" compile || measure_compile
    ! is_wanted "${ACCESS_ONLY:-}" size || measure_sizes
    say "the tables are in $access/results.md"
}

# show FILE: Markdown to the results, and the same without its marks to stdout.
show() {
    tee -a "$access/results.md" | sed -E '/^\| ---/d; s/^\| //; s/ \|$//; s/ \| +/ | /g' | column -t -s '|' -o ' '
    echo
    echo >>"$access/results.md"
}

# Times are CPU seconds, the least of the rounds: the steadiest figure there is. Share: what heapwise adds as a share of what clang
# adds. Wall: the same of wall time.
times_table() {
    awk -F '\t' '
        { cpu[$1, $2] = $5; wall[$1, $2] = $3; rss[$1, $2] = $12 }
        !seen[$1]++ { name[++n] = $1 }
        function verdict(missed) { return missed ? "MISSED" : "met" }
        END {
            print "| workload | plain s | clang s | heapwise s | clang / plain | heapwise / plain | added / clang added | wall | added MiB: clang | heapwise |"
            print "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
            for (i = 1; i <= n; i++) {
                w = name[i]
                p = cpu[w, "plain"]; c = cpu[w, "clang"]; h = cpu[w, "heapwise"]
                share = (h - p) / (c - p)
                printf "| %s | %.3f | %.3f | %.3f | %.2f | %.2f | %.3f | %.3f | %.1f | %.1f |\n", w, p, c, h, c / p, h / p, share,
                    (wall[w, "heapwise"] - wall[w, "plain"]) / (wall[w, "clang"] - wall[w, "plain"]),
                    rss[w, "clang"] - rss[w, "plain"], rss[w, "heapwise"] - rss[w, "plain"]
                if (w == "readers")
                    continue
                k++; lc += log(c / p); lh += log(h / p)
                ls += log(share > 0.001 ? share : 0.001) # nothing, or less
                if (w == "lua" || w == "sqlite") { real++; lr += log(h / p); lrc += log(c / p) }
                if (share > 0.5) missed = missed " " w
                if (rss[w, "heapwise"] > rss[w, "clang"]) fat = fat " " w
            }
            if (k)
                printf "| geometric mean of %d |  |  |  | %.2f | %.2f | %.3f |  |  |  |\n", k, exp(lc / k), exp(lh / k), exp(ls / k)
            if (real)
                printf "| geometric mean of the real programs |  |  |  | %.2f | %.2f |  |  |  |  |\n", exp(lrc / real), exp(lr / real)
            print ""
            if (k) {
                printf "- added time at most half of that of clang: %s%s\n", verdict(missed), missed ? " on" missed : " on all"
                printf "- at most a third in the geometric mean: %s\n", verdict(exp(ls / k) > 1 / 3)
                printf "- added memory at most that of clang: %s%s\n", verdict(fat), fat ? " on" fat : " on all"
            }
            if (real)
                printf "- aim: at most 1.3 times plain on the real programs: %s\n", verdict(exp(lr / real) > 1.3)
            if (("readers", "plain") in cpu)
                printf "- two threads that read one block, at most 1.3 times plain: %s\n",
                    verdict(cpu["readers", "heapwise"] > 1.3 * cpu["readers", "plain"])
        }' "$access/times.tsv" | show
}

# Compile time of sqlite3.c, and of all of Lua's files one after the other.
measure_compile() {
    local what script options
    for what in sqlite lua; do
        script=$access/compile_$what.sh
        {
            echo "shopt -s extglob"
            declare -f compile_lua compile_sqlite
            declare -p lua_src sqlite_src sqlite_flags out
            echo "compile_$what \"\$@\""
        } >"$script"
        mkdir -p "$access/scratch"
        "$out/compare" -n "$rounds" -w 0 $json --title "compile $what" --append "$access/compile.tsv" \
            ::: "plain -O2" bash "$script" "$access/scratch" "$clang" -O2 \
            ::: "plain -O2 -g" bash "$script" "$access/scratch" "$clang" -O2 -g \
            ::: "clang -fmemory-profile" bash "$script" "$access/scratch" "$clang" -O2 "${memprof_flags[@]:0:5}" -fmemory-profile \
            ::: "heapwise cc" bash "$script" "$access/scratch" "${heapwise_cc[@]}" -O2 \
            ::: "heapwise cc -g0" bash "$script" "$access/scratch" "${heapwise_cc[@]}" -O2 -g0
        rm -rf "$access/scratch"
    done
    awk -F '\t' '
        BEGIN {
            print "| compiling | CPU s: min | median | times plain -O2 |"
            print "| --- | ---: | ---: | ---: |"
        }
        $2 == "plain -O2" { plain = $5 }
        { printf "| %s: %s | %.3f | %.3f | %.2f |\n", substr($1, 9), $2, $5, $6, $5 / plain }' "$access/compile.tsv" | show
}

text_of() { size -A "$@" | awk '$1 ~ /^\.text/ { sum += $2 } END { print sum + 0 }'; }

# Size of the programs: as a file, without debug information, and code alone (clang links its runtime statically, Heapwise does
# not); and code of the objects, which is instrumentation only.
measure_sizes() {
    local program way objects stripped=$access/stripped
    for program in lua speedtest1 access; do
        for way in plain clang heapwise; do
            case $program in
            lua) objects=("$access/$way"/lua_*.o) ;;
            speedtest1) objects=("$access/$way/sqlite3.o") ;;
            access) objects=("$access/$way/access.o") ;;
            esac
            strip -o "$stripped" "$access/$way/$program"
            printf '%s\t%s\t%s\t%s\t%s\t%s\n' $program $way "$(stat -c %s "$access/$way/$program")" \
                "$(stat -c %s "$stripped")" "$(text_of "$access/$way/$program")" "$(text_of "${objects[@]}")" >>"$access/sizes.tsv"
        done
    done
    rm -f "$stripped"
    awk -F '\t' '
        BEGIN {
            print "| size, KiB | file | stripped | code | code of the objects | growth (stripped) / clang | growth of the objects / clang |"
            print "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
        }
        { for (i = 3; i <= 6; i++) v[$2, i] = $i }
        { printf "| %s: %s | %.0f | %.0f | %.0f | %.0f |", $1, $2, $3 / 1024, $4 / 1024, $5 / 1024, $6 / 1024 }
        $2 != "heapwise" { print "  |  |" }
        $2 == "heapwise" {
            printf " %.3f | %.3f |\n", (v["heapwise", 4] - v["plain", 4]) / (v["clang", 4] - v["plain", 4]),
                (v["heapwise", 6] - v["plain", 6]) / (v["clang", 6] - v["plain", 6])
        }' "$access/sizes.tsv" | show
}
