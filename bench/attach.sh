# attach.sh - part of bench/run: redis-server under load while heapwise attach and detach, and heaptrack -p, come and go.
#
# The table goes to stdout as Markdown, medians of the rounds: requests a second, and the longest time that a client
# waited for an answer, in milliseconds, in the load during which something happened. HEAPWISE_BENCH_REQUESTS (200000):
# of one load.

attach_load() { # NAME: adds a line "rps longest" to $out/attach/NAME
    redis-benchmark -s "$out/attach/socket" -n "${HEAPWISE_BENCH_REQUESTS:-200000}" -c 50 -t set -r 100000 -d 64 --csv |
        tail -1 | tr -d '"' | awk -F, '{ print $2, $NF }' >>"$out/attach/$1"
}

attach_during() { # NAME COMMAND...: which begins in the middle of the load
    local name=$1 load
    shift
    attach_load "$name" &
    load=$!
    sleep 0.7
    "$@" >>"$out/attach/said" 2>&1
    wait "$load"
}

attach_server() { # COMMAND...: is started; its number in `server`
    local i
    rm -f "$out/attach/socket"
    "$@" --port 0 --unixsocket "$out/attach/socket" --save '' --appendonly no --dir "$out/attach" >/dev/null 2>&1 &
    server=$!
    for ((i = 0; i < 100; i++)); do
        [ "$(redis-cli -s "$out/attach/socket" ping 2>/dev/null)" != PONG ] || return 0
        sleep 0.1
    done
    return 1
}

attach_end() {
    redis-cli -s "$out/attach/socket" shutdown nosave >/dev/null 2>&1 || true
    wait "$server" 2>/dev/null || true
}

attach_round() {
    attach_server redis-server || return 0
    attach_load plain
    attach_during attaching "$heapwise" attach -q -o "$out/attach/%p.hwprof" "$server"
    attach_load attached
    attach_during detaching "$heapwise" detach -q "$server"
    attach_load detached
    attach_end
    attach_server "$heapwise" record -q -f -o "$out/attach/recorded.hwprof" -- redis-server || return 0
    attach_load recorded
    attach_end
    have heaptrack && have gdb && attach_server redis-server || return 0
    local heaptrack i
    attach_load heaptrack-plain
    heaptrack -o "$out/attach/heaptrack" -p "$server" >>"$out/attach/said" 2>&1 &
    heaptrack=$!
    attach_load heaptrack-attaching
    attach_load heaptrack-attached
    kill -INT "$heaptrack" 2>/dev/null || true
    attach_load heaptrack-detaching
    for ((i = 0; i < 100; i++)); do
        kill -0 "$heaptrack" 2>/dev/null || break
        sleep 0.1
    done
    pkill -KILL -P "$heaptrack" 2>/dev/null || true
    kill -KILL "$heaptrack" 2>/dev/null || true
    wait "$heaptrack" 2>/dev/null || true
    if kill -0 "$server" 2>/dev/null; then attach_load heaptrack-detached; fi
    attach_end
}

attach_row() { # NAME TITLE PLAIN
    [ -s "$out/attach/$1" ] || return 0
    local rps longest plain
    rps=$(awk '{ print $1 }' "$out/attach/$1" | sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }')
    plain=$(awk '{ print $1 }' "$out/attach/$3" | sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }')
    longest=$(awk '{ print $2 }' "$out/attach/$1" | sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }')
    awk -v title="$2" -v rps="$rps" -v plain="$plain" -v longest="$longest" \
        'BEGIN { printf "| %s | %.0f | %.2f | %.1f |\n", title, rps, rps / plain, longest }'
}

measure_attach() {
    [ -n "$heapwise" ] || { say "skipped: attach" && return; }
    have redis-server && have redis-benchmark || { say "no redis-server: attach is skipped" && return; }
    rm -rf "$out/attach" && mkdir -p "$out/attach"
    local i server
    for ((i = 0; i < rounds; i++)); do attach_round; done
    say "redis-server under redis-benchmark, $rounds rounds"
    echo "| redis-server | requests a second | of plain | longest answer, ms |"
    echo "| --- | ---: | ---: | ---: |"
    attach_row plain "plain" plain
    attach_row attaching "while \`heapwise attach\` begins" plain
    attach_row attached "attached" plain
    attach_row detaching "while \`heapwise detach\` ends it" plain
    attach_row detached "after that" plain
    attach_row recorded "\`heapwise record\` from the start" plain
    attach_row heaptrack-plain "plain, another process" heaptrack-plain
    attach_row heaptrack-attaching "while \`heaptrack -p\` begins" heaptrack-plain
    attach_row heaptrack-attached "with \`heaptrack -p\`" heaptrack-plain
    attach_row heaptrack-detaching "while \`heaptrack -p\` ends" heaptrack-plain
    attach_row heaptrack-detached "after that" heaptrack-plain
    echo
}
