#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""names.py: fails where a reader, or a search, finds more than one thing under a name.

A header's base name is unique in the tree, include/ apart, whose names are others'. A tag (struct, union, enum) is defined once, or with the same contents.
A file-local function whose name is one bare word is refused where a second file has one of that name, or where the word is VAGUE: <object>_<verb> tells them apart.
Tests name their files and what is inside as they like."""
import collections
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
VAGUE = {"add", "begin", "put", "take"}  # no file-local function has one of these names


def plain(text):
    """C without comments and texts."""
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', " ", text, flags=re.S)


def body(text, at):
    """What is between the brace at `at` and its end, without white space."""
    depth = 0
    for i in range(at, len(text)):
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        if not depth:
            return "".join(text[at:i].split())
    return ""


def main():
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.c", "*.h", "*.cu"], cwd=ROOT, capture_output=True, text=True, check=True)
    headers, tags, bare = (collections.defaultdict(dict) for _ in range(3))
    for path in sorted(set(listed.stdout.split())):
        if path.startswith(("tests/", "include/", "examples/")) or not os.path.exists(os.path.join(ROOT, path)):
            continue
        if path.endswith(".h"):
            headers[os.path.basename(path)][path] = path
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            text = plain(file.read())
        for m in re.finditer(r"\b((?:struct|union|enum) \w+) *(?:__\w+ *)?\{", text):
            tags[m[1]][path] = body(text, m.end() - 1)
        if path.endswith(".c"):
            for m in re.finditer(r"^static [^;={}()]*?\b([a-z0-9]+)\([^;{}]*\)\s*\{", text, re.M):
                bare[m[1]][path] = path
    bad = ["%s: found %s, expected a base name for each header" % (name, " and ".join(sorted(where))) for name, where in headers.items() if len(where) > 1]
    bad += ["%s: found different ones in %s, expected a tag for each" % (tag, " and ".join(sorted(where))) for tag, where in tags.items() if len(set(where.values())) > 1]
    bad += ["%s(): found in %s, expected <object>_<verb>" % (name, " and ".join(sorted(where))) for name, where in bare.items() if len(where) > 1 or name in VAGUE]
    for text in sorted(bad):
        print("names: " + text)
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
