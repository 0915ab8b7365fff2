# SPDX-License-Identifier: BSD-3-Clause
"""Works: what ends when and with which words, what is kept until when, and whose futures are whose."""
import unittest
from datetime import timedelta
from unittest import mock

from tests.python.tributary import fake_torch as torch

torch.install()

from tributary import _torch_work as work  # noqa: E402
from tributary._torch_work import Work  # noqa: E402


class Completer:
    """Makes calls at once."""

    def put(self, call):
        call()

    def close(self):
        self.closed = True


def made(kind="all_reduce", result=(), timeout=3.0):
    return Work(kind, list(result), timeout, 0, Completer())


class Works(unittest.TestCase):
    def setUp(self):
        work._pins.clear()

    def test_a_work_ends_well_or_with_the_reason(self):
        w = made(result=[1])
        self.assertEqual((w.is_completed(), w.is_success(), w.exception()), (False, False, None))
        w.end()
        self.assertEqual((w.is_completed(), w.is_success(), w.exception(), w.wait(), w.result()), (True, True, None, True, [1]))
        self.assertIsNone(w.synchronize())
        w = made()
        w.end("why")
        self.assertEqual((w.is_completed(), w.is_success(), str(w.exception())), (True, False, "why"))
        for call in (w.wait, w.result, w.synchronize):
            with self.assertRaisesRegex(RuntimeError, "^why$"):
                call()

    def test_waiting_takes_no_longer_than_asked(self):
        for asked, seconds in ((timedelta(0), 3.0), (timedelta(seconds=0.5), 0.5)):
            w = made("reduce")
            w._ended = mock.Mock(wait=mock.Mock(return_value=False), is_set=lambda: False)
            with self.assertRaises(RuntimeError) as e:
                w.wait(asked)
            self.assertEqual(str(e.exception), f"reduce: not done after {seconds:g} s")
            w._ended.wait.assert_called_once_with(seconds)
            self.assertTrue(w._asked)

    def test_a_work_is_kept_until_it_has_ended_and_somebody_has_asked(self):
        w, v = made(), made()
        self.assertEqual(len(work._pins), 2)
        w.end()
        self.assertEqual(len(work._pins), 2)
        w.wait()
        self.assertEqual(list(work._pins.values()), [v])
        v.forget()
        self.assertEqual(len(work._pins), 1)
        v.end()
        self.assertEqual(len(work._pins), 0)
        many = [made() for _ in range(4)]
        with mock.patch.object(work, "_PINNED", 2):
            many[1].end()
            self.assertEqual(len(work._pins), 4)  # the oldest still runs
            many[0].end()
            self.assertEqual(list(work._pins.values()), many[2:])
            many[2].end()
            self.assertEqual(list(work._pins.values()), many[2:])

    def test_python_and_cpp_have_futures_of_their_own(self):
        def native(w):
            return (lambda f: f())(w.__getattribute__("get_" + "future"))

        for error in (None, "why"):
            for early in (True, False):
                w = made(result=[1])
                if early:
                    w.end(error)
                own, other = w.get_future(), native(w)
                self.assertIs(w.get_future(), own)
                self.assertIs(native(w), other)
                self.assertIsInstance(own, work.Future)
                self.assertNotIsInstance(other, work.Future)
                self.assertEqual((own.done(), other.done()), (early, early))
                if not early:
                    w.end(error)
                for future in (own, other):
                    if error:
                        with self.assertRaisesRegex(RuntimeError, "^why$"):
                            future.value()
                    else:
                        self.assertEqual(future.value(), [1])
        with mock.patch.object(work.sys, "_getframe", side_effect=ValueError):
            self.assertFalse(work._asked_by_python())


if __name__ == "__main__":
    unittest.main()
