#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""docs_tables.py [--check] [BUILD]: writes the tables of documents that the code has already. A page has a table between the lines
`<!-- from: NAME [ARGUMENT] -->` and `<!-- end -->`; NAMEs are those of TABLES below. --check writes nothing and fails where a table differs,
where an option has no help, where no page has a program's options, where a key of a conf is in no table or in one that no page has, and where a
variable of the environment is in no document.
BUILD (build) has the programs; without them only tables that are read from the sources are written or checked."""

import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))

from docs_keys import conf_keys, keys, mistaken_keys  # noqa: E402
from docs_text import Mistake, cell, files, table, text_of  # noqa: E402
from tributary._files import write_whole  # noqa: E402

BUILD = "build"
PROGRAMS = """trib-perf trib-sim trib-plan trib-model trib-trace trib-switch trib-telemetry trib-status trib-metrics trib-top trib-faults trib-keep trib-enter
    trib-check-protocol trib-check-nccl-plugin trib-sweep trib-calibrate trib-explain trib-report trib-import trib-nccl""".split()
REGION = re.compile(r"(<!-- from: ([^\n]*?) -->\n)(.*?)(<!-- end -->)", re.S)


# ---- of programs ----


def printed(program, form):
    """What PROGRAM --help=FORM prints: "man", "complete" or "keys"."""
    path = os.path.join(BUILD, program)
    path = path if os.path.exists(path) else os.path.join("scripts", program)
    run = subprocess.run([path, "--help=" + form], stdout=subprocess.PIPE, check=False, text=True, env={**os.environ, "TRIB_BUILD": BUILD})
    if run.returncode:
        raise Mistake(f"{path} --help={form}: found exit code {run.returncode}, expected 0")
    return run.stdout


def commands(_):
    rows = []
    for line in printed("trib", "complete").splitlines():
        name, rest = line.split("|", 1)
        synopsis, _, text = rest.rsplit("|", 2)  # a synopsis may have | itself
        rows.append([f"`trib {name}{' ' + cell(synopsis) if synopsis else ''}`", cell(text)])
    return table(["command", "what it does"], rows)


def options(program):
    rows = []
    for line in printed(program, "complete").splitlines():
        name, letter, value, values, text = line.split("\t")
        if not text.strip():
            raise Mistake(f"{program} {name or value}: found no help, expected a sentence in its row")
        spelled = ", ".join(f"`{word}`" for word in (letter, name) if word)
        if len(values) > 40:
            text += ": " + values.replace(" ", ", ")
        elif values:
            value = values.replace(" ", "\\|")
        value = value if "\\|" in value else cell(value)
        rows.append([spelled or f"`{value}`", f"`{value}`" if spelled and value else "", cell(text)])
    return table(["option", "value", "what it does"], rows)


def notes(page):
    """(variable, text) of a manual page's ENVIRONMENT."""
    section = re.search(r"^\.SH ENVIRONMENT\n(.*?)(?=^\.SH |\Z)", page, re.S | re.M)
    for names, text in re.findall(r"^\.TP\n(\\fB.*?|\.BR .*?)\n(.*?)(?=^\.TP|\Z)", section[1] if section else "", re.S | re.M):
        text = re.sub(r"^\.[A-Z]+ ([^\n]*)", lambda m: re.sub(r" (?=[^\w])", "", m[1].replace('" ', "").replace('"', "")), text, flags=re.M)
        text = " ".join(re.sub(r"\\f[BRI]", "", text).replace("\\-", "-").split())
        for name in re.findall(r"[A-Z][A-Z_]+", re.sub(r"\\f[BRI]|^\.BR", "", names)):
            yield name, text.rstrip(".")


def environment(_):
    where = {}
    for program in ["trib", *PROGRAMS]:
        for name, text in notes(printed(program, "man")):
            where.setdefault((name, text), []).append(program)
    for page in files("*.3"):
        for name, text in notes(text_of(page)):
            where.setdefault((name, text), []).append(os.path.basename(page)[:-2])
    rows = [[f"`{name}`", cell(text), ", ".join(f"`{program}`" for program in programs)] for (name, text), programs in sorted(where.items())]
    return table(["variable", "meaning", "read by"], rows)


# ---- of sources ----


def literals(expression, macros):
    """The text of adjacent C string literals; NAME("...") is macros[NAME] behind its argument."""
    out = ""
    for name, text in re.findall(r'(\w+\()?"((?:[^"\\]|\\.)*)"', expression):
        out += text + (macros[name[:-1]] if name else "")
    return out


def x_rows(path, macro, macros=None):
    """The arguments of X(...) in the X-macro of a file, literals as their text."""
    body = re.search(r"#define " + macro + r"\(X\)((?:[^\n]*\\\n)*[^\n]*\n)", text_of(path))[1].replace("\\\n", "\n")
    for row in re.findall(r"\bX\(((?:[^()\"]|\"(?:[^\"\\]|\\.)*\"|\([^()]*\))*)\)", body):
        parts = re.split(r',(?=(?:[^"]*"[^"]*")*[^"]*$)', row)
        yield [literals(part, macros or {}) if '"' in part else part.strip() for part in parts]


def drops(_):
    return table(["reason", "counter", "meaning"], [[f"`{name}`", f"`drop_{name}`", cell(text)] for _, name, text in x_rows("switch/queue/drops.h", "DROP_TABLE")])


def log_rooms(_):
    return table(["room", "log lines of"], [[f"`{name}`", cell(text)] for name, text in x_rows("base/log.h", "LOG_ROOMS")])


def telemetry(_):
    own = "io/telemetry/telemetry.c"
    macros = {"TABLE_HELP": re.search(r'#define TABLE_HELP\(what\) what "([^"]*)"', text_of(own))[1]}
    rows = {path: help_text for _, path, help_text in x_rows(own, "COMMANDS", macros)}
    for _, path, help_text in x_rows("io/trunk/trunk_telemetry.c", "COMMANDS"):
        if path not in rows:
            rows[path] = help_text + " (a trunk's alone)"
    return table(["command", "answer"], [[f"`{path}`", cell(text)] for path, text in rows.items()])


def limits(_):
    """#defines of headers with a comment that begins with "limit:"."""
    rows = []
    for path in files("*.h"):
        found = re.findall(r"^#define (\w+) +(\([^)]*\)|\S+) +/\* limit: (.*?) \*/", text_of(path), re.M)
        if re.search(r"^#define \w+ +\\\n[^\n]*/\* limit:", text_of(path), re.M):
            raise Mistake(f"{path}: found a limit's comment elsewhere, expected it behind its #define, on the same line")
        for name, value, text in found:
            factors = re.fullmatch(r"\(?(\d+)[uUlL]*(?: << (\d+))?\)?", value)
            if not factors:
                raise Mistake(f"{path}: {name}: found {value}, expected a number or N << BITS")
            rows.append([cell(text), f"{int(factors[1]) << int(factors[2] or 0):,}", f"`{name}` in `{path}`"])
    return table(["what", "at most", "from"], rows)


# ---- rooms ----


def rooms_mk():
    """What each room is, and the rooms that it uses, in the order of rooms.mk."""
    lines = re.findall(r"^# ([^\n]*)\nUSES_(\S+) :=([^\n]*)(?:\n|\Z)", text_of("rooms.mk"), re.M)
    ups = dict(re.findall(r"^UP_(\S+) := ([^\n]*)", text_of("rooms.mk"), re.M))
    return {room: (what, (used + " " + ups.get(room, "")).split()) for what, room, used in lines if not room.startswith("tests/")}


def room_names():
    """Rooms of rooms.mk, then those of the Python package."""
    package = {os.path.dirname(path) for path in files("python/tributary/*.py")}
    return [*rooms_mk(), *sorted(package)]


def of_room(room):
    """What a room is: a line of rooms.mk, or of a package the first paragraph of its README.md."""
    path = os.path.join(room, "README.md")
    if not os.path.exists(path):
        raise Mistake(f"{path}: found no such file, expected what the room is, where to begin and its tests")
    what = rooms_mk()[room][0] if room in rooms_mk() else " ".join(text_of(path).split("\n\n")[1].split()).rstrip(".")
    return what[0].upper() + what[1:]


def rooms(_):
    return table(["room", "what it is"], [[f"[`{room}/`](../{room}/README.md)", cell(of_room(room))] for room in room_names()])


def room_text(room):
    """The line of rooms.mk on a room, for its README.md."""
    used = rooms_mk()[room][1]
    return f"{of_room(room)}.\n\nIt uses {', '.join(f'`{name}`' for name in used) if used else 'no other room'}.\n"


TABLES = {"commands": commands, "options": options, "environment": environment, "drops": drops, "log-rooms": log_rooms, "telemetry": telemetry,
          "limits": limits, "conf-keys": conf_keys, "keys": keys, "rooms": rooms, "room": room_text}
OF_PROGRAMS = {"commands", "options", "environment"}


def written(page, what, old):
    """The text of a region; what it has already, where its programs are not built."""
    name, _, argument = what.partition(" ")
    if name not in TABLES:
        raise Mistake(f"{page}: found a table from {name}, expected one of {', '.join(sorted(TABLES))}")
    if name in OF_PROGRAMS and not os.path.exists(os.path.join(BUILD, "trib-plan")):
        return old
    return TABLES[name](argument or os.path.dirname(page))


def undocumented(pages):
    """Folders without a README.md; programs whose options no page has; mistaken keys of confs; variables that the code reads and no page names."""
    everything = "\n".join(pages.values())
    for folder in sorted({path.split("/")[0] for path in files("*.c", "*.h", "*.py", "*.sh", "*.lua") if "/" in path and path[0] != "."}):
        if f"{folder}/README.md" not in pages:
            yield f"{folder}/README.md: found no such file, expected what the folder is and where to begin"
    for program in PROGRAMS:
        if f"<!-- from: options {program} -->" not in everything:
            yield f"{program}: no page has its options, expected <!-- from: options {program} -->"
    yield from mistaken_keys(pages)
    for path in files("*.c", "*.py", "scripts/trib*"):
        if not path.startswith("tests/"):
            for name in re.findall(r'(?:getenv\(|environ(?:\.get\(|\[))"(TRIB_\w+)"|\$\{(TRIB_\w+):-', text_of(path)):
                name = name[0] or name[1]
                if not re.search(name + r"\b", everything):
                    yield f"{path}: {name} is in no document"


def main():
    global BUILD
    arguments = [argument for argument in sys.argv[1:] if argument != "--check"]
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    BUILD = os.path.abspath(arguments[0] if arguments else BUILD)
    check = "--check" in sys.argv
    bad, pages, count = [], {}, 0
    for page in files("*.md"):
        old = pages[page] = text_of(page)

        def region(found):
            try:
                return found[1] + written(page, found[2], found[3]) + found[4]
            except Mistake as mistake:
                bad.append(str(mistake))
                return found[0]

        new, n = REGION.subn(region, old)
        count += n
        if new != old and check:
            bad.append(f"{page}: a table differs from the code, expected what `make docs-tables` writes")
        elif new != old:
            write_whole(page, new)
    bad += undocumented(pages)
    for line in sorted(set(bad)):
        print("docs-tables: " + line)
    print(f"docs-tables: {count} tables, {len(set(bad))} mistakes")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
