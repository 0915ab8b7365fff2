#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What theory says, from the command line: trib model's tables and JSON, and what it refuses.
# clock: virtual
. "$(dirname "$0")/lib.sh"

refuses() { # refuses CODE TEXT ARG...
    local code=$1 text=$2
    shift 2
    trib model "$@" >"$tmp/refuse.out" 2>&1
    local rc=$?
    [ $rc = "$code" ] || fail "trib model $*: exit code $rc, expected $code"
    has "$text" "$tmp/refuse.out"
}

cd "$root" || exit 1
trib model h100-superpod-1024.conf --json "$tmp/m.json" >"$tmp/m.out" || fail "superpod"
has '^  leaf +4 +256 +32 +400 +413 +12800 +yes' "$tmp/m.out"
has '^  all_reduce +rings +268435456 +1340.87 +200.20 +400.00 +2046 +leaf$' "$tmp/m.out"
has '^  all_reduce +nvls_sharp ' "$tmp/m.out"
has '^  alltoall +direct ' "$tmp/m.out"
jq -e '
    .fabric == "h100-superpod-1024" and (.levels | length) == 3 and
    ([.results[] | select(.collective == "all_reduce" and .algorithm == "rings")][0] |
        .binds == "leaf" and (.time_s - 1340.87e-6 | fabs) < 1e-8 and (.level_s | length) == 3)' "$tmp/m.json" >/dev/null ||
    fail "JSON of the superpod"

# F26, F33: what crosses the switches of a node, and the leaf level of two units
trib model h100-superpod-1024.conf all_gather -b 8MB -g 512 >"$tmp/y.out" || fail "bytes"
has "^  all_reduce nvls, a node's switches +8000000 +8000000 +64000000 +64000000" "$tmp/y.out"
has "^  the same, its own part crosses too +9000000 " "$tmp/y.out"
has "^  all_gather hier, a node's switches +1000000 +7000000 +8000000 +56000000" "$tmp/y.out"
has '^  all_gather hier, the leaf level +15625 +984375 +8000000 +504000000' "$tmp/y.out"

# sizes as for trib perf, one collective, some of the GPUs, shards over neighbours, few of the shards
trib model h100-su.conf all_gather -b 64K -e 4M -f 8 -g 64 -y 4 >"$tmp/s.out" || fail "sizes"
[ "$(grep -c '^  all_gather  ' "$tmp/s.out")" = 9 ] || fail "expected 3 sizes of 3 algorithms:"$'\n'"$(cat "$tmp/s.out")"
trib model h100-node.conf alltoall -k 2 >"$tmp/k.out" || fail "sparse"
has '^  alltoall +drawn ' "$tmp/k.out"

# all-to-all over rails that too few spines join, by formula and by packets
cat >"$tmp/rails.conf" <<'EOF'
mtu = 4096; ecmp = "balanced";
gpu_nodes = { nodes = 4; gpus = 4; planes = ( 5, 4, 4, 5 ); nvlink = { rate = "25GB/s"; latency = "300ns"; };
    nic = { rate = "400Gb/s"; latency = "300ns"; }; };
rails = { leaves = 4; spines = 1; spine_link = { rate = "400Gb/s"; latency = "300ns"; }; };
EOF
# three tiers: rings and sums of rails meet on the links between spines and cores
cat >"$tmp/tiers.conf" <<'EOF'
mtu = 4096; ecmp = "balanced";
gpu_nodes = { nodes = 8; gpus = 2; planes = ( 5, 4, 4, 5 ); nvlink = { rate = "25GB/s"; latency = "300ns"; };
    nic = { rate = "400Gb/s"; latency = "300ns"; }; };
rails = { leaves = 2; spines = 2; unit = 2; pods = 2; cores = 1;
    spine_link = { rate = "400Gb/s"; latency = "300ns"; }; core_link = { rate = "400Gb/s"; latency = "300ns"; }; };
reduce = { groups = 64; slots = 16384; window = 256; };
EOF
# as many cores as rails: a tree for each
sed 's/cores = 1/cores = 2/' "$tmp/tiers.conf" >"$tmp/cores.conf"
cp "$conf/leaf-spine-8.conf" "$conf/rail-2x8.conf" "$conf/h100-node.conf" "$tmp"
# The key of trib model, and the least and the most that it may be of the simulated time
while read -r fabric what algo size binds key least most; do
    trib model "$tmp/$fabric.conf" "$what" -b "$size" -J "$tmp/f.json" >/dev/null || fail "$fabric: trib model $what"
    trib sim "$tmp/$fabric.conf" "$what" --algo "$algo" -b "$size" -n 1 -w 1 --place out --payload none -J "$tmp/p.json" >"$tmp/p.out" 2>&1 ||
        fail "$fabric: trib sim $what: $(tail -n 3 "$tmp/p.out")"
    jq -e --slurpfile p "$tmp/p.json" --arg a "$algo" --arg b "$binds" --arg k "$key" --argjson least "$least" --argjson most "$most" \
        '[.results[] | select(.algorithm == $a)][0] | .binds == $b and (.[$k] * 1e6 / $p[0].results[0].time_us | . > $least and . < $most)' \
        "$tmp/f.json" >/dev/null || fail "$fabric, $what $algo $size: $(jq -c . "$tmp/f.json"), simulated $(jq .results[0].time_us "$tmp/p.json") us"
done <<'EOF'
rails alltoall direct 4M spine time_s 0.95 1
rails all_reduce ring 4M spine time_s 0.95 1
rails alltoall direct 64K spine wire_s 0.95 1.05
rails alltoall direct 1M spine wire_s 0.95 1.05
rails alltoall pxn 64K leaf wire_s 0.95 1.05
rails alltoall pxn 1M leaf wire_s 0.95 1.05
tiers all_reduce rings 8M core time_s 0.95 1
tiers all_reduce hier 8M core time_s 0.92 1
tiers all_reduce hier_sharp 8M core time_s 0.92 1
cores all_reduce hier_sharp 8M leaf time_s 0.92 1
tiers alltoall direct 256K core wire_s 0.95 1.05
leaf-spine-8 all_reduce ring 64K leaf wire_s 0.95 1.05
leaf-spine-8 all_reduce ring 1M leaf wire_s 0.95 1.05
leaf-spine-8 all_reduce sharp 64K leaf wire_s 0.95 1.05
leaf-spine-8 all_gather ring 256K leaf wire_s 0.95 1.05
rail-2x8 all_reduce ring 64K leaf wire_s 0.95 1.05
rail-2x8 all_reduce ring 512K leaf wire_s 0.95 1.05
rail-2x8 all_reduce hier 64K nvswitch wire_s 0.95 1.05
rail-2x8 all_reduce hier 1M nvswitch wire_s 0.95 1.05
h100-node all_reduce ring 64K nvswitch wire_s 0.95 1.05
EOF

# auto takes what is predicted to be fastest, in two hops along the rails too
trib sim "$tmp/rails.conf" alltoall --algo auto -b 1M -n 1 -w 0 --place out --payload none >"$tmp/auto.out" 2>&1 || fail "auto: $(cat "$tmp/auto.out")"
has 'picked pxn: .* next best direct' "$tmp/auto.out"

# every workload on a fabric that it fits
for w in "$conf"/workloads/*.conf; do
    case "$w" in */llama3-405b.conf) continue ;; esac # 16,384 GPUs
    trib model h100-superpod-4096.conf --workload "$w" -J "$tmp/w.json" >"$tmp/w.out" || fail "$w"
    has '^  data +[0-9]+ .* tokens a GPU +(computing|communication)$' "$tmp/w.out"
    jq -e '.workload.rooflines | length > 0' "$tmp/w.json" >/dev/null || fail "JSON of $w"
done
trib model --bom 1024 --node h100 >"$tmp/b.out" || fail "bill of materials"
has '^  all switches +560 ' "$tmp/b.out"
has '^  spines +16 ' "$tmp/b.out"

refuses 2 'found no CONF, expected a conf file, or --bom GPUS'
refuses 2 '[-][-]bom: found it with .*h100-node.conf, expected --bom GPUS.*trib plan CONF' h100-node.conf --bom 16
refuses 2 '[-][-]bom: found it with --ranks, expected' --bom 16 -g 8
refuses 2 '[-][-]bom: found it with --workload, expected' --bom 16 --workload conf/workloads/llama3-70b.conf
refuses 2 '[-][-]node: found it without --bom, expected' h100-node.conf --node a100
refuses 2 '[-][-]workload: found it with a COLLECTIVE, expected' h100-su.conf alltoall --workload conf/workloads/llama3-70b.conf
refuses 2 '[-][-]workload: found it with --minbytes, expected' h100-su.conf -b 8M --workload conf/workloads/llama3-70b.conf
refuses 2 '[-]b: found "8388608", expected at most the 4194304 of -e' h100-node.conf -b 8M -e 4M
refuses 2 'COLLECTIVE: found "all_recude", expected one of all, all_reduce, .*; did you mean all_reduce' h100-node.conf all_recude
refuses 2 'found --bogus, expected an option of trib-model' h100-node.conf --bogus 1
refuses 2 '[-]b: found "big", expected a size' h100-node.conf -b big
refuses 2 '[-]g: found "9", expected at most' h100-node.conf -g 9
refuses 2 'found 12 GPUs .* expected numbers that fill the groups of 8 of level leaf' h100-su.conf -g 12
refuses 2 '[-]y: found "3 of 8 GPUs"' h100-node.conf -y 3
refuses 2 '[-][-]node: found "h101", expected one of a100, h100' --bom 8 --node h101
refuses 1 'expected the 4096 of workload llama3-70b' h100-su.conf --workload conf/workloads/llama3-70b.conf
refuses 1 'found 256 GPUs|found no|found unknown key' h100-su.conf --workload conf/h100-su.conf
has "^Usage: trib-model .* CONF" <(trib model -h)
