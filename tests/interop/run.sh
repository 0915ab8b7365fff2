#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# An independent RoCE v2 stack on our fabric: two guests with Linux Soft-RoCE (QEMU, software emulation) on vhost-user ports of
# trib-switch, beside two emulated hosts. A line each; exit code 77 when guests cannot be had.
# run.sh [PATTERN]: only the tests whose names match (what boots and stops guests always runs).
. "$(dirname "$0")/../e2e/lib.sh"
here=$root/tests/interop
art=$TRIB_BUILD/interop
only=${1:-}
port=7000
passed=0 failed=0 skipped=0

t0=$SECONDS
"$here/build.sh" "$art" >"$tmp/build.log" 2>&1
rc=$?
[ $rc = 77 ] && skip "skipped: $(tail -n 1 "$tmp/build.log")"
[ $rc = 0 ] || fail "the guests' image: $(tail -n 5 "$tmp/build.log")"
command -v qemu-system-x86_64 >/dev/null || skip "skipped: found no qemu-system-x86_64"
echo "ok      image of the guests$(printf '%32d s' $((SECONDS - t0)))"
. "$here/guest.sh"

# check SECONDS NAME FUNCTION ARG...: runs it in this shell with its output in a file, shown when it fails. The timeouts of
# pingpongs are fixed at 67 ms, which a guest on a busy machine exceeds now and then: what fails is tried twice more, and says so.
check() {
    local limit=$1 name=$2 t0=$SECONDS rc try
    shift 2
    [ -z "$only" ] || [[ $name =~ $only ]] || return 0
    for try in 1 2 3; do
        deadline=$((SECONDS + limit))
        "$@" >"$tmp/test.log" 2>&1
        rc=$?
        [ $rc = 0 ] && break
    done
    [ $try = 1 ] || name="$name (try $try)"
    if [ $rc = 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
    fi
    printf '%-7s %-44s %5d s\n' "$([ $rc = 0 ] && echo ok || echo FAILED)" "$name" $((SECONDS - t0))
    [ $rc = 0 ] || tail -n 40 "$tmp/test.log" | sed 's/^/        /'
    return $rc
}
left() { echo $((deadline > SECONDS ? deadline - SECONDS : 1)); }

# ---- programs: the server first; their own TCP goes over the user network of a guest -----------------

listens() { grep -qi ":$(printf %04X "$1") 0*:0000 0A" /proc/net/tcp /proc/net/tcp6; }
guest_serves() { # guest_serves GUEST COMMAND...
    local g=$1 run wait_for
    shift
    run="rm -f /tmp/server.*; (timeout $(left) $* -p $port >/tmp/server.out 2>&1; echo \$? >/tmp/server.rc) &"
    wait_for="n=0; until grep -q ':$(printf %04X $port) .* 0A ' /proc/net/tcp /proc/net/tcp6; do n=\$((n + 1)); [ \$n -lt 200 ] || break; sleep 0.1; done; [ \$n -lt 200 ]"
    guest "$g" 40 "$run $wait_for"
}
guest_served() { guest "$1" "$(left)" 'wait; cat /tmp/server.out; [ "$(cat /tmp/server.rc)" = 0 ]'; }

# Devices of guests have the IPv4 address at index 1, ours at 0.
for_guest() { echo "${*//GID/1}"; }
for_host() { echo "${*//GID/0}"; }

guest_to_guest() { # SERVER CLIENT COMMAND...
    local s=$1 c=$2
    shift 2
    guest_serves "$s" "$(for_guest "$@")" || return 1
    guest "$c" "$(left)" "timeout $(left) $(for_guest "$@") -p $(guest_port "$s") 192.168.76.2" || { guest_served "$s"; return 1; }
    guest_served "$s"
}
host_to_guest() { # GUEST HOST COMMAND...: the guest is the server
    local g=$1 h=$2
    shift 2
    guest_serves "$g" "$(for_guest "$@")" || return 1
    timeout "$(left)" "$root/scripts/trib" exec "$h" -- $(for_host "$@") -p "$(guest_port "$g")" 127.0.0.1 || { guest_served "$g"; return 1; }
    guest_served "$g"
}
guest_to_host() { # HOST GUEST COMMAND...: the host is the server
    local h=$1 g=$2 p pid
    shift 2
    p=$(free_port)
    timeout "$(left)" "$root/scripts/trib" exec "$h" -- $(for_host "$@") -p "$p" >"$tmp/server.out" 2>&1 &
    pid=$!
    until_true 20 listens "$p" || { cat "$tmp/server.out"; return 1; }
    guest "$g" "$(left)" "timeout $(left) $(for_guest "$@") -p $p 192.168.76.2" || { cat "$tmp/server.out"; return 1; }
    wait $pid || { cat "$tmp/server.out"; return 1; }
}

# ---- further tests ------------------------------------------------------------------------------------

# Members of one aggregation group (and of one ring): the emulated hosts, and both guests as the launcher's --rsh reaches them.
all_reduce() { # ARG...
    timeout "$(left)" "$root/scripts/trib" perf "$here/interop.conf" -g 4 -n 2 --rsh "$here/rsh.sh" -J "$tmp/perf.json" "$@"
    rc=$?
    guest_answer g0 10
    guest_answer g1 10
    [ $rc = 0 ] || return 1
    grep -q '"wrong": 0' "$tmp/perf.json" && ! grep -q '"wrong": [^0]' "$tmp/perf.json"
}

# What is on a wire between a guest and an emulated host.
frames() {
    local cap link=$1
    shift
    "$root/scripts/trib" capture "$link" -o "$tmp/x.pcap" >"$tmp/capture.out" 2>&1 &
    cap=$!
    until_true 20 grep -q capturing "$tmp/capture.out" || { cat "$tmp/capture.out"; return 1; }
    "$@" || return 1
    kill -TERM $cap
    wait $cap || return 1
    cat "$tmp/capture.out"
    tshark -r "$tmp/x.pcap" -Y 'udp.port == 4791' -T fields -e ip.src -e frame.protocols >"$tmp/roce.out" 2>/dev/null || return 1
    [ "$(grep -c '^10.0.0.1.*udp:infiniband' "$tmp/roce.out")" -gt 50 ] && [ "$(grep -c '^10.0.0.3.*udp:infiniband' "$tmp/roce.out")" -gt 50 ] ||
        { echo "too few RoCE frames of either side"; return 1; }
    grep -v udp:infiniband "$tmp/roce.out" && return 1
    tshark -r "$tmp/x.pcap" -Y _ws.malformed 2>/dev/null | tee "$tmp/malformed.out"
    [ ! -s "$tmp/malformed.out" ] || return 1
    "$TRIB_BUILD/tests/tools/icrc_check" "$tmp/x.pcap"
}

# A guest that dies in mid-operation ends the group by name, and the emulated hosts are fine without it.
guest_dies() {
    "$root/scripts/trib" perf "$here/interop.conf" -g 4 -b 256K -e 256K -n 100000 --max-wall 300 --algo sharp --rsh "$here/rsh.sh" \
        >"$tmp/dies.out" 2>&1 &
    local job=$!
    until_true 40 grep -q Algorithm "$tmp/dies.out" || { cat "$tmp/dies.out"; return 1; }
    sleep 2
    kill -KILL "${g_pid[g1]}"
    wait $job && { echo "the job ended well"; return 1; }
    cat "$tmp/dies.out"
    grep -q 'rank 3 (g1' "$tmp/dies.out" || return 1
    guest_answer g0 20
    perf_two
}
perf_two() {
    timeout 60 "$root/scripts/trib" perf "$here/interop.conf" -g 2 -b 64K -e 64K -n 2 --algo sharp >"$tmp/two.out" 2>&1 || { cat "$tmp/two.out"; return 1; }
}

# The same port serves the next guest, here with another MAC; what was known of the old one is not in its way.
guest_returns() {
    rm -rf "$tmp/g1"
    guest_start g1 10.0.0.4 52:54:00:00:00:05 4400 "$run/interop/g1.sock" "$tmp/overlay" && guest_up g1 &&
        host_to_guest g1 h0 ibv_rc_pingpong -g GID -n 100 -c
}

idle_switch() {
    local pid before after
    pid=$(pids_in "$run"/interop/proc/fabric.pid)
    before=$(awk '{ print $14 + $15 }' "/proc/$pid/stat")
    sleep 4
    after=$(awk '{ print $14 + $15 }' "/proc/$pid/stat")
    echo "$((after - before)) ticks in 4 s"
    [ $((after - before)) -lt 60 ] # 15 % of a core
}

boot() { guest_up g0 && guest_up g1; }

# ---- run ----------------------------------------------------------------------------------------------

trib up "$here/interop.conf" >"$tmp/up.out" 2>&1 || fail "no fabric: $(cat "$tmp/up.out")"
"$here/copy.sh" "$tmp/overlay.d" "$TRIB_BUILD/trib-perf" && (cd "$tmp/overlay.d" && find . | cpio -o -H newc --quiet) >"$tmp/overlay" ||
    fail "cannot pack trib-perf"
export GUESTS=$tmp
g0_mac=02:54:0a:00:00:03 # as `trib plan` shows; g1 has one of its own, and an MTU that lets RDMA have 4096
guest_start g0 10.0.0.3 $g0_mac 1500 "$run/interop/g0.sock" "$tmp/overlay"
guest_start g1 10.0.0.4 52:54:00:00:00:04 4400 "$run/interop/g1.sock" "$tmp/overlay"
only='' check 300 "boot of two guests" boot || exit 1

pp="-n 200 -g GID"
# Soft-RoCE of Linux 6.1 has been seen to repeat packets with the payload of others: no timeout (-u 19: 2 s) makes it repeat any.
bw="-F -x GID -n 100 -s 16384 -u 19"
check 90 "guest to guest: ibv_rc_pingpong" guest_to_guest g0 g1 ibv_rc_pingpong $pp -c
check 90 "guest to guest: ib_write_bw" guest_to_guest g1 g0 ib_write_bw $bw
for test in "ibv_rc_pingpong $pp -c" "ibv_ud_pingpong $pp" "ib_send_bw $bw" "ib_write_bw $bw" "ib_read_bw $bw -o 8"; do
    check 90 "guest is server: ${test%% *}" host_to_guest g1 h0 $test
    check 90 "guest is client: ${test%% *}" guest_to_host h1 g0 $test
done
check 90 "one switch between: ibv_rc_pingpong" host_to_guest g0 h0 ibv_rc_pingpong $pp -c
check 90 "MTU 256: ibv_rc_pingpong" guest_to_host h0 g1 ibv_rc_pingpong $pp -c -m 256
check 180 "guests in an aggregation group: all-reduce" all_reduce -b 4K -e 256K -f 8 -d float,bfloat16,int32 -o sum,max --algo sharp
check 120 "guests in a ring: all-reduce" all_reduce -b 4K -e 256K -f 8 --algo ring
if command -v tshark >/dev/null; then
    check 90 "frames at a host: tshark and ICRC" frames h0-leaf0 guest_to_host h0 g0 ibv_rc_pingpong $pp -c
    check 90 "frames at a guest: tshark and ICRC" frames g0-leaf0 host_to_guest g0 h0 ib_read_bw $bw -o 8
else
    skipped=$((skipped + 1))
    echo "skipped frames: tshark and ICRC"
fi
check 30 "idle guests leave the switch idle" idle_switch
check 150 "a guest dies in mid-operation" guest_dies
check 150 "a guest comes again" guest_returns
echo "$passed passed, $failed failed, $skipped skipped, $SECONDS s"
[ $failed = 0 ] && [ $passed -gt 0 ]
