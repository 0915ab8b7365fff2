#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# One command for all machines of a conf: trib up --launch starts them, or none; status, capture and perf reach them by the same launcher; down
# --machines takes them down. Three namespaces stand for the machines, a remote shell of the tests' own for ssh. (slurm.sh has srun.)
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_machines.sh"
why=$(can_have_machines) || skip "$why"
ahead=(0 0 0) ppm=(0 0 0)

spread_conf
wire_up
for i in 0 1 2; do machine_up $i; done
serve() { # serve I
    on "$1" "$remote" serve "10.9.0.$(($1 + 1))" >>"$tmp/remote.out" 2>&1 &
    until_true 30 on "$1" "$remote" "10.9.0.$(($1 + 1))" true </dev/null || fail "m$1 serves nobody"
}
serve 0
serve 1
nothing_left() { [ -z "$(for i in 0 1 2; do on $i ls /run | grep tributary; done)" ]; }

# m2 cannot be reached: nothing stays on the others
on 0 trib up "$tmp/spread.conf" --launch "$remote" >"$tmp/none.out" 2>&1 && fail "a fabric without one of its machines"
has '^trib: m2: ' "$tmp/none.out"
until_true 10 nothing_left || fail "left: $(for i in 0 1 2; do on $i find /run; done)"
serve 2

# what it is told wrongly
on 0 trib up "$tmp/spread.conf" --launch echo >"$tmp/none.out" 2>&1 && fail "a launcher that ends well and starts nothing: $(cat "$tmp/none.out")"
has '^trib: m[12]: 10.9.0.[23] trib up ' "$tmp/none.out"
until_true 10 nothing_left || fail "left: $(for i in 0 1 2; do on $i find /run; done)"
on 0 trib up leaf-spine-8 --launch "$remote" >"$tmp/none.out" 2>&1 && fail "--launch of a conf without machines"
has 'found --launch, expected a conf with machines' "$tmp/none.out"
on 0 trib up "$tmp/spread.conf" --launch "$remote" --machine m1 >"$tmp/none.out" 2>&1 && fail "--launch with --machine"
has 'found --launch with --machine or --wait' "$tmp/none.out"

on 0 trib up "$tmp/spread.conf" --dilation 20000 --launch "$remote" >"$tmp/launch.out" 2>&1 || fail "trib up --launch: $(cat "$tmp/launch.out")"
[ "$(cat "$tmp/launch.out")" = "fabric spread is up on machines m0, m1, m2" ] || fail "trib up --launch: $(cat "$tmp/launch.out")"
on 0 trib status --machines >"$tmp/status.out" 2>&1 || fail "trib status --machines: $(cat "$tmp/status.out")"
has '^m0 \(this machine\):' "$tmp/status.out"
has '^m2 \(10.9.0.3\):' "$tmp/status.out"
[ "$(grep -c 'dilation 20000' "$tmp/status.out")" = 3 ] || fail "dilations: $(cat "$tmp/status.out")"
[ "$(grep -c 'machine m[0-2]: there' "$tmp/status.out")" = 6 ] || fail "machines: $(cat "$tmp/status.out")"
on 1 env TRIB_RSH="$remote" trib status spread --machines --links >"$tmp/status.out" 2>&1 || fail "from m1: $(cat "$tmp/status.out")"
for link in 'h0 +leaf0' 'h4 +leaf1' 'spine1 +leaf1'; do has "^ *$link +up" "$tmp/status.out"; done
on 0 trib status --machines --json >"$tmp/status.out" 2>&1 || fail "trib status --machines --json: $(cat "$tmp/status.out")"
jq -e '.fabric == "spread" and (.machines | keys == ["m0", "m1", "m2"]) and all(.machines[]; .fabrics[0].name == "spread" and (.fabrics[0].links | length > 0))' \
    "$tmp/status.out" >/dev/null || fail "as JSON: $(cat "$tmp/status.out")"
on 0 trib status spread --machines --json --watch 0.2 -n 3 >"$tmp/status.out" 2>&1 || fail "--watch: $(cat "$tmp/status.out")"
[ "$(jq -s -c '[group_by(.machine)[] | [.[0].machine, length]]' "$tmp/status.out")" = '[["m0",3],["m1",3],["m2",3]]' ] || fail "lines of looks: $(cat "$tmp/status.out")"
on 0 trib status --machines --nothing >"$tmp/status.out" 2>&1 && fail "an option that is none"
has 'found --nothing, expected an option' "$tmp/status.out"

# jobs run one after another until $tmp/captured is there: however slow the machine is, a capture has frames to see
jobs_until_captured() {
    rm -f "$tmp/captured"
    while [ ! -e "$tmp/captured" ]; do
        on 0 trib perf --algo ring -b 64K -e 64K -n 20 --max-wall 60 >"$tmp/perf.out" 2>&1 || return 1
    done
}

# a link that has no end here, while jobs run; the launcher is remembered
jobs_until_captured &
perf=$!
on 0 trib capture h4-leaf1 h3-leaf0 leaf1-spine1 -o "$tmp/far.pcapng" -t 3 >"$tmp/capture.out" 2>&1 || fail "capture: $(cat "$tmp/capture.out")"
touch "$tmp/captured"
has 'capturing h4:0-leaf1:0 on machine m1, h3:0-leaf0:3, leaf1:[0-9]+-spine1:1 on machine m[12] into .* for 3 s' "$tmp/capture.out"
wait $perf || fail "perf without --rsh: $(cat "$tmp/perf.out")"
has 'Out of bounds values : 0 OK' "$tmp/perf.out"
# A launcher that brings another machine's run directory along, as srun does, to machines on whose PATH nothing of ours is: a checkout.
printf '#!/bin/sh\na=$1\nshift\nexec %s $a env PATH=/usr/bin:/bin XDG_RUNTIME_DIR=/nowhere TRIB_RUN=/nowhere/else "$@"\n' "$remote" >"$tmp/brings"
printf '#!/bin/sh\na=$1\nshift\nexec %s $a env PATH=/usr/bin:/bin "$@"\n' "$remote" >"$tmp/bare"
chmod +x "$tmp/brings" "$tmp/bare"
on 0 env PATH=/usr/bin:/bin "$root/scripts/trib" perf --rsh "$tmp/brings" --algo ring -b 4K -e 4K -n 2 -w 0 --max-wall 3 >"$tmp/perf.out" 2>&1 || fail "perf by a launcher that brings its environment: $(cat "$tmp/perf.out")"
has 'Out of bounds values : 0 OK' "$tmp/perf.out"
on 0 env PATH=/usr/bin:/bin TRIB_RSH="$tmp/bare" "$root/scripts/trib" status --machines >"$tmp/status.out" 2>&1 || fail "status from a checkout: $(cat "$tmp/status.out")"
# until a signal; the other machine's part ends with it, when it finds nobody who reads
jobs_until_captured &
perf=$!
cat >"$tmp/until_signal.sh" <<'END'
trib capture h4-leaf1 -o - --filter 'udp port 4791' >"$1/one.pcapng" 2>"$1/capture.out" &
pid=$!
until [ "$(stat -c %s "$1/one.pcapng")" -gt 10000 ] || ! kill -0 $pid; do sleep 0.1; done
kill -TERM $pid
wait $pid
END
on 0 timeout 60 bash "$tmp/until_signal.sh" "$tmp"
touch "$tmp/captured"
has '[0-9]+ frames in -' "$tmp/capture.out"
no_captures() { ! on 1 pgrep -f trib-capture >/dev/null; }
until_true 5 no_captures || fail "a capture that nobody reads: $(on 1 pgrep -af trib-capture)"
wait $perf || fail "perf beside a capture: $(cat "$tmp/perf.out")"
if command -v tshark >/dev/null; then
    [ "$(tshark -r "$tmp/one.pcapng" 2>/dev/null | wc -l)" -gt 10 ] || fail "a capture of $(tshark -r "$tmp/one.pcapng" 2>&1 | wc -l) frames"
    # each link's frames are there, in order of time; the ring's messages from h3 to h4 are first seen at h3, and at h4 800 ns of wire later
    tshark -r "$tmp/far.pcapng" -T fields -e frame.interface_name -e frame.time_epoch -e ip.src -e ip.dst -e infiniband.bth.destqp -e infiniband.bth.psn \
        >"$tmp/frames.out" 2>"$tmp/tshark.out" || fail "tshark: $(cat "$tmp/tshark.out")"
    awk -F'\t' '{ n[$1]++; late += $2 < last; last = $2; k = $5 "," $6 "," $3 }
        $1 ~ /^h3/ && !(k in sent) { sent[k] = $2 }
        $1 ~ /^h4/ && k in sent { d = ($2 - sent[k]) * 1e9; both++; wrong += d < 600 }
        END { for (i in n) { links++; printf "%s: %d frames; ", i, n[i]; few += n[i] < 50 }
            printf "%d out of order, %d seen at h3 and h4, %d of them too early\n", late, both, wrong
            exit links != 3 || few > 0 || late > NR / 100 || both < 20 || wrong > 0 }' "$tmp/frames.out" >"$tmp/order.out" ||
        fail "one capture of three machines: $(cat "$tmp/order.out")"
    cat "$tmp/order.out"
fi
on 0 env TRIB_RSH=/nowhere/rsh trib capture h4-leaf1 h0-leaf0 -o "$tmp/none.pcapng" >"$tmp/capture.out" 2>&1 && fail "a capture without one of its machines"
has 'cannot capture h4-leaf1 on machine m1: it has ended before it began' "$tmp/capture.out"
has '^m1: .*/nowhere/rsh' "$tmp/capture.out"
on 0 trib link h4-leaf1 >"$tmp/link.out" 2>&1 || fail "trib link: $(cat "$tmp/link.out")"
has '^m1: h4:0 to leaf1:0: up' "$tmp/link.out"
on 0 trib link leaf1-spine1 loss=1% >"$tmp/link.out" 2>&1 || fail "trib link, changed: $(cat "$tmp/link.out")"
said() { on 0 trib link leaf1-spine1 >"$tmp/link.out" 2>&1; [ "$(grep -c '^m[12]: .*loss=0.01' "$tmp/link.out")" = 2 ]; }
until_true 5 said || fail "both ends of a link of others: $(cat "$tmp/link.out")"
all_said() { on 0 trib link all >"$tmp/link.out" 2>&1 && [ "$(grep -c '^m[12]: .*loss=0.01' "$tmp/link.out")" = 2 ]; }
until_true 10 all_said || fail "links of all machines: $(cat "$tmp/link.out")"
on 0 trib capture h0-leaf0 -o "$tmp/near.pcap" -t 0.2 >"$tmp/capture.out" 2>&1 || fail "a link of this machine: $(cat "$tmp/capture.out")"
has_not 'on machine' "$tmp/capture.out"

# a switch process that dies beside its trunk: the trunk notices, and says that the links are down
links_up() { trunk 1 m0 | awk -F'[:,]' '/"links_up"/ { print int($2) }'; }
[ "$(links_up)" -gt 0 ] || fail "links of m1 to m0: $(trunk 1 m0)"
on 1 sh -c 'kill -KILL "$(cut -d" " -f1 /run/tributary-0/spread/proc/m1.pid | head -n 1)"' || fail "no process m1"
none_up() { [ "$(links_up)" = 0 ]; }
until_true 5 none_up || fail "a switch process has died: $(trunk 1 m0)"
on 0 trib down --machines >"$tmp/down.out" 2>&1 || fail "down: $(cat "$tmp/down.out")"
until_true 10 nothing_left || fail "left: $(for i in 0 1 2; do on $i find /run; done)"

# a machine with another key, and one with another conf: named, and nothing stays
differ() { # differ SED-COMMAND EXPECTED
    sed "$1" "$tmp/spread.conf" >"$tmp/other.conf"
    on 1 mount --bind "$tmp/other.conf" "$tmp/spread.conf"
    on 0 trib up "$tmp/spread.conf" --launch "$remote" >"$tmp/other.out" 2>&1 && fail "$1 on m1: $(cat "$tmp/other.out")"
    has "$2" "$tmp/other.out"
    on 1 umount "$tmp/spread.conf"
    until_true 10 nothing_left || fail "left: $(for i in 0 1 2; do on $i find /run; done)"
}
differ 's/a secret/another secret/' 'm0: machine m1: not there.*is the conf the same on all'
differ 's/slots = 16384/slots = 8192/' 'm0: machine m1: has another conf'
