#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What trib exec tells NCCL of an emulated host: a user's own variables win, a host inside of another one has its own, and --no-nccl-env
# leaves all of them alone.
# load: any
. "$(dirname "$0")/lib.sh"
unset "${!NCCL_@}" TRIB_NCCL_HOSTID

variables() { env | grep ^NCCL_ | sort | tr '\n' ' '; }
export -f variables
expect() { # expect WHAT GOT WANT
    [ "$2" = "$3" ] || fail "$1: found '$2', expected '$3'"
}
rest='NCCL_IB_GID_INDEX=0 NCCL_IB_HCA=trib NCCL_SOCKET_IFNAME=lo '

trib up "$conf/single-switch-4.conf" --dilation 1 >/dev/null || fail "no fabric"
expect "h1" "$(trib exec h1 -- bash -c variables)" "NCCL_GIN_TYPE=2 NCCL_HOSTID=h1.single-switch-4 $rest"
expect "by rank" "$(OMPI_COMM_WORLD_RANK=2 trib exec @rank -- bash -c variables)" "NCCL_GIN_TYPE=2 NCCL_HOSTID=h2.single-switch-4 $rest"
expect "h2 inside of h1" "$(trib exec h1 -- "$root/scripts/trib" exec h2 -- bash -c variables)" "NCCL_GIN_TYPE=2 NCCL_HOSTID=h2.single-switch-4 $rest"
expect "a user's own" "$(NCCL_HOSTID=mine NCCL_GIN_TYPE= NCCL_DEBUG=WARN trib exec h1 -- bash -c variables)" "NCCL_DEBUG=WARN NCCL_GIN_TYPE= NCCL_HOSTID=mine $rest"
expect "a user's own inside of h1" "$(trib exec h1 -- env NCCL_HOSTID=mine "$root/scripts/trib" exec h2 -- bash -c variables)" \
    "NCCL_GIN_TYPE=2 NCCL_HOSTID=mine $rest"
expect "--no-nccl-env" "$(trib exec --no-nccl-env h1 -- bash -c variables)" ""
TRIB_LOG=exec:info trib exec h1 -- true 2>"$tmp/log.out"
[ "$(grep -c ' exec info NCCL_' "$tmp/log.out")" = 5 ] || fail "TRIB_LOG=exec:info: $(cat "$tmp/log.out")"
NCCL_GIN_TYPE=4 TRIB_LOG=exec:info trib exec h1 -- true 2>"$tmp/log.out"
has_not NCCL_GIN_TYPE "$tmp/log.out"
trib exec h1 -- true 2>"$tmp/quiet.out"
[ ! -s "$tmp/quiet.out" ] || fail "without TRIB_LOG: $(cat "$tmp/quiet.out")"
# The device that NCCL is told of is there, by its prefix, and so is the GID of RoCE v2, by its index.
trib exec h1 -- ibv_devinfo -v >"$tmp/devinfo.out" 2>&1 || fail "ibv_devinfo"
has 'hca_id:.*trib0' "$tmp/devinfo.out"
has 'GID\[ *0\]:.*RoCE v2' "$tmp/devinfo.out"
