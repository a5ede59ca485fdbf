# Sourced by bench/run: is what heapwise tune finds still better in new runs, how much time does the search need beside
# a grid of all configurations, and do the settings that allocator mode names gain what it predicts?
# bench/tune/programs.py has the twenty programs, bench/tune/figures.py the steps. It takes more than an hour; each step
# of each program leaves a file in build/bench/tune, and what is there is not measured again.

measure_tune() {
    [ -n "$heapwise" ] || { say "skipped: tune" && return; }
    [ -d "$out/tune/inputs/history.git" ] || { mkdir -p "$out/tune/inputs" &&
        python3 "$here/tune/inputs.py" "$out/tune/inputs"; }
    python3 "$here/tune/figures.py" "$heapwise" "$out/tune" tune fresh predict grid table
}
