#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Feeds every reader of the package files that are nearly right. Each ends with what it can read, or with one sentence of printable characters
that says what is wrong: no traceback, and in a time that is linear in the file. usage: mutate_files.py READER SEED N FILE...; one line sums up.

READER: results, report, timeline, explain, calibrate, import, conf. FILE...: right ones. The same SEED makes the same files.
"""
import contextlib
import copy
import io
import json
import os
import random
import re
import sys
import tempfile
import time
import warnings

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "python"))
LINES = 100000
DEEP = 100000
MOST_S = 20.0  # of one file, of which most have some 10 kB, those below some MB; a quadratic reader takes minutes


def nest(n):
    value = 1
    for _ in range(n):
        value = [value] if n % 2 else {"a": value}
    return value


VALUES = [None, True, 0, -1, 0.5, 1e308, -1e308, 10**400, 1 << 63, "", "x", "1", "\x1b[2J\n", "\ud800", [], {}, [1], [[]], {"a": 1}, [None], nest(60), nest(70), float("nan"), float("inf")]
WHOLE = [
    "", " ", "1", "[]", "{}", "null", '"x"', "[1]", '{"results": 1}', '{"results": [1]}', '{"results": [[]]}', '{"results": [null]}', '{"results": [{}]}', '{"results": []}',
    '{"results": [{"algo": 1}]}', '{"results": [], "run": 1}', '{"results": [], "run": {"command": 1, "files": 1}}', '{"results": [], "virtual": 7}', '{"results": [], "schema": [1]}',
    '{"results": {"size": 1}, "ranks": 2}', '{"results": [{"size_bytes": [1], "algo": {}}], "ranks": 2}', '{"jobs": [1]}', '{"jobs": []}', '{"collectives": [1], "hosts": {"step_us": []}}',
    '{"otherData": {}}', '{"otherData": {"kind": "tributary time line"}}', '{"otherData": {"kind": "tributary time line", "operation": 1}, "traceEvents": [1]}', '{"test_info": {}}',
    '{"test_info": {"test": "RDMA_Write BW Test"}, "results": {"MsgSize": 1e14, "BW_average": 1e-9, "MsgRate": 1e-9}}', '{"a": ' * DEEP, "[" * DEEP, '{"results": ' + "[" * DEEP + "]" * DEEP + "}",
    '{"results": [' + "9" * 5000 + "]}", '{"results": [NaN, Infinity]}', '{"a": 1} {"b": 2}', "\0", "\x00" * 100, "\ufeff{}", "\x1b]0;x\x07", "<a>" * 20000, "<system>" * 20000, "<!DOCTYPE a [<!ENTITY b 'c'>]><system/>",
    "\n" * LINES, " \n" * LINES, " " * (10 * LINES), "\t\n" * LINES + "x", "] " * LINES, '"' * LINES, "0x1 " * LINES, "( { [ " * 20000, "# size count type\n" + "\n" * LINES, "# size count type redop time algbw busbw\n" + "    \n" * LINES,
    "# OSU MPI Allreduce Latency Test\n# Size Latency (us)\n" + "1\n" * LINES, "#bytes #iterations\n" * 20000, "# Benchmarking Allreduce\n# #processes = 2\n#bytes #repetitions t_avg[usec]\n" + "1\n" * LINES,
    "Switch\t1 \"S-1\"\n" + "[1]\t\"H-1\"[1] # 4xHDR\n" * 20000, "Switch: 0x0000000000000001 x:\n" + "\n" * LINES, "a = " + "( " * 20000, "a = { " * 20000, 'a = "' + "x" * LINES, "a = 1;\n" * 5000 + "}", "/*" * LINES,
]


def places(value, at=()):
    yield at
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for k, v in items:
        yield from places(v, (*at, k))


def json_mutant(draw, top):
    top = copy.deepcopy(top)
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        all_of = list(places(top))
        at = draw.choice(all_of[1:] or all_of)
        if not at:
            return json.dumps(draw.choice(VALUES))
        parent = top
        for k in at[:-1]:
            parent = parent[k]
        what = draw.randrange(10)
        if what < 2:
            del parent[at[-1]]
        elif what == 2 and isinstance(parent, list):
            parent += copy.deepcopy(parent)
        else:
            parent[at[-1]] = copy.deepcopy(draw.choice(VALUES))
    return json.dumps(top)


def text_mutant(draw, text):
    lines = text.split("\n")
    for _ in range(draw.choice((1, 1, 2, 5))):
        i, what = draw.randrange(len(lines)), draw.randrange(9)
        if what == 0:
            del lines[i]
        elif what == 1:
            lines.insert(i, draw.choice(lines))
        elif what == 2:
            lines = lines[: i + 1]
            lines[-1] = lines[-1][: draw.randrange(len(lines[-1]) + 1)]
        elif what == 3:
            at = draw.randrange(len(lines[i]) + 1)
            lines[i] = lines[i][:at] + draw.choice(("\x1b[2J", "\0", "\x85", "\u2028", "{", '"', "}", "-", "9" * 30, "1e308", ",", "\\")) + lines[i][at:]
        elif what == 4:
            lines[i] = re.sub(r"\d+", lambda m: draw.choice(("0", "-1", "9" * 25, "1e308", "x", "", m[0])), lines[i])
        elif what == 5:
            lines[i:i] = [""] * 1000
        elif what == 6:
            words = lines[i].split(" ")
            draw.shuffle(words)
            lines[i] = " ".join(words)
        elif what == 7:
            lines[i] *= 3
        else:
            lines[i] = lines[i].swapcase()
        lines = lines or [""]
    return "\n".join(lines)


def object_of(text):
    """None: it is no JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def mutants(seed, n, files):
    for text in WHOLE:
        yield text
    for i in range(n):
        draw = random.Random(f"{seed} {i}")
        with open(files[i % len(files)], encoding="utf-8", errors="surrogateescape") as f:
            text = f.read()
        top = object_of(text)
        yield json_mutant(draw, top) if top is not None and draw.random() < 0.8 else text_mutant(draw, text)


# ---- the readers: each returns, or raises what its command says in a sentence ----


def reader_of(name):
    if name == "results":
        import tributary.results as r

        return lambda p: (r.read(p), r.links)
    if name == "report":
        import tributary.report.page as page

        page.figures.fabric = lambda conf, links, label: None
        page.figures.drawn = lambda make, n, label: drawn(make)
        page.subprocess = type("No", (), {"run": staticmethod(lambda *a, **k: type("Done", (), {"returncode": 1})())})
        return lambda p: page.make([p])
    if name == "timeline":
        import tributary._plot_timeline as t

        return lambda p: closed(t.timeline(p))
    if name == "explain":
        from tributary.explain.command import explain

        return explain
    if name == "calibrate":
        from tributary.calibrate.read import read_results
        from tributary.calibrate.rows import Options

        return lambda p: read_results(p, Options())
    if name == "import":
        from tributary.importer import command, source, verdict

        verdict.check = lambda *a: None
        return lambda p: command.conf_of([p], {}, source.Notes())
    import tributary.conf as conf

    return lambda p: conf.Conf.load(p)


def closed(axes):
    import matplotlib.pyplot as plt

    plt.close(axes.figure)


def drawn(make):
    closed(make())
    return ""


def check(read, path):
    """"ok", or the sentence. AssertionError: what it did instead."""
    import getopt

    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read(path)
        return "ok"
    except (ValueError, OSError, getopt.GetoptError) as e:
        said = str(e)
    except Exception as e:
        if type(e).__name__ != "Refused":
            raise
        said = str(e)
    assert said and all(c.isprintable() for c in said), f"found {said!r}, expected one line of printable characters"
    assert "expected" in said or "found" in said or "Errno" in said, f"found {said!r}, expected what was found and is expected"
    return said


def main(argv):
    name, seed, n, *files = argv
    if name in ("report", "timeline"):
        import matplotlib

        matplotlib.use("agg")
    read = reader_of(name)
    bad, refused, slowest, done = 0, 0, 0.0, 0
    with tempfile.TemporaryDirectory() as folder:
        for i, text in enumerate(mutants(seed, int(n), files)):
            path = os.path.join(folder, "x.conf" if name == "conf" else f"x{i}")
            with open(path, "wb") as f:
                f.write(text.encode("utf-8", "surrogateescape" if "\udc80" <= max(text, default="") <= "\udcff" else "surrogatepass"))
            began = time.process_time()
            try:
                refused += check(read, path) != "ok"
            except BaseException as e:
                if isinstance(e, KeyboardInterrupt):
                    raise
                bad += 1
                import traceback

                where = traceback.extract_tb(e.__traceback__)[-1]
                print(f"{name}: mutant {i}: {type(e).__name__}: {str(e)[:200]!r} at {os.path.basename(where.filename)}:{where.lineno}: {text[:100]!r}")
            took = time.process_time() - began
            if took > MOST_S:
                bad += 1
                print(f"{name}: mutant {i}: {took:.1f} s of CPU time for {len(text)} characters: {text[:60]!r}")
            slowest = max(slowest, took)
            done += 1
            os.unlink(path)
    print(f"{name}: {done} files, {refused} refused by a sentence, {bad} otherwise; the slowest took {slowest:.1f} s")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
