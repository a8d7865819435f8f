"""Compares counting from Python with counting from Rust and with other packages, in one run.

    cargo build --release -p ucl-python --example insert_column
    maturin build --release -m crates/python/Cargo.toml     # and install the wheel
    pip install datasketches pandas polars pyarrow
    python crates/python/bench/compare.py --rows 10000000

Each measurement runs in a process of its own; the rounds of all contenders are interleaved, and the best time of each
is kept. Memory is the peak of the process beyond what it had before it counted.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[3]


def make(folder: Path, rows: int) -> None:
    """Writes Zipf(1.1) keys over 100,000 values: 4 bytes, 8 bytes, and text."""
    rng = np.random.default_rng(1)
    ranks = np.arange(1, 100_001, dtype="float64") ** -1.1
    chosen = np.searchsorted(np.cumsum(ranks) / ranks.sum(), rng.random(rows)).clip(0, 99_999)
    names = rng.integers(0, 2**32, 100_000)
    keys = names[chosen]
    keys.astype("uint32").tofile(folder / "4")
    keys.astype("int64").tofile(folder / "8")
    words = np.array([f"/user/{name:010}/page" for name in names], "S21")
    lines = np.empty((rows, 22), "uint8")
    lines[:, :21] = words[chosen].view("uint8").reshape(rows, 21)
    lines[:, 21] = ord("\n")
    lines.tofile(folder / "0")


def load(folder: Path, width: str) -> Any:
    if width != "0":
        return np.fromfile(folder / width, "uint32" if width == "4" else "int64")
    import pyarrow as pa

    lines = np.fromfile(folder / "0", "uint8").reshape(-1, 22)[:, :21]
    rows = len(lines)
    offsets = pa.py_buffer(np.arange(0, 21 * rows + 1, 21, "int64"))
    return pa.LargeStringArray.from_buffers(rows, offsets, pa.py_buffer(np.ascontiguousarray(lines)))


def status(field: str) -> int:
    """Returns a figure of this process in KB, as Linux gives it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field + ":"))


def reset_peak() -> int:
    """Forgets the peak that loading the column had. Returns the memory in use."""
    Path("/proc/self/clear_refs").write_text("5")
    return status("VmRSS")


def measure(name: str, mode: str, folder: Path, width: str) -> dict[str, Any]:
    """Counts once, in this process."""
    column = load(folder, width)
    rows = len(column)
    if name == "Counter":
        column = column.tolist() if width != "0" else column.to_pylist()
    elif name == "pandas":
        import pandas

        column = pandas.Series(column if width != "0" else column.to_pandas())
    elif name == "polars":
        import polars

        column = polars.Series(column) if width != "0" else polars.from_arrow(column)
    elif name == "datasketches":
        import datasketches

        column = column.tolist() if width != "0" else column.to_pylist()
    else:
        import ucl_sketch

        sketch = ucl_sketch.Sketch("64KB", mode=mode, seed=1)
    before = reset_peak()
    start = time.perf_counter()
    if name == "Counter":
        total = Counter(column).total()
    elif name == "pandas":
        total = int(column.value_counts().sum())
    elif name == "polars":
        total = int(column.value_counts()["count"].sum())
    elif name == "datasketches":
        other = datasketches.count_min_sketch(4, 4096)
        for key in column:
            other.update(key)
        total = int(other.total_weight)
    else:
        sketch.update(column)
        total = sketch.weight
    seconds = time.perf_counter() - start
    assert total == rows, (name, total, rows)
    return {"seconds": seconds, "mb": (status("VmHWM") - before) / 1024}


def rust(program: Path, mode: str, folder: Path, width: str, rows: int) -> dict[str, Any]:
    output = subprocess.run([program, mode, folder / width, width], check=True, capture_output=True, text=True).stdout
    counted, seconds = output.split()
    assert int(counted) == rows
    return {"seconds": float(seconds), "mb": float("nan")}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mode", default="exact")
    parser.add_argument("--rust", type=Path, default=ROOT / "target" / "release" / "examples" / "insert_column")
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        name, folder, width = options.measure
        print(json.dumps(measure(name, options.mode, Path(folder), width)))
        return
    names = ["Rust", "ucl_sketch", "Counter", "pandas", "polars", "datasketches"]
    print(f"{options.rows:,} rows, mode {options.mode}, best of {options.rounds} rounds, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        make(folder, options.rows)
        for width, title in (("4", "NumPy uint32"), ("8", "NumPy int64"), ("0", "Arrow strings")):
            best: dict[str, dict[str, Any]] = {}
            for _ in range(options.rounds):
                for name in names:
                    if name == "Rust":
                        result = rust(options.rust, options.mode, folder, width, options.rows)
                    else:
                        call = [sys.executable, __file__, "--mode", options.mode, "--measure", name, str(folder), width]
                        result = json.loads(subprocess.run(call, check=True, capture_output=True, text=True).stdout)
                    if name not in best or result["seconds"] < best[name]["seconds"]:
                        best[name] = result
            print(f"\n{title}: seconds, million rows a second, speed against Rust's, peak MB")
            for name in names:
                seconds, mb = best[name]["seconds"], best[name]["mb"]
                ratio = best["Rust"]["seconds"] / seconds
                print(f"{name:>14} {seconds:8.3f} {options.rows / seconds / 1e6:8.1f} {ratio:8.2f}x {mb:8.1f}")


if __name__ == "__main__":
    main()
