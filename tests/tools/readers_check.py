#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Files of other tools against DIR/expected.txt: readers_check.py import|calibrate DIR. Says what is wrong, or how many are right.

A line of expected.txt: FILE ARG... | what | regular expression. What of import: "gives", it is in the conf; "tells", it is told; "no", the
file is refused with these words. Of calibrate: "gives", it is in the summary of what is read, else the same. Every file has a line.
"""

import contextlib
import io
import re
import sys
from pathlib import Path

kind, folder = sys.argv[1], Path(sys.argv[2])
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
from tributary._cli import Refused  # noqa: E402


def imported(words):
    """The conf and what is told; Refused: there is none."""
    from tributary.importer import command, source

    given, files = command.COMMAND.parse(words)
    notes = source.Notes()
    return command.conf_of([str(folder / f) for f in files], given, notes), notes.lines()


def calibrated(words):
    """A summary of each series of results, and what is told."""
    from tributary.calibrate import command, read

    given, files = command.COMMAND.parse(words)
    options = command.options_of(given)
    text, told = "", []
    for name in files:
        for s in read.read_results(str(folder / name), options):
            if s.not_ours:
                raise Refused(s.not_ours)
            rows = " ".join(f"{r.size}={r.us:.2f}" for r in s.rows)
            text += f"{s.collective} {s.algo} ranks {s.ranks} hosts {s.hosts} {s.kind}{' of a peer' if s.per_rank else ''}: {rows}\n"
            told += s.notes
    return text, told


def main():
    work, results, wrong, seen = imported if kind == "import" else calibrated, {}, [], set()
    lines = [x for x in (folder / "expected.txt").read_text().splitlines() if x and not x.startswith("#")]
    for line in lines:
        words, what, expected = line.split(" | ", 2)
        seen.update(words.split())
        if words not in results:
            try:
                with contextlib.redirect_stderr(io.StringIO()):
                    results[words] = (*work(words.split()), "")
            except Refused as e:
                results[words] = ("", [], str(e))
        gave, told, refused = results[words]
        found = {"gives": gave, "tells": "\n".join(told), "no": refused}[what]
        if not re.search(expected, found) or (what != "no" and refused):
            wrong.append(f"{line}\n    found: {(gave or refused).strip()}\n" + "".join(f"    told: {t}\n" for t in told))
    wrong += [f"{p.name}: found no line of expected.txt, expected one\n" for p in sorted(folder.iterdir()) if p.name not in seen | {"expected.txt"}]
    print("".join(wrong) or f"{len(lines)} of {kind}: all right")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
