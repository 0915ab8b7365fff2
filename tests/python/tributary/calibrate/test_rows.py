# SPDX-License-Identifier: BSD-3-Clause
"""What all readers of results need: numbers, sizes, places, steps."""
import unittest

from tributary._cli import Refused
from tributary.calibrate import launchers, nccl_algo, osu, rows


class Rows(unittest.TestCase):
    def refused(self, says, call, *args):
        with self.assertRaises(Refused) as e:
            call(*args)
        self.assertEqual(str(e.exception), says)

    def test_numbers_have_a_point_and_no_comma(self):
        for text, value in (("0", 0.0), ("12.5", 12.5), ("1e3", 1000.0), ("2.5E-02", 0.025), ("9" * 18, float("9" * 18))):
            self.assertEqual(rows.number(text, "f", 3, "a time"), value)
        for text in ("", "-1", "1.", ".5", "x", "1e100", "9" * 19, "nan"):
            self.refused(f"f:3: found '{text}', expected a time, a number", rows.number, text, "f", 3, "a time")
        comma = "; a comma is no decimal point (set LC_ALL=C)"
        self.refused(f"f:3: found '1,5', expected a time, a number{comma}", rows.number, "1,5", "f", 3, "a time")
        self.assertEqual(rows.whole("17", "f", 1, "a size"), 17)
        for text in ("1.0", "-1", "", "9" * 19):
            self.refused(f"f:1: found '{text}', expected a size, a number", rows.whole, text, "f", 1, "a size")

    def test_sizes_are_whole_numbers_of_a_unit(self):
        for n, text in ((1, "1 B"), (1023, "1023 B"), (1024, "1 KiB"), (1536, "1536 B"), (3 << 20, "3 MiB"), ((1 << 20) + 1024, "1025 KiB"), (1 << 30, "1 GiB"),
                        (0, "0 B")):  # fmt: skip
            self.assertEqual(rows.size_text(n), text)

    def test_a_row_is_of_the_place_that_is_asked_for(self):
        for us, wrong, choice, taken, notes in (
            ({"out": 2.0, "in": 3.0}, {}, "out", [2.0], []), ({"out": 2.0, "in": 3.0}, {}, "in", [3.0], []), ({"in": 3.0}, {}, "out", [3.0], []),
            ({"out": 2.0}, {}, "in", [], []), ({"out": 0.0, "in": 3.0}, {}, "out", [3.0], []), ({}, {}, "out", [], []),
            ({"out": 2.0}, {"out": "1 wrong"}, "out", [], ["w: 4 B out of place left out: 1 wrong"]),
            ({"in": 2.0}, {"in": "2 wrong", "out": "x"}, "out", [], ["w: 4 B in place left out: 2 wrong"]),
        ):  # fmt: skip
            s = rows.Series("f")
            rows.take(s, 4, us, 7, wrong, choice, "w")
            self.assertEqual(([r.us for r in s.rows], s.notes), (taken, notes))
        s = rows.Series("d/f\x1b")
        rows.take(s, 0, {"out": 1.0}, 7, {}, "out", "w")
        self.assertEqual((s.rows, s.name(), s.where(4)), ([], "f?", "d/f?:4"))
        row = rows.Row(1, 2.0, 3)
        self.assertTrue(row.counts())
        row.use = "outlier"
        self.assertTrue(row.counts())
        row.use = "small"
        self.assertFalse(row.counts())

    def test_the_last_row_may_be_cut_off(self):
        self.assertEqual(rows.cut_off("f", 2, ["a", "b", " ", ""]), "f:2: the last row is cut off and left out")
        self.assertEqual(rows.cut_off("f", 1, ["a", "b"]), "")

    def test_steps_are_added_or_multiplied(self):
        for args, sizes in (
            ((4, 32, 2, True), [4, 8, 16, 32]), ((4, 33, 2, True), [4, 8, 16, 32]), ((0, 8, 2, True), [0, 2, 4, 8]), ((4, 16, 4, False), [4, 8, 12, 16]),
            ((4, 16, 1, True), []), ((4, 16, 0, False), []), ((4, 5, 1, False), [4, 5]), ((5, 4, 2, True), []),
        ):  # fmt: skip
            self.assertEqual(rows.steps(*args), sizes)
        self.assertEqual(len(rows.steps(0, 1 << 30, 1, False)), 4096)


class Osu(unittest.TestCase):
    def read(self, *lines):
        return osu.read("f", lines)

    def test_a_table_becomes_a_series(self):
        for title, head, collective, algo, ranks, kind, per_rank in (
            ("# OSU MPI Allreduce Latency Test v5.9", "# Size  Avg Latency(us)", "all_reduce", None, 0, "time", False),
            ("# OSU NCCL-CUDA Allgather Latency Test", "# Size  Avg Latency(us)  Min Latency(us)", "all_gather", None, 0, "time", True),
            ("# OSU MPI All-to-All Personalized Exchange Latency Test v7", "# Size  Latency (us)", "alltoall", None, 0, "time", True),
            ("# OSU MPI(x) Latency Test", "# Size  Latency (us)", "sendrecv", "direct", 2, "latency", False),
        ):
            self.assertTrue(osu.is_osu([title]))
            (s,) = self.read(title, head, "0 1.5", "4 2.5", "8 0.00")
            self.assertEqual((s.collective, s.algo, s.ranks, s.kind, s.per_rank), (collective, algo, ranks, kind, per_rank))
            self.assertEqual([(r.size, r.us, r.line) for r in s.rows], [(4, 2.5, 4)])
        (s,) = self.read("# OSU MPI Bandwidth Test", "# Size  Bandwidth (MB/s)", "1000 500.0")
        self.assertEqual((s.kind, [(r.size, r.us) for r in s.rows]), ("rate", [(1000, 2.0)]))
        first, second = self.read("# OSU MPI Reduce Latency", "# Size Latency (us)", "4 1.0", "# OSU MPI Bcast Latency", "# Size Latency (us)", "8 2.0")
        self.assertEqual((first.collective, second.collective, second.rows[0].size), ("reduce", "broadcast", 8))
        self.assertFalse(osu.is_osu(["#OSU x", "x"]))

    def test_rows_that_are_none_are_left_out_or_refused(self):
        head = ("# OSU MPI Allreduce Latency Test", "# Size  Avg Latency(us)  Validation")
        (s,) = self.read(*head, "NCCL version 2.19", "4 1.0 Pass", "8 2.0 Fail", "16 3.0 pass", "32")
        self.assertEqual([r.size for r in s.rows], [4, 16])
        self.assertEqual(s.notes, ["f:5: 8 B left out: its validation failed", "f:7: the last row is cut off and left out"])
        for row, says in (
            ("4 1.0 Pass x", "f:3: found 4 columns, expected 3"), ("abc 1", "f:3: found 'abc 1', expected a row of 3 columns, size first"),
            ("4 x", "f:3: found 'x', expected a time or rate, a number"),
        ):
            with self.assertRaises(Refused) as e:
                self.read(*head, row)
            self.assertEqual(str(e.exception), says)
        with self.assertRaises(Refused) as e:
            self.read(*head, "4", "8 1.0")
        self.assertEqual(str(e.exception), "f:3: found 1 columns, expected 3")
        for lines, says in (
            (("# OSU MPI Barrier Latency Test",), f"f:1: found '# OSU MPI Barrier Latency Test', expected an OSU benchmark out of {', '.join(sorted(osu.TESTS))}"),
            (("# OSU UPC Allreduce Latency Test",), f"f:1: found '# OSU UPC Allreduce Latency Test', expected an OSU benchmark out of {', '.join(sorted(osu.TESTS))}"),
            ((head[0], "# Size  Avg Latency(ms)"), "f:2: found the unit 'ms', expected Latency (us)"),
            ((head[0], "# Size  Rate"), "f:2: found the columns 'Rate', expected Latency (us)"),
        ):
            with self.assertRaises(Refused) as e:
                self.read(*lines)
            self.assertEqual(str(e.exception), says)


class Algorithms(unittest.TestCase):
    def test_nccl_s_names_are_ours_or_none(self):
        for line, value in (("NCCL_ALGO set by environment to Ring", "Ring"), ("NCCL_ALGO='Tree'", "Tree"), ("x NCCL_ALGO: NVLS y", "NVLS"), ("NCCL_ALGOS=Ring", None)):
            self.assertEqual(nccl_algo.asked(line), value)
        for line, value in (("1048576 Bytes -> Algo 1 proto 2", (1048576, "Ring")), ("8 Bytes -> Algo TREE proto LL", (8, "TREE")),
                            ("8 Bytes -> Algo 9 proto 0", (8, "9")), ("8 Bytes -> Algo 6 proto 0", (8, "PAT")), ("none", None)):  # fmt: skip
            self.assertEqual(nccl_algo.chosen(line), value)
        for value, collective, found in (
            ("Ring", "all_reduce", "ring"), ("allreduce:tree", "all_reduce", "tree"), ("broadcast:tree", "all_reduce", None), ("broadcast:tree;Ring", "all_reduce", "ring"),
            ("allreduce:nvls;", "all_reduce", "nvls"), ("x:ring", None, None),
        ):  # fmt: skip
            self.assertEqual(nccl_algo.ours(value, collective, "w"), (found, ""))
        for value in ("Ring,Tree", "^Ring", "CollnetDirect"):
            self.assertEqual(
                nccl_algo.ours(value, "all_reduce", "w"), (None, f"w: found NCCL_ALGO {value}, expected Ring, Tree or NVLS alone, or --algo with what of ours is like it")
            )
        self.assertEqual(nccl_algo.of_choices({4: "Tree", 8: "Ring", 16: "Ring"}, 8, "w"), ("ring", ""))
        self.assertEqual(nccl_algo.of_choices({4: "Tree"}, 8, "w"), (None, ""))
        self.assertEqual(
            nccl_algo.of_choices({8: "Ring", 4: "Tree"}, 4, "w"),
            (None, "w: found NCCL's algorithms Tree, Ring, expected Ring, Tree or NVLS alone, or --algo with what of ours is like them"),
        )
        self.assertEqual(nccl_algo.of_choices({8: "PAT"}, 4, "w")[0], None)

    def test_tags_of_launchers_are_taken_off(self):
        self.assertEqual(launchers.untagged(["[1,0]<stdout>:a b", "[prterun-n-4711@1,0]<stderr>: c", "d"]), ["a b", "c", "d"])
        self.assertEqual(launchers.untagged(["0: a", " 12: b", "srun: x", ""]), ["a", "b", "srun: x", ""])
        self.assertEqual(launchers.untagged(["[0] a", "[1] b"]), ["a", "b"])
        self.assertEqual(launchers.untagged(["0: a"] * 4 + ["b"]), ["0: a"] * 4 + ["b"])  # four of five are not enough
        self.assertEqual(launchers.untagged(["0: a"] * 5 + ["b"]), ["a"] * 5 + ["b"])


if __name__ == "__main__":
    unittest.main()
