#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""unused.py BUILD: public functions that no program needs, by the symbols of a whole build's objects. A function is used if an object of another file
refers to it, or one of its own file and a test. What programs and libraries export is used by whoever loads them. Fails on a function that tests alone
use, on one that only its own file uses, which should be static, and on one that nothing uses, unless KEPT has a reason; and on a line of KEPT that is
out of date."""

import os
import re
import subprocess
import sys

from docs_text import text_of

# Functions that no program uses, and why they are public all the same.
GONE = "goes with the kernel of blocks, which nothing launches, when the kernels' images are next made anew"
STATE = "a test reads state that no program asks for"
FIGURE = "a closed form of docs/validation.md whose published figures a test compares"
PARSER = "a program's own parser, without its environment or its exit, for tests and fuzzing"
DRIVER = "the CUDA driver of tests runs kernels' twins by it"
KEPT = {
    "agg_type_name": "a test names a message that failed",
    "an_mm": STATE,
    "an_roce_counters": STATE,
    "arith_kernel_of": "a test compares each row of kernels with the scalar row",
    "blocks_grid": GONE,
    "coll_predict": "a prediction with one tree, as most tests have it",
    "device_read": "a test reads back what is in GPU memory",
    "job_gather": "a message of every rank with a limit of time alone, as tests have it",
    "job_pid": STATE,
    "kernel_blocks": GONE,
    "kernel_by_name": DRIVER,
    "kernel_run_twin": DRIVER,
    "kernel_split": GONE,
    "kernel_unit": GONE,
    "log_set": PARSER,
    "mmc_posted": STATE,
    "nic_backlog": STATE,
    "perf_options_parse": PARSER,
    "proto_switch_busy": STATE,
    "roce_print": "a test shows a packet that is not as expected",
    "roce_reason_name": "a test names the reason of a refused packet",
    "roofline_add_s": FIGURE,
    "roofline_dp_tokens": FIGURE,
    "roofline_ep_comms_s": FIGURE,
    "roofline_ep_free": FIGURE,
    "roofline_ep_math_s": FIGURE,
    "roofline_intensity": FIGURE,
    "roofline_matmul_s": FIGURE,
    "roofline_tp_degree": FIGURE,
    "sched_ready": "the interpreter of tests (tests/collective/interp.h) runs schedules by it",
    "telemetry_answer": "a test asks a command without DPDK's socket",
    "trace_load_bytes": PARSER,
    "watch_end": "a test ends the watch that a program ends with itself",
}


def lines_of(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False, text=True).stdout.splitlines()


def words_of(paths):
    """The words of C sources outside of comments, and of their strings the names that assembly has."""
    words = {}
    for path in paths:
        text = re.sub(r"/\*.*?\*/", "", text_of(path), flags=re.S)
        for word in re.findall(r"\w+", text):
            words[word] = words.get(word, 0) + 1
    return words


def objects(build, sources):
    """(source, object) of what is built, and the sources that are not."""
    pairs = [(source, path) for source in sources for path in (f"{build}/{source[:-2]}.o", f"{build}/wide/{source[:-2]}.o") if os.path.exists(path)]
    built = {source for source, _ in pairs}
    return pairs, [source for source in sources if source not in built]


def symbols(pairs):
    """Functions that objects define, with their files, and the names to which objects refer."""
    defined, used, source_of = {}, set(), {path: source for source, path in pairs}
    for line in lines_of("nm", "-A", "-g", *source_of):
        kind, name = line.split()[-2:]
        if kind == "T":
            defined.setdefault(name, source_of[line.split(":")[0]])
        elif kind in "Uw":
            used.add(name)
    return defined, used


def exported(build):
    """What programs and shared objects of a build give to those that load them."""
    loaded = []
    for folder in (build, *(path for path in (f"{build}/pmix", f"{build}/openmpi") if os.path.isdir(path))):
        loaded += [f"{folder}/{name}" for name in sorted(os.listdir(folder)) if re.search(r"\.so(\.\d+)?$|^trib[a-z-]*$", name)]
    return {line.split()[-1].split("@")[0] for line in lines_of("nm", "-D", "--defined-only", *(path for path in loaded if os.path.isfile(path))) if " " in line}


def mistakes(build):
    tree = lines_of("git", "ls-files", "-co", "--exclude-standard", "*.c", "*.cu", "*.h")
    tree = [path for path in tree if os.path.exists(path)]
    code = [path for path in tree if not path.startswith(("tests/", "examples/", "io/static/"))]  # libpcap's archive calls what io/static has
    pairs, unbuilt = objects(build, [path for path in code if path.endswith(".c")])
    if not pairs:
        yield f"found no objects in {build}, expected a build"
        return
    defined, used = symbols(pairs)
    used |= exported(build) | {"main"} | set(words_of(unbuilt + [path for path in code if path.endswith(".cu")]))
    tests = words_of(path for path in tree if path.startswith("tests/"))
    for name, source in sorted(defined.items()):
        inside = words_of([source]).get(name, 0) > 1 if name not in used else True
        if name in used or "@" in name or re.search(rf"symver {name},|(?:jmp|\bb) {name};", text_of(source)):
            if name in KEPT:
                yield f"scripts/unused.py: found {name} in KEPT, which a program uses"
        elif name in tests and inside:
            if name in KEPT:
                yield f"scripts/unused.py: found {name} in KEPT, which its own file uses"
        elif name in tests and name not in KEPT:
            yield f"{source}: found {name}(), which tests alone use, expected it in tests/, or a reason in KEPT"
        elif name not in tests and name not in KEPT:
            yield f"{source}: found {name}(), which {'its own file alone' if inside else 'nothing'} uses, expected {'it static' if inside else 'its removal'}"
    for name in sorted(set(KEPT) - set(defined)):
        yield f"scripts/unused.py: found {name} in KEPT, which no object defines"


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    found = list(mistakes(sys.argv[1].rstrip("/")))
    for mistake in found:
        print("unused: " + mistake)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
