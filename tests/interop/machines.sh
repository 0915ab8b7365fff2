#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A host with a RoCE stack of its own (a guest with Linux Soft-RoCE) on another machine than its leaf, in one aggregation group with emulated hosts of
# two machines: exact. Machines are namespaces; the guest's NIC reaches its leaf's port over the network between them, as a server's would. Exit
# code 77 when guests cannot be had.
. "$(dirname "$0")/../e2e/lib.sh"
. "$root/tests/e2e/lib_machines.sh"
here=$root/tests/interop
art=$TRIB_BUILD/interop
why=$(can_have_machines) || skip "skipped: $why"
"$here/build.sh" "$art" >"$tmp/build.log" 2>&1
rc=$?
[ $rc = 77 ] && skip "skipped: $(tail -n 1 "$tmp/build.log")"
[ $rc = 0 ] || fail "the guest's image: $(tail -n 5 "$tmp/build.log")"
command -v qemu-system-x86_64 >/dev/null || skip "skipped: found no qemu-system-x86_64"
. "$here/guest.sh"

cat >"$tmp/lab.conf" <<'CONF'
name = "lab";
mtu = 1024;
reduce = { groups = 16; slots = 4096; window = 256; };
link_defaults = { rate = "10Gb/s"; latency = "1us"; };
nodes = ( { name = ( "h0", "h1", "g0" ); kind = "host"; },
          { name = ( "leaf0", "leaf1" ); role = "leaf"; },
          { name = "spine0"; role = "spine"; } );
links = ( { a = "h0"; b = "leaf0"; },
          { a = "h1"; b = "leaf1"; },
          { a = "g0"; b = "leaf0"; port = "net_af_packet0,iface=eth1"; },
          { a = ( "leaf0", "leaf1" ); b = "spine0"; } );
machines = ( { name = "m0"; address = "10.9.0.1"; nodes = ( "leaf0", "spine0" ); },
             { name = "m1"; address = "10.9.0.2"; nodes = ( "leaf1" ); } );
trunk_key = "a secret that the lab shares";
CONF
ppm=(0 0 0)
wire_up
ports_wire
for i in 0 1; do machine_up $i && port_wire $i; done
on 1 sh -c 'ip link add br2 type bridge && ip link set br2 up && ip link set eth1 master br2 &&
    ip tuntap add tap0 mode tap && ip link set tap0 mtu 9000 master br2 up' || skip "skipped: no tap on this machine"
for i in 0 1; do fabric_up $i "$tmp/lab.conf"; done
are_there() { trunk 0 | grep -q '"m1": "there"' && trunk 1 | grep -q '"m0": "there"'; }
until_true 5 are_there || fail "machines: $(trunk 0; trunk 1)"

"$here/copy.sh" "$tmp/overlay.d" "$TRIB_BUILD/trib-perf" && (cd "$tmp/overlay.d" && find . | cpio -o -H newc --quiet) >"$tmp/overlay" ||
    fail "cannot pack trib-perf"
guest_in=(nsenter -t "${machine[1]}" -n)
guest_start g0 "$(trib plan "$tmp/lab.conf" | awk '$1 == "g0" { for (i = 2; i <= NF; i++) if ($i ~ /^10\./) { print $i; exit } }')" 52:54:00:00:00:04 4400 tap:tap0 "$tmp/overlay"
guest_up g0 || fail "the guest"

# Ranks on the guest by its control pipe, on the other machine by the remote shell.
cat >"$tmp/rsh" <<RSH
#!/bin/sh
case \$1 in
g0) exec env GUESTS=$tmp $here/rsh.sh "\$@" ;;
*) exec $remote "\$@" ;;
esac
RSH
chmod +x "$tmp/rsh"
on 1 timeout 150 trib perf "$tmp/lab.conf" -n 2 -b 4K -e 256K -f 8 -d float,bfloat16,int32 -o sum,max --algo sharp,ring --rsh "$tmp/rsh" -J "$tmp/perf.json" \
    >"$tmp/perf.out" 2>&1
rc=$?
guest_answer g0 10 >"$tmp/guest.out"
[ $rc = 0 ] || fail "trib perf: $(cat "$tmp/perf.out")"
jq -e '(.results | length) > 20 and all(.results[]; .wrong == 0) and any(.results[]; .algo == "sharp") and any(.results[]; .algo == "ring")' "$tmp/perf.json" >/dev/null ||
    fail "rows: $(jq -c '.results[] | [.algo, .bytes, .wrong]' "$tmp/perf.json")"
echo "3 ranks, one a Soft-RoCE guest on another machine than its leaf: $(jq '.results | length' "$tmp/perf.json") rows, 0 wrong, $SECONDS s"
