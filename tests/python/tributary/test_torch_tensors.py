# SPDX-License-Identifier: BSD-3-Clause
"""Tensors as the library takes them: which are refused, which are copied, and where each block goes; with a small torch of its own."""
import types
import unittest

from tests.python.tributary import fake_torch as torch

torch.install()

from tributary import _torch_tensors as tensors, coll  # noqa: E402


def columns(values, rows, n, dtype=torch.float32):
    """A tensor of rows by n that lies in memory by columns."""
    return torch.Tensor(torch.Storage(values), (rows, n), dtype, (1, rows))


class Checks(unittest.TestCase):
    def refused(self, says, call, *args):
        with self.assertRaises(RuntimeError) as e:
            call(*args)
        self.assertEqual(str(e.exception), says)

    def test_what_no_operation_takes_is_refused(self):
        a, b = torch.tensor([1]), torch.tensor([1], torch.int32)
        gpu, sparse = torch.tensor([1]), torch.tensor([1])
        gpu.device, sparse.layout = torch.Device("cuda"), torch.sparse
        for args, says in (
            (([], 0), "x: found no tensor"), (([a, a], 1), "x: found 2 tensors, expected 1: one a process"), (([], 1), "x: found 0 tensors, expected 1: one a process"),
            (([a, gpu],), "x: found a tensor on cuda:0, expected one on the CPU"), (([sparse],), "x: found a tensor of layout torch.sparse_coo, expected a dense one"),
            (([a, b],), "x: found tensors of torch.float32 and torch.int32, expected one type"),
        ):
            self.refused(says, tensors.check, "x", *args)
        tensors.check("x", [a, a])
        tensors.check("x", [a], 1)

    def test_outputs_have_a_place_for_each_element(self):
        for shape, strides, wrong in (
            ((4,), (1,), False), ((4,), (0,), True), ((4,), (2,), False), ((1,), (0,), False), ((2, 3), (3, 1), False), ((2, 3), (1, 2), False), ((2, 3), (2, 1), True), ((2, 3), (1, 1), True),
            ((2, 3), (0, 1), True), ((1, 3), (0, 1), False), ((0, 3), (0, 0), False), ((2, 2), (3, 2), False), ((2, 2), (4, 2), False), ((3, 2), (2, 3), False), ((3, 2), (2, 4), True),
            ((4, 2), (2, 3), False), ((4, 2), (2, 6), True), ((2,), (0,), True), ((2, 2), (1, 1), True),
        ):  # fmt: skip
            t = torch.Tensor(torch.Storage(range(32)), shape, torch.float32, strides)
            text = f"found an output whose elements overlap in memory, of size {list(shape)} and stride {list(strides)}, expected a place for each (clone() makes one)"
            self.assertEqual(tensors.overlap([torch.tensor([1, 2]), t]), text if wrong else "", (shape, strides))
        self.assertEqual(tensors.overlap([]), "")

    def test_reductions_have_the_library_s_numbers(self):
        op = types.SimpleNamespace
        for dtype, name, found in (
            (torch.float32, "SUM", ("float32", "sum")), (torch.float16, "AVG", ("float16", "avg")), (torch.int32, "PRODUCT", ("int32", "prod")), (torch.int64, "BXOR", ("int64", "bxor")),
            (torch.bool_, "SUM", ("uint8", "max")), (torch.bool_, "PRODUCT", ("uint8", "min")), (torch.bool_, "BXOR", ("uint8", "bxor")), (torch.uint8, "BAND", ("uint8", "band")),
            (torch.bfloat16, "MIN", ("bfloat16", "min")), (torch.float64, "MAX", ("float64", "max")), (torch.int8, "BOR", ("int8", "bor")),
        ):  # fmt: skip
            wanted = (coll.TYPES[found[0]][0], coll.OPS[found[1]])
            for way in (op(name=name), op(op=op(name=name)), name):
                self.assertEqual(tensors.reduction("x", [torch.tensor([1], dtype)], way), wanted)
        known = "int8, uint8, int32, int64, float16, float32, float64, bfloat16, bool"
        for dtype, name, says in (
            (torch.float32, "PREMUL_SUM", "x: found PREMUL_SUM of torch.float32, expected one of SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR"),
            (torch.bool_, "AVG", "x: found AVG of torch.bool, expected one of SUM, MAX, BOR, PRODUCT, MIN, BAND, BXOR"),
            (torch.complex64, "SUM", f"x: found torch.complex64, expected one of {known}"), (torch.float32, "BAND", "x: found BAND of torch.float32, expected integers or bool"),
            (torch.float16, "BOR", "x: found BOR of torch.float16, expected integers or bool"), (torch.bfloat16, "BXOR", "x: found BXOR of torch.bfloat16, expected integers or bool"),
        ):
            self.refused(says, tensors.reduction, "x", [torch.tensor([1], dtype)], op(name=name))


class Moves(unittest.TestCase):
    def test_one_contiguous_tensor_is_used_as_it_is(self):
        t = torch.tensor(range(6), torch.int32, (2, 3))
        flat = tensors.Flat.of([t])
        self.assertEqual((flat.data.data_ptr(), flat.data.shape, flat.numel, flat.bytes), (t.data_ptr(), (6,), 6, 24))
        flat.data.copy_(torch.tensor([9] * 6))
        flat.back()
        self.assertEqual(t.tolist(), [9] * 6)

    def test_what_is_used_as_it_is_needs_no_way_back(self):
        t = torch.tensor([1])
        t.read_only = True
        tensors.Flat.of([t]).back()
        self.assertEqual(t.tolist(), [1])

    def test_others_are_copied_and_brought_back(self):
        a, b = torch.tensor([1, 2], torch.int64), columns([1, 4, 2, 5, 3, 6], 2, 3, torch.int64)
        flat = tensors.Flat.of([a, b])
        self.assertEqual((flat.data.tolist(), flat.data.dtype, flat.numel, flat.bytes), ([1, 2, 1, 2, 3, 4, 5, 6], torch.int64, 8, 64))
        flat.data.copy_(torch.tensor(range(10, 18)))
        self.assertEqual(a.tolist(), [1, 2])
        flat.back()
        self.assertEqual((a.tolist(), b.tolist()), ([10, 11], [12, 13, 14, 15, 16, 17]))
        self.assertEqual(tensors.Flat.of([a, b], read=False).data.tolist(), [None] * 8)
        self.assertEqual(tensors.Flat.of([columns([1, 3, 2, 4], 2, 2)]).data.tolist(), [1, 2, 3, 4])

    def refused(self, says, call, *args):
        with self.assertRaises(RuntimeError) as e:
            call(*args)
        self.assertEqual(str(e.exception), says)

    def test_blocks_of_all_ranks_become_a_vector(self):
        like = [torch.tensor([0, 0]), torch.tensor([0])]
        whole = torch.tensor(range(6))
        self.assertEqual(tensors.scattered("x", [whole], like[:1], 3).data_ptr(), whole.data_ptr())
        lists = [[torch.tensor([1, 2]), torch.tensor([3, 4])], [torch.tensor([5]), torch.tensor([6])]]
        self.assertEqual(tensors.scattered("x", lists, like, 2).tolist(), [1, 2, 5, 3, 4, 6])
        self.assertEqual(tensors.scattered("x", [torch.tensor([1, 2, 3, 4]), torch.tensor([5, 6])], like, 2).tolist(), [1, 2, 5, 3, 4, 6])
        self.assertEqual(tensors.scattered("x", [columns([1, 3, 2, 4], 2, 2)], like[:1], 2).tolist(), [1, 2, 3, 4])
        self.assertEqual(tensors.scattered("x", lists[:1], like[:1], 2).tolist(), [1, 2, 3, 4])
        self.assertEqual(tensors.scattered("x", [torch.tensor([]), torch.tensor([1, 2])], [torch.tensor([]), torch.tensor([0])], 2).tolist(), [1, 2])
        for what, to, ranks, says in (
            (lists, like[:1], 2, "x: found 2 and 1 tensors, expected as many"), (lists[:1], like[:1], 3, "x: found a list of 2 tensors, expected 3"),
            (lists[:1], like[1:], 2, "x: found blocks of 1 and 2 elements, expected equal ones"),
            ([whole], like[:1], 2, "x: found 6 elements in all and 2 of a rank, expected 2 times as many in all"),
        ):
            self.refused(says, tensors.scattered, "x", what, to, ranks)
            self.refused(says, tensors.gathered, "x", what, to, ranks)

    def test_a_vector_becomes_the_blocks_of_all_ranks(self):
        like = [torch.tensor([0, 0])]
        whole = torch.tensor(range(4))
        data, back = tensors.gathered("x", [whole], like, 2)
        self.assertEqual((data.data_ptr(), back), (whole.data_ptr(), None))
        one, two = torch.tensor([0, 0], torch.int32), columns([0, 0], 1, 2, torch.int32)
        data, back = tensors.gathered("x", [[one, two]], [torch.tensor([0, 0], torch.int32)], 2)
        self.assertEqual((data.numel(), data.dtype), (4, torch.int32))
        data.copy_(torch.tensor([1, 2, 3, 4]))
        back()
        self.assertEqual((one.tolist(), two.tolist(), two.shape), ([1, 2], [3, 4], (1, 2)))
        strided, plain = columns([0] * 4, 2, 2), torch.tensor([0, 0])
        data, back = tensors.gathered("x", [strided, plain], [*like, torch.tensor([0])], 2)
        data.copy_(torch.tensor([1, 2, 5, 3, 4, 6]))
        back()
        self.assertEqual((strided.tolist(), plain.tolist()), ([1, 2, 3, 4], [5, 6]))


if __name__ == "__main__":
    unittest.main()
