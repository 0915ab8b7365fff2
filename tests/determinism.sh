#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The same simulation gives the same bytes in every build: determinism.sh BUILD BUILD...
# Each case runs in each of the build directories, twice in the first; its table, JSON, pcapng and statistics of frames must be the
# same. Data is carried, so that payloads are compared too, unless a case uses lengths. Cases by several threads have no
# pcapng, as frames in their order need one; their JSON has the hash of all frames. As many cases at a time as there are cores.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
tmp=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$tmp"' EXIT
[ $# -ge 2 ] || { echo "expected: determinism.sh BUILD BUILD..." >&2; exit 2; }
cd "$root" || exit 1
cases=0 failed=0

# derive NAME BASE SED-COMMAND...: a conf file that is another one with changes
derive() {
    local name=$1 base=$2
    shift 2
    sed "s/^name *=.*/name = \"$name\";/; $*" "conf/$base.conf" >"$tmp/$name.conf"
    ! cmp -s <(grep -v '^name' "$tmp/$name.conf") <(grep -v '^name' "conf/$base.conf") || { echo "nothing to change in $base" >&2; exit 1; }
}

# run BUILD OUTPUTS CONF ARG...
run() {
    local build=$1 out=$2 how
    shift 2
    mkdir "$out"
    how=(--trace "$out/trace.pcapng")
    [ -z "$threads" ] || { how=(--threads "$threads"); : >"$out/trace.pcapng"; }
    # A case may end with an expected error; it must be the same in all builds.
    "$build/trib-sim" "$@" --counters "${how[@]}" -J "$out/json" >"$out/table" 2>"$out/err"
    echo "exit code $?" >>"$out/table"
    # The command names other files in each run, and a dirty tree is built under another name.
    [ ! -s "$out/json" ] || { jq 'del(.run)' "$out/json" >"$out/kept" && mv "$out/kept" "$out/json"; }
    # Time and memory depend on the machine.
    grep -v ' simulated in ' "$out/err" | sed "s|$out|OUT|g" >>"$out/table"
    rm "$out/err"
}

# same NAME CONF ARG...: in all builds, beside other cases
same() {
    while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n; done
    cases=$((cases + 1))
    (one_case "$@" >"$tmp/$1.told"; cat "$tmp/$1.told"; [ "$failed" = 1 ] || touch "$tmp/$1.same") &
}

one_case() {
    local name=$1 first='' build n=0 t0=$SECONDS what
    shift
    for build in "${builds[0]}" "${builds[@]}"; do
        for threads in "${counts[@]}"; do
            n=$((n + 1))
            run "$build" "$tmp/$name.$n" "$@"
            if [ -z "$first" ]; then
                first=$tmp/$name.$n
                grep -qE '^ *[0-9]|^  [a-z]+ +[0-9]+ +[a-z_]+ ' "$first/table" || { echo "FAILED $name: no row"; tail -n 5 "$first/table"; failed=1; }
                continue
            fi
            for what in table json trace.pcapng; do
                cmp -s "$first/$what" "$tmp/$name.$n/$what" && continue
                failed=1
                echo "FAILED $name: $what of $build${threads:+ by $threads threads} differs from ${builds[0]}: trib-sim $*"
                [ "$what" = trace.pcapng ] || diff "$first/$what" "$tmp/$name.$n/$what" | head -n 10
            done
            rm -r "$tmp/$name.$n"
        done
    done
    printf '%-14s %9s of frames, trace %s, %d s\n' "$name" "$(du -h --apparent-size "$first/trace.pcapng" | cut -f 1)" \
        "$(sed -n 's/.*"trace": "\(.*\)".*/\1/p' "$first/json")" $((SECONDS - t0))
    rm -r "$first"
}

builds=("$@")
counts=("")
derive faulty leaf-spine-8 's/host_link *= *{/& loss = 0.002; dup = 0.002; reorder = 0.002; corrupt = 0.001; jitter = "300ns"; /'
derive marked leaf-spine-8 's/\(host\|spine\)_link *= *{/& ecn = "16KiB"; ecn_max = "128KiB"; ecn_prob = 0.5; buffer = "256KiB"; /'
derive stochastic single-switch-4 's/reduce *= *{/& rounding = "stochastic"; seed = 7; /'

same two conf/two-hosts.conf --algo ring,sharp -b 8 -e 64K
same algorithms conf/leaf-spine-8.conf --algo all -b 64K -e 64K -d float,bfloat16 --error
same alltoall conf/leaf-spine-8.conf alltoall -b 64K -e 64K
same gather "$tmp/marked.conf" gather -b 512K -e 512K --seed 3
same faulty "$tmp/faulty.conf" --algo ring,sharp -b 64K -e 64K --seed 7
same flap conf/leaf-spine-8.conf --algo ring,sharp -b 256K -e 256K --faults conf/faults/flap.conf
same bad-day conf/leaf-spine-8.conf --algo ring,sharp -b 64K -e 64K --faults conf/faults/bad-day.conf
same stochastic "$tmp/stochastic.conf" --algo sharp -b 16K -e 16K -d half,f8e4m3
same nvls conf/h100-node.conf --algo nvls,ring -b 1M -e 1M --links n0g0
same rails conf/rail-2x4.conf --algo hier_sharp,nvls_sharp -b 256K -e 256K
same lengths conf/rail-4x8.conf --algo hier_sharp -b 256K -e 256K --payload none --links n0g0,n0g1
same jobs conf/leaf-spine-8.conf --jobs conf/jobs/eight.conf --faults conf/faults/flap.conf
counts=(1 2 3 4)
same by-threads conf/leaf-spine-8.conf --algo all -b 64K -e 64K -d float,bfloat16 --error
same fall conf/leaf-spine-8.conf --algo ring,sharp -b 256K -e 256K --faults conf/faults/flap.conf
same node conf/h100-node.conf --algo nvls,ring -b 256K -e 256K
same rails-32 conf/rail-4x8.conf --algo hier,hier_sharp,nvls_sharp -b 64K -e 64K
same pauses conf/incast-32.conf gather --algo direct -b 256K -e 256K
same su-64 conf/h100-su.conf alltoall -g 64 -b 256K -e 256K --payload none
wait
same=$(find "$tmp" -name '*.same' | wc -l)
echo "$same of $cases cases are the same"
[ "$same" = $cases ] && [ $cases -gt 0 ]
