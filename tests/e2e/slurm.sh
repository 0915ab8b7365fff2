#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Slurm as labs have it: a sweep that the Python package has listed runs as a job array, and its rows are those of a run without Slurm; ranks of
# trib perf on two machines are started by srun. Two nodes of one machine, with daemons of the test's own. Needs Debian's slurmctld, slurmd,
# slurm-client and munge.
# tier: thirdparty
. "$(dirname "$0")/lib.sh"
for p in munged slurmctld slurmd sbatch srun; do
    PATH=$PATH:/usr/sbin command -v $p >/dev/null || skip "no $p (apt-get install slurmctld slurmd slurm-client munge)"
done
[ "$(id -u)" = 0 ] || skip "slurmd needs root"
PATH=$PATH:/usr/sbin
host=$(hostname -s)

next_port
cat >"$tmp/slurm.conf" <<END
ClusterName=lab
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$tmp/munge.sock
StateSaveLocation=$tmp/state
SlurmdSpoolDir=$tmp/spool.%n
SlurmctldPidFile=$tmp/slurmctld.pid
SlurmdPidFile=$tmp/slurmd.%n.pid
SlurmctldLogFile=$tmp/slurmctld.out
SlurmdLogFile=$tmp/slurmd.%n.out
SlurmctldPort=$port
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
MpiDefault=none
NodeName=n[0-1] NodeHostname=$host NodeAddr=127.0.0.1 Port=[$((port + 1))-$((port + 2))] CPUs=8 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
export SLURM_CONF=$tmp/slurm.conf
mkdir "$tmp/state"
(umask 077 && head -c 128 /dev/urandom >"$tmp/munge.key")
munged --foreground --force --key-file="$tmp/munge.key" --socket="$tmp/munge.sock" --pid-file="$tmp/munged.pid" --log-file="$tmp/munged.out" --seed-file="$tmp/munge.seed" \
    >"$tmp/munge.start.out" 2>&1 &
until_true 5 test -S "$tmp/munge.sock" || fail "munged: $(cat "$tmp"/munge*.out)"
slurmctld -D >"$tmp/ctld.out" 2>&1 &
for n in n0 n1; do slurmd -D -N $n >"$tmp/$n.out" 2>&1 & done
two_idle() { [ "$(sinfo -h -N -o %T | grep -cx idle)" = 2 ]; }
until_true 15 two_idle || fail "no two idle nodes: $(sinfo -N; tail -n 5 "$tmp"/slurm*.out)"

# ---- a sweep as a job array ----
if /usr/bin/python3 -c 'import pandas, libconf' 2>/dev/null; then
    cat >"$tmp/sweep.py" <<'END'
import sys, tributary as t
f = t.sweep(["leaf-spine-8", "single-switch-4"], sizes=("4K", "64K"), algos=["ring", "sharp"], seeds=range(2),
            faults={"no loss": None, "1 %": [{"link": "all", "loss": 0.01}]}, dir=sys.argv[2], workers=int(sys.argv[1]))
f.drop(columns=[c for c in f.columns if c in ("file", "conf", "faults_file")]).to_json(sys.argv[2] + ".rows", orient="records")
print(len(f), "rows,", f.attrs["sweep"]["found"], "found")
END
    export PYTHONPATH=$root/python PYTHONDONTWRITEBYTECODE=1
    sweep() { /usr/bin/python3 "$tmp/sweep.py" "$@" >"$tmp/sweep.out" 2>&1 || fail "sweep: $(cat "$tmp/sweep.out")"; }
    sweep 0 "$tmp/array"
    has '^0 rows, 0 found' "$tmp/sweep.out"
    (cd "$tmp" && PATH=$root/scripts:$PATH timeout 60 sbatch --wait --array=0-3 "$root/scripts/trib-sweep.sbatch" array/list array) >"$tmp/sbatch.out" 2>&1 ||
        fail "sbatch: $(cat "$tmp/sbatch.out" "$tmp"/trib-sweep-*.log)"
    [ "$(cat "$tmp"/trib-sweep-*.log | grep -c 'task [0-3] of 4')" = 16 ] || fail "16 simulations in four tasks: $(cat "$tmp"/trib-sweep-*.log)"
    sweep 2 "$tmp/array"
    has '^32 rows, 16 found' "$tmp/sweep.out"
    sweep 2 "$tmp/here"
    has '^32 rows, 0 found' "$tmp/sweep.out"
    diff <(jq -S 'map([.algo, .bytes, .seed, .time_us])' "$tmp/array.rows") <(jq -S 'map([.algo, .bytes, .seed, .time_us])' "$tmp/here.rows") >"$tmp/diff.out" ||
        fail "rows by Slurm and without: $(head -n 20 "$tmp/diff.out")"
    [ "$(jq 'map(.time_us > 0) | all and length == 32' "$tmp/here.rows")" = true ] || fail "rows: $(head -c 500 "$tmp/here.rows")"
else
    echo "the part with sweeps was skipped: no pandas or libconf for Debian's python3"
fi

# ---- a fabric on two machines: srun starts its parts, and ranks ----
cat >"$tmp/slm.conf" <<END
name = "slm";
leaf_spine = { leaves = 2; spines = 1; hosts_per_leaf = 2; host_link = { rate = "400Gb/s"; latency = "300ns"; }; spine_link = { rate = "400Gb/s"; latency = "300ns"; }; };
reduce = { groups = 64; slots = 16384; window = 256; };
machines = ( { name = "n0"; address = "127.0.0.2"; port = $((port + 3)); nodes = ( "leaf0", "spine0" ); },
             { name = "n1"; address = "127.0.0.3"; port = $((port + 3)); nodes = ( "leaf1" ); } );
trunk_key = "a secret that the lab shares";
END
printf '#!/bin/sh\nexport TRIB_RUN=%s/$SLURMD_NODENAME PATH=%s:%s:$PATH\nexec "$@"\n' "$tmp/run" "$TRIB_BUILD" "$root/scripts" >"$tmp/there" # one machine stands for two
chmod +x "$tmp/there"
mkdir -m 700 "$tmp/run"
srun="srun -u -Q -N1 -n1 --overlap -w \$TRIB_MACHINE $tmp/there" # what --launch srun stands for, on one machine
(unset TRIB_RUN; trib up "$tmp/slm.conf" --launch "$srun") >"$tmp/up.out" 2>&1 || fail "trib up --launch: $(cat "$tmp/up.out")"
has 'fabric slm is up on machines n0, n1' "$tmp/up.out"
TRIB_RUN=$tmp/run/n0 TRIB_RSH=$srun trib perf --algo ring,sharp -b 64K -e 64K -n 3 --max-wall 5 -J "$tmp/perf.json" >"$tmp/perf.out" 2>&1
rc=$?
TRIB_RUN=$tmp/run/n0 trib down --machines >"$tmp/down.out" 2>&1
no_steps() { [ -z "$(squeue -h -s)" ] && [ -z "$(ls "$tmp/run")" ]; }
until_true 15 no_steps || fail "left: $(squeue -s; ls "$tmp/run")"
[ $rc = 0 ] || fail "ranks by srun: $(cat "$tmp/perf.out")"
jq -e '(.results | length) == 4 and all(.results[]; .wrong == 0)' "$tmp/perf.json" >"$tmp/jq.out" || fail "ranks by srun: $(cat "$tmp/perf.out")"
