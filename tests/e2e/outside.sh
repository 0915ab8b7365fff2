#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Ports to the outside: what cannot work is refused in words, a stale socket makes way, a port without a guest costs nothing, and a
# host behind a Linux interface (veth, af_packet) is found and finds. tests/interop has the guests.
. "$(dirname "$0")/lib.sh"

conf_with() { # conf_with PORT: two emulated hosts, and one behind PORT
    cat >"$tmp/o.conf" <<END
name = "outside";
link_defaults = { rate = "10Gb/s"; latency = "1us"; };
single_switch = { hosts = 2; };
nodes = ( { name = "g"; kind = "host"; } );
links = ( { a = "g"; b = "switch0"; port = "$1"; } );
END
}
refused() { # refused PORT WORDS
    conf_with "$1"
    trib up "$tmp/o.conf" >"$tmp/up.out" 2>&1 && fail "port $1 came up"
    has "$2" "$tmp/up.out"
}

refused "vhost:$tmp/no/such/g.sock" 'cannot make a socket in .*/no/such/: No such file or directory'
: >"$tmp/file"
refused "vhost:$tmp/file" 'found something that is no socket at its path'
refused "vhost:$tmp/$(printf 'x%.0s' {1..96})" 'found a path too long'
refused net_nonsense0 'found a device that DPDK does not make, expected vhost:PATH'
refused 0000:ff:1f.7 'found no PCI device 0000:ff:1f.7, expected one of dpdk-devbind.py --status'
refused 'net_af_packet0,iface=nosuch' 'found no interface nosuch, expected one of .*lo'
refused net_af_packet0 'found no interface, expected ",iface=NAME"'

# The socket of a switch that was killed is in nobody's way; that of one that lives is.
conf_with "vhost:$tmp/g.sock"
trib up "$tmp/o.conf" >"$tmp/up.out" 2>&1 || fail "no fabric: $(cat "$tmp/up.out")"
sed 's/"outside"/"second"/' "$tmp/o.conf" >"$tmp/second.conf"
trib up "$tmp/second.conf" >"$tmp/second.out" 2>&1 && fail "two switches listen at one socket"
has 'found another process that listens at its socket' "$tmp/second.out"
kill -KILL "$(pids_in "$run"/outside/proc/*.pid)"
until_true 10 test ! -e "/proc/$(pids_in "$run"/outside/proc/*.pid)/exe"
[ -S "$tmp/g.sock" ] || fail "no stale socket to test with"
trib up "$tmp/o.conf" >"$tmp/up.out" 2>&1 || fail "a stale socket is in the way: $(cat "$tmp/up.out")"
trib exec "$tmp/o.conf" g -- ibv_devices >"$tmp/exec.out" 2>&1
has 'which is outside' "$tmp/exec.out"
trib perf "$tmp/o.conf" --algo ring >"$tmp/perf.out" 2>&1 && fail "a rank ran on a host outside"
has 'found rank 2 on g, which is outside, expected --rsh' "$tmp/perf.out"

pid=$(pids_in "$run"/outside/proc/*.pid)
before=$(awk '{ print $14 + $15 }' "/proc/$pid/stat")
sleep 3
after=$(awk '{ print $14 + $15 }' "/proc/$pid/stat")
[ $((after - before)) -lt 60 ] || fail "an idle switch took $((after - before)) ticks in 3 s"
trib perf "$tmp/o.conf" -g 2 -b 4K -e 4K -n 2 --algo ring -J "$tmp/perf.json" >"$tmp/perf.out" 2>&1 || fail "emulated hosts: $(cat "$tmp/perf.out")"
has '"link_bytes": [1-9][0-9]{3}' "$tmp/perf.json"
has_not '"link_bytes": null' "$tmp/perf.json"
trib down "$tmp/o.conf" >/dev/null || fail "down"
[ -e "$tmp/g.sock" ] && fail "the socket stays behind"

# A host behind a veth pair: it asks for an emulated host's MAC and gets it.
if unshare -n true 2>/dev/null && command -v ip >/dev/null; then
    conf_with 'net_af_packet0,iface=vtrib0'
    # shellcheck disable=SC2016
    unshare -n bash -c '
        ip link add vtrib0 type veth peer name vtrib1 && ip link set lo up && ip link set vtrib0 mtu 4400 up || exit 77
        ip link set vtrib1 mtu 4400 up && ip addr add 10.0.0.3/8 dev vtrib1 || exit 77
        "$1"/scripts/trib up "$2" || exit 1
        for i in $(seq 50); do
            : <>/dev/udp/10.0.0.1/9 && echo x >/dev/udp/10.0.0.1/9
            ip neigh show 10.0.0.1 | grep -q "02:54:0a:00:00:01" && exit 0
            sleep 0.1
        done
        ip neigh
        exit 1' x "$root" "$tmp/o.conf" >"$tmp/veth.out" 2>&1
    rc=$?
    [ $rc = 0 ] || [ $rc = 77 ] || fail "veth: $(cat "$tmp/veth.out")"
    [ $rc = 77 ] && echo "the part with veth was skipped: $(tail -n 1 "$tmp/veth.out")"
    trib down "$tmp/o.conf" >/dev/null
else
    echo "the part with veth was skipped: no network namespace for this user"
fi
true
