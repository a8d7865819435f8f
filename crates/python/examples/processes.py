"""Counts the parts of a column in several processes, and merges their sketches."""

from __future__ import annotations

import multiprocessing

import numpy as np

import ucl_sketch as ucl


def count(part: tuple[ucl.Sketch, np.ndarray]) -> ucl.Sketch:
    """Runs in a process: the empty sketch comes by pickle, and the full one goes back so."""
    sketch, column = part
    sketch.update(column)
    return sketch


def main() -> None:
    column = np.arange(1_000_000) ** 2 % 997
    # Sketches can be merged if they have the same settings and the same seed, as copies have.
    empty = ucl.Sketch("64KB")
    parts = [(empty, part) for part in np.array_split(column, 8)]
    total = empty.copy()
    with multiprocessing.Pool() as pool:
        for sketch in pool.imap_unordered(count, parts):
            total.merge(sketch)
    assert total.weight == len(column)
    print(total.top(3))


if __name__ == "__main__":
    main()
