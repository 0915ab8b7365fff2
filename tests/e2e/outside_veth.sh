#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Two fabrics joined by an interface of the kernel, each with the other's host outside: 64 KiB messages of the fabric's whole MTU cross it by
# af_packet and, a page a frame, by af_xdp. What the interface cannot carry is refused, with the command that helps.
. "$(dirname "$0")/lib.sh"

unshare -n true 2>/dev/null && command -v ip >/dev/null || skip "no network namespace for this user, or no ip"

side() { # side NAME OWN OTHER PORT MTU
    cat >"$tmp/$1.conf" <<END
name = "side$1";
mtu = $5;
link_defaults = { rate = "10Gb/s"; latency = "1us"; };
nodes = ( { name = ("a", "b"); kind = "host"; }, { name = "sw"; role = "leaf"; } );
links = ( { a = "$2"; b = "sw"; }, { a = "$3"; b = "sw"; port = "$4"; } );
END
}

# Run as a whole inside of a network namespace: messages DRIVER MTU-OF-FABRIC MTU-OF-INTERFACE
cat >"$tmp/messages" <<'E2'
trib=$1 tmp=$2 mtu=$3 iface=$4
ip link set lo up
ip link add vt0 type veth peer name vt1 && ip link set vt0 mtu "$iface" up && ip link set vt1 mtu "$iface" up || exit 77
TRIB_RUN=$tmp/run1 "$trib" up "$tmp/1.conf" && TRIB_RUN=$tmp/run2 "$trib" up "$tmp/2.conf" || exit 1
TRIB_RUN=$tmp/run2 timeout 20 "$trib" exec "$tmp/2.conf" b -- ibv_rc_pingpong -c -d trib0 -g 0 -m "$mtu" -s 65536 -n 50 &
for _ in $(seq 50); do # until the server listens
    TRIB_RUN=$tmp/run1 timeout 10 "$trib" exec "$tmp/1.conf" a -- ibv_rc_pingpong -c -d trib0 -g 0 -m "$mtu" -s 65536 -n 50 127.0.0.1 && break
    kill -0 $! 2>/dev/null || break
    sleep 0.1
done
wait $!
E2
messages() {
    side 1 a b "net_$1,iface=vt0" "$2"
    side 2 b a "net_$1,iface=vt1" "$2"
    unshare -n bash "$tmp/messages" "$root/scripts/trib" "$tmp" "$2" "$3" >"$tmp/$1.out" 2>&1
    rc=$?
    for n in 1 2; do TRIB_RUN=$tmp/run$n trib down "$tmp/$n.conf" >/dev/null 2>&1; done
    return $rc
}

messages af_packet0 4096 4200 || { [ $? = 77 ] && skip "no veth on this machine"; fail "af_packet: $(cat "$tmp/af_packet0.out")"; }
[ "$(grep -c '^50 iters in' "$tmp/af_packet0.out")" = 2 ] || fail "af_packet: $(cat "$tmp/af_packet0.out")"

messages af_packet0 4096 1500 && fail "an interface that is too short"
has 'port "net_af_packet0,iface=vt0": found an MTU of 1500, expected 4200 for the fabric.s packets .ip link set vt0 mtu 4200.' "$tmp/af_packet0.out"
messages af_xdp0 4096 3000 && fail "a fabric whose frames are longer than af_xdp's"
has 'do not fit the pages of af_xdp, expected mtu = 2048 or less' "$tmp/af_xdp0.out"
messages af_xdp0 2048 4200 && fail "an interface that is too long for af_xdp"
has 'found an MTU of 4200, expected at most 3300 .ip link set vt0 mtu 2152.' "$tmp/af_xdp0.out"

if messages af_xdp0 2048 2200; then
    [ "$(grep -c '^50 iters in' "$tmp/af_xdp0.out")" = 2 ] || fail "af_xdp: $(cat "$tmp/af_xdp0.out")"
elif grep -q 'CAP_BPF\|Failed to .* xdp\|umem' "$tmp/af_xdp0.out"; then
    echo "the part with af_xdp was skipped: $(grep -m 1 'tributary: port' "$tmp/af_xdp0.out")"
else
    fail "af_xdp: $(cat "$tmp/af_xdp0.out")"
fi
true
