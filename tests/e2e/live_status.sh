#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# trib status --links --groups --watch --json on a fabric that works: the counters are those of telemetry, groups have their members
# and owner while a job runs, and neither a stopped switch process nor a fabric that goes down holds it up.
. "$(dirname "$0")/lib.sh"
dir=$run/leaf-spine-8

status() { trib status "$@" 2>"$tmp/stderr.out"; }
trib status --json >"$tmp/none.out" 2>&1 && fail "no fabric: exit code 0"
[ "$(jq -c .fabrics "$tmp/none.out")" = '[]' ] || fail "no fabric: $(cat "$tmp/none.out")"
trib up "$conf/leaf-spine-8.conf" --dilation 100 >"$tmp/up.out" || fail "no fabric"

# groups, while a job of eight ranks is there
trib perf "$conf/leaf-spine-8.conf" all_reduce -b 64K -e 64K -n 2000 --algo sharp --max-wall 4 >"$tmp/perf.out" 2>&1 &
perf=$!
groups_there() { status --groups --json >"$tmp/groups.json" && [ "$(jq '[.fabrics[0].groups[] | select(.open)] | length' "$tmp/groups.json")" -ge 2 ]; }
until_true 20 groups_there || fail "no groups: $(cat "$tmp/groups.json" "$tmp/perf.out")"
jq -e '.schema == 1 and (.fabrics | length) == 1 and (.fabrics[0] | .name == "leaf-spine-8" and .dilation >= 1 and (has("links") | not))
       and ([.fabrics[0].groups[] | select(.kind == "tree" and (.members | length) == 8
            and ([.members[].host] | sort) == ["h0","h1","h2","h3","h4","h5","h6","h7"] and (.owner | test("^h[0-7]$")) and (.job | test("^[0-9a-f]{8}$"))
            and .nodes.leaf0.joined == 4 and .nodes.leaf0.slots > 0 and .nodes.leaf0.slots_used <= .nodes.leaf0.slots)] | length) >= 2
       and ([.fabrics[0].groups[].job] | unique | length) == 1
       and ([.fabrics[0].slots[] | select(.pid and .host == "h3" and .program)] | length) >= 1' "$tmp/groups.json" >"$tmp/jq.out" ||
    fail "groups: $(cat "$tmp/groups.json")"
status --groups >"$tmp/groups.out" || fail "status --groups"
has '^ +[0-9a-f]{8} +tree +[01] +[0-9]+ +h[0-7] ' "$tmp/groups.out"
wait $perf # what it measured before --max-wall depends on the machine; that it is right does not
has 'Out of bounds values : 0 OK' "$tmp/perf.out"

# links: what telemetry counts, by every direction, when the last reports of groups have been sent
frames() { trib telemetry leaf-spine-8 /trib/totals | jq .fabric.tx_frames; }
settled() { local n; n=$(frames) && sleep 0.5 && [ "$(frames)" = "$n" ]; }
until_true 10 settled || fail "frames without an end"
trib link h4-leaf1 loss=20% seed=3 >/dev/null && trib link h7-leaf1 down >/dev/null || fail "link"
same_bytes() { # a frame may pass between the two
    status --links --json >"$tmp/links.json" || fail "status --links"
    "$TRIB_BUILD/trib-telemetry" "$dir" /trib/link_bytes | jq -S '[.fabric | _nwise(2) | .[1]]' >"$tmp/asked.out"
    jq -S '[.fabrics[0].links[].link_bytes] | [., [range(length)]] | transpose | map(.[0])' "$tmp/links.json" >"$tmp/links.out"
    [ "$(jq -c 'sort' "$tmp/asked.out")" = "$(jq -c 'sort' "$tmp/links.out")" ]
}
until_true 5 same_bytes || fail "link_bytes: $(diff "$tmp/asked.out" "$tmp/links.out")"
jq -e '.fabrics[0] | (has("groups") | not) and (.links | length) == 24
       and ([.links[].frames] | add) == .totals.tx_frames and ([.links[].bytes] | add) == .totals.tx_bytes
       and ([.links[] | select(.from == "h7:0" or .to == "h7:0") | .state] == ["down", "down"])
       and ([.links[] | select(.faults_set == "loss=0.2")] | length) == 2
       and ([.links[] | select(.utilisation > 0 and .utilisation <= 1 and .GBps > 0 and .GBps <= .capacity_GBps and .busy_us > 0)] | length) == 24' \
    "$tmp/links.json" >"$tmp/jq.out" || fail "links: $(cat "$tmp/links.json")"

# again and again, without traffic: windows join, nothing moves; with loss, drops have their reason
status --watch 0.2 -n 3 --json >"$tmp/watch.out" || fail "--watch"
jq -se 'length == 3 and .[1].fabrics[0].since_us == .[0].fabrics[0].time_us and .[2].fabrics[0].since_us == .[1].fabrics[0].time_us
        and ([.[2].fabrics[0].links[].GBps] | max) < 0.01 and .[1].fabrics[0].time_us > .[0].fabrics[0].time_us' "$tmp/watch.out" >"$tmp/jq.out" ||
    fail "--watch: $(cat "$tmp/watch.out")"
timeout 60 "$root/scripts/trib" exec leaf-spine-8 h4 -- ibv_rc_pingpong -g 0 -n 1000 -p $port >"$tmp/pong.out" 2>&1 &
pong=$!
until_true 20 listens || fail "no server: $(cat "$tmp/pong.out")"
timeout 60 "$root/scripts/trib" exec leaf-spine-8 h0 -- ibv_rc_pingpong -g 0 -n 1000 -p $port 127.0.0.1 >"$tmp/ping.out" 2>&1 &
ping=$!
lost() { status --links --json | jq -e '[.fabrics[0].links[].drops.lost // 0] | add > 0' >"$tmp/jq.out"; }
until_true 30 lost || fail "no drops: $(trib status --links)"
kill $pong $ping 2>/dev/null
wait $pong $ping
status --links >"$tmp/links.out" || fail "--links"
has '^ +h7 +leaf1 +down ' "$tmp/links.out"
has ' [0-9]+ lost' "$tmp/links.out"
[ "$(wc -L <"$tmp/links.out")" -le 140 ] || fail "a line of $(wc -L <"$tmp/links.out") columns"

# a process that does not answer
pid=$(pids_in "$dir"/proc/*.pid)
kill -STOP "$pid"
timeout 8 "$TRIB_BUILD/trib-status" --links "$dir" >"$tmp/silent.out" || fail "a stopped process: exit code $?"
kill -CONT "$pid"
has '1 of 1 processes do not answer' "$tmp/silent.out"

trib status --watch >"$tmp/bad.out" 2>&1 -n 0 && fail "-n 0: exit code 0"
trib status --link >"$tmp/bad.out" 2>&1 -n 2 && fail "-n without --watch: exit code 0"
has 'expected --watch SECONDS' "$tmp/bad.out"
trib down >/dev/null || fail "down"
trib status --links >"$tmp/gone.out" 2>&1 && fail "no fabric any more: exit code 0"
has 'no fabric is up' "$tmp/gone.out"
