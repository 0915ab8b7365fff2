#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A process of h7 sends frames of a capture of the others' jobs, changed at random, and frames of every kind, until its slot is shut; one
# of h6 sends only what its NIC admits, changed from the BTH on. Two jobs of other hosts, one by SHARP and one by ring, stay exact, and
# no switch ends. SEED chooses the frames, FRAMES how many (10^6 take a minute), STORM_SECONDS for how long at most.
. "$(dirname "$0")/../e2e/lib.sh"
attack=$TRIB_BUILD/tests/hostile
seed=${SEED:-1} frames=${FRAMES:-100000} seconds=${STORM_SECONDS:-8} wall=${WALL:-$((${STORM_SECONDS:-8} + 8))}

trib up "$conf/leaf-spine-8.conf" --dilation 1000 >/dev/null || fail "no fabric"
perf_ok sharp --algo sharp -g 6 -b 64K -e 64K -n 1000000 --max-wall $wall &
one=$!
perf_ok ring --algo ring -g 6 -b 64K -e 64K -n 1000000 -d int32 --max-wall $wall &
two=$!
busy() { [ "$(total rx_frames)" -gt 5000 ]; }
until_true 20 busy || fail "the jobs did not get under way"
trib capture h1-leaf0 -o "$tmp/x.pcap" -t 1 >"$tmp/capture.out" 2>&1 || fail "no capture: $(tail -n 1 "$tmp/capture.out")"
timeout $((seconds + 20)) "$root/scripts/trib" exec h7 -- "$attack/storm" "$seed" "$frames" "$seconds" "$tmp/x.pcap" >"$tmp/attack.out" 2>&1 ||
    fail "seed $seed, attacker: $(tail -n 1 "$tmp/attack.out")"
has '^sent [1-9][0-9]* \(shut\)' "$tmp/attack.out"
timeout $((seconds + 20)) "$root/scripts/trib" exec h6 -- "$attack/storm" "$seed" "$frames" "$seconds" "$tmp/x.pcap" deep >"$tmp/deep.out" 2>&1 ||
    fail "seed $seed, attacker behind the NIC: $(tail -n 1 "$tmp/deep.out")"
has "^sent [1-9]" "$tmp/deep.out"
trib status >"$tmp/status.out" || fail "no status"
has_not "offender h6" "$tmp/status.out"
cat "$tmp/attack.out" "$tmp/deep.out"
wait $one || fail "seed $seed: the SHARP job of the other hosts"
wait $two || fail "seed $seed: the ring job of the other hosts"
has_not 'fell back' "$tmp/sharp.out"
trib status >"$tmp/status.out" || fail "seed $seed: no status"
for p in "$run"/leaf-spine-8/proc/*.pid; do
    [ ! -e "${p%.pid}.ended" ] || fail "seed $seed: $(basename "$p" .pid) $(cat "${p%.pid}.ended")"
done
