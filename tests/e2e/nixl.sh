#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# NIXL, unmodified, with the UCX of its wheel: two hosts write and read each other's memory across the fabric, every byte checked. Its
# packages come from PyPI: `make nixl`.
# tier: thirdparty
. "$(dirname "$0")/lib.sh"
python=${NIXL_PYTHON:-python3}
"$python" -c 'import nixl, numpy' >"$tmp/import.out" 2>&1 || skip "$(tail -n 1 "$tmp/import.out") (make nixl installs it from PyPI)"
unset UCX_TLS UCX_NET_DEVICES

trib up leaf-spine-8 --dilation 1 >/dev/null || fail "no fabric"
for tls in all rc_v,self; do
    before=$(total rx_bytes)
    next_port
    UCX_TLS=$tls timeout 60 "$root/scripts/trib" exec h0 -- "$python" "$root/tests/tools/nixl_check.py" $port target >"$tmp/target.out" 2>&1 &
    pid=$!
    until_true 20 listens || fail "$tls: the target: $(tail -n 3 "$tmp/target.out")"
    UCX_TLS=$tls timeout 60 "$root/scripts/trib" exec h5 -- "$python" "$root/tests/tools/nixl_check.py" $port >"$tmp/initiator.out" 2>&1 ||
        fail "$tls: $(tail -n 3 "$tmp/initiator.out")"
    wait $pid || fail "$tls: the target: $(tail -n 3 "$tmp/target.out")"
    has '^nixl_check: initiator: 4 sizes, 0 wrong' "$tmp/initiator.out"
    has '^nixl_check: target: 4 sizes, 0 wrong' "$tmp/target.out"
    has_not '^tributary:' "$tmp/target.out"
    # 4 MiB each way, by leaf, spine, leaf
    [ $(($(total rx_bytes) - before)) -gt $((6 * 4194304)) ] || fail "$tls: $(($(total rx_bytes) - before)) bytes crossed the switches"
done
