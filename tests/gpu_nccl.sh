#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# make gpu-nccl: stock NCCL on emulated fabrics, which needs a GPU; six minutes at most. Ring and SHARP with 2, 4 and 8 ranks beside
# trib sim, at two dilations, over a link that loses frames, and PyTorch's collectives where it is. Without a GPU or NCCL: skipped.
# NCCL_ARGS="--nccl FILE --plugin FILE" are given to trib nccl.
set -u
cd "$(dirname "$0")/.."
root=$PWD
TRIB_BUILD=$(cd "${BUILD:-build}" && pwd) || exit 1
export TRIB_BUILD
read -ra args <<<"${NCCL_ARGS:-}"
tmp=$(mktemp -d /tmp/tg.XXXXXX)
export XDG_RUNTIME_DIR=$tmp/r
mkdir -m 700 "$XDG_RUNTIME_DIR"
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM HUP
failed=0
bad() {
    echo "FAILED  $*"
    failed=1
}
nccl() { timeout 200 "$root/scripts/trib" nccl ${args[@]+"${args[@]}"} "$@"; }

# What is missing is what trib nccl says is missing.
nccl two-hosts -b 4 -e 4 -n 1 -w 0 >"$tmp/first.out" 2>"$tmp/first.err" || {
    if grep -qE 'no CUDA driver|has no GPU|no NCCL' "$tmp/first.err"; then
        echo "gpu-nccl: skipped: $(head -n 1 "$tmp/first.err")"
        exit 0
    fi
    cat "$tmp/first.out" "$tmp/first.err"
    bad "two-hosts: one operation"
    exit 1
}

# table NAME ARG...: its rows are right, none below what is simulated. Prints them.
table() {
    nccl "${@:2}" -J "$tmp/$1.json" >"$tmp/$1.out" 2>"$tmp/$1.err" || { bad "$1: $(tail -n 3 "$tmp/$1.err")"; return; }
    echo "== $1"
    cat "$tmp/$1.out"
    jq -e 'all(.results[]; .wrong == 0 and all(.times_us[]; . > 0))' "$tmp/$1.json" >/dev/null || bad "$1: wrong elements"
}
# within NAME ALGO PERCENT: from 16 MiB on, NCCL's least time is within so much of trib sim's.
within() {
    local far
    far=$(jq -r --arg algo "$2" --argjson most "$3" '.results[] | select(.algo == $algo and .size_bytes >= 16777216) |
        . + {off: (100 * ((.times_us | min) / .sim_us - 1))} | select(.off > $most) | "\(.size_bytes) bytes: \(.off | round) % above trib sim"' "$tmp/$1.json")
    [ -z "$far" ] || bad "$1, $2: $far, expected $3 % at most"
}
for g in 2 4 8; do table "ranks-$g" leaf-spine-8 -g $g -b 64K -e 16M -f 16 -n 3; done
table large leaf-spine-8 -b 16M -e 64M -n 3 --dilation 2000
within large ring 5
within large sharp 15
jq -e '[.results[] | select(.size_bytes == 67108864) | {(.algo): (.times_us | min)}] | add | .ring / .sharp >= 1.6' "$tmp/large.json" >/dev/null ||
    bad "large: the speed-up at 64 MiB is below 1.6 of 1.75"
table large-1000 leaf-spine-8 -b 16M -e 64M -n 3 --dilation 1000
sed 's/latency = "300ns";/latency = "300ns"; loss = 0.001;/' conf/two-hosts.conf >"$tmp/lossy.conf"
table lossy "$tmp/lossy.conf" --algo ring -b 64K -e 1M -n 2

python3 -c 'import torch, torch.distributed as d; raise SystemExit(not (torch.cuda.is_available() and d.is_nccl_available()))' 2>/dev/null && {
    nccl leaf-spine-8 -g 4 -- python3 tests/support/nccl_torch.py >"$tmp/torch.out" 2>&1 || bad "PyTorch: $(tail -n 3 "$tmp/torch.out")"
    [ "$(grep -c '^ok ' "$tmp/torch.out")" = 4 ] || bad "PyTorch: $(tail -n 5 "$tmp/torch.out")"
} || echo "gpu-nccl: PyTorch's collectives: skipped: no PyTorch with NCCL and CUDA"
[ $failed = 0 ] && echo "gpu-nccl: ok"
exit $failed
