#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# trib calibrate: known costs come back within 2 % from results made with them, with noise and outliers, in every format; the conf that
# is written loads, keeps its comments and predicts; what cannot be read is refused by line.
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || skip "no python3"
cd "$tmp" || exit 1

# made FORMAT CONF COLLECTIVE RANKS ALGO NOISE OUTLIERS [SIZES]: what trib sim predicts, in another program's format, with noise
cat >made.py <<'PY'
import json, random, subprocess, sys
form, conf, coll, ranks, algo, noise, wrong = sys.argv[1:8]
sizes = (sys.argv[8:] or ["1M,32M"])[0].split(",")
subprocess.run(["trib", "sim", conf, coll, "-g", ranks, "--algo", algo, "--payload", "none", "--place", "out", "-w", "0", "-b", sizes[0],
                "-e", sizes[1], "-f", "2", "-J", "made.json"] + ["--mm-self"] * (algo == "nvls"), check=True, stdout=subprocess.DEVNULL,
               stderr=subprocess.DEVNULL)
rows = json.load(open("made.json"))["results"]
random.seed(int(ranks))
wrong = [int(x) for x in wrong.split(",") if x]
for i, r in enumerate(rows):
    r["time_us"] *= (1 + random.uniform(-1, 1) * float(noise)) * (1.7 if i in wrong else 1)
n, size = int(ranks), lambda r: r["size_bytes"]
if form == "nccl":
    print("# nThread 1 nGpus 1 minBytes %d maxBytes %d step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0\n#"
          "\n# Using devices" % (size(rows[0]), size(rows[-1])))
    for i in range(n):
        print("#  Rank %2d Group  0 Pid %6d on   node%d device %2d [0x1b] NVIDIA H100 80GB HBM3" % (i, 400 + i, i // 8, i % 8))
    print("#\n#                                                              out-of-place                       in-place\n"
          "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"
          "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)")
    for r in rows:
        a = size(r) / r["time_us"] / 1e3
        part = "  %7.2f  %6.2f  %6.2f  %5d" % (r["time_us"], a, a * r["busbw_GBps"] / r["algbw_GBps"], 0)
        print("%12d  %12d  %8s  %6s  %6d%s%s" % (size(r), r["count"], "float", "sum" if r["op"] == "sum" else "none", -1, part, part))
    print("# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 1\n#")
elif form == "json":
    json.dump({"version": 2, "args": ["build/%s_perf" % coll], "env": ["NCCL_ALGO=%s" % algo.upper()], "config": {"nthreads": 1, "ngpus": 1,
               "minimum_bytes": size(rows[0]), "maximum_bytes": size(rows[-1]), "step_factor": 2,
               "devices": [{"rank": i, "hostname": "node0"} for i in range(n)]},
               "results": [{"size": size(r), "count": r["count"], "type": "float", "redop": "sum", "root": "    -1",
                            "out_of_place": {"time": r["time_us"], "alg_bw": 1.0, "bus_bw": 1.0, "nwrong": 0.0},
                            "in_place": {"time": 9e9, "alg_bw": 1.0, "bus_bw": 1.0, "nwrong": None}} for r in rows]}, sys.stdout)
elif form == "lat":
    print("-" * 87 + "\n                    RDMA_Write Latency Test\n Dual-port       : OFF\t\tDevice         : mlx5_0\n" + "-" * 87 +
          "\n #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] ")
    for r in rows:
        print(" %-7d %d          %-7.2f        %-7.2f      %-7.2f  \t       %-7.2f     \t%-7.2f\t\t%-7.2f \t\t%-7.2f" % (
            (size(r), 1000) + tuple(r["time_us"] * f for f in (0.9, 5, 1, 1.1, 0.1, 2, 4))))
elif form in ("bw", "osu-bw"):
    gain = 1e6 if form == "osu-bw" else 0x100000 if len(sys.argv) < 10 else 125000000
    if form == "bw":
        u = "Gb" if len(sys.argv) > 9 else "MB"
        print("                    RDMA_Write BW Test\n #bytes     #iterations    BW peak[%s/sec]    BW average[%s/sec]   MsgRate[Mpps]" % (u, u))
    else:
        print("# OSU MPI-CUDA Bandwidth Test v7.2\n# Size      Bandwidth (MB/s)\n# Datatype: MPI_CHAR.")
    a, b = rows[-2:]
    rate = (size(b) - size(a)) / (b["time_us"] - a["time_us"]) * 1e6
    for r in rows:
        v = rate * (1 + random.uniform(-1, 1) * float(noise)) / gain
        print(" %-7d    %-10d       %-7.2f            %-7.2f\t\t   %-7.6f" % (size(r), 5000, v * 1.01, v, 0.01) if form == "bw" else "%-10d%18.2f" % (size(r), v))
elif form == "osu":
    print("\n# OSU MPI Allreduce Latency Test v7.3\n# Datatype: MPI_CHAR.\n# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations")
    for r in rows:
        print("%-10d%18.2f%18.2f%18.2f%12d" % (size(r), r["time_us"], r["time_us"] * 0.9, r["time_us"] * 1.2, 1000))
PY
PATH=$root/scripts:$PATH
made() { python3 made.py "$@"; }

# value KEY CONF: a number of the written conf
value() { sed -n "s/^[^#]*\\<$1 = \"\\{0,1\\}\\([0-9.]*\\).*/\\1/p" "$2" | head -n 1; }
near() { awk -v a="$1" -v b="$2" -v p="${3:-2}" 'BEGIN { exit !(a != "" && a >= b * (1 - p / 100) && a <= b * (1 + p / 100)) }'; }
# calibrated CONF FILE...: to out.conf
calibrated() { trib calibrate "$@" -o out.conf >table.out 2>said.out || fail "trib calibrate $*: $(cat said.out)"; }

# nccl-tests' text: a known floor and rate, noise of half a per cent, two outliers
sed 's/latency = "300ns"; };/latency = "300ns"; efficiency = 0.8; };/; $a costs = { gpu = "3us"; };' "$conf/h100-node.conf" >known.conf
made nccl known.conf all_reduce 4 ring 0.005 1,4 "1M,64M" >four.txt
calibrated "$conf/h100-node.conf" four.txt
near "$(value efficiency out.conf)" 0.8 || fail "efficiency: $(grep efficiency out.conf)"
near "$(value gpu out.conf)" 3000 || fail "floor: $(grep costs out.conf)"
has 'four.txt:1[0-9]: 2 MiB is an outlier, left out: measured [0-9.]+ us, \+[67][0-9] % of' said.out
has 'four.txt:1[0-9]: 16 MiB is an outlier' said.out
[ "$(grep -c outlier said.out)" = 2 ] || fail "outliers: $(cat said.out)"
[ "$(grep -c ' used$' table.out)" = 5 ] || fail "rows: $(cat table.out)"
# the written conf: loads, keeps all that was in it, says where its values are from, predicts
trib plan out.conf >plan.out || fail "trib plan of what was written"
diff "$conf/h100-node.conf" out.conf | grep '^<' | grep -v nvlink && fail "lines are lost"
has '^    # calibrated: gpu_nodes.nvlink.efficiency from four.txt, 5 of 7 rows \(1 MiB to 64 MiB\), all_reduce ring, 4 ranks$' out.conf
trib sim out.conf all_reduce -g 4 --algo ring --payload none --place out -w 0 -b 8M -e 8M -J eight.json >/dev/null 2>&1 || fail "trib sim of what was written"
near "$(jq '.results[0].time_us' eight.json)" "$(awk '$1 == 8388608 { print $6 }' four.txt)" || fail "prediction: $(jq -c '.results[0]' eight.json)"
# once more: the same, and no comment twice
cp out.conf again.conf
calibrated again.conf four.txt
[ "$(grep -c '# calibrated' out.conf)" = 2 ] || fail "comments: $(grep calibrated out.conf)"
near "$(value efficiency out.conf)" 0.8 || fail "from its own result: $(grep efficiency out.conf)"
