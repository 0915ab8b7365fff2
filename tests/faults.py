#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""make faults: allocations, maps and files of programs in virtual time fail, one at a time (base/shortage/fault.h).

Each command is run once with TRIB_FAULT=list, which names the places that it reaches and how often; then again for each place, where its
first call fails, and its last one, by two of the commands that reach it at most. The program may say what is missing and end with an error, or do without; it may
not crash, leak, hang, end with success and other rows than before, or end with an error and no word. The sanitizers' build sees the rest.

  BUILD=build-asan  programs to run
  DRAW=N            N of the failures, drawn by DRAW_SEED= or today's date; all of them otherwise
  ONLY=TEXT         places with TEXT in them
"""
import collections
import concurrent.futures
import datetime
import os
import random
import re
import subprocess
import sys
import tempfile

BUILD = os.environ.get("BUILD", "build-asan")
LIMIT_S = 60
SANITIZER = 99
COMMANDS = [
    "trib-plan conf/leaf-spine-8.conf",
    "trib-plan conf/h100-node.conf --svg",
    "trib-model conf/leaf-spine-8.conf all_reduce",
    "trib-sim conf/leaf-spine-8.conf --algo sharp,ring,tree -b 4K -e 64K -n 2",
    "trib-sim conf/h100-node.conf --algo nvls,ring -b 64K -e 64K",
    "trib-sim conf/rail-2x4.conf --algo auto -b 64K -e 64K --counters -J @json",
    "trib-sim conf/rail-2x4.conf alltoall --algo all -b 4K -e 4K",
    "trib-sim conf/leaf-spine-8.conf --algo switchml,atp,ps -b 64K -e 64K",
    "trib-sim conf/leaf-spine-8.conf --algo sharp -b 64K -e 64K --faults conf/faults/flap.conf --timeline @json",
    "trib-sim conf/leaf-spine-8.conf --jobs conf/jobs/two.conf",
    "trib-sim conf/rail-2x8.conf --workload conf/workloads/megatron-16b.conf",
]
SITE = re.compile(r"^fault: (\S+):(\d+) (\w+) (\d+)$", re.M)
# A run that does without something says so in its table: a smaller window, a fallback, a table that ends.
SAID = r"no memory|out of memory|over quota|fell back"
OPTIONAL = re.compile(r"^(#|fault:|\s*$)")


def run(command, fault):
    """(exit code or None where it hung, standard output, standard error)"""
    with tempfile.TemporaryDirectory() as d:
        words = [os.path.join(d, "out.json") if w == "@json" else w for w in command.split()]
        words[0] = os.path.join(BUILD, words[0])
        env = {**os.environ, "TRIB_FAULT": fault, "ASAN_OPTIONS": f"exitcode={SANITIZER}:allocator_may_return_null=1:detect_leaks=1",
               "LSAN_OPTIONS": f"exitcode={SANITIZER}", "UBSAN_OPTIONS": f"exitcode={SANITIZER}"}
        try:
            p = subprocess.run(words, env=env, capture_output=True, text=True, errors="replace", timeout=LIMIT_S, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return None, "", ""
        return p.returncode, p.stdout, p.stderr


def rows(text):
    return [line for line in text.splitlines() if not OPTIONAL.match(line)]


def verdict(command, fault, whole):
    """None, or what is wrong."""
    code, out, err = run(command, fault)
    words = [line for line in err.splitlines() if line.strip() and not line.startswith("fault:")]
    if code is None:
        return f"has not ended within {LIMIT_S} s"
    if code < 0 or code == SANITIZER or "assertion failed" in err or "Sanitizer" in err:
        return f"exit code {code}:\n" + "\n".join(words[:25])
    if f"fault: {fault.rsplit(':', 1)[0]}" not in err:
        return None  # another order of threads, or a path that this run did not take
    if code == 0 and rows(out) != whole and not re.search(SAID, out + err):
        return "succeeds with other rows than without the fault:\n" + out[-1500:]
    if code and not words and not re.search(r"(?i)memory|cannot|fail|error|found", out):
        return f"exit code {code} without a word"
    return None


def main():
    cases, reached = [], collections.Counter()
    for command in COMMANDS:
        code, out, err = run(command, "list")
        if code != 0:
            print(f"faults: {command}: exit code {code} without a fault\n{err[-2000:]}")
            return 1
        for file, line, what, calls in SITE.findall(err):
            n = int(calls)
            reached[file, line] += 1
            for call in sorted({1, n}) if reached[file, line] <= 2 else []:
                cases.append((command, f"{file}:{line}:{call}", what, rows(out)))
    cases = [c for c in cases if os.environ.get("ONLY", "") in c[1]]
    found = len(cases)
    draw = int(os.environ.get("DRAW") or 0)
    if draw:
        seed = os.environ.get("DRAW_SEED") or datetime.date.today().isoformat()
        cases = random.Random(seed).sample(cases, min(draw, found))
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda c: (c, verdict(c[0], c[1], c[3])), cases)
        for (command, fault, what, _), wrong in results:
            if wrong:
                bad += 1
                print(f"FAILED: {what} fails at {fault}\n  TRIB_FAULT={fault} {BUILD}/{command}\n  " + wrong.replace("\n", "\n  "), flush=True)
    print(f"faults: {len(cases)} of {found} calls failed on purpose at {len({c[1].rsplit(':', 1)[0] for c in cases})} places, {bad} of them badly")
    return 1 if bad or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
