"""Examples for engines that exist: each is in docs/python.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb as typed_duckdb
import polars as pl
import pyarrow as pa
import pytest

import ucl_sketch as ucl

# Its types do not say what its functions return.
duckdb: Any = typed_duckdb

NUMBERS = [int(i * i % 997) for i in range(30_000)]


def test_duckdb_and_polars_read_the_parquet_of_the_command_line(
    command_line: Callable[..., str], samples: Path, tmp_path: Path
) -> None:
    path = tmp_path / "pages.parquet"
    log = samples / "monday.log"
    command_line("count", log, "--format", "field:7", "--out", path)
    truth = Counter(line.split()[6] for line in log.read_text().splitlines()).most_common(1)[0]
    rows = duckdb.sql(f"select key, estimate from '{path}' order by estimate desc limit 1").fetchall()
    assert [(_text(key), estimate) for key, estimate in rows] == [truth]
    frame = pl.read_parquet(path).sort("estimate", descending=True)
    assert _text(frame["key"][0]) == truth[0] and frame["estimate"][0] == truth[1]


def _text(key: str | bytes) -> str:
    return key if isinstance(key, str) else key.decode()


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


@pytest.mark.spark
def test_spark_counts_in_partitions_and_merges_on_the_driver() -> None:
    import pickle

    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    frame = spark.createDataFrame([(n,) for n in NUMBERS], "n long").repartition(3)
    empty = ucl.Sketch("64KB", seed=1)

    def count(batches: Iterator[Any]) -> Iterator[Any]:
        sketch = empty.copy()
        for batch in batches:
            sketch.update(batch.column("n"))
        yield pa.RecordBatch.from_pydict({"sketch": [pickle.dumps(sketch)]})

    total = empty.copy()
    for row in frame.mapInArrow(count, "sketch binary").collect():
        total.merge(pickle.loads(row.sketch))
    spark.stop()
    truth = Counter(NUMBERS)
    assert total.weight == len(NUMBERS)
    assert all(row.lower <= truth[row.key] <= row.upper for row in total.top())


