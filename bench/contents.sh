# contents.sh - part of bench/run: what it takes to examine the contents of blocks (record --contents), by their size and
# by how often each content occurs.
#
# The table goes to stdout as Markdown: the least of the rounds. CPU time and memory are what the whole run takes beyond
# recording without --contents. HEAPWISE_BENCH_MIB (1024): the blocks.

contents_cases=("48 8" "48 1" "1000 8" "1000 1" "1048576 4" "1048576 1")

build_contents() {
    [ -n "$heapwise" ] || { say "Heapwise is not built" && return 1; }
    have jq || { say "no jq" && return 1; }
    mkdir -p "$out/contents"
    gcc -O1 -g -o "$out/contents/blocks" "$here/kernels/filled_blocks.c"
}

contents_least() { # FILE COLUMN
    awk -v at="$2" '{ print $at }' "$1" | sort -n | head -1
}

contents_once() { # FILE SIZE TIMES
    local profile=$out/contents/blocks.hwprof with without
    without=$(contents_run "$profile" "$2" "$3")
    with=$(contents_run "$profile" "$2" "$3" --contents)
    "$heapwise" report --json "$profile" | jq -r --arg with "$with" --arg without "$without" \
        '[($with, $without) | split(" ") | map(tonumber)] as [$a, $b]
        | .content_search | [$a[1] + $a[2] - $b[1] - $b[2], .bytes / 1073741824, .one_content_in, ($a[0] - $b[0]) / 1024] | @tsv' >>"$1"
}

contents_run() { # PROFILE SIZE TIMES OPTION...: KiB at most, seconds of the program and of the kernel
    local profile=$1 size=$2 times=$3
    shift 3
    /usr/bin/time -o "$profile.took" -f '%M %U %S' "$heapwise" record -q -f "$@" -o "$profile" -- "$out/contents/blocks" \
        "$size" "${HEAPWISE_BENCH_MIB:-1024}" "$times" >/dev/null
    tail -1 "$profile.took"
}

measure_contents() {
    local case size times name round
    echo
    echo "| blocks | each content | CPU time | a GiB | one content in | memory |"
    echo "| ---: | ---: | ---: | ---: | ---: | ---: |"
    for case in "${contents_cases[@]}"; do
        read -r size times <<<"$case"
        name=$out/contents/$size.$times
        rm -f "$name"
        for ((round = 0; round < rounds; round++)); do contents_once "$name" "$size" "$times"; done
        awk -v size="$size" -v times="$times" -v took="$(contents_least "$name" 1)" -v gib="$(contents_least "$name" 2)" \
            -v level="$(contents_least "$name" 3)" -v memory="$(contents_least "$name" 4)" 'BEGIN {
                printf "| %d B | %d times | %.2f s | %.2f s | %d | %d MiB |\n", size, times, took, took / gib, level, memory }'
    done
}
