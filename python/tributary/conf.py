# SPDX-License-Identifier: BSD-3-Clause
"""A fabric's conf file as an object: read, made from a template, changed, written.

>>> c = Conf.load("leaf-spine-8", name="slow-spines")
>>> c["spine_link"]["rate"] = "200Gb/s"
>>> c.write("slow-spines.conf")

Groups are dicts, libconfig's lists "( )" tuples and its arrays "[ ]" lists; a list of groups is written as a libconfig list.
docs/confs.md has the keys. Comments of a file are not kept.
"""

from __future__ import annotations

import io
import os
import re
import tempfile
from pathlib import Path
from typing import Any, Iterator, Mapping, MutableMapping, Optional

from . import _secret
from ._files import write_whole
from ._input import WrongFile, shown, text_of
from ._trib import PathLike, need, no_such_file, output, shipped

_LINK = {"rate": "400Gb/s", "latency": "300ns"}
_REDUCE = {"groups": 64, "slots": 16384, "window": 256}
# Of each template: its groups, and in each the keys with their defaults.
TEMPLATES: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "leaf-spine": {
        "leaf_spine": {
            "leaves": 2,
            "spines": 2,
            "hosts_per_leaf": 4,
            "host_link": _LINK,
            "spine_link": _LINK,
        }
    },
    "single-switch": {"single_switch": {"hosts": 4, "host_link": _LINK}},
    "full-mesh": {"full_mesh": {"hosts": 4, "host_link": _LINK}},
    "gpu-node": {
        "gpu_nodes": {
            "nodes": 1,
            "gpus": 8,
            "planes": (5, 4, 4, 5),
            "nvlink": {"rate": "25GB/s", "latency": "300ns"},
        }
    },
    "rails": {
        "gpu_nodes": {
            "nodes": 4,
            "gpus": 8,
            "planes": (5, 4, 4, 5),
            "nvlink": {"rate": "25GB/s", "latency": "300ns"},
            "nic": _LINK,
        },
        "rails": {"leaves": 8, "spines": 4, "spine_link": _LINK},
    },
}
# Keys of a template's groups that have no default here (docs/confs.md).
_MORE = {"gpu_nodes": ("multimem",), "rails": ("unit", "pods", "cores", "core_groups", "core_link")}


def _plain(value: Any) -> Any:
    """A copy of dicts, tuples and lists alone; a list that has groups or lists in it becomes a tuple, libconfig's list."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        items = [_plain(v) for v in value]
        nested = any(isinstance(v, (dict, list, tuple)) for v in items)
        return tuple(items) if nested or isinstance(value, tuple) else items
    return value


MOST_BYTES = 64 << 20  # of a conf, as trib reads it
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,30}", re.ASCII)


def checked_name(name: object) -> str:
    """A fabric's name, which becomes one of a file. ValueError: it is none, as trib says it too."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(
            f"name: found {shown(repr(name))[:80]}, expected a name of 1 to 31 letters, digits, '_', '.' or '-' that begins with a letter or digit"
        )
    return name


def default_name(path: Path) -> str:
    """The name of a fabric whose conf has none: its file's stem, as trib makes a name of it."""
    stem = path.name.rpartition(".")[0] or path.name
    name = re.sub(r"[^A-Za-z0-9_.-]", "-", stem[:31])
    return name if not name or name[0].isalnum() else "f" + name[1:]


def libconfig(groups: Mapping[str, Any]) -> str:
    """The libconfig text of a dict: of a fault plan, a workload or jobs as well as of a fabric."""
    out = io.StringIO()
    need("libconf", "python3-libconf").dump(_plain(groups), out)
    return out.getvalue()


class Conf(MutableMapping[str, Any]):
    """A fabric's conf. A key is a path, or the end of one where one key only has that: "spine_link.rate" for
    "leaf_spine.spine_link.rate". A new key without a dot is a setting of the file."""

    def __init__(self, groups: Optional[Mapping[str, Any]] = None, **settings: Any) -> None:
        self.groups: dict[str, Any] = _plain({**(groups or {}), **settings})

    @classmethod
    def load(cls, source: PathLike, **settings: Any) -> Conf:
        """A conf from a path, or one that comes with trib by its name ("leaf-spine-8"); settings replace its own.

        FileNotFoundError: there is none. ValueError: it is not libconfig, or includes another file, as trib takes none.
        """
        path = Path(source)
        if not path.is_file():
            found = shipped(os.fspath(source))
            if found is None:
                raise no_such_file(os.fspath(source))
            path = found
        conf = cls.parse(text_of(path, MOST_BYTES), str(path))
        conf.groups.setdefault("name", default_name(path))
        conf.groups.update(_plain(settings))
        return conf

    @classmethod
    def parse(cls, text: str, called: str = "text") -> Conf:
        """A conf from libconfig text. ValueError: it is none; called: its name there."""
        libconf = need("libconf", "python3-libconf")
        text = text.removeprefix("\ufeff")
        for number, line in enumerate(text.split("\n") if "@include" in text else (), 1):
            if line.strip().startswith("@include"):
                raise WrongFile(f"{shown(called)}:{number}: found @include, expected a file that is complete by itself")
        try:
            return cls(libconf.loads(text))
        except libconf.ConfigParseError as e:
            why = "a syntax error, which is not shown, since the file has a secret" if _secret.named(text) else shown(e)[:200]
            raise WrongFile(f"{shown(called)}: found {why}, expected libconfig's name = value;") from None
        except RecursionError:
            raise WrongFile(f"{shown(called)}: found groups nested too deeply, expected a conf") from None
        except (AttributeError, KeyError, IndexError, OverflowError, TypeError, ValueError) as e:  # of libconf, of what it does not expect
            raise WrongFile(f"{shown(called)}: found no conf ({type(e).__name__}), expected libconfig's name = value;") from None

    @classmethod
    def template(cls, template: str, **keys: Any) -> Conf:
        """A fabric from a template: "leaf-spine", "single-switch", "full-mesh", "gpu-node", "rails".

        keys  of the template (leaves=4), where a link is changed by a dict of some of its keys
              (spine_link={"rate": "200Gb/s"}); all others are settings (name=, mtu=, ecmp=, reduce=, costs=)
        """
        groups = TEMPLATES.get(template)
        if groups is None:
            raise ValueError(f"found the template {template!r}, expected one of {', '.join(TEMPLATES)}")
        made: dict[str, Any] = {"name": template, "mtu": 4096, "ecmp": "balanced", "reduce": _REDUCE}
        for group, defaults in groups.items():
            made[group] = dict(defaults)
            for key in [k for k in keys if k in defaults or k in _MORE.get(group, ())]:
                value = keys.pop(key)
                old = defaults.get(key)
                made[group][key] = {**old, **value} if isinstance(old, dict) and isinstance(value, dict) else value
        return cls({**made, **keys})

    def _paths(self) -> Iterator[tuple[str, dict[str, Any], str]]:
        """Path, group and name of every key, those inside of lists left out."""
        todo: list[tuple[str, dict[str, Any]]] = [("", self.groups)]
        while todo:
            before, group = todo.pop(0)
            for name, value in group.items():
                yield before + name, group, name
                if isinstance(value, dict):
                    todo.append((before + name + ".", value))

    def _find(self, key: str) -> Optional[tuple[dict[str, Any], str]]:
        """The group and the name that a key means; None: there is none. KeyError: there are several."""
        found = [f for f in self._paths() if f[0] == key] or [
            f for f in self._paths() if f[0].endswith("." + key)
        ]
        if len(found) > 1:
            raise KeyError(f"found {key!r}, expected one key, which has {', '.join(f[0] for f in found)}")
        return found[0][1:] if found else None

    def _missing(self, key: str) -> KeyError:
        return KeyError(f"found {key!r}, expected one of {', '.join(p[0] for p in self._paths())}")

    def __getitem__(self, key: str) -> Any:
        found = self._find(key)
        if found is None:
            raise self._missing(key)
        return found[0][found[1]]

    def __setitem__(self, key: str, value: Any) -> None:
        found = self._find(key)
        if found is None and "." in key:
            parent, name = key.rsplit(".", 1)
            group = self._find(parent)
            inner = group and group[0][group[1]]
            if not isinstance(inner, dict):
                raise self._missing(parent)
            found = (inner, name)
        group_of, last = found or (self.groups, key)
        group_of[last] = _plain(value)

    def __delitem__(self, key: str) -> None:
        found = self._find(key)
        if found is None:
            raise self._missing(key)
        del found[0][found[1]]

    def __iter__(self) -> Iterator[str]:
        return iter(self.groups)

    def __len__(self) -> int:
        return len(self.groups)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Conf) and self.groups == other.groups

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Conf({_secret.hidden(self.groups)!r})"

    @property
    def name(self) -> str:
        """The fabric's name, and the stem of its file's."""
        return str(self.groups.get("name", "fabric"))

    def copy(self, **settings: Any) -> Conf:
        """A copy with other settings, for which name= is a good one."""
        return Conf(self.groups, **settings)

    def text(self) -> str:
        """As libconfig."""
        return libconfig(self.groups)

    def write(self, path: PathLike) -> Path:
        """Writes the text to a file, as a whole or not at all; one with a secret for its owner alone."""
        to = Path(path)
        write_whole(to, self.text(), 0o600 if _secret.has(self.groups) else None)
        return to

    def write_into(self, folder: Path) -> Path:
        """Writes it to a folder under its own name. ValueError: the name is none."""
        return self.write(folder / f"{checked_name(self.name)}.conf")

    def plan(self, *options: str) -> str:
        """What ``trib plan`` prints of it. TribError: every mistake, by line of ``text()``."""
        with tempfile.TemporaryDirectory(prefix="trib-") as folder:
            return output(["plan", *options, str(self.write_into(Path(folder)))])
