#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Virtual time at the scale of the presets, on one core: what each run takes of time and memory, and how events per second fall from
# 8 to 4,096 GPUs. A run fails where its results are wrong, or where it takes more CPU time or memory than it may. Long: an hour or
# so for all. usage: tests/scale.sh [NAME...]: only the runs whose names begin so.
set -u
cd "$(dirname "$0")/.." || exit 1
sim=${BUILD:-build}/trib-sim
export GLIBC_TUNABLES=${GLIBC_TUNABLES:-glibc.malloc.hugetlb=1} # as trib sim has it
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
# Who gives up keeps the rows so far, and hears how far the last one was.
trap 'tail -n 1 "$out/err"; exit 130' INT TERM
code=0

# run NAME MAX_S MAX_MIB CONF ARG...
run() {
    local name=$1 max_s=$2 max_mib=$3 conf=$4 user kib why="" times events
    shift 4
    rm -f "$out/j"
    /usr/bin/time -o "$out/time" -f '%U %S %M' "$sim" "conf/$conf.conf" "$@" -w 0 -J "$out/j" >"$out/run" 2>"$out/err" || why="exit code $?: $(tail -1 "$out/err")"
    read -r user kib < <(awk 'END { printf "%d %d", $1 + $2 + 0.5, $3 }' "$out/time")
    times=$(jq -r '.results[-1] | "\(.time_us) \(.time_us / .predicted_us)"' "$out/j" 2>/dev/null | awk '{ printf "%.2f %.3f", $1, $2 }')
    events=$(awk '/ms simulated in/ { for (i = 1; i < NF; i++) if ($(i + 1) == "events") e = $i } END { print e + 0 }' "$out/err")
    [ "$user" -le "$max_s" ] || why="$why took more than $max_s s"
    [ $((kib / 1024)) -le "$max_mib" ] || why="$why took more than $max_mib MiB"
    awk -v n="$name" -v t="${times:-- -}" -v e="$events" -v s="$user" -v m=$((kib / 1024)) -v w="${why:-ok}" \
        'BEGIN { split(t, a); printf "%-24s %12s %10s %10.2f %8d %10.2f %8d  %s\n", n, a[1], a[2], e / 1e6, s, s ? e / 1e6 / s : 0, m, w }'
    [ -z "$why" ] || code=1
}
wanted() {
    [ ${#names[@]} = 0 ] && return
    for n in "${names[@]}"; do [[ $1 == "$n"* ]] && return; done
    return 1
}
scale() { if wanted "$1"; then run "$@"; fi; }
names=("$@")

printf '%-24s %12s %10s %10s %8s %10s %8s\n' run 'fabric us' meas/model 'M events' 'CPU s' 'M/s' MiB
for n in 8 64 256 1024; do
    scale "rate-$n" 600 8192 h100-superpod-1024 all_reduce --algo ring -g $n -b 4M -e 4M --payload none --place out
done
for algo in ring tree hier sharp; do
    scale "large-$algo" 600 8192 h100-superpod-1024 all_reduce --algo $algo -b 256M -e 256M --payload none --place out
done
# Both buffers of 1,024 ranks are 8 GiB; without a policy to fall back on nothing keeps the inputs once more.
scale data-sharp 600 12288 h100-superpod-1024 all_reduce --algo sharp --policy sharp -b 4M -e 4M --place in
scale alltoall-256 600 8192 h100-superpod-1024 alltoall -g 256 --algo pairwise -b 16M -e 16M --payload none
# frames enough for a first operation of all pairs at once, which is far from the model (-w 0)
scale direct-72 600 8192 gb200-nvl72 alltoall --algo direct -b 64K -e 64K --payload none
scale barrier-4096 600 20480 h100-superpod-4096 barrier --algo sharp --payload none
scale reduce-4096 600 20480 h100-superpod-4096 all_reduce --algo sharp -b 8 -e 8 --payload none
exit $code
