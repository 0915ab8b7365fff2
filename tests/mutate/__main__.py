# SPDX-License-Identifier: BSD-3-Clause
"""make mutate ROOM=...: plants small bugs, one at a time, and lists those that no test finds.

A mutant is one changed operator, constant, condition, operand or statement in a line that the compiler sees. It is compiled as make
would compile its file, and linked in place of the file's object to the room's unit tests, to the other tests of `make test` that reach its line
(those in virtual time, other rooms' unit tests, end-to-end scripts), and to chaos, until one of them finds it; nothing in the tree changes.
Unit tests are linked with LeakSanitizer; those that find nothing run once more with the mutant's file under AddressSanitizer, as
`make asan` runs them. What compiles to the same object is no mutant. A survivor is a missing test, or it is in tests/mutate/equivalent.txt
with the reason why no test can tell it from the code.

  ROOM=FOLDER[,FOLDER]  the room, a file of it, or "all"; a folder's own files, without those below it
  N=20                  how many, drawn by SEED (today's date unless set); 0: all
  UNIT=1                asks the room's unit tests alone; without it all tests of the first tier run once beside gcov, 10 minutes
  LIMIT=60              seconds of CPU time for a mutant's unit tests, as many for its scripts, and as many for chaos; SEEDS=600 of it at most
"""
import collections
import datetime
import os
import random
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import c_mutants  # noqa: E402
import finders  # noqa: E402
import python_mutants  # noqa: E402
import reached  # noqa: E402
import recipes  # noqa: E402
import scripts  # noqa: E402

EQUIVALENT = "tests/mutate/equivalent.txt"
# Programs' main files are in no archive; what runs in a real process alone has no unit test by its nature.
NOT_LINKED = ("trib_", "tests/", "docs/", "examples/", "plugins/", "host/hint/", "host/clock/calls/")


def number(name, default):
    text = os.environ.get(name) or str(default)
    if not text.isdigit():
        raise SystemExit(f'mutate: found {name}="{text}", expected a whole number')
    return int(text)


def files_of(rooms):
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.c", "python/tributary/*.py"],
                            capture_output=True, text=True, check=True).stdout.split()
    listed = [f for f in listed if os.path.exists(f) and not f.startswith(NOT_LINKED) and not os.path.basename(f).startswith("trib_")]
    if rooms == ["all"]:
        return [f for f in listed if finders.tests_of(f)]
    chosen = [f for f in listed if f in rooms or os.path.dirname(f) in rooms]
    for room in rooms:
        if not any(f == room or os.path.dirname(f) == room for f in chosen):
            raise SystemExit(f'mutate: found ROOM="{room}", expected a folder or a file with C or Python in it, or "all"')
    return chosen


def equivalents():
    """The argued mutants: (file, line, line instead) to the reason."""
    found, file, was, now = {}, "", "", ""
    with open(EQUIVALENT, encoding="utf-8") as f:
        for n, line in enumerate(f, 1):
            line = line.rstrip("\n")
            if line.startswith("< "):
                file, _, was = line[2:].partition(": ")
            elif line.startswith("> "):
                now = line[2:]
            elif line.startswith("= ") and file and was:
                found[file, was, now] = line[2:]
            elif line and not line.startswith("#"):
                raise SystemExit(f'{EQUIVALENT}:{n}: found "{line}", expected < FILE: LINE, > LINE INSTEAD, = REASON')
    return found


def is_stale(key):
    file, was, _ = key
    if not os.path.exists(file):
        return True
    with open(file, encoding="utf-8") as f:
        return was not in " ".join(f.read().split())


def draw(files, n, seed):
    """N mutants of all of the files, each as likely as any other, in an order that the seed decides; without those that nobody compiles."""
    rng, drawn = random.Random(seed), []
    for file in files:
        with open(file, encoding="utf-8") as f:
            text = f.read()
        make = python_mutants.mutants if file.endswith(".py") else c_mutants.mutants
        drawn += make(file, text, range(1, text.count("\n") + 2))
    rng.shuffle(drawn)
    return drawn if n else sorted(drawn, key=lambda m: (m.file, m.start))


class Planter:
    """Compiles mutants."""

    def __init__(self, compilers, scratch):
        self.compilers, self.scratch, self.originals, self.seen = compilers, scratch, {}, {}

    def _object(self, compiler, text, to, *more):
        # The name of the file is in the object: the same for the mutant as for the original.
        source = f"{self.scratch}/{os.path.basename(compiler[compiler.index('-c') + 1])}"
        with open(source, "w", encoding="utf-8") as f:
            f.write(text)
        if not recipes.compile_at(compiler, source, to, "-g0", *more):
            return None
        with open(to, "rb") as f:
            return f.read()

    def plant(self, mutant):
        """The mutant's objects by the paths of those that they replace; None where the compiler refuses it or sees no difference."""
        if mutant.file.endswith(".py"):
            return {}
        objects, differs = {}, False
        for n, compiler in enumerate(self.compilers.get(mutant.file, [])):
            path = recipes.object_of(compiler)
            if path not in self.originals:
                self.originals[path] = self._object(compiler, mutant.text, f"{self.scratch}/original.o")
                self.seen[path] = recipes.lines_seen(compiler, mutant.file)
            to = f"{self.scratch}/mutant{n}.o"
            made = self._object(compiler, mutant.source(), to) if mutant.line in self.seen[path] else None
            if not made:
                return None
            differs |= made != self.originals[path]
            objects[path] = to
        return objects if differs else None

    def sanitized(self, mutant, text):
        """Objects of the mutant's file with this text that see where they read and write; None where the compiler refuses it."""
        objects = {}
        for n, compiler in enumerate(self.compilers.get(mutant.file, [])):
            to = f"{self.scratch}/sanitized{n}.o"
            if not self._object(compiler, text, to, *finders.SANITIZERS):
                return None
            objects[recipes.object_of(compiler)] = to
        return objects


class Campaign:
    """Asks the room's unit tests about each mutant, and then, of those that are left, all else of `make test` and chaos: of many files nothing is
    left."""

    def __init__(self, files, unit, scratch):
        self.unit, self.scratch, c_files = unit, scratch, [f for f in files if f.endswith(".c")]
        self.tests = {f: finders.tests_of(f) for f in files}
        self.c_tests = sorted({t for f in c_files for t in self.tests[f] + ([] if unit else finders.all_unit_tests())})
        programs = [finders.program_of(t) for t in self.c_tests + ([] if unit or not c_files else ["chaos"])]
        compilers, links, self.programs = recipes.ask(c_files, programs) if programs else ({}, {}, {})
        for file in c_files:
            if file not in compilers:
                print(f"# {file}: no test has it, so none of its mutants is planted", file=sys.stderr)
        self.planter, self.asked = Planter(compilers, scratch), finders.Finders(links, scratch)
        self.planted, self.found, self.survivors = collections.Counter(), collections.Counter(), []

    def plant(self, mutant):
        """Asks its room's unit tests about what the compiler sees as a mutant."""
        objects = self.planter.plant(mutant)
        if objects is None:
            return
        start, mine = time.monotonic(), self.tests[mutant.file]
        by, says = self.asked.ask(mutant, objects, mine[:1] + self.asked.order(mine[1:]))
        if not by and objects:
            by, says = self.asked.ask_sanitized(mine, self.planter.sanitized(mutant, mutant.source()), lambda: self.planter.sanitized(mutant, mutant.text))
        self.planted[finders.room_of(mutant.file)] += 1
        if by:
            self._count(mutant, "unit", by, says, start)
        else:
            self.survivors.append(mutant)
            if self.unit:
                tell("SURVIVES", mutant)

    def ask_first_tier(self):
        """Of the survivors: other tests that reach them, chaos, scripts."""
        for mutant in self.survivors:
            tell("left", mutant)
        files = sorted({m.file for m in self.survivors})
        python = sorted({t for f in files if f.endswith(".py") for t in self.tests[f]})
        script_files = reached.first_tier()
        tiers = reached.Reached(files, self.c_tests + python + script_files, self.scratch)
        asked, left = scripts.Scripts(self.programs, self.scratch, finders.LIMIT), []
        for mutant in self.survivors:
            start, objects = time.monotonic(), self.planter.plant(mutant)
            others = [t for t in tiers.by(mutant, self.c_tests) if t not in self.tests[mutant.file]] if objects else []
            kind, (by, says) = "other", self.asked.ask(mutant, objects, self.asked.order(others))
            if not by and objects:
                kind, (by, says) = "chaos", self.asked.ask(mutant, objects, ["chaos"])
            if not by:
                kind, (by, says) = "script", asked.ask(mutant, objects, tiers.by(mutant, script_files))
            if by:
                self._count(mutant, kind, by, says, start)
            else:
                left.append(mutant)
                tell("SURVIVES", mutant)
        self.survivors = left

    def _count(self, mutant, kind, by, says, start):
        self.found[finders.room_of(mutant.file), kind] += 1
        tell("found", mutant, f"  ({by.removeprefix('tests/')}{': ' + says if says else ''}, {time.monotonic() - start:.0f} s)")


def tell(verdict, mutant, by=""):
    print(f"{verdict:8} {mutant.file}:{mutant.line} {mutant.kind}: {mutant.was}  ->  {mutant.now}{by}", flush=True)


def print_rooms(planted, found):
    kinds = ("unit", "other", "script", "chaos")
    print(f"#\n# {'room':24} {'planted':>7} {'unit':>6} {'others':>7} {'script':>6} {'chaos':>6} {'none':>5}")
    for room in sorted(planted):
        counts = [found[room, kind] for kind in kinds]
        print(f"# {room:24} {planted[room]:7} {counts[0]:6} {counts[1]:7} {counts[2]:6} {counts[3]:6} {planted[room] - sum(counts):5}")
    total, counts = sum(planted.values()), [sum(found[room, kind] for room in planted) for kind in kinds]
    print(f"# {'all':24} {total:7} {counts[0]:6} {counts[1]:7} {counts[2]:6} {counts[3]:6} {total - sum(counts):5}")


def main():
    os.chdir(recipes.ROOT)
    rooms = [r.strip("/") for r in os.environ.get("ROOM", "").split(",") if r]
    if not rooms:
        raise SystemExit(__doc__)
    n, seed = number("N", 20), number("SEED", datetime.date.today().strftime("%Y%m%d"))
    files, unit = files_of(rooms), os.environ.get("UNIT")
    argued = equivalents()
    stale = [k for k in argued if is_stale(k)]
    for file, was, _ in stale:
        print(f'{EQUIVALENT}: found no "{was}" in {file} any more')
    drawn = draw(files, n, seed)
    if n:
        print(f"# {n} of {len(drawn)} mutants; the same again: make mutate ROOM={','.join(rooms)} N={n} SEED={seed}", flush=True)
    chosen_files = sorted({m.file for m in drawn[: 2 * n if n else None]})
    with tempfile.TemporaryDirectory() as scratch:
        campaign = Campaign(chosen_files, unit, scratch)
        for mutant in drawn:
            if n and sum(campaign.planted.values()) == n:
                break
            if mutant.file in chosen_files and mutant.key not in argued:
                campaign.plant(mutant)
        if campaign.survivors and not unit:
            print(f"# {len(campaign.survivors)} are left for the other tests of the first tier", flush=True)
            campaign.ask_first_tier()
    print_rooms(campaign.planted, campaign.found)
    return 1 if campaign.survivors or stale else 0


sys.exit(main())
