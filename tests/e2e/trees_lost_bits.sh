#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# clock: virtual
# Sums of floats by the trees that are left are in their order of children, and rows expect that one: a tree that is lost has another.
. "$(dirname "$0")/lib.sh"

cat >"$tmp/two.conf" <<'END'
mtu = 4096;
ecmp = "hash";
reduce = { groups = 2; slots = 16384; window = 256; };
nodes = ( { name = ( "h0", "h1", "h2", "h3" ); kind = "host"; }, { name = ( "leaf0", "leaf1" ); role = "leaf"; }, { name = ( "spine0" ); role = "spine"; } );
links = ( { a = "h0"; b = "leaf1"; rate = "800Gb/s"; latency = "1us"; },
 { a = "h0"; b = "leaf0"; rate = "400Gb/s"; latency = "300ns"; },
 { a = "h0"; b = "leaf0"; rate = "400Gb/s"; latency = "300ns"; },
 { a = "h0"; b = "leaf1"; rate = "10Gb/s"; latency = "300ns"; },
 { a = "h1"; b = "leaf0"; rate = "400Gb/s"; latency = "1us"; },
 { a = "h1"; b = "leaf0"; rate = "200Gb/s"; latency = "300ns"; },
 { a = "h2"; b = "leaf1"; rate = "200Gb/s"; latency = "300ns"; },
 { a = "h2"; b = "leaf0"; rate = "50Gb/s"; latency = "300ns"; },
 { a = "h3"; b = "leaf0"; rate = "800Gb/s"; latency = "1us"; },
 { a = "h3"; b = "leaf0"; rate = "10Gb/s"; latency = "300ns"; },
 { a = "h3"; b = "leaf1"; rate = "10Gb/s"; latency = "300ns"; },
 { a = "leaf0"; b = "spine0"; rate = "40Gb/s"; latency = "300ns"; cables = 1; },
 { a = "leaf1"; b = "spine0"; rate = "40Gb/s"; latency = "300ns"; cables = 1; } );
END
cat >"$tmp/cut.conf" <<'END'
faults = ( { at = "1us"; link = "leaf1-spine0"; down = true; }, { at = "4us"; link = "leaf1-spine0"; up = true; } );
END
for how in 'in 1' 'in 2' 'both 2' 'both 5'; do
    read -r place n <<<"$how"
    trib sim "$tmp/two.conf" all_reduce --algo sharp -g 3 -b 64K -e 64K -n $n -w 0 --place $place --faults "$tmp/cut.conf" >"$tmp/$place.out" 2>&1 ||
        fail "$place: $(cat "$tmp/$place.out")"
    grep -q "of 2 trees" "$tmp/$place.out" || fail "no tree was lost: $(cat "$tmp/$place.out")"
done
