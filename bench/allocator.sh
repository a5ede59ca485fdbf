# allocator.sh - what allocator mode costs (record --mode allocator): ten programs with ordinary rates of allocation, real ones
# with real input (up to 5 million operations a second), a Lua program that makes trees (27 million a second), and two loops that do
# nothing but allocate.
#
# A part of bench/run, which sources it: uses its functions. Side by side, round by round, plain against the preloaded library in
# allocator mode; least CPU time of the rounds, greatest resident memory. Wanted: geometric mean at most 1.07, the loops at most 1.5,
# memory at most 16 MiB + 10 %. The table for people goes to stdout and, as Markdown, to build/bench/allocator/results.md.
#
# ALLOCATOR_ONLY="perl sort …" measures only those.

allocator=$out/allocator

build_allocator() {
    [ -n "$heapwise" ] || { say "Heapwise is not built" && return 1; }
    mkdir -p "$allocator/profiles"
    gcc -O2 -g -o "$out/pairs" "$here/kernels/pairs.c"
    build_lua || true
    build_sqlite || true
    [ -s "$allocator/text" ] || # some 11 MB of words and numbers
        awk 'BEGIN { srand(1); for (i = 0; i < 250000; i++) printf "%d key%d value %.6f of line %d\n", rand() * 1e6, rand() * 1e4, rand(), i }' \
            >"$allocator/text"
    [ -s "$allocator/rows.json" ] ||
        awk 'BEGIN { srand(2); print "["; for (i = 0; i < 60000; i++) printf "%s{\"id\":%d,\"name\":\"n%d\",\"tags\":[%d,%d],\"at\":%.3f}\n", i ? "," : "", i, rand() * 1e5, rand() * 9, rand() * 9, rand(); print "]" }' \
            >"$allocator/rows.json"
    cat >"$allocator/words.py" <<'END'
import json, sys
rows = json.load(open(sys.argv[1]))
for turn in range(4):
    names = {}
    for row in rows:
        names.setdefault(row["name"], []).append(row["at"] * turn)
    ranked = sorted((sum(v), k) for k, v in names.items())
END
    cat >"$allocator/words.lua" <<'END'
local count, lines = {}, {}
for line in io.lines(arg[1]) do
    for word in line:gmatch("%S+") do
        count[word] = (count[word] or 0) + 1
    end
    if #line % 7 == 0 then
        lines[#lines + 1] = line:upper()
    end
end
local ranked = {}
for word, n in pairs(count) do
    if n > 1 then
        ranked[#ranked + 1] = { word, n }
    end
end
table.sort(ranked, function(a, b) return a[2] > b[2] or a[2] == b[2] and a[1] < b[1] end)
print(#ranked, #lines)
END
    cat >"$allocator/words.sql" <<'END'
create table t(a integer, b text, c real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 300000)
insert into t select i, 'key' || (i * 7919 % 10007), i * 0.5 from n;
create index b on t(b);
select b, count(*), sum(c) from t group by b order by 3 desc limit 5;
select count(*) from t x join t y on x.b = y.b where x.a % 100 = 0;
END
    [ -s "$allocator/unit.c" ] || { echo '#include <stdio.h>'; echo '#include <stdlib.h>'
        for i in $(seq 1 2500); do
            echo "struct s$i { int a[$((i % 7 + 1))]; double b; struct s$i *next; };
static int f$i(struct s$i *s, int n) { int sum = 0; for (; s; s = s->next) for (int k = 0; k < n && k < $((i % 7 + 1)); k++) sum += s->a[k] * $i; return sum; }"
        done
        echo 'int main(void) { return f1(0, 1); }'; } >"$allocator/unit.c"
}

# allocator_against NAME COMMAND…: one workload, its lines in times.tsv.
allocator_against() {
    local name=$1
    shift
    [[ -z ${ALLOCATOR_ONLY:-} || " $ALLOCATOR_ONLY " == *" $name "* ]] || return 0
    [ -x "$(command -v "$1")" ] || { say "skipped: $name: there is no $1" && return; }
    rm -rf "$allocator/profiles" && mkdir -p "$allocator/profiles"
    "$out/compare" -n "$rounds" $json --title "$name" --append "$allocator/times.tsv" ::: plain "$@" \
        ::: allocator LD_PRELOAD="$(dirname "$heapwise")/../lib/heapwise/libheapwise.so" HEAPWISE_OPTIONS="mode=allocator:output=$allocator/profiles/%p.hwprof" "$@" </dev/null
    rm -rf "$allocator/profiles"
}

allocator_table() {
    awk -F '\t' '
        { cpu[$1, $2] = $5; rss[$1, $2] = $12; if (!($1 in seen)) order[++count] = $1; seen[$1] = 1 }
        END {
            print "| workload | plain s | allocator mode s | ratio | plain MiB | allocator mode MiB |"
            print "| --- | ---: | ---: | ---: | ---: | ---: |"
            for (i = 1; i <= count; i++) {
                w = order[i]; p = cpu[w, "plain"]; a = cpu[w, "allocator"]
                printf "| %s | %.3f | %.3f | %.3f | %.1f | %.1f |\n", w, p, a, a / p, rss[w, "plain"], rss[w, "allocator"]
                more = rss[w, "allocator"] - 1.1 * rss[w, "plain"]
                if (more > worst) worst = more
                if (w ~ /^pairs/) { if (a / p > loops) loops = a / p } else if (w != "lua-trees") { sum += log(a / p); n++ }
            }
            if (n) printf "\n%s: geometric mean of %d programs %.3f, at most 1.07 wanted\n", exp(sum / n) <= 1.07 ? "met" : "MISSED", n, exp(sum / n)
            if (loops) printf "%s: loops that only allocate %.2f, at most 1.5 wanted\n", loops <= 1.5 ? "met" : "MISSED", loops
            printf "%s: memory beyond 110 %% of plain %.1f MiB, at most 16 wanted\n", worst <= 16 ? "met" : "MISSED", worst
        }' "$allocator/times.tsv" | tee "$allocator/results.md"
}

measure_allocator() {
    rm -f "$allocator/times.tsv"
    [ -x "$out/lua" ] && allocator_against lua "$out/lua" "$allocator/words.lua" "$allocator/text"
    [ -x "$out/speedtest1" ] && allocator_against sqlite "$out/speedtest1" --size 10
    allocator_against sqlite3 sqlite3 :memory: ".read $allocator/words.sql"
    allocator_against perl perl "$root/examples/visitors.pl"
    PYTHONHASHSEED=0 allocator_against python3 /usr/bin/python3 "$allocator/words.py" "$allocator/rows.json"
    allocator_against jq jq "[.[] | select(.at > 0.5) | .tags[0]] | add" "$allocator/rows.json"
    allocator_against mawk mawk '{ n[$2]++; s[$2] += $4 } END { for (k in n) t += s[k] / n[k]; print t }' "$allocator/text"
    allocator_against sort sort --parallel=2 -k2 "$allocator/text"
    allocator_against xz xz -0 -T1 -k -c "$allocator/text"
    allocator_against gcc gcc -O2 -fkeep-static-functions -S -o /dev/null "$allocator/unit.c"
    [ -x "$out/lua" ] && allocator_against lua-trees "$out/lua" "$here/lua/binary_trees.lua" 15
    allocator_against pairs-tight "$out/pairs" tight
    allocator_against pairs-mixed "$out/pairs" mixed
    allocator_table
}
