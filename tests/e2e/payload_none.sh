#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# clock: virtual
# Data or lengths: the same rows, fallbacks, congestion and exit code, to the last digit, whatever a fault plan does to the run.
. "$(dirname "$0")/lib.sh"

n=0
fell=0
# both CONF COLLECTIVE ALGORITHM SIZE FAULT
both() {
    local payload
    echo "faults = ( $5 );" >"$tmp/plan.conf"
    for payload in data none; do
        trib sim "$1" "$2" --algo "$3" -b "$4" -e "$4" -n 3 -w 0 -c 0 --faults "$tmp/plan.conf" --payload $payload >"$tmp/$payload" 2>&1
        echo "exit code $?" >>"$tmp/$payload"
        sed -i 's/^# virtual time, seed 1, .*/#/; s/ simulated in .* s: \([0-9]* events\).*frames on links.*/ \1/' "$tmp/$payload"
    done
    cmp "$tmp/data" "$tmp/none" || fail "$*: $(diff "$tmp/data" "$tmp/none" | head -n 6)"
    has 'exit code 0' "$tmp/data"
    n=$((n + 1))
    fell=$((fell + $(grep -c 'fell back' "$tmp/data")))
}

restart='{ at = "20us"; node = "leaf0"; restart = "50us"; }'
both leaf-spine-8 all_reduce sharp 1M "$restart"
for c in reduce broadcast reduce_scatter all_gather; do
    both leaf-spine-8 $c sharp 256K "$restart"
done
both leaf-spine-8 all_reduce sharp 1M '{ at = "30us"; node = "spine0"; down = true; }'
both rail-2x4 all_reduce hier_sharp,nvls_sharp 256K "$restart"
both rail-2x4 all_reduce nvls_sharp 256K '{ at = "10us"; node = "n0s0"; restart = "50us"; }'
[ "$fell" -ge 14 ] || fail "$fell runs of $n plans fell back, expected 14: the faults come too late"
both leaf-spine-8 all_reduce sharp,ring 256K '{ link = "leaf0-spine0"; loss = "1%"; corrupt = 0.01; dup = 0.01; reorder = 0.01; }'
both leaf-spine-8 alltoall direct 256K '{ at = "5us"; link = "leaf0-spine0"; down = true; }, { at = "40us"; link = "leaf0-spine0"; up = true; }'
both leaf-spine-8 all_reduce sharp 256K '{ an = "spine1"; mbufs = 64; }, { host = "h3"; slow = 4; }'
echo "$n fault plans: data and lengths are one, $fell runs fell back"
