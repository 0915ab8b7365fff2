# SPDX-License-Identifier: BSD-3-Clause
"""nccl-tests' tables, line by line: what each kind of line changes, which rows count, and what is refused."""
import unittest

from tributary._cli import Refused
from tributary.calibrate import nccl
from tributary.calibrate.rows import MIB, Options

HEAD = "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong"
UNITS = "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)"
NAMES = HEAD[1:].split()


def rank(n, host="node0", group=None):
    return f"#  Rank {n:2d} {'' if group is None else f'Group {group} '}Pid {100 + n} on {host} device {n} [0x0{n}] GPU"


def row(size, out, in_="-", op="sum", wrong=("0", "0"), bw=("1.0", "1.0")):
    places = " ".join(f"{us} {bw[0]} {bw[1]} {w}" if us != "-" else "- - - -" for us, w in ((out, wrong[0]), (in_, wrong[1])))
    return f"  {size} {size // 4} float {op} -1 {places}"


class Tables(unittest.TestCase):
    def read(self, *lines, **given):
        o = Options()
        for k, v in given.items():
            setattr(o, k, v)
        return nccl.Text("d/f", o).read(lines)

    def one(self, *lines, **given):
        (s,) = self.read(*lines, **given)
        return s

    def rows(self, s):
        return [(r.size, r.us, r.line) for r in s.rows]

    def refused(self, says, *lines, **given):
        with self.assertRaises(Refused) as e:
            self.read(*lines, **given)
        self.assertEqual(str(e.exception), says)

    def test_a_program_names_its_collective(self):
        for text, collective in (
            ("./build/all_reduce_perf -b 8", "all_reduce"), ("alltoall_perf_mpi", "alltoall"), ("sendrecv_perf", "sendrecv"), ("xall_reduce_perf", None),
            ("all_reduce_perfect", None), ("", None),
        ):  # fmt: skip
            self.assertEqual(nccl.test_of(text), collective)

    def test_a_table_becomes_a_series(self):
        s = self.one("$ mpirun all_reduce_perf", "# minBytes 4 maxBytes 16 step: 2(factor)", rank(0), rank(1, "node1"), HEAD, UNITS, row(4, "2.5", "3.5"), row(8, "4"), "")
        self.assertEqual((s.path, s.collective, s.algo, s.ranks, s.hosts, s.kind, s.per_rank, s.not_ours), ("d/f", "all_reduce", None, 2, 2, "time", False, ""))
        self.assertEqual((self.rows(s), s.notes, s.expected), ([(4, 2.5, 7), (8, 4.0, 8)], [], [4, 8, 16]))
        s = self.one(HEAD, UNITS, row(4, "2.5", "3.5"), place="in")
        self.assertEqual((s.collective, s.ranks, s.hosts, self.rows(s)), (None, 0, None, [(4, 3.5, 3)]))
        s = self.one("# minBytes 4 maxBytes 16 step: 4(bytes)", HEAD, row(4, "-", "3.5"))
        self.assertEqual((self.rows(s), s.expected), ([(4, 3.5, 3)], [4, 8, 12, 16]))
        s = self.one("# minBytes 4 maxBytes 16 step: 4(bytes)", "# minBytes 4 maxBytes 16 step: 0(bytes)", HEAD, row(4, "1"))
        self.assertEqual(s.expected, [4, 8, 12, 16])

    def test_only_what_comes_before_the_table_names_the_collective(self):
        for before, after, collective in (("reduce_perf", "broadcast_perf", "reduce"), ("", "broadcast_perf", None), ("reduce_perf\x00broadcast_perf", "", "broadcast")):
            lines = [*before.split("\0"), HEAD] + ([f"# {after}"] if after else [])
            self.assertEqual(self.one(*lines, row(4, "1")).collective, collective)

    def test_a_head_begins_a_series_anew(self):
        first, second = self.read("reduce_perf", HEAD, row(4, "1"), "# Algorithm: ring", row(8, "1"))
        self.assertEqual((first.algo, second.algo, self.rows(second)), (None, "ring", [(8, 1.0, 5)]))
        first, second = self.read("reduce_perf", HEAD, row(4, "1"), HEAD, row(8, "1"))
        self.assertEqual((self.rows(first), self.rows(second)), ([(4, 1.0, 3)], [(8, 1.0, 5)]))

    def test_the_row_is_cut_into_its_columns(self):
        old = "#  size  count  type  redop  time  algbw  busbw  error  time  algbw  busbw  error"
        s = self.one(old, "  4 1 float sum 2.5 1 1 0e+00 3.5 1 1 N/A")
        self.assertEqual(self.rows(s), [(4, 2.5, 2)])
        s = self.one("# size count type time algbw busbw", "4 1 float 2.5 1 1", "8 2 float 3.5 1 1")
        self.assertEqual(self.rows(s), [(4, 2.5, 2), (8, 3.5, 3)])
        stamped = "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong timestamp"
        stamp = "%Y-%m-%d %H:%M:%S"
        s = self.one(stamped, f"# (B) (elements) (us) (GB/s) (GB/s) {stamp}", row(4, "2.5", "3.5") + " 2025-01-01 10:00:00", place="in")
        self.assertEqual(self.rows(s), [(4, 3.5, 3)])

    def places(self, words):
        t = nccl.Text("f", Options())
        t.columns = words
        return t.places()

    def test_places_begin_with_a_time(self):
        for words, found in (
            (NAMES, ([5, 9], 4, 0)), (NAMES[:9], ([5], 4, 0)), ([*NAMES, "timestamp"], ([5, 9], 4, 2)), ([*NAMES[:9], "link", "x", "y"], ([5], 4, 3)),
            ([*NAMES[:9], "link", "timestamp"], ([5], 4, 3)), ([*NAMES, "time"], ([5, 9], 4, 0)),
        ):  # fmt: skip
            self.assertEqual(self.places(words), found)

    def test_a_row_that_is_none_is_refused(self):
        said = "13: " + " ".join(NAMES)
        for line, says in (
            ("node0: Test failure", "d/f:2: found 'node0: Test failure', expected a row of 13 columns, size first, or a comment"),
            ("4 1 float sum -1 1 1 1 0 1", f"d/f:2: found 10 columns, expected {said}"),
            (row(4, "1", "1") + " a b c", f"d/f:2: found 16 columns, expected {said}"),
            ("4 x float sum -1 1 1 1 0 1 1 1 0", "d/f:2: found 'x', expected count of elements, a number"),
            ("4" * 19 + " 1 float sum -1 1 1 1 0 1 1 1 0", f"d/f:2: found '{'4' * 19}', expected size in bytes, a number"),
            (row(4, "x", "1"), "d/f:2: found 'x', expected time in us of out of place, a number"),
            (row(4, "1", "x"), "d/f:2: found 'x', expected time in us in place, a number"),
            (row(4, "1", bw=("y", "1")), "d/f:2: found 'y', expected algbw, a number"),
            (row(4, "1", bw=("1", "z")), "d/f:2: found 'z', expected busbw, a number"),
            (row(4, "1", wrong=("w", "0")), "d/f:2: found 'w', expected #wrong, a number"),
        ):
            self.refused(says, HEAD, line, row(8, "1"))
        for line in ("4 1 float sum a b -1 1 1 1 0 1 1 1 0", "4 1 float 1 1 1 0 1 1 1 0"):  # two more and two less are other versions'
            self.assertEqual([r.size for r in self.one(HEAD, line, row(8, "1")).rows], [4, 8])
        self.refused("d/f: found no head of columns (# size count type ... time algbw busbw), expected nccl-tests' output", "a", "# b")

    def test_the_last_row_may_be_cut_off(self):
        for after in ((), ("",)):
            s = self.one(HEAD, row(4, "1"), "8 2 float", *after)
            self.assertEqual((self.rows(s), s.notes), ([(4, 1.0, 2)], ["d/f:3: the last row is cut off and left out (found 3 columns, expected 13)"]))
        self.refused("d/f:3: found 3 columns, expected 13: " + " ".join(NAMES), HEAD, row(4, "1"), "8 2 float", "# end", "# end")
        self.refused("d/f:3: found 3 columns, expected 13: " + " ".join(NAMES), HEAD, row(4, "1"), "8 2 float", "", "")
        s = self.read(HEAD, "8 2 float")
        self.assertEqual(s, [])  # its note waits for a series
        t = nccl.Text("d/f", Options())
        t.note("early")
        self.assertEqual((t.early, t.at().notes, t.early), (["early"], ["early"], []))
        t.note("late")
        self.assertEqual(t.series[0].notes, ["early", "late"])

    def test_rows_of_a_foreign_line_are_left_out(self):
        s = self.one(HEAD, row(4, "1"), "   1048576  262144   float node0:1:2 [0] NCCL INFO x", "node0:1:2 [0] NCCL INFO x", row(8, "1"))
        self.assertEqual(self.rows(s), [(4, 1.0, 2), (8, 1.0, 5)])
        self.assertEqual(s.notes, ["d/f:3: the row of 1 MiB is left out: another process wrote into its line"])

    def test_what_a_check_found_leaves_a_row_out(self):
        s = self.one(HEAD, row(4, "1", "2", wrong=("3", "0")), row(8, "1", "2", wrong=("0", "5")), row(16, "1", wrong=("N/A", "0")))
        self.assertEqual((self.rows(s), s.notes), ([(8, 1.0, 3), (16, 1.0, 4)], ["d/f:2: 4 B out of place left out: 3 elements are wrong"]))
        t = nccl.Text("f", Options())
        for value, column, kind, says in (
            ("N/A", "#wrong", "float", ""), ("-", "error", "float", ""), ("x", "other", "float", ""), ("0", "#wrong", "float", ""), ("2", "#wrong", "half", "2 elements are wrong"),
            ("1e-5", "error", "float", ""), ("1.1e-05", "error", "float", "its error is 1.1e-05, above 1e-05 of float"), ("1e-2", "error", "half", ""),
            ("2e-2", "error", "bfloat16", "its error is 0.02, above 0.01 of bfloat16"), ("1e-11", "error", "double", "its error is 1e-11, above 1e-12 of double"),
            ("1", "error", "int32", "its error is 1, above 0 of int32"), ("0", "error", "uint8", ""), ("0.01", "error", "fp8", ""), ("0.02", "error", "fp8", "its error is 0.02, above 0.01 of fp8"),
        ):  # fmt: skip
            self.assertEqual(t.check(value, column, kind, 1), says)

    def test_values_out_of_bounds_need_a_row_that_says_so(self):
        end = "# Out of bounds values : 3 FAILED"
        self.refused("d/f:3: found 3 values out of bounds, expected rows that say which (#wrong or error)", HEAD, row(4, "1"), end)
        self.assertEqual(self.rows(self.one(HEAD, row(4, "1", wrong=("1", "0")), row(8, "1"), end)), [(8, 1.0, 3)])
        self.assertEqual(self.rows(self.one(HEAD, row(4, "1"), "# Out of bounds values : 0 OK")), [(4, 1.0, 2)])
        self.refused("d/f:4: found 3 values out of bounds, expected rows that say which (#wrong or error)", HEAD, row(4, "1", wrong=("1", "0")), HEAD, end)
        self.refused("d/f:1: found 3 values out of bounds, expected rows that say which (#wrong or error)", end)
        s = self.one(HEAD.replace("#wrong", " error"), "4 1 double sum -1 1 1 1 1e-11 - - - -", "8 1 double sum -1 1 1 1 1e-13 - - - -")
        self.assertEqual((self.rows(s), s.notes), ([(8, 1.0, 3)], ["d/f:2: 4 B out of place left out: its error is 1e-11, above 1e-12 of double"]))

    def test_heads_and_units_that_are_not_known_are_refused(self):
        self.refused(
            "d/f:1: found the column cputime, expected time: what a CPU takes to start an operation is not what it takes (nccl-tests without -C)",
            "# size count type redop root time cputime",
        )
        self.refused("d/f:1: found a head without the column time, expected nccl-tests' columns size count type ... time algbw busbw", "# size count type")
        known = "%H:%M:%S, %Y-%m-%d, (%), (B), (GB/s), (elements), (us)"
        self.refused(f"d/f:2: found the unit (ms), expected one of {known}", HEAD, "# (B) (elements) (ms) (GB/s)")

    def test_ranks_are_counted_once(self):
        self.refused("d/f:1: found group 1 of ranks, expected one group: tests of several at a time are not fitted (NCCL_TESTS_SPLIT)", rank(0, group=1), HEAD)
        self.refused(
            "d/f:2: found rank 0 a second time, expected each rank once: nccl-tests without MPI=1 runs apart on every node, or these are several outputs",
            rank(0), rank(0, "b"), HEAD,
        )
        s = self.one(rank(0, group=0), rank(1), HEAD, row(4, "1"))
        self.assertEqual((s.ranks, s.hosts), (2, 1))

    def test_bandwidths_tell_the_collective(self):
        ms = str(MIB / 1000)  # algbw 1
        for bw, op, ranks, size, us, collective in (
            ("1.5", "sum", 4, MIB, ms, "all_reduce"), ("0.75", "sum", 4, MIB, ms, "reduce_scatter"), ("1.52", "max", 4, MIB, ms, "all_reduce"), ("1.54", "sum", 4, MIB, ms, None),
            ("1.0", "avg", 2, MIB, ms, "all_reduce"), ("0.5", "min", 2, MIB, ms, "reduce_scatter"), ("1.5", "none", 4, MIB, ms, None), ("1.5", "prod", 4, MIB - 4, ms, None),
            ("0", "sum", 1, MIB, ms, None), ("1.0", "sum", 4, MIB, ms, None),
        ):  # fmt: skip
            s = self.one(*(rank(i) for i in range(ranks)), HEAD, row(size, us, op=op, bw=("1", bw)))
            self.assertEqual(s.collective, collective, (bw, op, ranks, size))
        s = self.one(rank(0), rank(1), HEAD, row(MIB, str(MIB / 500), bw=("0.5", "0.5")))
        self.assertEqual(s.collective, "all_reduce")
        first, second = self.read(rank(0), rank(1), HEAD, row(4, "1"), "# Algorithm: ring", row(MIB, ms, bw=("1", "0.5")))
        self.assertEqual((first.collective, second.collective), ("reduce_scatter", "reduce_scatter"))
        s = self.one("reduce_perf", rank(0), rank(1), HEAD, row(MIB, ms, bw=("1", "1.0")))
        self.assertEqual(s.collective, "reduce")
        s = self.one(rank(0), rank(1), HEAD, row(MIB, "0", bw=("1", "1.0")))
        self.assertEqual((s.collective, s.rows), (None, []))

    def test_the_algorithm_is_that_which_was_asked_for(self):
        s = self.one("NCCL_ALGO set by environment to Tree", HEAD, row(MIB, "1"))
        self.assertEqual((s.algo, s.not_ours), ("tree", ""))
        s = self.one("NCCL_ALGO set by environment to PAT", HEAD, row(MIB, "1"))
        self.assertEqual((s.algo, s.not_ours[:27]), (None, "d/f:1: found NCCL_ALGO PAT,"))
        chosen = "node0:1:2 [0] NCCL INFO %d Bytes -> Algo %d proto 2"
        s = self.one(HEAD, chosen % (MIB, 1), chosen % (4, 0), chosen % (2 * MIB, 0), row(4, "1"), row(MIB, "1"))
        self.assertEqual((s.algo, s.not_ours), ("ring", ""))  # 4 bytes are not fitted, of 2 MiB there is no row
        s = self.one(HEAD, chosen % (MIB, 1), chosen % (4, 0), row(4, "1"), row(MIB, "1"), least=4)
        self.assertEqual((s.algo, s.not_ours[:42]), (None, "d/f:3: found NCCL's algorithms Tree, Ring,"))

    def test_the_programs_of_trib_have_heads_of_their_own(self):
        own = "# trib-sim c.conf broadcast on x, y, 4 ranks"
        head = "# size count type redop root time algbw busbw #wrong link used"
        s = self.one(own, "# Algorithm: sharp", head, "4 1 float none 0 2.5 1 1 0 7 8")
        self.assertEqual((s.collective, s.algo, s.ranks, s.hosts, self.rows(s)), ("broadcast", "sharp", 4, None, [(4, 2.5, 4)]))
        s = self.one(own, "# Algorithm: sharp", head, "4 1 float none 0 2.5 1 1 0 7", "8 2 float none 0 3.5 1 1 0 x y z w")
        self.assertEqual(self.rows(s), [(4, 2.5, 4), (8, 3.5, 5)])
        said = f"11: {head[2:]}"
        self.refused(f"d/f:3: found 9 columns, expected {said}", own, head, "4 1 float none 0 2.5 1 1 0", "8 1 float none 0 2.5 1 1 0 1 2")
        self.assertEqual(self.rows(self.one(own, head, "4 1 float none 0 2.5 1 1 0 1 2", "   1 link0 h0>l0 99.5 %")), [(4, 2.5, 3)])
        s = self.one(own, "NCCL_ALGO=Ring", head, "4 1 float none 0 2.5 1 1 0 1 2")
        self.assertEqual((s.algo, s.not_ours), (None, ""))


if __name__ == "__main__":
    unittest.main()
