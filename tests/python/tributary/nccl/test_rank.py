# SPDX-License-Identifier: BSD-3-Clause
"""What a rank measures and says, the libraries' calls that it makes, and what is found of the machine; no library is loaded."""
import array
import contextlib
import ctypes
import io
import json
import os
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from tributary.nccl import libraries, needs, rank
from tributary.nccl.libraries import Cuda, Failed, Nccl


def value(arg):
    return arg.value if hasattr(arg, "value") else arg


class Function:
    def __init__(self, lib, name):
        self.lib, self.name = lib, name

    def __call__(self, *args):
        self.lib.calls.append((self.name, *args))
        answer = self.lib.answers.get(self.name, 0)
        return answer(*args) if callable(answer) else answer


class Lib:
    """Functions by name that only note their calls; those without are missing."""

    def __init__(self, without=(), **answers):
        self.calls, self.answers, self.without, self.functions = [], answers, without, {}

    def __getattr__(self, name):
        if name in self.__dict__["without"]:
            raise AttributeError(name)
        return self.functions.setdefault(name, Function(self, name))


def put(n):
    def call(at, *_):
        at._obj.value = n
        return 0

    return call


class Libraries(unittest.TestCase):
    def cuda(self, **answers):
        self.lib = Lib(**answers)
        with mock.patch.object(ctypes, "CDLL", lambda name: self.assertEqual(name, "libcuda.so.1") or self.lib):
            return Cuda()

    def nccl(self, without=(), **answers):
        self.lib = Lib(without, **answers)
        with mock.patch.object(ctypes, "CDLL", lambda name: self.assertEqual(name, "l.so") or self.lib):
            return Nccl("l.so")

    def called(self):
        found = [(c[0], *(value(a) for a in c[1:])) for c in self.lib.calls]
        self.lib.calls.clear()
        return found

    def failed(self, says, call, *args):
        with self.assertRaises(Failed) as e:
            call(*args)
        self.assertEqual(str(e.exception), says)

    def test_the_driver_s_calls(self):
        cuda = self.cuda(cuDeviceGetCount=put(3), cuMemAlloc_v2=put(0x1000), cuDevicePrimaryCtxRetain=put(9), cuDeviceGet=put(4))
        self.assertEqual(self.called(), [("cuInit", 0)])
        self.assertEqual((cuda.gpus(), cuda.name(1)), (3, ""))
        self.assertEqual([c[0] for c in self.lib.calls], ["cuDeviceGetCount", "cuDeviceGetName"])
        self.assertEqual((len(self.lib.calls[1][1]), self.lib.calls[1][2:]), (128, (128, 1)))
        self.lib.calls.clear()
        cuda.use(2)
        self.assertEqual((self.lib.calls[0][2], self.lib.calls[1][2].value, self.lib.calls[2][1].value), (2, 4, 9))
        self.assertEqual([c[0] for c in self.lib.calls], ["cuDeviceGet", "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent"])
        self.lib.calls.clear()
        memory = cuda.allocate(64)
        self.assertEqual((memory.value, self.lib.calls[0][2].value), (0x1000, 64))
        stream = cuda.stream()
        self.assertEqual((self.lib.calls[1][0], self.lib.calls[1][2].value), ("cuStreamCreate", 1))
        self.lib.calls.clear()
        host = cuda.staging(16)
        self.assertEqual((len(host), self.called()[0][2:]), (16, (16, 0)))
        cuda.copy(memory, host, 8, stream)
        self.assertEqual(self.called(), [("cuMemcpyAsync", 0x1000, ctypes.addressof(host), 8, None), ("cuStreamSynchronize", None)])

    def test_failures_have_the_driver_s_word(self):
        def name_of(_status, at):
            at._obj.value = b"CUDA_ERROR_X"
            return 0

        cuda = self.cuda(cuDeviceGetCount=2, cuGetErrorName=name_of)
        self.failed("cuDeviceGetCount: CUDA_ERROR_X", cuda.gpus)
        cuda = self.cuda(cuDeviceGetCount=2, cuGetErrorName=1)
        self.failed("cuDeviceGetCount: error 2", cuda.gpus)
        cuda = self.cuda(cuDeviceGetCount=2)
        self.failed("cuDeviceGetCount: error 2", cuda.gpus)
        for call, says in ((Cuda, "no CUDA driver: no file"), (lambda: Nccl("l.so"), "no NCCL: no file")):
            with mock.patch.object(ctypes, "CDLL", mock.Mock(side_effect=OSError("no file"))):
                self.failed(says, call)

    def test_nccl_s_calls(self):
        for number, version in ((22703, (2, 27, 3)), (21005, (2, 10, 5)), (2804, (2, 8, 4)), (10000, (1, 0, 0)), (9999, (9, 9, 99))):
            self.assertEqual(self.nccl(ncclGetVersion=put(number)).version(), version)
        nccl = self.nccl()
        self.assertEqual(nccl.new_id(), bytes(128))
        self.lib.calls.clear()
        nccl.join(b"x" * 128, 3, 4)
        call = self.lib.calls.pop()
        self.assertEqual((call[0], call[1]._obj is nccl.comm, call[2], bytes(call[3]), call[4]), ("ncclCommInitRank", True, 4, b"x" * 128, 3))
        nccl.all_reduce(1, 2, 5, 6)
        nccl.leave()
        self.assertEqual([c[:-2] for c in self.lib.calls[:1]], [("ncclAllReduce", 1, 2, 5, 7, 0)])
        self.assertEqual((self.lib.calls[0][-2:], self.lib.calls[1]), ((nccl.comm, 6), ("ncclCommDestroy", nccl.comm)))
        p, i = ctypes.c_void_p, ctypes.c_int
        self.assertEqual(self.lib.ncclCommInitRank.argtypes, (p, i, libraries.NcclId, i))
        self.assertEqual(self.lib.ncclAllReduce.argtypes, (p, p, ctypes.c_size_t, i, i, p, p))
        self.assertEqual((self.lib.ncclGetErrorString.restype, self.lib.ncclGetLastError.restype), (ctypes.c_char_p,) * 2)
        self.assertEqual((self.lib.ncclGetLastError.argtypes, self.lib.ncclCommDestroy.argtypes), ((p,), (p,)))

    def test_failures_have_nccl_s_words(self):
        for last, says in ((b" more \n", "ncclGetVersion: bad; more"), (None, "ncclGetVersion: bad"), (b"", "ncclGetVersion: bad")):
            self.failed(says, self.nccl(ncclGetVersion=5, ncclGetErrorString=b"bad", ncclGetLastError=last).version)
        self.failed("l.so: found no ncclAllReduce, expected NCCL's library", self.nccl, ("ncclAllReduce",))


class Needs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = Path(folder.name).resolve()
        for where, name, instead in ((needs, "trib", lambda: self.top / "scripts" / "trib"), (sys, "path", ["/none", str(self.top)])):
            patch = mock.patch.object(where, name, instead)
            patch.start()
            self.addCleanup(patch.stop)
        patch = mock.patch.dict(os.environ)
        patch.start()
        self.addCleanup(patch.stop)
        os.environ.pop("TRIB_BUILD", None)

    def put(self, path):
        at = self.top / path
        at.parent.mkdir(parents=True, exist_ok=True)
        at.write_text("", encoding="utf-8")
        return str(at)

    def test_the_library_is_named_or_pytorch_s_or_the_loader_s(self):
        self.assertEqual(needs._nccl("x"), "x")
        with mock.patch.object(ctypes.util, "find_library", lambda name: f"lib{name}.so.9"):
            self.assertEqual(needs._nccl(None), "libnccl.so.9")
        with mock.patch.object(ctypes.util, "find_library", lambda name: None):
            self.assertEqual(needs._nccl(None), "libnccl.so.2")
        at = self.put("nvidia/nccl/lib/libnccl.so.2")
        self.assertEqual(needs._nccl(None), at)

    def test_the_plug_in_is_where_it_was_built_or_installed(self):
        name = "libnccl-net-tributary.so"
        last = str(self.top / "lib" / "tributary" / name)
        for named in (None, "/none/x.so"):
            with self.assertRaises(Failed) as e:
                needs._plugin(named)
            self.assertEqual(str(e.exception), f"no plug-in for SHARP: found no file {named or last}")
        for path in (f"lib/tributary/{name}", f"build/{name}"):
            at = self.put(path)
            self.assertEqual(needs._plugin(None), at)
        os.environ["TRIB_BUILD"] = str(self.top / "other")
        self.assertEqual(needs._plugin(None), str(self.top / "build" / name))
        at = self.put(f"other/{name}")
        self.assertEqual(needs._plugin(None), at)
        os.symlink(last, self.top / "link.so")
        self.assertEqual(needs._plugin(str(self.top / "link.so")), last)

    def find(self, own=True, sharp=True, version=(2, 27, 3), gpus=2, cuda=None, nccl=None):
        plugin = self.put("p.so") if sharp else "/none"
        made = mock.Mock(gpus=lambda: gpus)
        made.name.side_effect = lambda i: f"GPU {i}"
        with mock.patch.object(needs, "Cuda", mock.Mock(side_effect=cuda, return_value=made)):
            with mock.patch.object(needs, "Nccl", mock.Mock(side_effect=nccl, return_value=mock.Mock(version=lambda: version))):
                return needs.find("n", plugin, own, sharp), plugin

    def test_what_is_there_is_found_and_what_is_not_is_listed(self):
        found, plugin = self.find()
        self.assertEqual(found, ("n", "2.27.3", ["GPU 0", "GPU 1"], plugin))
        self.assertEqual(self.find(own=False, sharp=False, nccl=Failed("x"))[0], ("n", "", ["GPU 0", "GPU 1"], None))
        self.assertEqual(self.find(version=(2, 20, 0))[0].version, "2.20.0")
        for given, says in (
            ({"version": (2, 19, 9)}, "found NCCL 2.19.9 (n), expected 2.20 or newer"), ({"gpus": 0}, "the CUDA driver has no GPU, and NCCL needs one; all ranks may share it"),
            ({"cuda": Failed("no driver"), "nccl": Failed("no NCCL: x")}, "no NCCL: x; --nccl names another libnccl.so.2, PyTorch's package nvidia-nccl has one\n"
             "no driver; NCCL needs a GPU, which all ranks may share"),
        ):  # fmt: skip
            with self.assertRaises(needs.Missing) as e:
                self.find(**given)
            self.assertEqual(str(e.exception), says)
        with self.assertRaises(needs.Missing) as e:
            with mock.patch.object(needs, "Cuda", mock.Mock(return_value=mock.Mock(gpus=lambda: 1))):
                needs.find("n", "/none/p.so", False, True)
        self.assertEqual(str(e.exception), "no plug-in for SHARP: found no file /none/p.so")


class Ranks(unittest.TestCase):
    def test_values_are_periods_whose_sums_are_exact(self):
        self.assertEqual(len(rank.values(124, 5, 3)), 496)
        found = memoryview(rank.values(124, 5, 3)).cast("f").tolist()
        self.assertEqual(found, [5.0 + 3 * (i % 61) for i in range(124)])
        self.assertEqual(rank.values(61, 0, 1)[-4:], rank.values(122, 0, 1)[-4:])
        self.assertEqual(rank.wrong(b"abcdefgh", b"abcdefgh"), 0)
        self.assertEqual(rank.wrong(b"abcdefghijkl", b"abcxefghijkx"), 2)

    def test_the_id_is_met_in_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            meet, slept = os.path.join(folder, "id"), []
            nccl = mock.Mock(new_id=lambda: b"\x07" * 128)

            def sleep(seconds):
                slept.append(seconds)
                if len(slept) == 2:
                    self.assertEqual(rank.own_id(nccl, 0, meet), b"\x07" * 128)

            with mock.patch.object(rank.time, "sleep", sleep):
                self.assertEqual(rank.own_id(None, 1, meet), b"\x07" * 128)
            self.assertEqual(slept, [0.01, 0.01])
            with open(meet, "w", encoding="utf-8") as f:
                f.write("00ff")
            with self.assertRaises(Failed) as e:
                rank.own_id(None, 1, meet)
            self.assertEqual(str(e.exception), f"{meet}: found 2 bytes, expected NCCL's id of 128")

    def test_operations_are_timed_and_checked(self):
        log, memory, now = [], {}, [0.0]

        class Driver:
            def use(self, gpu):
                log.append(("use", gpu))

            def stream(self):
                return "stream"

            def allocate(self, size):
                memory[len(memory)] = bytearray(size)
                return len(memory) - 1

            def staging(self, size):
                return ctypes.create_string_buffer(size)

            def copy(self, to, of, size, stream):
                assert stream == "stream"
                if isinstance(to, int):
                    memory[to][:size] = of.raw[:size]
                else:
                    ctypes.memmove(to, bytes(memory[of][:size]), size)

            def synchronize(self, stream):
                now[0] += 1.0

        class Library:
            def __init__(self, path):
                log.append(("nccl", path))

            def join(self, ident, r, n):
                log.append(("join", ident, r, n))

            def all_reduce(self, send, recv, count, stream):
                log.append(("reduce", send, recv, count, stream))
                if send == recv:
                    assert bytes(memory[recv][:4]) == b"\xff" * 4  # what was there before is gone
                    return
                sums = [3 * v + 3 for v in memoryview(bytes(memory[send][: 4 * count])).cast("f")]  # ranks 0, 1, 2 of which this is 0
                data = array.array("f", sums)
                if count == 2 and len([c for c in log if c[0] == "reduce"]) > 4:
                    data[1] = 99.0
                memory[recv][: 4 * count] = data.tobytes()

            def leave(self):
                log.append("leave")

        task = {"rank": 0, "ranks": 3, "gpu": 5, "nccl": "l", "meet": "m", "sizes": [8, 16], "n": 2, "warm_up": 1}
        out = io.StringIO()
        with mock.patch.object(rank, "Cuda", Driver), mock.patch.object(rank, "Nccl", Library), mock.patch.object(rank, "own_id", lambda nccl, r, meet: (r, meet)):
            with mock.patch.object(rank.time, "perf_counter", lambda: now[0]), contextlib.redirect_stdout(out):
                self.assertEqual(rank.main(["x", json.dumps(task)]), 0)
        self.assertEqual(log[:3] + log[-1:], [("use", 5), ("nccl", "l"), ("join", (0, "m"), 0, 3), "leave"])
        self.assertEqual(log[3:-1], ([("reduce", 1, 1, 1, "stream"), ("reduce", 0, 1, 2, "stream")] * 3 + [("reduce", 1, 1, 1, "stream"), ("reduce", 0, 1, 4, "stream")] * 3))
        self.assertEqual([json.loads(line) for line in out.getvalue().splitlines()], [
            {"size": 8, "at": 0, "begin": 3.0, "end": 4.0, "wrong": 0}, {"size": 8, "at": 1, "begin": 5.0, "end": 6.0, "wrong": 1},
            {"size": 16, "at": 0, "begin": 9.0, "end": 10.0, "wrong": 0}, {"size": 16, "at": 1, "begin": 11.0, "end": 12.0, "wrong": 0},
        ])  # fmt: skip
        with mock.patch.object(rank, "Cuda", mock.Mock(side_effect=Failed("no driver"))), contextlib.redirect_stdout(out):
            self.assertEqual(rank.main(["x", "{}"]), 1)
        self.assertEqual(out.getvalue().splitlines()[-1], '{"failed": "no driver"}')


if __name__ == "__main__":
    unittest.main()
