# SPDX-License-Identifier: BSD-3-Clause
"""The keys that conf files take, with their ranges, read from the tables of keys in the sources (struct key of fabric/build.h)."""

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
KEY_ROW = re.compile(r'(?:\{|OWN_KEY\(|PLAIN_KEY\()\s*"(\w+)"')
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


def key_rows(path, body):
    for row in KEY_ROW.finditer(body):
        _, kind, _, low, high = (arguments(body[row.end() :]) + ["KEY_OWN", "0", "0", "0"])[:5] if "OWN" not in row[0] else ["", "KEY_OWN", "", "", ""]
        if kind in VALUES:
            yield row[1], VALUES[kind]
        else:
            yield row[1], "" if low == "least" else range_of(kind, number(low, path), number(high, path))


def conf_keys(_):
    rows = []
    for path, of in KEYS.items():
        source = text_of(path)
        for macro in set(re.findall(r"\b([A-Z_]+_KEYS?)(?=[,}])", source)):
            text = next(m for file in [path, *files("sim/jobs/*.h")] for m in re.findall(rf"#define {macro}\b((?:[^\n]*\\\n)*[^\n]*\n)", text_of(file)))
            text = text.replace("\\\n", "\n")
            source = re.sub(rf"(?<!define )\b{macro}\b", lambda _, text=text: text, source, count=1 if macro.endswith("S") else 0)
        tables = re.findall(r"struct key \w+\[[^\]]*\] = \{(.*?)\};", source, re.S)
        if len(tables) != len(of):
            raise Mistake(f"{path}: found {len(tables)} tables of keys, expected {len(of)} as KEYS of scripts/docs_keys.py has")
        for what, body in zip(of, tables):
            rows += [[what, f"`{name}`", value] for name, value in key_rows(path, body)]
    return table(["of", "key", "accepted"], rows)
