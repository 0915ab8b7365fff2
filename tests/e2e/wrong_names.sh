#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# clock: virtual
# A name that nothing has, and words in the wrong order: every command says which one was meant.
. "$(dirname "$0")/lib.sh"
cd "$tmp" || exit 1

says() { # says TEXT ARG...
    local text=$1 rc
    shift
    trib "$@" >"$tmp/said.out" 2>&1
    rc=$?
    [ $rc = 1 ] || [ $rc = 2 ] || fail "trib $*: exit code $rc, expected 1 or 2"
    has "$text" "$tmp/said.out"
}

meant='did you mean leaf-spine-8\?$'
for c in plan sim model perf up down status top metrics; do says "no conf file 'leafspine-8', .*$meant" $c leafspine-8; done
says "$meant" perf Leaf_Spine_8 all_reduce
says "$meant" link spine-leaf-8 h0-leaf0
says "$meant" exec leafspine-8 h0 -- true
says "$meant" calibrate leafspine-8 results.txt
"$root/scripts/trib-sweep" --vary mtu=1024 "$tmp/x" leafspine-8 2>"$tmp/said.out" && fail "a sweep of no conf"
has "$meant" "$tmp/said.out"
says "no fault plan 'flop', .*did you mean flap\?" sim leaf-spine-8 --faults flop
says "no workload file 'llama-70b', .*did you mean llama3-70b\?" sim leaf-spine-8 --workload=llama-70b
says "no file of jobs 'to', expected a path such as" sim leaf-spine-8 --jobs to
says "no workload file 'two', expected a path such as conf/workloads/" sim leaf-spine-8 --workload two
says "no fault plan 'ring-8', expected a path such as conf/faults/" sim leaf-spine-8 --faults ring-8
says "no file of jobs 'eigth', .*did you mean eight\?" sim leaf-spine-8 --jobs eigth
says "no schedule file 'rng-8.sched', .*did you mean ring-8\?" sim leaf-spine-8 --schedule rng-8.sched
says 'expected the conf of a fabric: this is a file beside it' sim flap

for c in sim perf model; do says "found the collective 'all_reduce' before the conf 'leaf-spine-8', expected: trib $c leaf-spine-8 all_reduce" $c all_reduce leaf-spine-8; done
says "found 'h0' before the conf 'leaf-spine-8', expected: trib exec leaf-spine-8 h0 -- CMD" exec h0 leaf-spine-8 -- true
says "found 'h0-leaf0' before the conf 'leaf-spine-8', expected: trib link leaf-spine-8 h0-leaf0$" link h0-leaf0 leaf-spine-8
says "found 'h0-leaf0' before the conf" capture h0-leaf0 leaf-spine-8 -o x.pcap
says "found '-b', expected: trib sim CONF" sim -b 4K

says 'link or a node that trib plan shows; did you mean leaf0-h0\?' sim leaf-spine-8 --links leaf0-h00 --trace x.pcapng
says 'did you mean spine1\?' sim leaf-spine-8 --links spien1 --trace x.pcapng
printf 'faults = ( { at = "1us"; link = "h0-leaf00"; down = true; },\n { at = "1us"; node = "spine-1"; down = true; },\n { at = "1us"; host = "hh3"; die = true; } );\n' >f.conf
says 'f.conf:1: link: found "h0-leaf00", .*did you mean h0-leaf0\?' sim leaf-spine-8 --faults f.conf
has 'f.conf:2: node: found "spine-1", .*did you mean spine1\?' "$tmp/said.out"
has 'f.conf:3: host: found "hh3", .*did you mean h3\?' "$tmp/said.out"
python3 - "$root/python" >"$tmp/said.out" 2>&1 <<'END' || fail "Python: $(cat "$tmp/said.out")"
import sys
sys.path.insert(0, sys.argv[1])
import tributary
for call, meant in ((lambda: tributary.Conf.load("leafspine-8"), "leaf-spine-8"), (lambda: tributary.run("leaf-spine-8", faults="flop"), "flap")):
    try:
        call()
        sys.exit("no error")
    except (FileNotFoundError, tributary.TribError) as e:
        assert f"did you mean {meant}?" in str(e), e
for empty in "confs", "collectives", "faults", "ops", "algos":
    try:
        tributary.sweep(**{"confs": "leaf-spine-8", "dir": "empty", "sizes": "4K", empty: {} if empty == "faults" else []})
        sys.exit(f"no error: {empty}")
    except ValueError as e:
        assert "found no value of" in str(e), e
END
