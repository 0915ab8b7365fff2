# SPDX-License-Identifier: BSD-3-Clause
"""What the scripts of documents share: files of the tree, and tables as Markdown has them."""

import functools
import os
import subprocess


class Mistake(Exception):
    pass


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


@functools.lru_cache(maxsize=None)
def files(*patterns):
    out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", *patterns], stdout=subprocess.PIPE, check=True, text=True).stdout
    return sorted(path for path in out.split("\n") if path and os.path.exists(path))


def cell(text):
    return text.replace("|", "\\|").replace("\n", " ")


def table(heads, rows):
    lines = ["| " + " | ".join(row) + " |" for row in [heads, ["---"] * len(heads), *rows]]
    return "\n".join(lines) + "\n"
