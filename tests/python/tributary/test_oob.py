# SPDX-License-Identifier: BSD-3-Clause
"""Stores by which ranks meet, and their library: where it is looked for, which calls are declared, and what is said where one is missing."""
import contextlib
import ctypes as c
import errno
import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from tributary import _lib, _oob


class Lib:
    def __init__(self):
        self.calls, self.rc, self.why = [], 0, b""

    def __getattr__(self, name):
        def call(*args):
            self.calls.append((name, *(a.value if hasattr(a, "value") else a for a in args)))
            if name == "trib_store_oob":
                args[1]._obj.rank, args[1]._obj.size = 3, 8
                return None
            if name in ("trib_store_open", "trib_store_pmix") and not self.rc:
                args[0]._obj.value = 77
            if self.rc:
                args[-1].value = self.why
            return self.rc

        return call


class Stores(unittest.TestCase):
    def setUp(self):
        self.lib = Lib()
        patch = mock.patch.object(_lib, "load", lambda: self.lib)
        patch.start()
        self.addCleanup(patch.stop)

    def test_a_store_is_opened_and_closed_once(self):
        store = _oob.Store("a:1", 2, 4, 7.5)
        self.assertEqual((self.lib.calls[0][0], self.lib.calls[0][2:]), ("trib_store_open", (b"a:1", 2, 4, 7.5, b"")))
        self.assertEqual((store.rank, store.size, store._oob().size), (2, 4, 8))
        self.assertEqual(self.lib.calls[1][:2], ("trib_store_oob", 77))
        store.close()
        store.close()
        self.assertEqual([x[0] for x in self.lib.calls], ["trib_store_open", "trib_store_oob", "trib_store_close"])
        self.assertEqual(self.lib.calls[2][1], 77)
        _oob.Store("a:1", 2, 4)
        self.assertEqual(self.lib.calls[3][-2], 30)

    def test_a_launcher_says_rank_and_size(self):
        store = _oob.PmixStore(9.0)
        self.assertEqual((store.rank, store.size, self.lib.calls[0][0], self.lib.calls[0][2:]), (3, 8, "trib_store_pmix", (9.0, b"")))
        _oob.PmixStore()
        self.assertEqual(self.lib.calls[2][2], 30)

    def test_a_store_that_cannot_be_opened_says_why(self):
        self.lib.rc = -errno.EINVAL
        for why, says in ((b"no secret", "no secret"), (b"", "Invalid argument")):
            self.lib.why = why
            for call in (lambda: _oob.Store("a:1", 0, 1), _oob.PmixStore):
                with self.assertRaises(_oob.Error) as e:
                    call()
                self.assertEqual((str(e.exception), e.exception.errno), (says, errno.EINVAL))


class Library(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = Path(folder.name).resolve()
        patch = mock.patch.dict(os.environ)
        patch.start()
        self.addCleanup(patch.stop)
        for name in ("TRIB_LIB", "TRIB_BUILD"):
            os.environ.pop(name, None)
        _lib.load.cache_clear()
        self.addCleanup(_lib.load.cache_clear)

    def places(self, here, **env):
        with mock.patch.object(_lib, "__file__", str(self.top / here)), mock.patch.dict(os.environ, env):
            return [str(p).replace(str(self.top), "TOP") for p in _lib._places()]

    def test_the_library_is_looked_for_where_the_user_says_first(self):
        name = "libtributary.so.1"
        checkout, installed = "r/python/tributary/_lib.py", "p/lib/python3/dist-packages/tributary/_lib.py"
        self.assertEqual(self.places(checkout), [f"TOP/r/build/{name}"])
        self.assertEqual(self.places(installed), [f"TOP/p/lib/{name}"])
        (self.top / "d").mkdir()
        (self.top / "d" / "libtribverbs.so").touch()
        for lib, found in (
            (f"{self.top}/x/libtributary.so", ["TOP/x/libtributary.so"]), (f"{self.top}/d", [f"TOP/d/{name}", f"TOP/{name}"]), (f"{self.top}/d/libtribverbs.so", [f"TOP/d/{name}", f"TOP/{name}"]),
        ):  # fmt: skip
            self.assertEqual(self.places(checkout, TRIB_LIB=lib, TRIB_BUILD="/b"), [*found, f"/b/{name}", f"TOP/r/build/{name}"])

    def test_the_first_that_is_there_is_loaded_with_its_prototypes(self):
        loaded, made = [], mock.Mock()
        there = self.top / "there"
        there.touch()
        with mock.patch.object(_lib, "_places", lambda: [self.top / "none", there]), mock.patch.object(_lib.c, "CDLL", lambda path: (loaded.append(path), made)[1]):
            self.assertIs(_lib.load(), made)
            self.assertIs(_lib.load(), made)
        self.assertEqual(loaded, [str(there)])
        self.assertEqual((made.trib_wait_for.restype, made.trib_wait_for.argtypes), (c.c_int, (c.c_void_p, c.c_double)))
        self.assertEqual((made.trib_time_ps.restype, made.trib_time_ps.argtypes, made.trib_free.restype), (c.c_int64, (), None))

    def test_what_cannot_be_loaded_says_where_it_was_looked_for(self):
        none = [self.top / "a", self.top / "b"]
        with mock.patch.object(_lib, "_places", lambda: none), mock.patch.object(_lib.c, "CDLL", mock.Mock(side_effect=OSError("no file"))):
            with self.assertRaises(OSError) as e:
                _lib.load()
        self.assertEqual(str(e.exception), (
            f"cannot load libtributary.so.1: no file; looked for {none[0]}, {none[1]} and where the system's loader looks (run make, or name its folder in TRIB_LIB)"
        ))  # fmt: skip
        with mock.patch.object(_lib, "_places", lambda: []), mock.patch.object(_lib.c, "CDLL", lambda path: mock.Mock(spec=["trib_coll_version"])):
            with self.assertRaises(OSError) as e:
                _lib.load()
        self.assertEqual(str(e.exception), f"libtributary.so.1 has no trib_store_open: it is older than this package, {Path(_lib.__file__).parent}")


class Calls(unittest.TestCase):
    def test_an_exception_does_not_cross_c(self):
        oob = mock.Mock(rank=0, size=2, barrier=mock.Mock(side_effect=[KeyboardInterrupt("first"), ValueError("second"), None]))
        calls = _oob.OobCalls(oob)
        with contextlib.suppress(KeyboardInterrupt):
            self.assertEqual([calls.struct.barrier(None) for _ in range(3)], [-1, -1, 0])
        self.assertEqual((calls.struct.rank, calls.struct.size, str(calls.error)), (0, 2, "first"))


if __name__ == "__main__":
    unittest.main()
