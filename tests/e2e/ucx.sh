#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# UCX, unmodified, at dilation 1 over one and over three switches: ucx_info lists the device with both transports, and ucx_perftest
# runs over either: tags, streams, active messages, put, get and atomics of its protocol layer (UCP) and of its transports (UCT).
# tier: thirdparty
. "$(dirname "$0")/lib.sh"
command -v ucx_perftest >/dev/null || skip "no ucx_perftest (package ucx-utils)"
unset UCX_TLS UCX_NET_DEVICES

trib up "$conf/leaf-spine-8.conf" --dilation 1 >/dev/null || fail "no fabric"
trib exec h0 -- ucx_info -d >"$tmp/info.out" 2>"$tmp/notice.out" || fail "ucx_info"
grep -q 'no private /sys' "$tmp/notice.out" && skip "$(cat "$tmp/notice.out")"
for tl in rc_verbs ud_verbs; do
    grep -A1 "Transport: $tl" "$tmp/info.out" | grep -q 'Device: trib0:1' || fail "ucx_info -d does not list trib0 with $tl"
done

# UCX from 1.18 on asks the kernel for a route to a peer, which has none of a fabric's: it is told not to ask. An older one, which would
# warn of the variable, is not, and what the user has set stays.
mode() { # mode EXPECTED LIBRARY [VARIABLE=VALUE]
    local was
    was=$(trib exec h0 -- env ${3:+"$3"} "$TRIB_BUILD/tests/tools/verbs_ucx_routes" "$2" 2>&1)
    [ "$was" = "$1" ] || fail "$2 ${3:-}: found $was, expected $1"
}
echo 'int ucs_netlink_send_request(void); int ucs_netlink_send_request(void) { return 0; }' >"$tmp/ucs.c"
cc -shared -fPIC -o "$tmp/libucs-0123abcd.so.0.0.0" "$tmp/ucs.c" || fail "cc"
mode all "$tmp/libucs-0123abcd.so.0.0.0"
mode route "$tmp/libucs-0123abcd.so.0.0.0" UCX_IB_ROCE_REACHABILITY_MODE=route
mode unset "$tmp/libucs-0123abcd.so.0.0.0" UCX_IB_ROCE_LOCAL_SUBNET=n
cp "$tmp/libucs-0123abcd.so.0.0.0" "$tmp/libother.so"
mode unset "$tmp/libother.so"
[ "$(printf '%s\n' 1.18 "$(ucx_info -v | sed -n 's/.*ersion[: ]*\([0-9.]*\).*/\1/p' | head -n 1)" | sort -V | head -n 1)" = 1.18 ] || mode unset libucs.so.0

# Runs the tests in $tmp/batch (name, arguments) between h0 and a client: perf CLIENT BYTES ARG..., which are to cross the fabric.
perf() {
    local client=$1 bytes=$2 pid before
    shift 2
    before=$(total rx_bytes)
    next_port
    timeout 100 "$root/scripts/trib" exec h0 -- ucx_perftest $(ucx_perftest_alone) -p $port -b "$tmp/batch" -w 10 "$@" >"$tmp/server.out" 2>&1 &
    pid=$!
    until_true 20 listens || fail "ucx_perftest $* does not listen"
    timeout 100 "$root/scripts/trib" exec "$client" -- ucx_perftest $(ucx_perftest_alone) -p $port 127.0.0.1 -b "$tmp/batch" -w 10 -f "$@" >"$tmp/client.out" 2>&1 ||
        fail "$client to h0: UCX_TLS=${UCX_TLS:-} ucx_perftest $*"
    wait $pid || fail "server h0, client $client: UCX_TLS=${UCX_TLS:-} ucx_perftest $*"
    # UCX 1.18 flushes puts and atomics as only its mlx5 transports can, says so on all others, and goes on.
    sed -i '/flush(remote) is not supported/d; /error during flush: Unsupported operation/d' "$tmp/client.out" "$tmp/server.out"
    has_not 'WARN|ERROR' "$tmp/client.out"
    has_not 'WARN|ERROR' "$tmp/server.out"
    while read -r name _; do
        has "^ *$name +[0-9]+ +[0-9.]+ " "$tmp/client.out"
    done <"$tmp/batch"
    [ $(($(total rx_bytes) - before)) -ge "$bytes" ] || fail "ucx_perftest $* did not cross the fabric"
}

for client in h1 h4; do # the same leaf; leaf, spine, leaf
    cat >"$tmp/batch" <<'END'
tag_lat-8 -t tag_lat -s 8 -n 300
tag_lat-16K -t tag_lat -s 16384 -n 100
tag_bw-64 -t tag_bw -s 64 -n 500
tag_bw-64K -t tag_bw -s 65536 -n 100
tag_bw-4M -t tag_bw -s 4194304 -n 4
tag_sync -t tag_sync_bw -s 4096 -n 100
stream -t stream_bw -s 4096 -n 200
am -t ucp_am_bw -s 4096 -n 200
sleep -t tag_lat -s 8 -n 100 -E sleep
put_lat -t ucp_put_lat -s 8 -n 300
put_bw -t ucp_put_bw -s 65536 -n 100
get-8 -t ucp_get -s 8 -n 200
get-64K -t ucp_get -s 65536 -n 100
add -t ucp_add -s 8 -n 200
fadd -t ucp_fadd -s 8 -n 200
swap -t ucp_swap -s 8 -n 100
cswap -t ucp_cswap -s 8 -n 200
fadd-4 -t ucp_fadd -s 4 -n 100
END
    for tls in rc_v ud_v; do # RC needs UD too, to connect: rc_v is both
        UCX_TLS=$tls perf $client $((100 * 65536 * 3 + 4 * 4194304))
    done
    cat >"$tmp/batch" <<'END'
am_lat -t am_lat -D short -s 8 -n 200
am_bw -t am_bw -D bcopy -s 1024 -n 300
am_bw-z -t am_bw -D zcopy -s 4000 -n 300
END
    perf $client 1500000 -x ud_verbs -d trib0:1
    cat >>"$tmp/batch" <<'END'
put_lat -t put_lat -D short -s 8 -n 200
put_bw -t put_bw -D zcopy -s 65536 -n 100
get-b -t get -D bcopy -s 4096 -n 100
get-z -t get -D zcopy -s 65536 -n 100
fadd -t fadd -D short -s 8 -n 200
cswap -t cswap -D short -s 8 -n 200
END
    perf $client 14000000 -x rc_verbs -d trib0:1
done

# One frame in a hundred is lost on every link between the leaves. (UCX's timeout of a second would make this a long test.)
for link in leaf0-spine0 leaf0-spine1; do
    trib link $link loss=1% seed=3 >/dev/null || fail "trib link"
done
cat >"$tmp/batch" <<'END'
tag_bw -t tag_bw -s 65536 -n 50
put_bw -t ucp_put_bw -s 65536 -n 50
get -t ucp_get -s 65536 -n 30
fadd -t ucp_fadd -s 8 -n 100
cswap -t ucp_cswap -s 8 -n 100
END
UCX_TLS=rc_v UCX_RC_TIMEOUT=20ms perf h4 $((130 * 65536))
repeated=$(cat "$run"/leaf-spine-8/port/*/*.lock | awk '$1 == "retransmits" { n += $2 } END { print n + 0 }')
[ "$repeated" -gt 0 ] || fail "nothing was lost and sent again"
