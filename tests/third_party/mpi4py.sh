#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# mpi4py's own test suite, four ranks on four hosts over UCX, whose collectives run in the switches where they can: no test fails. The
# suite is that of the source package, of the version that is installed (MPI4PY_SUITE=DIR has its runtests.py; else `make suites`
# fetches it by pip). ONLY=PATTERN runs some of its files. SUITE_SECONDS= is its limit.
. "$(dirname "$0")/../e2e/lib.sh"
command -v mpirun.openmpi >/dev/null || skip "no mpirun.openmpi (package openmpi-bin)"
[ -e "$TRIB_BUILD/openmpi/mca_coll_trib.so" ] || skip "no mca_coll_trib.so in $TRIB_BUILD: no headers of Open MPI 4.1 when it was built"
ompi_info --parsable 2>/dev/null | grep -q '^mca:pml:ucx:' || skip "this Open MPI was built without UCX"
python=/usr/bin/python3
version=$("$python" -c 'import mpi4py; print(mpi4py.__version__)' 2>/dev/null) || skip "no mpi4py (package python3-mpi4py)"
suite=${MPI4PY_SUITE:-$TRIB_BUILD/third-party/mpi4py-$version/test}
[ -e "$suite/runtests.py" ] || skip "no $suite/runtests.py (make suites fetches it, or MPI4PY_SUITE=DIR)"
export UCX_TLS=rc_v,self HOME=$tmp

trib up leaf-spine-8 --dilation 20 >/dev/null || fail "no fabric"
trib exec h0 -- true 2>"$tmp/notice.out"
grep -q 'no private /sys' "$tmp/notice.out" && skip "$(cat "$tmp/notice.out")"
# Tests of one-sided operations are left out by the suite itself, where only osc/pt2pt is there, which has none for MPI_THREAD_MULTIPLE; by
# osc/ucx and osc/rdma they run, OSC='^pt2pt', with so many fences that they take longer than all others together.
mpi=(timeout -k 5 "${SUITE_SECONDS:-900}" mpirun.openmpi --oversubscribe --mca pml ucx --mca osc "${OSC:-^ucx,rdma}" --mca mca_base_component_path "SYS_DEFAULT:$TRIB_BUILD/openmpi" -np 4)
[ "$(id -u)" = 0 ] && mpi+=(--allow-run-as-root)
# New processes of MPI_Comm_spawn would be on no host.
cd "$suite" || fail "cd"
"${mpi[@]}" "$root/scripts/trib" exec @rank -- "$python" runtests.py --no-builddir -v ${ONLY:+-i "$ONLY"} -e spawn -e dynproc >"$tmp/mpi.out" 2>&1
rc=$?
cd "$root" || fail "cd"
ran=$(grep -c ' \.\.\. ok$' "$tmp/mpi.out")
[ $rc = 0 ] || fail "exit code $rc after $ran tests: $(grep -aE '^(FAIL|ERROR):|MPI_ABORT' "$tmp/mpi.out" | sort | uniq -c | head -n 20; tail -n 3 "$tmp/mpi.out")"
[ "$(grep -c '^OK' "$tmp/mpi.out")" = 4 ] || fail "not every rank's tests are right"
has_not '^(FAIL|ERROR):' "$tmp/mpi.out"
[ "$(trib telemetry leaf-spine-8 /trib/an,leaf0 | jq .fabric.bytes_in)" -gt 100000 ] || fail "leaf0 has reduced nothing"
echo "mpi4py $version: $(grep -m 1 '^Ran ' "$tmp/mpi.out") at each of 4 ranks, none failed"
