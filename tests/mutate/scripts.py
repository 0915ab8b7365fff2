# SPDX-License-Identifier: BSD-3-Clause
"""End-to-end scripts of the first tier as finders: run with the programs of a mutant, or with its Python package."""
import os
import re
import resource
import shutil
import subprocess

import reached
import recipes


class Scripts:
    """Asks scripts about mutants, within so many seconds of CPU time each mutant; one in real time that fails has to fail twice, since other
    load of the machine can be its cause."""

    def __init__(self, links, scratch, limit):
        self.links, self.scratch, self.limit = links, scratch, limit
        self.tree, self.base, self.has = f"{scratch}/tree", {}, {}
        reached.copy_tree(self.tree)
        subprocess.run(recipes.MAKE + ["-s", "-j2", "programs", f"{recipes.BUILD}/tests/tools/icrc_check"], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "LC_ALL": "C"})

    def _run(self, script, build):
        words, more = reached.command(script, self.tree, build)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        rc, out = reached.run(words, {**os.environ, **more, "TEST_SLOT": "49"}, 240)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return rc, out, reached.seconds_of_cpu(after) - reached.seconds_of_cpu(before)

    def _baseline(self, script):
        if script not in self.base:
            rc, _, seconds = self._run(script, recipes.BUILD)
            self.base[script] = seconds if rc == 0 else None
        return self.base[script]

    def _build(self, objects):
        """A build folder whose programs are the mutant's."""
        to = f"{self.scratch}/build"
        shutil.rmtree(to, ignore_errors=True)
        subprocess.run(["cp", "-rs", os.path.abspath(recipes.BUILD), to], check=True)
        for program, link in self.links.items():
            if program not in self.has:
                self.has[program] = recipes.link_with(link, {}, f"{self.scratch}/program", "-Wl,-t,-t") or set()
            here = {o: made for o, made in objects.items() if os.path.basename(o) in self.has[program] and (o in link or _is_own(o, link))}
            if here:
                own = f"{to}/{os.path.relpath(program, recipes.BUILD)}"
                os.unlink(own)
                if recipes.link_with(link, here, own) is None:
                    shutil.copy(program, own)
        return to

    def ask(self, mutant, objects, scripts):
        """Who finds a mutant first, and what it says."""
        left, build = self.limit, recipes.BUILD
        tested = f"{self.tree}/{mutant.file}"
        try:
            for script in scripts:
                takes = self._baseline(script)
                if takes is None or takes > left:
                    continue
                left -= takes
                if mutant.file.endswith(".py"):
                    with open(tested, "w", encoding="utf-8") as f:
                        f.write(mutant.source())
                elif build == recipes.BUILD:
                    build = self._build(objects)
                tries = 1 if is_virtual(script) else 2
                for _ in range(tries):
                    rc, out, _ = self._run(script, build)
                    if rc in (0, 77):
                        break
                else:
                    return script, said(out)
        finally:
            shutil.copy(mutant.file, tested)
        return None, ""


def _is_own(path, link):
    """Whether a link command takes this build of a file that is built twice (wide, for programs of large fabrics)."""
    wide = any(w.startswith(f"{recipes.BUILD}/wide/") for w in link)
    return path.startswith(f"{recipes.BUILD}/wide/") == wide


def is_virtual(script):
    with open(script, encoding="utf-8") as f:
        return "\n# clock: virtual\n" in f.read()


def said(out):
    m = re.search(r"^FAILED: (.*)$", out, re.M)
    return (m.group(1) if m else out.strip().rsplit("\n", 1)[-1])[:100]
