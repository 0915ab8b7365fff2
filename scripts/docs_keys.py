# SPDX-License-Identifier: BSD-3-Clause
"""The keys that conf files take, with their ranges, defaults and meanings, read from the tables of keys in the sources (struct key of fabric/build.h)."""

import functools
import re

from docs_text import Mistake, files, table, text_of

# Tables of keys: the file, and what its tables are of, in their order.
KEYS = {
    "fabric/conf/conf.c": ["a conf"],
    "fabric/conf/template.c": ["`leaf_spine`", "`single_switch`, `full_mesh`"],
    "fabric/conf/template_gpu.c": ["`gpu_nodes`", "`rails`"],
    "fabric/conf/conf_links.c": ["links", "an entry of `links` with `of`, beside those of links", "an entry of `links`, beside those of links"],
    "fabric/conf/conf_nodes.c": ["an entry of `nodes` with `of`", "an entry of `nodes`"],
    "fabric/conf/conf_reduce.c": ["`reduce`"],
    "fabric/conf/conf_congestion.c": ["`dcqcn`"],
    "fabric/conf/conf_transport.c": ["`transport`"],
    "fabric/conf/conf_costs.c": ["`ll`, `ll128` of a path", "`nvlink`, `network` of `costs`", "`multimem` of `costs`", "`aggregate` of `costs`", "`costs`"],
    "fabric/conf/conf_procs.c": ["an entry of `processes`"],
    "fabric/conf/conf_machines.c": ["an entry of `machines`"],
    "fabric/conf/conf_access.c": ["an entry of `access`"],
    "fabric/conf/faults.c": ["a fault of a link", "a fault of a node", "a fault of a host", "a fault of a rank", "a fault of an aggregation node"],
    "fabric/conf/workload_conf.c": ["`model` of a workload", "`training` of a workload", "`parallel` of a workload", "`algorithm` of `parallel`", "a workload"],
    "sim/jobs/jobs_conf.c": ["a job"],
}
COMMENT = r"/\*((?:[^*]|\*(?!/))*)\*/"
KEY_ROW = re.compile(rf'(?:{COMMENT}\s*)?\b(OWN_KEY_FROM|OWN_KEY|PLAIN_KEY|RANGE_KEY|CHOICE_KEY)\(\s*"(\w+)"')
# What reads a setting by its name, and the keys that are alone in their files.
READ = re.compile(r'\b(?:config_setting_get_member|group_of|conf_link_group|read_count|read_type|read_member)\((?:\w+, )*"(\w+)"')
ALONE = {"faults", "jobs"}
VALUES = {"KEY_BOOL": "`true` or `false`", "KEY_PROB": "0.0 to 1.0, or as `0.1%`", "KEY_SHARE": "0.0 to 1.0, or as `0.1%`", "KEY_NAME": "a name",
          "KEY_TEXT": "a text", "KEY_OWN": ""}
UNITS = {"KEY_TIME": [("s", 10**12), ("ms", 10**9), ("us", 10**6), ("ns", 1000), ("ps", 1)],
         "KEY_RATE": [("Tb/s", 10**12), ("Gb/s", 10**9), ("Mb/s", 10**6)],
         "KEY_SIZE": [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)]}


def number(expression, path, deep=0):
    """The value of a C constant: numbers, products, shifts, and #defines of the file or of headers."""
    value = re.sub(r"\b(0x[0-9a-f]+|\d+)[uUlL]+\b", r"\1", expression.strip())
    value = value.replace("UINT32_MAX", str(2**32 - 1)).replace("UINT16_MAX", str(2**16 - 1)).replace("PS_PER_MS", str(10**9)).replace("PS_PER_S", str(10**12))
    for name in re.findall(r"[A-Za-z_]\w*", value):
        found = None if re.fullmatch("x[0-9a-f]+", name) else next((m for file in [path, *files("fabric/*.h", "sim/jobs/*.h", "base/units.h", "io/trunk/*.h")]
                     for m in re.findall(rf"^#define {name} +([^/\n]+)", text_of(file), re.M)), None)
        if found and deep < 4:
            value = re.sub(rf"\b{name}\b", str(number(found, path, deep + 1)), value)
    if not re.fullmatch(r"[0-9a-fx()*/+<\- ]+", value):
        raise Mistake(f"{path}: found {expression}, expected a constant whose value the sources say")
    return int(eval(value))  # pylint: disable=eval-used


def in_units(kind, v):
    return next((f"{v / size:g} {name}" for name, size in UNITS[kind] if v >= size), "0") if kind in UNITS else f"{v:,}"


def range_of(kind, low, high):
    return f"{in_units(kind, low)} to {in_units(kind, high)}" if low or high else ""


def arguments(text):
    """What stands between commas, up to the bracket that closes before any opens."""
    depth, parts = 0, [""]
    for letter in text:
        depth += (letter in "({") - (letter in ")}")
        if depth < 0:
            break
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def names_of(choice, path):
    """The names that a choice takes, as its array of the sources has them."""
    found = next((m for file in [path, *files("fabric/conf/*.c")] for m in re.findall(rf"\b{choice}\[\] = {{([^}}]*)}}", text_of(file))), None)
    if found is None:
        raise Mistake(f"{path}: found no array {choice}, expected the names that a key takes")
    return ", ".join(f"`{name}`" for name in re.findall(r'"[^"]*"', found))


def meaning_of(path, key, comment):
    """The meaning of a key, and its default as far as the comment says it."""
    if not comment:
        raise Mistake(f"{path}: found {key} without a comment before its row, expected its meaning")
    text = re.sub(r"\s*\n\s*\*?\s*", " ", comment.strip())
    text, _, default = re.fullmatch(r"(.*?)((?:^| )(?:Default: )?((?:(?<=Default: )|Needed).*))?", text).groups()
    default = default or ""
    return text.rstrip(".").strip(), (default[:1].lower() + default[1:]).rstrip(".") if default.startswith("Needed") else re.sub(r"(?<!\.)\.$", "", default)


def default_of(initial):
    """A default as a conf has it: numbers and truths without quotes."""
    text = initial.strip('"')
    return f"`{text}`" if re.fullmatch(r"[\d.]+|true|false", text) else f'`"{text}"`'


def key_row(path, row, rest):
    """[key, value, default, meaning] of a row of a table; rest: its arguments behind the name."""
    comment, macro, key = row.groups()
    meaning, default = meaning_of(path, key, comment)
    if macro == "RANGE_KEY":
        kind, _, low, high, initial = rest
        value = "" if low == "least" else range_of(kind, number(low, path), number(high, path))
    elif macro == "PLAIN_KEY":
        kind, _, initial = rest
        value = VALUES[kind]
    elif macro == "CHOICE_KEY":
        _, names, initial = rest
        value = names_of(names, path)
    else:
        value, initial = "", rest[0] if rest else "NULL"
    if initial != "NULL":
        if default:
            raise Mistake(f"{path}: found the default of {key} in its row and in its comment, expected it once")
        default = default_of(initial)
    return [f"`{key}`", value, default, meaning]


@functools.lru_cache(maxsize=None)
def key_tables():
    """What each table is of, and its rows, in the order of KEYS."""
    tables = {}
    for path, of in KEYS.items():
        source = text_of(path)
        for comment, macro, text in re.findall(rf"{COMMENT}\n#define ([A-Z_]+_KEY) ([^\n]*)\n", source):
            source = re.sub(rf"(?<!define )\b{macro}(?=,)", lambda _, row=f"/*{comment}*/ {text}": row, source)
        bodies = re.findall(r"struct key \w+\[[^\]]*\] = \{(.*?)\};", source, re.S)
        if len(bodies) != len(of):
            raise Mistake(f"{path}: found {len(bodies)} tables of keys, expected {len(of)} as KEYS of scripts/docs_keys.py has")
        for what, body in zip(of, bodies):
            tables[what] = [key_row(path, row, arguments(body[row.end() :])[1:]) for row in KEY_ROW.finditer(body)]
    return tables


def keys(what):
    """The table of one group of keys, for the page that explains it."""
    tables = key_tables()
    if what not in tables:
        raise Mistake(f"found keys of {what}, expected one of: {', '.join(tables)}")
    return table(["key", "value", "default", "meaning"], tables[what])


def conf_keys(_):
    return table(["of", "key", "value", "default"], [[what, *row[:3]] for what, rows in key_tables().items() for row in rows])


def mistaken_keys(pages):
    """Tables of keys that no page has, keys that are read and in no table, and keys that are in a table and that nothing reads."""
    everything = "\n".join(pages.values())
    try:
        tables = key_tables()
    except Mistake as mistake:
        yield str(mistake)
        return
    known = {row[0].strip("`") for rows in tables.values() for row in rows}
    for what in tables:
        if f"<!-- from: keys {what} -->" not in everything:
            yield f"keys of {what}: no page has them, expected <!-- from: keys {what} -->"
    sources = {path: text_of(path) for path in files("fabric/conf/*.c", "sim/jobs/jobs_conf*.c")}
    code = "\n".join(re.sub(r'OWN_KEY(?:_FROM)?\("\w+"', "", text) for text in sources.values())
    for path, text in sources.items():
        for key in sorted(set(READ.findall(text)) - known - ALONE):
            yield f"{path}: found {key}, which is read and in no table of keys"
        for key in re.findall(r'OWN_KEY(?:_FROM)?\("(\w+)"', text):
            if f'"{key}"' not in code:
                yield f"{path}: found {key} in a table of keys, which nothing reads"
