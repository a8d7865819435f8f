"""Threads, signals, processes and memory."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from processes import PATIENCE, ended, run, started

import ucl_sketch as ucl


def test_threads_share_a_sketch() -> None:
    sketch = ucl.Sketch("64KB", seed=1)
    columns = [np.arange(70_000, dtype="int64") % 50 for _ in range(3)]
    failed: list[BaseException] = []

    def count() -> None:
        try:
            for column in columns:
                sketch.update(column)
                assert sketch.estimate(7).upper >= 1
                sketch.add(7)
                assert sketch.top(1)[0].count >= 1
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    # Sketches that wait for each other.
    other = ucl.Sketch("64KB", seed=1)
    other.update(columns[0][:100])
    for _ in range(5):
        other.merge(sketch.copy())
    for thread in threads:
        thread.join(PATIENCE)
    assert failed == [] and not any(thread.is_alive() for thread in threads)
    row = sketch.estimate(7)
    assert sketch.weight == 4 * (3 * 70_000 + 3)
    assert row.lower <= 4 * (3 * 1_400 + 3) <= row.upper


LONG = {
    "file": ("", "ucl.count('zipf:1.1:1000000000000:1000')"),
    "array": ("", "ucl.Sketch().update(np.zeros(2_000_000_000, 'uint8'))"),
    "iterator": ("", "ucl.Sketch().update(itertools.repeat(1))"),
    # One decode, which looks at nothing while it lasts, and of a method that lasts for minutes.
    "decode": ("s = ucl.Sketch('256KB', mode='omp'); s.update(np.arange(400_000) % 300_000)", "s.top(1)"),
    "plan": ("", "ucl.plan('1MB', expected_keys=3_000_000, items=50_000_000, modes=['em'])"),
}


@pytest.mark.parametrize("call", sorted(LONG))
def test_ctrl_c_ends_long_calls(call: str) -> None:
    before, long = LONG[call]
    program = f"""
import itertools, sys
import numpy as np
import ucl_sketch as ucl
{before}
try:
    print("ready", flush=True)
    {long}
except KeyboardInterrupt:
    sys.exit(42)
"""
    child = started(program)
    time.sleep(0.3)
    child.send_signal(signal.SIGINT)
    # Without an end at the signal, each of the calls would take much longer.
    assert ended(child, within=20) == 42


def test_an_interrupted_sketch_is_whole() -> None:
    program = """
import os, signal, sys, threading
import numpy as np
import ucl_sketch as ucl
sketch = ucl.Sketch("1MB", mode="em", seed=1)
sketch.update(np.arange(2_000_000) % 1_500_000)
threading.Timer(0.02, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    sketch.top(1)
except KeyboardInterrupt:
    # Waits for what goes on behind it.
    assert sketch.weight == 2_000_000
    other = ucl.Sketch("1MB", mode="em", seed=1)
    other.update(np.arange(2_000_000) % 1_500_000)
    assert list(sketch.top(100)) == list(other.top(100))
    sys.exit(42)
"""
    assert run(program) == 42


def test_daemon_threads_outlive_the_interpreter() -> None:
    program = """
import threading, time
import numpy as np
import ucl_sketch as ucl
sketch, numbers = ucl.Sketch("64KB", mode="delta"), np.arange(200_000)
def count():
    while True:
        sketch.update(numbers)
        sketch.top(3)
for _ in range(3):
    threading.Thread(target=count, daemon=True).start()
time.sleep(0.3)
"""
    # One that looks for signals in an interpreter that has ended crashes, if it is in time: now and then.
    assert [run(program) for _ in range(3)] == [0] * 3


def test_a_stream_may_be_made_in_threads_that_need_the_interpreter() -> None:
    program = """
import io
import pyarrow.csv
import ucl_sketch as ucl
# A thread of pyarrow reads the file, which is a Python object.
file = io.BytesIO(b"word" + b"\\nlorem\\nipsum" * 100_000)
sketch = ucl.Sketch()
sketch.update(pyarrow.csv.open_csv(file, read_options=pyarrow.csv.ReadOptions(block_size=1 << 14)))
assert sketch.top()["count"] == [100_000] * 2
"""
    # A deadlock could not be interrupted.
    assert run(program) == 0


def count_part(part: tuple[ucl.Sketch, list[int]]) -> ucl.Sketch:
    sketch, numbers = part
    sketch.update(numbers)
    sketch.top(1)
    return sketch


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes(method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        method = "spawn"
    empty = ucl.Sketch("16KB", seed=5, interval=1_000, mode="delta")
    # The parent has used its threads: a forked child has none of them.
    count_part((empty.copy(), list(range(5_000))))
    numbers = [i * i % 101 for i in range(20_000)]
    parts = [(empty, numbers[at::3]) for at in range(3)]
    with multiprocessing.get_context(method).Pool(2) as pool:
        first, *rest = pool.map_async(count_part, parts).get(PATIENCE)
    first.merge(*rest)
    assert first.weight == len(numbers)
    for row in first.top():
        assert row.lower <= numbers.count(row.key) <= row.upper


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system does not tell how much memory is in use")
def test_nothing_leaks() -> None:
    column = np.arange(50, dtype="uint32")

    def cycles(number: int) -> int:
        for _ in range(number):
            sketch = ucl.Sketch("16KB")
            sketch.update(column)
            sketch.top(1).to_dict()
            sketch.copy()
        gc.collect()
        return resident()

    before = cycles(100)
    # 1,000 sketches of 16KB are 16 MB, their copies as much, and their answers come on top.
    assert cycles(1_000) - before < 8 << 20


def test_memory_of_a_column_outlives_it() -> None:
    sketch = ucl.Sketch()
    sketch.update(np.arange(1_000) % 3)
    table = sketch.top(1).to_arrow()
    del sketch
    gc.collect()
    assert table["count"][0].as_py() == 334
