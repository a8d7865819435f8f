"""The tables that a collector exports, read by engines that exist."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import duckdb as typed_duckdb
import pytest
from processes import PATIENCE
from serving import serve, stop

# Its types do not say what its functions return.
duckdb: Any = typed_duckdb


@pytest.fixture
def exported(program: Path, samples: Path, tmp_path: Path) -> Iterator[tuple[Path, Counter[str]]]:
    """The Parquet file of a collector to which an agent sent a log, and what is in the log."""
    log = samples / "monday.log"
    server = serve(program, tmp_path / "data")
    try:
        agent: list[str | Path] = [program, "agent", "--to", server.url, "--token", server.token, "--stream", "web-1"]
        subprocess.run([*agent, "--state", tmp_path / "agent", "--format", "field:7", log], check=True, timeout=PATIENCE)
        bearer = {"Authorization": f"Bearer {server.token}"}
        path = tmp_path / "counts.parquet"
        with urlopen(Request(f"{server.url}/v1/default/export?as=parquet", headers=bearer), timeout=PATIENCE) as answer:
            path.write_bytes(answer.read())
    finally:
        stop(server)
    yield path, Counter(line.split()[6] for line in log.read_text().splitlines())


def agrees(rows: list[tuple[str, int, int]], truth: Counter[str]) -> bool:
    return {key for key, _, _ in rows} == set(truth) and all(
        lower <= truth[key] <= upper for key, lower, upper in rows
    )


def test_duckdb_reads_the_export_of_a_collector(exported: tuple[Path, Counter[str]]) -> None:
    path, truth = exported
    assert agrees(duckdb.sql(f"select key, lower, upper from '{path}'").fetchall(), truth)


@pytest.mark.spark
def test_spark_reads_the_export_of_a_collector(exported: tuple[Path, Counter[str]]) -> None:
    from pyspark.sql import SparkSession

    path, truth = exported
    session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    rows = session.read.parquet(str(path)).select("key", "lower", "upper").collect()
    # Spark has no numbers without a sign: it reads them as decimals.
    assert agrees([(row.key, int(row.lower), int(row.upper)) for row in rows], truth)
    session.stop()
