#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# trib sim --counters: bytes and frames of each direction of each link, in a row and in the whole run, equal those of a trace; pauses,
# marks and drops are counted at the right place, with their reason.
# clock: virtual
. "$(dirname "$0")/lib.sh"
command -v tshark >/dev/null || skip "no tshark"
command -v jq >/dev/null || skip "no jq"

sim() { trib sim "$@" 2>"$tmp/sim.err" >"$tmp/sim.out" || fail "trib sim $*: $(cat "$tmp/sim.err")"; }
# ask WHAT PROGRAM: jq's answer about the JSON must be true
ask() { [ "$(jq "$2" "$tmp/c.json")" = true ] || fail "$1: not so"$'\n'"$(jq -c "${3:-.virtual.links[0]}" "$tmp/c.json" | head -n 12)"; }

# frames and layer-2 bytes of each direction, from the trace and from the counters
sim leaf-spine-8.conf --algo ring,sharp -b 256K -e 256K -n 2 --counters --trace "$tmp/t.pcapng" -J "$tmp/c.json"
tshark -r "$tmp/t.pcapng" -T fields -e frame.interface_name -e frame.packet_flags_direction -e frame.len 2>/dev/null |
    awk '{ k = $1 ($2 ~ /2$/ ? " a" : " b"); n[k]++; b[k] += $3 < 60 ? 60 : $3 } END { for (k in n) print k, n[k], b[k] }' |
    sort >"$tmp/traced"
jq -r '.virtual.links[] | (.link | split("-")[0]) as $a | "\(.link) \(if .from == $a then "a" else "b" end) \(.frames) \(.bytes)"' \
    "$tmp/c.json" | sort >"$tmp/counted"
[ "$(wc -l <"$tmp/counted")" -ge 16 ] || fail "too few links: $(cat "$tmp/counted")"
diff "$tmp/traced" "$tmp/counted" || fail "trace and counters differ"
ask "24 bytes beside each frame" '[.virtual.links[], .results[].links[] | .link_bytes == .bytes + 24 * .frames] | all'
ask "busy time is that of the bytes, at 400 Gb/s" '[.virtual.links[] | (.busy_us * 50000 - .link_bytes | fabs) < 1] | all'
# A row's busiest link is that of its counters; without loss it carries what the model has, and acknowledgements.
ask "the busiest link" '[.results[] | .link_bytes as $b | .model_link_bytes as $p | .iters as $n | .link_utilisation as $v |
    [.links[].link_bytes] as $m | [.links[].utilisation] as $u |
    (($m | max) == $b * $n and $b >= $p and $b < $p * 1.03 and (($u | max) - $v | fabs) < 1e-6 and $v > 0.5 and $v < 1)] | all' \
    '.results[] | [.link_bytes, .link_utilisation, .model_link_bytes, .iters, (.links | max_by(.link_bytes))]'
ask "no drops, faults or marks" '[.virtual.links[] | .drops == {} and .ecn_marks == 0 and .faults.duplicated == 0] | all'
has '^# Links during ring, 262144 B, float sum, out-of-place: 2 operations, [0-9.]+ us' "$tmp/sim.out"
[ "$(grep -c '^# Links during' "$tmp/sim.out")" = 2 ] || fail "expected a table for each of two rows"
awk '/^# Links during/ { last = 1e9 } $1 ~ /:/ && $2 ~ /:/ && NF >= 10 { if ($5 > last) exit 1; last = $5; n++ } END { exit !(n > 20) }' \
    "$tmp/sim.out" || fail "not sorted:"$'\n'"$(cat "$tmp/sim.out")"

# A table is cut, but never by a direction that lost frames, however little it carried.
echo 'faults = ( { link = "h7-leaf1"; loss = "2%"; } );' >"$tmp/idle.conf"
sim leaf-spine-8.conf broadcast --algo tree --root 0 -b 256K -e 256K --place out --counters --faults "$tmp/idle.conf"
has '^ +h7:0 +leaf1:3 .* [0-9]+ lost$' "$tmp/sim.out"
has '^# and [0-9]+ that were no busier, without drops, pauses or marks' "$tmp/sim.out"

# For each algorithm, with and without loss: the whole run has counted the frames of the trace, and those that were lost; the row's link is the
# busiest of its counters. Without loss the row's one operation has all frames of reliable connections in the trace, in every direction, and at most
# the last datagrams of connecting (146 or 298 bytes each), which are still under way when it begins.
sums() { # FILTER: link, direction and link bytes, from the trace
    tshark -o infiniband.identify_payload:FALSE -r "$tmp/t.pcapng" -Y "$1" -T fields -e frame.interface_name -e frame.packet_flags_direction \
        -e frame.len 2>/dev/null | awk '{ b[$1 ($2 ~ /2$/ ? " a" : " b")] += ($3 < 60 ? 60 : $3) + 24 } END { for (k in b) print k, b[k] }' | sort
}
counted() { # LIST BYTES: the same from the counters
    jq -r "$1"'[] | (.link | split("-")[0]) as $a | "\(.link) \(if .from == $a then "a" else "b" end) \('"$2"')"' "$tmp/c.json" |
        awk '$3 > 0' | sort
}
echo 'faults = ( { link = "all"; loss = "1%"; } );' >"$tmp/loss.conf"
for algo in ring sharp tree direct; do
    one=(leaf-spine-8.conf --algo "$algo" -b 256K -e 256K -n 1 -w 0 -c 0 --place out --counters --trace "$tmp/t.pcapng" -J "$tmp/c.json")
    for loss in "" "--faults $tmp/loss.conf"; do
        # shellcheck disable=SC2086
        sim "${one[@]}" $loss
        diff <(sums frame) <(counted .virtual.links '.link_bytes - .lost_bytes - 24 * (.drops.lost // 0)') ||
            fail "$algo $loss: trace and counters of the whole run differ"
        ask "$algo $loss: the busiest link" '.results[0] | .link_bytes == ([.links[].link_bytes] | max)' '.results[0] | [.link_bytes, .links[].link_bytes]'
        if [ -z "$loss" ]; then
            join <(sums 'infiniband.bth.opcode < 32' | sed 's/ /,/') <(counted '.results[0].links' .link_bytes | sed 's/ /,/') >"$tmp/both"
            awk -v n="$(counted '.results[0].links' .link_bytes | wc -l)" '{ more = $3 - $2; ok = 0 }
                { for (phases = 0; phases < 4 && more >= 298 * phases; phases++) ok += (more - 298 * phases) % 146 == 0 }
                !ok || more > 1200 { bad = 1; print }
                END { exit bad || NR != n || !NR }' "$tmp/both" ||
                fail "$algo: trace and counters of the row differ"
        else
            ask "$algo: frames are lost" '[.virtual.links[].drops.lost // 0] | add > 20' '.virtual.links[].drops'
            ask "$algo: what is sent again counts" '.results[0] | .link_bytes > 1.05 * .model_link_bytes' '.results[0] | [.link_bytes, .model_link_bytes]'
        fi
    done
done

# only links that carried something, unless they are named
sim leaf-spine-8.conf --algo ring -g 2 -b 64K -e 64K --counters -J "$tmp/c.json"
ask "two hosts, two links" '[.results[0].links[].link] | unique == ["h0:0-leaf0:0", "h1:0-leaf0:1"]' '[.results[0].links[].link]'
sim leaf-spine-8.conf --algo ring -g 2 -b 64K -e 64K --counters --links h2 -J "$tmp/c.json"
ask "the one that was named" '[.results[0].links[] | .link, .frames] == ["h2:0-leaf0:2", 0, "h2:0-leaf0:2", 0]' '.results[0].links'

# Seven to one: queues grow, the last link is full, senders are paused, nothing is lost; frames that wait behind 64 KiB are marked.
sed 's/^name *=.*/name = "incast";/; s/\(host\|spine\)_link *= *{/&  ecn = "64KiB"; buffer = "256KiB"; /' "$conf/leaf-spine-8.conf" >"$tmp/incast.conf"
sim "$tmp/incast.conf" gather -b 4M -e 4M --counters -J "$tmp/c.json"
ask "the link to the root is full" '[.results[0].links[] | select(.to == "h0:0")][0] | .utilisation > 0.95 and .queue_peak_bytes > 65536 and .ecn_marks > 100' \
    '.results[0].links[]'
ask "pauses that were sent came" '.virtual.links | ([.[].pauses_sent] | add) as $s | $s > 0 and $s == ([.[].pauses_received] | add)' '.virtual.links[]'
ask "who was told to wait waited" '[.virtual.links[] | (.pauses_received > 0) == (.paused_us > 0)] | all' '.virtual.links[]'
ask "nothing was dropped" '[.virtual.links[].drops == {}] | all' '.virtual.links[].drops'

# Drops are counted where they happen: lost on the link, or for lack of room in the queue.
sed 's/^name *=.*/name = "lossy";/; s/host_link *= *{/&  loss = 0.01; /' "$conf/leaf-spine-8.conf" >"$tmp/lossy.conf"
sim "$tmp/lossy.conf" --algo ring -b 256K -e 256K --counters --trace "$tmp/t.pcapng" --links h0 -J "$tmp/c.json"
ask "frames are lost" '[.virtual.links[].drops.lost // 0] | add > 0'
[ "$(jq '[.virtual.links[] | .frames - (.drops.lost // 0)] | add' "$tmp/c.json")" = "$(tshark -r "$tmp/t.pcapng" 2>/dev/null | wc -l)" ] ||
    fail "frames that were not lost are not those of the trace: $(jq -c '.virtual.links[]' "$tmp/c.json")"
sed 's/^name *=.*/name = "full";/; s/\(host\|spine\)_link *= *{/&  pfc = false; buffer = "64KiB"; /' "$conf/leaf-spine-8.conf" >"$tmp/full.conf"
sim "$tmp/full.conf" gather -b 1M -e 1M --counters -J "$tmp/c.json"
ask "the full queue is the one to the root" '[.virtual.links[] | select(.drops.queue_full) | .to] | index("h0:0") != null' '.virtual.links[] | select(.drops != {})'
