# page.sh - part of bench/run: the page of heapwise view, in Chromium.
#
# Profiles as of a large C++ program: one of about 35,000 places, and one of about 500,000. Wanted: the first opens in 2 s and
# answers a click in 100 ms; the second opens; a page is at most 3 times its profile and 1 MB.

measure_page() {
    local made=$out/page build=$root/build/release program=$root/build/release/bin/heapwise profile pages=() other
    have node && [ -e "$build/share/heapwise/page.html" ] || { say "skipped: page (it was not built: scripts/setup)" && return; }
    cmake --build "$build" --target make_profiles heapwise heapwise_page symbols_bench lookup_bench >/dev/null || return
    rm -rf "$made" && mkdir -p "$made"
    for other in heapwise make_profiles symbols_bench lookup_bench lib/heapwise/libheapwise.so; do
        [ -e "$build/bin/$other" ] && other=$build/bin/$other || other=$build/$other
        mkdir -p "$made/$(basename "$other")"
        "$build/bin/make_profiles" own "$other" "$made/$(basename "$other")" 36 >/dev/null || rmdir "$made/$(basename "$other")"
    done
    "$program" merge -q -f -o "$made/35k.hwprof" "$made"/heapwise/000[01].hwprof
    "$program" merge -q -f -o "$made/500k.hwprof" "$made"/*/*.hwprof
    for profile in 35k 500k; do
        "$program" view -q -f -o "$made/$profile.html" "$made/$profile.hwprof"
        pages+=("$made/$profile.html")
    done
    ls -l "$made"/*.hwprof | awk '{ print $5, $NF }'
    HEAPWISE_BUILD=$build node "$root/bench/page.mjs" 3 "${pages[@]}"
    rm -rf "$made"
}
