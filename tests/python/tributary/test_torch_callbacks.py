# SPDX-License-Identifier: BSD-3-Clause
"""Callbacks of futures run one after the other, each in a thread of its level, and never where somebody waits for them."""
import logging
import threading
import unittest
from unittest import mock

from tests.python.tributary import fake_torch as torch

torch.install()

from tributary import _torch_callbacks as callbacks  # noqa: E402
from tributary._torch_callbacks import Future, Thread, level  # noqa: E402


class Threads(unittest.TestCase):
    def test_calls_run_in_order_in_one_thread_of_a_level(self):
        done, seen = threading.Event(), []
        thread = Thread("a name", 3)
        self.assertIsNone(thread._thread)
        for i in range(4):
            thread.put(lambda i=i: seen.append((i, level(), threading.current_thread().name)))
        thread.put(done.set)
        self.assertTrue(done.wait(10))
        self.assertEqual(seen, [(i, 3, "a name") for i in range(4)])
        self.assertEqual(level(), 0)
        own = thread._thread
        self.assertTrue(own.daemon)
        thread.close()
        own.join(10)
        self.assertFalse(own.is_alive())
        self.assertIsNone(thread._thread)
        done.clear()
        thread.put(done.set)  # one that comes later has a thread again, which ends after it
        self.assertTrue(done.wait(10))

    def test_a_call_that_fails_stops_no_other(self):
        done, thread = threading.Event(), Thread("x", 1)
        with self.assertLogs("tributary.torch", logging.ERROR) as logs:
            thread.put(lambda: 1 // 0)
            thread.put(done.set)
            self.assertTrue(done.wait(10))
        self.assertEqual(logs.output, ["ERROR:tributary.torch:a callback of a future has failed: integer division or modulo by zero"])
        thread.close()

    def test_what_it_has_when_it_is_closed_is_still_run(self):
        thread, seen = Thread("x", 2), []
        with mock.patch.object(callbacks.threading, "Thread"):
            thread.put(lambda: seen.append(level()))
            thread.put(lambda: seen.append(level()))
        thread.close()
        other = threading.Thread(target=thread._run)
        other.start()
        other.join(10)
        self.assertEqual(seen, [2, 2])

    def test_each_level_has_a_runner(self):
        one = callbacks._runner(71)
        self.assertIs(callbacks._runner(71), one)
        self.assertIsNot(callbacks._runner(72), one)
        self.assertEqual((one._name, one._level), ("trib callbacks 71", 71))


class Runner:
    """Keeps what is put instead of running it."""

    def __init__(self):
        self.put_at, self.calls = [], []

    def __call__(self, of_level):
        self.put_at.append(of_level)
        return self

    def put(self, call):
        self.calls.append(call)


class Futures(unittest.TestCase):
    def setUp(self):
        self.runner = Runner()
        patch = mock.patch.object(callbacks, "_runner", self.runner)
        patch.start()
        self.addCleanup(patch.stop)

    def test_a_callback_runs_a_level_above_its_operation_and_its_caller(self):
        future = Future(2)
        out = future.then(lambda f: f.value() + 1)
        self.assertEqual((self.runner.put_at, out._level), ([3], 2))
        with mock.patch.object(callbacks, "level", lambda: 5):
            self.assertEqual(future.then(str)._level, 5)
            future.add_done_callback(str)
        future.add_done_callback(str)
        self.assertEqual(self.runner.put_at, [3, 6, 6, 3])
        self.assertFalse(out.done())
        future.set_result(7)
        self.runner.calls[0]()
        self.assertEqual(out.value(), 8)

    def test_an_error_goes_on_to_what_hangs_on_it(self):
        future = Future(0)
        out, last = future.then(lambda f: f.value()), []
        future.add_done_callback(lambda f: last.append(f))
        future.set_exception(RuntimeError("no"))
        for call in self.runner.calls:
            call()
        self.assertEqual(last, [future])
        with self.assertRaisesRegex(RuntimeError, "^no$"):
            out.value()

    def test_it_is_done_when_its_operation_has_ended(self):
        ended = threading.Event()
        future = Future(0, ended)
        self.assertFalse(future.done())
        with self.assertRaisesRegex(RuntimeError, "not completed"):
            future.value()
        ended.set()
        self.assertTrue(future.done())
        threading.Timer(0.001, future.set_result, (5,)).start()
        self.assertEqual(future.value(), 5)  # which is on its way
        self.assertTrue(Future(0, ended).done())
        other = Future(0)
        self.assertFalse(other.done())
        other.set_result(1)
        self.assertTrue(other.done())


if __name__ == "__main__":
    unittest.main()
