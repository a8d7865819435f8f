"""The tables that a collector exports, read by engines that exist."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import duckdb as typed_duckdb
import pytest

# Its types do not say what its functions return.
duckdb: Any = typed_duckdb

ROOT = Path(__file__).parents[3]


@pytest.fixture
def exported(samples: Path, tmp_path: Path) -> Iterator[tuple[Path, Counter[str]]]:
    """The Parquet file of a collector to which an agent sent a log, and what is in the log."""
    program = Path(os.environ.get("UCL_PROGRAM", ROOT / "target" / "debug" / "ucl"))
    assert program.exists(), f"{program} is not there: run `cargo build -p ucl-cli` first"
    log = samples / "monday.log"
    serve = [program, "serve", "--listen", "127.0.0.1:0", "--data", tmp_path / "data"]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as service:
        try:
            assert service.stdout is not None
            address = service.stdout.readline().split()[2].rstrip(",")
            token = service.stdout.readline().split()[-1]
            link = ["--to", address, "--token", token, "--state", tmp_path / "agent", "--stream", "web-1"]
            subprocess.run([program, "agent", *link, "--format", "field:7", log], check=True)
            request = Request(f"{address}/v1/default/export?as=parquet", headers={"Authorization": f"Bearer {token}"})
            path = tmp_path / "counts.parquet"
            with urlopen(request) as answer:
                path.write_bytes(answer.read())
        finally:
            service.terminate()
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
