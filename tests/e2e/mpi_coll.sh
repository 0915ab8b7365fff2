#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Unmodified MPI programs reduce in the switches, by Open MPI's component mca_coll_trib.so: every collective that it takes, in place, on
# parts of the world, of types with gaps; what it has not, and groups that switches refuse, are left to others with a line; a rank dies.
# tier: thirdparty
. "$(dirname "$0")/lib.sh"
command -v mpirun >/dev/null || skip "no mpirun (package openmpi-bin)"
[ -e "$TRIB_BUILD/openmpi/mca_coll_trib.so" ] || skip "no mca_coll_trib.so in $TRIB_BUILD: no mpicc or headers of Open MPI 4.1 when it was built"
check=$TRIB_BUILD/tests/tools/mpi_coll
[ -x "$check" ] || skip "no mpi_coll in $TRIB_BUILD: there was no mpicc (package libopenmpi-dev) when it was built"
ompi_info --parsable 2>/dev/null | grep -q '^mca:pml:ucx:' || skip "this Open MPI was built without UCX"
export UCX_TLS=rc_v,self HOME=$tmp

# A dilation that leaves time for a machine with more ranks than cores, so that little is sent twice.
trib up leaf-spine-8 --dilation 20 >/dev/null || fail "no fabric"
trib exec h0 -- true 2>"$tmp/notice.out"
grep -q 'no private /sys' "$tmp/notice.out" && skip "$(cat "$tmp/notice.out")"
mpi=(timeout -k 5 100 mpirun --oversubscribe --mca pml ucx --mca osc '^ucx' -np 8)
[ "$(id -u)" = 0 ] && mpi+=(--allow-run-as-root)
with=(--mca mca_base_component_path "SYS_DEFAULT:$TRIB_BUILD/openmpi")
rank=("$root/scripts/trib" exec @rank --)
sent() { awk '$1 == "tx_bytes" { n += $2 } END { print n + 0 }' "$run"/leaf-spine-8/port/h*/0.?.lock; }
reduced() { trib telemetry leaf-spine-8 /trib/an,leaf0 | jq .fabric.bytes_in; }

"${mpi[@]}" "${with[@]}" "${rank[@]}" "$check" >"$tmp/mpi.out" 2>&1 || fail "exit code $?"
has '^mpi_coll: 0 wrong' "$tmp/mpi.out"
has 'MPI_COMM_WORLD: all-reduce of MPI_DOUBLE_INT is left to others' "$tmp/mpi.out"
has 'MPI_COMM_WORLD: all-reduce by a function of the program.s own is left to others' "$tmp/mpi.out"
has 'MPI_COMM_WORLD: reduce-scatter with blocks of different lengths is left to others' "$tmp/mpi.out"
[ "$(reduced)" -gt 1000000 ] || fail "leaf0 has reduced $(reduced) bytes"

# Ranks that find each other by the launcher's PMIx, in C and in Python; without such a launcher the reason is told.
if [ -e "$TRIB_BUILD/pmix/store_pmix.so" ]; then
    cc -std=gnu17 -O2 -Wall -Wextra -Werror -I"$root/include" "$root/examples/coll/all_reduce_pmix.c" -o "$tmp/pmix" -L"$TRIB_BUILD" -ltributary >"$tmp/cc.out" 2>&1 ||
        fail "the PMIx example: $(cat "$tmp/cc.out")"
    export LD_LIBRARY_PATH=$TRIB_BUILD PYTHONPATH=$root/python
    "${mpi[@]}" "${rank[@]}" "$tmp/pmix" >"$tmp/mpi.out" 2>&1 || fail "PMIx: exit code $?"
    [ "$(grep -c 'of 8: 1048576 sums, by sharp' "$tmp/mpi.out")" = 8 ] || fail "PMIx: $(cat "$tmp/mpi.out")"
    cat >"$tmp/pmix.py" <<'PY'
import array, sys
from tributary import coll

stores = [coll.PmixStore(), coll.PmixStore(20)]  # each has keys of its own
assert stores[0].size == 8
comms = [coll.Communicator(s) for s in stores]
values = array.array("f", [stores[0].rank] * 1000)
for comm in comms:
    comm.all_reduce(values, op="sum").wait()
sys.stdout.write(f"rank {stores[0].rank} {values[0]}\n")
for part in comms + stores:
    part.close()
PY
    "${mpi[@]}" "${rank[@]}" python3 "$tmp/pmix.py" >"$tmp/mpi.out" 2>&1 || fail "PMIx in Python: exit code $?"
    [ "$(grep -c '^rank [0-7] 224.0$' "$tmp/mpi.out")" = 8 ] || fail "PMIx in Python: $(cat "$tmp/mpi.out")"
    trib exec h0 -- "$tmp/pmix" >"$tmp/alone.out" 2>&1 && fail "PMIx without a launcher"
    has 'the ranks cannot meet: store: PMIx says .*, expected a launcher that serves it' "$tmp/alone.out"
fi

# The hosts send less for the same job: a vector once with the switches, and 2 (N - 1) / N times with Open MPI's own algorithms.
trib down leaf-spine-8 >/dev/null
trib up leaf-spine-8 --dilation 100 >/dev/null || fail "up at 100"
bytes=()
for path in "${with[2]}" SYS_DEFAULT; do
    rm -f "$run"/leaf-spine-8/port/*/*.lock
    "${mpi[@]}" --mca mca_base_component_path "$path" "${rank[@]}" "$TRIB_BUILD/tests/tools/mpi_allreduce" 4194304 2 >"$tmp/mpi.out" 2>&1 || fail "$path: exit code $?"
    bytes+=("$(sent)")
done
[ "$(jq -n "${bytes[0]} * 1.4 < ${bytes[1]}")" = true ] || fail "hosts sent ${bytes[0]} bytes with the switches, ${bytes[1]} without"

# A group that the switches refuse, and options that nobody can follow.
sed 's/groups = [0-9]*;/groups = 1;/' "$conf/leaf-spine-8.conf" >"$tmp/one.conf"
trib down leaf-spine-8 >/dev/null
trib up "$tmp/one.conf" --dilation 20 >/dev/null || fail "up one.conf"
"${mpi[@]}" "${with[@]}" "${rank[@]}" "$check" >"$tmp/mpi.out" 2>&1 || fail "one group: exit code $?"
has '^mpi_coll: 0 wrong' "$tmp/mpi.out"
has 'DUP FROM 0: .*; its collectives are left to others' "$tmp/mpi.out"
"${mpi[@]}" "${with[@]}" --mca coll_trib_algo nonsense "${rank[@]}" "$check" >"$tmp/mpi.out" 2>&1 || fail "nonsense: exit code $?"
has '^mpi_coll: 0 wrong' "$tmp/mpi.out"
has "MPI_COMM_WORLD: algo: found 'nonsense', expected auto or a list" "$tmp/mpi.out"

start=$SECONDS
"${mpi[@]}" "${with[@]}" "${rank[@]}" "$check" die >"$tmp/mpi.out" 2>&1 && fail "a rank was killed, and the job ended well"
[ $((SECONDS - start)) -lt 30 ] || fail "$((SECONDS - start)) s until the job ended"
has 'rank 1 \(h1\) missing|rank 1 .*exited on signal 9' "$tmp/mpi.out"

# Without a fabric the component stays out of the way.
timeout -k 5 100 mpirun --oversubscribe $([ "$(id -u)" = 0 ] && echo --allow-run-as-root) -np 4 --mca pml ob1 --mca btl self,vader "${with[@]}" "$check" >"$tmp/mpi.out" 2>&1 || fail "without a fabric: exit code $?"
has '^mpi_coll: 0 wrong' "$tmp/mpi.out"
has_not 'coll:trib' "$tmp/mpi.out"
