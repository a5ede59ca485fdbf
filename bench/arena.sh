# arena.sh - part of bench/run: four threads that want glibc's one arena, in every mode and with pauses in the place of
# Heapwise, and what is waited for its lock, as Heapwise has it and as kernels/one_lock.c has it, a mutex that times itself.
#
# The tables go to stdout as Markdown. A pause is a loop before each free and after each malloc, outside of the lock.

arena_ways=(plain one_lock pause-25 pause-50 heap allocator)

build_arena() {
    have jq || { say "jq is needed to read reports" && return 1; }
    mkdir -p "$out/arena"
    gcc -O2 -g -fno-builtin -pthread -o "$out/arena/program" "$here/kernels/one_arena.c"
    gcc -O2 -g -fno-builtin -shared -fPIC -pthread -o "$out/arena/one_lock.so" "$here/kernels/one_lock.c" -ldl
    local turns
    for turns in 25 50; do
        gcc -O2 -g -fno-builtin -shared -fPIC -DPAUSE=$turns -o "$out/arena/pause-$turns.so" "$here/kernels/passthrough.c" -ldl
    done
}

# Prints what the program took, the number of waits and their ns.
arena_once() {
    local profile=$out/arena/profile.hwprof program=$out/arena/program took waits=''
    export GLIBC_TUNABLES=glibc.malloc.arena_max=1
    case $1 in
    plain) took=$("$program") ;;
    pause-*) took=$(LD_PRELOAD=$out/arena/$1.so "$program") ;;
    one_lock) took=$(LD_PRELOAD=$out/arena/one_lock.so "$program" 2>"$out/arena/waits") && waits=$(awk '{ print $2, $4 }' "$out/arena/waits") ;;
    heap) took=$("$heapwise" record -q -f -o "$profile" -- "$program") ;;
    allocator)
        took=$("$heapwise" record -q -f --no-prediction --mode allocator -o "$profile" -- "$program")
        waits=$("$heapwise" report --json "$profile" | jq -r '.allocator.futex.waits | "\(.count) \(.time_ns)"')
        ;;
    esac
    unset GLIBC_TUNABLES
    echo "$1 ${took//[!0-9]/} $waits"
    rm -f "$profile"
}

measure_arena() {
    local round way
    for ((round = 0; round < rounds; round++)); do
        for way in "${arena_ways[@]}"; do
            [ -n "$heapwise" ] || [[ $way != heap && $way != allocator ]] || continue
            arena_once "$way"
        done
    done | awk -v ways="${arena_ways[*]}" -v rounds="$rounds" '
        function middle(of, column,    i, k, n, sorted, swap) {
            n = seen[of]
            for (i = 1; i <= n; i++) sorted[i] = value[of, column, i]
            for (i = 1; i <= n; i++) for (k = i + 1; k <= n; k++) if (sorted[k] < sorted[i]) {
                swap = sorted[i]; sorted[i] = sorted[k]; sorted[k] = swap
            }
            return sorted[int((n + 1) / 2)]
        }
        {
            seen[$1]++
            for (i = 2; i <= 4; i++) value[$1, i, seen[$1]] = $i
            if (!($1 in least) || $2 < least[$1]) least[$1] = $2
        }
        END {
            print "| four threads, one arena | ms, median | least | times plain | waits | waited, ms |"
            print "| --- | ---: | ---: | ---: | ---: | ---: |"
            n = split(ways, way, " ")
            for (i = 1; i <= n; i++) if (way[i] in seen) {
                has = way[i] == "one_lock" || way[i] == "allocator"
                printf "| %s | %.0f | %.0f | %.2f | %s | %s |\n", way[i], middle(way[i], 2) / 1e6, least[way[i]] / 1e6,
                    middle(way[i], 2) / middle("plain", 2), has ? sprintf("%d", middle(way[i], 3)) : "-",
                    has ? sprintf("%.0f", middle(way[i], 4) / 1e6) : "-"
            }
        }'
}
