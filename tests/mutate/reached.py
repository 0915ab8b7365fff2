# SPDX-License-Identifier: BSD-3-Clause
"""Which tests of the first tier reach a line: each runs once on a tree that counts lines (gcov) and calls (Python's profiler). Only those
can find its mutants; without this every mutant would ask hundreds of tests."""
import concurrent.futures
import glob
import json
import os
import shutil
import signal
import subprocess
import sys

BUILD = "build-coverage"
SECONDS = 150  # of a test
MAKE = ["make", "--no-print-directory", "-s", "-j2", "MODE=coverage", f"BUILD={BUILD}", "WARN=-w"]
# Appended to the package's __init__.py in a copy of the tree: what was called, by the lines of each code object.
PROFILER = '''
def _reached():
    import atexit, json, os, sys, threading
    to, codes = os.environ.get("MUTATE_REACHED"), set()
    if not to:
        return
    here = os.path.dirname(__file__)
    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(here):
            codes.add(frame.f_code)
    def tell():
        sys.setprofile(None)
        lines = {}
        for code in codes:
            file = "python/tributary" + code.co_filename[len(here):]
            lines.setdefault(file, []).extend(line for _, _, line in code.co_lines() if line)
        with open(f"{to}/{os.getpid()}.json", "w", encoding="utf-8") as f:
            json.dump(lines, f)
    atexit.register(tell)
    threading.setprofile(note)
    sys.setprofile(note)
_reached()
'''


def first_tier():
    """The end-to-end scripts of `make test`: those in virtual time, and the core of those in real time."""
    listed = subprocess.run(["tests/run.sh", "list"], capture_output=True, text=True, check=True, env={**os.environ, "T": ""}).stdout
    words = [line.split() for line in listed.splitlines()]
    return sorted(f"tests/{w[2]}" for w in words if w[0] in ("first", "core") and w[2].startswith("e2e/"))


def copy_tree(to):
    """What scripts find beside themselves, without what is compiled."""
    for file in subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], capture_output=True, text=True, check=True).stdout.split("\n"):
        if file and os.path.exists(file):
            os.makedirs(os.path.dirname(f"{to}/{file}"), exist_ok=True)
            shutil.copy(file, f"{to}/{file}", follow_symlinks=False)


def command(test, tree, build):
    """How tests/run.sh runs a test of the first tier, with another tree's scripts and another build's programs."""
    if test.endswith(".sh"):
        return ["bash", f"{tree}/{test}"], {"TRIB_BUILD": os.path.abspath(build)}
    if test.startswith("tests/python/"):
        return [sys.executable, "-m", "unittest", test.replace("/", ".")], {"PYTHONPATH": f"{tree}/python", "PYTHONDONTWRITEBYTECODE": "1"}
    return [f"{build}/{test}"], {}


def run(words, env, seconds):
    """Runs a test that may start others; its status, None where it did not end in time, and its output. It has time to stop what it started."""
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=env,
                          start_new_session=True) as p:
        try:
            out = p.communicate(timeout=seconds)[0]
            return p.returncode, out
        except subprocess.TimeoutExpired:
            pass
        for sig in (signal.SIGTERM, signal.SIGKILL):
            os.killpg(p.pid, sig)
            try:
                return None, p.communicate(timeout=20)[0]
            except subprocess.TimeoutExpired:
                pass
        return None, ""


class Reached:
    def __init__(self, files, tests, scratch):
        """Runs TESTS, two at a time, and keeps which lines of FILES each reaches."""
        self.c_files = {f for f in files if f.endswith(".c")}
        self.lines, self.scratch, tree = {}, f"{scratch}/reached", f"{scratch}/counted"
        programs = [f"{BUILD}/{t}" for t in tests if not t.endswith(".sh") and not t.startswith("tests/python/")]
        subprocess.run(MAKE + ["programs", f"{BUILD}/tests/tools/icrc_check", *programs], check=True, env={**os.environ, "LC_ALL": "C"}, stdout=subprocess.DEVNULL)
        self.notes = [os.path.splitext(g)[0] for f in self.c_files for g in glob.glob(f"{BUILD}/**/{f[:-2]}.gcno", recursive=True)]
        copy_tree(tree)
        with open(f"{tree}/python/tributary/__init__.py", "a", encoding="utf-8") as f:
            f.write(PROFILER)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for test, lines in pool.map(lambda t: (t[1], self._run(t[0], t[1], tree)), enumerate(tests)):
                self.lines[test] = lines

    def _run(self, n, test, tree):
        here = f"{self.scratch}/{n}"
        os.makedirs(here)
        os.chmod(self.scratch, 0o1777)
        os.chmod(here, 0o1777)
        words, more = command(test, tree, BUILD)
        env = {**os.environ, **more, "GCOV_PREFIX": here, "MUTATE_REACHED": here, "TEST_SLOT": str(50 + n % 100)}
        if run(words, env, SECONDS)[0] is None:
            print(f"# {test} took more than {SECONDS} s where lines are counted", file=sys.stderr)
        lines = {}
        for part in glob.glob(f"{here}/*.json"):
            with open(part, encoding="utf-8") as f:
                for file, some in json.load(f).items():
                    lines.setdefault(file, set()).update(some)
        self._count(here, lines)
        shutil.rmtree(here)
        return lines

    def _count(self, here, lines):
        """Adds lines of C that gcov counted."""
        counted = []
        for note in self.notes:
            data = f"{here}{os.path.abspath(note)}.gcda"
            if os.path.exists(data):
                os.symlink(os.path.abspath(f"{note}.gcno"), f"{data[:-5]}.gcno")
                counted.append(data)
        if not counted:
            return
        told = subprocess.run(["gcov", "--json-format", "--stdout", *counted], capture_output=True, text=True, check=False).stdout
        for text in told.splitlines():
            for file in json.loads(text)["files"]:
                if file["file"] in self.c_files:
                    lines.setdefault(file["file"], set()).update(line["line_number"] for line in file["lines"] if line["count"])

    def by(self, mutant, tests):
        """Those of TESTS that reach a mutant. A statement of several lines is counted at one of them, so the nearest line above counts too."""
        near = range(mutant.line - 3, mutant.line + 1)
        return [t for t in tests if any(n in self.lines.get(t, {}).get(mutant.file, ()) for n in near)]


def seconds_of_cpu(usage):
    return usage.ru_utime + usage.ru_stime
