#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# 4,097 hosts: planned, pictured and modelled; refused by number before anything starts where a fabric would run. 4,096 run.
# clock: virtual
. "$(dirname "$0")/lib.sh"
cd "$tmp" || exit 1

many() { # many HOSTS: a conf of 17 leaves of 241 hosts, or of 16 of 256
    cat <<END
link_defaults = { rate = "400Gb/s"; latency = "300ns"; };
reduce = { groups = 64; slots = 16384; window = 256; };
leaf_spine = { leaves = $1; spines = 8; hosts_per_leaf = $2; };
END
}
many 17 241 >over.conf
many 16 256 >most.conf
said='over.conf:3: found 4097 hosts, expected at most 4096 in a fabric that runs; trib plan and trib model take up to 131072'

trib plan over.conf >plan.out 2>&1 || fail "trib plan: $(cat plan.out)"
has '^Fabric over .*: 4097 hosts, 25 switches' plan.out
trib plan --svg over.conf >plan.svg || fail "trib plan --svg"
has 'The fabric over: 4097 hosts, 25 switches' plan.svg
has '>h0 \+240<' plan.svg
trib model over.conf all_reduce >model.out 2>&1 || fail "trib model: $(cat model.out)"
has 'Above 4096 hosts times are those of whole levels' model.out

trib sim over.conf all_reduce >sim.out 2>&1 && fail "trib sim takes 4,097 hosts"
has "$said" sim.out
TRIB_RUN=$tmp/run "$root/scripts/trib" up over.conf >up.out 2>&1 && fail "trib up takes 4,097 hosts"
has 'over.conf: found 4097 hosts, expected at most 4096 in a fabric that runs' up.out
[ ! -e run ] || fail "trib up has made a run directory"

trib plan most.conf >plan.out 2>&1 || fail "trib plan: $(cat plan.out)"
trib model most.conf all_reduce >model.out 2>&1 || fail "trib model: $(cat model.out)"
has_not 'whole levels' model.out
"$TRIB_BUILD/trib-plan" --procs most.conf >procs.out || fail "4,096 hosts do not run"
echo "4,097 hosts are planned and do not run"
