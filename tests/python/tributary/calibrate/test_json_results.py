# SPDX-License-Identifier: BSD-3-Clause
"""Results in JSON of nccl-tests and of trib, and what kind of file each is."""
import json
import os
import tempfile
import unittest

from tributary._cli import Refused
from tributary.calibrate import json_results, read
from tributary.calibrate.rows import Options


def options(**given):
    o = Options()
    for k, v in given.items():
        setattr(o, k, v)
    return o


def trib(size, us, algo="ring", in_place=False, collective="all_reduce", **more):
    return {"algo": algo, "collective": collective, "in_place": in_place, "size_bytes": size, "time_us": us, **more}


NCCL = {
    "args": ["build/all_reduce_perf", "-b", "4"], "env": ["NCCL_ALGO=Tree"],
    "config": {"devices": [{"hostname": "a"}, {"hostname": "b"}], "ngpus": 2, "nthreads": 3, "minimum_bytes": 4, "maximum_bytes": 16, "step_factor": 2},
    "results": [{"size": 4, "out_of_place": {"time": 1.5, "nwrong": 0}, "in_place": {"time": 2.5, "nwrong": 0}}],
}  # fmt: skip


class Json(unittest.TestCase):
    def read(self, top, **given):
        return json_results.read("d/f", top if isinstance(top, str) else json.dumps(top), options(**given))

    def seen(self, top, **given):
        return [(s.collective, s.algo, s.ranks, s.hosts, [(r.size, r.us, r.line) for r in s.rows], s.notes) for s in self.read(top, **given)]

    def refused(self, says, top):
        with self.assertRaises(Refused) as e:
            self.read(top)
        self.assertEqual(str(e.exception), says)

    def test_rows_of_trib_are_of_a_collective_and_an_algorithm(self):
        top = {"ranks": 4, "results": [trib(4, 1.5), trib(8, 2.5, "tree"), trib(8, 3.5), trib(8, 4.5, collective="reduce")]}
        self.assertEqual(self.seen(top), [
            ("all_reduce", "ring", 4, None, [(4, 1.5, 1), (8, 3.5, 3)], []), ("all_reduce", "tree", 4, None, [(8, 2.5, 2)], []),
            ("reduce", "ring", 4, None, [(8, 4.5, 4)], []),
        ])  # fmt: skip
        top["results"] = [trib(4, 1.5), trib(4, 2.5, in_place=True), trib(8, 3.5, in_place=True), trib(16, 1, wrong=3)]
        note = "d/f: results[3]: 16 B out of place left out: 3 elements are wrong"
        self.assertEqual(self.seen(top), [("all_reduce", "ring", 4, None, [(4, 1.5, 1), (8, 3.5, 3)], [note])])
        self.assertEqual(self.seen(top, place="in"), [("all_reduce", "ring", 4, None, [(4, 2.5, 2), (8, 3.5, 3)], [])])

    def test_rows_of_nccl_are_of_their_place(self):
        ((collective, algo, ranks, hosts, rows, notes),) = self.seen(NCCL)
        self.assertEqual((collective, algo, ranks, hosts, rows, notes), ("all_reduce", "tree", 12, 2, [(4, 1.5, 1)], []))
        self.assertEqual(self.seen(NCCL, place="in")[0][4], [(4, 2.5, 1)])
        self.assertEqual(self.read(NCCL)[0].expected, [4, 8, 16])
        config = {"devices": [{}] * 8, "minimum_bytes": 4, "maximum_bytes": 12, "step_bytes": 4}
        (s,) = self.read({**NCCL, "args": {"program": "x_perf"}, "env": {"NCCL_ALGO": "PAT"}, "config": config})
        self.assertEqual((s.collective, s.algo, s.ranks, s.hosts, s.expected, s.not_ours[:30]), (None, None, 8, 1, [4, 8, 12], "d/f: env: found NCCL_ALGO PAT,"))
        (s,) = self.read({**NCCL, "args": {"program": "reduce_perf"}, "env": {}, "config": {"devices": []}})
        self.assertEqual((s.collective, s.algo, s.ranks, s.hosts, s.expected, s.not_ours), ("reduce", None, 0, None, [], ""))
        (s,) = self.read({**NCCL, "args": 7, "env": None, "config": {"devices": [{}], "ngpus": True, "nthreads": 0, "maximum_bytes": 2, "step_bytes": 1}})
        self.assertEqual((s.collective, s.ranks, s.expected), (None, 1, [1, 2]))

    def test_wrong_rows_of_nccl_are_left_out(self):
        row = {"size": 8, "out_of_place": {"time": 1.0, "nwrong": 2}, "in_place": 3.5}
        top = {**NCCL, "results": [*NCCL["results"], row, {"size": 16, "in_place": 4.5}]}
        note = "d/f: results[1]: 8 B out of place left out: 2 elements are wrong"
        self.assertEqual(self.seen(top)[0][4:], ([(4, 1.5, 1), (16, 4.5, 3)], [note]))
        bounds = {"out_of_bounds": {"okay": False}}
        self.assertEqual(len(self.seen({**top, **bounds})), 1)
        self.refused('d/f: out_of_bounds: found {"okay": false}, expected rows that say which (nwrong)', {**NCCL, **bounds})
        for good in ({"okay": True}, {}, 7):
            self.assertEqual(len(self.seen({**NCCL, "out_of_bounds": good})), 1)

    def test_what_is_not_there_or_of_another_kind_is_refused(self):
        field = "d/f: found no field '%s', expected it in nccl-tests' or trib's JSON"
        row = NCCL["results"][0]
        for top, says in (
            ("{", "d/f:1: found the end of the file: it is cut off, expected JSON"), ('{"a":\n x}', "d/f:2: found Expecting value, expected JSON"),
            ('{"a": NaN}', "d/f: found the number nan, expected JSON of nccl-tests, trib or perftest"), ({}, field % "results"), ([], field % "results"),
            ({"results": {"a": 1}}, 'd/f: results: found {"a": 1}, expected a list of rows'), ({"results": []}, field % "config.devices"),
            ({"results": [], "config": 7}, field % "config.devices"), ({"results": [], "ranks": "4"}, 'd/f: ranks: found "4", expected a number'),
            ({"results": [], "ranks": True}, "d/f: ranks: found true, expected a number"), ({"results": [], "ranks": -1}, "d/f: ranks: found -1, expected a number"),
            ({"results": [7], "ranks": 1}, field % "algo"), ({"results": [{"algo": 1, "collective": "x"}], "ranks": 1},
                                                             'd/f: results[0]: found algo 1 and collective "x", expected names'),
            ({"results": [{"algo": "r", "collective": None}], "ranks": 1}, 'd/f: results[0]: found algo "r" and collective null, expected names'),
            ({"results": [trib(4, "x")], "ranks": 1}, 'd/f: results[0].time_us: found "x", expected a number'),
            ({"results": [trib(None, 1)], "ranks": 1}, "d/f: results[0].size_bytes: found null, expected a number"),
            ({**NCCL, "config": {"devices": 7}}, "d/f: config.devices: found no list of devices, expected one a rank"),
            ({**NCCL, "config": {"devices": [7]}}, "d/f: config.devices: found no list of devices, expected one a rank"),
            ({**NCCL, "results": [{"size": "4"}]}, 'd/f: results[0].size: found "4", expected a number'),
            ({**NCCL, "results": [row, {"size": 4, "in_place": {"time": "nan"}}]}, 'd/f: results[1].time: found "nan", expected a number'),
            ({**NCCL, "results": [{"size": 4, "in_place": {}}]}, "d/f: results[0].time: found null, expected a number"),
            ({**NCCL, "results": [{"size": 4, "in_place": {"cpu_time": 1}}]},
             "d/f: results[0]: found cpu_time, expected time: what a CPU takes to start an operation is not what it takes"),
        ):  # fmt: skip
            self.refused(says, top)
        self.assertEqual(self.seen({**NCCL, "results": [{"size": 4, "in_place": {"cpu_time": 1, "time": 2.5}}]})[0][4], [(4, 2.5, 1)])

    def test_perftest_s_json_has_a_test_info(self):
        found = self.read({"test_info": {"test": "Send_BW_Test"}, "results": {"MsgSize": 1000, "BW_average": 8.0, "MsgRate": 1.0}})
        self.assertEqual([(s.kind, s.rows[0].us) for s in found], [("rate", 1.0)])


class Kinds(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.path = folder.name, os.path.join(folder.name, "f")

    def put(self, data):
        with open(self.path, "wb") as f:
            f.write(data if isinstance(data, bytes) else data.encode())

    def read(self, data):
        self.put(data)
        return [(s.collective, s.kind, [(r.size, r.us) for r in s.rows], s.notes) for s in read.read_results(self.path, options())]

    def test_a_file_tells_what_it_is(self):
        nccl = "# size count type time algbw busbw\n4 1 float 2.5 1 1\n"
        osu = "# OSU MPI Allreduce Latency Test\n# Size  Avg Latency(us)\n4 2.5\n"
        for text, found in (
            (nccl, (None, "time")), ("\ufeff" + nccl.replace("\n", "\r\n"), (None, "time")), (osu, ("all_reduce", "time")),
            ("RDMA_Write BW Test\n#bytes #iterations BW average[Gb/sec]\n1000 1 8\n", ("sendrecv", "rate")),
            ("# Benchmarking Bcast\n# #processes = 2\n#bytes #repetitions t[usec]\n4 1 2.5\n", ("broadcast", "time")),
            ("".join(f"0: {line}\n" for line in osu.splitlines()), ("all_reduce", "time")),
            (json.dumps({"ranks": 2, "results": [trib(4, 2.5)]}), ("all_reduce", "time")),
            ('0: {"ranks": 2,\n0: "results": [' + json.dumps(trib(4, 2.5)) + "]}\n", ("all_reduce", "time")),
        ):
            self.assertEqual(self.read(text)[0][:2], found)
        self.assertEqual(self.read(nccl)[0][2:], ([(4, 2.5)], []))

    def test_notes_of_series_without_rows_are_told(self):
        head = "# OSU MPI %s Latency Test\n# Size  Avg Latency(us)  Validation\n"
        note = f"{read.clean(self.path)}:3: 8 B left out: its validation failed"
        found = self.read(head % "Reduce" + "8 1.0 Fail\n" + head % "Bcast" + "4 2.5 Pass\n")
        self.assertEqual(found, [("broadcast", "time", [(4, 2.5)], [note])])
        with self.assertRaises(Refused) as e:
            self.read(head % "Reduce" + "8 1.0 Fail\n")
        self.assertEqual(str(e.exception), f"{read.clean(self.path)}: found no row with a size and a time; {note}")

    def test_what_is_none_is_refused(self):
        kinds = "results of nccl-tests, trib, perftest, OSU or IMB"
        at = read.clean(self.path)
        heads = "results of nccl-tests (# size count type ...), trib, perftest (#bytes #iterations ...), OSU (# OSU ...) or IMB (#bytes #repetitions ...)"
        for data, says in (
            ("", f"{at}: found an empty file, expected {kinds}"), (" \n", f"{at}: found an empty file, expected {kinds}"),
            (b"a\nb\0", f"{at}:2: found a binary file (byte 0x00), expected text or JSON"), (b"\n\n\xff\n", f"{at}:3: found a binary file (byte 0xff), expected text or JSON"),
            ("\n hello \n", f"{read.clean(self.path, 200)}:2: found 'hello' and no head of columns after it, expected {heads}"),
            ("[]", f"{at}: found no field 'results', expected it in nccl-tests' or trib's JSON"),
        ):
            with self.assertRaises(Refused) as e:
                self.read(data)
            self.assertEqual(str(e.exception), says)
        for path, says in (
            (self.folder, f"found a directory, expected {kinds}"), (self.folder + "/none", f"found no file, expected {kinds}"), ("/dev/null", None),
            ("/" + "x" * 300, "cannot read: File name too long"),
        ):
            with self.assertRaises(Refused) as e:
                read.read_results(path, options())
            self.assertEqual(str(e.exception), f"{read.clean(path, 200)}: {says}" if says else f"/dev/null: found no plain file, expected one or a pipe: {kinds}")


if __name__ == "__main__":
    unittest.main()
