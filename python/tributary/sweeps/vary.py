# SPDX-License-Identifier: BSD-3-Clause
"""--vary: a conf for each combination of values of its keys, and the list of their simulations."""

from __future__ import annotations

import getopt
import itertools
import os
import re
import stat
import subprocess
from typing import NamedTuple, Sequence

from .. import _secret
from .._conf_text import Conf
from .._files import discard, write_whole
from .._input import WrongFile, shown, text_of
from .._trib import trib
from ..conf import MOST_BYTES
from .files import base_of


class Varied(NamedTuple):
    path: str  # of a key
    values: list[str]


def keys_of(conf: Conf) -> list[str]:
    """Paths of the keys with a value: no group, list or array, and none that is in a list."""
    return sorted(path for path, (begin, _) in conf.at.items() if conf.text[begin] not in "([{")


def key_of(conf: Conf, key: str, called: str) -> str:
    """The path of the key that is meant. GetoptError: there is none, or several."""
    paths = keys_of(conf)
    found = [p for p in paths if p == key or p.endswith("." + key)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise getopt.GetoptError(f'--vary: found "{shown(key)}", expected a key that {shown(called)} has: {" ".join(paths)}')
    raise getopt.GetoptError(f'--vary: found "{shown(key)}", expected one key of {shown(called)}, which has {" ".join(found)}')


def varied_of(conf: Conf, words: Sequence[str], called: str) -> list[Varied]:
    """Of KEY=VALUE,... each. GetoptError: one is none."""
    found: list[Varied] = []
    for word in words:
        key, _, text = word.partition("=")
        if not key or not text:
            raise getopt.GetoptError(f'--vary: found "{shown(word)}", expected KEY=VALUE,...')
        path = key_of(conf, key, called)
        if path in (v.path for v in found):
            raise getopt.GetoptError(f"--vary: found {path} twice, expected each key once")
        values = text.removesuffix(",").split(",")
        for value in values:
            if not value or re.search(r'["\\]', value):
                raise getopt.GetoptError(f'--vary: found the value "{shown(value)}" of {path}, expected one without " and \\')
        found.append(Varied(path, values))
    return found


def with_value(conf: Conf, path: str, value: str) -> Conf:
    """A text stays one."""
    return conf.set(path, f'"{value}"' if conf.text[conf.at[path][0]] == '"' else value, None)


def confs_of(conf: Conf, varied: Sequence[Varied]) -> list[tuple[str, str]]:
    """(what follows the conf's name, text) of each combination, the last key fastest."""
    out = []
    for values in itertools.product(*(v.values for v in varied)):
        name, made = "", conf
        for key, value in zip(varied, values):
            name += f",{key.path}={re.sub('[^A-Za-z0-9.]', '_', value)}"
            made = with_value(made, key.path, value)
        out.append((name, made.text))
    return out


def conf_file(word: str) -> str:
    """The file of a CONF, as trib finds it."""
    said = subprocess.run([str(trib()), "--conf-file", word], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if said.returncode:
        raise getopt.GetoptError(said.stderr.strip().removeprefix("trib: "))
    return said.stdout.rstrip("\n")


def _is_one_word(text: str) -> bool:
    return not re.search(r"[\s\x00-\x1f\x7f]", text)


def _mask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _put(path: str, text: str, mode: int) -> None:
    try:
        write_whole(path, text, mode & ~_mask())
    except OSError:
        raise getopt.GetoptError(f"cannot write {shown(path)}") from None


def _same(path: str, text: str) -> bool:
    try:
        return text_of(path, MOST_BYTES) == text
    except (OSError, WrongFile):
        return False


def make(folder: str, called: str, words: Sequence[str], args: Sequence[str]) -> list[str]:
    """Writes the confs and their list; the paths that were varied. Results of another conf by a name are removed: they are none."""
    file = conf_file(called)
    if not _is_one_word(folder):
        raise getopt.GetoptError(f"found the directory {shown(folder)}, expected one without spaces")
    if not _is_one_word(os.path.basename(called)):
        raise getopt.GetoptError(f"found the conf {shown(called)}, expected a name without spaces: it becomes a word of a list")
    conf = Conf(text_of(file, MOST_BYTES))
    varied = varied_of(conf, words, called)
    if _secret.named(conf.text):
        os.umask(0o077)
    make_folder(folder)
    stem, lines = os.path.basename(called.removesuffix(".conf")), []
    mode = stat.S_IMODE(os.stat(file).st_mode) & 0o777
    for number, (name, text) in enumerate(confs_of(conf, varied)):
        path = os.path.join(folder, f"{stem}{name}.conf")
        if not _same(path, text):
            discard(base_of(folder, number) + ".json")
        _put(path, text, mode)
        lines.append(" ".join([path, *args]))
    _put(os.path.join(folder, "keys"), "".join(v.path + "\n" for v in varied), 0o666)
    _put(os.path.join(folder, "list"), "".join(line + "\n" for line in lines), 0o666)
    return [v.path for v in varied]


def values_in(file: str, paths: Sequence[str]) -> list[str]:
    """What a conf has at these paths."""
    conf = Conf(text_of(file, MOST_BYTES))
    return [value for value in map(conf.get, paths) if value is not None]


def make_folder(folder: str) -> None:
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError:
        raise getopt.GetoptError(f"cannot make {shown(folder)}") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise getopt.GetoptError(f"cannot write to {shown(folder)}")
