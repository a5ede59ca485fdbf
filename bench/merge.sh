# merge.sh - part of bench/run: heapwise merge of 500 profiles, and against llvm-profdata.
#
# 500 raw heap profiles as clang's runtime writes them, of 11,000 to 35,000 contexts each, and as many files of Heapwise's
# own; 7 GB on the disk while it runs. Wanted: less than 5 s and 1 GiB; a tenth of llvm-profdata's time on the same files
# (it keeps only the first of them, but reads them all: a fifth of them is enough to see it).

merge_count=500 merge_some=100

measure_merge() {
    local made=$out/merge room program=$root/build/release/bin/heapwise options=() commands=()
    cmake --build "$root/build/release" --target make_profiles heapwise >/dev/null || { say "skipped: merge" && return; }
    mkdir -p "$made/raw" "$made/own"
    room=$(df -Pm "$made" | awk 'NR == 2 { print $4 }')
    [ "$room" -ge 9000 ] || { say "skipped: merge needs 9 GB of disk space" && rm -rf "$made" && return; }
    "$root/build/release/bin/make_profiles" raw "$program" "$made/raw" $merge_count
    "$root/build/release/bin/make_profiles" own "$program" "$made/own" $merge_count
    ls "$made"/raw/*.profraw >"$made/raw.list"
    ls "$made"/own/*.hwprof >"$made/own.list"
    head -n $merge_some "$made/raw.list" >"$made/some.list"
    "$out/compare" -n 3 -w 1 $json --title "merge of $merge_count profiles, $(du -sh "$made/raw" | cut -f1) raw and $(du -sh "$made/own" | cut -f1) own" \
        --target "raw:ms:5000" --target "raw:rss-mib:1024" --target "own:ms:5000" --target "own:rss-mib:1024" \
        ::: nothing true \
        ::: raw "$program" merge -q -f -o "$made/raw.hwprof" --inputs "$made/raw.list" \
        ::: own "$program" merge -q -f -o "$made/own.hwprof" --inputs "$made/own.list"
    if have llvm-profdata-22; then
        "$out/compare" -n 3 -w 1 $json --title "merge of $merge_some raw profiles" \
            --versus llvm-profdata --target "heapwise:share:0.1" --target "heapwise:cpu-share:0.1" \
            ::: nothing true \
            ::: llvm-profdata llvm-profdata-22 merge --profiled-binary="$program" -f "$made/some.list" -o "$made/some.profdata" \
            ::: heapwise "$program" merge -q -f -o "$made/some.hwprof" --inputs "$made/some.list"
    fi
    rm -rf "$made"
}
