#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# chaos_mutations.sh: breaks the engines on purpose, one line at a time in a copy of the tree, and expects chaos to find each,
# or the unit test that is named. SEEDS (default 1000) limits the seeds of chaos.
set -u
cd "$(dirname "$0")/.."
root=$PWD build=${BUILD:-build} seeds=${SEEDS:-1000}
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
missed=0

# Uses the existing build, so that only files that a mutation touches are compiled.
git ls-files | tar -cf - -T - | tar -xf - -C "$copy" || exit 1
cp -a "$build" "$copy/build" || exit 1
cd "$copy" || exit 1

# found: the first seed that fails, or at which the simulation dies; empty: none
found() {
    timeout 600 build/trib-sim --chaos "1-$seeds" >out 2>&1 &
    local pid=$! line
    while ! line=$(grep -m 1 -E 'FAILED' out); do
        kill -0 $pid 2>/dev/null || break
        sleep 0.1
    done
    kill $pid 2>/dev/null
    wait $pid 2>/dev/null
    line=${line:-$(grep -m 1 -E 'FAILED' out)}
    if [ -z "$line" ] && ! tail -n 1 out | grep -q ' seeds, '; then
        line="$(grep -E '^seed' out | tail -n 1): FAILED: dies"
    fi
    [ -n "$line" ] && echo "$line"
}

# mutate NAME FILE LINE REPLACEMENT [TEST]: LINE is there exactly once (fixed text, blanks before it left out);
# found by build/tests/TEST if given, else by chaos
mutate() {
    local name=$1 file=$2 line=$3 instead=$4 test=${5-} got
    [ "$(grep -cF -- "$line" "$file")" = 1 ] || { echo "$name: found no single \"$line\" in $file" >&2; missed=$((missed + 1)); return; }
    LINE=$line INSTEAD=$instead awk '{ i = index($0, ENVIRON["LINE"]) }
        i { $0 = substr($0, 1, i - 1) ENVIRON["INSTEAD"] substr($0, i + length(ENVIRON["LINE"])) } { print }' "$file" >mutant
    cat mutant >"$file"
    if ! make -s WARN= BUILD=build "build/${test:+tests/}${test:-trib-sim}" >log 2>&1; then
        echo "$name: does not build: $(tail -n 3 log)" >&2
        missed=$((missed + 1))
    elif [ -n "$test" ]; then
        if timeout 60 "build/tests/$test" >out 2>&1; then
            printf '%-44s NOT FOUND by %s\n' "$name" "$test"
            missed=$((missed + 1))
        else
            got=$(grep -m 1 -E '^\[  FAILED  \] [a-z]' out)
            printf '%-44s found by %s%s\n' "$name" "$test" "${got:+: ${got#\[  FAILED  \] }}"
        fi
    elif got=$(found) && [ -n "$got" ]; then
        printf '%-44s found by seed %-4s %s\n' "$name" "$(echo "$got" | grep -oE '^seed [0-9]+' | cut -c6-)" \
            "$(echo "$got" | sed 's/.*FAILED: //; s/ \[.*//' | cut -c1-110)"
    else
        printf '%-44s NOT FOUND by %s seeds\n' "$name" "$seeds"
        missed=$((missed + 1))
    fi
    cp "$root/$file" "$file"
}

mutate 'duplicates are taken for new packets' roce/responder.c '    if (ahead < 0) {' '    if (ahead < -PSN_HALF) {'
mutate 'a frame that was reduced is not freed' switch/reduce/slot.c 'if (in[i].m && in[i].m != out)' 'if (in[i].m && in[i].m != out && i)'
mutate 'frames of an aborted slot are not freed' switch/reduce/slot.c 'rte_pktmbuf_free(g->in[i].m);' ';'
mutate 'a member sends one slot beyond its window' host/coll/transport/agg.c 'a->slots_out + slots > a->window ||' 'a->slots_out + slots > a->window + 1 ||'
mutate 'the ring of slots is one too short' switch/reduce/slot.c 'if (++e->ring == g->window)' 'if (++e->ring >= g->window - 1)'
mutate 'one message more than receives' host/coll/transport/conn.c 'if (k->tx_posted >= limit) {' 'if (k->tx_posted > limit) {'
mutate 'retransmission forgets a packet' roce/requester.c '    q->nxt = q->una;' '    q->nxt = psn_add(q->una, psn_cmp(q->una, q->max) < 0);'
mutate 'a death is not told to the group' switch/reduce/control.c '                group_lost(g, e);' '                ;'
mutate 'the second group of a bucket is lost' switch/mcast.c '(i - home) % BUCKETS < (i' '(i - home) % BUCKETS <= (i' switch/test_mcast
mutate 'a group that moves up leaves no hole' switch/mcast.c '        hole = i;' '        ;' switch/test_mcast
mutate 'remembered paths ignore the destination' switch/fib.c ' || f->dest != h->dest ||' ' ||' switch/test_fib
mutate 'remembered paths ignore the source' switch/fib.c 'if (f->src_ip != k->src_ip || ' 'if (' switch/test_fib
mutate 'headroom is two frames less' switch/queue/pfc.c 'cfg->lag_ps, cfg->rate_bps) + 4 *' 'cfg->lag_ps, cfg->rate_bps) + 2 *' switch/queue/test_pfc
mutate 'a mark is written into a shared header' switch/queue/ecn.c '!RTE_MBUF_DIRECT(m) || rte' '!RTE_MBUF_DIRECT(m) && rte' switch/queue/test_ecn
mutate 'the last odd byte is not in the checksum' switch/igmp.c 'sum += (uint32_t)*p << 8;' ';' switch/test_mcast
mutate 'all queue pairs send from one port' roce/qp_modify.c 'return 0xc000 | (uint16_t)(h >> 50);' 'return 0xc000;' roce/test_rc
mutate 'an aborted group refuses others' switch/reduce/tombstone.c 'p->key == key && a->now' 'p->key == key || a->now' switch/reduce/test_control
mutate 'a repeated READY is not answered' switch/multimem/mm_control.c 'say_ready(e);' ';' switch/multimem/test_mm_control
mutate 'a window is larger than the slots left' switch/reduce/quota.c 'RTE_MAX(slots / share, least)' 'RTE_MAX(slots / share + 1, least)' switch/reduce/test_join
mutate 'a dropped tree is not left' host/coll/transport/fit.c '        join_leave_one(c, a);' '        ;' sim/test_slots
echo "$missed not found"
[ $missed = 0 ]
