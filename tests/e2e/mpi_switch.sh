#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A switch process dies under an MPI program whose reductions run in the switches: a spine, and every result is right; a leaf, and the job
# ends with an error that names it.
# tier: thirdparty
. "$(dirname "$0")/lib.sh"
command -v mpirun.openmpi >/dev/null || skip "no mpirun.openmpi (package openmpi-bin)"
[ -e "$TRIB_BUILD/openmpi/mca_coll_trib.so" ] || skip "no mca_coll_trib.so in $TRIB_BUILD: no mpicc or headers of Open MPI 4.1 when it was built"
check=$TRIB_BUILD/tests/tools/mpi_coll
[ -x "$check" ] || skip "no mpi_coll in $TRIB_BUILD: there was no mpicc (package libopenmpi-dev) when it was built"
ompi_info --parsable 2>/dev/null | grep -q '^mca:pml:ucx:' || skip "this Open MPI was built without UCX"
# UCX sends again after 1 s of fabric time and gives up after the eighth: 160 s at a dilation of 20.
export UCX_TLS=rc_v,self UCX_RC_TIMEOUT=20ms HOME=$tmp

name=leaf-spine-8-procs
up() { trib up "$conf/$name.conf" --dilation 20 >/dev/null || fail "no fabric"; }
up
trib exec h0 -- true 2>"$tmp/notice.out"
grep -q 'no private /sys' "$tmp/notice.out" && skip "$(cat "$tmp/notice.out")"
mpi=(timeout -k 5 40 mpirun.openmpi --oversubscribe --mca pml ucx --mca osc '^ucx' -np 8 --mca mca_base_component_path "SYS_DEFAULT:$TRIB_BUILD/openmpi")
[ "$(id -u)" = 0 ] && mpi+=(--allow-run-as-root)

# kill_during SWITCH SECONDS: the job's exit code in $rc, the seconds from the death to its end in $took.
kill_during() {
    : >"$tmp/mpi.out" # what the job before this one has said
    "${mpi[@]}" "$root/scripts/trib" exec @rank -- "$check" loop "$2" >"$tmp/mpi.out" 2>&1 &
    local job=$! start
    looping() { grep -q looping "$tmp/mpi.out"; }
    until_true 30 looping || fail "the job did not get under way: $(tail -n 5 "$tmp/mpi.out")"
    kill -9 "$(pids_in "$run/$name/proc/$1.pid")"
    start=$SECONDS rc=0
    wait $job || rc=$?
    took=$((SECONDS - start))
}

kill_during spine0 3
[ "$rc" = 0 ] || fail "without spine0: exit code $rc: $(grep -v slower "$tmp/mpi.out" | tail -n 5)"
has '^mpi_coll: 0 wrong' "$tmp/mpi.out"
trib down >/dev/null # a job that starts without spine0 is left to UCX
up
kill_during leaf0 60
# Whoever sees it first ends the job: the component, or UCX in a collective that is left to others.
[ "$rc" != 0 ] && [ "$rc" != 124 ] || fail "leaf0 was killed, and the job ended with exit code $rc after $took s"
[ "$took" -le 10 ] || fail "leaf0 was killed, and the job ended $took s later"
has 'coll:trib: communicator MPI_COMM_WORLD: .*trib-switch leaf0 \(pid|UCX  ERROR|exited on signal' "$tmp/mpi.out"
has_not 'mpi_coll: ' "$tmp/mpi.out"
