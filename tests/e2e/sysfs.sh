#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The files that programs read of an emulated port beside libibverbs: live counters of the port, which outlive its processes and add up over them
# (perftest -W reads them), and the interface of its GIDs.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_programs.sh"
trib up "$conf/two-hosts.conf" --dilation 1 >/dev/null || fail "no fabric"
sys=/sys/class/infiniband/trib0
trib exec h0 -- true 2>"$tmp/notice.out"
grep -q 'no private /sys' "$tmp/notice.out" && skip "$(cat "$tmp/notice.out")"

trib exec h0 -- sh -c "n=\$(cat $sys/ports/1/gid_attrs/ndevs/0); cat /sys/class/net/\$n/address; [ ! -e $sys/device/net ] && ls /sys/class/net" >"$tmp/net.out" || fail "the interface of a GID"
[ "$(head -n 1 "$tmp/net.out")" = 02:54:0a:00:00:01 ] || fail "$(cat "$tmp/net.out")"
[ "$(sed 1d "$tmp/net.out" | grep -v '^trib')" = "$(ls /sys/class/net)" ] || fail "the machine's interfaces: $(cat "$tmp/net.out")"

# NCCL finds the port as a PCI device, by the bus of its address, below a root port, with a link that carries its rate. The machine's own devices
# stay, and a host within another has its own.
pci='d=$(realpath /sys/class/infiniband/$0/device); b=${d##*/}; [ "$(realpath /sys/class/pci_bus/${b%:*}/../../$b)" = "$d" ] || exit 1
    cd $d && echo $b $(basename $(realpath subsystem)) $(cat class ../class max_link_speed max_link_width ../max_link_width numa_node)'
node=-1
[ ! -e /sys/devices/system/node/node0 ] || [ -e /sys/devices/system/node/node1 ] || node=0
if [ -e /sys/class/pci_bus ]; then
    is_pci() { # is_pci EXPECTED COMMAND...
        [ "$("${@:2}")" = "$1 $node" ] || fail "${*:2:4}: the PCI device: found $("${@:2}" 2>&1), expected $1 $node"
    }
    is_pci "7472:01:00.0 pci 0x020000 0x060400 32.0 GT/s PCIe 16 16" trib exec h0 -- sh -c "$pci" trib0
    is_pci "7472:01:00.0 pci 0x020000 0x060400 32.0 GT/s PCIe 16 16" trib exec h0 -- "$root/scripts/trib" exec h1 -- sh -c "$pci" trib0
    [ "$(trib exec h0 -- ls /sys/class/pci_bus | grep -v 7472)" = "$(ls /sys/class/pci_bus)" ] || fail "the machine's PCI buses: $(trib exec h0 -- ls /sys/class/pci_bus)"
fi
[ "$(trib exec h0 -- ls /sys/devices | grep -v '^pci7472')" = "$(ls /sys/devices)" ] || fail "the machine's devices: $(trib exec h0 -- ls /sys/devices)"
[ "$(trib exec h0 -- cat $sys/device/numa_node)" = $node ] || fail "the NUMA node"

# A port's state is its link's, to readers of sysfs too, and to ibstat, which reads more of it than others.
state() { trib exec "$1" -- sh -c "cd $sys/ports/1 && cat state phys_state && cd /sys/class/net/trib0 && cat carrier operstate" 2>/dev/null | tr '\n' ' '; }
states() { # WHEN EXPECTED
    [ "$(state h0)" = "$2" ] || fail "$1: found $(state h0), expected $2"
    command -v ibstat >/dev/null || return 0
    trib exec h0 -- ibstat >"$tmp/ibstat.out" 2>&1 || fail "ibstat: $(cat "$tmp/ibstat.out")"
    [ "${2#*ACTIVE}" != "$2" ] && has 'State: Active' "$tmp/ibstat.out" || has 'State: Down' "$tmp/ibstat.out"
}
states "at first" "4: ACTIVE 5: LinkUp 1 up "
trib link h0-switch0 down >"$tmp/link.out" 2>&1 || fail "$(cat "$tmp/link.out")"
states "down" "1: DOWN 3: Disabled 0 down "
[ "$(state h1)" = "4: ACTIVE 5: LinkUp 1 up " ] || fail "another host: $(state h1)"
trib link h0-switch0 up >"$tmp/link.out" 2>&1 || fail "$(cat "$tmp/link.out")"
states "up again" "4: ACTIVE 5: LinkUp 1 up "
trib node h0 down >"$tmp/link.out" 2>&1 || fail "$(cat "$tmp/link.out")"
states "its node down" "1: DOWN 3: Disabled 0 down "
trib node h0 up >"$tmp/link.out" 2>&1 || fail "$(cat "$tmp/link.out")"
states "its node up again" "4: ACTIVE 5: LinkUp 1 up "

# rdma, which asks the kernel elsewhere, names the port and its state; what it does not know it refuses.
trib exec h0 -- rdma link show -j 2>/dev/null | jq -e '. == [{ifindex: 0, ifname: "trib0", port: 1, state: "ACTIVE", physical_state: "LINK_UP"}]' >/dev/null ||
    fail "rdma: $(trib exec h0 -- rdma link show -j 2>&1)"
trib exec h0 -- rdma resource >"$tmp/rdma.out" 2>&1 && fail "rdma resource: $(cat "$tmp/rdma.out")"
has "found 'resource'" "$tmp/rdma.out"
trib exec h0 -- sh -c 'cd / && rdma link "*"' >"$tmp/rdma.out" 2>&1 && fail "rdma of a word that a shell expands: $(cat "$tmp/rdma.out")"
has "found 'link [*]'" "$tmp/rdma.out"
# A library named by where the caller is serves programs that go elsewhere.
(cd "$TRIB_BUILD" && TRIB_LIB=libtribverbs.so "$root/scripts/trib" exec h0 -- sh -c 'cd / && ibv_devinfo -l && command -v rdma') >"$tmp/relative.out" 2>&1 || fail "a relative TRIB_LIB"
has trib0 "$tmp/relative.out"
has /bin/rdma "$tmp/relative.out"
has_not 'cannot be preloaded' "$tmp/relative.out"

# 200 messages of 64 KiB: as many words of 4 bytes, and headers, 2 % at most
one() { pair h0 h1 ib_write_bw -F -x 0 -s 65536 -n 200 -W counters/port_xmit_data,counters/port_rcv_data; }
words=$((200 * 65536 / 4))
within() { [ "$1" -ge $2 ] && [ "$1" -le $(($2 * 102 / 100)) ] || fail "$3: found $1, expected $2 and headers"; }
one
within "$(sed -n 's/.*port_xmit_data=//p' "$tmp/client.out")" $words "-W of the client, sent"
within "$(sed -n 's/.*port_rcv_data=//p' "$tmp/server.out")" $words "-W of the server, received"
read_one() { trib exec "$1" -- cat "$sys/ports/1/$2"; }
within "$(read_one h1 counters/port_xmit_data)" $words "after the process"
one
within "$(read_one h1 counters/port_xmit_data)" $((2 * words)) "after two processes"
[ "$(read_one h1 counters/port_xmit_packets)" = "$(read_one h1 hw_counters/sent_pkts)" ] || fail "packets and packets differ"
[ "$(read_one h1 counters/port_xmit_packets)" -ge $((2 * 200 * 16)) ] || fail "packets: $(read_one h1 counters/port_xmit_packets)"
[ "$(read_one h0 hw_counters/out_of_sequence)" = 0 ] || fail "packets were lost"
run_dir=$(echo "$run"/*/)
# The only process of the fabric dies: its keeper says so to those who go on reading.
kill -9 "$(pids_in "$run_dir/proc/fabric.pid")"
gone() { [ "$(cat "$run_dir"/port/h0/0.state/{state,carrier} 2>/dev/null | tr '\n' ' ')" = "1: DOWN 0 " ]; }
until_true 5 gone || fail "after the death of trib-switch: $(cat "$run_dir"/port/h0/0.state/*)"
trib down >/dev/null || fail "down"
[ ! -e "$run_dir/port" ] || fail "files stay behind: $(find "$run_dir")"

# Each port of a host is a device behind a root port of its own; more than 400 Gb/s take a faster link.
[ -e /sys/class/pci_bus ] || exit 0
sed 's/rate *= *"[^"]*"/rate = "800Gb\/s"/' "$root/tests/e2e/confs/two-rails.conf" >"$tmp/fast.conf"
trib up "$tmp/fast.conf" >/dev/null || fail "no fabric of two ports"
is_pci "7472:01:00.0 pci 0x020000 0x060400 64.0 GT/s PCIe 16 16" trib exec a -- sh -c "$pci" trib0
is_pci "7472:02:00.0 pci 0x020000 0x060400 64.0 GT/s PCIe 16 16" trib exec a -- sh -c "$pci" trib1
