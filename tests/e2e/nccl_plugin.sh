#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The plug-in for NCCL as NCCL calls it, by the tables of every version, without NCCL and GPUs: messages and groups are exact, also over links
# that lose frames; CollNet reduces in the switches; what cannot be is refused in words; ranks that die, or never come, are named.
# load: any
. "$(dirname "$0")/lib.sh"
export LD_LIBRARY_PATH=$TRIB_BUILD
plugin=$TRIB_BUILD/libnccl-net-tributary.so
options=() # of trib exec

# ranks WHAT HOST...: the program on each host; output in WHAT.out
ranks() {
    local what=$1 r=0 rc=0 pids=() h
    shift
    next_port
    : >"$tmp/$what.out"
    for h in "$@"; do
        timeout 100 "$root/scripts/trib" exec "${options[@]}" "$h" -- "$TRIB_BUILD/tests/tools/nccl_plugin" "127.0.0.1:$port" $r $# "$plugin" "$what" >>"$tmp/$what.out" 2>&1 &
        pids+=($!)
        r=$((r + 1))
    done
    for r in "${pids[@]}"; do wait "$r" || rc=$?; done
    return "$rc"
}
# all N TEXT FILE: so many lines say it
all() { [ "$(grep -cE -- "$2" "$tmp/$3.out")" = "$1" ] || fail "expected $1 times /$2/: $(cat "$tmp/$3.out")"; }

trib up leaf-spine-8 --dilation 20 >/dev/null || fail up
ranks net h0 h4 || fail "net: $(cat "$tmp/net.out")"
all 10 'rank [01]: version [0-9]+: net: [0-9]+ right' net
ranks bad h0 h4 || fail "bad: $(cat "$tmp/bad.out")"
all 10 'rank [01]: version [0-9]+: bad: [0-9]+ right' bad
ranks large h0 h4 || fail "large: $(cat "$tmp/large.out")"
has 'isend: found 101 bytes with tag 0, expected at most the 100 that the receive has posted' "$tmp/large.out"
has 'irecv: the peer has sent more than the 100 bytes that were posted' "$tmp/large.out"

before=$(trib telemetry leaf-spine-8 /trib/an,leaf0 | jq .fabric.bytes_in)
ranks coll h0 h1 h4 h5 || fail "coll: $(cat "$tmp/coll.out")"
all 20 'rank [0-3]: version [0-9]+: coll: [0-9]+ right' coll
after=$(trib telemetry leaf-spine-8 /trib/an,leaf0 | jq .fabric.bytes_in)
[ $((after - before)) -gt 2000000 ] || fail "leaf0 has reduced $((after - before)) bytes"

TRIB_NCCL_CONNECT_S=2 ranks nobody h0 h4 || fail "nobody: $(cat "$tmp/nobody.out")"
has 'rank 0: .*connect: found nobody at [0-9.]+, queue pair [0-9]+, in 2 s: it does not accept, or is gone' "$tmp/nobody.out"
# Who waits for a peer does so in wall time, whatever clock the program has.
for who in 0 1; do
    [ $who = 0 ] || options=(--clock fabric)
    ranks die$who h0 h4 && fail "a rank was killed, and nobody saw it"
    all 1 "rank $((1 - who)): version 11: die$who: [0-9]+ right" die$who
    has 'the peer has gone: it has not answered' "$tmp/die$who.out"
done
options=()
ranks coll-die h0 h1 h4 h5 && fail "a rank was killed, and nobody saw it"
all 3 'rank [023]: version 11: coll-die: ' coll-die
all 3 'iallreduce: rank [023]: .*rank 1' coll-die

# What is lost is repeated.
for s in 0 1; do trib link leaf0-spine$s loss=0.1% seed=4 >/dev/null || fail "trib link"; done
ranks net h0 h4 || fail "with loss: $(cat "$tmp/net.out")"
all 10 'rank [01]: version [0-9]+: net: [0-9]+ right' net
for s in 0 1; do trib link leaf0-spine$s; done >"$tmp/link.out"
has '[1-9][0-9]* lost' "$tmp/link.out"
trib down leaf-spine-8 >/dev/null
TRIB_NCCL_CONNECT_S=soon "$TRIB_BUILD/tests/tools/nccl_plugin" "127.0.0.1:$port" 0 1 "$plugin" net >"$tmp/alone.out" 2>&1 && fail "a time that is none"
has "TRIB_NCCL_CONNECT_S: found 'soon', expected 1 to 86400 seconds" "$tmp/alone.out"
# Nothing beside the tables is exported, so that no program's own name is taken.
nm -D --defined-only "$plugin" | awk '{ print $3 }' | sort >"$tmp/symbols"
[ "$(grep -c '^ncclNetPlugin_v\|^ncclCollNetPlugin_v' "$tmp/symbols")" = 10 ] || fail "tables: $(cat "$tmp/symbols")"
[ "$(grep -cv '^nccl\(Net\|CollNet\)Plugin_v\|^_\(edata\|end\|_bss_start\)$' "$tmp/symbols")" = 0 ] || fail "symbols: $(cat "$tmp/symbols")"
