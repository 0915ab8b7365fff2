# SPDX-License-Identifier: BSD-3-Clause
"""Calls of the library that operations become, by a library that only notes them; and how requests end."""
import array
import ctypes as c
import errno
import unittest
from unittest import mock

from tributary import _lib, coll


class Lib:
    """Notes what is called with which plain arguments."""

    def __init__(self):
        self.calls, self.rc, self.why, self.statuses, self.algo = [], 0, b"", [], b"ring"

    def __getattr__(self, name):
        def call(*args):
            plain = [a.value if isinstance(a, c.c_void_p) else a for a in args if not type(a).__name__.startswith(("CArg", "c_char_Array"))]
            self.calls.append((name[5:], *plain))
            if name == "trib_wait_for":
                return self.statuses.pop(0)
            if name in ("trib_request_algo", "trib_comm_error", "trib_comm_fell_back"):
                return {"trib_request_algo": self.algo, "trib_comm_error": b"a switch has died", "trib_comm_fell_back": b"tree 1"}[name]
            if name in ("trib_free", "trib_comm_destroy", "trib_progress"):
                return None
            if name == "trib_comm_trees":
                args[-1].value = b"tree 2"
                return 3
            if name == "trib_time_ps":
                return 12
            if self.rc:
                args[-1].value = self.why
            else:
                args[0 if name == "trib_comm_create" else -2]._obj.value = 77
            return self.rc

        return call


class Oob:
    def __init__(self, rank=1, size=4):
        self.rank, self.size = rank, size

    def bcast(self, data, root):
        return data or b"root"

    def gather(self, data, root):
        return [data] * self.size if root == self.rank else None

    def barrier(self):
        pass


class Coll(unittest.TestCase):
    def setUp(self):
        self.lib = Lib()
        patch = mock.patch.object(_lib, "load", lambda: self.lib)
        patch.start()
        self.addCleanup(patch.stop)

    def comm(self, rank=1, size=4):
        return coll.Communicator(Oob(rank, size), "ring", 9)

    def test_each_operation_is_its_call(self):
        a, b = array.array("f", [0] * 8), array.array("f", [0] * 2)
        big, small = a.buffer_info()[0], b.buffer_info()[0]
        comm = self.comm()
        for call, made in (
            (lambda: comm.all_reduce(a), ("all_reduce", big, big, 8, 7, 0)),
            (lambda: comm.all_reduce(a, op="max"), ("all_reduce", big, big, 8, 7, 3)),
            (lambda: comm.reduce(a, op="lxor", root=0), ("reduce", big, None, 8, 7, 12, 0)),
            (lambda: comm.reduce(a, root=1), ("reduce", big, big, 8, 7, 0, 1)),
            (lambda: comm.reduce_scatter(a, b, "avg"), ("reduce_scatter", big, small, 2, 7, 4)),
            (lambda: comm.broadcast(a, 2), ("broadcast", big, 8, 7, 2)),
            (lambda: comm.all_gather(b, a), ("all_gather", small, big, 2, 7)),
            (lambda: comm.gather(b, root=0), ("gather", small, None, 2, 7, 0)),
            (lambda: comm.gather(b, a, root=1), ("gather", small, big, 2, 7, 1)),
            (lambda: comm.scatter(None, b, root=0), ("scatter", small, small, 2, 7, 0)),
            (lambda: comm.scatter(a, b, root=1), ("scatter", big, small, 2, 7, 1)),
            (lambda: comm.all_to_all(a, a), ("all_to_all", big, big, 2, 7)),
            (lambda: comm.all_reduce(a, type="bfloat16"), ("all_reduce", big, big, 16, 9, 0)),
            (comm.barrier, ("barrier",)),
        ):
            self.lib.calls.clear()
            request = call()
            self.assertEqual([k for k in self.lib.calls if k[0] != "comm_error"], [(made[0], 77, *made[1:])])
            self.assertEqual(request.name, made[0])
        self.assertEqual(len(comm._running), 14)

    def test_elements_have_the_type_of_their_buffer(self):
        for code, name in (("b", "int8"), ("B", "uint8"), ("h", "int16"), ("H", "uint16"), ("i", "int32"), ("I", "uint32"), ("q", "int64"),
                           ("Q", "uint64"), ("l", "int64"), ("L", "uint64"), ("f", "float32"), ("d", "float64")):  # fmt: skip
            self.assertEqual(coll._View(array.array(code, [1]), True).type_name(), name)
        self.assertEqual(coll._View(bytearray(3), True).type_name(), "uint8")
        self.assertEqual(coll._View((c.c_float * 2)(), False).type_name(), "float32")
        self.assertEqual(coll._View(bytearray(3), False).bytes, 3)
        with self.assertRaises(BufferError):
            coll._View(b"abc", True)
        for what in ((c.c_bool * 2)(), (c.c_float.__ctype_be__ * 2)()):
            with self.assertRaisesRegex(TypeError, "^found elements of format '.*', [14] bytes, expected one of int8, uint8, "):
                coll._View(what, False).type_name()

    def test_what_cannot_be_called_is_refused(self):
        a, b = array.array("f", [0] * 8), array.array("f", [0] * 3)
        comm = self.comm()
        for call, says in (
            (lambda: comm.broadcast(None), "broadcast: found no buffer"),
            (lambda: comm.all_gather(a, None), "all_gather: a buffer is missing"),
            (lambda: comm.gather(a, None, 1), "gather: a buffer is missing"),
            (lambda: comm.all_reduce(a, type="int128"), f"all_reduce: found type int128, expected one of {', '.join(coll.TYPES)}"),
            (lambda: comm.all_reduce(a, op="mean"), f"all_reduce: found reduction mean, expected one of {', '.join(coll.OPS)}"),
            (lambda: comm.all_to_all(b, b), "all_to_all: found 12 bytes, expected a multiple of 16: elements of 4 bytes for 4 ranks"),
            (lambda: comm.all_reduce(bytearray(6), type="float32"), "all_reduce: found 6 bytes, expected a multiple of 4: elements of 4 bytes"),
            (lambda: comm.all_reduce(a, b), "all_reduce: found buffers for 8 and 3 elements, expected the same"),
        ):
            with self.assertRaises(ValueError) as e:
                call()
            self.assertEqual(str(e.exception), says)
        self.lib.rc = -errno.EINVAL
        for why, says in ((b"no such tree", "all_reduce: no such tree"), (b"", "all_reduce: Invalid argument")):
            self.lib.why = why
            with self.assertRaises(coll.Error) as e:
                comm.all_reduce(a)
            self.assertEqual((str(e.exception), e.exception.errno), (says, errno.EINVAL))
        self.assertEqual(comm._running, set())

    def test_a_request_ends_well_or_with_the_reason(self):
        comm = self.comm()
        self.lib.statuses = [0, 1]
        request = comm.all_reduce(array.array("f", [0]))
        self.assertFalse(request.test())
        self.assertEqual(request.algo, "ring")
        self.assertIsNotNone(request._keep)
        self.lib.algo = b"sharp"
        self.assertTrue(request.test())
        self.assertEqual((request.algo, request._keep, comm._running), ("sharp", None, set()))
        self.assertIn(("free", 77), self.lib.calls)
        self.lib.algo = b"tree"
        self.assertEqual(request.algo, "sharp")  # as it was
        self.assertTrue(request.test())
        request.wait()
        self.lib.statuses = [-errno.EIO]
        request = comm.all_reduce(array.array("f", [0]))
        for _ in range(2):
            with self.assertRaises(coll.Error) as e:
                request.test()
            self.assertEqual((str(e.exception), e.exception.errno), ("all_reduce: a switch has died", errno.EIO))

    def test_waiting_ends_in_time(self):
        comm, now = self.comm(), [100.0]

        def wait_for(_handle, seconds):
            waited.append(round(seconds, 6))
            now[0] += seconds
            return 1 if len(waited) == end else 0

        for timeout, end, times in ((0.25, 0, [0.1, 0.1, 0.05, 0.0]), (None, 3, [0.1, 0.1, 0.1]), (0, 0, [0.0]), (1, 2, [0.1, 0.1])):
            waited = []
            request = comm.all_reduce(array.array("f", [0]))
            with mock.patch.object(self.lib, "trib_wait_for", wait_for, create=True), mock.patch("time.monotonic", lambda: now[0]):
                if end:
                    request.wait(timeout)
                else:
                    with self.assertRaises(TimeoutError) as e:
                        request.wait(timeout)
                    self.assertEqual(str(e.exception), f"all_reduce: still runs after {timeout} s")
            self.assertEqual(waited[: len(times)], times)
            self.assertLessEqual(len(waited), len(times) + 1)

    def test_a_communicator_says_how_it_is(self):
        with self.comm(rank=2) as comm:
            self.assertEqual((comm.rank, comm.size, comm.error, comm.fell_back, comm.trees()), (2, 4, "a switch has died", "tree 1", (3, "tree 2")))
            comm.progress()
            self.assertEqual(coll.time_ps(), 12)
            request = comm.barrier()
            done = comm.barrier()
            self.lib.statuses = [1]
            done.wait()
        self.assertIn(("comm_destroy", 77), self.lib.calls)
        n = len(self.lib.calls)
        with self.assertRaises(coll.Error) as e:
            request.test()
        self.assertEqual((str(e.exception), e.exception.errno), ("barrier: the communicator was closed", errno.ECANCELED))
        self.assertTrue(done.test())
        with self.assertRaises(coll.Error) as e:
            comm.progress()
        self.assertEqual((str(e.exception), e.exception.errno), ("the communicator is closed", errno.EBADF))
        comm.close()
        self.assertEqual(len(self.lib.calls), n)

    def test_a_closed_communicator_leaves_its_requests_alone(self):
        comm = self.comm()
        request = comm.all_reduce(array.array("f", [0]))
        comm.close()
        n = len(self.lib.calls)
        self.assertEqual((request.algo, request._keep, comm._running, len(self.lib.calls)), ("", None, set(), n))

    def test_what_is_received_is_written_and_what_is_sent_is_read(self):
        comm, one, many = self.comm(), bytearray(2), bytearray(8)
        comm.all_gather(bytes(2), many)
        with self.assertRaises(BufferError):
            comm.all_gather(one, bytes(8))
        view = coll._View(one, True)
        with self.assertRaises(BufferError):
            one.append(0)  # it stays where it is
        del view
        one.append(0)
        self.lib.calls.clear()
        comm.start("broadcast", 0, 9, 1, 7, root=2)
        comm.start("broadcast", 8, 0, 1, 7)
        self.assertEqual(self.lib.calls, [("broadcast", 77, 9, 1, 7, 2), ("broadcast", 77, 8, 1, 7, 0)])

    def test_one_that_cannot_be_made_says_why(self):
        self.lib.rc, self.lib.why = -errno.ENODEV, b"no fabric"
        with self.assertRaises(coll.Error) as e:
            self.comm()
        self.assertEqual((str(e.exception), e.exception.errno, e.exception.__cause__), ("no fabric", errno.ENODEV, None))

    def test_a_programs_own_calls_are_made_from_c(self):
        calls = coll.OobCalls(Oob(rank=1, size=2))
        buf, every = c.create_string_buffer(4), c.create_string_buffer(8)
        struct = calls.struct
        self.assertEqual((struct.rank, struct.size), (1, 2))
        self.assertEqual(struct.bcast(None, c.addressof(buf), 4, 0), 0)
        self.assertEqual(buf.raw, b"root")
        buf.raw = b"mine"
        self.assertEqual(struct.bcast(None, c.addressof(buf), 4, 1), 0)
        self.assertEqual(buf.raw, b"mine")
        self.assertEqual(struct.gather(None, 1, c.addressof(buf), c.addressof(every), 4), 0)
        self.assertEqual(every.raw, b"minemine")
        self.assertEqual(struct.gather(None, 0, c.addressof(buf), None, 4), 0)
        self.assertEqual(struct.barrier(None), 0)
        self.assertIsNone(calls.error)
        self.assertEqual(struct.bcast(None, c.addressof(buf), 3, 0), -1)
        self.assertEqual(str(calls.error), "found 4 bytes of an out-of-band call, expected 3")
        self.assertEqual(str(calls.error), "found 4 bytes of an out-of-band call, expected 3")  # the first


if __name__ == "__main__":
    unittest.main()
