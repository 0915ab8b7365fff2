# SPDX-License-Identifier: BSD-3-Clause
"""What of PyTorch tributary.torch and its parts use: tensors over a list, futures, stores. It decides their logic where PyTorch is not
installed; with PyTorch itself they are in the end-to-end tests. install() puts it in the place of the module."""
import contextlib
import itertools
import math
import sys
import threading
import types


class DType:
    def __init__(self, name, size, is_floating_point=False):
        self.name, self.size, self.is_floating_point = name, size, is_floating_point

    def __repr__(self):
        return f"torch.{self.name}"


class Storage(list):
    """Elements, and the address of the first."""

    made = 0

    def __init__(self, elements):
        super().__init__(elements)
        Storage.made += 1
        self.at = 0x1000 * Storage.made


class Device:
    def __init__(self, kind):
        self.type = kind

    def __str__(self):
        return self.type if self.type == "cpu" else f"{self.type}:0"


def _strides(shape):
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


class Tensor:
    def __init__(self, storage, shape, dtype, strides=None, offset=0):
        self._storage, self.shape, self.dtype, self._offset = storage, tuple(shape), dtype, offset
        self._strides = _strides(self.shape) if strides is None else tuple(strides)
        self.device, self.layout, self.inference, self.read_only = Device("cpu"), strided, False, False

    def _places(self):
        return [self._offset + sum(i * s for i, s in zip(at, self._strides)) for at in itertools.product(*map(range, self.shape))]

    def tolist(self):
        return [self._storage[at] for at in self._places()]

    def numel(self):
        return math.prod(self.shape)

    def stride(self):
        return self._strides

    def is_contiguous(self):
        return self.numel() < 2 or all(size == 1 or a == b for size, a, b in zip(self.shape, self._strides, _strides(self.shape)))

    def is_inference(self):
        return self.inference

    def element_size(self):
        return self.dtype.size

    def data_ptr(self):
        return self._storage.at + self._offset * self.dtype.size if self.numel() else 0

    def detach(self):
        made = Tensor(self._storage, self.shape, self.dtype, self._strides, self._offset)
        made.read_only = self.read_only
        return made

    def clone(self):
        return Tensor(Storage(self.tolist()), self.shape, self.dtype)

    def contiguous(self):
        return self if self.is_contiguous() else self.clone()

    def view(self, *shape):
        shape = list(shape[0]) if shape and isinstance(shape[0], (tuple, list)) else list(shape)
        if -1 in shape:
            shape[shape.index(-1)] = self.numel() // math.prod(n for n in shape if n != -1)
        if not self.is_contiguous() or math.prod(shape) != self.numel():
            raise RuntimeError("view size is not compatible")
        made = Tensor(self._storage, shape, self.dtype, None, self._offset)
        made.read_only = self.read_only
        return made

    def reshape(self, *shape):
        return self.contiguous().view(*shape)

    def copy_(self, other):
        if self.read_only or self.shape != other.shape:
            raise RuntimeError("a tensor that cannot be written" if self.read_only else "the shapes differ")
        for at, value in zip(self._places(), other.tolist()):
            self._storage[at] = value
        return self

    def split_with_sizes(self, sizes):
        if sum(sizes) != self.numel():
            raise RuntimeError("split_with_sizes expects split_sizes to sum exactly")
        begins = [sum(sizes[:i]) for i in range(len(sizes))]
        return [self[b : b + n] for b, n in zip(begins, sizes)]

    def unique(self):
        found = sorted(set(self.tolist()))
        return Tensor(Storage(found), (len(found),), self.dtype)

    def __getitem__(self, key):
        shape, strides, offset, rest = [], [], self._offset, list(zip(self.shape, self._strides))
        for k in key if isinstance(key, tuple) else (key,):
            if k is None:
                shape.append(1)
                strides.append(0)
                continue
            size, stride = rest.pop(0)
            if isinstance(k, int):
                if not -size <= k < size:
                    raise IndexError(k)
                offset += k % size * stride
            else:
                begin, end, _ = k.indices(size)
                offset += begin * stride
                shape.append(max(0, end - begin))
                strides.append(stride)
        shape += [n for n, _ in rest]
        strides += [n for _, n in rest]
        return Tensor(self._storage, shape, self.dtype, strides, offset)

    def __mul__(self, n):
        return Tensor(Storage(v * n for v in self.tolist()), self.shape, self.dtype)

    def __add__(self, other):
        """A column and a row: the sums of each with each."""
        return Tensor(Storage(a + b for a in self.tolist() for b in other.tolist()), (self.numel(), other.numel()), self.dtype)

    def __iter__(self):
        return (self[i] for i in range(self.shape[0]))

    def __len__(self):
        return self.shape[0]


class Future:
    def __init__(self):
        self._set, self._value, self._error, self._calls = threading.Event(), None, None, []

    def set_result(self, value):
        if self._set.is_set():
            raise RuntimeError("Future can only be marked completed once")
        self._value = value
        self._set.set()
        for call in self._calls:
            call()

    def set_exception(self, error):
        self._error = error
        self._set.set()

    def done(self):
        return self._set.is_set()

    def wait(self):
        if not self._set.wait(10):
            raise TimeoutError("a future that nobody completes")
        return self.value()

    def value(self):
        if not self._set.is_set():
            raise RuntimeError("The future has not completed")
        if self._error is not None:
            raise self._error
        return self._value

    def then(self, callback):
        out = Future()

        def call():
            try:
                out.set_result(callback(self))
            except Exception as e:
                out.set_exception(e)

        if self._set.is_set():
            call()
        else:
            self._calls.append(call)
        return out


class Store:
    """As torch's: texts by keys, and numbers that are added to."""

    def __init__(self):
        self.texts, self.numbers = {}, {}

    def add(self, key, n):
        self.numbers[key] = self.numbers.get(key, 0) + n
        return self.numbers[key]

    def set(self, key, text):
        self.texts[key] = text

    def get(self, key):
        return self.texts[key].encode()


class Group:
    def __init__(self, rank, size):
        self.made = (rank, size)


class Backend:
    registered = []

    @classmethod
    def register_backend(cls, *args, **kwargs):
        cls.registered.append((args, kwargs))
        cls.TRIB = args[0]


def tensor(values, dtype=None, shape=None):
    values = list(values)
    return Tensor(Storage(values), (len(values),) if shape is None else shape, dtype or float32)


def empty(shape, dtype=None):
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    return Tensor(Storage([None] * math.prod(shape)), shape, dtype or float32)


def zeros(n, dtype=None):
    return tensor([0] * n, dtype)


def arange(n):
    return tensor(range(n), int64)


def empty_like(t):
    return empty(t.shape, t.dtype)


def cat(tensors):
    return tensor([v for t in tensors for v in t.tolist()], tensors[0].dtype)


modes = []  # in which tensors were written


@contextlib.contextmanager
def _mode(name):
    modes.append(name)
    yield


strided, sparse = "torch.strided", "torch.sparse_coo"
uint8, int8, bool_ = DType("uint8", 1), DType("int8", 1), DType("bool", 1)
int16, int32, int64 = DType("int16", 2), DType("int32", 4), DType("int64", 8)
float16, bfloat16 = DType("float16", 2, True), DType("bfloat16", 2, True)
float32, float64, complex64 = DType("float32", 4, True), DType("float64", 8, True), DType("complex64", 8)


def install():
    """Puts these in the place of torch, once for a process."""
    if isinstance(sys.modules.get("torch"), types.ModuleType) and getattr(sys.modules["torch"], "fake", False):
        return
    names = ("uint8", "int8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "strided", "Tensor", "empty", "zeros", "arange", "empty_like", "cat")
    torch = types.ModuleType("torch")
    torch.__dict__.update({n: globals()[n] for n in names}, bool=bool_, fake=True, no_grad=lambda: _mode("no_grad"), inference_mode=lambda: _mode("inference"))
    parts = {
        "torch.futures": {"Future": Future},
        "torch._C": {},
        "torch._C._distributed_c10d": {"Store": Store, "Work": object},
        "torch.distributed": {"ProcessGroup": Group, "Backend": Backend, "ReduceOp": types.SimpleNamespace(SUM=types.SimpleNamespace(name="SUM"))},
    }
    sys.modules["torch"] = torch
    for name, has in parts.items():
        module = types.ModuleType(name)
        module.__dict__.update(has)
        sys.modules[name] = module
        parent, _, last = name.rpartition(".")
        setattr(sys.modules[parent], last, module)
