#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# One simulation, one result: one_result.sh [NAME...] (default: all cases). Each case, a fabric with a fault plan, runs on one, two and
# four threads and with a trace, each of it plain, with --counters, with --counters of some --links, and with --background-flow; table, JSON and
# what the program says must be the same bytes, but for what an option is there to add.
set -u
cd "$(dirname "$0")/.." || exit 1
sim=${BUILD:-build}/trib-sim
command -v jq >/dev/null || { echo "no jq"; exit 77; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
wanted=("$@") failed=0 cases=0 runs=0
rows='walk(if type == "object" then del(.links) else . end)' # without what --counters adds

# one OUT ARG...: what is to be the same. How long it took and how much memory, and how many frames are in a file, are of the machine
# and of the option; the JSON has what was asked for in its rows only.
one() {
    local out=$1
    shift
    runs=$((runs + 1))
    timeout 300 "$sim" "$@" -J "$tmp/json" >"$tmp/out" 2>"$tmp/err"
    echo "exit code $?" >>"$tmp/out"
    { cat "$tmp/out"; grep -vE '^trib-sim: .* (simulated in|frames in) ' "$tmp/err"; jq 'del(.run)' "$tmp/json" 2>/dev/null; } >"$out"
    rm -f "$tmp/json" "$tmp/trace"
}

differs() {
    failed=$((failed + 1))
    echo "FAILED $1: $2 differs from $3"
    diff "$4" "$5" | head -n 8
}

# same NAME PLAN FLOW LINKS CONF ARG...: PLAN: the entries of a fault plan; empty: none. LINKS: for --links
same() {
    local name=$1 plan=$2 flow=$3 links=$4 how first t0=$SECONDS opts
    [ ${#wanted[@]} = 0 ] || [[ " ${wanted[*]} " = *" $name "* ]] || return
    shift 4
    if [ -n "$plan" ]; then
        echo "faults = ( $plan );" >"$tmp/$name.plan"
        set -- "$@" --faults "$tmp/$name.plan"
    fi
    cases=$((cases + 1))
    for opts in "" "--counters" "--counters --links $links" ${flow:+"--background-flow $flow"} ${flow:+"--background-flow $flow --counters"}; do
        first=
        for how in "--threads 1" "--threads 2" "--threads 4" "--trace $tmp/trace"; do
            # shellcheck disable=SC2086
            one "$tmp/this" "$@" $opts $how
            [ -n "$first" ] || { first=$how; mv "$tmp/this" "$tmp/first"; continue; }
            cmp -s "$tmp/first" "$tmp/this" || differs "$name" "\"$opts $how\"" "\"$opts $first\"" "$tmp/first" "$tmp/this"
        done
        case $opts in
        "") grep -qE '^ *[0-9]|"error"' "$tmp/first" || { failed=$((failed + 1)); echo "FAILED $name: neither row nor error"; tail -n 5 "$tmp/first"; }
            mv "$tmp/first" "$tmp/none" ;;
        --counters*)
            sed -n '/^{/,$p' "$tmp/none" | jq -S "$rows" >"$tmp/a"
            sed -n '/^{/,$p' "$tmp/first" | jq -S "$rows" >"$tmp/b"
            cmp -s "$tmp/a" "$tmp/b" || differs "$name" "JSON with \"$opts\"" "JSON without" "$tmp/a" "$tmp/b" ;;
        esac
    done
    printf '%-18s %s, %d s\n' "$name" "$(sed -n 's/.*"trace": "\(.*\)".*/trace \1/p' "$tmp/none")" $((SECONDS - t0))
}

ls8=conf/leaf-spine-8.conf
loss='{ link = "all"; loss = "0.1%"; }' reorder='{ link = "all"; reorder = 0.01; }' jitter='{ link = "all"; jitter = "100ns"; }'
all='{ link = "all"; loss = 0.002; dup = 0.002; reorder = 0.005; corrupt = 0.001; jitter = "300ns"; }'
small=(-b 64K -e 64K)

same quiet '' h0:h5 h0,leaf1 $ls8 "${small[@]}" --algo all -d float,bfloat16
same loss "$loss" h0:h5 h0 $ls8 "${small[@]}" --algo ring,sharp
same reorder "$reorder" h0:h5 h0 $ls8 "${small[@]}" --algo ring,sharp,tree
same jitter "$jitter" h0:h5 h0 $ls8 "${small[@]}" --algo ring,sharp,halving
same everything "$all" h1:h6 spine0 $ls8 "${small[@]}" --algo ring,sharp,direct --seed 7
same cleared "$all, { at = \"30us\"; link = \"all\"; clear = true; }" h1:h6 leaf0-spine0 $ls8 -b 256K -e 256K --algo ring,sharp
same later "{ at = \"20us\"; link = \"all\"; reorder = 0.01; jitter = \"200ns\"; }" h1:h6 h2 $ls8 -b 256K -e 256K --algo ring,sharp -n 3
same down '{ at = "10us"; link = "leaf0-spine0"; down = true; }' '' h2 $ls8 -b 256K -e 256K --algo ring,sharp -n 2
same flap "$(sed -n '/^ *{/p' conf/faults/flap.conf)" '' h2 $ls8 -b 256K -e 256K --algo ring,sharp
same bad-day "$(sed -n '/^ *{/p' conf/faults/bad-day.conf)" '' h2 $ls8 "${small[@]}" --algo ring,sharp -n 4
same restart '{ at = "5us"; node = "spine0"; restart = "20us"; }' '' spine0 $ls8 "${small[@]}" --algo sharp,ring -n 4
same death '{ at = "75us"; host = "h6"; die = true; told = "100us"; }' '' h6 $ls8 "${small[@]}" --algo ring,sharp
same untold '{ at = "12us"; host = "h6"; die = true; }' '' h6 $ls8 "${small[@]}" --algo ring
same rank-dies '{ at = "12us"; rank = 2; die = true; }' '' h2 $ls8 -b 1M -e 1M --algo ring,sharp --policy sharp
same cut-off '{ at = "12us"; link = "h6-leaf1"; down = true; }' '' h6 $ls8 -b 256K -e 256K --algo halving
same slow '{ host = "h3"; slow = 8; }, { link = "h3-leaf0"; loss = "1%"; }' '' h3 $ls8 "${small[@]}" alltoall
same no-buffers '{ an = "spine1"; mbufs = 64; }, { link = "all"; dup = 0.01; }' '' spine1 $ls8 "${small[@]}" --algo sharp
same two "$all" h0:h1 h0 conf/two-hosts.conf -b 8 -e 64K --algo ring,sharp
same single "$reorder" '' h1 conf/single-switch-4.conf "${small[@]}" reduce --algo all -d half
same mesh "$jitter" h0:h5 h0 conf/npu-mesh-8.conf "${small[@]}" --algo ring,direct
same star "$all" '' h0 conf/npu-star-8.conf "${small[@]}" all_gather --algo all
same node "$loss" n0g0:n0g3 n0g0 conf/h100-node.conf "${small[@]}" --algo nvls,ring
same measured "$reorder" n0g0:n0g3 n0g0 conf/h100-node-measured.conf "${small[@]}" reduce_scatter --algo ring,nvls
same rails "$all" '' n0g0,n1g0 conf/rail-2x4.conf "${small[@]}" --algo hier,hier_sharp,nvls_sharp
same rails-16 "{ at = \"5us\"; link = \"all\"; loss = 0.001; }" n0g0:n1g3 n0g0 conf/rail-2x8.conf "${small[@]}" broadcast --algo hier,ring
same rails-32 "$jitter" '' n0g0 conf/rail-4x8.conf "${small[@]}" --algo hier,hier_sharp --payload none
same incast '' '' h0 conf/incast-32.conf gather --algo direct "${small[@]}"
same incast-dcqcn "$loss" '' h0 conf/incast-32-dcqcn.conf gather --algo direct "${small[@]}"
same incast-lossy '' '' h0 conf/incast-32-lossy.conf gather --algo direct "${small[@]}"
same rack "$loss" '' n0g0 conf/gb200-nvl72.conf --algo nvls,ring -g 16 "${small[@]}"
same unit "$loss" '' n0g0 conf/h100-su.conf alltoall -g 32 -b 32K -e 32K --payload none

sed 's/^mtu .*/&\nforwarding = "cut-through";/; s/\(host_link.*\)400Gb/\1100Gb/' $ls8 >"$tmp/cut.conf"
same cut '' h0:h5 h0,leaf1 "$tmp/cut.conf" "${small[@]}" --algo all
same cut-faults "$all" h1:h6 spine0 "$tmp/cut.conf" "${small[@]}" --algo ring,sharp,direct --seed 7

echo "$cases cases, $runs runs, $failed failed"
[ "$failed" = 0 ] && [ "$cases" -gt 0 ]
