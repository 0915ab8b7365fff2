# SPDX-License-Identifier: BSD-3-Clause
"""Finds and loads libtributary.so.1, and declares what is called of it (tributary/coll.h)."""

from __future__ import annotations

import ctypes as c
import functools
import os
from pathlib import Path

NAME = "libtributary.so.1"
TEXT = 256  # TRIB_TEXT, bytes of a reason

Bcast = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_void_p, c.c_size_t, c.c_uint32)
Gather = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_uint32, c.c_void_p, c.c_void_p, c.c_size_t)
Barrier = c.CFUNCTYPE(c.c_int, c.c_void_p)


class OobStruct(c.Structure):
    """struct trib_oob"""

    _fields_ = [
        ("ctx", c.c_void_p),
        ("rank", c.c_uint32),
        ("size", c.c_uint32),
        ("bcast", Bcast),
        ("gather", Gather),
        ("barrier", Barrier),
    ]


class OptionsStruct(c.Structure):
    """struct trib_comm_options"""

    _fields_ = [("algo", c.c_char_p), ("window", c.c_uint32)]


_P, _SIZE, _U32, _INT = c.c_void_p, c.c_size_t, c.c_uint32, c.c_int
_TAIL = (c.POINTER(_P), c.c_char_p)  # struct trib_request **req, char *err
_PROTOTYPES: dict[str, tuple[object, tuple[object, ...]]] = {
    "trib_coll_version": (c.c_uint, ()),
    "trib_store_open": (_INT, (c.POINTER(_P), c.c_char_p, _U32, _U32, c.c_double, c.c_char_p)),
    "trib_store_pmix": (_INT, (c.POINTER(_P), c.c_double, c.c_char_p)),
    "trib_store_oob": (None, (_P, c.POINTER(OobStruct))),
    "trib_store_close": (None, (_P,)),
    "trib_comm_create": (
        _INT,
        (c.POINTER(_P), c.POINTER(OobStruct), c.POINTER(OptionsStruct), c.c_char_p),
    ),
    "trib_comm_destroy": (None, (_P,)),
    "trib_comm_error": (c.c_char_p, (_P,)),
    "trib_comm_trees": (c.c_uint, (_P, c.c_char_p)),
    "trib_comm_fell_back": (c.c_char_p, (_P,)),
    "trib_register": (_INT, (_P, _SIZE)),
    "trib_deregister": (_INT, (_P,)),
    "trib_all_reduce": (_INT, (_P, _P, _P, _SIZE, _INT, _INT, *_TAIL)),
    "trib_reduce": (_INT, (_P, _P, _P, _SIZE, _INT, _INT, _U32, *_TAIL)),
    "trib_reduce_scatter": (_INT, (_P, _P, _P, _SIZE, _INT, _INT, *_TAIL)),
    "trib_broadcast": (_INT, (_P, _P, _SIZE, _INT, _U32, *_TAIL)),
    "trib_all_gather": (_INT, (_P, _P, _P, _SIZE, _INT, *_TAIL)),
    "trib_gather": (_INT, (_P, _P, _P, _SIZE, _INT, _U32, *_TAIL)),
    "trib_scatter": (_INT, (_P, _P, _P, _SIZE, _INT, _U32, *_TAIL)),
    "trib_all_to_all": (_INT, (_P, _P, _P, _SIZE, _INT, *_TAIL)),
    "trib_barrier": (_INT, (_P, *_TAIL)),
    "trib_test": (_INT, (_P,)),
    "trib_wait_for": (_INT, (_P, c.c_double)),
    "trib_free": (None, (_P,)),
    "trib_progress": (None, (_P,)),
    "trib_request_algo": (c.c_char_p, (_P,)),
    "trib_time_ps": (c.c_int64, ()),
}


def _places() -> list[Path]:
    """Paths at which the library may be, in order: what the user says, then where we come from."""
    here = Path(__file__).resolve()
    places: list[Path] = []
    lib = os.environ.get("TRIB_LIB")
    if lib:
        at = Path(lib)
        if at.name.startswith("libtributary"):
            places.append(at)
        else:  # a folder, or libtribverbs.so in it, as `trib` takes it
            folder = at.parent if at.is_file() else at
            places += [folder / NAME, folder.parent / NAME]
    build = os.environ.get("TRIB_BUILD")
    if build:
        places.append(Path(build) / NAME)
    if here.parent.parent.name == "python":
        places.append(here.parents[2] / "build" / NAME)  # a checkout
    else:
        places.append(here.parents[3] / NAME)  # PREFIX/lib/python3/dist-packages/tributary
    return places


@functools.lru_cache(maxsize=None)
def load() -> c.CDLL:
    """The library with its prototypes; loaded once. OSError: says where it was looked for."""
    places = _places()
    found = next((str(p) for p in places if p.is_file()), NAME)
    try:
        library = c.CDLL(found)
    except OSError as e:
        raise OSError(
            f"cannot load {found}: {e}; looked for {', '.join(map(str, places))} and where the "
            "system's loader looks (run make, or name its folder in TRIB_LIB)"
        ) from None
    for name, (result, arguments) in _PROTOTYPES.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise OSError(
                f"{found} has no {name}: it is older than this package, {Path(__file__).parent}"
            ) from None
        function.restype, function.argtypes = result, arguments
    return library
