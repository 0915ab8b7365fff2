#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Sampled elements, whose bits show every rounding and order, are right where they should be: in every collective that reduces, with a
# switch that fails in the middle of what is compared, with losses, with other roundings and orders of the switches, and in real time.
# (That #wrong shows what is not right: tests/rounding.sh.)
# load: any
. "$(dirname "$0")/lib.sh"

sim() { trib sim "$@" >"$tmp/sim.out" 2>"$tmp/sim.err" || fail "trib sim $* ended with $?: $(cat "$tmp/sim.err")"$'\n'"$(grep -E 'FAILED|fell back' "$tmp/sim.out")"; }

for one in "leaf-spine-8 all_reduce" "leaf-spine-8 reduce -r 5" "leaf-spine-8 reduce_scatter" "rail-2x4 all_reduce" "h100-node all_reduce --mm-self"; do
    read -r name coll more <<<"$one"
    # shellcheck disable=SC2086  # words
    sim "$conf/$name.conf" "$coll" $more --algo all -w 0 -b 70000 -e 70000 -d half,double,int8,f8e4m3 -o sum,min,avg
done

# Part of an operation by the switches, part of it by the hosts, whatever the moment.
fell=0
for at in 2 4 6 8 10 12; do
    echo "faults = ( { at = \"${at}us\"; node = \"spine0\"; restart = \"1us\"; } );" >"$tmp/restart.conf"
    for coll in all_reduce reduce reduce_scatter; do
        sim "$conf/leaf-spine-8.conf" "$coll" --faults "$tmp/restart.conf" -w 0 -b 256K -e 256K --algo sharp -d half
        fell=$((fell + $(grep -c 'fell back' "$tmp/sim.out")))
    done
done
[ "$fell" -ge 15 ] || fail "$fell runs fell back, expected 15 at least of 18"

switches() { sed "s/^reduce *=.*/reduce = { $1 };/" "$conf/leaf-spine-8.conf" >"$tmp/switches.conf" && grep -qF "$1" "$tmp/switches.conf" || fail "no conf with $1"; }
for how in 'rounding = "zero";' 'rounding = "up";' 'rounding = "stochastic"; seed = 7;' 'order = "arrival";'; do
    switches "$how"
    sim "$tmp/switches.conf" all_reduce --algo ring,sharp -w 0 -b 70000 -e 70000 -d half,bfloat16,f8e5m2,float
done
sed 's/host_link *= *{/&  loss = 0.001; /' "$conf/leaf-spine-8.conf" >"$tmp/lossy.conf"
grep -q loss "$tmp/lossy.conf" || fail "no conf with losses"
sim "$tmp/lossy.conf" all_reduce --algo all -b 256K -e 256K -d half

# In real time the launcher knows the results, and the ranks compare them.
for name in two-hosts single-switch-4; do
    trib up "$conf/$name.conf" --dilation 1000 >/dev/null || fail "no fabric"
    perf_ok "$name" all_reduce --algo all -n 1 -w 0 -b 20004 -e 20004 -d half,float -o sum,avg
    perf_ok "$name-rs" reduce_scatter --algo all -n 1 -w 0 -b 20000 -e 20000 -d bfloat16
    trib down >/dev/null || fail "down"
done
