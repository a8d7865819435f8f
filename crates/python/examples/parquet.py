"""Reads the counts that the command line writes as Parquet, by DuckDB and by polars.

    pip install duckdb polars
    python crates/python/examples/parquet.py docs/samples/monday.log
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb
import polars


def main(log: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        counts = str(Path(folder) / "counts.parquet")
        subprocess.run(["ucl", "count", log, "--format", "field:7", "--out", counts], check=True, capture_output=True)
        frequent = "select key, estimate from read_parquet(?) order by estimate desc, key limit 3"
        by_duckdb = duckdb.execute(frequent, [counts]).fetchall()
        frame = polars.read_parquet(counts).sort(["estimate", "key"], descending=[True, False])
        assert frame.select("key", "estimate").head(3).rows() == by_duckdb
        for key, estimate in by_duckdb:
            print(key, estimate)


if __name__ == "__main__":
    main(sys.argv[1])
