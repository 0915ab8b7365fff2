#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Wireshark decodes every message of every protocol with wireshark/tributary.lua, names and numbers as in the code; captures with
# flipped bits, cut frames and missing JOINs do not stop it.
# tier: thirdparty
# clock: virtual
. "$(dirname "$0")/lib.sh"
command -v tshark >/dev/null || skip "no tshark"
lua=$root/wireshark/tributary.lua

shark() { tshark -X "lua_script:$lua" "$@" 2>"$tmp/tshark.err" || fail "tshark $*: $(cat "$tmp/tshark.err")"; }
capture() { # capture NAME CONF ARG...
    trib sim "${@:2}" -b 64K -e 64K -n 1 -w 0 --place out --trace "$tmp/$1.pcapng" >"$tmp/sim.out" 2>&1 || fail "trib sim ${*:2}: $(cat "$tmp/sim.out")"
}
# Messages are what UD SENDs and RC SENDs carry; READs and WRITEs of memory have none.
messages='(infiniband.bth.opcode == 100 || infiniband.bth.opcode in {0, 1, 2, 4})'
all_decoded() { # all_decoded NAME
    shark -r "$tmp/$1.pcapng" -Y "$messages && !(trib || tribproto || tribrank)" >"$tmp/undecoded.out"
    has_not . "$tmp/undecoded.out"
    shark -r "$tmp/$1.pcapng" -Y '_ws.malformed || _ws.lua.error' >"$tmp/malformed.out"
    has_not . "$tmp/malformed.out"
    shark -r "$tmp/$1.pcapng" >"$tmp/$1.out"
}
count() { # count NAME FILTER
    shark -r "$tmp/$1.pcapng" -Y "$2" -T fields -e frame.number | grep -c .
}

# Names are the code's, in its order.
names() { sed -n "/^local $1 = {/,/^}/p; /^local $1 = {.*}/q" "$lua" | grep -o '"[^"]*"' | tr -d '"'; }
same() { diff <(names "$1") - >"$tmp/names.out" || fail "$1 of tributary.lua differ from $2: $(cat "$tmp/names.out")"; }
sed -n '/define AGG_STATUS/,/^enum/s/.*X(.*, "\(.*\)").*/\1/p' "$root/aggregation/proto.h" | same STATUS aggregation/proto.h
sed -n 's/^ *\[DT_[A-Z0-9_]*\] = {"\([a-z0-9_]*\)".*/\1/p' "$root/aggregation/dtype.c" | same DTYPES aggregation/dtype.c
sed -n '/redops\[OP_COUNT\]/,/;/p' "$root/aggregation/dtype.c" | grep -o '"[^"]*"' | tr -d '"' | same OPS aggregation/dtype.c
sed -n '/^enum agg_type/,/^}/s/^ *AGG_\([A-Z_]*\).*/\1/p' "$root/aggregation/proto.h" | same TYPES aggregation/proto.h

capture sharp leaf-spine-8.conf --algo sharp
all_decoded sharp
has ' JOIN: group 1, tree 0, member 0, asks for [0-9]+ slots' "$tmp/sharp.out"
has ' JOIN_REPLY: group 1, tree 1, child 0, [0-9]+ slots' "$tmp/sharp.out"
has ' DATA: group 1, all-reduce 0, sum of float, slot 0, bytes 0 \+ 32736 of 32768' "$tmp/sharp.out"
has ' RESULT: group 1, all-reduce 0, sum of float, slot 7, continued' "$tmp/sharp.out"
# 32 KiB of each tree are 9 slots; 8 hosts and 2 leaves of each have an edge, each way
[ "$(count sharp 'trib.data_type || trib.header_frame')" = $((9 * 2 * (8 + 2) * 2)) ] || fail "slots of the edges"
[ "$(count sharp '(trib.data_type || trib.header_frame) && !(trib.slot && trib.group && trib.child)')" = 0 ] || fail "data without slot or group"
shark -r "$tmp/sharp.pcapng" -Y 'trib.type == 1 && ip.src == 10.0.0.1' -V >"$tmp/join.out"
has 'Members: 0-7' "$tmp/join.out"

for algo in switchml atp ps; do
    capture $algo leaf-spine-8.conf --algo $algo
    all_decoded $algo
    has " ${algo^^} [0-9]+ part 0, job [0-9]+, from rank [0-9]+, [0-9]+ bytes of data" "$tmp/$algo.out"
    has " ${algo^^} [0-9]+ result 0, job" "$tmp/$algo.out"
done
has ' JOIN \(switchml\): ' "$tmp/switchml.out"
capture nvls h100-node.conf --algo nvls
all_decoded nvls
has ' MM_BIND_REPLY: group [0-9]+, member 0 of 8' "$tmp/nvls.out"
has ' ld_reduce area 0, offset 0, [0-9]+ bytes, sum of float' "$tmp/nvls.out"
has ' store area 1, offset ' "$tmp/nvls.out"
[ "$(count nvls 'infiniband.bth.opcode == 12 && !trib && infiniband.reth.va >= 0x4000000000000000')" = 0 ] || fail "READs of a region"

# A refusal in words.
sed 's/groups = 64/groups = 1/' "$conf/leaf-spine-8.conf" >"$tmp/one.conf"
cat >"$tmp/two.jobs" <<'EOF'
jobs = ( { name = "a"; hosts = "h0:h6:2"; algorithm = "sharp"; size = "64KiB"; trees = [ 0 ]; },
         { name = "b"; hosts = "h1:h7:2"; algorithm = "sharp"; size = "64KiB"; trees = [ 0 ]; policy = [ "ring" ]; } );
EOF
trib sim "$tmp/one.conf" --jobs "$tmp/two.jobs" --trace "$tmp/refused.pcapng" >"$tmp/sim.out" 2>&1 || fail "trib sim: $(cat "$tmp/sim.out")"
all_decoded refused
has ' JOIN_REPLY: .*: over quota: groups' "$tmp/refused.out"

# Without its JOINs, with flipped bits, cut.
for name in sharp switchml atp ps nvls; do
    editcap -r "$tmp/$name.pcapng" "$tmp/late.pcapng" 200-900 2>/dev/null || fail "editcap"
    editcap -s 150 "$tmp/$name.pcapng" "$tmp/short.pcapng" 2>/dev/null || fail "editcap"
    editcap -E 0.02 -o 42 --seed 7 "$tmp/$name.pcapng" "$tmp/flipped.pcapng" 2>/dev/null || fail "editcap"
    for f in late short flipped; do
        shark -r "$tmp/$f.pcapng" -V >"$tmp/$f.txt"
        [ $f = short ] || has '^Tributary' "$tmp/$f.txt"
        has_not 'Lua Error' "$tmp/$f.txt"
    done
done
