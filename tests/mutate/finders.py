# SPDX-License-Identifier: BSD-3-Clause
"""What may find a mutant: unit tests of its room and of others, chaos. Each has so many seconds of CPU time, so that other
load of the machine does not decide."""
import glob
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

import recipes

LIMIT = int(os.environ.get("LIMIT", "60"))
SEEDS = os.environ.get("SEEDS", "600")
# Memory that nobody frees is a finding where the unchanged test frees all: without this, a statement that frees could go unseen.
LEAKS = ("-fsanitize=leak",)
# Of the mutant's file alone, where nothing else finds it: memory beside what it has, and what C does not define.
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer")
# Tests of a room that are not in tests/ROOM.
ALSO = {
    "host/coll": ["tests/sim/test_failover", "tests/sim/test_rejoin", "tests/sim/test_comms"],
    "model": ["tests/sim/test_model_exact", "tests/sim/test_model_packets"],
    "host/coll/recovery": ["tests/sim/test_failover", "tests/sim/test_rejoin"],
    "host/coll/transport": ["tests/sim/test_protocols", "tests/sim/test_comms", "tests/sim/test_slots", "tests/sim/test_failover"],
    "sim": ["tests/sim/test_faults", "tests/sim/test_gone"],
}
# Rooms whose tests are of more than themselves, and take long.
FAR = ("sim", "host")


def room_of(file):
    return os.path.dirname(file)


def tests_of(file):
    """Unit tests of a file's room, that of its own name first, then those of rooms below it and of the one above; where the room has none,
    also of those above that. Of a Python file those of its room alone."""
    room, found = room_of(file), []
    if file.endswith(".py"):
        own = f"test_{os.path.basename(file).lstrip('_')}"
        return [t[:-3] for t in sorted(glob.glob(f"tests/{room}/test_*.py"), key=lambda t: (os.path.basename(t) != own, t))]
    while room and not found:
        found = sorted(glob.glob(f"tests/{room}/test_*.[cp]*"))
        found += [t + ".c" for t in ALSO.get(room, []) if os.path.exists(t + ".c")]
        found += sorted(glob.glob(f"tests/{room}/**/test_*.[cp]*", recursive=True)) if room not in FAR or not found else []
        room = os.path.dirname(room)
        found += sorted(glob.glob(f"tests/{room}/test_*.[cp]*")) if room and room not in FAR else []
    name = os.path.splitext(os.path.basename(file))[0]
    kind = os.path.splitext(file)[1]
    found = [os.path.splitext(f)[0] for f in dict.fromkeys(found) if f.endswith(kind)]
    return sorted(found, key=lambda t: os.path.basename(t) != f"test_{name}")


def all_unit_tests():
    return sorted(f[:-2] for f in glob.glob("tests/**/test_*.c", recursive=True))


def program_of(finder):
    return f"{recipes.BUILD}/trib-sim" if finder == "chaos" else f"{recipes.BUILD}/{finder}"


PATIENCE = 15  # seconds of a look at a program that may wait for ever


def work_of(group):
    """What the processes of a group have done so far; None while one could run, whatever other load leaves it."""
    ticks = 0
    for stat in glob.glob("/proc/[0-9]*/task/[0-9]*/stat"):
        try:
            with open(stat, encoding="utf-8", errors="replace") as f:
                words = f.read().rsplit(")", 1)[1].split()
        except (OSError, IndexError):
            continue
        if int(words[2]) == group:
            if words[0] in "RD":
                return None
            ticks += int(words[11]) + int(words[12])
    return ticks


def run(words, seconds, **more):
    """Runs a program for so many seconds of CPU time; its status, negative for a signal, and its output."""
    limit = max(1, round(seconds))
    with subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
        preexec_fn=lambda: (resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1)), resource.setrlimit(resource.RLIMIT_CORE, (0, 0))), **more,
    ) as p:
        out, worked, until = None, None, time.monotonic() + 8 * limit
        while out is None:
            try:
                out = p.communicate(timeout=PATIENCE)[0]
            except subprocess.TimeoutExpired:
                before, worked = worked, work_of(p.pid)
                if (worked is not None and worked == before) or time.monotonic() > until:  # it waits for something
                    os.killpg(p.pid, signal.SIGKILL)
                    out = p.communicate()[0]
        return p.returncode, out


def python_test(test, seconds, package):
    env = {**os.environ, "PYTHONPATH": package, "PYTHONDONTWRITEBYTECODE": "1"}
    return run([sys.executable, "-m", "unittest", test.replace("/", ".")], seconds, env=env)


def twin(path):
    return path.replace(f"{recipes.BUILD}/", f"{recipes.BUILD}/wide/", 1)


def failed_case(out):
    for pattern in (r"^\[  FAILED  \] ([a-z]\w+)", r"^(?:FAIL|ERROR): (\w+)", r"FAILED: (.*)$", r"(?i)^(.*\bassert.*)$"):
        m = re.search(pattern, out, re.M)
        if m:
            return m.group(1)[:100]
    return ""


class Finders:
    """Asks finders about mutants; knows how long each takes on the unchanged tree, and what finds most."""

    def __init__(self, links, scratch):
        self.links, self.scratch, self.base, self.hits = links, scratch, {}, {}
        self.has, self.more = {}, {}  # of each finder its objects, and the options of its links

    def _run(self, finder, program, seconds, package=None):
        if finder == "chaos":
            return run([program, "--chaos", f"1-{SEEDS}", "--max-wall", "40"], seconds)
        if package:
            return python_test(finder, seconds, package)
        return run([program], seconds)

    def baseline(self, finder, python):
        """CPU seconds of a finder on the unchanged tree; None where it fails there, so that it says nothing."""
        if finder == "chaos":
            if finder not in self.base:
                recipes.build(self.links[program_of(finder)])
            self.base[finder] = 0
            return 0
        if finder not in self.base:
            if not python:
                recipes.build(self.links[program_of(finder)])
            rc = self._measure(finder, python, *LEAKS)
            if rc and not python:
                rc = self._measure(finder, python)
            if rc:
                print(f"# {finder} says nothing: {'it takes too long' if rc < 0 else failed_case(self.says) or self.says.strip()[-200:]}", file=sys.stderr)
        return self.base[finder]

    def _measure(self, finder, python, *more):
        """Runs a finder on the unchanged tree, linked with more options; its status."""
        program = f"{self.scratch}/program"
        if not python:
            self.has[finder] = recipes.link_with(self.links[program_of(finder)], {}, program, "-Wl,-t,-t", *more)
            self.more[finder] = more
            if self.has[finder] is None:
                self.base[finder], self.says = None, "it cannot be linked"
                return 1
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        rc, self.says = self._run(finder, program, LIMIT, "python" if python else None)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.base[finder] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime if rc == 0 else None
        return rc

    def _links(self, finder, objects, program, more=None):
        """Links a finder with those of the mutant's objects that it has; false where it has none."""
        link = self.links[program_of(finder)]
        wide = any(w.startswith(f"{recipes.BUILD}/wide/") for w in link)  # of a room that is built twice
        here = {o: to for o, to in objects.items() if finder == "chaos" or os.path.basename(o) in self.has[finder]}
        here = {o: to for o, to in here.items() if o.startswith(f"{recipes.BUILD}/wide/") == wide or (wide and twin(o) not in objects)}
        return here and recipes.link_with(link, here, program, *(more or self.more.get(finder, ()))) is not None

    def order(self, tests):
        return sorted(tests, key=lambda t: -self.hits.get(t, 0))

    def ask(self, mutant, objects, finders):
        """Who finds a mutant first, and what it says; within LIMIT seconds for all tests, and LIMIT for chaos."""
        left, python = LIMIT, mutant.file.endswith(".py")
        for finder in finders:
            takes = self.baseline(finder, python)
            if takes is None or (finder != "chaos" and takes > left):
                continue
            program, package = f"{self.scratch}/program", None
            if python:
                package = python_copy(mutant, self.scratch)
            elif not self._links(finder, objects, program):
                continue  # it has nothing of the mutant's file
            start = time.monotonic()
            rc, out = self._run(finder, program, LIMIT if finder == "chaos" else min(LIMIT, 5 + 10 * takes), package)
            if finder != "chaos":
                left -= takes
            ended = rc in (-signal.SIGXCPU, -signal.SIGKILL)
            if finder == "chaos" and ended and "FAILED" not in out:
                continue
            if rc:
                self.hits[finder] = self.hits.get(finder, 0) + 1 / max(1, time.monotonic() - start)
                return finder, "it does not end" if ended else failed_case(out) or f"status {rc}"
        return None, ""


    def ask_sanitized(self, tests, objects, original):
        """The same of unit tests with the mutant's file under sanitizers; original() gives the file's own objects so."""
        env, program, left = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}, f"{self.scratch}/program", LIMIT
        for finder in tests if objects else []:
            takes = self.base.get(finder)
            if takes is None or takes > left or not self._links(finder, objects, program, SANITIZERS[:1]):
                continue
            left -= takes
            seconds = min(LIMIT, 10 + 30 * takes)
            rc, out = run([program], seconds, env=env)
            if not rc or not self._links(finder, original(), program, SANITIZERS[:1]) or run([program], seconds, env=env)[0]:
                continue  # it sees nothing, or as much in the file as it is
            return finder, sanitizer_case(out) or failed_case(out) or f"status {rc}"
        return None, ""


def sanitizer_case(out):
    m = re.search(r"ERROR: (AddressSanitizer: [\w-]+)|: (runtime error: .*)$", out, re.M)
    return (m.group(1) or m.group(2))[:100] if m else ""


def python_copy(mutant, scratch):
    to = f"{scratch}/python"
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree("python", to, ignore=shutil.ignore_patterns("__pycache__"))
    with open(f"{scratch}/{mutant.file}", "w", encoding="utf-8") as f:
        f.write(mutant.source())
    return to
