# SPDX-License-Identifier: BSD-3-Clause
"""Schedules, figures and sizes of the experiments' programs, without a simulation."""
import io
import re
import unittest

from tributary.experiments import compare_protocols, make_schedule, plot_speedup


def row(algo, size, us):
    return {"asked": algo, "size_bytes": size, "time_us": us, "predicted_us": us * 2, "algbw_GBps": size / us / 1e3}


class Experiments(unittest.TestCase):
    def test_sizes_grow_by_the_factor_up_to_the_largest(self):
        self.assertEqual(list(compare_protocols.sizes("4K", "100K", 4)), [4096, 16384, 65536])
        self.assertEqual(list(compare_protocols.sizes("7", "7", 2)), [7])
        self.assertEqual(list(compare_protocols.sizes("2M", "1M", 2)), [])

    def test_a_schedule_names_the_steps_that_it_follows(self):
        s = make_schedule.Schedule("pair", "all_reduce", 2, 1, scratch=1, place="out", about="Two.\nRanks.")
        first = s.add(0, "send 1 in:0")
        s.add(0, "recv 1 out:0", None, first, first)
        out = io.StringIO()
        s.write(out)
        self.assertEqual(
            out.getvalue().splitlines(),
            ["# SPDX-License-Identifier: BSD-3-Clause", "# Two.", "# Ranks.", "schedule pair", "collective all_reduce", "ranks 2", "chunks 1",
             "scratch 1", "place out", "", "rank 0", "0 send 1 in:0", "1 recv 1 out:0 after 0", "", "rank 1"])  # fmt: skip

    def test_every_send_of_a_schedule_is_received(self):
        for maker in make_schedule.MAKERS.values():
            for n in (2, 3, 5, 8):
                steps = [[step.split(" ")[1:3] for step in of_rank] for of_rank in maker(n).steps]
                sent = sorted((me, int(peer)) for me, of_rank in enumerate(steps) for what, peer in of_rank if what == "send")
                came = sorted((int(peer), me) for me, of_rank in enumerate(steps) for what, peer in of_rank if what.startswith("recv"))
                self.assertEqual(sent, came, f"{maker.__name__} {n}")

    def test_a_figure_has_a_point_for_each_row_and_a_ratio_for_each_size(self):
        got = {"ranks": 8, "results": [row(a, s, us) for s in (4096, 65536, 1 << 20) for a, us in (("sharp", 2.0), ("ring", 5.0))]}
        svg = plot_speedup.draw("conf/x.conf", ["sharp", "ring"], got)
        self.assertEqual(len(re.findall("<circle", svg)), 6)
        self.assertEqual(len(re.findall("<polyline", svg)), 2)
        self.assertEqual(re.findall(r"[\d.]+ x(?=<)", svg), ["2.50 x"] * 3)
        self.assertEqual(re.findall(r">(\d+ [KM]iB)<", svg), ["4 KiB", "64 KiB", "1 MiB"])
        self.assertIn("All-reduce of 8 ranks on x:", svg)


if __name__ == "__main__":
    unittest.main()
