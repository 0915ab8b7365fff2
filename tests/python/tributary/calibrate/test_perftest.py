# SPDX-License-Identifier: BSD-3-Clause
"""perftest's tables and JSON: which column and unit count, and what is refused."""
import unittest

from tributary._cli import Refused
from tributary.calibrate import perftest
from tributary.calibrate.rows import MIB

WRITE, LAT = "                    RDMA_Write BW Test", "   Send Latency Test"
BW = " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]"
TIMES = " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec]"
WAYS = "RDMA_Write, RDMA_Read or Send BW Test, RDMA_Write or Send Latency Test: one direction, one port"


class Perftest(unittest.TestCase):
    def rows(self, *lines):
        return [(s.path, s.collective, s.algo, s.ranks, s.hosts, s.kind, [(r.size, r.us, r.line) for r in s.rows], s.notes) for s in perftest.read("d/f", lines)]

    def refused(self, says, *lines):
        with self.assertRaises(Refused) as e:
            perftest.read("d/f", lines)
        self.assertEqual(str(e.exception), says)

    def test_a_head_tells_the_tool(self):
        self.assertTrue(perftest.is_perftest(["x", BW]))
        self.assertFalse(perftest.is_perftest(["#bytes #repetitions", "x"]))

    def test_bandwidths_are_times_of_a_size(self):
        line = "-" * 80
        for unit, value, us in (("Gb/sec", "8", 1.0), ("Mb/sec", "8000", 1.0), ("GB/sec", "2", 0.5), ("MB/sec", "1000000", 1000 / MIB), ("MiB/sec", "500000", 2000 / MIB)):
            (found,) = self.rows(line, WRITE, line, BW.replace("Gb/sec", unit), f" 1000  5000   9   {value}   0.18", line)
            self.assertEqual(found[:6] + found[7:], ("d/f", "sendrecv", "direct", 2, None, "rate", []))
            self.assertEqual([(s, at) for s, _, at in found[6]], [(1000, 5)])
            self.assertAlmostEqual(found[6][0][1], us)

    def test_latencies_are_typical_ones_or_means(self):
        ((*_, kind, rows, _),) = self.rows(LAT, TIMES, " 2 1000 0.9 9.0 1.05 1.1 0.1 2 3", " 4 1000 0.9 9.0 1.25 1.1 0.1 2 3")
        self.assertEqual((kind, rows), ("latency", [(2, 1.05, 3), (4, 1.25, 4)]))
        ((*_, rows, _),) = self.rows(LAT, " #bytes #iterations t_avg[usec] tps average", " 2 1000 1.1 7")
        self.assertEqual(rows, [(2, 1.1, 3)])

    def test_a_title_ends_a_table(self):
        first, second = self.rows(WRITE, BW, "8 1 1 1 1", LAT, "8 1 1 1 1", TIMES, "2 1000 0.9 9.0 1.05 1.1 0.1 2 3")
        self.assertEqual((first[5], first[6], second[5], second[6]), ("rate", [(8, 0.064, 3)], "latency", [(2, 1.05, 7)]))

    def test_rows_that_are_none_are_left_out_or_refused(self):
        columns = "5: #bytes #iterations BW peak[Gb/sec] BW average[Gb/sec] MsgRate[Mpps]"
        for line, rows, notes in (
            ("0 1 1 1 1", [], []), ("8 1 1 0 1", [], []), ("8 1 1 1", [(8, 0.064, 3)], []), ("8 1 1 1 1 1", [(8, 0.064, 3)], []), ("Completion with error", [], []),
            ("8 1 1", [], ["d/f:3: the last row is cut off and left out"]), ("  ", [], []), ("-- --", [], []),
        ):  # fmt: skip
            ((*_, found, said),) = self.rows(WRITE, BW, line)
            self.assertEqual((found, said), (rows, notes), line)
        for line, says in (
            ("8 1 1", f"found 3 columns, expected {columns}"), ("8 1 1 1 1 1 1", f"found 7 columns, expected {columns}"),
            ("8 1 1 x 1", "found 'x', expected BW average[Gb/sec], a number"), ("8x 1 1 1 1", "found '8x', expected bytes, a number"),
            ("*8 1 1 1 1", "found '*8 1 1 1 1', expected a row of 5 columns, bytes first"),
        ):
            self.refused(f"d/f:3: {says}", WRITE, BW, line, "8 1 1 1 1")
        self.refused(f"d/f:3: found 7 columns, expected {columns}", WRITE, BW, "8 1 1 1 1 1 1")

    def test_tests_of_another_kind_are_refused(self):
        for lines, says in (
            (("  Send Bidirectional BW Test",), f"d/f:1: found 'Send Bidirectional BW Test', expected {WAYS}"),
            (("RDMA_Read Latency Test",), f"d/f:1: found 'RDMA_Read Latency Test', expected {WAYS}"),
            ((WRITE, " Dual-port       : ON"), f"d/f:2: found Dual-port: ON, expected {WAYS}"),
            ((WRITE, " Connection type : RawEth"), f"d/f:2: found Connection type: RawEth, expected {WAYS}, by RDMA"),
            ((BW,), f"d/f:1: found a table without perftest's title, expected it above: {WAYS}"),
            ((WRITE, BW.replace("Gb/sec", "Tb/sec")), "d/f:2: found the unit Tb/sec, expected one of MB/sec, MiB/sec, Gb/sec, Mb/sec, GB/sec"),
            ((WRITE, "#bytes #iterations t_min[usec]"), "d/f:2: found a head without BW average and t_typical, expected perftest's"),
            ((LAT, "#bytes #iterations t_avg[cycles]"), "d/f:2: found times in cycles, expected microseconds (perftest without --report-cycles)"),
            ((LAT, BW), "d/f:2: found columns of bandwidth, expected those of Send Latency Test"),
            ((WRITE, TIMES), "d/f:2: found columns of latency, expected those of RDMA_Write BW Test"),
        ):
            self.refused(says, *lines)
        for title in ("RDMA_Write Post List BW Test", "RDMA_Read BW Test", "RDMA_Write_With_Imm BW Test", "Send  BW Test"):
            self.assertEqual(len(self.rows(title, " Dual-port : OFF", BW)), 1)

    def json(self, info, results):
        return perftest.read_json("d/f", {"test_info": info, "results": results})

    def test_json_has_one_row(self):
        for test, results, kind, us in (
            ("RDMA_Write_BW_Test", {"MsgSize": 1000, "BW_average": 8.0, "MsgRate": 1.0}, "rate", 1.0),
            ("Send_BW_Test", {"MsgSize": 1000, "BW_average": 2e6 / MIB, "MsgRate": 0.002}, "rate", 500.0),
            ("Send_BW_Test", {"MsgSize": 1000, "BW_average": 8.1, "MsgRate": 1.0}, "rate", 1000 / (8.1 * 125)),
            ("Send Latency Test", {"MsgSize": 8, "t_typical": 1.5, "t_avg": 2.5}, "latency", 1.5),
            ("Send Latency Test", {"MsgSize": 8, "t_avg": 2.5}, "latency", 2.5),
        ):
            (s,) = self.json({"test": test, "Dual_port": "off"}, results)
            self.assertEqual((s.path, s.collective, s.algo, s.ranks, s.hosts, s.kind), ("d/f", "sendrecv", "direct", 2, None, kind))
            self.assertEqual([(r.size, r.line) for r in s.rows], [(results["MsgSize"], 1)])
            self.assertAlmostEqual(s.rows[0].us, us)

    def test_json_of_another_kind_is_refused(self):
        good = {"MsgSize": 1000, "BW_average": 8.0, "MsgRate": 1.0}
        for info, results, says in (
            ({"test": "Send_Bidirectional_BW_Test"}, good, f"test_info: found 'Send Bidirectional BW Test', expected {WAYS}"),
            ({}, good, f"test_info: found '', expected {WAYS}"),
            ({"test": "Send_BW_Test", "Dual_port": "ON"}, good, f"test_info: found 'Send BW Test' with Dual_port, expected {WAYS}"),
            ({"test": "Send_BW_Test"}, {}, "results: found none of one direction, expected an object of perftest's JSON"),
            ({"test": "Send_BW_Test"}, [good], "results: found none of one direction, expected an object of perftest's JSON"),
            ({"test": "Send_BW_Test"}, {**good, "BW_average": True}, "results.BW_average: found True, expected a positive number"),
            ({"test": "Send_BW_Test"}, {**good, "MsgSize": "8"}, "results.MsgSize: found '8', expected a positive number"),
            ({"test": "Send_BW_Test"}, {**good, "MsgRate": 0}, "results.MsgRate: found 0, expected a positive number"),
            ({"test": "Send_BW_Test"}, {**good, "MsgRate": 1e15}, "results.MsgRate: found 1000000000000000.0, expected a positive number"),
            ({"test": "Send_BW_Test"}, {**good, "MsgRate": None}, "results.MsgRate: found None, expected a positive number"),
            ({"test": "Send_BW_Test"}, {**good, "BW_average": 8.17},
             "results: found BW_average 8.17 and MsgRate 1, expected them to agree in one of MB/sec, MiB/sec, Gb/sec, Mb/sec, GB/sec"),
        ):  # fmt: skip
            with self.assertRaises(Refused) as e:
                self.json(info, results)
            self.assertEqual(str(e.exception), f"d/f: {says}")


if __name__ == "__main__":
    unittest.main()
