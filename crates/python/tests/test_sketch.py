"""Answers, state, and what belongs to a Python object."""

from __future__ import annotations

import copy
import gzip
import json
import pickle
from collections import Counter
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes import run

import ucl_sketch as ucl

STREAM = [f"/page/{i * i % 211}" for i in range(5_000)]
TRUTH = Counter(STREAM)


@pytest.fixture
def sketch() -> ucl.Sketch:
    made = ucl.Sketch("64KB", seed=3)
    made.update(STREAM)
    return made


def same(one: ucl.Sketch, other: ucl.Sketch) -> bool:
    return pickle.dumps(one) == pickle.dumps(other)


def test_top_is_a_table(sketch: ucl.Sketch) -> None:
    top = sketch.top(3)
    assert top.column_names == ["key", "count", "lower", "upper", "likely_lower", "likely_upper", "exact"]
    assert [row.count for row in top] == sorted(TRUTH.values(), reverse=True)[:3]
    first = top[0]
    assert isinstance(first, ucl.Count)
    assert first == top[-3] and TRUTH[first.key] == first.count
    assert first.lower <= first.likely_lower <= first.count <= first.likely_upper <= first.upper
    assert first.exact == (first.lower == first.upper)
    with pytest.raises(IndexError, match="there is no row 3: the table has 3"):
        top[3]
    with pytest.raises(ValueError, match="there is no column 'sum'"):
        top.column("sum")
    for frame in (top.to_pandas(), top.to_polars(), top.to_arrow()):
        assert list(frame["count"]) == top["count"] or frame["count"].to_pylist() == top["count"]
    assert top.to_dict() == {name: top[name] for name in top.column_names}
    assert "/page/" in repr(top) and "<td>/page/" in top._repr_html_()
    assert len(sketch.top()) == len(sketch) == len(TRUTH)
    assert f"... and {len(TRUTH) - 20} more rows" in repr(sketch.top())


def test_estimates(sketch: ucl.Sketch) -> None:
    asked = ["/page/4", "/none", "/page/9"]
    table = sketch.estimate(asked)
    assert [row.key for row in table] == asked
    for row in table:
        assert row.lower <= TRUTH[row.key] <= row.upper
        assert row == sketch.estimate(row.key)


def test_state(sketch: ucl.Sketch, tmp_path: Path) -> None:
    path = tmp_path / "pages.ucl"
    sketch.save(path)
    for again in (ucl.load(path), ucl.load(str(path)), ucl.Sketch.load(path, keys="str")):
        assert list(again.top()) == list(sketch.top())
    for again in (pickle.loads(pickle.dumps(sketch)), copy.copy(sketch), copy.deepcopy(sketch), sketch.copy()):
        assert same(again, sketch)
        again.add("/only/here")
        assert sketch.estimate("/only/here").lower == 0
        assert not same(again, sketch)


def test_state_of_a_sketch_without_keys(tmp_path: Path) -> None:
    empty = ucl.Sketch("8KB", mode="em", seed=2**100, expected_keys=77)
    empty.update([None, None], null="count")
    empty.save(tmp_path / "empty.ucl")
    for again in (ucl.load(tmp_path / "empty.ucl"), pickle.loads(pickle.dumps(empty)), empty.copy()):
        assert (again.keys, again.mode, again.seed, again.nulls) == (None, "em", 2**100, 2)
        again.update(["a", "a"])
        other = empty.copy()
        other.update(["a", "b"])
        # Copies of one sketch have its seed, and so can be merged.
        again.merge(other, empty)
        assert again.estimate("a").count == 3
        assert again.nulls == 6
        joined = empty.copy()
        joined.merge(again)
        assert joined.keys == "str" and joined.estimate("a").count == 3


def test_keys_come_back_from_files_with_their_type(tmp_path: Path) -> None:
    columns: list[Any] = [[1, 2, 2], ["a", "é", "é"], [b"a", b"\xff"], [(1, "a"), (1, "b")]]
    for column in [*columns, np.array([1, 2], "uint32")]:
        made = ucl.Sketch("8KB")
        made.update(column)
        made.save(tmp_path / "x.ucl")
        again = ucl.load(tmp_path / "x.ucl")
        assert again.keys == made.keys
        assert sorted(row.key for row in again.top()) == sorted(set(made.top()["key"]))


def test_the_command_line_reads_our_files_and_we_its(
    command_line: Callable[..., str], samples: Path, tmp_path: Path
) -> None:
    log = samples / "monday.log"
    path = tmp_path / "theirs.ucl"
    command_line("count", log, "--format", "field:7", "--seed", "5", "--save", path)
    theirs = ucl.load(path)
    ours = ucl.count(log, format="field:7", seed=5, mode=theirs.mode)
    truth = Counter(line.split()[6] for line in log.read_text().splitlines())
    assert {row.key: row.count for row in theirs.top()} == truth
    assert list(ours.top()) == list(theirs.top())
    ours.save(tmp_path / "ours.ucl")
    shown = command_line("top", tmp_path / "ours.ucl", "--json")
    assert all(str(key) in shown for key, _ in truth.most_common(3))


def test_files(samples: Path, tmp_path: Path) -> None:
    sales = ucl.count(samples / "purchases.csv", format="csv:product", weight="amount", scale=100, on_error="skip")
    assert sales.weight > 0 and sales.keys == "str"
    both = ucl.count([samples / "monday.log", samples / "tuesday.log"], format="field:7")
    assert both.items == sum(len((samples / day).read_text().splitlines()) for day in ("monday.log", "tuesday.log"))
    for day in ("monday.log", "tuesday.log"):
        with gzip.open(tmp_path / f"{day}.gz", "wb") as packed:
            packed.write((samples / day).read_bytes())
    for path in (tmp_path, f"{tmp_path}/*.log.gz"):
        assert set(ucl.count(path, format="field:7").top()) == set(both.top())
    with pytest.raises(FileNotFoundError, match="no file matches"):
        ucl.count(tmp_path / "*.txt")
    flows = ucl.count("caida-like:2000", seed=1)
    row = flows.top(1)[0]
    assert " > " in row.key and flows.estimate(row.key) == row
    numbers = tmp_path / "items.dat"
    numbers.write_text("1 2 2\n2 x\n")
    assert {row.key: row.count for row in ucl.count(numbers, format="fimi").top()} == {"1": 1, "2": 3, "x": 1}
    with pytest.raises(ValueError, match="format"):
        ucl.count(numbers, format="parquet")


@pytest.mark.parametrize("mode", ["delta", "exact"])
def test_time(mode: str) -> None:
    made = ucl.Sketch("16KB", mode=mode, interval=1_000, keep_epochs=4, seed=1)
    for hour in range(6):
        made.update(["always"] * 500 + [f"hour {hour}"] * 500)
    series = made.series("always")
    assert series.column_names == ["epoch", "items", "count"]
    assert series["count"][-3:] in ([500.0, 500.0, 500.0], [500.0, 500.0, 0.0])
    changes = made.changes(2)
    assert {row.key for row in changes} == {"hour 5", "hour 4"}
    assert made.series("never")["count"] == [0.0] * len(series)


def test_plan_and_evaluate() -> None:
    planned = ucl.plan("16KB", keys="uint32", expected_keys=2_000, items=20_000, modes=["delta", "em", "exact-map"])
    assert planned["mode"] == ["delta", "em", "exact-map"]
    assert planned["failed"] == [None] * 3 and max(planned["memory_used"][:2]) <= 16 << 10
    numbers = np.array([i * i % 977 for i in range(20_000)], "uint32")
    measured = ucl.evaluate(numbers, memory=["4KB", "64KB"], modes=["delta", "cm", "exact"])
    assert measured["mode"] == ["delta", "cm", "exact"] * 2
    assert measured["mean_error"][3] <= measured["mean_error"][0] < measured["mean_error"][1]
    assert measured["mean_error"][5] == 0.0
    assert measured["range_violations"][0] == 0
    with pytest.raises(ValueError, match="magic"):
        ucl.evaluate(numbers, modes=["magic"])
    with pytest.raises(ValueError, match="do not occur in a stream of 10 items"):
        ucl.plan(expected_keys=100, items=10)


def test_what_is_shown(sketch: ucl.Sketch) -> None:
    assert repr(sketch).startswith("<ucl_sketch.Sketch mode=") and "items=5000 weight=5000" in repr(sketch)
    html = sketch._repr_html_()
    assert html.count("<rect") == 10 and "/page/" in html
    hostile = ucl.Sketch()
    hostile.add("<script>")
    assert "<script>" not in hostile._repr_html_()
    assert "<script>" not in hostile.top()._repr_html_()
    assert ucl.Sketch()._repr_html_() and bool(ucl.Sketch())
    assert sketch.memory <= 65_536 < sketch.memory + sketch.decoder_memory
    json.dumps({"seed": sketch.seed, "mode": sketch.mode})


def test_importing_loads_little() -> None:
    assert ucl.__version__ == version("ucl-sketch")
    # The first takes longer to load than all of this, and the others are for those who ask for them.
    program = """
import sys, ucl_sketch
assert not {"importlib.metadata", "numpy", "pyarrow", "pandas", "polars"} & set(sys.modules)
"""
    assert run(program) == 0


def test_the_same_seed_gives_the_same_sketch() -> None:
    def made() -> ucl.Sketch:
        sketch = ucl.Sketch("4KB", seed=11)
        sketch.update(STREAM)
        return sketch

    assert same(made(), made())
