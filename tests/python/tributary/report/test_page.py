# SPDX-License-Identifier: BSD-3-Clause
"""What is on a report's page: sections, tables and sentences, from files of results; figures are only named, frames are the tests' own."""
import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from tests.python.tributary import fake_pandas as pandas
from tributary import results
from tributary._trib import TribError
from tributary.plot import Look
from tributary.report import page

ROW = {
    "collective": "all_reduce", "algo": "ring", "type": "float32", "op": "sum", "in_place": False, "size_bytes": 1024, "count": 256, "time_us": 10.0, "algbw_GBps": 1.5,
    "busbw_GBps": 2.5, "predicted_us": 8.0,
}  # fmt: skip
HEADS = (
    "conf", "collective", "algorithm", "size", "type", "op", "place", "time (µs)", "min to p99 (µs)", "algbw (GB/s)", "busbw (GB/s)", "time/model", "wrong elements", "fidelity",
)  # fmt: skip


def link(a, b, used, **more):
    return {"from": a, "to": b, "utilisation": used, "link_bytes": 7, "queue_peak_bytes": 8, "paused_us": 0.0, "ecn_marks": 0, "pauses_sent": 0, "pauses_received": 0, "drops": {"x": 0},
            "faults": {}, **more}  # fmt: skip


class Noted(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.drawn, self.tables, self.made = Path(folder.name), [], [], []
        for where, name, instead in (
            (page, "need", lambda module, package: pandas.module), (results, "need", lambda module, package: pandas.module), (page.figures, "drawn", self.draw),
            (page, "table", self.table), (page.figures, "fabric", self.fabric), (page.figures, "legend", lambda: "LEGEND"),
        ):  # fmt: skip
            patch = mock.patch.object(where, name, instead)
            patch.start()
            self.addCleanup(patch.stop)
        for name in ("busbw", "time", "speedup"):
            patch = mock.patch.object(page.plot, name, lambda rows, *args, name=name, **more: self.made.append((name, len(rows), *args, more)))
            patch.start()
            self.addCleanup(patch.stop)
        self.svg = "SVG"

    def draw(self, make, name, label):
        make()
        self.drawn.append((name, label))
        return f"<{name}>"

    def table(self, caption, heads, rows, numbers_from=1):
        self.tables.append((caption, tuple(heads), [tuple(r) for r in rows], numbers_from))
        return f"[{caption}]"

    def fabric(self, conf, links, label):
        self.asked = (conf, len(links), label)
        return self.svg

    def put(self, name, value):
        path = self.folder / name
        path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
        return str(path)

    def rows(self, *rows, name="a.json", **more):
        return self.put(name, {"conf": "lab", "ranks": 4, "virtual": {"seed": 1}, "results": [{**ROW, **r} for r in rows], **more})

    def page(self, *paths, title=""):
        """Title, and each section's head with its body."""
        self.drawn.clear(), self.tables.clear(), self.made.clear()
        found = page.make(paths, title)
        sections = [s.split("</h2>\n", 1) for s in found.split("<section ")[1:]]
        return found.split("<title>")[1].split("<")[0], {head.rsplit(">", 1)[1]: body.split("</section>")[0] for head, body in sections}


class Page(Noted):
    def test_rows_have_their_sections(self):
        title, parts = self.page(self.rows({}, {"algo": "sharp", "size_bytes": 2048, "time_us": 4.0}, {"algo": "sharp", "time_us": 5.0}))
        self.assertEqual((title, list(parts)), ("all reduce on lab", ["Bandwidth and time", "Speed-up", "Fidelity and failures", "All rows", "How to run it again"]))
        self.assertEqual(self.drawn, [
            ("f1", "Bus bandwidth of all reduce by size, GB/s of fabric time"), ("f2", "Time of all reduce by size, µs of fabric time; grey: predicted"),
            ("f3", "How many times as fast as ring, all reduce"),
        ])  # fmt: skip
        look = Look(["algo"], {"algo": ["ring", "sharp"]})
        self.assertEqual(self.made, [("busbw", 3, {"look": look}), ("time", 3, {"model": True, "look": look}), ("speedup", 3, "ring", {"look": look})])
        self.assertEqual(parts["Fidelity and failures"], "<p>a: virtual time, exact: the machine's speed does not show.</p>\n")
        self.assertEqual(parts["All rows"], "[3 rows; times are of fabric time]")
        self.assertEqual(self.tables, [("3 rows; times are of fabric time", HEADS, [
            ("lab", "all_reduce", "ring", "1 KiB", "float32", "sum", "out", 10.0, "", 1.5, 2.5, 1.25, "", "ok"),
            ("lab", "all_reduce", "sharp", "2 KiB", "float32", "sum", "out", 4.0, "", 1.5, 2.5, 0.5, "", "ok"),
            ("lab", "all_reduce", "sharp", "1 KiB", "float32", "sum", "out", 5.0, "", 1.5, 2.5, 0.625, "", "ok"),
        ], 7)])  # fmt: skip
        self.assertEqual(self.page(self.rows({}), title="mine")[0], "mine")
        self.assertNotIn("Speed-up", self.page(self.rows({}))[1])
        self.assertNotIn("Bandwidth and time", self.page(self.rows({"busbw_GBps": 0.0}))[1])

    def test_a_row_has_all_its_cells(self):
        self.page(self.rows({"in_place": True, "op": None, "asked": "auto", "predicted_us": None, "min_us": 1.0, "p99_us": 2.5, "wrong": 3, "fidelity": {"ok": False, "dilation_needed": 4.0}}))
        self.assertEqual(self.tables[0][2], [("lab", "all_reduce", "auto", "1 KiB", "float32", "", "in", 10.0, "1 to 2.5", 1.5, 2.5, None, "3", "lag, needs dilation 4")])

    def test_a_panel_is_of_a_collective_out_of_place_where_it_ran_so(self):
        self.page(self.rows({"collective": "reduce_scatter", "in_place": True}, {}, {"in_place": True}))
        self.assertEqual([label.split(" by ")[0] for _, label in self.drawn], ["Bus bandwidth of reduce scatter, in place", "Time of reduce scatter, in place",
                                                                          "Bus bandwidth of all reduce", "Time of all reduce"])  # fmt: skip
        self.assertEqual([m[1] for m in self.made], [1, 1, 1, 1])

    def test_titles_have_what_was_run_where(self):
        for confs, title in (
            (("a", "b,x=1", "b,x=2"), "all reduce on a, b"), (("a", "b", "c", "d"), "all reduce on a, b, c, ..."), (("a,b",), "all reduce on a,b"), (("a", "b", "c"), "all reduce on a, b, c"),
        ):
            path = self.put("m.json", {"results": [{**ROW, "conf": c} for c in confs]})
            self.assertEqual(self.page(path)[0], title)

    def test_files_with_the_same_points_are_told_apart(self):
        a, b = self.rows({}, name="a.json"), self.rows({}, name="b.json")
        self.page(a, b)
        self.assertEqual([r[0] for r in self.tables[0][2]], ["lab, a", "lab, b"])
        self.page(a, self.rows({"size_bytes": 2048}, name="b.json"))
        self.assertEqual([r[0] for r in self.tables[0][2]], ["lab", "lab"])
        os.mkdir(self.folder / "d")
        again = self.rows({}, name="d/a.json")
        parts = self.page(a, again)[1]
        self.assertEqual([r[0] for r in self.tables[0][2]], [f"lab, {a}", f"lab, {again}"])
        self.assertEqual(parts["How to run it again"].count("<h3>a</h3>"), 2)

    def test_what_did_not_go_well_is_told(self):
        path = self.rows(
            {"fidelity": {"ok": False}, "wrong": 2, "fell_back": "tree <1>"}, {"fidelity": {"ok": True}, "wrong": 1, "fell_back": "tree <1>"}, {"fell_back": "", "fidelity": {"ok": True}},
            virtual=None, error="no <b>", not_measured=[1, 2],
        )  # fmt: skip
        warn = '<p class="warn">a: %s</p>\n'
        self.assertEqual(self.page(path)[1]["Fidelity and failures"], "".join(warn % w for w in (
            "1 of 3 rows lag: the machine did not keep up, and their times are its own, not the fabric's.", "3 elements are wrong.", "it did not end: no &lt;b&gt;",
            "2 rows were not measured.", "fell back: tree &lt;1&gt;",
        )))  # fmt: skip
        self.assertEqual(self.page(self.rows({"fidelity": {"ok": True}}, virtual=None))[1]["Fidelity and failures"], "<p>a: the emulation kept up in all 1 rows.</p>\n")
        self.assertEqual(self.page(self.rows(virtual=None, error="no <b>"))[1]["Results"], '<p class="warn">No row was measured: no &lt;b&gt;.</p>\n')
        self.assertEqual(self.page(self.rows())[1]["Results"], '<p class="warn">No row was measured.</p>\n')

    def test_the_links_that_bind_are_shown(self):
        many = [link(f"h{i}", "l", i / 100) for i in range(13)]
        path = self.rows(
            {"links": many[:1], "size_bytes": 8}, {"links": [*many, link("q", "l", None, drops={"x": 2, "y": 1}), link("r", "l", 0.0)], "link_utilisation": 0.5, "link_bytes": 1}, run={"files": [{"text": "CONF", "path": "p"}]}
        )
        body = self.page(path)[1]["What binds"]
        name = "lab, all reduce by ring, 1 KiB"
        label = f"Utilisation of links, {name}: the busiest is h12 to l, 12 %"
        caption = f"The busiest of 15 directions of links, and all with drops, pauses or marks, {name}"
        self.assertEqual((self.asked, body), (("CONF", 15, label), f"<h3>{name}</h3>\n<figure>SVG<figcaption>{label}</figcaption></figure>\nLEGEND[{caption}]"))
        heads = ("from", "to", "used (%)", "bytes", "longest queue (bytes)", "paused (µs)", "ECN marks", "drops")
        rows = [(f"h{i}", "l", 100 * (i / 100), 7, 8, 0.0, 0, 0) for i in range(12, 0, -1)] + [("q", "l", 0.0, 7, 8, 0.0, 0, 3)]
        self.assertEqual(self.tables[0], (caption, heads, rows, 2))
        self.svg = None
        self.assertEqual(self.page(path)[1]["What binds"], f'<h3>{name}</h3>\n<p class="note">{label}.</p>\n[{caption}]')
        self.assertNotIn("What binds", self.page(self.rows({"links": []}))[1])
        path = self.rows({"link_utilisation": 0.5, "link_bytes": 12345, "size_bytes": 2048}, {"link_utilisation": 0.25, "link_bytes": 1})
        self.assertEqual(self.page(path)[1]["What binds"], (
            "<p>lab, all_reduce by ring, 2 KiB: the busiest direction of a link carries 12,345 bytes, and is busy 50.0 % of the time. "
            "<code>trib sim --counters</code> keeps those of every link.</p>\n"
        ))  # fmt: skip
        for key in ("ecn_marks", "pauses_sent", "pauses_received", "paused_us"):
            self.assertTrue(page._in_trouble(link("a", "b", 0, **{key: 1})))
        self.assertTrue(page._in_trouble(link("a", "b", 0, faults={"y": 1})))
        self.assertFalse(page._in_trouble(link("a", "b", 0)))

    def test_a_run_can_be_made_again(self):
        run = {
            "command": ["trib", "sim", "a b"], "machine": {"cpu": "C", "n": 2}, "version": "1.2", "commit": "abc", "date": "", "environment": {"X": "y", "Z": 1},
            "files": [{"path": "p<", "text": "T<", "sha256": "0123456789abcdef0"}, 7, {"path": "q"}],
        }  # fmt: skip
        body = self.page(self.rows({}, run=run, virtual={"seed": 9}))[1]["How to run it again"]
        pre = '<pre class="scroll" role="region" tabindex="0" aria-label="%s">%s</pre>\n'
        self.assertEqual(body, (
            "<h3>a</h3>\n" + pre % ("Command of a", "trib sim &#x27;a b&#x27;") + "<dl><dt>Tributary</dt><dd>1.2</dd><dt>commit</dt><dd>abc</dd><dt>machine</dt><dd>C, 2</dd><dt>seed</dt><dd>9</dd>"
            "<dt>environment</dt><dd>X=y Z=1</dd></dl>\n<details><summary>p&lt;, SHA-256 0123456789abcdef…</summary>" + pre % ("Text of p&lt;, of a", "T&lt;") + "</details>\n"
            "<details><summary>q</summary>" + pre % ("Text of q, of a", "") + "</details>\n"
        ))  # fmt: skip
        body = self.page(self.rows({}, run=None, virtual=None, version="0.9", seed=3))[1]["How to run it again"]
        self.assertEqual(body, "<h3>a</h3>\n<dl><dt>Tributary</dt><dd>0.9</dd><dt>seed</dt><dd>3</dd></dl>\n")

    def test_secrets_of_older_files_are_not_shown(self):
        def output(words):
            asked.append((words[:2], Path(words[2]).read_text(encoding="utf-8"), os.stat(words[2]).st_mode & 0o777))
            return "hidden"

        asked = []
        with mock.patch.object(page, "output", output):
            for used, found in (
                ({"text": "a", "sha256": "x"}, ("a", "x")), ({"text": "trunk_key = 1", "sha256": "x", "secrets": "hidden"}, ("trunk_key = 1", "x")),
                ({"text": "trunk_key = 1", "sha256": "x"}, ("hidden", "")), ({}, ("", "")),
            ):  # fmt: skip
                self.assertEqual(page._without_secrets(used), found)
        self.assertEqual(asked, [(["plan", "--no-secrets"], "trunk_key = 1", 0o600)])
        with mock.patch.object(page, "output", mock.Mock(side_effect=TribError("no", [], 1))):
            self.assertEqual(page._without_secrets({"text": "trunk_key = 1"}), ("not shown: it has a secret", ""))

    def test_other_results_are_tables(self):
        with mock.patch.object(page.parts, "step", lambda found, name, draw: f"STEP {name}"), mock.patch.object(page.parts, "jobs", lambda found, name, draw: f"JOBS {name}"):
            title, parts = self.page(self.put("s.json", {"collectives": [], "hosts": {"step_us": 1}, "fabric": "f"}), self.put("j.json", {"jobs": []}))
        self.assertEqual((title, parts["Results: s"], parts["Results: j"]), ("a training step of  on f,  GPUs", "STEP s", "JOBS j"))
        other = {"jobs": [{"a": {"b": 1}, "c": [1]}, {"a": {"b": None}, "d": 2}, 7], "links": [{"x": 1}], "n": 7, "collectives": [1]}
        title, parts = self.page(self.put("o.json", other))
        self.assertEqual((title, self.tables), ("Results of Tributary", [("jobs of o", ("a.b", "d"), [(1, ""), ("", 2)], 1)]))
        self.assertIn("<h3>o</h3>", parts["How to run it again"])

    def test_a_time_line_has_its_explanation(self):
        path, explain, asked = self.put("t.json", {"otherData": {}}), self.folder / "trib-explain", []

        def ran(words, **how):
            asked.append((words, how))
            return subprocess.CompletedProcess(words, code, "why <b>", "")

        with mock.patch.object(page, "trib", lambda: self.folder / "trib"), mock.patch.object(page._plot_timeline, "timeline", lambda p: self.made.append(p)), mock.patch.object(subprocess, "run", ran):
            code = 0
            figure = "<figure><f1><figcaption>Time line of an operation, t: what ranks do, and the busiest links</figcaption></figure>\n"
            title, parts = self.page(path)
            self.assertEqual((title, parts["Time line: t"], self.made, asked), ("Results of Tributary", figure, [path], []))
            explain.touch()
            said = '<pre class="scroll" role="region" tabindex="0" aria-label="trib explain t">why &lt;b&gt;</pre>\n'
            self.assertEqual(self.page(path)[1]["Time line: t"], figure + said)
            self.assertEqual(asked, [([str(explain), path], {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "errors": "replace"})])
            self.assertEqual(list(self.page(path, path)[1]), ["Time line: t", "Time line: t (1)"])
            code = 1
            self.assertEqual(self.page(path)[1]["Time line: t"], figure)

    def test_what_is_no_file_of_trib_s_is_refused(self):
        kinds = "expected a file of trib's -J or --timeline"
        for value, says in (
            ({}, f"%s: found neither rows nor a time line, {kinds}"), ({"jobs": 7}, f"%s: found neither rows nor a time line, {kinds}"), ({"run": []}, "%s: run: found [], expected an object"),
            ({"virtual": "x" * 50}, f"%s: virtual: found {'x' * 40}, expected an object"), ("[]", f"%s: found no object, {kinds}"),
        ):  # fmt: skip
            path = self.put("x.json", value)
            with self.assertRaises(ValueError) as e:
                page.make([path])
            self.assertEqual(str(e.exception), says % path)
        self.assertEqual((page._kind({"otherData": {}, "results": []}), page._kind({"results": [], "jobs": []}), page._kind({"collectives": []})), ("timeline", "rows", "other"))

    def test_a_page_is_written_as_a_whole(self):
        to = self.folder / "o.html"
        page.write([self.rows({})], to, "t<")
        self.assertIn("<title>t&lt;</title>", to.read_text(encoding="utf-8"))
        self.assertEqual([page._known(v) for v in (None, float("nan"), 0, [], {})], [None, None, 0, [], {}])
        report = page.Report()
        report.add("A", "")
        self.assertEqual((report.parts, report.body), ([], []))


if __name__ == "__main__":
    unittest.main()
