"""Every kind of column is counted as `Counter` counts it."""

from __future__ import annotations

from collections import Counter
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import ucl_sketch as ucl

NUMBERS = [int(i * i % 97) for i in range(2_000)]
WORDS = [f"word {n}" for n in NUMBERS]


def counted(sketch: ucl.Sketch) -> Counter[Any]:
    """The counts of a sketch that has room for all keys: they must be certain to be compared."""
    table = sketch.top()
    assert all(row.lower <= row.count <= row.upper for row in table)
    return Counter({row.key: row.count for row in table})


def count_of(column: Any, **options: Any) -> ucl.Sketch:
    sketch = ucl.Sketch("64KB", seed=1)
    sketch.update(column, **options)
    return sketch


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", ">i4"])
def test_numpy_numbers(dtype: str) -> None:
    assert counted(count_of(np.array(NUMBERS, dtype))) == Counter(NUMBERS)


def test_numpy_that_is_not_contiguous_or_aligned() -> None:
    array = np.array(NUMBERS, "int64")
    assert counted(count_of(array[::3])) == Counter(NUMBERS[::3])
    raw = np.zeros(8 * len(array) + 1, "uint8")
    raw[1:] = array.view("uint8")
    assert counted(count_of(raw[1:].view("int64"))) == Counter(NUMBERS)


def test_numpy_booleans_text_objects_and_masks() -> None:
    assert counted(count_of(np.array([True, False, True]))) == Counter({1: 2, 0: 1})
    assert counted(count_of(np.array(WORDS))) == Counter(WORDS)
    assert counted(count_of(np.array(WORDS, "object"))) == Counter(WORDS)
    masked = np.ma.masked_array([1, 2, 1], [False, True, False])
    assert counted(count_of(masked, null="count")) == Counter({1: 2, None: 1})


def test_numpy_bytes_are_padded_as_numpy_says() -> None:
    keys = [word.encode() for word in WORDS]
    sketch = count_of(np.array(keys, "S13"))
    assert (sketch.keys, counted(sketch)) == ("bytes", Counter(keys))
    # Of one length, zeros and all.
    whole = ucl.Sketch(keys="bytes13")
    whole.update(np.array(keys, "S13"))
    assert counted(whole) == Counter(key.ljust(13, b"\0") for key in keys)
    void = count_of(np.array(keys, "S13").view("V13"))
    assert (void.keys, counted(void)) == ("bytes13", counted(whole))


@pytest.mark.parametrize(
    "make",
    [list, pa.array, pl.Series, pd.Series, lambda v: iter(v), lambda v: pa.chunked_array([v[:700], v[700:]])],
    ids=["list", "pyarrow", "polars", "pandas", "iterator", "chunked"],
)
@pytest.mark.parametrize("values", [NUMBERS, WORDS, [word.encode() for word in WORDS]], ids=["int", "str", "bytes"])
def test_columns_of_every_library(make: Any, values: list[Any]) -> None:
    assert counted(count_of(make(values))) == Counter(values)


@pytest.mark.parametrize(
    "type_", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
)
def test_arrow_text(type_: Any) -> None:
    text = pa.array(WORDS, type_) if type_ == pa.string_view() else pa.array(WORDS).cast(type_)
    assert counted(count_of(text)) == Counter(WORDS)


@pytest.mark.parametrize("type_", [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(4)])
def test_arrow_bytes(type_: Any) -> None:
    values = [n.to_bytes(4, "big") for n in NUMBERS]
    assert counted(count_of(pa.array(values, type_))) == Counter(values)


def test_a_slice_of_an_arrow_array_is_its_rows() -> None:
    for values in (NUMBERS, WORDS, [n.to_bytes(4, "big") for n in NUMBERS]):
        assert counted(count_of(pa.array(values)[500:900])) == Counter(values[500:900])
        assert counted(count_of(pa.array(values).dictionary_encode()[500:900])) == Counter(values[500:900])
    fixed = pa.array([n.to_bytes(4, "big") for n in NUMBERS], pa.binary(4))
    assert counted(count_of(fixed[500:900])) == Counter(fixed[500:900].to_pylist())


def test_dictionaries_are_counted_by_code() -> None:
    values: list[Any] = [*WORDS, None, None]
    weights = list(range(len(values)))
    for column in (
        pa.array(values).dictionary_encode(),
        pd.Series(values, dtype="category"),
        pl.Series(values, dtype=pl.Categorical),
    ):
        sketch = count_of(column, null="count")
        assert counted(sketch) == Counter(values)
        assert sketch.items == len(set(WORDS)), "one item for each distinct value"
        weighted = Counter[Any]()
        for value, weight in zip(values, weights):
            weighted[value] += weight
        assert counted(count_of(column, weights=weights, null="count")) == +weighted


def test_a_table_is_counted_by_its_rows() -> None:
    pairs = list(zip(NUMBERS, WORDS))
    frame = pd.DataFrame(pairs, columns=["n", "word"])
    for table in (frame, frame[frame.n >= 0].sort_values("word"), pl.DataFrame(frame), pa.table(frame)):
        sketch = count_of(table)
        assert sketch.keys == "(int64, str)"
        assert counted(sketch) == Counter(pairs)
    assert count_of(pairs).estimate(pairs[5]).count == Counter(pairs)[pairs[5]]


def test_tuples_with_parts_of_any_length_do_not_run_together() -> None:
    pairs = [("a", "bc"), ("ab", "c"), ("", "abc"), ("abc", "")]
    assert counted(count_of(pairs)) == Counter(pairs)


def test_addresses() -> None:
    v4 = [IPv4Address(n) for n in NUMBERS]
    v6 = [IPv6Address(n) for n in NUMBERS]
    for values, keys in ((v4, "ipv4"), (v6, "ipv6"), (v4 + v6, "ip")):
        sketch = count_of(values)
        assert (sketch.keys, counted(sketch)) == (keys, Counter(values))
        # As text too, if told.
        text = ucl.Sketch(keys=keys)
        text.update(pd.Series([str(value) for value in values]))
        assert counted(text) == Counter(values)
        assert text.estimate(str(values[3])) == text.estimate(values[3])
        assert text.top(1).to_arrow()["key"][0].as_py() in {str(value) for value in values}
    flows = [(ip_address("10.0.0.1"), ip_address("10.0.0.2"), 443, n, 6) for n in NUMBERS]
    five = ucl.Sketch(keys=("ipv4", "ipv4", "uint16", "uint16", "uint8"))
    five.update(flows)
    assert counted(five) == Counter(flows)


def test_weights() -> None:
    weights = [n % 5 for n in range(len(NUMBERS))]
    truth = Counter[int]()
    for number, weight in zip(NUMBERS, weights):
        truth[number] += weight
    for given in (weights, np.array(weights), np.array(weights, "uint8"), pa.array(weights), pd.Series(weights)):
        sketch = count_of(np.array(NUMBERS), weights=given)
        assert counted(sketch) == +truth
        assert sketch.weight == sum(weights)


def test_nulls() -> None:
    values = [1, None, 2, None, 1]
    for column in (
        values,
        pa.array(values),
        pl.Series(values),
        pd.Series(values, dtype="Int64"),
        [1, float("nan"), 2, pd.NA, 1],
    ):
        skipped = count_of(column)
        assert (counted(skipped), skipped.nulls) == (Counter({1: 2, 2: 1}), 0)
        kept = count_of(column, null="count")
        assert counted(kept) == Counter(values)
        assert (kept.estimate(None).count, kept.nulls, kept.weight, len(kept)) == (2, 2, 5, 3)
        with pytest.raises(ValueError, match="row 1 is null"):
            count_of(column, null="error")
    nothing = count_of(pa.nulls(4), null="count")
    assert (nothing.nulls, nothing.keys, counted(nothing)) == (4, None, Counter({None: 4}))


def test_one_key_at_a_time() -> None:
    sketch = ucl.Sketch()
    for word in WORDS:
        sketch.add(word)
    sketch.add("word 1", weight=10)
    sketch.add(None)
    truth = Counter[Any](WORDS)
    truth["word 1"] += 10
    truth[None] += 1
    assert counted(sketch) == truth


def test_numbers_of_any_width_are_the_same_keys() -> None:
    sketch = ucl.Sketch(keys=int)
    for column in ([5, -5], np.array([5], "uint8"), np.array([5], "int16"), pa.array([5], pa.uint64()), [np.int32(5)]):
        sketch.update(column)
    assert sketch.estimate(5).count == 5
    assert sketch.estimate(np.array([5, -5, 7], "int32")).column("count") == [5, 1, 0]


def test_large_numbers() -> None:
    top = 2**64 - 1
    assert counted(count_of([top, top, 2**63])) == Counter({top: 2, 2**63: 1})
    assert counted(count_of([-(2**63), 2**63 - 1])) == Counter([-(2**63), 2**63 - 1])
    with pytest.raises(ValueError, match="do not fit one 64-bit type"):
        count_of([-1, top])
    with pytest.raises(ValueError, match="does not fit 64 bits"):
        count_of([2**64])


def test_empty_columns_change_nothing() -> None:
    sketch = ucl.Sketch()
    columns: list[Any] = [[], np.array([], "int64"), pa.array([], pa.string()), pl.Series([], dtype=pl.Int8)]
    for column in [*columns, pd.Series([], dtype="str")]:
        sketch.update(column)
    assert (sketch.keys, sketch.items, len(sketch), sketch.weight) == (None, 0, 0, 0)
    assert sketch.estimate("anything").count == 0
    assert len(sketch.top(5)) == 0
