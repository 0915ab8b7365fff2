# SPDX-License-Identifier: BSD-3-Clause
# The rooms: every folder of code, from the ground up, what it is, and the folders that it uses. The Makefile links by these lines, scripts/arrows.sh
# fails on an #include or a call that they do not name, and scripts/docs_tables.py writes the rooms of documents from them.
# A folder uses folders above it and those inside it; UP_ lines name the others.

# public headers for programs and plug-ins outside of the tree: `coll.h`, `time.h`, `protocol.h`, `types.h`, and what protocols have in common, inline
USES_include/tributary :=
# SHARP's interface, as public headers
USES_include/sharp/api :=
# NCCL's interface of network plug-ins
USES_include/nccl :=
# no domain: units, names, heap, timers, arena, text tables, options, assertions, events, log, random numbers
USES_base := base/shortage
# `enough`: memory without which a report ends; `fault`: calls that fail on purpose in the sanitizers' build
USES_base/shortage := base
# files, processes and secrets of the operating system, each dangerous thing once
USES_system := base
# what plug-ins share: `block_window` (parts of ranks' blocks), `reg_range` (memory that is registered several times)
USES_plugins/common := include/tributary
# `mca_coll_trib.so`: Open MPI's collectives by `tributary/coll.h` alone
USES_plugins/openmpi := include/tributary
# `libsharp_coll.so.5`: SHARP's interface by `tributary/coll.h` alone
USES_plugins/sharp := include/tributary include/sharp/api plugins/common
# `libnccl-net-tributary.so`: messages by libibverbs, collectives by `tributary/coll.h`
USES_plugins/nccl := include/tributary include/nccl system plugins/common
# `trib-check-nccl-plugin`: cases that a network plug-in for NCCL must pass
USES_plugins/check := include/nccl base system
# programs on `tributary/coll.h`, as others write them
USES_examples/coll := include/tributary
# aggregation protocols on `tributary/protocol.h`, as others write them
USES_examples/protocol := include/tributary
# a fabric as data: nodes, ports, links, addresses, groups, aggregation trees, GPU devices. Built twice: with `FAB_WIDE` for `trib`, `trib-plan` and `trib-model`, which take larger ones
USES_fabric := base base/shortage fabric/routing fabric/report
# routes, reach, ECMP, paths, channels, hops, flooding, rerouting around links that are down
USES_fabric/routing := base fabric
# libconfig to that data: templates, costs, processes, workloads, fault plans; every mistake by line
USES_fabric/conf := base system fabric fabric/routing
# what `trib plan` prints; pictures; `trib-plan`
USES_fabric/report := base base/shortage system fabric fabric/routing fabric/conf
# closed forms: cost, busiest links, roofline, bill of materials; `trib-model`
USES_fabric/theory := base base/shortage system fabric fabric/routing fabric/conf fabric/report
# what both ends of in-network reduction share: messages, types, arithmetic, rounding
USES_aggregation := base fabric
# aggregation protocols that are built in, each by the headers of `include/tributary/` alone
USES_protocols := include/tributary
# what runs protocols: a half's services and what it may not do, seats, shared objects, keys of a conf
USES_protocols/host := include/tributary base system fabric fabric/routing aggregation protocols
# `trib-check-protocol`: a protocol under seeds in virtual time
USES_protocols/check := include/tributary base system aggregation protocols/host
# collectives without a communicator, pure (no verbs, GPU or clock): kinds, topology, trees and quotas of a job, schedules and a file for each algorithm
USES_collective := base fabric fabric/routing aggregation protocols/host collective/file
# schedules from files, verified on symbols
USES_collective/file := base fabric fabric/conf collective
# congestion controls: DCQCN
USES_roce/cc := base
# RoCE v2, both ends alike: wire format, ICRC, queue pairs, rate limiter
USES_roce := base roce/cc
# what a process shares with its machine and with others, without DPDK: clock, bells, pages, run directory, token, telemetry client
USES_machine := base system fabric fabric/conf roce
# an output queue: rate, latency, buffer, ECN, PFC, drops, faults of a link
USES_switch/queue := base fabric roce
# one node: a switch or a host's NIC
USES_switch := base fabric fabric/routing aggregation roce switch/queue switch/reduce switch/protocol
# the aggregation node of the RC tree
USES_switch/reduce := base fabric aggregation roce
# NVSwitch regions: loads and stores that reach all GPUs
USES_switch/multimem := base fabric aggregation roce switch/reduce
# protocols at a switch: an endpoint in front of the aggregation node, and the life of their jobs
USES_switch/protocol := base fabric aggregation protocols/host roce switch/reduce
# nodes and links in order of time
USES_switch/net := base fabric fabric/routing switch/queue switch switch/reduce switch/protocol
# predicted times over schedules and links, without a communicator: costs, choice of an algorithm
USES_model := include/tributary base fabric fabric/routing aggregation protocols/host collective collective/file
# a port of a process: memif or DPDK device
USES_io/port := base system roce
# memif, control channel and rings
USES_io/memif := base system roce machine io/port
# a trib-switch: frames, loops, links, slots, nodes
USES_io := base system fabric fabric/routing fabric/conf protocols/host roce machine switch/queue switch switch/multimem switch/net io/port io/memif io/telemetry io/trunk
# what the telemetry commands do, their server, captures; `trib-telemetry`
USES_io/telemetry := base system fabric fabric/routing aggregation protocols/host machine switch/queue switch switch/reduce switch/protocol switch/net io
# what joins the parts of a fabric that several machines run
USES_io/trunk := base system fabric fabric/routing roce machine io/port io/memif io io/telemetry
# what libpcap's archive lacks in `make static`
USES_io/static :=
# fabrics that are up, looked at by telemetry: `trib-status`, `trib-top`, `trib-metrics`, `trib-faults`
USES_io/live := base system fabric fabric/routing fabric/conf machine switch/queue io/telemetry
# conversions between the system's clocks and fabric time
USES_host/clock := machine
# `libtribclock.so`: the calls that it takes from the C library, and who keeps wall time
USES_host/clock/calls := machine host/clock
# the software HCA behind `libtribverbs.so`
USES_host/hca := base fabric roce host/hca/memory host/hca/io
# regions, windows, device memory, on-demand paging, keys of the HCA
USES_host/hca/memory := base roce host/hca
# the HCA in a real process: driver, progress thread, faults of memory, import of what another process has opened
USES_host/hca/io := base fabric fabric/routing roce machine io/port io/memif io host/hca host/hca/memory
# GPU memory and what runs there: CUDA kernels, and the same bodies as C, their twins
USES_host/kernels := base aggregation
# communicator and operations, the executor, need of memory
USES_host/coll := base fabric aggregation protocols/host collective collective/file host/kernels host/coll/gpu host/coll/transport host/coll/recovery
# what runs of a schedule in GPU memory, GPUDirect
USES_host/coll/gpu := collective host/kernels host/coll
# connections, aggregation and datagrams of a rank
USES_host/coll/transport := base fabric aggregation protocols/host collective host/coll
# the ranks' agreement on a failure, trees that return
USES_host/coll/recovery := base protocols/host collective host/coll host/coll/transport
# what results must be
USES_host/bench/verify := base fabric aggregation collective host/kernels host/coll
# what `trib-perf` and `trib-sim` share: sweep, plan, options, report, time line
USES_host/bench := include/tributary base system fabric fabric/conf aggregation protocols/host collective collective/file model host/kernels host/coll host/bench/verify
# `tributary/coll.h`: `libtributary.so.1`
USES_host/session := include/tributary base system fabric fabric/routing aggregation protocols/host collective machine model host/coll host/coll/recovery host/bench
# `store_pmix.so`: ranks of a communicator meet by a launcher's PMIx
USES_plugins/pmix := host/session
# a job's processes and ranks; `trib-perf`
USES_host/launch := base system fabric fabric/routing fabric/conf aggregation protocols/host collective collective/file machine host/kernels host/coll host/coll/gpu host/coll/transport host/coll/recovery host/bench/verify host/bench
# `trib-enter`: what `trib exec` becomes, the emulated host's `/sys` and `/dev`
USES_host/sandbox := base system fabric fabric/routing machine host/hca host/session
# `trib-keep`: starts a fabric's processes, sees how they end, finds and ends them
USES_host/keep := base system machine host/session
# what any command of `trib` needs: texts and lists of words, other programs, signals
USES_trib/run := base
# `trib`, the front door: finds confs and fabrics, starts and stops them, and hands its words to the programs that do the work
USES_trib := base system fabric fabric/conf fabric/report machine host/keep trib/run
# `libtribhint.so`: what a program is told that lost `LD_PRELOAD`
USES_host/hint :=
# traces of applications: one graph of operations, what is wrong with it; `trib-trace`
USES_trace := base base/shortage system trace/formats
# readers of traces' formats
USES_trace/formats := base/shortage trace
# DPDK's EAL of a simulation or a test
USES_sim/eal := system
# net, HCAs and the clock of a simulation, its threads, faults, background flows
USES_sim/world := base fabric fabric/routing fabric/conf collective roce switch/queue switch/reduce switch/net io host/hca host/hca/memory host/coll host/bench sim/eal
# ranks of a simulation, and the oracle that judges them
USES_sim/job := base fabric aggregation protocols/host host/hca/memory host/coll host/coll/transport host/coll/recovery host/bench sim/world
# rows, counters, traces, congestion, the fabric's part of a time line
USES_sim/report := base system fabric fabric/routing fabric/conf aggregation protocols/host collective roce switch/queue switch/reduce switch/protocol switch/net host/hca host/coll host/coll/transport host/coll/recovery host/bench/verify host/bench sim/world sim/job
# cases from seeds
USES_sim/chaos := base system fabric fabric/conf aggregation protocols/host collective roce switch/queue switch/net model host/hca host/coll host/coll/recovery host/bench sim/world sim/job
# a training step
USES_sim/step := base system fabric fabric/routing fabric/conf fabric/theory collective model host/coll host/coll/recovery host/bench/verify host/bench sim/world sim/job
# several jobs on one fabric
USES_sim/jobs := include/tributary base system fabric fabric/routing fabric/conf aggregation protocols/host collective roce switch/reduce switch/protocol switch/net model host/coll host/coll/recovery host/bench/verify host/bench sim/world sim/job sim/report
# `trib-sim`: capacity of a run, what it writes beside results
USES_sim := base base/shortage system fabric fabric/conf aggregation protocols/host collective collective/file switch/reduce switch/net host/coll host/coll/transport host/bench/verify host/bench sim/world sim/report sim/chaos sim/step sim/jobs

# Two that use each other.
# An aggregation node owns its multimem unit and passes it frames, events and ticks.
UP_switch/reduce := switch/multimem

# What several tests share.
USES_tests/support := base fabric fabric/routing fabric/conf aggregation roce switch/queue switch/reduce switch/multimem switch/net io/memif sim/eal

# What tests join beside their room, what it uses and tests/support: all tests, and those of a folder.
JOIN := sim/eal
JOIN_base := roce switch/queue
JOIN_roce := switch/queue
JOIN_roce/cc := roce switch/queue
JOIN_switch := switch/net
JOIN_switch/queue := switch/net
JOIN_switch/multimem := switch/net
JOIN_host/kernels := host/bench/verify
JOIN_host/coll := sim/job
JOIN_host/coll/transport := host/hca switch/net
JOIN_host/coll/recovery := host/hca switch/net
JOIN_host/bench/verify := sim/job
JOIN_host/session := host/hca/io
JOIN_host/launch := host/hca/io
JOIN_sim/world := sim/job
JOIN_sim/jobs := sim
JOIN_hostile := sim host/hca/io host/launch
JOIN_bench := sim host/hca/io host/launch
JOIN_fuzz := sim trace host/hca/io host/launch
