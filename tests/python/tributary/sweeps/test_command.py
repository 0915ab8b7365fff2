# SPDX-License-Identifier: BSD-3-Clause
"""trib-sweep: which lines are run, what is said of those that fail, and what is merged; trib sim is a script that notes."""
import contextlib
import io
import json
import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from tributary.sweeps import command, simulation
from tributary.sweeps.merge import merged

SIM = """\
#!/bin/sh
echo "printed $*"
for last; do :; done
case "$*" in
*bad*) echo "x simulated in 3 s" >&2; echo "one" >&2; echo "it is bad" >&2; echo "trib-sim -h shows all" >&2; exit 1 ;;
*dies*) echo "before" >&2; kill -9 $$ ;;
*shell*) exit 143 ;;
*silent*) exit 7 ;;
esac
printf '{"conf": "%s", "ranks": 2, "virtual": {"seed": 1, "payload": "data"}, "results": [{"time_us": 1.0}]}' "$2" >"$last"
"""


class Sweep(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = Path(folder.name)
        self.list, self.dir = self.top / "list", self.top / "d"
        sim = self.top / "trib"
        sim.write_text(SIM)
        sim.chmod(0o755)
        env = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "OMPI_", "PMI_"))}
        for patch in (mock.patch.object(simulation, "trib", lambda: sim), mock.patch.object(simulation, "dies_with_us", lambda: []), mock.patch.dict(os.environ, env, clear=True)):
            patch.start()
            self.addCleanup(patch.stop)

    def main(self, *argv):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = command.main(argv)
        return code, out.getvalue(), err.getvalue().replace("trib-sweep: ", "")

    def sweep(self, *lines, **env):
        self.list.write_text("".join(line + "\n" for line in lines))
        with mock.patch.dict(os.environ, env):
            return self.main(str(self.list), str(self.dir))

    def test_lines_are_run_and_not_again(self):
        want = "task 0 of 1, line 1: trib sim a.conf -g 2\ntask 0 of 1, line 2: trib sim b.conf\n"
        self.assertEqual(self.sweep("a.conf -g 2", "b.conf"), (0, "", want))
        self.assertEqual((self.dir / "00000.out").read_text(), f"# trib sim a.conf -g 2\nprinted sim a.conf -g 2 -J {self.dir}/00000.json\n")
        self.assertEqual(self.sweep("a.conf -g 2", "b.conf"), (0, "", ""))
        self.assertEqual(self.sweep("a.conf -g 4", "b.conf"), (0, "", "task 0 of 1, line 1: trib sim a.conf -g 4\n"))

    def test_a_task_runs_its_own_lines_on_one_core(self):
        code, _, err = self.sweep("a.conf x", "b.conf", "c.conf", PMI_RANK="1", PMI_SIZE="2")
        self.assertEqual((code, err, sorted(os.listdir(self.dir))), (0, "task 1 of 2, line 2: trib sim b.conf\n", ["00001.json", "00001.out"]))
        self.assertIn("printed sim b.conf --threads 1 -J ", (self.dir / "00001.out").read_text())

    def test_what_fails_is_named_and_stops_no_others(self):
        code, _, err = self.sweep("bad.conf", "dies.conf", "shell.conf", "silent.conf", "fine.conf")
        self.assertEqual((code, [line.split(" failed: ")[1] for line in err.splitlines() if "failed" in line]),
                         (1, ["it is bad", "ended by SIGKILL (signal 9); the last it said: before", "ended by SIGTERM (signal 15)", "exit code 7, without a word"]))  # fmt: skip
        self.assertIn("\none\nit is bad\n", (self.dir / "00000.out").read_text())
        self.assertTrue((self.dir / "00004.json").exists())

    def test_results_are_merged_and_missing_ones_named(self):
        self.sweep("a.conf", "bad.conf", "c.conf")
        code, out, err = self.main("--merge", str(self.list), str(self.dir))
        of = {"ranks": 2, "seed": 1, "payload": "data", "time_us": 1}
        self.assertEqual((code, json.loads(out), err), (1, {"simulations": 2, "results": [{"conf": "a.conf", **of}, {"conf": "c.conf", **of}]}, "no results of line 2: trib sim bad.conf\n"))
        self.list.write_text("a.conf\n")
        self.assertEqual(self.main("--merge", str(self.list), str(self.dir))[::2], (0, ""))
        self.list.write_text("b.conf\n")
        self.assertEqual(self.main("--merge", str(self.list), str(self.dir)), (1, "", "no results of line 1: trib sim b.conf\n"))

    def test_what_is_no_result_is_none(self):
        self.sweep("a.conf")
        for bad in ("", '{"conf": "a"', '{"results": []} {"results": []}', '{"results": 5}', '{"results": [1]}', "[1]", '{"error": "cut"}'):
            (self.dir / "00000.json").write_text(bad)
            self.assertEqual(self.main("--merge", str(self.list), str(self.dir))[0], 1, bad)
        (self.dir / "00000.json").write_text('{"workload": "w"}')
        self.assertEqual(self.main("--merge", str(self.list), str(self.dir))[0], 0)

    def test_mistakes(self):
        self.list.write_text("# nothing\n")
        for argv, says in (
            ((str(self.list), "d"), f"found no simulation in {self.list}, expected one a line\n"), ((str(self.top), "d"), f"found the directory {self.top}, expected a list: LIST DIR\n"),
            (("none", "d"), "found no list none\n"), (("--merge", "--vary", "a=1", "d", "c"), "found --merge with --vary, expected one of them\n"),
            (("--vray", "d"), "found --vray, expected an option of trib-sweep; did you mean --vary?\n"),
        ):  # fmt: skip
            self.assertEqual(self.main(*argv), (2, "", says))
        for argv in ((), ("a",), ("a", "b", "c"), ("--vary", "a=1", "d")):
            self.assertEqual(self.main(*argv), (2, "", command.COMMAND.usage() + "\n"))
        (self.top / "file").write_text("")
        self.list.write_text("a.conf\n")
        self.assertEqual(self.main(str(self.list), f"{self.top}/file/d"), (2, "", f"cannot make {self.top}/file/d\n"))

    def test_options_of_trib_sim_are_not_its_own(self):
        asked = []
        with mock.patch.object(command.vary, "make", lambda *given: asked.append(given) or []), mock.patch.object(command, "lines_in", lambda path: []):
            self.assertEqual(self.main("--vary", "a=1", "--vary=b=2,3", "d", "c", "--merge", "-h"), (0, "", ""))
        self.assertEqual(asked, [("d", "c", ["a=1", "b=2,3"], ["--merge", "-h"])])


class Merged(unittest.TestCase):
    def test_numbers_are_as_short_as_they_are(self):
        text = merged([{"workload": "é", "a": [1.0, 0.5, 1e20, True, None], "b": {"c": -0.25}}])
        self.assertEqual(json.loads(text), {"simulations": 1, "results": [{"workload": "é", "a": [1, 0.5, 1e20, True, None], "b": {"c": -0.25}}]})
        self.assertIn('"workload": "é"', text)
        self.assertIn("        1,\n        0.5,\n        1e+20,\n        true,\n        null\n", text)


if __name__ == "__main__":
    unittest.main()
