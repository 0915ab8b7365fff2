#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A training step's times against those of the same groups, all at once, by --jobs, within 3 %: all-to-all (directly and in two hops),
# pipeline and all-gather, of groups that are contiguous and strided, on leaves and on rails that are oversubscribed. RATIOS="1 2 4 8":
# by so much (4).
# tier: integration
# clock: virtual
. "$(dirname "$0")/lib.sh"
command -v jq >/dev/null || skip "no jq"

model='name = "m"; device = "h100"; model = { layers = 2; d_model = 256; d_ff = 1024; heads = 8; vocabulary = 1024; experts = 16; experts_per_token = 1; expert_d_ff = 512; };
training = { type = "bf16"; sequence = 512; batch_tokens = 32768; utilisation = "40%"; };'

leaves() { # leaves RATIO [ECMP]: eight leaves of four hosts
    echo "mtu = 4096; ecmp = \"${2:-balanced}\"; leaf_spine = { leaves = 8; spines = 4; hosts_per_leaf = 4;
        host_link = { rate = \"400Gb/s\"; latency = \"300ns\"; }; spine_link = { rate = \"$((400 / $1))Gb/s\"; latency = \"300ns\"; }; };"
}
rails() { # rails RATIO: eight nodes of four GPUs, a leaf for each rail
    echo "mtu = 4096; ecmp = \"balanced\"; gpu_nodes = { nodes = 8; gpus = 4; planes = ( 9, 9 ); nvlink = { rate = \"25GB/s\"; latency = \"300ns\"; };
        nic = { rate = \"400Gb/s\"; latency = \"300ns\"; }; };
        rails = { leaves = 4; spines = 4; spine_link = { rate = \"$((800 / $1))Gb/s\"; latency = \"300ns\"; }; };"
}

# The groups of a collective of the step, as jobs: of a pipeline pairs of neighbouring stages, from an even one on or an odd one.
jobs_of() { # jobs_of COLLECTIVE.json TURN HOST...
    local c=$1 turn=$2 degree stride algo size coll first=() i k n=0 h
    shift 2
    local host=("$@")
    degree=$(jq .group "$c") stride=$(jq .stride "$c") algo=$(jq -r .hosts.algo "$c") size=$(jq .size_bytes "$c") coll=$(jq -r .collective "$c")
    for ((i = 0; i < ${#host[@]}; i++)); do
        k=$((i / stride % degree))
        if [ "$coll" = sendrecv ]; then ((k + 1 < degree && k % 2 == turn)) && first+=("$i"); else ((k == 0)) && first+=("$i"); fi
    done
    [ "$coll" != sendrecv ] || degree=2
    echo 'jobs = ('
    for i in "${first[@]}"; do
        h=""
        for ((k = 0; k < degree; k++)); do h+="${h:+, }\"${host[i + k * stride]}\""; done
        echo "$([ $n = 0 ] || echo ,){ name = \"g$i\"; hosts = [ $h ]; collective = \"$coll\"; algorithm = \"$algo\"; size = \"$size\"; type = \"bfloat16\"; repeat = ${repeat:-2}; }"
        n=$((n + 1))
    done
    echo ');'
}

compare() { # compare NAME CONF PARALLEL WHICH: of the step's collectives the one that jq's WHICH selects
    local name=$1 conf=$2 host turn best=0 t
    printf '%s\nparallel = { %s };\n' "$model" "$3" >"$tmp/w.conf"
    trib sim "$conf" --workload "$tmp/w.conf" -J "$tmp/s.json" >"$tmp/s.out" 2>&1 || fail "$name: $(cat "$tmp/s.out")"
    jq "[.collectives[] | select($4)][0]" "$tmp/s.json" >"$tmp/c.json"
    mapfile -t host < <(for i in $(seq 0 31); do [[ $conf == *rails* ]] && echo "n$((i / 4))g$((i % 4))" || echo "h$i"; done)
    for turn in 0 1; do
        jobs_of "$tmp/c.json" $turn "${host[@]}" >"$tmp/jobs.conf"
        grep -q name "$tmp/jobs.conf" || continue
        trib sim "$conf" --jobs "$tmp/jobs.conf" --payload none -J "$tmp/j.json" >"$tmp/j.out" 2>&1 || fail "$name, jobs: $(cat "$tmp/j.out")"
        t=$(jq '[.jobs[].time_us] | max' "$tmp/j.json")
        best=$(jq -n "[$best, $t] | max")
        [ "$(jq -r .collective "$tmp/c.json")" = sendrecv ] || break
    done
    printf '%-40s %s: a step %.2f us, jobs %.2f us, bound %.2f us, groups %s\n' "$name" "$(jq -r .hosts.algo "$tmp/c.json")" \
        "$(jq .hosts.time_us "$tmp/c.json")" "$best" "$(jq .hosts.bound_us "$tmp/c.json")" "$(jq .simulated_groups "$tmp/c.json")"
    jq -e --argjson t "$best" '(.hosts.time_us / $t - 1 | fabs) < 0.03 and .hosts.time_us >= .hosts.bound_us' "$tmp/c.json" >/dev/null ||
        fail "$name: $(cat "$tmp/c.json" "$tmp/j.out")"
    at[$name]=$(jq .hosts.time_us "$tmp/c.json")
}

declare -A at
for r in ${RATIOS:-4}; do
    leaves "$r" >"$tmp/leaves$r.conf"
    rails "$r" >"$tmp/rails$r.conf"
    for f in leaves rails; do
        c=$tmp/$f$r.conf
        compare "$f $r:1 alltoall contiguous" "$c" 'dp = 32; ep = 8; zero = 1;' '.parallel == "expert"'
        compare "$f $r:1 alltoall strided" "$c" 'pp = 2; dp = 16; ep = 8; zero = 1; order = [ "pp", "tp", "dp" ];' '.parallel == "expert"'
        compare "$f $r:1 pipeline strided" "$c" 'pp = 2; dp = 16; ep = 16; zero = 1;' '.parallel == "pipeline"'
        compare "$f $r:1 all_gather strided" "$c" 'tp = 4; dp = 8; ep = 4; zero = 1;' '.collective == "all_gather" and (.experts | not)'
    done
    compare "rails $r:1 pxn" "$tmp/rails$r.conf" 'dp = 32; ep = 8; zero = 1; algorithm = { ep = "pxn"; };' '.parallel == "expert" and .hosts.algo == "pxn"'
    jq -n --argjson d "${at[rails $r:1 alltoall contiguous]}" --argjson p "${at[rails $r:1 pxn]}" --argjson r "$r" '$r < 2 or $d > 1.5 * $p' | grep -q true ||
        fail "$r:1: directly ${at[rails $r:1 alltoall contiguous]} us, by pxn ${at[rails $r:1 pxn]} us"
done

# paths by hash: of the same queue pairs in both; operations overlap where hosts wait for different ones, so one alone
repeat=1
leaves 4 hash >"$tmp/hash.conf"
compare "hash 4:1 alltoall contiguous" "$tmp/hash.conf" 'dp = 32; ep = 8; zero = 1;' '.parallel == "expert"'
compare "hash 4:1 alltoall strided" "$tmp/hash.conf" 'pp = 2; dp = 16; ep = 8; zero = 1; order = [ "pp", "tp", "dp" ];' '.parallel == "expert"'
compare "hash 4:1 pipeline strided" "$tmp/hash.conf" 'pp = 2; dp = 16; ep = 16; zero = 1;' '.parallel == "pipeline"'
compare "hash 4:1 all_gather strided" "$tmp/hash.conf" 'tp = 4; dp = 8; ep = 4; zero = 1;' '.collective == "all_gather" and (.experts | not)'

refuses() { # refuses TEXT CONF ALGORITHM
    printf '%s\nparallel = { dp = 32; ep = 8; zero = 1; algorithm = %s; };\n' "$model" "$3" >"$tmp/w.conf"
    trib sim "$2" --workload "$tmp/w.conf" >"$tmp/r.out" 2>&1
    [ $? = 2 ] || fail "algorithm = $3: expected exit code 2: $(cat "$tmp/r.out")"
    tr -s '\n ' ' ' <"$tmp/r.out" | grep -Eq -- "$1" || fail "algorithm = $3: expected /$1/: $(cat "$tmp/r.out")"
}
leaves 1 >"$tmp/l.conf"
refuses 'w.conf:3: algorithm of ep: found "pnx", expected one of alltoall: pairwise direct pxn' "$tmp/l.conf" '{ ep = "pnx"; }'
refuses 'algorithm of dp: found "pxn", expected one of reduce_scatter: ring' "$tmp/l.conf" '{ dp = "pxn"; }'
refuses 'algorithm: found pxn for expert parallel groups of 8 GPUs' "$tmp/l.conf" '{ ep = "pxn"; }'
refuses 'found unknown key "exp"|unknown key exp' "$tmp/l.conf" '{ exp = "pxn"; }'
refuses 'expected a group, as algorithm' "$tmp/l.conf" '"pxn"'

# more groups at a time than the switches have room for: said, and counted
printf '%s\nparallel = { tp = 4; dp = 8; ep = 4; zero = 0; algorithm = { dp = "sharp"; }; };\n' "$model" >"$tmp/w.conf"
{ leaves 4; echo 'reduce = { groups = 3; slots = 16384; window = 256; };'; } >"$tmp/few.conf"
trib sim "$tmp/few.conf" --workload "$tmp/w.conf" -J "$tmp/few.json" >"$tmp/few.out" 2>&1 || fail "few groups: $(cat "$tmp/few.out")"
tr -s '\n# ' ' ' <"$tmp/few.out" | grep -Eq 'data all_reduce by sharp: switches refused [1-3] of the 4 groups that run together, which fell back: .*over quota' ||
    fail "few groups: $(cat "$tmp/few.out")"
jq -e '.collectives[] | select(.parallel == "data" and (.experts | not)) | .switches.fell_back_groups > 0 and .hosts.fell_back_groups == 0' "$tmp/few.json" >/dev/null ||
    fail "few groups: $(cat "$tmp/few.json")"
