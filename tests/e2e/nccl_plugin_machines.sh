#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The plug-in for NCCL on a fabric of several machines: its ends meet on the fabric, and nothing else leads from one machine to the other
# but the store by which the test's ranks exchange handles, as NCCL's own sockets would.
# load: any
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_machines.sh"
why=$(can_have_machines) || skip "$why"
plugin=$TRIB_BUILD/libnccl-net-tributary.so

spread_conf
wire_up
for i in 0 1 2; do machine_up $i; done
for i in 0 1 2; do fabric_up $i "$tmp/spread.conf"; done
are_there() { [ "$(for i in 0 1 2; do trunk $i; done | grep -c '"m[0-2]": "there"')" = 6 ]; }
until_true 5 are_there || fail "machines: $(for i in 0 1 2; do trunk $i; done)"

# ranks WHAT HOST...: h0 to h3 are on machine 0, the others on machine 1
ranks() {
    local what=$1 r=0 rc=0 pids=() h
    shift
    next_port
    for h in "$@"; do
        on $((${h#h} / 4)) timeout 100 env LD_LIBRARY_PATH="$TRIB_BUILD" trib exec "$h" -- "$TRIB_BUILD/tests/tools/nccl_plugin" "10.9.0.1:$port" $r $# "$plugin" "$what" >>"$tmp/$what.out" 2>&1 &
        pids+=($!)
        r=$((r + 1))
    done
    for r in "${pids[@]}"; do wait "$r" || rc=$?; done
    return "$rc"
}
for what in "net h0 h4" "coll h0 h1 h4 h5"; do
    # shellcheck disable=SC2086
    ranks $what || fail "$what: $(cat "$tmp/${what%% *}.out")"
    [ "$(grep -cE "rank [0-3]: version [0-9]+: ${what%% *}: [0-9]+ right" "$tmp/${what%% *}.out")" = $((5 * ($(wc -w <<<"$what") - 1))) ] ||
        fail "$what: $(cat "$tmp/${what%% *}.out")"
done
reduced=$(on 1 trib status --json | jq "[.fabrics[].aggregation[].bytes_in] | add")
[ "$reduced" -gt 1000000 ] || fail "machine m1 has reduced $reduced bytes: $(on 1 trib status --json; on 1 trib telemetry leaf1 /trib/an,leaf1)"
