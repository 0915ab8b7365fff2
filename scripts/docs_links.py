#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""docs_links.py: checks every *.md of the tree without running anything. A relative link leads to a file, its anchor to a heading, and
a path in code to a file of the tree. A page of docs/ has at most 300 lines, and README.md leads to it in one or more steps."""

import os
import re
import sys

MOST_LINES = 300
NEAR = ["", "tests", "include", "python"]


def prose(path):
    """Lines outside of fenced blocks, with their numbers."""
    fenced = False
    with open(path, encoding="utf-8") as text:
        for number, line in enumerate(text, 1):
            if re.match(r" *```", line):
                fenced = not fenced
            elif not fenced:
                yield number, line


def anchors(path):
    """The anchors of a page's headings as they are rendered: -1 behind the second of a name."""
    seen = {}
    for _, line in prose(path):
        if re.match(r"#+ ", line):
            title = re.sub(r"\]\([^)]*\)", "", line.lstrip("#").strip().lower())
            name = re.sub(r"[^a-z0-9 _-]", "", title).replace(" ", "-")
            yield name + (f"-{seen[name]}" if name in seen else "")
            seen[name] = seen.get(name, 0) + 1


def links(path):
    """(line, file, anchor) of each relative link of a page."""
    for number, line in prose(path):
        for target in re.findall(r"\]\(([^) ]+)", re.sub(r"`[^`]*`", "", line)):
            if not re.match(r"https?:|mailto:", target):
                file, _, anchor = target.partition("#")
                yield number, os.path.normpath(os.path.join(os.path.dirname(path), file)) if file else path, anchor


def pages():
    found = []
    for folder, inside, files in os.walk("."):
        inside[:] = [name for name in inside if not name.startswith("build") and name != ".git"]
        found += [os.path.normpath(os.path.join(folder, name)) for name in files if name.endswith(".md")]
    return sorted(found)


def check_links(all_pages):
    """Mistakes, and the pages to which each page leads."""
    bad, to = [], {}
    for page in all_pages:
        to[page] = set()
        for number, file, anchor in links(page):
            if not os.path.exists(file):
                bad.append(f"{page}:{number}: the link leads to no file: {file}")
            elif anchor and anchor not in anchors(file):
                bad.append(f"{page}:{number}: {file} has no heading {anchor}")
            to[page].add(file)
    return bad, to


def check_files(page):
    """Files of the tree that a page names in code, by their path from the top or from one of the folders NEAR."""
    for number, line in prose(page):
        for name in re.findall(r"`([\w.-]+(?:/[\w.-]+)+\.(?:c|h|cu|py|sh|txt|md))`", line):
            if not any(os.path.exists(os.path.join(near, name)) for near in [*NEAR, os.path.dirname(page)]):
                yield f"{page}:{number}: found `{name}`, expected a file of the tree"


def check_sizes(all_pages):
    for page in all_pages:
        if page.startswith("docs/"):
            with open(page, encoding="utf-8") as text:
                lines = sum(1 for _ in text)
            if lines > MOST_LINES:
                yield f"{page}: found {lines} lines, expected at most {MOST_LINES}: divide it by subject"


def check_reached(all_pages, to):
    reached, new = set(), ["README.md"]
    while new:
        page = new.pop()
        if page not in reached:
            reached.add(page)
            new += [file for file in to.get(page, ()) if file in to]
    for page in all_pages:
        if page.startswith("docs/") and page not in reached:
            yield f"{page}: no link leads to it from README.md"


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    all_pages = pages()
    bad, to = check_links(all_pages)
    bad += [*check_sizes(all_pages), *check_reached(all_pages, to)]
    bad += [mistake for page in all_pages if page != "CHANGELOG.md" for mistake in check_files(page)]
    for line in bad:
        print("docs-links: " + line)
    print(f"docs-links: {len(all_pages)} pages, {sum(len(files) for files in to.values())} links, {len(bad)} mistakes")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
