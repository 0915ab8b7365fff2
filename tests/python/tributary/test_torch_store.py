# SPDX-License-Identifier: BSD-3-Clause
"""How ranks meet by a store: keys, drawn numbers, notes, and whom nobody waits for longer than the timeout. Time is advanced by hand."""
import types
import unittest
from unittest import mock

from tests.python.tributary import fake_torch as torch

torch.install()

from tributary import _torch_store  # noqa: E402
from tributary._torch_store import StoreOob  # noqa: E402


class Stores(unittest.TestCase):
    def setUp(self):
        self.store, self.now, self.pauses, self.others, self.drawn = torch.Store(), 100.0, [], [], 0
        for name, instead in (
            ("time", types.SimpleNamespace(monotonic=lambda: self.now, sleep=self.sleep)), ("secrets", types.SimpleNamespace(token_hex=self.token)),
        ):  # fmt: skip
            patch = mock.patch.object(_torch_store, name, instead)
            patch.start()
            self.addCleanup(patch.stop)

    def token(self, n):
        self.drawn += 1
        return f"t{self.drawn}x{n}"

    def sleep(self, seconds):
        """Another rank does something while this one waits."""
        self.pauses.append(round(seconds, 6))
        self.now += seconds
        if self.others:
            self.others.pop(0)()

    def oob(self, rank=0, size=2, timeout=5.0, what=""):
        made = StoreOob(self.store, rank, size, timeout, what)
        made._session = "s"
        return made

    def put(self, key, text):
        self.oob()._put(key, text)

    def late(self, says, call, *args):
        with self.assertRaises(TimeoutError) as e:
            call(*args)
        self.assertEqual(str(e.exception), says)

    def test_a_rank_is_answered_and_confirms(self):
        oob = self.oob(1, 4, what="/2")
        oob._calls = oob._heard = 7
        self.others = [lambda: None, lambda: self.put("trib/2/answer/t1x8", "trib/2/new")]
        oob.meet()
        self.assertEqual((oob._session, oob._calls, oob._heard, oob._timeout_s), ("trib/2/new", 0, 0, 5.0))
        self.assertEqual(self.store.texts, {"trib/2/come/1/1": "t1x8", "trib/2/answer/t1x8": "trib/2/new", "trib/2/new/come/1": "t1x8"})
        self.assertEqual(self.pauses, [0.0005, 0.001])

    def test_rank_0_answers_all_who_come_and_waits_for_those_who_confirm(self):
        oob = self.oob(0, 3)
        one, two = self.oob(1, 3), self.oob(2, 3)
        one._post("trib/come/1", "dead")  # of an attempt before
        answers = []
        self.others = [
            lambda: answers.append(one._read("trib/answer/dead")), lambda: one._post("trib/come/1", "mine"), lambda: answers.append(one._read("trib/answer/mine")),
            lambda: self.put(f"{answers[0]}/come/1", "mine"), lambda: two._post("trib/come/2", "two"), lambda: self.put(f"{answers[0]}/come/2", "two"),
        ]  # fmt: skip
        oob.meet()
        self.assertEqual((answers, oob._session, self.others), (["trib/t2x8", "trib/t2x8"], "trib/t2x8", []))
        self.assertEqual(self.store.numbers["trib/answer/dead/there"], 1)
        self.assertEqual(self.store.numbers["trib/answer/mine/there"], 1)

    def test_who_does_not_come_is_named(self):
        self.late("rank 1, rank 2 did not come within 5 s", self.oob(0, 3).meet)
        self.late("rank 1, rank 2, rank 3, rank 4, rank 5, rank 6, rank 7, rank 8 did not come within 2.5 s", self.oob(0, 10).meet, 2.5)
        oob = self.oob(1, 3)
        self.late("rank 0 did not come within 1 s", oob.meet, 1)
        self.assertEqual(oob._timeout_s, 5.0)
        self.late("rank 1 did not come within 5 s", self.oob().bcast, None, 1)
        self.late("all ranks did not come within 5 s", self.oob(1, 9).barrier)
        self.assertEqual(self.pauses[:7], [0.0005, 0.001, 0.002, 0.004, 0.008, 0.01, 0.01])
        before, oob = self.now, self.oob(1, 9)
        oob.hurry = True
        self.late("all ranks did not come within 5 s", oob.barrier)
        self.assertEqual(self.now, before)

    def test_it_waits_as_long_as_the_timeout(self):
        start = self.now
        self.late("rank 1 did not come within 5 s", self.oob().bcast, None, 1)
        self.assertTrue(5 < self.now - start < 5.02)
        oob = self.oob()
        self.others = [lambda: None] * 100 + [lambda: self.put("s/1", "6869")]
        self.assertEqual(oob.bcast(None, 1), b"hi")

    def test_calls_have_keys_of_their_own(self):
        zero, one = self.oob(0), self.oob(1)
        self.assertEqual(zero.bcast(b"ab", 0), b"ab")
        self.assertEqual(one.bcast(None, 0), b"ab")
        self.assertIsNone(one.gather(b"\x01", 0))
        self.assertEqual(zero.gather(b"\x00", 0), [b"\x00", b"\x01"])
        self.others = [one.barrier]
        one_calls = []
        self.others = [lambda: one_calls.append(self.store.add("s/3", 1))]
        zero.barrier()
        self.assertEqual(self.store.texts, {"s/1": "6162", "s/2/0": "00", "s/2/1": "01"})
        self.assertEqual((one_calls, self.store.numbers["s/3"], zero._calls, one._calls), ([2], 2, 3, 2))

    def test_the_greatest_number_is_that_of_all(self):
        zero, one = self.oob(0), self.oob(1)
        self.put("s/1/1", (300).to_bytes(8, "big").hex())
        self.assertEqual(zero.greatest(7), 300)
        self.assertEqual(one.greatest(300), 300)
        self.assertEqual(self.store.texts["s/2"], (300).to_bytes(8, "big").hex())

    def test_notes_are_heard_once_and_in_order(self):
        zero, one = self.oob(0), self.oob(1)
        self.assertEqual(one.hear(), [])
        self.assertEqual((zero.tell("a"), one.tell("b")), (1, 2))
        self.assertEqual(one.hear(), [(1, "a"), (2, "b")])
        self.assertEqual(one.hear(), [])
        self.store.add("s/note", 1)  # a note that is on its way
        self.assertEqual(one.hear(), [])
        zero.tell("d")
        self.assertEqual(one.hear(), [])
        self.put("s/note/3", "c")
        self.assertEqual(one.hear(), [(3, "c"), (4, "d")])
        self.assertEqual(zero.answers(3), 0)
        one.answer(3)
        one.answer(3)
        self.assertEqual((zero.answers(3), zero.answers(4)), (2, 0))


if __name__ == "__main__":
    unittest.main()
