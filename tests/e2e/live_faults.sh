#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Rates and latencies of links, and fault plans, on a fabric that is up: all switch processes take a change or none does, each event is
# said, in order, and what a fabric that is up cannot do is refused before anything is changed.
. "$(dirname "$0")/lib.sh"

link() { trib link "$@" >"$tmp/link.out" 2>&1; }
unchanged() { link || fail "trib link: $(cat "$tmp/link.out")"; has 'no link of leaf-spine-8-procs is down or has faults' "$tmp/link.out"; }

trib up "$conf/leaf-spine-8-procs.conf" --dilation 100 >/dev/null || fail "no fabric"
link leaf0-spine0 rate=100Gb/s latency=1us loss=1% || fail "a rate: $(cat "$tmp/link.out")"
has '^leaf0:4 to spine0:0: rate=100Gb/s latency=1us loss=0.01;' "$tmp/link.out"
has '^spine0:0 to leaf0:4: rate=100Gb/s latency=1us loss=0.01;' "$tmp/link.out"
trib status --links >"$tmp/status.out"
has '^ +leaf0 +spine0 +rate=100Gb/s latency=1us loss=0.01 ' "$tmp/status.out"
link leaf0-spine0 rate=200Gb/s && fail "taken: 1us at 200Gb/s"
has "latency: found 1us, expected at most 600ns at 200Gb/s, or PFC's headroom is too small" "$tmp/link.out"
link leaf0-spine0 clear || fail "clear: $(cat "$tmp/link.out")"
unchanged
link all rate=401Gb/s && fail "taken: 401Gb/s"
unchanged

cat >"$tmp/bad.conf" <<'END'
faults = ( { link = "all"; rate = "200Gb/s"; },
           { at = "1ms"; host = "h6"; slow = 3; } );
END
trib faults "$tmp/bad.conf" >"$tmp/bad.out" 2>&1 && fail "taken: a slow host"
has 'bad.conf:2: found a slow host' "$tmp/bad.out"
unchanged
cat >"$tmp/plan.conf" <<'END'
faults = ( { link = "all"; rate = "200Gb/s"; },
           { at = "1ms"; node = "spine1"; restart = "1ms"; },
           { at = "3ms"; link = "leaf0-spine0"; down = true; } );
END
trib faults "$tmp/plan.conf" >"$tmp/plan.out" 2>&1 || fail "trib faults: $(cat "$tmp/plan.out")"
[ "$(awk '/late\)$/ { print $1, $2 }' "$tmp/plan.out" | paste -sd' ')" = "0ns all,rate=200Gb/s 1ms spine1,down 1ms spine1,forget 2ms spine1,up 3ms leaf0:4-spine0:0,down" ] ||
    fail "said: $(cat "$tmp/plan.out")"
has '^# 5 of 5 changes of .*plan.conf, at most .* of fabric time late, at dilation 100$' "$tmp/plan.out"
link || fail "trib link"
has '^leaf0:4-spine0:0: down rate=200Gb/s$' "$tmp/link.out"
[ "$(grep -c 'rate=200Gb/s$' "$tmp/link.out")" = 12 ] || fail "changed: $(cat "$tmp/link.out")"
link all up clear || fail "all up clear"
unchanged
trib down >/dev/null || fail "trib down"
