#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Every collective by several algorithms, in and out of place, is exact on a tree of depth two; the model's choice is reported;
# the ring's rounding errors exceed the switches'; unsupported requests are refused by name before anything starts.
# load: any
# tier: core
. "$(dirname "$0")/lib.sh"

trib up "$conf/leaf-spine-8.conf" --dilation 1000 >/dev/null || fail "no fabric"
# NAME ALGORITHMS ARG...: a small size that no number of ranks divides, and one of several messages
run() {
    local coll=$1 algos=$2 a
    shift 2
    perf_ok "$coll" "$coll" --algo "$algos" -g 7 -b 9000 -e 333333 -f 37 -n 1 -w 0 "$@"
    for a in ${algos//,/ }; do
        has "^# Algorithm: $a\$" "$tmp/$coll.out"
    done
}
run all_reduce ring,sharp,tree
run reduce ring,sharp,tree -r 3
run broadcast chain,sharp,tree -r 6
run all_gather ring,sharp,halving
run reduce_scatter ring,sharp,pairwise
run alltoall pairwise,direct
run gather direct -r 2
run scatter direct -r 5
run sendrecv direct
run barrier halving,direct,sharp
run alltoall direct -k 3 -d uint8
has '"in_place": true' "$tmp/all_gather.json"
has_not '"in_place": true' "$tmp/alltoall.json"
has '"root": 3,' "$tmp/reduce.json"
has '"op": "none"' "$tmp/broadcast.json"
has ' float +sum +3 ' "$tmp/reduce.out"
has ' float +none +-1 ' "$tmp/all_gather.out"
has 'direct against pairwise|# sparse' "$tmp/alltoall.out"

perf_ok auto all_reduce --algo auto,ring -b 64K -e 64K -n 1 -w 0
has 'picked (sharp|direct|ring|tree|halving): .* us, next best' "$tmp/auto.out"
has '"asked": "auto"' "$tmp/auto.json"
TRIB_ALGO=tree perf_ok forced all_reduce --algo sharp -b 4K -e 4K -n 1 -w 0
has 'Algorithm: tree' "$tmp/forced.out"
has_not 'Algorithm: sharp' "$tmp/forced.out"

# seven roundings of a ring over eight ranks, compared with two of the switches
perf_ok ulp all_reduce -g 8 -d half --error --algo ring,sharp -b 64K -e 64K -n 1 -w 0
awk '$2 == "half" && NF == 6 { mean[$4] = $5 } END { exit !(0 < mean["sharp"] && mean["sharp"] < mean["ring"] && mean["ring"] < 8) }' \
    "$tmp/ulp.out" || fail "the ring's error should exceed the switches':"$'\n'"$(tail -n 3 "$tmp/ulp.out")"
has '"ulp": ' "$tmp/ulp.json"
no_repeats

# refused SAYS ARG...: with a sentence, without starting a rank
refused() {
    local says=$1 rc
    shift
    trib perf "$@" >"$tmp/refused.out" 2>&1
    rc=$?
    [ $rc = 2 ] || fail "trib perf $* ended with $rc, expected 2"
    has "$says" "$tmp/refused.out"
    has_not 'Ranks on hosts' "$tmp/refused.out"
}
refused '-r: found 8, expected a rank below 8' reduce -r 8
refused 'COLLECTIVE: found "all_together", expected one of all_reduce, reduce' all_together
refused 'found chain, which all_gather does not have, expected ring' all_gather --algo ring,chain
refused 'found nvls, which these 8 ranks' all_reduce --algo nvls
refused '-k: found 9, expected at most the 8 ranks' alltoall -k 9
refused 'error: found nothing to measure' broadcast --error
trib down >/dev/null || fail "no end"

# GPUs of five ports each, one for every NVSwitch plane and one for the NIC
perf_ok node "$conf/h100-node.conf" all_reduce -g 4 --algo ring,direct -b 64K -e 64K -n 1 -w 0 --max-wall 5
has 'Ranks on hosts: 0:n0g0 1:n0g1' "$tmp/node.out"
