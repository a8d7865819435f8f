"""Types of the native module. `mypy.stubtest` checks them against it."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta
from os import PathLike
from typing import Any, Literal, TypeAlias, final, overload

from ucl_sketch._rows import AgentStatus, Count

__all__ = ["Agent", "Collector", "Sketch", "Table", "UclError", "__version__", "count", "evaluate", "plan", "restore"]

# The keys of a sketch: a name such as "int64", "str", "bytes13" or "ipv4", a Python type, or a tuple of those.
_Keys: TypeAlias = str | type | tuple[Any, ...]
# Anything with columns: Arrow data, NumPy arrays, pandas and polars Series and frames, lists.
_Column: TypeAlias = Any
_Path: TypeAlias = str | PathLike[str]
_Null: TypeAlias = Literal["skip", "count", "error"]
# Names of streams; with "*" behind them, what names start with.
_Streams: TypeAlias = str | Sequence[str]
# As in "5m".
_Length: TypeAlias = str | timedelta
# Text is UTC, as in "2026-01-31T09:30:00Z"; a number is in milliseconds since 1970.
_Moment: TypeAlias = datetime | date | str | int

__version__: str

class UclError(Exception): ...

@final
class Table:
    @property
    def column_names(self) -> list[str]: ...
    @property
    def about(self) -> dict[str, Any] | None: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, index: str, /) -> list[Any]: ...
    @overload
    def __getitem__(self, index: int, /) -> Any: ...
    def __iter__(self) -> Iterator[Any]: ...
    def column(self, name: str) -> list[Any]: ...
    def to_dict(self) -> dict[str, list[Any]]: ...
    def to_arrow(self) -> Any: ...
    def to_pandas(self) -> Any: ...
    def to_polars(self) -> Any: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def _repr_html_(self) -> str: ...

@final
class Sketch:
    def __new__(
        cls,
        memory: str | int | None = None,
        *,
        mode: str = "exact",
        keys: _Keys | None = None,
        seed: int | None = None,
        interval: int | None = None,
        expected_keys: int | None = None,
        keep_epochs: int = 0,
    ) -> Sketch: ...
    def add(self, key: object, weight: int = 1) -> None: ...
    def update(self, column: _Column, *, weights: _Column | None = None, null: _Null = "skip") -> None: ...
    @overload
    def estimate(self, key: int | str | bytes | tuple[Any, ...] | None) -> Count: ...
    @overload
    def estimate(self, key: Any) -> Any: ...
    def top(self, n: int | None = None) -> Table: ...
    def series(self, key: object) -> Table: ...
    def changes(self, n: int = 10, *, last: int = 1) -> Table: ...
    def cut(self) -> None: ...
    def to_arrow(self) -> Any: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def merge(self, *others: Sketch) -> None: ...
    def save(self, path: _Path) -> None: ...
    @staticmethod
    def load(path: _Path, *, keys: _Keys | None = None) -> Sketch: ...
    def copy(self) -> Sketch: ...
    def __copy__(self) -> Sketch: ...
    def __deepcopy__(self, memo: object, /) -> Sketch: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def _repr_html_(self) -> str: ...
    @property
    def items(self) -> int: ...
    @property
    def weight(self) -> int: ...
    @property
    def nulls(self) -> int: ...
    @property
    def memory(self) -> int: ...
    @property
    def decoder_memory(self) -> int: ...
    @property
    def mode(self) -> str: ...
    @property
    def keys(self) -> str | None: ...
    @property
    def seed(self) -> int: ...

@final
class Agent:
    def __new__(
        cls,
        *,
        to: str,
        token: str,
        stream: str,
        tenant: str = "default",
        memory: str | int | None = None,
        mode: str = "budget",
        interval: int | None = None,
        cut_every: str = "10s",
        state: _Path | None = None,
        spool: str | int | None = None,
        queue: str | int | None = None,
        ca: _Path | None = None,
    ) -> Agent: ...
    def add(self, key: object, weight: int = 1) -> None: ...
    def update(
        self,
        column: _Column,
        *,
        weights: _Column | None = None,
        null: Literal["skip", "error"] = "skip",
        wait: bool = False,
    ) -> None: ...
    def flush(self, timeout: float = 5.0) -> bool: ...
    def close(self, timeout: float = 5.0) -> bool: ...
    def status(self) -> AgentStatus: ...
    def __enter__(self) -> Agent: ...
    def __exit__(self, *_exception: object) -> None: ...

@final
class Collector:
    def __new__(
        cls, url: str, token: str, *, tenant: str = "default", keys: _Keys | None = None, ca: _Path | None = None
    ) -> Collector: ...
    def top(
        self,
        n: int = 10,
        *,
        stream: _Streams | None = None,
        last: _Length | None = None,
        since: _Moment | None = None,
        until: _Moment | None = None,
        format: str | None = None,
    ) -> Table: ...
    @overload
    def estimate(
        self,
        key: int | str | bytes | tuple[Any, ...],
        *,
        stream: _Streams | None = None,
        last: _Length | None = None,
        since: _Moment | None = None,
        until: _Moment | None = None,
        format: str | None = None,
    ) -> Count: ...
    @overload
    def estimate(
        self,
        key: Any,
        *,
        stream: _Streams | None = None,
        last: _Length | None = None,
        since: _Moment | None = None,
        until: _Moment | None = None,
        format: str | None = None,
    ) -> Any: ...
    def changes(
        self,
        n: int = 10,
        *,
        stream: _Streams | None = None,
        last: _Length | None = None,
        since: _Moment | None = None,
        until: _Moment | None = None,
        format: str | None = None,
    ) -> Table: ...
    def series(
        self,
        key: object,
        *,
        step: _Length | None = None,
        stream: _Streams | None = None,
        last: _Length | None = None,
        since: _Moment | None = None,
        until: _Moment | None = None,
        format: str | None = None,
    ) -> Table: ...
    def prefix(
        self,
        prefixes: str | Sequence[str],
        *,
        stream: _Streams | None = None,
        last: _Length | None = None,
        since: _Moment | None = None,
        until: _Moment | None = None,
        format: str | None = None,
    ) -> Table: ...
    def streams(self, *, stream: _Streams | None = None) -> Table: ...

def plan(
    memory: str | int | None = None,
    *,
    keys: _Keys | None = None,
    expected_keys: int | None = None,
    items: int | None = None,
    skew: float = 1.0,
    modes: Sequence[str] | None = None,
    seed: int = 0,
) -> Table: ...
def evaluate(
    column: _Column,
    *,
    memory: str | int | Sequence[str | int] | None = None,
    modes: Sequence[str] | None = None,
    weights: _Column | None = None,
    keys: _Keys | None = None,
    seed: int = 0,
) -> Table: ...
def count(
    path: _Path | Iterable[_Path],
    *,
    format: str = "lines",
    weight: str | None = None,
    scale: int | None = None,
    header: bool | None = None,
    on_error: Literal["stop", "skip"] = "stop",
    limit: int | None = None,
    memory: str | int | None = None,
    mode: str = "exact",
    seed: int | None = None,
    interval: int | None = None,
    expected_keys: int | None = None,
    keep_epochs: int = 0,
) -> Sketch: ...
def restore(options: str | None, keys: str | None, nulls: int, state: bytes | None) -> Sketch: ...
