#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Frames for which the ring of af_packet has no room are counted as drops of the link from outside. An interface whose senders leave checksums to us
# is named, with the command that helps, until they no longer do.
. "$(dirname "$0")/lib.sh"

unshare -n true 2>/dev/null && command -v ip >/dev/null || skip "no network namespace for this user, or no ip"
command -v python3 >/dev/null || skip "no python3"

cat >"$tmp/ring.conf" <<'END'
name = "ring";
mtu = 1024;
link_defaults = { rate = "10Gb/s"; latency = "1us"; };
nodes = ( { name = ("a", "b"); kind = "host"; }, { name = "sw"; role = "leaf"; } );
links = ( { a = "a"; b = "sw"; }, { a = "b"; b = "sw"; port = "net_af_packet0,iface=vt0"; } );
END
cat >"$tmp/flood.py" <<'END'
import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("vt1", 0))
for i in range(20000):
    s.send(b"\xff" * 6 + b"\x02\x00\x00\x00\x00\x01" + b"\x08\x06" + bytes(1000))
END
cat >"$tmp/tx_off.py" <<'END' # as ethtool -K vt0 tx off
import array, fcntl, socket, struct
value = array.array("B", struct.pack("II", 0x17, 0))
fcntl.ioctl(socket.socket(), 0x8946, struct.pack("16sP8x", b"vt0", value.buffer_info()[0]))
END
cat >"$tmp/ring" <<'E2'
trib=$1 tmp=$2
ip link set lo up
ip link add vt0 type veth peer name vt1 && ip link set vt0 mtu 1500 up && ip link set vt1 mtu 1500 up || exit 77
export TRIB_RUN=$tmp/run
[ "$3" = on ] || python3 "$tmp/tx_off.py" || exit 1
"$trib" up "$tmp/ring.conf" || exit 1
pid=$(cat "$TRIB_RUN"/proc/*.pid | head -1)
kill -STOP "$pid"
python3 "$tmp/flood.py"
kill -CONT "$pid"
for _ in $(seq 50); do
    "$trib" status --links >"$tmp/status.out"
    grep -q ring_full "$tmp/status.out" && break
    sleep 0.1
done
"$trib" down
E2
run() { unshare -n bash "$tmp/ring" "$root/scripts/trib" "$tmp" "$1" >"$tmp/out.$1" 2>&1; }
run on || { [ $? = 77 ] && skip "no veth on this machine"; fail "$(cat "$tmp/out.on")"; }
lost=$(sed -n 's/^ *b  *sw .* \([0-9]*\) ring_full.*/\1/p' "$tmp/status.out")
[ "${lost:-0}" -gt 10000 ] && [ "$lost" -lt 20000 ] || fail "of 20000 frames counted ${lost:-none}: $(cat "$tmp/status.out")"
run off || fail "$(cat "$tmp/out.off")"
has 'port "net_af_packet0,iface=vt0": vt0 leaves checksums to its receiver: .*; ethtool -K vt0 tx off here' "$tmp/out.on"
grep -q checksums "$tmp/out.off" && fail "a port whose interface fills checksums in: $(cat "$tmp/out.off")"
echo "$lost of 20000 frames lost, counted"
