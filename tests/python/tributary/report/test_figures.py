# SPDX-License-Identifier: BSD-3-Clause
"""Pieces of HTML, and figures as SVG: what is escaped, which looks links have, and what of a drawing stays."""
import io
import unittest
from unittest import mock

from tributary._trib import TribError
from tributary.report import figures, html

PLAN = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 512 392" aria-label="old"><style>x</style><g class="tree"/><g class="key"/><text class="name">n</text>'
    '<rect class="background"/><g><path class="link"/><text class="count">2</text><path class="link" data-link="a-b"><title>t</title></path>'
    '<path class="link" data-link="c-d"/><path class="link" data-link="q" data-links="a-b e-f"><title>t</title></path></g><rect y="100"/><rect y="200.5"/><rect/></svg>'
)


def direction(link, used, a="x", b="y"):
    return {"link": link, "utilisation": used, "from": a, "to": b}


class Html(unittest.TestCase):
    def test_numbers_and_texts(self):
        for value, text in ((None, ""), (float("nan"), ""), (True, "yes"), (False, "no"), (1.23456, "1.235"), (99999.0, "1e+05"), (100000.0, "100,000"), (-2e5, "-200,000"), (1234567, "1,234,567"), ("x", "x")):
            self.assertEqual(html.number(value), text)
        self.assertEqual((html.number(1.23456, 2), html.text("<\"'&"), html.slug("A b--C (µ)!")), ("1.2", "&lt;&quot;&#x27;&amp;", "a-b-c"))

    def test_a_table_has_heads_and_numbers(self):
        self.assertEqual(html.table("c<", ("h", "i<", "j"), [("r<", "s", 1.5), (7, 8000, None)], numbers_from=2), (
            '<div class="scroll" role="region" tabindex="0" aria-label="c&lt;"><table><caption>c&lt;</caption><thead><tr><th scope="col">h</th><th scope="col">i&lt;</th>'
            '<th scope="col" class=n>j</th></tr></thead><tbody><tr><th scope="row">r&lt;</th><td>s</td><td class="n">1.5</td></tr>'
            '<tr><th scope="row">7</th><td>8,000</td><td class="n"></td></tr></tbody></table></div>\n'
        ))  # fmt: skip
        self.assertIn('<th scope="col">a</th><th scope="col" class=n>b</th>', html.table("", ("a", "b"), [("x", 1)]))
        self.assertIn('<td class="n">1</td>', html.table("", ("a", "b"), [("x", 1)]))

    def test_pieces_are_escaped(self):
        self.assertEqual(html.section("A & B", "body"), '<section aria-labelledby="a-b"><h2 id="a-b">A &amp; B</h2>\nbody</section>\n')
        self.assertEqual(html.figure("<svg/>", "a<"), "<figure><svg/><figcaption>a&lt;</figcaption></figure>\n")
        self.assertEqual(html.pre("a<", "b<"), '<pre class="scroll" role="region" tabindex="0" aria-label="b&lt;">a&lt;</pre>\n')
        page = html.page("t<", "BODY", ("A b", "C"))
        self.assertIn('<nav aria-label="Contents"><ul><li><a href="#a-b">A b</a></li><li><a href="#c">C</a></li></ul></nav></header>\n<main id="main">\nBODY</main>', page)
        self.assertIn("<title>t&lt;</title>", page)


class Figures(unittest.TestCase):
    def test_links_are_as_hot_as_they_are_used(self):
        for used, i in ((0.0, 0), (0.19, 0), (0.2, 1), (0.39, 1), (0.4, 2), (0.6, 3), (0.79, 3), (0.8, 4), (1.5, 4)):
            self.assertEqual(figures._heat(used), figures.HEAT[i][1:])
        self.assertEqual(figures._heat(-1.0), figures.HEAT[0][1:])

    def test_the_legend_has_each_look(self):
        self.assertEqual(figures.legend(), (
            '<ul class="heat" aria-label="Utilisation of links, the busier direction"><li><span style="border-top: 1.5px solid #8a8f98"></span>0 to 20 %</li>'
            '<li><span style="border-top: 2px solid #3d8fd1"></span>20 to 40 %</li><li><span style="border-top: 2.75px solid #2f9e6e"></span>40 to 60 %</li>'
            '<li><span style="border-top: 3.75px solid #d98a1f"></span>60 to 80 %</li><li><span style="border-top: 5px solid #d1432f"></span>80 to 100 %</li></ul>\n'
        ))  # fmt: skip

    def fabric(self, links):
        def output(words):
            with open(words[2], encoding="utf-8") as f:
                asked.append((words[:2], f.read()))
            return PLAN

        asked = []
        with mock.patch.object(figures, "output", output):
            svg = figures.fabric("conf text", links, "la<bel")
        self.assertEqual(asked, [(["plan", "--svg"], "conf text")])
        return svg

    def test_a_fabric_has_its_links_by_the_busier_direction(self):
        svg = self.fabric([direction("a-b", 0.1), direction("a-b", 0.45, "y", "x"), direction("e-f", 0.9, "e", "f"), direction("other", 1.0)])
        self.assertEqual(svg, (
            '<svg aria-label="la&lt;bel" xmlns="http://www.w3.org/2000/svg" viewBox="0 40 512 236.5" height="236.5" role="img" class="fabric"><g>'
            '<path class="link" data-link="a-b" stroke="#2f9e6e" stroke-width="2.75"><title>x to y: 10.0 %; y to x: 45.0 %</title></path>'
            '<path class="link" data-link="c-d" stroke="#8a8f98" stroke-width="1.5" />'
            '<path class="link" data-link="q" stroke="#d1432f" stroke-width="5"><title>e to f: 90.0 %; y to x: 45.0 %; x to y: 10.0 %</title></path>'
            '</g><rect y="100" /><rect y="200.5" /><rect /></svg>'
        ))  # fmt: skip
        svg = self.fabric([direction("a-b", None if i == 4 else 0.01 * i) for i in range(11)])
        self.assertIn("<title>" + "; ".join(f"x to y: {0 if i == 4 else i}.0 %" for i in range(8)) + "; 3 more directions, not busier</title>", svg)
        self.assertIn("<title>t</title>", self.fabric([]))

    def test_a_fabric_that_cannot_be_drawn_is_none(self):
        for error in (TribError("no", ["x"], 1), OSError(2, "no")):
            with mock.patch.object(figures, "output", mock.Mock(side_effect=error)):
                self.assertIsNone(figures.fabric("c", [], "l"))

    def test_a_figure_takes_the_page_s_colours(self):
        saved = []

        def savefig(out, **how):
            self.assertIsInstance(out, io.StringIO)
            saved.append(how)
            out.write(
                '<?xml?><svg width="1"><metadata>\nx</metadata><style type="a">\n*{}</style><g id="p1" fill="#010203" stroke="#000000"/>'
                '<use clip-path="url(#p1)" xlink:href="#p1"/><svg /></svg>'
            )

        axes = mock.Mock(figure=mock.Mock(savefig=savefig))
        matplotlib, pyplot = mock.MagicMock(), mock.Mock()
        modules = {("matplotlib", "python3-matplotlib"): matplotlib, ("matplotlib.pyplot", "python3-matplotlib"): pyplot}
        with mock.patch.object(figures, "need", lambda *names: modules[names]):
            svg = figures.drawn(lambda: axes, "f7", "la<bel")
        self.assertEqual(svg, (
            '<svg role="img" aria-label="la&lt;bel" stroke-linejoin="round" width="1"><g id="f7-p1" fill="currentColor" stroke="currentColor"/>'
            '<use clip-path="url(#f7-p1)" xlink:href="#f7-p1"/><svg /></svg>'
        ))  # fmt: skip
        self.assertEqual(saved, [{"format": "svg", "metadata": {"Date": None, "Creator": None}}])
        matplotlib.use.assert_called_once_with("agg")
        matplotlib.rc_context.assert_called_once_with(figures.STYLE)
        pyplot.close.assert_called_once_with(axes.figure)


if __name__ == "__main__":
    unittest.main()
