#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Machines for tests: namespaces of network, mounts, processes, names and time, joined by a bridge. Sourced by tests; not a test.
# Machine i is mI at 10.9.0.(I+1); its /run is its own, and its CLOCK_MONOTONIC is ahead by ${ahead[I]} seconds and runs ${ppm[I]} ppm fast.
ahead=(0 10 5)
ppm=(0 200 0)
drift_from=() # what a clock showed that is fast from then on
serves=()     # the machines that have a remote shell
machine=() # of each the process that keeps its namespaces: all others of the machine end with it
wire=      # of the namespace with the bridge
remote=$root/tests/tools/remote_shell.py

# can_have_machines, or why not
can_have_machines() {
    [ "$(id -u)" = 0 ] || { echo "namespaces need root"; return 1; }
    command -v ip >/dev/null || { echo "no ip"; return 1; }
    unshare -n -m -u -p -T --fork true 2>/dev/null || { echo "no namespaces of network, mounts, processes and time here"; return 1; }
}

# leaf-spine-8 over three machines, in $tmp/spread.conf
spread_conf() {
    sed 's/^name .*/name = "spread";/' "$conf/leaf-spine-8.conf" >"$tmp/spread.conf"
    cat >>"$tmp/spread.conf" <<'END'
machines = ( { name = "m0"; address = "10.9.0.1"; nodes = ( "leaf0", "spine0" ); },
             { name = "m1"; address = "10.9.0.2"; nodes = ( "leaf1" ); },
             { name = "m2"; address = "10.9.0.3"; nodes = ( "spine1" ); } );
trunk_key = "a secret that the lab shares";
END
}

# The process that keeps a new namespace: keeper UNSHARE-OPTION...: sets kept
keeper() {
    local outer
    unshare "$@" sh -c 'exec sleep 1000' >/dev/null 2>&1 &
    outer=$!
    kept=$outer
    [[ " $* " != *" --fork "* ]] || until_true 5 pgrep -P "$outer" >/dev/null && kept=$(pgrep -P "$outer" || echo "$outer")
}

on() { # on MACHINE CMD...
    local i=$1
    shift
    nsenter -t "${machine[i]}" -a env -u TRIB_RUN XDG_RUNTIME_DIR=/run PATH="$TRIB_BUILD:$root/scripts:$PATH" "$@"
}

machine_up() { # machine_up I
    local i=$1
    keeper -n -m -u -p -T --fork --mount-proc --monotonic "${ahead[i]}"
    machine[i]=$kept drift_from[i]=
    until_true 5 nsenter -t "${machine[i]}" -a true || fail "machine m$i"
    nsenter -t "$wire" -n ip link add "v$i" type veth peer name eth0 netns "${machine[i]}" || skip "no veth on this machine"
    nsenter -t "$wire" -n ip link set "v$i" mtu 9000 master br0 up
    on "$i" sh -c "hostname m$i; ip link set lo up; ip addr add 10.9.0.$((i + 1))/24 dev eth0; ip link set eth0 mtu 9000 up; mount -t tmpfs run /run"
}

fabric_up() { # fabric_up I CONF
    local drift=()
    if [ "${ppm[$1]}" != 0 ]; then
        [ -f "$tmp/drift.so" ] || ${CC:-cc} -O2 -shared -fPIC -o "$tmp/drift.so" "$root/tests/tools/preload/drift.c" || fail "drift.so"
        [ -n "${drift_from[$1]:-}" ] || drift_from[$1]=$(on "$1" python3 -c 'import time; print(time.clock_gettime_ns(time.CLOCK_MONOTONIC))')
        drift=(env LD_PRELOAD="$tmp/drift.so" DRIFT_PPM="${ppm[$1]}" DRIFT_FROM="${drift_from[$1]}")
    fi
    on "$1" "${drift[@]}" trib up "$2" >>"$tmp/up.out" 2>&1 || fail "trib up on m$1"
    [ "${serves[$1]:-}" = "${machine[$1]}" ] && return
    serves[$1]=${machine[$1]}
    on "$1" "${drift[@]}" "$remote" serve "10.9.0.$(($1 + 1))" >>"$tmp/remote.out" 2>&1 &
}

wire_up() {
    keeper -n
    wire=$kept
    until_true 5 nsenter -t "$wire" -n ip link set lo up || fail "no namespace for the wire"
    nsenter -t "$wire" -n sh -c 'ip link add br0 type bridge && ip link set br0 up' 2>/dev/null || skip "no bridge on this machine"
}

# Instead of the bridge a program that loses, delays and reorders: lossy OPTION...
lossy() {
    nsenter -t "$wire" -n sh -c 'for i in v0 v1 v2; do ip link set $i nomaster; ip link set $i promisc on; done'
    nsenter -t "$wire" -n python3 "$root/tests/tools/lossy_wire.py" "$@" v0 v1 v2 >>"$tmp/wire.out" 2>&1 &
    lossy=$!
}
lossless() {
    kill $lossy
    nsenter -t "$wire" -n sh -c 'for i in v0 v1 v2; do ip link set $i promisc off; ip link set $i master br0; done'
}

# What the trunk of machine I says: trunk I [MACHINE]
trunk() { on "$1" trib telemetry trunk "/trib/machines${2:+,$2}" 2>/dev/null; }

# A second network for frames, to eth1 of each machine: ports_wire once, port_wire I for each.
ports_wire() { nsenter -t "$wire" -n sh -c 'ip link add br1 type bridge && ip link set br1 up' 2>/dev/null || skip "no second bridge on this machine"; }
port_wire() {
    nsenter -t "$wire" -n ip link add "p$1" type veth peer name eth1 netns "${machine[$1]}" || skip "no veth on this machine"
    nsenter -t "$wire" -n ip link set "p$1" mtu 9000 master br1 up
    on "$1" ip link set eth1 mtu "${2:-9000}" up
}

# exact NAME OK OPTION...: ring and SHARP from machine 0; every element is right, and where the row says that the machine kept up, its time is within
# 5 % of theory. OK rows at least have to keep up, in one of three tries; else $lagging has NAME, and the test says at its end that it has not seen that.
lagging=()
exact() {
    local name=$1 least=$2 try
    shift 2
    for try in 1 2 3; do
        on 0 trib perf --rsh "$remote" --algo ring,sharp -n 3 --wide -J "$tmp/$name.json" "$@" >"$tmp/$name.out" 2>&1 ||
            fail "$name: trib perf: $(cat "$tmp/$name.out")"
        has 'Out of bounds values : 0 OK' "$tmp/$name.out"
        jq -e '(.results | length) >= 4 and all(.results[]; .wrong == 0 and (.fidelity.ok == false or (.time_us / .predicted_us | . > 0.95 and . < 1.05)))' \
            "$tmp/$name.json" >/dev/null ||
            fail "$name: $(jq -c '.results[] | [.algo, .bytes, .wrong, .fidelity.ok, .time_us, .predicted_us]' "$tmp/$name.json")"
        [ "$(jq '[.results[] | select(.fidelity.ok)] | length' "$tmp/$name.json")" -lt "$least" ] || return 0
    done
    lagging+=("$name")
}
all_kept_up() { [ ${#lagging[@]} = 0 ] || skip "everything held but times: this machine did not keep up in ${lagging[*]}"; }
