"""Counts a column of a Spark data frame in its partitions, and merges their sketches on the driver.

    pip install pyspark pyarrow         # and Java
    python crates/python/examples/spark.py
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import ucl_sketch as ucl


def count(frame: DataFrame, column: str, empty: ucl.Sketch) -> ucl.Sketch:
    """Counts a column of a frame. `empty` says how: every partition gets a copy."""

    def count_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        sketch = empty.copy()
        for batch in batches:
            sketch.update(batch.column(column))
        yield pa.RecordBatch.from_pydict({"sketch": [pickle.dumps(sketch)]})

    total = empty.copy()
    for row in frame.select(column).mapInArrow(count_partition, "sketch binary").toLocalIterator():
        total.merge(pickle.loads(row.sketch))
    return total


def main() -> None:
    # The workers need ucl_sketch too: these run in the same Python as this program.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    frame = spark.range(100_000).selectExpr("id * id % 997 as user_id").repartition(4)
    total = count(frame, "user_id", ucl.Sketch("64KB"))
    assert total.weight == 100_000
    truth = {row.user_id: row["count"] for row in frame.groupBy("user_id").count().collect()}
    assert {row.key: row.count for row in total.top()} == truth
    print(total.top(3))
    spark.stop()


if __name__ == "__main__":
    main()
