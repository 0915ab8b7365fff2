#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Open MPI over UCX at dilation 1: eight ranks on eight hosts, over RC and over UD; allreduce, alltoall and allgather of 4 bytes to
# megabytes, every element checked (tests/tools/mpi_check.c), all of it across the fabric.
# tier: thirdparty
. "$(dirname "$0")/lib.sh"
command -v mpirun >/dev/null || skip "no mpirun (package openmpi-bin)"
check=$TRIB_BUILD/tests/tools/mpi_check
[ -x "$check" ] || skip "no mpi_check in $TRIB_BUILD: there was no mpicc (package libopenmpi-dev) when it was built"
ompi_info --parsable 2>/dev/null | grep -q '^mca:pml:ucx:' || skip "this Open MPI was built without UCX"
unset UCX_TLS UCX_NET_DEVICES

trib up "$conf/leaf-spine-8.conf" --dilation 1 >/dev/null || fail "no fabric"
trib exec h0 -- true 2>"$tmp/notice.out"
grep -q 'no private /sys' "$tmp/notice.out" && skip "$(cat "$tmp/notice.out")"
mpirun=(timeout -k 5 150 mpirun --oversubscribe --mca pml ucx --mca osc '^ucx')
[ "$(id -u)" = 0 ] && mpirun+=(--allow-run-as-root)
export HOME=$tmp # its help and session files

# Each host's HCA has sent BYTES or more in this job; processes leave their counters in the lock file of their slot.
all_sent() { # all_sent BYTES HOST...
    local bytes=$1 h sent
    shift
    for h; do
        sent=$(awk '$1 == "tx_bytes" { n += $2 } END { print n + 0 }' "$run/leaf-spine-8/port/$h"/0.?.lock)
        [ "$sent" -ge "$bytes" ] || fail "$h sent $sent bytes over the fabric, expected $bytes or more"
    done
    rm -f "$run/leaf-spine-8/port/"*/*.lock
}

checked() { # checked RANKS: the job's output is what it should be
    has "^mpi_check: $1 ranks, 0 wrong" "$tmp/mpi.out"
    has_not 'FAILED|UCX +(WARN|ERROR)|WARNING' "$tmp/mpi.out"
}

# Nobody says which transports: hosts are machines of their own, so UCX finds no shared memory between them.
for tls in all rc_v,self ud_v,self; do
    max=$([ $tls = all ] && echo 65536 || echo 4194304)
    UCX_TLS=$tls "${mpirun[@]}" -np 8 "$root/scripts/trib" exec @rank -- "$check" $max 2 >"$tmp/mpi.out" 2>&1 || fail "UCX_TLS=$tls: exit code $?"
    checked 8
    [ "$(grep -c ' ok 0 wrong' "$tmp/mpi.out")" -ge 9 ] || fail "too few sizes"
    all_sent $max h0 h1 h2 h3 h4 h5 h6 h7
done

# Hosts by environment, rank by rank: with trib exec for each, and for all in a session of one host. (Debian 13's mpirun ends in a fault of its
# own with two programs and -x.)
if "${mpirun[@]}" -np 1 -x A=1 true : -np 1 -x A=2 true >"$tmp/two.out" 2>&1; then
    rank=("$root/scripts/trib" exec -- "$check" 65536 1)
    "${mpirun[@]}" -np 1 -x TRIB_HOST=h1 "${rank[@]}" : -np 1 -x TRIB_HOST=h6 "${rank[@]}" >"$tmp/mpi.out" 2>&1 || fail "by TRIB_HOST: exit code $?"
    checked 2
    all_sent 16384 h1 h6
    trib exec h0 -- "${mpirun[@]}" -x UCX_TLS=rc_v,self -np 1 -x TRIB_HOST=h2 "$check" 65536 1 : -np 1 -x TRIB_HOST=h5 "$check" 65536 1 \
        >"$tmp/mpi.out" 2>&1 || fail "in one session: exit code $?"
    checked 2
    all_sent 16384 h2 h5
else
    echo "hosts by environment: skipped, this mpirun cannot start two programs with -x"
fi

# One frame in a hundred is lost on every link between the leaves: RC repairs it, and every element is still right. (UCX's timeout
# of a second would make this a long test.)
for link in leaf0-spine0 leaf0-spine1; do
    trib link $link loss=1% seed=3 >/dev/null || fail "trib link"
done
UCX_TLS=rc_v,self UCX_RC_TIMEOUT=20ms "${mpirun[@]}" -np 8 "$root/scripts/trib" exec @rank -- "$check" 262144 1 >"$tmp/mpi.out" 2>&1 || fail "with loss: exit code $?"
checked 8
repeated=$(cat "$run"/leaf-spine-8/port/*/*.lock | awk '$1 == "retransmits" { n += $2 } END { print n + 0 }')
[ "$repeated" -gt 0 ] || fail "nothing was lost and sent again"
