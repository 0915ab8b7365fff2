#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# MPI programs as Debian has them, eight ranks on eight hosts: mpi4py and the HPC Challenge on Open MPI, whose collectives run in the
# switches, and MPICH, by UCX. Results checked, by the programs and by counters of hosts and switches.
# tier: thirdparty
. "$(dirname "$0")/lib.sh"
command -v mpirun.openmpi >/dev/null || skip "no mpirun.openmpi (package openmpi-bin)"
ompi_info --parsable 2>/dev/null | grep -q '^mca:pml:ucx:' || skip "this Open MPI was built without UCX"
[ -e "$TRIB_BUILD/openmpi/mca_coll_trib.so" ] || skip "no mca_coll_trib.so in $TRIB_BUILD: no headers of Open MPI 4.1 when it was built"
export UCX_TLS=rc_v,self HOME=$tmp
unset UCX_NET_DEVICES
ran=0

trib up leaf-spine-8 --dilation 20 >/dev/null || fail "no fabric"
trib exec h0 -- true 2>"$tmp/notice.out"
grep -q 'no private /sys' "$tmp/notice.out" && skip "$(cat "$tmp/notice.out")"
mpi=(timeout -k 5 150 mpirun.openmpi --oversubscribe --mca pml ucx --mca osc '^ucx' --mca mca_base_component_path "SYS_DEFAULT:$TRIB_BUILD/openmpi" -np 8)
[ "$(id -u)" = 0 ] && mpi+=(--allow-run-as-root)
rank=("$root/scripts/trib" exec @rank --)
reduced() { trib telemetry leaf-spine-8 /trib/an,leaf0 | jq .fabric.bytes_in; }
all_sent() { # all_sent BYTES: each host, in the job that has ended
    local h sent
    for h in h0 h1 h2 h3 h4 h5 h6 h7; do
        sent=$(awk '$1 == "tx_bytes" { n += $2 } END { print n + 0 }' "$run/leaf-spine-8/port/$h"/*.lock)
        [ "$sent" -ge "$1" ] || fail "$h sent $sent bytes over the fabric, expected $1 or more"
    done
    rm -f "$run"/leaf-spine-8/port/*/*.lock
}

if /usr/bin/python3 -c 'import mpi4py' 2>/dev/null; then
    before=$(reduced)
    "${mpi[@]}" "${rank[@]}" /usr/bin/python3 "$root/tests/tools/mpi4py_check.py" >"$tmp/mpi.out" 2>&1 || fail "mpi4py: exit code $?"
    has '^mpi4py_check: 8 ranks, 0 wrong' "$tmp/mpi.out"
    # Eight vectors of 400 or 800 KB, reduced by leaf0 for four hosts.
    [ $(($(reduced) - before)) -gt 16000000 ] || fail "mpi4py: leaf0 has reduced $(($(reduced) - before)) bytes"
    all_sent 4000000
    ran=$((ran + 1))
else
    echo "mpi4py: skipped, no python3-mpi4py"
fi

if command -v hpcc >/dev/null; then
    # The smallest problem that each of its seven benchmarks takes: HPL's input file, of 31 lines whose order is fixed.
    mkdir "$tmp/hpcc" && cd "$tmp/hpcc" || fail "cd"
    printf '%s\n' "HPL, 64 by 64" "" out 8 1 64 1 32 0 1 2 4 16.0 1 2 1 4 1 2 1 1 1 1 1 0 2 64 0 0 1 8 "" 0 64 0 32 >hpccinf.txt
    before=$(reduced)
    "${mpi[@]}" "${rank[@]}" hpcc >"$tmp/mpi.out" 2>&1 || fail "hpcc: exit code $?"
    has '^Success=1' hpccoutf.txt
    has '\.\.\. PASSED' hpccoutf.txt
    has_not 'FAILED' hpccoutf.txt
    # hpcc itself loses some updates (in 9 of 25 runs over Open MPI's shared memory, without any fabric), and accepts up to 1 %.
    [ "$(awk -F= '/^MPIRandomAccess(_LCG)?_ErrorsFraction=/ && $2 < 0.01 { n++ } END { print n + 0 }' hpccoutf.txt)" = 2 ] ||
        fail "hpcc: $(grep '^MPIRandomAccess.*Errors' hpccoutf.txt)"
    has '^PTRANS_residual=0$' hpccoutf.txt
    [ "$(reduced)" -gt "$before" ] || fail "hpcc: leaf0 has reduced nothing"
    all_sent 100000
    ran=$((ran + 1))
    cd "$root" || fail "cd"
else
    echo "hpcc: skipped, no package hpcc"
fi

if command -v mpicc.mpich >/dev/null; then
    mpicc.mpich -O2 -o "$tmp/mpich_check" "$root/tests/tools/mpi_check.c" >"$tmp/cc.out" 2>&1 || fail "mpicc.mpich: $(cat "$tmp/cc.out")"
    for tls in rc_v,self ud_v,self; do
        UCX_TLS=$tls timeout -k 5 150 mpirun.mpich -np 8 "${rank[@]}" "$tmp/mpich_check" 262144 1 >"$tmp/mpi.out" 2>&1 || fail "MPICH, $tls: exit code $?"
        has '^mpi_check: 8 ranks, 0 wrong' "$tmp/mpi.out"
        has_not 'FAILED|UCX +(WARN|ERROR)' "$tmp/mpi.out"
        all_sent 262144
    done
    ran=$((ran + 1))
else
    echo "MPICH: skipped, no package libmpich-dev"
fi
[ $ran -gt 0 ] || skip "none of python3-mpi4py, hpcc and libmpich-dev"
