#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Compares predictions of conf/h100-node-measured.conf with published figures (F60 to F62), all-reduce on 8 x H100:
# bus bandwidths in GB/s, in virtual time. None of them was fitted (docs/validation.md). measured.sh [BUILD], a few minutes.
#
# NVLink SHARP is multimem with the own share through the switch (F27), as in the instruction.
# 10 GB are not simulated whole: beyond 250 MB time is a line, whose slope is taken between there and 1 GB.
set -eu
build=$(cd "${1:-build}" && pwd)
cd "$(dirname "$0")/.."
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# busbw ALGO GPUS BYTES: 10000000000 bytes are extrapolated.
busbw() {
    local algo=$1 n=$2 bytes=$3 sizes="-b $3 -e $3 --place out"
    [ "$bytes" -gt 1000000000 ] && sizes="-b 250000000 -e 1000000000 -f 4 --place out"
    [ "$algo" = nvls ] && sizes="$sizes --mm-self"
    # shellcheck disable=SC2086
    "$build/trib-sim" conf/h100-node-measured.conf all_reduce -g "$n" --algo "$algo" $sizes -d float -w 0 --payload none -J "$out/j" \
        >"$out/log" 2>&1 || { cat "$out/log" >&2; exit 1; }
    jq -r '.results[] | "\(.size_bytes) \(.time_us)"' "$out/j" | awk -v n="$n" -v want="$bytes" '
        { size[NR] = $1; us[NR] = $2 }
        END {
            t = us[NR]
            if (NR == 2) t += (want - size[2]) * (us[2] - us[1]) / (size[2] - size[1])
            printf "%.1f\n", want / t / 1e3 * 2 * (n - 1) / n
        }'
}

row() { # LABEL PUBLISHED PREDICTED
    awk -v l="$1" -v p="$2" -v m="$3" 'BEGIN { printf "%-52s %9.1f %9.1f %+8.1f %%\n", l, p, m, 100 * (m / p - 1) }'
}

printf '%-52s %9s %9s %10s\n' "all-reduce on 8 x H100 (GB/s)" published predicted error
ring=$(busbw ring 8 10000000000)
row "F60   ring, busbw at 10 GB" 370 "$ring"
row "F60   ring, busbw at 58 MB" 150 "$(busbw ring 8 58000000)"
nvls=$(busbw nvls 8 10000000000)
row "F61   NVLS, busbw" 480 "$nvls"
row "F61   NVLS, algbw" 275 "$(awk -v b="$nvls" 'BEGIN { print b / 1.75 }')"
row "F61   ring, algbw" 211 "$(awk -v b="$ring" 'BEGIN { print b / 1.75 }')"
row "F61   NVLS over ring (times)" 1.3 "$(awk -v a="$nvls" -v b="$ring" 'BEGIN { print a / b }')"
for n in 2 3 4 5 6 7; do
    case $n in 5) p=420 ;; 6) p=440 ;; 7) p=460 ;; *) p=370 ;; esac
    row "F62   NVLS on $n GPUs, busbw" $p "$(busbw nvls $n 10000000000)"
done
