#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# All-reduce of 64 MiB (fp32, sum) by hosts of one emulated switch at dilation 1, in wall time, beside Open MPI's over TCP between as
# many network namespaces on a bridge: no shared memory, no UCX, ranks that give way when they wait, since two cores have to do for
# all of them. Rounds alternate; the medians. Prints JSON objects, one a line.
set -u
cd "$(dirname "$0")/../.."
. tests/bench/lib.sh
build=$(cd "${BUILD:-build}" && pwd)
bytes=67108864 hosts="4 8" rounds="1 2 3" iters=5
[ -z "${BENCH_QUICK:-}" ] || hosts=4 rounds=1 iters=2

mpi=$build/tests/tools/mpi_allreduce
why=
[ "$(id -u)" = 0 ] || why="namespaces on a bridge need root"
command -v mpirun >/dev/null || why="no mpirun (package openmpi-bin)"
[ -x "$mpi" ] || why="no mpi_allreduce: there was no mpicc (package libopenmpi-dev) when it was built"
command -v ip >/dev/null || why="no ip (package iproute2)"
[ -z "$why" ] || { skipped collectives "$why"; exit 0; }

dir=$(mktemp -d)
ns=tb$$ # of the bridge, its namespaces and their ends of the cables
export HOME=$dir OMPI_MCA_btl_base_warn_component_unused=0 # Open MPI's session and help files
export TRIB_RUN=$dir/run TRIB_BUILD=$build
names() { ip netns list | awk -v p="$ns-" 'index($1, p) == 1 { print $1 }'; }
cleanup() {
    trap '' INT TERM
    scripts/trib down >/dev/null 2>&1
    for n in $(names); do ip netns del "$n"; done
    ip link del $ns 2>/dev/null
    rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# The bridge, and namespace i with the address 10.77.1.(i + 1).
make_namespaces() {
    ip link add $ns type bridge && ip addr add 10.77.1.254/24 dev $ns && ip link set $ns up || return 1
    for ((i = 0; i < 8; i++)); do
        ip netns add $ns-$i && ip link add $ns-$i type veth peer name eth0 netns $ns-$i &&
            ip link set $ns-$i master $ns up && ip -n $ns-$i addr add 10.77.1.$((i + 1))/24 dev eth0 &&
            ip -n $ns-$i link set eth0 up && ip -n $ns-$i link set lo up || return 1
    done
}
# What mpirun starts its daemons with instead of ssh: HOST is an address, its last part says which namespace. Each has a name of its
# own, or Open MPI would take them for one machine.
cat >"$dir/rsh" <<END
#!/bin/sh
i=\$((\${1##*.} - 1)); shift
exec ip netns exec $ns-\$i unshare --uts sh -c "hostname $ns-\$i; \$*"
END
chmod +x "$dir/rsh"

reference() { # reference HOSTS: milliseconds
    local h=() i
    for ((i = 1; i <= $1; i++)); do h+=("10.77.1.$i:1"); done
    timeout 60 mpirun --allow-run-as-root --mca plm_rsh_agent "$dir/rsh" --mca plm_rsh_no_tree_spawn 1 --mca pml ob1 --mca btl tcp,self \
        --mca btl_tcp_if_include 10.77.1.0/24 --mca oob_tcp_if_include 10.77.1.0/24 --mca mpi_yield_when_idle 1 --bind-to none \
        -H "$(IFS=, && echo "${h[*]}")" -np "$1" "$mpi" $bytes $iters 2>"$dir/mpi.err" || { tail -5 "$dir/mpi.err" >&2; return 1; }
}
emulated() { # emulated HOSTS ALGORITHM: milliseconds
    scripts/trib perf tests/bench/collectives.conf -g "$1" -b $bytes -e $bytes -n $iters -c 0 --max-wall 150 --algo "$2" -J "$dir/out.json" \
        >"$dir/perf.out" 2>&1 || { tail -5 "$dir/perf.out" >&2; return 1; }
    jq -e 'first(.results[] | select(.in_place == false and .dilation == 1)) | .time_us / 1000' "$dir/out.json"
}

make_namespaces 2>"$dir/ip.err" || { skipped collectives "cannot make namespaces: $(tail -1 "$dir/ip.err")"; exit 0; }
scripts/trib up tests/bench/collectives.conf >/dev/null || exit 1
for n in $hosts; do
    for _ in $rounds; do
        reference $n >>"$dir/mpi.$n" && emulated $n sharp >>"$dir/sharp.$n" && emulated $n ring >>"$dir/ring.$n" || exit 1
    done
    ref=$(median <"$dir/mpi.$n")
    row "all-reduce 64 MiB, $n hosts, sharp" "$(median <"$dir/sharp.$n")" ms "Open MPI over TCP, namespaces on a bridge" "$ref" 2 time
    row "all-reduce 64 MiB, $n hosts, ring" "$(median <"$dir/ring.$n")" ms "Open MPI over TCP, namespaces on a bridge" "$ref" 1 time
done
