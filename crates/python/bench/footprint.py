"""Measures the package itself: wheel size, import time, memory of an idle sketch, and leaks.

    python crates/python/bench/footprint.py WHEEL
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from pathlib import Path


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    wheel = Path(sys.argv[1])
    print(f"wheel: {wheel.stat().st_size / 1e6:.2f} MB")

    def start(program: str) -> float:
        times = []
        for _ in range(9):
            begin = time.perf_counter()
            subprocess.run([sys.executable, "-c", program], check=True)
            times.append(time.perf_counter() - begin)
        return min(times)

    print(f"import: {1000 * (start('import ucl_sketch') - start('pass')):.1f} ms beyond an empty program, best of 9")

    import ucl_sketch as ucl

    for memory in ("16KB", "64KB"):
        before = resident()
        kept = [ucl.Sketch(memory, keys="int64") for _ in range(500)]
        print(f"idle sketch of {memory}: {(resident() - before) / len(kept) / 1024:.1f} KB resident")
        del kept
    gc.collect()

    def cycles(number: int) -> int:
        for _ in range(number):
            sketch = ucl.Sketch("16KB")
            sketch.update([1, 2, 2])
        gc.collect()
        return resident()

    before = cycles(1_000)
    begin = time.perf_counter()
    after = cycles(100_000)
    grown = (after - before) / 1024
    print(f"100,000 create-count-drop cycles: {grown:+.0f} KB resident, {time.perf_counter() - begin:.1f} s")


if __name__ == "__main__":
    main()
