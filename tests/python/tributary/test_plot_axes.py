# SPDX-License-Identifier: BSD-3-Clause
"""What figures of frames draw: points, bands, ticks, titles and legends, by axes that only note it and by frames of the tests' own."""
import unittest
from unittest import mock

from tests.python.tributary import fake_pandas as pandas
from tributary import plot, results
from tributary.plot import COLOURS, LINES, Look


def frame(*rows, **same):
    return pandas.DataFrame([{"collective": "all_reduce", "conf": "c", "ranks": 4, "algo": "ring", "faults": "", **same, **row} for row in rows])


def bw(size, value, **more):
    return {"size_bytes": size, "busbw_GBps": value, "time_us": 1000.0 / value, **more}


class Axes(mock.MagicMock):
    def labels(self, *labels):
        self.get_legend_handles_labels.return_value = ([f"line {x}" for x in labels], list(labels))
        self.figure.axes = [self]
        self.figure.get_figheight.return_value = 4.0
        self.figure.dpi, self.bbox.width = 100, 540.0
        self.get_ylim.return_value = (1.0, 100.0)
        return self

    def did(self, name):
        return [c for c in self.mock_calls if c[0] == name]


class Noted(unittest.TestCase):
    def setUp(self):
        self.pyplot, self.ticker = mock.MagicMock(), mock.MagicMock()
        for name in ("FixedLocator", "LogLocator"):
            setattr(self.ticker, name, lambda ticks=None, name=name, **more: (name, ticks, *more.values()))
        self.ticker.NullLocator, self.ticker.NullFormatter, self.ticker.FuncFormatter = (lambda: "no ticks"), (lambda: "no text"), lambda call: call
        modules = {"matplotlib.pyplot": self.pyplot, "matplotlib.ticker": self.ticker, "pandas": pandas.module}
        for where in (plot, results):
            patch = mock.patch.object(where, "need", lambda module, package: (self.assertIn(package, ("python3-matplotlib", "python3-pandas")), modules[module])[1])
            patch.start()
            self.addCleanup(patch.stop)
        self.ax = Axes().labels("a")

    def refused(self, says, call, *args, **given):
        with self.assertRaises(ValueError) as e:
            call(*args, **given)
        self.assertEqual(str(e.exception), says)

    def lines(self):
        return [(list(c[1][0]), list(c[1][1]), c[2].get("label"), c[2]["color"], c[2].get("linestyle")) for c in self.ax.did("plot")]

    def bands(self):
        return [(list(c[1][0]), list(c[1][1]), list(c[1][2]), c[2]["color"]) for c in self.ax.did("fill_between")]


class Figures(Noted):
    def test_a_frame_has_the_algorithm_that_was_asked_for(self):
        found = plot.prepared(frame({"asked": "auto"}, {"asked": None, "algo": "tree"}))
        self.assertEqual(found["algo"].tolist(), ["auto", "tree"])
        self.refused("found no rows, expected some to draw", plot.prepared, frame())
        self.assertEqual(plot._distinct(pandas.Series([3, 1, 3, 2.5])), [1, 2.5, 3])
        self.assertEqual(plot._distinct(pandas.Series(["b", "a", "b"])), ["b", "a"])
        self.assertEqual(plot._distinct(pandas.Series([True, False])), [True, False])

    def test_a_look_is_by_what_differs(self):
        rows = frame({"ranks": 8}, {"ranks": 4, "algo": "tree"}, type="f")
        for by, without, found in (
            (None, (), (["algo", "ranks"], {"algo": ["ring", "tree"], "ranks": [4, 8]})), (None, ("ranks",), (["algo"], {"algo": ["ring", "tree"]})), (["type"], (), (["type"], {"type": ["f"]})),
            (None, ("algo", "ranks"), (["algo"], {"algo": ["ring", "tree"]})),
        ):  # fmt: skip
            self.assertEqual(tuple(plot.look_of(rows, by, without)), found)
        self.refused("found by 'x', expected columns of collective, conf, ranks, algo, faults, type", plot.look_of, rows, ["x"])
        self.assertEqual(plot.look_of(frame({"type": None}, {"type": "f"})).by, ["type"])

    def test_the_median_has_a_band(self):
        rows = frame(bw(1024, 2.0, seed=1), bw(1024, 6.0, seed=2), bw(1024, 5.0, seed=3), bw(4096, 8.0, seed=1), bw(1024, 1.0, algo="tree", seed=1), {"size_bytes": 2048, "busbw_GBps": None, "algo": "tree", "seed": 1})  # fmt: skip
        self.assertIs(plot.busbw(rows, ax=self.ax), self.ax)
        self.assertEqual(self.lines(), [([1024, 4096], [5.0, 8.0], "ring", COLOURS[0], LINES[0]), ([1024], [1.0], "tree", COLOURS[1], LINES[0])])
        self.assertEqual(self.ax.did("plot")[0][2], {"label": "ring", "markersize": 4.5, "linewidth": 1.6, "color": COLOURS[0], "linestyle": "-", "marker": "o"})
        self.assertEqual(self.bands(), [([1024, 4096], [2.0, 8.0], [6.0, 8.0], COLOURS[0]), ([1024], [1.0], [1.0], COLOURS[1])])
        self.assertEqual({k: v for k, v in self.ax.did("fill_between")[0][2].items() if k != "color"}, {"alpha": 0.2, "linewidth": 0})
        self.ax.set_title.assert_called_once_with("all reduce, c, 4 ranks, 3 seeds", fontsize="medium", wrap=True)
        self.ax.set_ylabel.assert_called_once_with("bus bandwidth (GB/s)")
        self.ax.set_ylim.assert_called_once_with(bottom=0)
        self.ax.grid.assert_called_once_with(True, alpha=0.3)
        self.ax.spines.__getitem__.assert_called_once_with(["top", "right"])
        self.ax.spines.__getitem__().set_visible.assert_called_once_with(False)
        self.ax.reset_mock()
        plot.busbw(rows, ax=self.ax, band=(25, 50))
        self.assertEqual(self.bands()[0][1:3], ([3.5, 8.0], [5.0, 8.0]))
        self.ax.reset_mock()
        plot.busbw(rows, ax=self.ax, band=None, by=["seed"])
        self.assertEqual((self.bands(), [x[2] for x in self.lines()]), ([], ["1", "2", "3"]))
        self.refused("found y='x', expected one of collective, conf, ranks, algo, faults, size_bytes, busbw_GBps, time_us, seed", plot.by_size, rows, "x", ax=self.ax)

    def test_times_are_logarithmic_beside_the_model(self):
        rows = frame(bw(1024, 2.0, predicted_us=400.0), bw(1024, 4.0, predicted_us=500.0), bw(4096, 2.0, predicted_us=600.0))
        plot.time(rows, model=True, ax=self.ax, legend=False)
        self.assertEqual(self.lines(), [([1024, 4096], [450.0, 600.0], None, "#777777", None), ([1024, 4096], [375.0, 500.0], "ring", COLOURS[0], "-")])
        self.assertEqual(self.ax.did("plot")[0][2], {"color": "#777777", "linewidth": 0.8, "zorder": 1})
        self.ax.set_yscale.assert_called_once_with("log")
        self.ax.yaxis.set_major_locator.assert_called_once_with(("LogLocator", None, (1.0, 2.0, 5.0)))
        self.assertEqual(self.ax.yaxis.set_major_formatter.call_args[0][0](0.5, None), "0.5")
        self.ax.yaxis.set_minor_formatter.assert_called_once_with("no text")
        self.ax.set_ylim.assert_not_called()
        self.ax.legend.assert_not_called()
        self.ax.reset_mock()
        for high, subs in ((299.0, (1.0, 2.0, 5.0)), (300.0, (1.0,))):
            self.ax.get_ylim.return_value = (1.0, high)
            plot.time(rows, ax=self.ax)
            self.assertEqual(self.ax.yaxis.set_major_locator.call_args[0][0], ("LogLocator", None, subs))
        self.assertEqual(len(self.lines()), 2)  # without the model
        plot.time(rows, ax=self.ax, log=False)
        self.ax.set_ylim.assert_called_once_with(bottom=0)
        plot.busbw(rows, ax=self.ax, model=True)
        self.assertEqual(len(self.lines()), 4)

    def test_sizes_have_ticks_as_there_is_room(self):
        for values, width, ticks in (
            ([1024, 4096], 540.0, [1024, 2048, 4096]), ([1000, 4096], 540.0, [1024, 2048, 4096]), ([1 << n for n in range(10, 23)], 540.0, [1 << n for n in range(10, 23, 2)]),
            ([1 << n for n in range(10, 24)], 540.0, [1 << n for n in range(10, 24, 3)]), ([1024, 1 << 20], 10.0, [1024, 1 << 15, 1 << 20]), ([1000], 540.0, [1000]),
            ([1 << n for n in range(10, 17)], 629.0, [1 << n for n in range(10, 17)]), ([1 << n for n in range(10, 18)], 629.0, [1 << n for n in range(10, 18, 2)]),
        ):  # fmt: skip
            self.ax.bbox.width = width
            plot._size_axis(self.ax, values)
            self.assertEqual(self.ax.xaxis.set_major_locator.call_args[0][0], ("FixedLocator", ticks))
        self.assertEqual(self.ax.xaxis.set_major_formatter.call_args[0][0](2048, None), "2 KiB")
        self.ax.xaxis.set_minor_locator.assert_called_with("no ticks")
        self.ax.set_xscale.assert_called_with("log", base=2)
        self.ax.set_xlabel.assert_called_with("size")

    def test_a_legend_is_beside_the_data_or_below(self):
        beside = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.0, "frameon": False, "handlelength": 3.0}
        below = {**beside, "bbox_to_anchor": (0.0, -0.2)}
        for labels, axes, how in ((("x" * 36,), 1, beside), (("x" * 37, "y"), 1, below), (("x" * 37,), 2, beside), ((), 1, beside)):
            ax = Axes().labels(*labels)
            ax.figure.axes = [ax] * axes
            plot._legend(ax, True)
            ax.legend.assert_called_once_with(**how)
            self.assertEqual([c[0] for c in ax.figure.set_figheight.call_args_list], [(4.0 + 0.24 * len(labels),)] if how is below else [])
        ax = Axes().labels("x" * 40)
        plot._legend(ax, False)
        ax.legend.assert_not_called()

    def test_a_figure_is_made_where_there_is_none(self):
        self.pyplot.subplots.return_value = ("figure", self.ax)
        self.assertIs(plot.busbw(frame(bw(1024, 1.0))), self.ax)
        self.pyplot.subplots.assert_called_once_with(figsize=(7.5, 4.2), layout="constrained")

    def test_titles_have_what_is_the_same(self):
        look = Look(["algo"], {})
        for rows, without, title in (
            (frame({}), (), "all reduce, c, 4 ranks"), (frame({}, {"ranks": 8}), (), "all reduce, c"), (frame({"seed": 1}, {"seed": 1}, faults="one_slow"), (), "all reduce, c, 4 ranks, one slow"),
            (frame({"seed": 1}, {"seed": 2}), ("ranks",), "all reduce, c, 2 seeds"), (frame({"type": None}, {"type": "f"}), (), "all reduce, c, 4 ranks"),
        ):  # fmt: skip
            self.assertEqual(plot._title(rows, look, without), title)

    def test_speed_ups_are_over_what_has_all_else_in_common(self):
        rows = frame(bw(1024, 2.0), bw(1024, 4.0), bw(1024, 5.0, algo="tree"), bw(2048, 8.0, algo="tree"), bw(1024, 8.0, algo="tree", ranks=8), bw(1024, 8.0, ranks=8), bw(1024, 4.0, algo="x", seed=3))
        found = plot.speedups(rows, "ring")
        self.assertEqual([(r["algo"], r["ranks"], r["speedup"]) for r in found.to_dict("records")], [("tree", 4, 375 / 200), ("tree", 8, 1.0)])
        self.refused("found the baseline 'y', expected one of ring, tree, x", plot.speedups, rows, "y")
        plot.speedup(rows, ax=self.ax, band=None)
        self.ax.axhline.assert_called_once_with(1.0, color="#777777", linewidth=0.8, zorder=1)
        self.assertEqual([c[0] for c in self.ax.set_ylabel.call_args_list], [("speed-up (times)",), ("speed-up over ring (times)",)])
        self.refused(
            "found no rows of other algorithms that have conf, size, seed and all else in common with 'x', expected some to compare", plot.speedup, rows, "x", ax=self.ax
        )

    def test_scaling_is_by_ranks_of_one_size(self):
        rows = frame(bw(1024, 2.0), bw(2048, 4.0), bw(2048, 6.0, ranks=16), bw(2048, 8.0, ranks=8), bw(1024, 1.0, ranks=2))
        plot.scaling(rows, ax=self.ax)
        self.assertEqual(self.lines(), [([4, 8, 16], [4.0, 8.0, 6.0], "ring", COLOURS[0], "-")])
        self.ax.xaxis.set_major_locator.assert_called_once_with(("FixedLocator", [4, 8, 16]))
        self.assertEqual(self.ax.xaxis.set_major_formatter.call_args[0][0](8.0, None), "8")
        self.ax.xaxis.set_minor_locator.assert_called_once_with("no ticks")
        self.ax.set_xscale.assert_called_once_with("log", base=2)
        self.ax.set_xlabel.assert_called_once_with("ranks")
        self.ax.set_title.assert_called_once_with("all reduce, c, 2 KiB", fontsize="medium", wrap=True)
        self.ax.set_ylim.assert_called_once_with(bottom=0)
        self.ax.legend.assert_called_once()
        self.ax.reset_mock()
        plot.scaling(rows, size="1K", ax=self.ax, log=True, legend=False)
        self.assertEqual(self.lines()[0][:2], ([2, 4], [1.0, 2.0]))
        self.refused("found the size 3, expected one of 1 KiB, 2 KiB", plot.scaling, rows, size=3, ax=self.ax)


def link(a, b, used, **more):
    return {"from": a, "to": b, "utilisation": used, "ecn_marks": 0, "paused_us": 0.0, "drops": {"x": 0}, "faults": {}, **more}


class Links(Noted):
    def bars(self):
        return [(list(c[1][0]), list(c[1][1]), c[1][2], c[2]["xerr"], c[2]["label"], c[2]["color"]) for c in self.ax.did("barh")]

    def test_the_busiest_directions_have_bars(self):
        rows = frame({"size_bytes": 8, "links": [link("a", "b", 0.5), link("b", "a", 0.75), link("c", "a", 0.25)]}, {"size_bytes": 4, "links": [link("z", "z", 1.0)]})
        self.assertIs(plot.links(rows, ax=self.ax), self.ax)
        self.assertEqual(self.bars(), [([0.0, 1.0, 2.0], [75.0, 50.0, 25.0], 0.8, None, "ring", COLOURS[0])])
        self.assertEqual(self.ax.did("barh")[0][2]["error_kw"], {"linewidth": 0.8})
        self.ax.set_yticks.assert_called_once_with(range(3), ["b → a", "a → b", "c → a"], fontsize="small")
        self.ax.set_xlim.assert_called_once_with(0, 100.0)
        self.ax.set_xlabel.assert_called_once_with("utilisation (%)")
        self.ax.set_title.assert_called_once_with("all reduce, c, 4 ranks, 8 B", fontsize="medium")
        self.ax.grid.assert_called_once_with(True, axis="x", alpha=0.3)
        self.ax.invert_yaxis.assert_called_once_with()
        self.ax.spines.__getitem__().set_visible.assert_called_once_with(False)
        self.ax.legend.assert_called_once()

    def test_of_several_series_each_has_its_busiest(self):
        one = [link("a", "b", 0.1), link("b", "a", 1.2), link("c", "a", 0.2)]
        rows = frame({"links": one}, {"algo": "tree", "links": [link("a", "b", 0.4), link("b", "a", 0.3), link("c", "a", 0.2, drops={"x": 1})]}, size_bytes=8)
        plot.links(rows, ax=self.ax, top=1)
        self.assertEqual([b[:3] for b in self.bars()], [([-0.2, 0.8], [120.0, 20.0], 0.4), ([0.2, 1.2], [30.0, 20.0], 0.4)])
        self.ax.set_xlim.assert_called_once_with(0, 120.0 * 1.02)
        self.assertEqual(self.ax.set_yticks.call_args[0][1], ["b → a", "c → a"])
        self.ax.set_title.assert_called_once_with(
            "all reduce, c, 4 ranks, 8 B\n2 of 3 directions of links: the busiest of each, and all with drops, pauses or marks", fontsize="medium"
        )

    def test_of_several_seeds_there_are_whiskers(self):
        rows = frame({"seed": 1, "links": [link("a", "b", 0.5)]}, {"seed": 2, "links": [link("a", "b", 0.75)]}, {"seed": 3, "links": [link("a", "b", 0.625)]}, size_bytes=8)
        self.pyplot.subplots.return_value = ("figure", self.ax)
        plot.links(rows, legend=False)
        self.assertEqual(self.bars()[0][1::2], ([62.5], [[12.5], [12.5]], COLOURS[0]))
        self.pyplot.subplots.assert_called_once_with(figsize=(7.5, 1.4 + 0.24), layout="constrained")
        self.ax.legend.assert_not_called()

    def test_trouble_is_drops_pauses_and_marks(self):
        keys = ("ecn_marks", "pauses_sent", "pauses_received", "paused_us", "drops.x", "faults.y", "other")
        found = pandas.DataFrame([{k: 1 if k == key else None for k in keys} for key in keys])
        self.assertEqual(plot._in_trouble(found).tolist(), [True] * 6 + [False])


class Facets(Noted):
    def test_panels_have_a_legend_together(self):
        rows = frame(*(bw(1024, 1.0, ranks=r, type=t, algo=a) for r, t, a in ((4, "f", "ring"), (8, "f", "ring"), (4, "d", "tree"))))
        grid = {(r, c): Axes().labels(f"l{c}") for r in range(2) for c in range(2)}
        figure = mock.MagicMock()
        panels = mock.MagicMock(flat=list(grid.values()))
        panels.__getitem__.side_effect = lambda at: grid[at]
        self.pyplot.subplots.return_value = (figure, panels)
        drawn = []
        found = plot.facets(rows, lambda part, **how: drawn.append((part.to_dict("records")[0]["algo"], len(part), how)), row="ranks", col="type", band=None)
        self.assertIs(found, panels)
        look = plot.look_of(rows, None, ("ranks", "type"))
        self.assertEqual(drawn, [("ring", 1, {"ax": grid[0, 0], "look": look, "legend": False, "band": None}), ("tree", 1, {"ax": grid[0, 1], "look": look, "legend": False, "band": None}),
                                 ("ring", 1, {"ax": grid[1, 0], "look": look, "legend": False, "band": None})])  # fmt: skip
        below = 0.15 + 0.25
        tall = 2.7 * 2 + below
        self.pyplot.subplots.assert_called_once_with(2, 2, figsize=(6.8, tall), squeeze=False, sharex=True, sharey="row", layout="constrained")
        figure.get_layout_engine().set.assert_called_once_with(rect=(0, below / tall, 1, 1 - below / tall), w_pad=0.1)
        grid[0, 1].set_title.assert_called_once_with("4 ranks, d", fontsize="medium")
        grid[0, 1].label_outer.assert_called_once_with()
        grid[1, 1].set_visible.assert_called_once_with(False)
        ((handles, labels), how) = figure.legend.call_args
        self.assertEqual((list(handles), list(labels)), (["line l0", "line l1"], ["l0", "l1"]))
        self.assertEqual(how, {"loc": "lower center", "ncol": 2, "frameon": False, "handlelength": 3.0})

    def test_columns_may_be_several_and_none(self):
        rows = frame(*(bw(1024, 1.0, algo=a) for a in ("a", "b", "c", "d", "e")))
        figure, ax = mock.MagicMock(), Axes().labels("x")
        panels = mock.MagicMock(flat=[ax])
        panels.__getitem__.return_value = ax
        self.pyplot.subplots.return_value = (figure, panels)
        plot.facets(rows, lambda part, **how: None, panel=(3.0, 2.0), share_y=False)
        below = 0.15 + 0.25 * 5
        self.pyplot.subplots.assert_called_once_with(1, 1, figsize=(3.0, 2.0 + below), squeeze=False, sharex=True, sharey=False, layout="constrained")
        self.assertEqual(figure.legend.call_args[1]["ncol"], 1)
        ax.set_title.assert_called_once_with("", fontsize="medium")
        plot.facets(rows, lambda part, **how: None, col=["conf", "algo"], panel=(3.0, 2.0))
        self.assertEqual((self.pyplot.subplots.call_args[0], self.pyplot.subplots.call_args[1]["figsize"]), ((1, 5), (15.0, 2.0 + 0.15 + 0.25)))
        self.assertEqual([c[0][0] for c in ax.set_title.call_args_list][1:], [f"c, {a}" for a in "abcde"])


if __name__ == "__main__":
    unittest.main()
