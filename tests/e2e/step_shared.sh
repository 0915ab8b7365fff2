#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A training step on 256 hosts whose leaves are oversubscribed: eight data-parallel groups run at once, by what they take in one
# simulation of all of them (--jobs) and by theory.
# tier: integration
# clock: virtual
. "$(dirname "$0")/lib.sh"
command -v jq >/dev/null || skip "no jq"

cat >"$tmp/w.conf" <<'CONF'
name = "small"; device = "h100";
model = { layers = 1; d_model = 1024; d_ff = 4096; heads = 8; vocabulary = 4096; };
training = { type = "bf16"; sequence = 512; batch_tokens = 16384; utilisation = "40%"; };
parallel = { tp = 8; dp = 32; zero = 0; microbatches = 1; };
CONF
for r in 1 8 32; do
    cat >"$tmp/$r.conf" <<CONF
mtu = 4096; ecmp = "balanced";
leaf_spine = { leaves = 16; spines = 4; hosts_per_leaf = 16; host_link = { rate = "400Gb/s"; latency = "300ns"; };
               spine_link = { rate = "$((1600 / r))Gb/s"; latency = "300ns"; }; };
CONF
    trib sim "$tmp/$r.conf" --workload "$tmp/w.conf" -J "$tmp/$r.json" >"$tmp/$r.out" 2>&1 || fail "$r:1: $(cat "$tmp/$r.out")"
    size=$(jq '.collectives[] | select(.parallel == "data") | .size_bytes / 1024' "$tmp/$r.json")
    algo=$(jq -r '.collectives[] | select(.parallel == "data") | .hosts.algo' "$tmp/$r.json")
    {
        echo 'jobs = ('
        for i in 0 1 2 3 4 5 6 7; do
            echo "$([ $i = 0 ] || echo ,){ name = \"g$i\"; hosts = \"h$i:h255:8\"; algorithm = \"$algo\"; size = \"${size}KiB\"; type = \"bfloat16\"; repeat = 1; }"
        done
        echo ');'
    } >"$tmp/jobs.conf"
    trib sim "$tmp/$r.conf" --jobs "$tmp/jobs.conf" --payload none -J "$tmp/jobs.json" >"$tmp/jobs.out" 2>&1 || fail "jobs, $r:1: $(cat "$tmp/jobs.out")"
    together=$(jq '[.jobs[].time_us] | max' "$tmp/jobs.json")
    jq -e --argjson t "$together" --argjson r "$r" '(.collectives[] | select(.parallel == "data")) as $c |
        ($c.hosts.time_us / $t - 1 | fabs) < 0.05 and $c.hosts.time_us >= $c.hosts.bound_us and
        $c.simulated_groups == (if $r > 1 then 8 else 1 end) and
        ($r == 1 or ($c.hosts.time_us / .theory_us.data - 1 | fabs) < 0.10)' "$tmp/$r.json" >/dev/null ||
        fail "$r:1, together $together us: $(cat "$tmp/$r.out" "$tmp/jobs.out")"
    echo "$r:1 $algo $(jq '.collectives[] | select(.parallel == "data") | .hosts.time_us' "$tmp/$r.json") us, together $together us, theory $(jq .theory_us.data "$tmp/$r.json") us"
done
