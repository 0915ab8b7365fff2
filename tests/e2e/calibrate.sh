#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# trib calibrate: known costs come back within 2 % from results made with them, with noise and outliers, in every format; the conf that
# is written loads, keeps its comments and predicts; what cannot be read is refused by line.
# tier: integration
# clock: virtual
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || skip "no python3"
PYTHON=${PYTHON:-python3}
export PYTHONDONTWRITEBYTECODE=1
cd "$tmp" || exit 1

# files of other tools and launchers: what is read of each, or why nothing (calibrate/expected.txt)
"$PYTHON" "$root/tests/tools/readers_check.py" calibrate "$root/tests/e2e/calibrate" >readers.out 2>&1 || fail "readers: $(cat readers.out)"
has '^[4-9][0-9] of calibrate: all right$' readers.out

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
sed 's/latency = "300ns"; };/latency = "300ns"; efficiency = 0.8; };/; $a costs = { nvlink = { launch = "20us"; }; };' "$conf/h100-node.conf" >known.conf
made nccl known.conf all_reduce 4 ring 0.005 1,4 "1M,64M" >four.txt
calibrated "$conf/h100-node.conf" four.txt
near "$(value efficiency out.conf)" 0.8 || fail "efficiency: $(grep efficiency out.conf)"
near "$(value launch out.conf)" 20000 || fail "floor: $(grep costs out.conf)"
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
# once more, from its own result: no comment twice, and the default name is not replaced unasked
cp out.conf again.conf
calibrated again.conf four.txt
[ "$(grep -c '# calibrated' out.conf)" = 2 ] || fail "comments: $(grep calibrated out.conf)"
near "$(value efficiency out.conf)" 0.8 || fail "from its own result: $(grep efficiency out.conf)"
touch again-calibrated.conf
trib calibrate again.conf four.txt >table.out 2>said.out && fail "replaced a conf unasked"
has 'found again-calibrated.conf here, expected -o again-calibrated.conf if it is to be replaced' said.out

# results of two numbers of ranks tell launch and step apart; multimem has a launch and a share of its own upon the links' efficiency
sed 's/launch = "20us";/launch = "20us"; step = "3us";/; s/nvlink = { launch/multimem = { launch = "50us"; load = 0.85; store = 0.85; }; &/' known.conf >steps.conf
made nccl steps.conf all_reduce 2 ring 0.001 "" "1M,16M" >two.txt
made nccl steps.conf all_reduce 8 ring 0.001 "" "1M,16M" >eight.txt
calibrated "$conf/h100-node.conf" two.txt eight.txt
near "$(value efficiency out.conf)" 0.8 || fail "efficiency of two numbers of ranks: $(grep efficiency out.conf)"
near "$(value 'nvlink = { launch' out.conf)" 20000 || fail "launch of two numbers of ranks: $(grep costs out.conf)"
near "$(sed -n 's/^costs.*step = "\([0-9]*\).*/\1/p' out.conf)" 3000 || fail "step of two numbers of ranks: $(grep costs out.conf)"
made nccl steps.conf all_reduce 4 nvls 0.001 "" "4M,32M" >nvls.txt
cp out.conf links.conf
calibrated links.conf nvls.txt --algo nvls
near "$(sed -n 's/^costs.* load = \([0-9.]*\); store = .*/\1/p' out.conf)" 0.85 || fail "load of multimem: $(grep costs out.conf)"
near "$(sed -n 's/^costs.*multimem = .*launch = "\([0-9]*\).*/\1/p' out.conf)" 50000 || fail "launch of multimem: $(grep costs out.conf)"

# JSON of nccl-tests and of trib sim, and trib sim's text: of the same results the same conf but for names
made json known.conf all_reduce 4 ring 0 "" "2M,16M" >four.json
calibrated "$conf/h100-node.conf" four.json
cp out.conf from-json.conf
near "$(value efficiency out.conf)" 0.8 || fail "efficiency by JSON: $(grep efficiency out.conf)"
near "$(value launch out.conf)" 20000 || fail "floor by JSON: $(grep costs out.conf)"
trib sim known.conf all_reduce -g 4 --algo ring --payload none --place out -w 0 -b 2M -e 16M -f 2 -J own.json >own.txt 2>/dev/null
for f in own.json own.txt; do
    calibrated "$conf/h100-node.conf" $f
    near "$(value efficiency out.conf)" "$(value efficiency from-json.conf)" 0.5 || fail "efficiency by $f: $(grep efficiency out.conf)"
done

# an older nccl-tests, of all_gather (no redop, no root, error instead of #wrong), tagged by mpirun, with NCCL's log between
made nccl known.conf all_gather 4 ring 0 "" "2M,16M" | sed -E 's/ +root( +time)/\1/; s/ redop/      /; s/#wrong/ error/g; s/ none +-1/        /; s/ +0$/  0e+00/
    /^ +8388608/i node0:123:456 [0] NCCL INFO Channel 00 : 0 1 2 3' | sed 's/^/[1,0]<stdout>:/' >old.txt
calibrated "$conf/h100-node.conf" old.txt --collective all_gather
near "$(value efficiency out.conf)" 0.8 || fail "efficiency by an older nccl-tests: $(grep efficiency out.conf)"

# two algorithms in one file: two series of one path
trib sim known.conf all_reduce -g 4 --algo ring,direct --payload none --place out -w 0 -b 2M -e 16M -f 2 >two.txt 2>/dev/null
calibrated "$conf/h100-node.conf" two.txt
near "$(value efficiency out.conf)" 0.8 || fail "efficiency by two algorithms: $(grep efficiency out.conf)"
near "$(value launch out.conf)" 20000 || fail "floor by two algorithms: $(grep costs out.conf)"
has 'from two.txt, 4 of 4 rows .*all_reduce ring, 4 ranks; two.txt, 4 of 4 rows .* all_reduce direct, 4 ranks' out.conf

# perftest and OSU, messages of two hosts: rate from bandwidths, both units; rate and floor from latencies; a conf without GPU nodes
sed 's/latency = "300ns"; }/latency = "300ns"; efficiency = 0.9; }/; $a costs = { network = { launch = "1us"; }; };' "$conf/two-hosts.conf" >known2.conf
for of in bw "bw Gb" osu-bw; do
    read -r form unit <<<"$of"
    made "$form" known2.conf sendrecv 2 direct 0.01 "" "64K,4M" $unit >bw.txt
    calibrated "$conf/two-hosts.conf" bw.txt
    near "$(value efficiency out.conf)" 0.9 || fail "efficiency by $of: $(grep efficiency out.conf)"
    has 'the floor stays' table.out
done
made lat known2.conf sendrecv 2 direct 0.002 4 "2K,4M" >lat.txt
calibrated "$conf/two-hosts.conf" lat.txt
near "$(value efficiency out.conf)" 0.9 || fail "efficiency by latencies: $(grep efficiency out.conf)"
near "$(value launch out.conf)" 1000 || fail "floor by latencies: $(grep costs out.conf)"
sed 's/efficiency = 0.9; }/efficiency = 0.9; }/; s/1us/4us/' known2.conf | sed 's/hosts = 2/hosts = 4/' >known4.conf
sed 's/hosts = 2/hosts = 4/' "$conf/two-hosts.conf" >four-hosts.conf
made osu known4.conf all_reduce 4 ring 0.002 "" "64K,8M" >osu.txt
calibrated four-hosts.conf osu.txt -g 4 --from 64K
near "$(value efficiency out.conf)" 0.9 || fail "efficiency by OSU: $(grep efficiency out.conf)"
near "$(value launch out.conf)" 4000 || fail "floor by OSU: $(grep costs out.conf)"

# refused CODE SAYS ARG...: a reason in a line, no traceback, nothing written
refused() {
    local code=$1 says=$2 rc
    shift 2
    rm -f none.conf
    trib calibrate "$@" -o none.conf >table.out 2>said.out
    rc=$?
    [ $rc = "$code" ] || fail "trib calibrate $*: exit code $rc, expected $code: $(cat said.out)"
    has "$says" said.out
    has_not 'Traceback|^ +File ' said.out
    [ ! -e none.conf ] || fail "trib calibrate $*: a conf was written"
}
n=$conf/h100-node.conf
# bad SAYS SED: four.txt with a change
bad() { sed -E "$2" four.txt >bad.txt; refused 1 "$1" "$n" bad.txt; }
bad "bad.txt:13: found '2097152x +524288 .*', expected a row of 13 columns, size first" '13s/2097152 /2097152x/'
bad "bad.txt:13: found 'garbage in a line', expected a row of 13 columns, size first, or a comment" '13s/.*/garbage in a line/'
bad "bad.txt:12: found '[0-9]+,[0-9]+', expected time in us of out of place, a number; a comma is no decimal point \(set LC_ALL=C\)" '12s/\./,/'
bad 'bad.txt:14: found 8 columns, expected 13: size count' '14s/( +[^ ]+){5}$//'
bad "bad.txt:14: found '-5.0'" '14s/-1( +)[0-9.]+/-1\1-5.0/'
bad 'bad.txt:5: found rank 0 a second time, expected each rank once: nccl-tests without MPI=1' '5s/.*//; 4{p}'
bad 'bad.txt:[0-9]+: found a head without the column time' 's/ time / tmie /g'
bad 'found no name of a collective, expected --collective with one of all_reduce, ' '/#  Rank/d'
refused 1 'found no number of ranks \(# Rank lines\), expected -g RANKS' "$n" bad.txt --collective all_reduce
bad 'found 4 ranks on 4 hosts, expected 1 hosts: CONF has 8 GPUs a node' 's/node0 device +([0-9])/node\1 device 0/'
bad 'found 1 size from 1 MiB on, expected 3 or more' '12,17d'
bad 'found no row with a size and a time' '12,18d'
awk '$3 == "float" { $6 /= 10 } 1' four.txt >bad.txt
refused 1 'the results are (far|[0-9]+ %) faster than CONF at gpu_nodes.nvlink.efficiency = 1' "$n" bad.txt
: >bad.txt && refused 1 'bad.txt: found an empty file' "$n" bad.txt
printf '\n \n' >bad.txt && refused 1 'found an empty file' "$n" bad.txt
head -c 3000 /bin/ls >bad.txt && refused 1 'bad.txt:[0-9]+: found a binary file \(byte 0x[0-9a-f]+\), expected text or JSON' "$n" bad.txt
refused 1 'found a directory, expected results' "$n" .
refused 1 'found no file, expected results' "$n" nothing.txt
refused 1 'found no plain file' "$n" /dev/null
[ "$(id -u)" = 0 ] || { cp four.txt bad.txt && chmod 0 bad.txt && refused 1 'bad.txt: cannot read: Permission denied' "$n" bad.txt; rm -f bad.txt; }
printf 'hello\nworld\n' >bad.txt && refused 1 "bad.txt:1: found 'hello' and no head of columns after it" "$n" bad.txt
head -c 300 four.json >bad.txt && refused 1 'bad.txt:1: found the end of the file: it is cut off, expected JSON' "$n" bad.txt
echo '{"results": 5}' >bad.txt && refused 1 'results: found 5, expected a list' "$n" bad.txt
echo '[1]' >bad.txt && refused 1 "found no field 'results'" "$n" bad.txt
sed 's/"size": 2097152/"size": "nan"/' four.json >bad.txt && refused 1 'results\[0\].size: found "nan", expected a number' "$n" bad.txt
printf '%.0s[' {1..100000} >bad.txt && refused 1 'bad.txt:1: found deep nesting, expected JSON|found' "$n" bad.txt
sed 's/MB\/sec/KB\/sec/g' bw.txt >bad.txt
made bw known2.conf sendrecv 2 direct 0 "" "64K,1M" | sed 's/MB\/sec/KB\/sec/g' >bad.txt && refused 1 'bad.txt:2: found the unit KB/sec, expected one of MB/sec' "$conf/two-hosts.conf" bad.txt
sed 's/usec/cycles/g' lat.txt >bad.txt && refused 1 'found times in cycles, expected microseconds' "$conf/two-hosts.conf" bad.txt
sed 's/(us)/(ms)/' osu.txt >bad.txt && refused 1 "bad.txt:4: found the unit 'ms', expected Latency \(us\)" four-hosts.conf bad.txt -g 4
refused 1 'found no number of ranks' four-hosts.conf osu.txt
refused 1 "found no conf file 'nothing.conf'" nothing.conf four.txt
refused 1 'found' four.txt four.txt
refused 1 'cannot predict all_reduce of 4 ranks by hier_sharp on CONF' "$n" four.txt --algo hier_sharp
refused 2 'found no CONF, expected CONF and one FILE or more'
refused 2 "found '$n', expected CONF and one FILE" "$n"
refused 2 "ranks: found '1'|-g: found '1', expected a number of ranks" "$n" four.txt -g 1
refused 2 "from: found '3Q', expected a size" "$n" four.txt --from 3Q
trib calibrate "$n" four.txt -o /nowhere/x.conf >table.out 2>said.out && fail "written to nowhere"
has 'cannot write /nowhere/x.conf' said.out

# what is left out is told, and the rest fitted: elements that are wrong, sizes that are missing, the end cut off
awk 'NR == 13 { $9 = 77 } NR != 16 && NR < 18; NR == 18 { print substr($0, 1, 60) }' four.txt >part.txt
calibrated "$n" part.txt
has 'part.txt:13: 2 MiB out of place left out: 77 elements are wrong' said.out
has 'part.txt:17: the last row is cut off and left out \(found [0-9]+ columns, expected 13\)' said.out
has 'part.txt: no rows of 3 sizes that its head announces: 2 MiB, 16 MiB, 64 MiB' said.out
