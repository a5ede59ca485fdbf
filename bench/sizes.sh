# sizes.sh - part of bench/run: what a pair of malloc and free takes, from 16 bytes to 1 GiB, plain and in every mode. No size
# is to fall off a cliff: wanted is at most what a plain pair takes three times over and a microsecond more, or 20 microseconds where the
# block is mapped each time (two system calls that are looked at).
#
# The table goes to stdout as Markdown: nanoseconds, least of the rounds.

sizes_modes=(plain heap allocator access-64 access-8 access-4)

build_sizes() {
    [ -n "$heapwise" ] || { say "Heapwise is not built" && return 1; }
    mkdir -p "$out/sizes"
    gcc -O2 -g -o "$out/sizes/plain" "$here/kernels/sizes.c"
    local granule
    for granule in 64 8 4; do
        "$heapwise" cc --granule=$granule -O2 -g -o "$out/sizes/access-$granule" "$here/kernels/sizes.c" ||
            { say "no clang-22: access mode is left out" && sizes_modes=(plain heap allocator) && break; }
    done
}

sizes_once() { # MODE ARGUMENT
    local program=$out/sizes/plain
    case $1 in
    plain) "$program" "$2" ;;
    heap) "$heapwise" record -q -f -o "$out/sizes/profile.hwprof" -- "$program" "$2" ;;
    allocator) "$heapwise" record -q -f --no-prediction --mode allocator -o "$out/sizes/profile.hwprof" -- "$program" "$2" ;;
    access-*) HEAPWISE_OPTIONS="output=$out/sizes/profile.%p.hwprof" "$out/sizes/$1" "$2" ;;
    esac
    rm -f "$out"/sizes/profile*.hwprof
}

measure_sizes() {
    local argument mode round
    for argument in one ring; do
        for mode in "${sizes_modes[@]}"; do : >"$out/sizes/$argument.$mode"; done
        for ((round = 0; round < rounds; round++)); do
            for mode in "${sizes_modes[@]}"; do sizes_once "$mode" "$argument" >>"$out/sizes/$argument.$mode"; done
        done
        echo "| bytes, $([ $argument = one ] && echo one block || echo sixteen live) |$(printf ' %s |' "${sizes_modes[@]}")"
        echo "| ---: |${sizes_modes[*]/*/ ---: |}"
        for mode in "${sizes_modes[@]}"; do sed "s/^/$mode /" "$out/sizes/$argument.$mode"; done |
            awk -v modes="${sizes_modes[*]}" '
                !(($1, $2) in least) || $3 < least[$1, $2] { least[$1, $2] = $3 }
                !($2 in seen) { seen[$2]; order[++count] = $2 }
                END {
                    n = split(modes, mode, " ")
                    for (i = 1; i <= count; i++) {
                        line = "| " order[i] " |"
                        for (k = 1; k <= n; k++) {
                            value = least[mode[k], order[i]]
                            plain = least["plain", order[i]]
                            wanted = 3 * plain + 1000 > 20000 || plain < 1500 ? 3 * plain + 1000 : 20000
                            line = line sprintf(" %.0f%s |", value, value > wanted ? " MISSED" : "")
                        }
                        print line
                    }
                }'
    done
}
