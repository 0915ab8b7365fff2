# SPDX-License-Identifier: BSD-3-Clause
# Forwarders with memif ports for benchmarks: trib-switch, testpmd, Open vSwitch, the switch without shaping and that without queues
# (bench_plain).
# Sourced after lib.sh; $dir is a directory that goes away afterwards, $build the build's. Of N ports, port i's socket is `port_of X i`.
# A forwarder has CPU $forwarder_core (0), its generator CPU $generator_core (1); all but the one that is measured are stopped (SIGSTOP).

forwarder_core=0 generator_core=1
declare -A forwarder_pid=() forwarder_also=() generator_pid=() generator_in=() generator_out=()

port_of() {
    case $1 in
    switch) echo "$dir/switch/link/s0:$2-h$2:0.sock" ;;
    *) echo "$dir/$1$2.sock" ;;
    esac
}

# Open vSwitch has a transmit queue for each of its threads, and the PMD thread's is the second; net_memif has as many to receive by.
queues_of() { [ "$1" = ovs ] && echo 2 || echo 1; }

forwarder_wait() { # X N
    for _ in $(seq 150); do
        [ -S "$(port_of "$1" $(($2 - 1)))" ] && return 0
        sleep 0.1
    done
    echo "bench: $1 has no ports; its log:" >&2
    tail -5 "$dir/$1.log" >&2
    return 1
}

# One switch in its own process; the generator that connects acts as the hosts' NICs. Link rates never limit the throughput.
switch_conf() { # N
    local nodes='' links='' hosts='' i
    for i in $(seq 0 $(($1 - 1))); do
        nodes="$nodes{ name = \"h$i\"; kind = \"host\"; }, "
        links="$links${links:+, }{ a = \"s0\"; b = \"h$i\"; rate = \"1000Gb/s\"; latency = \"1ns\"; ecn = \"512KiB\"; }"
        hosts="$hosts${hosts:+, }\"h$i\""
    done
    echo "name = \"bench-forward\"; dilation = 1; mtu = 4096; nodes = ( $nodes{ name = \"s0\"; kind = \"switch\"; } ); links = ( $links );"
    echo "processes = ( { name = \"sw\"; nodes = ( \"s0\" ); }, { name = \"gen\"; nodes = ( $hosts ); } );"
}

start_switch() {
    mkdir -p "$dir/switch"
    switch_conf "$1" >"$dir/forward.conf"
    "$build/trib-switch" "$dir/forward.conf" --proc sw --lcores $forwarder_core --run "$dir/switch" >"$dir/switch.log" 2>&1 &
    forwarder_pid[switch]=$!
}

start_plain() { start_bench_plain plain "$1"; }
start_unshaped() { start_bench_plain unshaped "$1"; }
start_bench_plain() { # plain|unshaped N
    local i socks=()
    for i in $(seq 0 $(($2 - 1))); do socks+=("$(port_of "$1" "$i")"); done
    switch_conf "$2" >"$dir/forward.conf"
    taskset -c 0 "$build/tests/bench/bench_plain" "$1" "$dir/forward.conf" s0 "${socks[@]}" >"$dir/$1.log" 2>&1 &
    forwarder_pid[$1]=$!
}

start_testpmd() {
    local i vdevs=()
    for i in $(seq 0 $(($1 - 1))); do
        vdevs+=("--vdev=net_memif$i,role=server,socket=$(port_of testpmd "$i"),socket-abstract=no")
        rm -f "$(port_of testpmd "$i")"
    done
    [ -p "$dir/stdin" ] || mkfifo "$dir/stdin"
    exec 5<>"$dir/stdin" # a terminal that never says anything
    dpdk-testpmd --no-huge --no-pci -m 512 --no-telemetry --lcores '0@1,1@0' --file-prefix "bench$$" "${vdevs[@]}" \
        -- --forward-mode=macswap --auto-start --mbuf-size=4800 --total-num-mbufs=16384 --no-lsc-interrupt -i \
        <&5 >"$dir/testpmd.log" 2>&1 &
    forwarder_pid[testpmd]=$!
}

# Starts OVS with its own database, directory and sockets; no system service. Without huge pages EAL needs legacy memory: OVS must be told so, or it
# adds --in-memory, which excludes that. Ports are by destination, as the switch's are.
start_ovs() {
    local d=$dir/ovsdir i
    local -x OVS_RUNDIR=$d OVS_LOGDIR=$d OVS_DBDIR=$d OVS_SYSCONFDIR=$d RUNTIME_DIRECTORY=$d
    local vsctl=(ovs-vsctl --db="unix:$d/db.sock" --no-wait)
    mkdir -p "$d"
    ovsdb-tool create "$d/conf.db" /usr/share/openvswitch/vswitch.ovsschema
    ovsdb-server "$d/conf.db" --remote="punix:$d/db.sock" --unixctl="$d/db.ctl" -vconsole:off &
    forwarder_also[ovs]=$!
    for _ in $(seq 50); do [ -S "$d/db.sock" ] && break || sleep 0.1; done
    "${vsctl[@]}" init
    "${vsctl[@]}" set Open_vSwitch . other_config:dpdk-init=true other_config:dpdk-lcore-mask=0x2 other_config:pmd-cpu-mask=0x1 \
        other_config:per-port-memory=true other_config:dpdk-extra='--no-huge --no-pci -m 1024 --no-telemetry --legacy-mem'
    /usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk "unix:$d/db.sock" --unixctl="$d/v.ctl" --log-file="$dir/ovs.log" -vconsole:off 2>/dev/null &
    forwarder_pid[ovs]=$!
    "${vsctl[@]}" add-br br0 -- set bridge br0 datapath_type=netdev fail-mode=secure
    for i in $(seq 0 $(($1 - 1))); do
        "${vsctl[@]}" add-port br0 "m$i" -- set Interface "m$i" type=dpdk ofport_request=$((i + 1)) options:n_rxq=2 \
            options:dpdk-devargs="net_memif$i,role=server,socket=$(port_of ovs "$i"),socket-abstract=no"
    done
    forwarder_wait ovs "$1" || return 1
    for _ in $(seq 50); do ovs-ofctl -t 2 dump-flows "unix:$d/br0.mgmt" >/dev/null 2>&1 && break || sleep 0.1; done
    for i in $(seq 0 $(($1 - 1))); do
        echo "dl_dst=02:54:0a:00:00:$(printf %02x $((i + 1))),actions=output:$((i + 1))"
    done | ovs-ofctl add-flows "unix:$d/br0.mgmt" -
}

# Starts a forwarder and a generator that is connected to it, and stops it until it is measured.
forwarder_start() { # X N
    local i socks=() line
    "start_$1" "$2" && forwarder_wait "$1" "$2" || return 1
    for i in $(seq 0 $(($2 - 1))); do socks+=("$(port_of "$1" "$i")"); done
    mkfifo "$dir/$1.in" "$dir/$1.out"
    taskset -c $generator_core "$build/tests/bench/bench_forward" "$(queues_of "$1")" "${socks[@]}" <"$dir/$1.in" >"$dir/$1.out" &
    generator_pid[$1]=$!
    exec {fd}>"$dir/$1.in"
    generator_in[$1]=$fd
    exec {fd}<"$dir/$1.out"
    generator_out[$1]=$fd
    read -r -t 20 -u "$fd" line && kill -STOP "${forwarder_pid[$1]}" && return 0
    tail -5 "$dir/$1.log" >&2
    return 1
}

# Frames per second, of the one that runs.
forwarder_measure() { # X BYTES FLOWS SECONDS
    local rate
    kill -CONT "${forwarder_pid[$1]}"
    echo "$2 $3 $4" >&"${generator_in[$1]}"
    read -r -t 20 -u "${generator_out[$1]}" rate && kill -STOP "${forwarder_pid[$1]}" && echo "$rate" && return 0
    tail -5 "$dir/$1.log" >&2
    return 1
}

forwarders_stop() {
    local x p
    for x in "${!forwarder_pid[@]}"; do
        p=${forwarder_pid[$x]}
        disown "$p" # net_memif crashes now and then when its peer leaves; the shell need not report it
        kill "$p" 2>/dev/null
        kill -CONT "$p" 2>/dev/null
        case $x in testpmd | ovs) kill -KILL "$p" 2>/dev/null ;; esac
        while kill -0 "$p" 2>/dev/null; do sleep 0.05; done
    done
    for x in "${!generator_in[@]}"; do eval "exec ${generator_in[$x]}>&- ${generator_out[$x]}<&-"; done
    for p in "${generator_pid[@]}" "${forwarder_also[@]}"; do kill "$p" 2>/dev/null; wait "$p" 2>/dev/null; done
    forwarder_pid=() forwarder_also=() generator_pid=() generator_in=() generator_out=()
    rm -rf "$dir"/*.sock "$dir"/*.in "$dir"/*.out "$dir/ovsdir" "$dir/switch"
}
