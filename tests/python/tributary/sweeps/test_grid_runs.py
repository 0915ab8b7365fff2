# SPDX-License-Identifier: BSD-3-Clause
"""Sweeps that run: which simulations start when, what becomes of those that fail, and what is not run again; trib sim is a class that notes."""
import io
import json
import os
import subprocess
import sys
import tempfile
import types
import unittest
import warnings
from pathlib import Path
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import fake_pandas as pandas  # noqa: E402

from tributary import results  # noqa: E402
from tributary.sweeps import grid as sweeps  # noqa: E402
from tributary.sweeps import simulation  # noqa: E402
from tributary.sweeps.progress import Line  # noqa: E402

ROW = {"size_bytes": 8, "count": 2, "time_us": 1.5, "algbw_GBps": 1.0, "busbw_GBps": 2.0, "collective": "all_reduce", "algo": "ring", "type": "float32"}


class Child:
    """trib sim: ends at its second look, with what its line says."""

    made, fails, most, running = [], {}, 0, 0

    def __init__(self, words, stdin, stdout, stderr):
        self.words, self.looks, self.ended = words, 0, []
        self.line = " ".join(words[words.index("sim") + 1 : words.index("-J")])
        assert stdin == subprocess.DEVNULL
        stderr.write(Child.fails.get(self.line, b""))
        Child.made.append(self)
        Child.running += 1
        Child.most = max(Child.most, Child.running)

    def poll(self):
        self.looks += 1
        if self.looks < 2:
            return None
        code = 3 if self.line in Child.fails else 0
        if self.looks == 2:
            Child.running -= 1
            if not code:
                with open(self.words[-1], "w", encoding="utf-8") as f:
                    json.dump({"conf": "x", "virtual": {}, "results": [{**ROW, "wrong": 0}]}, f)
        return code

    def terminate(self):
        self.ended.append("terminate")

    def wait(self):
        self.ended.append("wait")


class Sweep(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.now, self.slept = Path(folder.name).resolve(), 100.0, []
        Child.made, Child.fails, Child.most, Child.running = [], {}, 0, 0
        self.conf = self.folder / "x.conf"
        self.conf.write_text("text", encoding="utf-8")
        for where, name, instead in (
            (results, "need", lambda module, package: pandas.module), (simulation, "trib", lambda: Path("/bin/trib")), (subprocess, "Popen", Child), (simulation, "dies_with_us", lambda: ["dies"]),
            (sweeps, "time", types.SimpleNamespace(monotonic=lambda: self.now, sleep=self.sleep)),
        ):  # fmt: skip
            patch = mock.patch.object(where, name, instead)
            patch.start()
            self.addCleanup(patch.stop)

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += 1.0

    def sweep(self, **given):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            frame = sweeps.sweep(self.conf, **{"dir": self.folder / "d", "progress": False, **given})
        self.warned = [str(w.message) for w in found if issubclass(w.category, UserWarning)]
        return frame

    def test_every_line_is_run_once(self):
        frame = self.sweep(seeds=[1, 2, 3], workers=2)
        d = self.folder / "d"
        lines = [f"{self.conf} all_reduce --seed {i} --place out" for i in (1, 2, 3)]
        self.assertEqual((d / "list").read_text(encoding="utf-8").splitlines(), lines)
        self.assertEqual([c.words for c in Child.made], [
            ["dies", "/bin/trib", "sim", str(self.conf), "--threads", "1", "all_reduce", "--seed", str(i), "--place", "out", "-J", f"{d}/0000{i - 1}.json"] for i in (1, 2, 3)
        ])  # fmt: skip
        self.assertEqual((Child.most, set(self.slept), len(frame), self.warned), (2, {0.005}, 3, []))
        self.assertEqual((d / "00001.out").read_text(encoding="utf-8"), f"# trib sim {lines[1]}\n")
        found = frame.attrs["sweep"]
        self.assertEqual({k: v for k, v in found.items() if not k.endswith("_s")}, {"lines": 3, "found": 0, "failed": {}, "missing": [], "workers": 2})
        self.assertEqual(found["wall_s"], float(len(self.slept)))
        self.assertGreaterEqual(found["simulations_s"], 0.0)
        Child.made.clear()
        (d / "00002.json").unlink()
        frame = self.sweep(seeds=[3, 1, 4], workers=1)  # what is done is not run again
        self.assertEqual([c.words[2:5] + c.words[-4:-2] for c in Child.made], [["sim", str(self.conf), "all_reduce", "--place", "out"]] * 2)
        self.assertEqual([c.words[-1] for c in Child.made], [f"{d}/00002.json", f"{d}/00003.json"])
        self.assertEqual((frame.attrs["sweep"]["lines"], frame.attrs["sweep"]["found"], len(frame)), (3, 1, 3))

    def test_the_longest_begin_first(self):
        self.sweep(ranks=[2, 8, 4], workers=1)
        self.assertEqual([c.words[c.words.index("-g") + 1] for c in Child.made], ["8", "4", "2"])

    def test_those_that_fail_stop_no_others(self):
        line = f"{self.conf} all_reduce --seed %d --place out"
        Child.fails = {line % 2: b"no\n", line % 3: b""}
        frame = self.sweep(seeds=[1, 2, 3], workers=1)
        reasons = {line % 2: "no", line % 3: "exit code 3, without a word"}
        self.assertEqual((len(frame), frame.attrs["sweep"]["failed"], frame.attrs["sweep"]["missing"]), (1, reasons, []))
        self.assertEqual(self.warned, ["2 of 3 simulations failed" + "".join(f"\n  trib sim {k}: {v}" for k, v in reasons.items())])
        self.assertEqual((self.folder / "d" / "00001.out").read_text(encoding="utf-8"), f"# trib sim {line % 2}\nno\n")

    def test_without_workers_there_is_a_list_alone(self):
        d = self.folder / "d"
        d.mkdir()
        (d / "00000.json").write_text("old", encoding="utf-8")
        frame = self.sweep(collectives=["a", "b"], sizes=[4, 8], types="f", workers=0)
        lines = [f"{self.conf} {c} -d f --place out -b 4 -e 8 -f 2" for c in ("a", "b")]
        self.assertEqual((Child.made, len(frame), frame.attrs["sweep"]["missing"], frame.attrs["sweep"]["workers"]), ([], 0, lines, 0))
        self.assertFalse((d / "00000.json").exists())

    def test_without_a_folder_nothing_stays(self):
        with mock.patch.object(os, "sched_getaffinity", lambda _: {1, 2, 3}):
            frame = sweeps.sweep(str(self.conf), progress=False)
        self.assertEqual((len(frame), frame.attrs["sweep"]["workers"], os.path.exists(Child.made[0].words[-1])), (1, 3, False))
        self.assertIn("trib-sweep-", Child.made[0].words[-1])

    def test_progress_is_shown_where_it_is_wanted(self):
        with mock.patch.object(sweeps.sys, "stderr", io.StringIO()) as err:
            self.sweep(progress=True, workers=1)
        self.assertTrue(err.getvalue().startswith("sweep: 1 of 1 simulations, "))
        with mock.patch.object(sweeps.sys, "stderr", io.StringIO()) as err:
            self.sweep(progress=True, seeds=[9], workers=1)
            self.sweep(progress=False, seeds=[8], workers=1)
        self.assertEqual(err.getvalue().count("sweep: "), 1)

    def test_an_end_from_outside_ends_those_that_run(self):
        bases = [(Line(f"x{i} k"), self.folder / f"0000{i}") for i in range(3)]
        progress = mock.Mock(show=mock.Mock(side_effect=KeyboardInterrupt))
        with self.assertRaises(KeyboardInterrupt):
            sweeps._run(bases, 2, progress)
        self.assertEqual([c.ended for c in Child.made], [["terminate", "wait"]] * 2)
        progress.end.assert_called_once_with()
        (self.folder / "00000.json").write_text("old", encoding="utf-8")
        simulation = sweeps._Simulation(bases[0][0], bases[0][1], None)
        self.assertEqual((Child.made[-1].words, os.path.exists(self.folder / "00000.json")), (["dies", "/bin/trib", "sim", "x0", "k", "-J", f"{self.folder}/00000.json"], False))
        self.assertEqual((simulation.ended(), simulation.out.closed), (None, False))
        self.assertEqual((simulation.ended(), simulation.out.closed, simulation.err.closed, bases[0][0].done), ("", True, True, True))
        simulation = sweeps._Simulation(bases[1][0], bases[1][1], None)
        simulation.stop()
        self.assertEqual((simulation.out.closed, simulation.err.closed), (True, True))


class Parts(unittest.TestCase):
    def test_a_simulation_ends_with_its_sweep(self):
        for there, words in ((True, ["/usr/bin/setpriv", "--pdeathsig", "TERM"]), (False, [])):
            with mock.patch.object(os, "access", lambda path, how, there=there: there and (path, how) == ("/usr/bin/setpriv", os.X_OK)):
                self.assertEqual(simulation.dies_with_us(), words)

    def test_a_plan_of_entries_is_written_under_its_label(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            with mock.patch.object(sweeps, "write_plan", lambda plan, path: path.write_text(f"plan {plan}", encoding="utf-8")):
                found = sweeps._plans({"two slow": [{"a": 1}], "": None}, folder, {})
            self.assertEqual((found, (folder / "two_slow.conf").read_text(encoding="utf-8")), ([f"{folder}/two_slow.conf", None], "plan [{'a': 1}]"))
            self.assertEqual(json.loads((folder / "labels").read_text(encoding="utf-8")), {"two_slow": "two slow", "": ""})


if __name__ == "__main__":
    unittest.main()
