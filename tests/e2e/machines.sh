#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# One conf on three machines that share nothing but it: namespaces, with clocks seconds apart that drift. Collectives are exact and take what theory says,
# over a network that loses, delays and reorders too; what others send into the trunk is refused; a machine that dies is named, and comes back.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_machines.sh"
why=$(can_have_machines) || skip "$why"

spread_conf

wire_up
for i in 0 1 2; do machine_up $i; done
for i in 1 0 2; do fabric_up $i "$tmp/spread.conf"; done # in any order
has 'fabric spread is up on machine m1: 2 switch process' "$tmp/up.out"
are_there() { [ "$(for i in 0 1 2; do trunk $i; done | grep -c '"m[0-2]": "there"')" = 6 ]; }
until_true 5 are_there || fail "machines: $(for i in 0 1 2; do trunk $i; done)"
[ "$(for i in 0 1 2; do trunk $i; done | grep -c '"clock": "m1"')" = 3 ] || fail "clocks of several machines: $(for i in 0 1 2; do trunk $i; done)"
trunk 0 m1 >"$tmp/m1.out"
offset=$(awk -F: '/offset_us/ { print int($2) }' "$tmp/m1.out")
[ $((offset - 10000000)) -lt 2000 ] && [ $((offset - 10000000)) -gt -500 ] || fail "a clock 10 s ahead: $(cat "$tmp/m1.out")"

exact good 2 -b 64K -e 64K --max-wall 8
grep -q 'a secret that' "$tmp/good.json" && fail "the trunk's key is in a file of results"
has '"frames_sent_again": 0' <(trunk 0 m1)
drift() { trunk 0 m1 | awk -F'[:,]' '/drift_ppb/ { print int($2) }'; }
followed() { [ "$(drift)" -gt 190000 ] && [ "$(drift)" -lt 210000 ]; }
until_true 5 followed || fail "a clock that is 200 ppm fast drifts by $(drift) ppb"

# a row counts all links, also from a machine whose own carry nothing of it
on 2 trib perf --rsh "$remote" --algo sharp -b 64K -e 64K -n 3 --max-wall 3 -J "$tmp/links.json" >"$tmp/links.out" 2>&1 || fail "perf from m2: $(cat "$tmp/links.out")"
jq -e 'all(.results[]; .link_bytes / .model_link_bytes | . > 0.99 and . < 1.1)' "$tmp/links.json" >/dev/null ||
    fail "links of others: $(jq -c '.results[] | [.link_bytes, .model_link_bytes]' "$tmp/links.json"; cat "$tmp/links.out")"

# a link between others, changed from here, and on this machine a host that is not here
on 0 trib link leaf1-spine1 down >"$tmp/link.out" 2>&1 || fail "trib link: $(cat "$tmp/link.out")"
has 'leaf1:5-spine1:1: told machines m1 and m2' "$tmp/link.out"
is_down() { on 1 trib link leaf1-spine1 | grep -q 'down' && on 2 trib link leaf1-spine1 | grep -q 'down'; }
until_true 3 is_down || fail "the ends of a link that is down: $(on 1 trib link leaf1-spine1; on 2 trib link leaf1-spine1)"
on 1 trib link leaf1-spine1 up >"$tmp/link.out" 2>&1
is_up() { ! on 2 trib link leaf1-spine1 | grep -q 'down'; }
until_true 3 is_up || fail "a link that is up again: $(on 2 trib link leaf1-spine1)"
on 0 trib link nothing down >"$tmp/link.out" 2>&1 && fail "a link that is none"
# what it cannot have is refused where it is asked for, by what the link has by then
for change in "leaf1-spine1 latency=10us" "leaf1-spine1 rate=900Gb/s" "all rate=900Gb/s" "leaf1-spine1 rate=fast"; do
    on 0 trib link $change >"$tmp/link.out" 2>&1 && fail "trib link $change: $(cat "$tmp/link.out")"
    has 'found (10us|900Gb/s|.*fast)' "$tmp/link.out"
done
on 0 trib link leaf1-spine1 rate=100Gb/s latency=700ns >"$tmp/link.out" 2>&1 || fail "trib link: $(cat "$tmp/link.out")"
is_slow() { on 2 trib link leaf1-spine1 | grep -q 'rate=100Gb/s latency=700ns'; }
until_true 3 is_slow || fail "a link that is slower: $(on 2 trib link leaf1-spine1)"
on 0 trib link leaf1-spine1 rate=400Gb/s >"$tmp/link.out" 2>&1 && fail "a link too long for its rate: $(cat "$tmp/link.out")"
on 0 trib link leaf1-spine1 clear >"$tmp/link.out" 2>&1 || fail "trib link: $(cat "$tmp/link.out")"
is_as_before() { ! on 2 trib link leaf1-spine1 | grep -q 'rate='; }
until_true 3 is_as_before || fail "a link that is as before: $(on 2 trib link leaf1-spine1)"
on 0 trib exec h5 -- true >"$tmp/exec.out" 2>&1 && fail "a host of another machine"
has 'host h5 runs on machine m1 of the conf; this one is m0' "$tmp/exec.out"

# what others send: garbage, and what the trunks themselves have sent
on 2 python3 - "10.9.0.3" >"$tmp/attack.out" <<'END' || fail "attack: $(cat "$tmp/attack.out")"
import os, socket, sys, time
tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
tap.bind(("eth0", 0))
kept, until = [], time.time() + 1
while time.time() < until:
    frame = tap.recv(9999)
    if frame[12:14] == b"\x08\x00" and frame[23] == 17 and socket.inet_ntoa(frame[30:34]) == sys.argv[1]:
        kept.append(frame[42:])
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for d in kept + [b"", b"TRNK", os.urandom(40), os.urandom(4000)] + [d[:-1] + bytes([d[-1] ^ 1]) for d in kept] + [d[:30] for d in kept]:
    u.sendto(d, (sys.argv[1], 4795))
print(len(kept), "datagrams")
sys.exit(len(kept) < 10)
END
n=$(awk '/datagrams/ { print $1 }' "$tmp/attack.out")
count() { trunk "$1" | awk -F'[:,]' -v k="\"refused_$2\"" '$1 ~ k { print int($2) }'; }
all_refused() { [ "$(count 2 replayed)" -ge "$n" ] && [ "$(count 2 forged)" -ge "$n" ] && [ $(($(count 2 short) + $(count 2 foreign))) -ge "$n" ]; }
until_true 3 all_refused || fail "of $n datagrams each: $(trunk 2)"
are_there || fail "after an attack: $(trunk 0)"

lossy --loss 0.01 --delay 0.001 --reorder 0.05
until_true 5 are_there || fail "machines on a bad network: $(trunk 0)"
exact lossy 0 -b 64K -e 64K --max-wall 10
trunk 0 m1 >"$tmp/again.out"
has '"frames_sent_again": [1-9]' "$tmp/again.out"
lossless

# a partition: both sides go on alone, and agree on a clock again
nsenter -t "$wire" -n ip link set v1 down
apart() { trunk 0 | grep -q '"m1": "not there"' && trunk 1 | grep -q '"m0": "not there"'; }
until_true 10 apart || fail "a partition that nobody notices: $(trunk 0; trunk 1)"
on 0 trib perf --rsh "$remote" -b 4K -e 4K >"$tmp/absent.out" 2>&1 && fail "ranks beyond a partition"
has 'rank 4 is for host h4 of machine m1, which is not there' "$tmp/absent.out"
nsenter -t "$wire" -n ip link set v1 up
until_true 10 are_there || fail "after a partition: $(trunk 0; trunk 1; trunk 2)"
exact healed 0 -b 64K -e 64K --max-wall 4

# m1, with half of the ranks, dies in the middle of an operation
on 0 trib perf --rsh "$remote" --algo sharp -b 16M -e 16M -n 1000 --max-wall 100 >"$tmp/killed.out" 2>&1 &
perf=$!
until_true 15 grep -q 'busbw' "$tmp/killed.out" || fail "the job does not begin"
sleep 2
began=$SECONDS
kill -KILL "${machine[1]}"
wait $perf && fail "a job goes on without half of its ranks"
[ $((SECONDS - began)) -le 10 ] || fail "$((SECONDS - began)) s until the job has ended"
has 'rank [4-7] \(h[4-7] on machine m1\) has ended|machine m1 is gone' "$tmp/killed.out"
is_gone() { trunk 0 | grep -q '"m1": "not there"'; }
until_true 5 is_gone || fail "m1 is dead: $(trunk 0)"
on 0 trib perf --rsh "$remote" -b 4K -e 4K >"$tmp/absent.out" 2>&1 && fail "ranks on a machine that is not there"
has 'rank 4 is for host h4 of machine m1, which is not there: expected trib up of the same conf on it' "$tmp/absent.out"
machine_up 1
fabric_up 1 "$tmp/spread.conf"
until_true 5 are_there || fail "m1 is back: $(trunk 0)"
exact back 0 -b 64K -e 64K --max-wall 4
on 2 trib down --machines >"$tmp/down.out" 2>&1 || fail "trib down --machines: $(cat "$tmp/down.out")"
all_down() { [ -z "$(for i in 0 1 2; do on $i ls /run; done)" ]; }
until_true 10 all_down || fail "left: $(for i in 0 1 2; do on $i find /run; done)"
all_kept_up
