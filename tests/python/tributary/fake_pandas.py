# SPDX-License-Identifier: BSD-3-Clause
"""What of pandas the package uses: frames of columns, series, groups. It decides the package's logic where pandas is not installed; with
pandas itself it is in the end-to-end tests. Values are plain Python's; None and NaN are unknown."""
import math
import types


def isna(value):
    return value is None or (isinstance(value, float) and math.isnan(value))


def _key(value):
    return None if isna(value) else value


def _quantile(values, q):
    at = (len(values) - 1) * q
    low = math.floor(at)
    return values[low] + (values[min(low + 1, len(values) - 1)] - values[low]) * (at - low)


HOW = {
    "max": max, "min": min, "sum": sum, "mean": lambda v: sum(v) / len(v), "median": lambda v: _quantile(sorted(v), 0.5),
}  # fmt: skip


class Series:
    def __init__(self, values, index=None, name=None):
        self.values, self.name = list(values), name
        self.index = index if isinstance(index, Index) else Index(range(len(self.values)) if index is None else index)

    def _with(self, values, index=None):
        return Series(values, self.index if index is None else index, self.name)

    def tolist(self):
        return list(self.values)

    def __iter__(self):
        return iter(self.values)

    def __len__(self):
        return len(self.values)

    def __getitem__(self, key):
        return self.values[list(self.index).index(key)]

    def get(self, key, other=None):
        return self[key] if key in list(self.index) else other

    @property
    def iloc(self):
        return self.values

    def _each(self, other, call):
        others = other.values if isinstance(other, Series) else [other] * len(self.values)
        return self._with([None if isna(a) or isna(b) else call(a, b) for a, b in zip(self.values, others)])

    def __add__(self, other):
        return self._each(other, lambda a, b: a + b)

    def __radd__(self, other):
        return self._each(other, lambda a, b: b + a)

    def __sub__(self, other):
        return self._each(other, lambda a, b: a - b)

    def __mul__(self, other):
        return self._each(other, lambda a, b: a * b)

    __rmul__ = __mul__

    def __truediv__(self, other):
        return self._each(other, lambda a, b: a / b)

    def _bool(self, other, call):
        found = self._each(other, call)
        return found._with([bool(v) for v in found.values])

    def __eq__(self, other):
        return self._bool(other, lambda a, b: a == b)

    def __ne__(self, other):
        return self._with([not v for v in (self == other).values])

    def __gt__(self, other):
        return self._bool(other, lambda a, b: a > b)

    gt = __gt__

    def __invert__(self):
        return self._with([not v for v in self.values])

    __hash__ = None

    def nunique(self, dropna=True):
        return len({_key(v) for v in self.values if not (dropna and isna(v))})

    def unique(self):
        return list(dict.fromkeys(self.values))

    def fillna(self, other):
        others = other.values if isinstance(other, Series) else [other] * len(self.values)
        return self._with([b if isna(a) else a for a, b in zip(self.values, others)])

    def dropna(self):
        kept = [(i, v) for i, v in zip(self.index, self.values) if not isna(v)]
        return self._with([v for _, v in kept], [i for i, _ in kept])

    def astype(self, kind):
        if kind == "Int64":
            made = self._with([None if isna(v) else int(v) for v in self.values])
            made.kind = kind
            return made
        return self._with([kind(v) for v in self.values])

    def _known(self):
        return [v for v in self.values if not isna(v)]

    def max(self):
        return max(self._known())

    def min(self):
        return min(self._known())

    def sum(self):
        return sum(self._known())

    def rename(self, name):
        return Series(self.values, self.index, name)

    def reset_index(self):
        keys = [k if isinstance(k, tuple) else (k,) for k in self.index]
        columns = {name: [k[i] for k in keys] for i, name in enumerate(self.index.names)}
        return DataFrame({**columns, self.name: self.values})

    def sort_values(self, ascending=True, kind=None):
        order = sorted(range(len(self)), key=lambda i: self.values[i] if ascending else -self.values[i])
        return self._with([self.values[i] for i in order], [list(self.index)[i] for i in order])

    def rank(self, ascending=True, method="first"):
        assert method == "first"
        order = list(self.sort_values(ascending).index)
        return self._with([order.index(i) + 1.0 for i in self.index])

    def reindex(self, index):
        have = dict(zip(self.index, self.values))
        return self._with([have.get(i) for i in index], list(index))

    def groupby(self, level):
        assert level == 0
        return _Values(list(self.index), self.values, True, ["index"])


class Index(list):
    def __init__(self, values, names=("index",)):
        super().__init__(values)
        self.names = list(names)


class Row(Series):
    """Values by the names of columns."""


class _Values:
    """A column by groups."""

    def __init__(self, keys, values, sort, names):
        self.groups, self.names = {}, names
        for k, v in zip(keys, values):
            if not isna(v):
                self.groups.setdefault(k, []).append(v)
        if sort:
            self.groups = dict(sorted(self.groups.items(), key=lambda item: str(item[0]) if isinstance(item[0], tuple) else item[0]))

    def _of(self, call):
        return Series([call(v) for v in self.groups.values()], Index(self.groups, self.names))

    def __getattr__(self, name):
        how = HOW[name] if name in HOW else None
        if how is None:
            raise AttributeError(name)
        return lambda: self._of(how)

    def quantile(self, q):
        return self._of(lambda v: _quantile(sorted(v), q))

    def size(self):
        return self._of(len)


class Groups:
    def __init__(self, frame, by, sort=True, dropna=True):
        self.frame, self.sort, self.names = frame, sort, [by] if isinstance(by, str) else list(by)
        columns = [frame.columns_[n] for n in self.names]
        keys = [tuple(_key(v) for v in k) for k in zip(*columns)]
        self.keys = [k[0] for k in keys] if isinstance(by, str) else keys
        self.kept = [not dropna or not any(v is None for v in (k if isinstance(k, tuple) else (k,))) for k in self.keys]

    def __iter__(self):
        keys = dict.fromkeys(k for k, kept in zip(self.keys, self.kept) if kept)
        for key in sorted(keys) if self.sort else keys:
            yield key, self.frame[[k == key and kept for k, kept in zip(self.keys, self.kept)]]

    @property
    def ngroups(self):
        return len({k for k, kept in zip(self.keys, self.kept) if kept})

    def __getitem__(self, name):
        kept = [(k, v) for k, v, keep in zip(self.keys, self.frame.columns_[name], self.kept) if keep]
        return _Values([k for k, _ in kept], [v for _, v in kept], self.sort, self.names)


class _Loc:
    def __init__(self, frame):
        self.frame = frame

    def __getitem__(self, key):
        rows, column = key
        return self.frame[rows][column]


class _Iloc(_Loc):
    def __getitem__(self, at):
        return Row([v[at] for v in self.frame.columns_.values()], list(self.frame.columns_))


class DataFrame:
    def __init__(self, data=None, columns=None):
        if isinstance(data, list):
            names = list(dict.fromkeys(k for row in data for k in row))
            data = {n: [row.get(n) for row in data] for n in names}
        self.columns_ = {n: list(v) for n, v in (data or {n: [] for n in columns or ()}).items()}
        self.attrs = {}

    @property
    def columns(self):
        return list(self.columns_)

    @property
    def loc(self):
        return _Loc(self)

    @property
    def iloc(self):
        return _Iloc(self)

    def __len__(self):
        return len(next(iter(self.columns_.values()), []))

    def __iter__(self):
        return iter(self.columns_)

    def __contains__(self, name):
        return name in self.columns_

    def _rows(self, keep):
        made = DataFrame({n: [v for v, k in zip(c, keep) if k] for n, c in self.columns_.items()})
        made.attrs = dict(self.attrs)
        return made

    def __getitem__(self, key):
        if isinstance(key, slice):
            return self._rows([i in range(len(self))[key] for i in range(len(self))])
        if isinstance(key, Series):
            return self._rows(key.values)
        if isinstance(key, list):
            if key and all(isinstance(k, str) for k in key):
                return DataFrame({n: self.columns_[n] for n in key})
            return self._rows(key)
        return Series(self.columns_[key], None, key)

    def __setitem__(self, name, values):
        self.columns_[name] = list(values)

    def assign(self, **columns):
        made = DataFrame({**self.columns_, **{n: list(v) for n, v in columns.items()}})
        made.attrs = dict(self.attrs)
        return made

    def to_dict(self, how):
        assert how == "records"
        return [dict(zip(self.columns_, row)) for row in zip(*self.columns_.values())]

    def itertuples(self, index=True):
        assert not index
        return zip(*self.columns_.values())

    def astype(self, kind):
        return DataFrame({n: [kind(v) for v in c] for n, c in self.columns_.items()})

    def reset_index(self, drop=False):
        assert drop
        return self._rows([True] * len(self))

    def dropna(self, subset):
        return self._rows([not any(isna(self.columns_[n][i]) for n in subset) for i in range(len(self))])

    def fillna(self, other):
        return DataFrame({n: [other if isna(v) else v for v in c] for n, c in self.columns_.items()})

    def gt(self, other):
        return DataFrame({n: [v > other for v in c] for n, c in self.columns_.items()})

    def any(self, axis):
        assert axis == 1
        return Series([any(row) for row in zip(*self.columns_.values())])

    def sort_values(self, name):
        order = sorted(range(len(self)), key=lambda i: self.columns_[name][i])
        return DataFrame({n: [c[i] for i in order] for n, c in self.columns_.items()})

    def groupby(self, by, sort=True, dropna=True):
        return Groups(self, by, sort, dropna)

    def merge(self, other, on, how):
        assert how == "inner"
        found = []
        for row in self.to_dict("records"):
            found += [{**row, **o} for o in other.to_dict("records") if all(_key(row[k]) == _key(o[k]) for k in on)]
        return DataFrame(found) if found else DataFrame(columns=[*self.columns_, *(n for n in other.columns_ if n not in self.columns_)])


def concat(many):
    return Series([v for s in many for v in s.values], [i for s in many for i in s.index])


module = types.SimpleNamespace(DataFrame=DataFrame, isna=isna, concat=concat)
