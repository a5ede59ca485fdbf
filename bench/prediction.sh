# prediction.sh - is what `heapwise allocators` predicts what happens? Six programs that allocate a lot, under the four allocators.
#
# A part of bench/run, which sources it: uses its functions. For each program: how many times as long as under glibc it takes with
# each other allocator, really (rows.py: the median of what the rounds say, since runs of one round follow each other, and a machine
# that is shared has slow minutes) and predicted from runs under glibc. Wanted: mean error at most 8 %, and of the slowdowns above 1.2 against the
# program's best allocator at least 8 in 10 predicted above 1.2. Then the same for programs that were not looked at while the
# prediction was made: jq, xmllint and mawk reading what bench/prediction/inputs.py writes, perl sorting words, a std::map of strings.

prediction=$out/prediction

build_prediction() {
    [ -n "$heapwise" ] || { say "Heapwise is not built" && return 1; }
    mkdir -p "$prediction"
    gcc -O2 -g -o "$out/buffers" "$here/kernels/buffers.c"
    build_lua || true
    build_sqlite || true
    g++ -O2 -g -o "$out/map" "$here/prediction/map.cpp"
    python3 "$here/prediction/inputs.py" "$prediction"
}

# predict NAME PROGRAM ARGUMENT…: lines "NAME ALLOCATOR REAL PREDICTED WEIGHT" in table.tsv, times by that with glibc.
predict() {
    local name=$1
    shift
    [ -x "$(command -v "$1")" ] || { say "skipped: $name: there is no $1" && return; }
    say "prediction: $name"
    "$heapwise" allocators --json -q -n "$rounds" -- "$@" >"$prediction/$name.json" 2>"$prediction/$name.log" </dev/null ||
        { say "failed: $name, see $prediction/$name.log" && return; }
    python3 "$here/prediction/rows.py" "$name" "$prediction/$name.json" >>"$prediction/table.tsv"
}

measure_prediction() {
    rm -f "$prediction/table.tsv"
    predict_usual
    summarise_prediction prediction
    rm -f "$prediction/table.tsv"
    predict_others
    summarise_prediction "prediction, others"
}

predict_others() {
    predict jq jq -c 'map({(.name): .x, t: (.tags | join(","))}) | group_by(.t) | length' "$prediction/items.json"
    predict xmllint xmllint --xpath 'count(//item[@id mod 7 = 0]/w)' "$prediction/items.xml"
    predict mawk mawk '{ for (i = 1; i <= NF; i++) { c[$i]++; l[$i] = l[$i] " " NR } } END { for (k in l) n += split(l[k], a, " "); print n }' \
        "$prediction/words.txt"
    predict perl_sort perl -e 'my %h; while (<>) { push @{$h{$_}}, [$., length] for split }
        print scalar(my @k = sort { @{$h{$b}} <=> @{$h{$a}} || $a cmp $b } keys %h)' "$prediction/words.txt"
    predict map "$out/map"
}

predict_usual() {
    [ -x "$out/lua" ] && predict lua "$out/lua" "$here/lua/binary_trees.lua" 12
    [ -x "$out/speedtest1" ] && predict sqlite "$out/speedtest1" --size 15
    predict perl perl "$root/examples/visitors.pl"
    PYTHONMALLOC=malloc predict python /usr/bin/python3 "$here/prediction/objects.py"
    predict buffers "$out/buffers"
    predict two_threads "$out/two_threads" 1000000
}

summarise_prediction() { # NAME
    [ -z "$json" ] && echo "$1"
    awk -F'\t' -v json="$json" -v workload="$1" '
        { program[$1] = 1; order[$1] = order[$1] ? order[$1] : ++n; name[order[$1]] = $1
          reals[$1, $2] = $3; predictions[$1, $2] = $4; weights[$1] = $5; allocators[$2] = 1 }
        END {
            if (!json) printf "%-12s %-10s %10s %10s %9s  %s\n", "program", "allocator", "real", "predicted", "error", "weight"
            for (i = 1; i <= n; i++) {
                p = name[i]; best = ""
                for (a in allocators) if (reals[p, a] && (best == "" || reals[p, a] < reals[p, best])) best = a
                for (a in allocators) {
                    real = reals[p, a]; predicted = predictions[p, a]
                    if (!real || predicted == "") continue
                    error = (predicted - real) / real; if (error < 0) error = -error
                    if (a != "glibc") { sum += error; cells++ }
                    if (real / reals[p, best] > 1.2) { slowdowns++; found += predicted / predictions[p, best] > 1.2 }
                    if (json) printf "{\"workload\": \"%s\", \"program\": \"%s\", \"allocator\": \"%s\", \"real\": %.3f, \"predicted\": %.3f}\n", workload, p, a, real, predicted
                    else if (a != "glibc") printf "%-12s %-10s %10.3f %10.3f %8.1f%%  %s\n", p, a, real, predicted, error * 100, weights[p]
                }
            }
            if (!cells) exit
            if (json) printf "{\"workload\": \"%s\", \"mean_error\": %.4f, \"cells\": %d, \"slowdowns\": %d, \"predicted\": %d}\n", workload, sum / cells, cells, slowdowns, found
            else {
                printf "%s  mean error %.1f %% over %d, 8 %% wanted\n", (sum / cells <= 0.08 ? "met   " : "MISSED"), 100 * sum / cells, cells
                printf "%s  slowdowns above 1.2 against the best: %d, of them predicted above 1.2: %d, 8 in 10 wanted\n\n", \
                    (found >= 0.8 * slowdowns ? "met   " : "MISSED"), slowdowns, found
            }
        }' "$prediction/table.tsv"
}
