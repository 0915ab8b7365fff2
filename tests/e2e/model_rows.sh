#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The model beside virtual time: every algorithm of every collective that reduces or moves vectors, on confs of many shapes, with one to
# four ranks a host. A row is apart when it is more than 2 % from the model, or 5 % below 64 KiB.
# clock: virtual
. "$(dirname "$0")/lib.sh"

cat >"$tmp/one-switch-65.conf" <<'EOF'
link_defaults = { rate = "400Gb/s"; latency = "300ns"; };
single_switch = { hosts = 65; };
reduce = { };
EOF

cat >"$tmp/one-switch-4.conf" <<'EOF'
link_defaults = { rate = "400Gb/s"; latency = "300ns"; };
single_switch = { hosts = 4; };
reduce = { };
EOF

cat >"$tmp/leaf-spine-6.conf" <<'EOF'
mtu = 1024; ecmp = "balanced";
link_defaults = { rate = "400Gb/s"; latency = "1us"; };
reduce = { };
leaf_spine = { leaves = 2; spines = 2; hosts_per_leaf = 3; };
EOF

cat >"$tmp/leaf-spine-5us.conf" <<'EOF'
mtu = 1024; ecmp = "balanced";
link_defaults = { rate = "400Gb/s"; latency = "5us"; };
reduce = { };
leaf_spine = { leaves = 2; spines = 2; hosts_per_leaf = 4; };
EOF

cat >"$tmp/uneven-7.conf" <<'EOF'
mtu = 1024; ecmp = "balanced";
link_defaults = { rate = "400Gb/s"; latency = "100ns"; };
reduce = { };
nodes = ( { name = ("h0", "h1", "h2", "h3", "h4", "h5", "h6"); kind = "host"; },
          { name = ("leaf0", "leaf1", "leaf2"); role = "leaf"; }, { name = ("spine0", "spine1"); role = "spine"; } );
links = ( { a = "h0"; b = "leaf0"; }, { a = ("h1", "h2"); b = "leaf1"; }, { a = ("h3", "h4", "h5", "h6"); b = "leaf2"; },
          { a = ("leaf0", "leaf1", "leaf2"); b = ("spine0", "spine1"); } );
EOF

cat >"$tmp/chain-7.conf" <<'EOF'
mtu = 256;
link_defaults = { rate = "100Gb/s"; latency = "2us"; };
reduce = { };
nodes = ( { name = ("h0", "h1", "h2", "h3", "h4", "h5", "h6"); kind = "host"; },
          { name = ("s0", "s3"); role = "leaf"; }, { name = ("s1", "s2"); role = "spine"; } );
links = ( { a = ("h0", "h1", "h2"); b = "s0"; }, { a = "h3"; b = "s1"; }, { a = ("h4", "h5", "h6"); b = "s3"; },
          { a = "s0"; b = "s1"; }, { a = "s1"; b = "s2"; }, { a = "s2"; b = "s3"; } );
EOF

rows() { # rows CONF COLLECTIVE LARGEST [OPTION...]
    local conf=$1 what=$2 most=$3
    shift 3
    trib sim "$conf" "$what" --algo all -b 4K -e "$most" -f ${FACTOR:-8} -n 1 -w 1 --place out --payload none -J "$tmp/m.json" "$@" \
        >"$tmp/m.out" 2>&1 || fail "$conf $what $*: $(tail -n 3 "$tmp/m.out")"
    jq -r --arg c "$(basename "$conf" .conf) $what $*" '.results[] | [$c, .algo, .size_bytes, .time_us / .predicted_us] | @tsv' "$tmp/m.json"
}
{
    for conf in single-switch-4 leaf-spine-8 rail-2x4 "$root"/tests/clocks/*.conf "$tmp/one-switch-65.conf"; do
        rows "$conf" all_reduce 4M
    done
    rows leaf-spine-8 all_reduce 4M -g 16
    rows "$root/tests/clocks/half-reduces.conf" all_reduce 4M -g 12
    for what in reduce_scatter all_gather broadcast reduce alltoall; do
        rows "$tmp/one-switch-4.conf" "$what" 256K -g 8
        rows "$tmp/one-switch-4.conf" "$what" 256K -g 16
        rows "$tmp/leaf-spine-6.conf" "$what" 2M -g 12
        rows "$tmp/leaf-spine-5us.conf" "$what" 2M -g 3
        rows "$tmp/uneven-7.conf" "$what" 256K
        rows "$tmp/chain-7.conf" "$what" 256K
    done
} >"$tmp/rows"

awk -F'\t' '
    { d = $4 < 1 ? 1 - $4 : $4 - 1; n++; if (d > worst) worst = d }
    d > ($3 < 65536 ? 0.05 : 0.02) { apart++; print }
    END {
        printf "%d rows, %d apart, at worst by %.1f %%\n", n, apart, 100 * worst
        exit !(n >= 650 && apart <= 2 && worst < 0.05)
    }' "$tmp/rows" || fail "the model and virtual time are apart"

# Many short messages: as many as there are headers for are in flight.
rows leaf-spine-64 all_gather 4K --algo sharp >"$tmp/short"
awk -F'\t' '$4 < 0.98 || $4 > 1.02 { print; bad = 1 } END { exit bad || !NR }' "$tmp/short" || fail "short messages of SHARP's all-gather are apart"

# NVSwitches, whose buffers, slices and turns bind: within 5 %, many ranks of several nodes included.
{
    rows h100-node all_reduce 16M --algo nvls
    rows h100-su all_reduce 16M --algo nvls_sharp -g 16 --payload none
} >"$tmp/multimem"
awk -F'\t' '
    { d = $4 < 1 ? 1 - $4 : $4 - 1; n++; if (d > worst) worst = d }
    d > 0.05 { print }
    END { printf "%d rows of NVSwitches, at worst by %.1f %%\n", n, 100 * worst; exit !(n >= 10 && worst <= 0.05) }' "$tmp/multimem" ||
    fail "the model and virtual time are apart on NVSwitches"
