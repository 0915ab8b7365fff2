# SPDX-License-Identifier: BSD-3-Clause
"""How make compiles a file and links a program: its own commands, asked of it once, so that flags are in the Makefile alone."""
import os
import re
import shlex
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BUILD", "build-checked")
MAKE = ["make", "--no-print-directory", "MODE=checked", f"BUILD={BUILD}", "WARN=-w"]
# Mutants are compiled once.
ENV = {**os.environ, "CCACHE_DISABLE": "1", "LC_ALL": "C"}


def build(link):
    """Builds what a program's link command takes, of the unchanged tree."""
    parts = [w for w in link if w.startswith(f"{BUILD}/") and w.endswith((".o", ".a"))]
    ran = subprocess.run(MAKE + ["-s", *parts], env={**os.environ, "LC_ALL": "C"}, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise SystemExit(f"mutate: the tree does not build: {ran.stderr.strip()[-500:]}")


def ask(files, programs):
    """Three maps: of each source its compilers' commands (a room can be built twice), of each of the programs its link command, and the same of
    what make builds for all."""
    what_if = [word for f in files for word in ("-W", f)]
    ran = subprocess.run(MAKE + ["-n", "-j1", *what_if, "all", *programs], env=ENV, capture_output=True, text=True, check=True)
    compilers, links, of_all = {}, {}, {}
    for line in ran.stdout.replace("\\\n", " ").splitlines():
        if " -o " not in line or line.startswith(("echo", "@")):
            continue
        words = shlex.split(line.split(";")[0].split("||")[0])
        to = words[words.index("-o") + 1]
        if "-c" in words:
            compilers.setdefault(words[words.index("-c") + 1], []).append([w for w in words if w not in ("-MMD", "-MP")])
        elif to in programs:
            links[to] = words
        if "-c" not in words and to.startswith(f"{BUILD}/") and not to.startswith((f"{BUILD}/tests/", f"{BUILD}/images/")):
            of_all[to] = words
    return compilers, links, of_all


def object_of(compiler):
    return compiler[compiler.index("-o") + 1]


def compile_at(compiler, source, to, *more):
    """Compiles SOURCE as the command would its own; true where that succeeds."""
    words = list(compiler)
    words[words.index("-c") + 1], words[words.index("-o") + 1] = source, to
    return subprocess.run(words + ["-w", *more], env=ENV, capture_output=True, check=False).returncode == 0


def lines_seen(compiler, file):
    """The numbers of FILE's lines of which something is left behind the preprocessor."""
    words = list(compiler)
    o = words.index("-o")
    del words[o : o + 2]
    words[words.index("-c")] = "-E"
    text = subprocess.run(words, env=ENV, capture_output=True, text=True, check=True).stdout
    seen, at, here = set(), 0, False
    for line in text.splitlines():
        if line.startswith("# "):
            _, number, name = line.split(" ")[:3]
            at, here = int(number), name == f'"{file}"'
            continue
        if here and line.strip():
            seen.add(at)
        at += 1
    return seen


def link_with(link, objects, to, *more):
    """Links a program with the OBJECTS (of an object's path, the mutant's) in place of those of its archives. The names of the objects that
    it has, all of them with the option -Wl,-t,-t; None where it cannot be linked."""
    words = [objects.get(w, w) for w in link]
    words[words.index("-o") + 1] = to
    first = next(i for i, w in enumerate(words) if w.endswith((".a", ".o")) or w.startswith("-Wl,--start-group"))
    words[first:first] = [o for o in objects.values() if o not in words]
    ran = subprocess.run(words + list(more), env=ENV, capture_output=True, text=True, errors="replace", check=False)
    return None if ran.returncode else set(re.findall(r"([^/()\s]+\.o)\)?$", ran.stdout, re.M))
