#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# trib nccl with an NCCL and a GPU of the tests: the table, sums that are wrong, ranks that die or hang, programs, what is missing.
. "$(dirname "$0")/lib.sh"
fake=$TRIB_BUILD/tests/fake
tool() { timeout 120 "$root/scripts/trib" nccl "$@"; }
small=(single-switch-4 -b 64K -e 64K -n 1 -w 0)

# Without a GPU: what is missing, all of it.
if ! ldconfig -p | grep -q libcuda.so.1; then
    tool single-switch-4 --nccl /none --plugin /nowhere >"$tmp/out" 2>"$tmp/err" && fail "it runs without anything"
    has "no NCCL: /none" "$tmp/err"
    has "no CUDA driver: libcuda.so.1.*needs a GPU" "$tmp/err"
    has "no plug-in for SHARP: found no file /nowhere" "$tmp/err"
    [ "$(grep -vc '^trib-nccl: ' "$tmp/err")" = 0 ] || fail "lines of nobody: $(cat "$tmp/err")"
    tool single-switch-4 -- true >"$tmp/out" 2>"$tmp/err" && fail "a program without a GPU"
    has "no CUDA driver" "$tmp/err"
    has_not "no NCCL" "$tmp/err"
fi
refused() { # refused TEXT ARG...
    local rc
    tool "${@:2}" >"$tmp/out" 2>"$tmp/err"
    rc=$?
    [ $rc = 2 ] || fail "${*:2}: exit status $rc, expected 2"
    has "$1" "$tmp/err"
}
refused "found no CONF" -n 1
refused "found single-switch-4 true, expected: trib nccl CONF" single-switch-4 true
refused "--ranks: found '1', expected a whole number, 2 or more" single-switch-4 -g 1
refused "--minbytes: found '6', expected a size of whole floats" single-switch-4 -b 6
refused "found 1048576 bytes, expected no more than the 4 of -e" single-switch-4 -b 1M -e 4
refused "--algo: found 'tree', expected one of ring" single-switch-4 --algo tree

[ -f "$fake/libnccl.so.2" ] || skip "no nvcc: this build has no CUDA driver of the tests"
export LD_LIBRARY_PATH=$fake:$TRIB_BUILD
tool() { timeout 120 "$root/scripts/trib" nccl --nccl "$fake/libnccl.so.2" "$@"; }
fails() { # fails TEXT ARG...
    tool "${@:2}" >"$tmp/out" 2>"$tmp/err" && fail "${*:2}: it runs"
    has "$1" "$tmp/err"
    "$root/scripts/trib" status 2>/dev/null | grep -qx "no fabric is up" || fail "${*:2}: a fabric stays: $("$root/scripts/trib" status)"
}

tool single-switch-4 -b 64K -e 256K -n 2 -J "$tmp/rows.json" >"$tmp/table.out" 2>"$tmp/err" || fail "it does not run"
has "NCCL 2.30.0, all_reduce of float, sum, 4 ranks on 1 x fake GPU" "$tmp/table.out"
has "Ranks on hosts: 0:h0 1:h1 2:h2 3:h3" "$tmp/table.out"
has "^# ring: .*NCCL_ALGO=allreduce:Ring NCCL_NET=IB NCCL_NET_PLUGIN=none" "$tmp/table.out"
has "^# sharp: .*NCCL_ALGO=allreduce:CollNetChain NCCL_COLLNET_ENABLE=1 NCCL_NET_PLUGIN=$TRIB_BUILD/libnccl-net-tributary.so " "$tmp/table.out"
# No time is below what trib sim has, and the sums are right; theory is that of trib sim.
[ "$(awk '$1 ~ /^[0-9]+$/ && $2 >= $5 && $3 >= $6 && $7 == $8 && $NF == 0' "$tmp/table.out" | wc -l)" = 2 ] || fail "rows"
jq -e '.nccl == "2.30.0" and .hosts == ["h0", "h1", "h2", "h3"] and .dilation == 1000 and (.results | length) == 4 and
       all(.results[]; (.times_us | length) == 2 and .wrong == 0 and all(.times_us[]; . > 0))' "$tmp/rows.json" >/dev/null || fail "rows.json"

# NCCL before 2.26 makes the file's name of a word.
FAKE_NCCL_VERSION=22105 tool "${small[@]}" --algo sharp >"$tmp/old.out" 2>"$tmp/err" || fail "an older NCCL"
has "NCCL_NET_PLUGIN=tributary LD_LIBRARY_PATH=$TRIB_BUILD:" "$tmp/old.out"

FAKE_NCCL_WRONG=2 fails "found 1 wrong elements, expected none" "${small[@]}" --algo ring
has "Out of bounds values : 1 FAILED" "$tmp/out"
FAKE_NCCL_DIES=1 fails "rank 1 \(h1\): exit code 3" "${small[@]}" --algo ring
FAKE_NCCL_VERSION=21903 fails "found NCCL 2.19.3 .*, expected 2.20 or newer" "${small[@]}"
fails "found 5 ranks on 3 hosts, expected a host for each" "${small[@]}" -g 5
fails "found no ncclGetVersion, expected NCCL's library" "${small[@]}" --nccl "$TRIB_BUILD/libtributary.so.1"
fails "^trib-nccl: found no conf file 'nonsense'" nonsense
trib up single-switch-4 --dilation 1000 >/dev/null || fail "no fabric"
tool "${small[@]}" >"$tmp/out" 2>"$tmp/err" && fail "on a fabric that was up"
has "is up already .*trib down stops it" "$tmp/err"
trib status >"$tmp/up.out" 2>&1 || fail "the fabric that was up is gone"
trib down >/dev/null

# Programs have what torchrun gives them, what NCCL needs, and what the user says instead.
NCCL_SHM_DISABLE=0 tool single-switch-4 -g 2 --algo sharp -- sh -c 'echo $RANK $WORLD_SIZE $LOCAL_RANK $MASTER_ADDR $NCCL_HOSTID $NCCL_ALGO $NCCL_P2P_DISABLE $NCCL_SHM_DISABLE' 2>/dev/null | sort >"$tmp/program.out"
[ "$(cat "$tmp/program.out")" = "0 2 0 127.0.0.1 h0.single-switch-4 allreduce:CollNetChain 1 0
1 2 0 127.0.0.1 h1.single-switch-4 allreduce:CollNetChain 1 0" ] || fail "programs: $(cat "$tmp/program.out")"
fails "rank 1 \(h1\): exit status 7" single-switch-4 -g 2 -- sh -c 'exit $((7 * RANK))'
# One that does not end, and its children, is ended; so is all when the tool is.
fails "rank 0 \(h0\): had not ended" single-switch-4 -g 2 --timeout 1 -- sh -c 'trap "" TERM; sleep 4711'
tool single-switch-4 -g 2 -- sh -c "echo >$tmp/began.\$RANK; sleep 4711" >"$tmp/out" 2>&1 &
pid=$!
began() { [ -e "$tmp/began.0" ] && [ -e "$tmp/began.1" ]; }
until_true 60 began || fail "programs do not begin"
kill "$(pgrep -P $pid)"
wait $pid
[ $? = 143 ] || fail "the tool after SIGTERM"
pgrep -f 'sleep 4711' >/dev/null && fail "a rank outlives the tool"
"$root/scripts/trib" status 2>/dev/null | grep -qx "no fabric is up" || fail "a fabric outlives the tool"
exit 0
