#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# clock: virtual
# A refusal reaches the user whole, however long the names in it are.
. "$(dirname "$0")/lib.sh"
cd "$tmp" || exit 1

hosts='"host-of-the-research-group-0", "host-of-the-research-group-1"'
switch=aggregation-switch-of-rack-17b
fabric() { # fabric KEYS ROLE
    cat <<END
name = "long";
nodes = ( { name = ( $hosts ); kind = "host"; }, { name = "$switch"; role = "${2:-leaf}"; $1 } );
links = ( { a = ( $hosts ); b = "$switch"; rate = "100Gb/s"; latency = "300ns"; } );
END
}
cat >two.conf <<'END'
jobs = (
    { name = "first"; hosts = "all"; algorithm = "sharp"; size = "1MiB"; repeat = 8; },
    { name = "falls"; hosts = "all"; algorithm = "sharp"; size = "64KiB"; start = "20us"; },
    { name = "ends";  hosts = "all"; algorithm = "sharp"; size = "64KiB"; start = "20us"; policy = [ "sharp" ]; }
);
END
says() { # says KEYS TEXT: both jobs that are refused say so
    fabric "reduce = { $1 };" >long.conf
    trib sim long.conf --jobs two.conf --wide >said.out 2>&1
    has "falls: by ring: JOIN refused.*: $switch $2\)" said.out
    has "ends: refused: rank [01]: JOIN refused.*: $switch $2\)" said.out
}
says 'groups = 1; slots = 1024; window = 256;' 'has 1 groups, at most 1 \(E_QUOTA_GROUPS'

# A protocol is added to a conf's `reduce`: `slots` beside `groups` stays SHARP's. Its limit, children of a switch, is named.
sed 's/^reduce = {/reduce = { protocol = "switchml";/' "$conf/single-switch-4.conf" >more.conf
trib sim more.conf --algo switchml,sharp -b 64K -e 64K -J more.json >more.out 2>&1 || fail "switchml beside quotas: $(cat more.out)"
jq -e '[.results[].wrong] | length > 0 and all(. == 0)' more.json >/dev/null || fail "$(cat more.out)"
leaves() { # leaves LEAVES HOSTS_PER_LEAF
    echo "mtu = 256; leaf_spine = { leaves = $1; spines = 1; hosts_per_leaf = $2; host_link = { rate = \"400Gb/s\"; latency = \"300ns\"; };
        spine_link = { rate = \"400Gb/s\"; latency = \"300ns\"; }; }; reduce = { };"
}
leaves 20 8 >many.conf
trib sim many.conf --algo switchml,atp,ps -d int32 -b 4K -e 4K -w 0 -n 1 --place out -J many.json >many.out 2>&1 || fail "160 ranks: $(tail -n 3 many.out)"
jq -e '[.results[].wrong] | length == 3 and all(. == 0)' many.json >/dev/null || fail "160 ranks: $(cat many.out)"
leaves 1 130 >wide.conf
trib sim wide.conf --algo atp -b 4K -e 4K >wide.out 2>&1 && fail "130 ranks of a switch"
has 'protocol atp does not start: found 130 ranks below a switch, expected at most 128' wide.out
