# SPDX-License-Identifier: BSD-3-Clause
"""Tables of the Intel MPI Benchmarks: which tests and rows count, and what is refused by its line."""
import unittest

from tributary._cli import Refused
from tributary.calibrate import imb

PART = "#    Intel(R) MPI Benchmarks 2021.3, MPI-1 part"
TIMES = "       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]"
PINGPONG = "       #bytes #repetitions      t[usec]   Mbytes/sec"
KNOWN = "Allreduce, Allgather, Reduce_scatter, Alltoall, Bcast, Reduce, PingPong"


def test(name, n=4):
    return (f"# Benchmarking {name} ", f"# #processes = {n} ")


class Imb(unittest.TestCase):
    def read(self, *lines):
        return imb.read("d/f", lines)

    def refused(self, says, *lines):
        with self.assertRaises(Refused) as e:
            self.read(*lines)
        self.assertEqual(str(e.exception), says)

    def test_a_head_tells_the_tool(self):
        for line, found in ((PART, True), (TIMES, True), ("# Intel(R) MPI Benchmark Suite", True), ("#bytes #iterations", False), ("", False)):
            self.assertEqual(imb.is_imb(["x", line]), found)

    def test_each_benchmark_has_its_collective(self):
        for name, collective, per_rank in (
            ("Allreduce", "all_reduce", False), ("Allgather", "all_gather", True), ("Reduce_scatter", "reduce_scatter", False), ("Alltoall", "alltoall", True),
            ("Bcast", "broadcast", False), ("Reduce", "reduce", False),
        ):  # fmt: skip
            (s,) = self.read(PART, *test(name), TIMES, "  0 1000 0.1 0.2 0.15", "  4 1000 1.5 3.5 2.5", "  8 1000 1.5 3.5 0.00", "")
            self.assertEqual((s.path, s.collective, s.algo, s.ranks, s.hosts, s.kind, s.per_rank, s.notes), ("d/f", collective, None, 4, None, "time", per_rank, []))
            self.assertEqual([(r.size, r.us, r.line) for r in s.rows], [(4, 2.5, 6)])
        (s,) = self.read(*test("PingPong", 2), PINGPONG, "  4 1000 2.5 1.6")
        self.assertEqual((s.collective, s.algo, s.ranks, s.kind, s.per_rank, s.rows[0].us), ("sendrecv", "direct", 2, "latency", False, 2.5))

    def test_tests_follow_each_other(self):
        first, second, third = self.read(
            *test("Reduce"), TIMES, "4 1 1 1 1", "# #processes = 2", TIMES, "4 1 1 1 3", *test("Barrier"), "#repetitions t_avg[usec]", " 1000 5 5 5",
            *test("Bcast", 8), TIMES, "4 1 1 1 2", *test("Exchange"), TIMES, "4 1 1 1 9",
        )  # fmt: skip
        self.assertEqual([(s.collective, s.ranks, [r.us for r in s.rows]) for s in (first, second, third)], [("reduce", 4, [1.0]), ("reduce", 2, [3.0]), ("broadcast", 8, [2.0])])
        self.assertEqual(first.notes, [f"d/f:8: Barrier left out, expected one of {KNOWN}", f"d/f:16: Exchange left out, expected one of {KNOWN}"])
        self.assertEqual((second.notes, third.notes), ([], []))
        self.refused(f"d/f:1: found the benchmark Barrier, expected one of {KNOWN}", *test("Barrier"))
        self.assertEqual(self.read("x", "# y"), [])

    def test_rows_that_are_none_are_left_out_or_refused(self):
        head = (*test("Reduce"), TIMES)
        defects = (*test("Reduce"), TIMES + " defects")
        for lines, rows, notes in (
            ((*head, " 4 out-of-mem.; needed X= 1"), [], ["d/f:4: 4 B left out: out-of-mem"]),
            ((*head, " 1024 time-out.; Time limit", "8 1 1 1 1"), [8], ["d/f:4: 1 KiB left out: time-out"]),
            ((*head, " 8 int-overflow.; x"), [], ["d/f:4: 8 B left out: int-overflow"]),
            ((*head, "4 1 1 1 1", "8 1 1 1", ""), [4], ["d/f:5: the last row is cut off and left out"]),
            ((*head, "node0:1:2 [0] NCCL INFO x", "4 1 1 1 1"), [4], []),
            ((*defects, "4 1 1 1 1 0.00", "8 1 1 1 1 2.00"), [4], ["d/f:5: 8 B left out: it has defects"]),
        ):
            (s,) = self.read(*lines)
            self.assertEqual(([r.size for r in s.rows], s.notes), (rows, notes))
        columns = "5: #bytes #repetitions t_min[usec] t_max[usec] t_avg[usec]"
        for lines, says in (
            (("4 1 1 1", "8 1 1 1 1"), f"d/f:4: found 4 columns, expected {columns}"), (("4 1 1 1 1 1",), f"d/f:4: found 6 columns, expected {columns}"),
            (("x 1 1 1 1",), "d/f:4: found 'x 1 1 1 1', expected a row of 5 columns, bytes first"), (("4 1 1 1 x",), "d/f:4: found 'x', expected t_avg[usec], a number"),
        ):
            self.refused(says, *head, *lines)
        self.refused("d/f:4: found 'x', expected defects, a number", *defects, "4 1 1 1 1 x")

    def test_tables_of_another_kind_are_refused(self):
        for lines, says in (
            ((PART.replace("MPI-1", "MPI-2"),), "d/f:1: found the part MPI-2 of the Intel MPI Benchmarks, expected MPI-1"),
            ((*test("Reduce"), "# ( 2 groups of 2 processes each running simultaneous )"), "d/f:3: found 2 groups of 2 processes at a time, expected one group (IMB without -multi)"),
            ((TIMES,), "d/f:1: found a table without a benchmark's name, expected # Benchmarking NAME above it"),
            ((*test("Reduce"), "#bytes #repetitions Group t_avg[usec]"), "d/f:3: found a table of several groups, expected one group (IMB without -multi)"),
            ((*test("Reduce"), "  #bytes #repetitions t_min[usec]"), "d/f:3: found the columns '#bytes #repetitions t_min[usec]', expected t_avg[usec], or t[usec]"),
            ((test("Reduce")[0], TIMES), "d/f:2: found a table without a number of processes, expected # #processes = N above it"),
            ((*test("Reduce"), test("Bcast")[0], TIMES), "d/f:4: found a table without a number of processes, expected # #processes = N above it"),
            ((*test("PingPong", 4), PINGPONG), "d/f:3: found PingPong of 4 processes, expected 2"),
        ):
            self.refused(says, *lines)
        # of a test that is left out neither groups nor columns matter
        (s,) = self.read(*test("Reduce"), TIMES, "4 1 1 1 1", *test("Exchange"), "# ( 2 groups of 2 processes each )", "#bytes Group")
        self.assertEqual(len(s.rows), 1)
        (s,) = self.read(*test("Reduce", 8), "# 4 additional processes", TIMES, "4 1 1 1 1", "#-----")
        self.assertEqual(s.ranks, 8)


if __name__ == "__main__":
    unittest.main()
