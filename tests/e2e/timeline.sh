#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# --timeline in virtual time: files in the Trace Event Format that say what counters say, of the row that was asked for, and results
# that are the same as without.
# clock: virtual
. "$(dirname "$0")/lib.sh"

check() { python3 "$root/tests/e2e/lib_timeline.py" "$@" >"$tmp/check.out" 2>&1 || fail "$(cat "$tmp/check.out")"; }
n=0
sim() { # sim NAME ARG...: a run with a time line, and one without
    n=$((n + 1))
    trib sim "${@:2}" --timeline "$tmp/$1.json" -J "$tmp/$1.with" >"$tmp/sim.out" 2>&1 || fail "trib sim ${*:2}: $(cat "$tmp/sim.out")"
    trib sim "${@:2}" -J "$tmp/$1.without" >"$tmp/sim.out" 2>&1 || fail "trib sim ${*:2}: $(cat "$tmp/sim.out")"
    cmp <(jq 'del(.run)' "$tmp/$1.with") <(jq 'del(.run)' "$tmp/$1.without") || fail "trib sim ${*:2}: other results with a time line"
    check "$tmp/$1.json"
}
of() { jq -r ".otherData.$2" "$tmp/$1.json"; }

sim ring leaf-spine-8 -b 256K -e 256K --algo ring
sim sharp leaf-spine-8 -b 64K -e 1M --algo ring,sharp
sim node h100-node --algo nvls -b 256K -e 256K
sim direct leaf-spine-8 alltoall -b 64K -e 64K --algo direct
sim protocol leaf-spine-8 -b 64K -e 64K --algo switchml
sim lengths leaf-spine-8 -b 1M -e 1M --algo halving --payload none
sim background leaf-spine-8 -b 64K -e 64K --algo ring --background-flow h1:h6
cat >"$tmp/loss.conf" <<'END'
faults = ( { link = "h2-leaf0"; loss = 0.02; seed = 3; } );
END
sim loss leaf-spine-8 -b 1M -e 1M --algo ring --faults "$tmp/loss.conf"
sed 's/name .*/&\nforwarding = "cut-through";/' "$conf/leaf-spine-8.conf" >"$tmp/cut.conf"
sim cut "$tmp/cut.conf" -b 256K -e 256K --algo ring
sim pauses incast-32 gather -g 33 -b 16M -e 16M --algo direct --payload none

# the operation is the last one, or the one that was asked for
[ "$(of sharp 'operation | "\(.algorithm) \(.size_bytes) \(.row)"')" = "sharp 1048576 6" ] || fail "the last row: $(of sharp operation)"
trib sim leaf-spine-8 -b 64K -e 1M --algo ring,sharp --timeline "$tmp/2.json" --timeline-row 2 >"$tmp/sim.out" 2>&1 || fail "--timeline-row: $(cat "$tmp/sim.out")"
[ "$(of 2 'operation | "\(.algorithm) \(.size_bytes) \(.row)"')" = "ring 262144 2" ] || fail "--timeline-row 2: $(of 2 operation)"
trib sim leaf-spine-8 -b 64K -e 64K --algo ring -n 3 --timeline "$tmp/3.json" >"$tmp/sim.out" 2>&1 || fail "-n 3: $(cat "$tmp/sim.out")"
check "$tmp/2.json" "$tmp/3.json"
trib sim leaf-spine-8 -b 64K -e 64K --algo ring --timeline "$tmp/none.json" --timeline-row 9 >"$tmp/sim.out" 2>&1 && fail "row 9 of 1"
has 'timeline-row: found 9, expected a row that runs' "$tmp/sim.out"
[ ! -e "$tmp/none.json" ] || fail "a time line of no row"
trib sim leaf-spine-8 --timeline /nowhere/x.json >"$tmp/sim.out" 2>&1 && fail "a file that cannot be written"
has 'timeline: cannot write /nowhere/x.json' "$tmp/sim.out"

# what it shows
[ "$(of ring 'operation.time_us')" = "$(jq '.otherData.operation.ranks | map(.ended_us) | max' "$tmp/ring.json")" ] || fail "the last rank ends at another time"
[ "$(jq '[.traceEvents[] | select(.ph == "s")] | length' "$tmp/ring.json")" = "$(jq '[.traceEvents[] | select(.cat == "send")] | length' "$tmp/ring.json")" ] ||
    fail "a message without an arrow"
jq -e '[.traceEvents[] | select(.cat == "pause")] | length > 10' "$tmp/pauses.json" >"$tmp/jq.out" || fail "an incast without pauses"
jq -e '[.traceEvents[] | select(.cat == "queue")] | map(.args.bytes) | max > 100000' "$tmp/pauses.json" >"$tmp/jq.out" || fail "an incast without queues"
jq -e '[.traceEvents[] | select(.cat == "drop")] | map(.args.lost) | add > 0' "$tmp/loss.json" >"$tmp/jq.out" || fail "losses without drops"
jq -e '[.traceEvents[] | select(.cat == "retransmit")] | map(.args.packets) | add > 0' "$tmp/loss.json" >"$tmp/jq.out" || fail "losses without retransmissions"
jq -e '[.otherData.links[].flows[] | select(.background)] | length > 0' "$tmp/background.json" >"$tmp/jq.out" || fail "no background flow"
jq -e '.otherData.run.command | index("--timeline") == null' "$tmp/ring.json" >"$tmp/jq.out" || fail "the command has --timeline"
echo "$n runs"
