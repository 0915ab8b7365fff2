#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Somebody in the network between three machines who has not the key keeps what their trunks say, and sends all of it again: when a machine has died
# (it stays dead, and what it asked for is not done again), when it starts anew (it is there at once, and stays), beside a job of all machines (which
# is exact).
. "$(dirname "$0")/../e2e/lib.sh"
. "$(dirname "$0")/../e2e/lib_machines.sh"
why=$(can_have_machines) || skip "$why"
attack=$TRIB_BUILD/tests/hostile/trunk

spread_conf
wire_up
for i in 0 1 2; do machine_up $i; done
for i in 1 0 2; do fabric_up $i "$tmp/spread.conf"; done
are_there() { [ "$(for i in 0 1 2; do trunk $i; done | grep -c '"m[0-2]": "there"')" = 6 ]; }
until_true 10 are_there || fail "machines: $(for i in 0 1 2; do trunk $i; done)"
link() { on 2 trib link leaf1-spine1; }
is_down() { link | grep -q ': down'; }
is_up() { ! is_down; }

# an hour of the lab, in short: states, frames, an order to take a link down and one to bring it up
for i in 0 1 2; do
    on $i "$attack" capture eth0 10.9.0.$((i + 1)) "$tmp/kept$i" 8 >"$tmp/capture$i.out" &
    captures[i]=$!
    until_true 5 grep -q capturing "$tmp/capture$i.out" || fail "no capture: $(cat "$tmp/capture$i.out")"
done
on 1 trib link leaf1-spine1 down >"$tmp/link.out" 2>&1 || fail "trib link: $(cat "$tmp/link.out")"
until_true 5 is_down || fail "a link that is not down: $(link)"
on 1 trib link leaf1-spine1 up >"$tmp/link.out" 2>&1
until_true 5 is_up || fail "a link that is not up: $(link)"
on 0 trib perf --rsh "$remote" --algo ring -b 64K -e 64K -n 3 --max-wall 2 >"$tmp/perf.out" 2>&1 || fail "trib perf: $(cat "$tmp/perf.out")"
wait "${captures[@]}"
for i in 0 1 2; do has '^captured [1-9][0-9]+' "$tmp/capture$i.out"; done

replay() { # replay SECONDS: to all, from m2
    for i in 0 1 2; do
        on 2 "$attack" replay "$tmp/kept$i" 10.9.0.$((i + 1)) "$1" >"$tmp/replay$i.out" 2>&1 &
        replays[i]=$!
    done
}
replayed() {
    wait "${replays[@]}"
    has '^sent [1-9]' "$tmp/replay0.out"
    has '^sent [1-9]' "$tmp/replay2.out"
}

# a machine that has died
kill -KILL "${machine[1]}"
says_gone() { trunk "$1" | grep -q '"m1": "not there"'; }
are_alone() { says_gone 0 && says_gone 2; }
until_true 10 are_alone || fail "m1 is dead: $(trunk 0; trunk 2)"
replay 6
for _ in $(seq 12); do
    sleep 0.4
    are_alone || fail "m1 is dead, and what it once said has brought it back: $(trunk 0; trunk 2)"
    is_up || fail "what m1 once asked for was done again: $(link)"
    trunk 0 | grep -q '"m2": "there"' && trunk 2 | grep -q '"m0": "there"' || fail "machines that are there: $(trunk 0; trunk 2)"
done
replayed

# it starts anew, in the middle of it
replay 20
machine_up 1
fabric_up 1 "$tmp/spread.conf"
until_true 5 are_there || fail "m1 is back: $(for i in 0 1 2; do trunk $i; done)"
logs() { cat "$tmp"/r/*/spread/proc/trunk.log 2>/dev/null; for i in 0 2; do on $i sh -c 'cat /run/tributary*/spread/proc/trunk.log'; done; }
gone=$(logs | grep -c 'is gone')
[ "$gone" -ge 2 ] || fail "the logs of the trunks: $(logs)"
on 0 trib perf --rsh "$remote" --algo ring,sharp -b 64K -e 64K -n 3 --max-wall 6 >"$tmp/job.out" 2>&1 || fail "a job beside it: $(cat "$tmp/job.out")"
has 'Out of bounds values : 0 OK' "$tmp/job.out"
replayed
are_there || fail "after it: $(for i in 0 1 2; do trunk $i; done)"
is_up || fail "what m1 once asked for was done again: $(link)"
[ "$(logs | grep -c 'is gone')" = "$gone" ] || fail "a machine was gone for a while: $(logs)"
count() { trunk "$1" | awk -F'[:,]' -v k="\"refused_$2\"" '$1 ~ k { print int($2) }'; }
for i in 0 2; do [ "$(count $i stale)" -gt 100 ] || fail "refused: $(trunk $i)"; done
