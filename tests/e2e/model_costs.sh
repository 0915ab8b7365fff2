#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The model beside virtual time with the costs of GPUs: launches, steps by path, LL and LL128, and multimem's share of the links. A row
# is apart when it is more than 2 % from the model, or 5 % below 64 KiB.
# clock: virtual
. "$(dirname "$0")/lib.sh"

for conf in h100-node rail-2x8; do
    cat "$root/conf/$conf.conf" - >"$tmp/$conf.conf" <<'EOC'
costs = {
    gpu      = "500ns";
    nvlink   = { launch = "20us"; step = "3.4us"; ll = { step = "0.6us"; rate = "140GB/s"; }; ll128 = { step = "1.9us"; rate = "330GB/s"; }; };
    multimem = { launch = "70us"; load = 0.85; store = 0.8; };
    network  = { launch = "30us"; step = "14us"; ll = { step = "2.7us"; rate = "12GB/s"; }; ll128 = { step = "4us"; rate = "40GB/s"; }; };
};
EOC
done

rows() { # rows CONF ALGO [OPTION...]
    local conf=$1 algo=$2
    shift 2
    trib sim "$tmp/$conf.conf" all_reduce --algo "$algo" -b 4K -e 2M -f 8 -n 1 -w 1 --place out --payload none -J "$tmp/m.json" "$@" \
        >"$tmp/m.out" 2>&1 || fail "$conf $algo $*: $(tail -n 3 "$tmp/m.out")"
    jq -r --arg c "$conf $*" '.results[] | [$c, .algo, .size_bytes, .time_us / .predicted_us] | @tsv' "$tmp/m.json"
}
{
    rows h100-node ring,tree,direct,nvls
    rows h100-node nvls --mm-self
    rows rail-2x8 ring,direct,hier,nvls_sharp
    rows h100-node halving -e 256K
    rows rail-2x8 halving -e 256K
    rows h100-node ring,nvls -b 16M -e 16M
} >"$tmp/rows"

awk -F'\t' '
    { d = $4 < 1 ? 1 - $4 : $4 - 1; n++; if (d > worst) worst = d }
    d > ($3 < 65536 ? 0.05 : 0.02) { apart++; print }
    END {
        printf "%d rows, %d apart, at worst by %.1f %%\n", n, apart, 100 * worst
        exit !(n >= 40 && !apart)
    }' "$tmp/rows" || fail "the model and virtual time are apart"
