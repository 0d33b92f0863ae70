"""The metrics of one result: aggregates read at once, instances only when somebody asks for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from kernelpilot_helpers.ncu import rep_units, wire
from kernelpilot_helpers.ncu.model import RefusedInput
from kernelpilot_helpers.ncu.report import Series, Value
from kernelpilot_helpers.ncu.wire import BYTES, VARINT, Buffer, Scalar

Span = tuple[int, int]
_KEY_TAG, _VALUE_TAG = 1 << 3 | BYTES, 2 << 3 | BYTES
_NONE = Series(keys=(), values=())


class Metrics(Mapping[str, Value]):
    """Aggregates by name; a Value is made when it is asked for. Metrics without an aggregate are not in it."""

    __slots__ = ("_file", "_raw")

    def __init__(self, raw: Mapping[str, tuple[Scalar, int]], *, file: int = 0) -> None:
        self._raw = raw
        self._file = file

    def of_file(self, file: int) -> Metrics:
        """The same metrics with another index in ``Report.files``."""
        return Metrics(self._raw, file=file)

    def only(self, keep: Callable[[str], bool]) -> Metrics:
        """The metrics that ``keep`` says yes to."""
        return Metrics({name: value for name, value in self._raw.items() if keep(name)}, file=self._file)

    def __getitem__(self, name: str) -> Value:
        scalar, row = self._raw[name]
        if isinstance(scalar, str):
            return Value(number=None, text=scalar, row=row, file=self._file)
        return Value(number=scalar, unit=rep_units.unit(name), row=row, file=self._file)

    def __iter__(self) -> Iterator[str]:
        return iter(self._raw)

    def __len__(self) -> int:
        return len(self._raw)

    def __contains__(self, name: object) -> bool:
        return name in self._raw


class SeriesMap(Mapping[str, Series]):
    """Instances by metric, decoded on first use; one whose bytes are damaged is empty."""

    __slots__ = ("_data", "_done", "_spans")

    def __init__(self, data: Buffer, spans: Mapping[str, Span]) -> None:
        self._data = data
        self._spans = spans
        self._done: dict[str, Series] = {}

    def __getitem__(self, name: str) -> Series:
        if name not in self._done:
            try:
                self._done[name] = _series(self._data, *self._spans[name])
            except RefusedInput:
                self._done[name] = _NONE
        return self._done[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._spans)

    def __len__(self) -> int:
        return len(self._spans)

    def __contains__(self, name: object) -> bool:
        return name in self._spans


def read(data: Buffer, spans: Sequence[Span], names: Sequence[str]) -> tuple[Metrics, SeriesMap]:
    """Metrics of a result from the spans of its ``Metric`` messages, numbered from 1 in file order.

    Raises RefusedInput for a damaged message or a name that the string table does not have.
    """
    raw: dict[str, tuple[Scalar, int]] = {}
    series: dict[str, Span] = {}
    for row, (start, end) in enumerate(spans, 1):
        name_id, value, instances = _metric(data, start, end)
        if name_id >= len(names):
            raise wire.damaged(f"metric {row} has name {name_id} of {len(names)}")
        if value is not None:
            raw[names[name_id]] = (value, row)
        if instances:
            series[names[name_id]] = (start, end)
    return Metrics(raw), SeriesMap(data, series)


def _metric(data: Buffer, at: int, end: int) -> tuple[int, Scalar | None, bool]:
    """Name id, aggregate, whether there are instances. Fields lie in order of their number: it stops at the third."""
    name_id = 0
    value: Scalar | None = None
    for number, kind, start, stop in wire.fields(data, at, end):
        if number == 1 and kind == VARINT:
            name_id = start
        elif number == 2 and kind == BYTES:
            value = wire.scalar(data, start, stop)
        elif number == 3:
            return name_id, value, True
    return name_id, value, False


def _series(data: Buffer, at: int, end: int) -> Series:
    keys: list[int | str] = []
    values: list[Scalar | None] = []
    sort = 0
    for number, kind, start, stop in wire.fields(data, at, end):
        if number == 3 and kind == BYTES:
            key, value = _instance(data, start, stop)
            if key is not None:
                keys.append(key)
            values.append(value)
        elif number == 4 and kind == VARINT:
            sort = start
    whole = len(keys) == len(values)
    return Series(keys=tuple(keys) if whole else (), values=tuple(values), kind=sort)


def _instance(data: Buffer, at: int, end: int) -> tuple[int | str | None, Scalar | None]:
    key: Scalar | None = None
    value: Scalar | None = None
    # As every file has it: field 1, then field 2, both short. There are 100,000 of them in a full set.
    middle = at + 2 + data[at + 1] if end - at > 3 and data[at] == _KEY_TAG and data[at + 1] < 128 else end
    if middle + 1 < end and data[middle] == _VALUE_TAG and data[middle + 1] == end - middle - 2 < 128:
        key, value = wire.scalar(data, at + 2, middle), wire.scalar(data, middle + 2, end)
        return int(key) if isinstance(key, float) else key, value
    for number, kind, start, stop in wire.fields(data, at, end):
        if kind == BYTES and number == 1:
            key = wire.scalar(data, start, stop)
        elif kind == BYTES and number == 2:
            value = wire.scalar(data, start, stop)
    return int(key) if isinstance(key, float) else key, value
