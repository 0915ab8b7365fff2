# SPDX-License-Identifier: BSD-3-Clause
"""Pieces of HTML. Every text from outside goes through text(): a conf or a label may have any characters."""

from __future__ import annotations

import html
import re
from typing import Any, Iterable, Sequence


def text(value: Any) -> str:
    return html.escape(str(value), quote=True)


def slug(value: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", value.lower()).strip("-")


def number(value: Any, digits: int = 4) -> str:
    """4 digits and "": unknown."""
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.{digits}g}" if abs(value) < 1e5 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[Any]], numbers_from: int = 1) -> str:
    """A table in a region that scrolls, and can be reached by the keyboard. Cells from numbers_from on are numbers."""
    body = []
    for row in rows:
        cells = []
        for i, cell in enumerate(row):
            what = text(cell if isinstance(cell, str) else number(cell))
            if i == 0:
                cells.append(f'<th scope="row">{what}</th>')
            else:
                cells.append(f'<td class="n">{what}</td>' if i >= numbers_from else f"<td>{what}</td>")
        body.append("<tr>" + "".join(cells) + "</tr>")
    head = "".join(f'<th scope="col"{" class=n" if i >= numbers_from else ""}>{text(h)}</th>' for i, h in enumerate(heads))
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{text(caption)}"><table><caption>{text(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div>\n"
    )


def section(title: str, body: str) -> str:
    at = slug(title)
    return f'<section aria-labelledby="{at}"><h2 id="{at}">{text(title)}</h2>\n{body}</section>\n'


def figure(svg: str, caption: str) -> str:
    return f"<figure>{svg}<figcaption>{text(caption)}</figcaption></figure>\n"


def pre(what: str, label: str) -> str:
    return f'<pre class="scroll" role="region" tabindex="0" aria-label="{text(label)}">{text(what)}</pre>\n'


STYLE = """
:root { color-scheme: light dark; --ink: #1a1a1a; --paper: #ffffff; --soft: #f3f4f6; --line: #c9ccd1; --link: #0b5cad; --warn: #8a4b00 }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --paper: #16181c; --soft: #22252b; --line: #4a4f57; --link: #7db8f5; --warn: #f0b35a } }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 70rem; padding: 1rem 1.25rem 4rem; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif }
h1 { font-size: 1.6rem; line-height: 1.25; margin: .5rem 0 } h2 { font-size: 1.25rem; margin: 2.2rem 0 .6rem; border-bottom: 1px solid var(--line) } h3 { font-size: 1.05rem; margin: 1.4rem 0 .4rem }
a { color: var(--link) } nav ul { display: flex; flex-wrap: wrap; gap: .3rem 1.1rem; padding: 0; margin: .6rem 0; list-style: none }
.skip { position: absolute; left: -99rem } .skip:focus { position: static }
figure { margin: 1rem 0 } figure svg { max-width: 100%; height: auto; display: block } figcaption, .note { font-size: .92rem }
.warn { color: var(--warn); font-weight: 600 }
.scroll { overflow: auto; max-height: 34rem; border: 1px solid var(--line); border-radius: 4px; margin: .6rem 0 }
.scroll:focus-visible, a:focus-visible, summary:focus-visible { outline: 3px solid var(--link); outline-offset: 2px }
table { border-collapse: collapse; font-size: .9rem; width: 100%; font-variant-numeric: tabular-nums }
caption { text-align: left; padding: .4rem .6rem; font-weight: 600 }
th, td { padding: .25rem .6rem; text-align: left; border-top: 1px solid var(--line); white-space: nowrap } thead th { background: var(--soft); position: sticky; top: 0 }
th.n, td.n { text-align: right } tbody th { font-weight: 400 }
pre { background: var(--soft); padding: .6rem; font-size: .85rem; white-space: pre-wrap; overflow-wrap: anywhere }
.fabric text { font: 12px sans-serif; text-anchor: middle; fill: var(--ink) } .fabric rect { fill: var(--soft); stroke: currentColor } .fabric path { fill: none }
.heat { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; padding: 0; list-style: none; font-size: .85rem } .heat span { display: inline-block; width: 1.6rem; margin-right: .4rem; vertical-align: middle }
@media print { :root { --ink: #000; --paper: #fff; --soft: #f3f3f3; --line: #999; --link: #000; --warn: #000 } body { max-width: none; padding: 0; font-size: 11px }
  nav, .skip { display: none } .scroll { overflow: visible; max-height: none; border: 0 } figure, tr, h2, h3 { break-inside: avoid } h2, h3, caption { break-after: avoid }
  th, td { white-space: normal; padding: .1rem .3rem } table { font-size: 8px } thead th { position: static } }
"""


def page(title: str, body: str, parts: Sequence[str]) -> str:
    links = "".join(f'<li><a href="#{slug(p)}">{text(p)}</a></li>' for p in parts)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{text(title)}</title>\n<style>{STYLE}</style></head>\n<body>\n"
        f'<a class="skip" href="#main">Skip to the results</a>\n<header><h1>{text(title)}</h1>\n'
        f'<nav aria-label="Contents"><ul>{links}</ul></nav></header>\n<main id="main">\n{body}</main>\n</body></html>\n'
    )
