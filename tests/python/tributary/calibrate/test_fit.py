# SPDX-License-Identifier: BSD-3-Clause
"""Launch, step and efficiency come back from times made of them; outliers, bounds and what the rows do not tell."""
import unittest

from tributary._cli import Refused
from tributary.calibrate import fit
from tributary._conf_text import Conf
from tributary.calibrate.paths import path_of, seconds
from tributary.calibrate.rows import MIB, Row, Series

NODE = 'gpu_nodes = { gpus = 8; nvlink = { rate = "100GB/s"; }; };\n'
RATE = 1e5  # bytes per us of the link


class Sim:
    """Times of a ring without payload: size over rate, and a step for each rank but one; what trib sim would say of the conf."""

    def __init__(self):
        self.asked = []

    def times(self, conf, s, sizes):
        self.asked.append((conf.get("costs.nvlink.launch"), conf.get("costs.network.launch")))
        efficiency = float(conf.get("gpu_nodes.nvlink.efficiency") or 1)
        step = seconds(conf.get("costs.nvlink.step")) * 1e6
        return {n: n / (RATE * efficiency) + step * (s.ranks - 1) for n in (MIB, 2 * MIB, 4 * MIB, 64 * MIB)}


def series(efficiency=0.8, floor=10.0, ranks=4, sizes=(1, 2, 4, 8, 16, 32, 64), kind="time", step=0.0):
    s = Series("d/f.txt", "all_reduce", "ring", ranks, None, kind)
    s.rows = [Row(n * MIB, n * MIB / (RATE * efficiency) + floor + step * (ranks - 1), i) for i, n in enumerate(sizes, 1)]
    s.sizes = (MIB, 64 * MIB, 2)
    return s


def made(*many, conf=NODE):
    conf = Conf(conf)
    return fit.Fit(conf, path_of(conf, many[0]), many, Sim())


class Numbers(unittest.TestCase):
    def test_a_median_is_the_middle(self):
        for values, middle in (((3.0,), 3.0), ((4.0, 1.0), 2.5), ((9.0, 1.0, 2.0), 2.0), ((8.0, 1.0, 2.0, 4.0), 3.0)):
            self.assertEqual(fit.median(values), middle)

    def test_systems_are_solved_with_pivots(self):
        for a, b, x in (
            ([[2.0]], [6.0], [3.0]), ([[0.0, 1.0], [2.0, 0.0]], [3.0, 8.0], [4.0, 3.0]), ([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0], [2.0, 0.0, 1.0]], [5.0, 5.0, 5.0], [1.0, 2.0, 3.0]),
            ([[1.0, 2.0], [2.0, 4.0]], [1.0, 2.0], None), ([[1e-13]], [1.0], None),
        ):  # fmt: skip
            found = fit.solve(a, b)
            self.assertEqual(found is None, x is None)
            for got, wanted in zip(found or (), x or ()):
                self.assertAlmostEqual(got, wanted)

    def test_least_squares_are_of_scaled_columns(self):
        for rows, x in (
            ([[1.0, 2.0], [1.0, 4.0]], [3.0]), ([[1e6, 1.0, 3e6 + 2], [2e6, 1.0, 6e6 + 2], [4e6, 1.0, 12e6 + 2]], [3.0, 2.0]), ([[1.0, 1.0, 2.0], [2.0, 2.0, 4.0]], None),
            ([[1.0, 0.0, 1.0], [0.0, 1.0, 2.0], [1.0, 1.0, 6.0]], [2.0, 3.0]), ([[0.0, 1.0]], None),
        ):  # fmt: skip
            found = fit.least_squares(rows)
            self.assertEqual(found is None, x is None)
            for got, wanted in zip(found or (), x or ()):
                self.assertAlmostEqual(got, wanted, 6)

    def test_a_line_goes_through_most_rows(self):
        rows = [Row(n, 5.0 + 2.0 * n, 1) for n in (1, 2, 4, 8)] + [Row(16, 400.0, 1)]
        floor, slope = fit.line_of(rows, "time")
        self.assertAlmostEqual(floor, 5.0)
        self.assertAlmostEqual(slope, 2.0)
        self.assertEqual(fit.line_of([Row(2, 4.0, 1), Row(4, 12.0, 1), Row(8, 40.0, 1)], "rate"), (0.0, 3.0))
        for us in ((4.0, 4.0), (5.0, 4.0), (1.0, 30.0)):  # neither level, nor falling, nor from far below 0
            with self.assertRaises(Refused) as e:
                fit.line_of([Row(2, us[0], 1), Row(4, us[1], 1), Row(4, us[1], 1)], "time")
            self.assertEqual(str(e.exception), "found times that do not grow with the size, expected floor + size / rate")
        rows = [Row(n, 5.0 + 2.0 * n, 1) for n in range(1, 200)]
        floor, slope = fit.line_of(rows, "time")
        self.assertAlmostEqual(floor, 5.0)
        self.assertAlmostEqual(slope, 2.0)
        floor, slope = fit.line_of([Row(100, 99.0, 1), Row(200, 199.0, 1)], "time")  # a little below 0
        self.assertAlmostEqual(floor, -1.0)
        self.assertAlmostEqual(slope, 1.0)

    def test_gross_outliers_are_told_by_the_rows_alone(self):
        s = series()
        s.rows[3].us *= 1.5
        s.rows[5].us *= 0.5
        s.rows[6].us *= 1.2
        fit.find_outliers(s, s.rows)
        self.assertEqual([r.use for r in s.rows], ["used", "used", "used", "outlier", "used", "outlier", "used"])


class Fits(unittest.TestCase):
    def test_what_is_fitted_depends_on_the_series(self):
        for many, unknown in (
            ([series()], ["slowness", "launch"]), ([series(kind="latency", ranks=9)], ["slowness", "launch"]), ([series(kind="rate", ranks=9)], ["slowness"]),
            ([series(), series(ranks=8)], ["slowness", "launch", "step"]), ([series(), series()], ["slowness", "launch"]),
        ):  # fmt: skip
            conf = NODE + "link_defaults = { };"
            f = made(*many, conf=conf)
            self.assertEqual(f.unknown, unknown)
        for now, value in (("0.5", 2.0), ("2.0", 1.0), ("0.001", 100.0), ("x", 1.0), (None, 1.0)):
            conf = NODE.replace("}; };", f"efficiency = {now}; }}; }};") if now else NODE
            self.assertAlmostEqual(made(series(), conf=conf).value["slowness"], value)
        costs = 'costs = { nvlink = { step = "%s"; }; };\n'
        for step, many, value in (("3us", [series()], 3.0), ("3us", [series(), series(ranks=8)], 10.0), ("30us", [series(), series(ranks=8)], 30.0), ("x", [series()], 0.0)):
            self.assertAlmostEqual(made(*many, conf=NODE + costs % step).value["step"], value)

    def test_efficiency_and_launch_come_back(self):
        s = series()
        s.rows[2].us *= 1.4
        f = made(s).run()
        self.assertAlmostEqual(1 / f.value["slowness"], 0.8, 3)
        self.assertAlmostEqual(f.value["launch"], 10.0, 2)
        self.assertEqual((f.at_bound, [r.use for r in s.rows].count("outlier"), s.rows[2].use), ([], 1, "outlier"))
        self.assertEqual(f.comment(), "from f.txt, 6 of 7 rows (1 MiB to 64 MiB), all_reduce ring, 4 ranks")
        conf = f.with_keys(f.comment())
        self.assertEqual((conf.get("gpu_nodes.nvlink.efficiency"), conf.get("costs.nvlink.launch"), conf.get("costs.nvlink.step")), ("0.8000", "10000ns", None))
        self.assertEqual(conf.text.count("# calibrated: "), 2)
        self.assertEqual({a for a, _ in f.sim.asked}, {"0ns"})  # without a launch
        self.assertEqual(f.with_keys(None, slowness=1.6).get("gpu_nodes.nvlink.efficiency"), "0.62500000")

    def test_launches_of_other_paths_are_left_out(self):
        conf = NODE + 'costs = { network = { launch = "7us"; }; };\n'
        f = made(series(), conf=conf).run()
        self.assertEqual(set(f.sim.asked), {("0ns", "0ns")})
        self.assertEqual(f.with_keys(None).get("costs.network.launch"), "7us")

    def test_two_numbers_of_ranks_tell_launch_and_step_apart(self):
        many = [series(0.9, 7.0, n, step=3.0) for n in (2, 4, 8)]
        f = made(*many).run()
        self.assertAlmostEqual(1 / f.value["slowness"], 0.9, 3)
        self.assertAlmostEqual(f.value["launch"], 7.0, 2)
        self.assertAlmostEqual(f.value["step"], 3.0, 2)
        self.assertEqual((f.at_bound, f.with_keys("c").get("costs.nvlink.step")), ([], "3000ns"))
        self.assertEqual(f.comment().count("; "), 2)

    def test_a_rate_has_no_floor(self):
        s = series(0.5, 0.0, kind="rate", ranks=4)
        f = fit.Fit(Conf(NODE), path_of(Conf(NODE), series()), [s], Sim()).run()
        self.assertAlmostEqual(1 / f.value["slowness"], 0.5, 3)
        self.assertEqual((f.unknown, f.value["launch"]), (["slowness"], 0.0))
        self.assertIsNone(f.with_keys("c").get("costs.nvlink.launch"))

    def test_what_is_at_its_bound_stays_there(self):
        f = made(series(floor=-0.2)).run()
        self.assertEqual((f.at_bound, f.value["launch"]), (["launch"], 0.0))
        self.assertAlmostEqual(1 / f.value["slowness"], 0.8, 2)
        f = made(series(1.02)).run()
        self.assertEqual((f.at_bound, f.value["slowness"]), (["slowness"], 1.0))
        with self.assertRaises(Refused) as e:
            made(series(1.25)).run()
        self.assertEqual(
            str(e.exception), "the results are 25 % faster than CONF at gpu_nodes.nvlink.efficiency = 1: expected another rate of the link, or another algorithm (--algo)"
        )
        with self.assertRaises(Refused) as e:
            made(series(9.0)).run()
        self.assertEqual(
            str(e.exception), "the results are far faster than CONF at gpu_nodes.nvlink.efficiency = 1: expected another rate of the link, or another algorithm (--algo)"
        )

    def test_what_rows_do_not_tell_is_refused(self):
        class Fixed(Sim):
            def times(self, conf, s, sizes):
                return {n: 100.0 + n / RATE for n in (MIB, 64 * MIB)}

        conf = Conf(NODE)
        with self.assertRaises(Refused) as e:
            fit.Fit(conf, path_of(conf, series()), [series()], Fixed()).run()
        self.assertEqual(
            str(e.exception), "gpu_nodes.nvlink.efficiency hardly changes what trib sim predicts of all_reduce by ring, 4 ranks: something else limits it"
        )
        with self.assertRaises(Refused) as e:
            made(series(sizes=(4, 4, 4))).run()
        self.assertEqual(str(e.exception), "the rows do not tell efficiency and launch of nvlink apart, expected sizes from about 1 MiB to several 100 MiB")

    def test_slopes_are_relative_to_a_row_s_time(self):
        s = series(1.0, 0.0, sizes=(1, 64))
        s.rows.append(Row(1, 1.0, 9))
        s.rows[2].use = "below"
        f = made(s)
        for row, slope in zip(s.rows, f.slopes()):
            self.assertAlmostEqual(slope[0], 1.0, 6)
            self.assertAlmostEqual(slope[1], 1 / row.us)
        self.assertEqual(len(f.slopes()), 2)
        for (row, off), wanted in zip(f.missing({"slowness": 1.25, "launch": 3.0, "step": 0.0}), s.rows):
            self.assertIs(row, wanted)
            self.assertAlmostEqual(off, (wanted.us - 1.25 * wanted.us - 3.0) / wanted.us, 6)
        two = made(series(1.0, 0.0, 2), series(1.0, 0.0, 4))
        for slope, row, ranks in zip(two.slopes()[::7], (two.series[0].rows[0], two.series[1].rows[0]), (2, 4)):
            self.assertAlmostEqual(slope[2], (ranks - 1) / row.us, 6)


if __name__ == "__main__":
    unittest.main()
