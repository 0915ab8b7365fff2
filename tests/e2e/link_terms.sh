#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# clock: virtual
# Rate and latency of links in fault plans: an operation takes the time of a fabric whose conf has them, and what buffers are not made
# for is refused by line.
. "$(dirname "$0")/lib.sh"

us() { # us CONF PLAN: of an all-reduce in place
    echo "faults = ( $2 );" >"$tmp/plan.conf"
    "$root/scripts/trib" sim "$1" all_reduce --algo ring -b 1M -e 1M -n 2 -w 0 --faults "$tmp/plan.conf" >"$tmp/out" 2>&1 || return
    awk '$1 == 1048576 { t = $7 } END { print t }' "$tmp/out"
}
refused() { # refused PLAN WHY
    us "$conf/leaf-spine-8.conf" "$1" && fail "taken: $1"
    grep -qF -- "$2" "$tmp/out" || fail "$1: $(cat "$tmp/out")"
}
sed 's,400Gb/s,100Gb/s,g' "$conf/leaf-spine-8.conf" >"$tmp/slow.conf"
none='{ at = "1s"; link = "all"; loss = 0.0; }'
want=$(us "$tmp/slow.conf" "$none") got=$(us "$conf/leaf-spine-8.conf" '{ link = "all"; rate = "100Gb/s"; }')
awk -v a="$want" -v b="$got" 'BEGIN { exit !(a > 0 && b / a > 0.99 && b / a < 1.01) }' || fail "100Gb/s: $got us by a plan, $want by the conf"
fast=$(us "$conf/leaf-spine-8.conf" "$none")
got=$(us "$conf/leaf-spine-8.conf" '{ link = "all"; rate = "100Gb/s"; }, { at = "1ns"; link = "all"; clear = true; }')
awk -v a="$fast" -v b="$got" 'BEGIN { exit !(b / a > 0.99 && b / a < 1.05) }' || fail "cleared: $got us, $fast without"
refused '{ link = "h0-leaf0"; rate = "0b/s"; }' 'plan.conf:1: rate: found "0b/s"'
refused '{ link = "h0-leaf0"; latency = "10us"; }' "plan.conf:1: latency: found 10us, expected at most 300ns at 400Gb/s"
refused '{ link = "all"; rate = "500Gb/s"; }' "plan.conf:1: rate: found 500Gb/s, expected at most the conf's 400Gb/s"
echo "$fast us, at a quarter of the rate $want"
