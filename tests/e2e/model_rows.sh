#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The model beside virtual time: every algorithm of an all-reduce on confs of many shapes. A row is apart when it is more than 2 % from
# the model, or 5 % below 64 KiB. Where several queue pairs contend, the order of frames decides a few per cent: a few rows are apart.
. "$(dirname "$0")/lib.sh"

cat >"$tmp/one-switch-65.conf" <<'EOF'
link_defaults = { rate = "400Gb/s"; latency = "300ns"; };
single_switch = { hosts = 65; };
reduce = { };
EOF

rows() { # rows CONF [OPTION...]
    local conf=$1
    shift
    trib sim "$conf" all_reduce --algo all -b 4K -e 4M -f ${FACTOR:-8} -n 1 -w 1 --place out --payload none -J "$tmp/m.json" "$@" >"$tmp/m.out" 2>&1 ||
        fail "$conf $*: $(tail -n 3 "$tmp/m.out")"
    jq -r --arg c "$(basename "$conf" .conf) $*" '.results[] | [$c, .algo, .size_bytes, .time_us / .predicted_us] | @tsv' "$tmp/m.json"
}
{
    for conf in single-switch-4 leaf-spine-8 rail-2x4 "$root"/tests/clocks/*.conf "$tmp/one-switch-65.conf"; do
        rows "$conf"
    done
    rows leaf-spine-8 -g 16
    rows "$root/tests/clocks/half-reduces.conf" -g 12
} >"$tmp/rows"

awk -F'\t' '
    { d = $4 < 1 ? 1 - $4 : $4 - 1; n++; if (d > worst) worst = d }
    d > ($3 < 65536 ? 0.05 : 0.02) { apart++; print }
    END {
        printf "%d rows, %d apart, at worst by %.1f %%\n", n, apart, 100 * worst
        exit !(n >= 250 && apart <= 0.06 * n && worst < 0.15)
    }' "$tmp/rows" || fail "the model and virtual time are apart"
