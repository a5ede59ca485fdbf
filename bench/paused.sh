# Sourced by bench/run: what a runtime costs that waits for heapwise start (record --paused). Less than 1 % wanted.
#
# Times of single runs differ by more than that on most machines, so instructions are counted as well, where there is
# valgrind: of two runs of different length, so that the start cancels out. Under valgrind the runtime steps aside, with
# its hooks leading to the allocator as while it waits.

measure_paused() {
    [ -n "$heapwise" ] || { say "skipped: paused" && return; }
    mkdir -p "$runs"
    build_lua && compare_paused "Lua 5.4, binary trees" "$out/lua" "$here/lua/binary_trees.lua" &&
        count_paused "Lua 5.4, binary trees" "8 11" "$out/lua" "$here/lua/binary_trees.lua"
    build_sqlite && compare_paused "SQLite, speedtest1 --size 60" "$out/speedtest1" --size 60 &&
        count_paused "SQLite, speedtest1" "1 2" "$out/speedtest1" --size
    rm -rf "$runs"
}

compare_paused() { # compare_paused TITLE COMMAND…
    local title=$1
    shift
    "$out/compare" -n "$rounds" $json --title "$title: --paused" --target "paused:cpu-percent:1" \
        ::: plain "$@" ::: interception LD_PRELOAD="$out/passthrough.so" "$@" \
        ::: paused LD_PRELOAD="$runtime" HEAPWISE_OPTIONS="output=$runs/%p.hwprof:start=off" "$@"
}

instructions() { # instructions PRELOAD COMMAND…
    LD_PRELOAD=$1 valgrind --tool=callgrind --callgrind-out-file=/dev/null "${@:2}" 2>&1 >/dev/null |
        awk '/Collected/ { print $NF }'
}

count_paused() { # count_paused TITLE "SHORT LONG" COMMAND…: the last argument is one of the two
    have valgrind || return 0
    local title=$1 short=${2% *} long=${2#* }
    shift 2
    awk -v json="$json" -v title="$title" -v p="$(instructions "" "$@" "$long")" -v q="$(instructions "" "$@" "$short")" \
        -v w="$(instructions "$runtime" "$@" "$long")" -v v="$(instructions "$runtime" "$@" "$short")" 'BEGIN {
        percent = 100 * ((w - v) / (p - q) - 1)
        if (json) printf "{\"workload\": \"%s\", \"paused_instructions_percent\": %.2f}\n", title, percent
        else printf "%s  %s: --paused adds %.2f %% of instructions, less than 1 wanted\n\n", \
            (percent < 1 ? "met   " : "MISSED"), title, percent
    }'
}
