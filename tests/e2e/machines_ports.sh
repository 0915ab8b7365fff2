#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Frames between machines by DPDK ports (`ports` of a machine; af_packet and af_xdp on veth), everything else by UDP: collectives are exact and take
# what theory says; a port that fails in mid-operation gives way to UDP and comes back; what others send is refused; a port that does not open says why.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_machines.sh"
why=$(can_have_machines) || skip "$why"

with_ports() { # with_ports PORTS: $tmp/ports.conf
    spread_conf
    sed -e "s/nodes = (\(.*\)); }/nodes = (\1); ports = ( $1 ); }/" -e 's/^name .*/name = "ports";/' "$tmp/spread.conf" >"$tmp/ports.conf"
    grep -c 'ports = ' "$tmp/ports.conf" | grep -qx 3 || fail "the conf with ports"
}
all_up() { for i in 0 1 2; do fabric_up $i "$tmp/ports.conf"; done; }
all_down() { on 0 trib down --machines >"$tmp/down.out" 2>&1 && until_true 10 gone || fail "trib down: $(cat "$tmp/down.out")"; }
gone() { [ -z "$(for i in 0 1 2; do on $i find /run -path '*tributary*'; done)" ]; } # libxdp has a folder of its own
are_there() { [ "$(for i in 0 1 2; do trunk $i; done | grep -c '"m[0-2]": "there"')" = 6 ]; }
counter() { trunk "$1" "$2" | awk -F'[:,]' -v k="\"$3\"" '$1 ~ k { print int($2) }'; }

wire_up
ports_wire
for i in 0 1 2; do machine_up $i && port_wire $i; done
with_ports '"net_af_packet0,iface=eth1"'
all_up
until_true 5 are_there || fail "machines: $(for i in 0 1 2; do trunk $i; done)"
has '"frames_by": "net_af_packet0,iface=eth1"' <(trunk 0)

exact port 1 -b 64K -e 1M -f 16 --max-wall 20
trunk 0 m1 >"$tmp/m1.out"
sent=$(counter 0 m1 port_sent) frames=$(counter 0 m1 frames_sent)
[ "$sent" -gt $((frames * 8 / 10)) ] || fail "of $frames frames the port took few: $(cat "$tmp/m1.out")"
for k in frames_overflow send_failed; do [ "$(counter 0 m1 $k)" = 0 ] || fail "m1: $(cat "$tmp/m1.out")"; done

# what others send to the port: garbage, and what the trunks themselves have sent
mac=$(on 2 ip -o link show eth1 | sed "s/.*ether \([0-9a-f:]*\).*/\1/")
on 0 trib perf --rsh "$remote" --algo ring -b 64K -e 64K -n 50 --max-wall 4 >"$tmp/some.out" 2>&1 &
perf=$!
on 2 python3 - "$mac" >"$tmp/attack.out" <<'PY' || fail "attack: $(cat "$tmp/attack.out")"
import os, socket, sys, time
me = bytes.fromhex(sys.argv[1].replace(":", ""))
tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
tap.bind(("eth1", 0))
tap.settimeout(20)
kept = []
while len(kept) < 40:
    frame = tap.recv(9999)
    if frame[:6] == me and frame[12:14] == b"\x88\xb5":
        kept.append(frame)
open("/run/kept", "wb").write(b"".join(len(f).to_bytes(2, "big") + f for f in kept))
PY
on 2 cat /run/kept >"$tmp/kept.bin"
nsenter -t "$wire" -n python3 - "$mac" "$tmp/kept.bin" >"$tmp/attack.out" 2>&1 <<'PY' || fail "attack: $(cat "$tmp/attack.out")"
import os, socket, sys
me, data, kept = bytes.fromhex(sys.argv[1].replace(":", "")), open(sys.argv[2], "rb").read(), []
while data:
    n = int.from_bytes(data[:2], "big")
    kept.append(data[2:2 + n])
    data = data[2 + n:]
out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
out.bind(("p2", 0)) # out of the bridge's port towards m2
head = me + b"\x02\0\0\0\0\1\x88\xb5"
for f in kept + [f[:-1] + bytes([f[-1] ^ 1]) for f in kept] + [f[:60] for f in kept]:
    out.send(f)
for body in b"", b"\0", b"\xff\xff", b"\0\x10" + b"TRNK" * 9, os.urandom(1400):
    out.send((head + body).ljust(60, b"\0"))
PY
rm "$tmp/kept.bin"
wait $perf || fail "a job beside an attack: $(cat "$tmp/some.out")"
has 'Out of bounds values : 0 OK' "$tmp/some.out"
refused() { trunk 2 | awk -F'[:,]' -v k="\"refused_$1\"" '$1 ~ k { print int($2) }'; }
[ "$(refused replayed)" -ge 40 ] && [ "$(refused forged)" -ge 40 ] && [ $(($(refused short) + $(refused foreign))) -ge 40 ] || fail "an attack: $(trunk 2)"

# the port's network fails in mid-operation: UDP goes on; and comes back
on 0 trib perf --rsh "$remote" --algo ring -b 256K -e 256K -n 400 --max-wall 10 >"$tmp/fails.out" 2>&1 &
perf=$!
until_true 15 grep -q busbw "$tmp/fails.out" || fail "the job does not begin"
sleep 1
nsenter -t "$wire" -n ip link set p1 down
by_udp() { trunk 0 | grep -q '"m1": "there, frames by UDP"'; }
until_true 5 by_udp || fail "a port that fails: $(trunk 0)"
has 'machine m1: there, frames by UDP' <(on 0 trib status)
sleep 1
nsenter -t "$wire" -n ip link set p1 up
until_true 5 are_there || fail "a port that is back: $(trunk 0)"
wait $perf || fail "a job whose port fails: $(cat "$tmp/fails.out")"
has 'Out of bounds values : 0 OK' "$tmp/fails.out"
all_down

# a port that does not open: by name, and UDP only where the conf says so
with_ports '"net_af_packet0,iface=eth7"'
on 0 trib up "$tmp/ports.conf" >"$tmp/none.out" 2>&1 && fail "a port without an interface"
has 'port "net_af_packet0,iface=eth7": found no interface eth7' "$tmp/none.out"
has 'machine m0: none of its ports opens, expected one that does, or "udp" as the last' "$tmp/none.out"
on 0 ip link set eth1 mtu 1500
with_ports '"net_af_packet0,iface=eth1", "udp"'
all_up
has 'found an MTU of 1500, expected 42[0-9]* for the fabric.s packets \(ip link set eth1 mtu 42' "$tmp/up.out"
exact mixed 0 -b 64K -e 64K --max-wall 3
has '"frames_by": "udp, none of its ports opened"' <(trunk 0)
has 'machine m0: this one.*frames by udp, none of its ports opened' <(on 0 trib status)
all_down

# af_xdp: a frame is in a page, so the fabric's MTU is 2,048
for i in 0 1 2; do nsenter -t "$wire" -n ip link set "p$i" mtu 3000 && on $i ip link set eth1 mtu 3000; done
with_ports '"net_af_xdp0,iface=eth1", "udp"'
sed -i 's/^mtu .*/mtu = 2048;/' "$tmp/ports.conf"
all_up
has_xdp() { trunk 0 | grep -q '"frames_by": "net_af_xdp0'; }
if has_xdp; then
    until_true 5 are_there || fail "machines by af_xdp: $(trunk 0)"
    exact xdp 0 -b 64K -e 64K --max-wall 3
    [ "$(counter 0 m1 port_sent)" -gt 100 ] || fail "af_xdp carries nothing: $(trunk 0 m1)"
else
    echo "af_xdp skipped: $(grep -m 1 'net_af_xdp0' "$tmp/up.out")"
fi
all_down
all_kept_up
