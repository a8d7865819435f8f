"""Engines that exist: what docs/python.md shows of them, and the examples."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb as typed_duckdb
import polars as pl
import pyarrow as pa
import pytest
from processes import PATIENCE

import ucl_sketch as ucl

# Its types do not say what its functions return.
duckdb: Any = typed_duckdb

NUMBERS = [int(i * i % 997) for i in range(30_000)]


def test_duckdb_counts_into_a_sketch_and_asks_it() -> None:
    numbers = pa.table({"n": NUMBERS})
    sketch = ucl.Sketch("64KB", seed=1)
    for batch in duckdb.sql("select n from numbers where n % 2 = 0").to_arrow_reader(10_000):
        sketch.update(batch.column("n"))
    counts = sketch.to_arrow()
    [(lower, upper)] = duckdb.sql("select sum(lower), sum(upper) from counts").fetchall()
    even = sum(n % 2 == 0 for n in NUMBERS)
    assert lower <= even <= upper and len(counts) == len(sketch) and len(numbers) == len(NUMBERS)


def test_polars_counts_groups() -> None:
    frame = pl.DataFrame({"day": ["mon", "tue"] * 15_000, "n": NUMBERS})
    sketches = {}
    for (day,), group in frame.group_by("day"):
        sketches[day] = ucl.Sketch("64KB", seed=1)
        sketches[day].update(group["n"])
    week = ucl.Sketch("64KB", seed=1)
    week.merge(*sketches.values())
    assert week.weight == len(NUMBERS)
    assert pl.DataFrame(week).height == len(week)


EXAMPLES = Path(__file__).parents[1] / "examples"


def shown(name: str, *arguments: str | Path) -> str:
    """Runs an example, and returns what it prints."""
    command = [sys.executable, EXAMPLES / name, *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=5 * PATIENCE)
    assert done.returncode == 0
    return done.stdout


def test_the_example_of_processes() -> None:
    assert shown("processes.py").splitlines()[0].split()[:2] == ["key", "count"]


def test_the_example_of_parquet(program: Path, samples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    log = samples / "monday.log"
    truth = Counter(line.split()[6] for line in log.read_text().splitlines())
    frequent = sorted(truth.items(), key=lambda counted: (-counted[1], counted[0]))[:3]
    assert shown("parquet.py", log).splitlines() == [f"{key} {count}" for key, count in frequent]


@pytest.mark.spark
def test_the_example_of_spark() -> None:
    assert shown("spark.py").splitlines()[0].split()[:2] == ["key", "count"]
