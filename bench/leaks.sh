# leaks.sh - part of bench/run: what it takes to find lost blocks, beside LeakSanitizer and Valgrind: among five million
# of a small program, in Lua, in SQLite, and in redis-server when it is shut down after a load.
#
# The tables go to stdout as Markdown: the whole run, medians of the rounds (Valgrind: one run); of redis-server from
# the command to shut down until it has ended. The small program is compiled with -fsanitize=leak; the others are loaded
# with gcc's liblsan.so.0, which is the same LeakSanitizer and needs no other build. HEAPWISE_BENCH_KEYS (1000000): keys
# of the load.

leaks_ways=(plain heap leaks keeps lsan memcheck)

build_leaks() {
    [ -n "$heapwise" ] || { say "Heapwise is not built" && return 1; }
    mkdir -p "$out/leaks"
    gcc -O1 -g -o "$out/leaks/plain" "$here/kernels/lost_blocks.c"
    clang-22 -O1 -g -fsanitize=leak -o "$out/leaks/lsan" "$here/kernels/lost_blocks.c" 2>/dev/null ||
        say "no clang-22 with LeakSanitizer: it is left out"
}

leaks_preload() { # the path of LeakSanitizer as a library, or nothing
    ls /usr/lib/*/liblsan.so.0 2>/dev/null | head -1
}

# The command for a way of a program (its words behind it), in the array `command`. 1: there is none.
leaks_command() { # WHAT WAY WORD...
    local what=$1 way=$2 profile=$out/leaks/$1.$2.hwprof
    shift 2
    case $way in
    plain) command=("$@") ;;
    heap) command=("$heapwise" record -q -f -o "$profile" -- "$@") ;;
    leaks | keeps) command=("$heapwise" record -q -f "--$way" -o "$profile" -- "$@") ;;
    lsan)
        if [ "$what" = blocks ]; then
            [ -x "$out/leaks/lsan" ] || return 1
            command=("$out/leaks/lsan")
        else
            [ -n "$(leaks_preload)" ] || return 1
            command=(env "LD_PRELOAD=$(leaks_preload)" "$@")
        fi ;;
    memcheck) command=(valgrind -q --leak-check=full "$@") ;;
    esac
}

leaks_once() { # WHAT WAY WORD...; what it prints goes to $out/leaks/WHAT.WAY.said
    local name=$out/leaks/$1.$2
    local -a command
    leaks_command "$@" || return 0
    /usr/bin/time -a -o "$name.times" -f '%e %U %S %M' "${command[@]}" >"$name.said" 2>&1 || true
}

# The same of redis-server: it is loaded, and the time is that of its end. Its CPU time is that of the whole run.
leaks_redis_once() { # WHAT WAY
    local name=$out/leaks/$1.$2 port=$((20000 + RANDOM % 20000)) server begin end i
    local -a command
    leaks_command "$1" "$2" redis-server --port "$port" --bind 127.0.0.1 --save '' --appendonly no --dir "$out/leaks" ||
        return 0
    /usr/bin/time -o "$name.one" -f '%e %U %S %M' "${command[@]}" >"$name.said" 2>&1 &
    server=$!
    for ((i = 0; i < 600; i++)); do
        [ "$(redis-cli -p "$port" ping 2>/dev/null)" != PONG ] || break
        kill -0 "$server" 2>/dev/null || return 0
        sleep 0.1
    done
    redis-benchmark -p "$port" -q -t set -n "${HEAPWISE_BENCH_KEYS:-1000000}" -r "${HEAPWISE_BENCH_KEYS:-1000000}" \
        -P 16 -d 64 >/dev/null 2>&1 || true
    begin=$(date +%s.%N)
    redis-cli -p "$port" shutdown nosave >/dev/null 2>&1 || true
    wait "$server" || true
    end=$(date +%s.%N)
    grep -E '^[0-9.]+ [0-9.]+ [0-9.]+ [0-9]+$' "$name.one" | tail -1 |
        awk -v took="$(echo "$end - $begin" | bc)" '{ print 0 + took, $2, $3, $4 }' >>"$name.times"
}

leaks_median() { # NAME PROGRAM: of what the awk PROGRAM prints for each round
    grep -E '^[0-9.]+ [0-9.]+ [0-9.]+ [0-9]+$' "$out/leaks/$1.times" | awk "$2" | sort -n |
        awk '{ value[NR] = $1 } END { print value[int((NR + 1) / 2)] }'
}

leaks_lost() { # WHAT WAY: the blocks that it reports as lost, directly
    local name=$out/leaks/$1.$2
    case $2 in
    leaks | keeps) "$heapwise" leaks --exit-code=0 "$name.hwprof" | awk '/^Definitely lost/ { print $5 }' ;;
    lsan) # a summary, and no summary where there is nothing; it counts what is lost indirectly, too
        sed -n 's/.* leaked in \([0-9]*\) allocation.*/\1/p' "$name.said" | tail -1 | grep . || echo 0 ;;
    memcheck)
        sed -n 's/.* bytes.* in \([0-9,]*\) blocks are definitely lost.*/\1/p' "$name.said" | tr -d , |
            awk '{ sum += $1 } END { print sum + 0 }' ;;
    esac
}

leaks_table() { # WHAT TITLE WORD...; of redis no words
    local what=$1 title=$2 way round
    shift 2
    for way in "${leaks_ways[@]}"; do rm -f "$out/leaks/$what.$way.times"; done
    for ((round = 0; round < rounds; round++)); do
        for way in "${leaks_ways[@]}"; do
            [ "$way" != memcheck ] || { have valgrind && [ "$round" = 0 ]; } || continue
            if [ "$what" = redis ]; then leaks_redis_once "$what" "$way"; else leaks_once "$what" "$way" "$@"; fi
        done
    done
    echo
    echo "| $title | time | CPU time | memory at most | lost blocks |"
    echo "| --- | ---: | ---: | ---: | ---: |"
    for way in "${leaks_ways[@]}"; do
        [ -s "$out/leaks/$what.$way.times" ] || continue
        printf '| %s | %.2f s | %.2f s | %d MiB | %s |\n' "$way" "$(leaks_median "$what.$way" '{ print $1 }')" \
            "$(leaks_median "$what.$way" '{ print $2 + $3 }')" \
            "$(leaks_median "$what.$way" '{ print $4 / 1024 }' | cut -d. -f1)" "$(leaks_lost "$what" "$way")"
    done
}

measure_leaks() {
    leaks_table blocks 'five million blocks' "$out/leaks/plain"
    ! build_lua || leaks_table lua 'Lua 5.4, binary trees' "$out/lua" "$here/lua/binary_trees.lua"
    ! build_sqlite || leaks_table sqlite 'SQLite, speedtest1' "$out/speedtest1" --size "${HEAPWISE_BENCH_SIZE:-60}"
    if have redis-server && have redis-benchmark && have bc; then
        leaks_table redis "redis-server, end after ${HEAPWISE_BENCH_KEYS:-1000000} sets"
    else
        say "no redis-server, redis-benchmark or bc: it is left out"
    fi
}
