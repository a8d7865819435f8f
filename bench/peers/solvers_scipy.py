"""SciPy's LSQR and LSMR and scikit-learn's OMP on the system of `crates/equations/benches/solvers.rs`.

Packages: numpy 2.4.6, scipy 1.17.1, scikit-learn 1.9.1 (Python 3.11). Run:

    python bench/peers/solvers_scipy.py [atoms ...]
    cargo bench -p ucl-equations --bench solvers

The system: 15,000 keys on 4 x 1024 counters, positions from SplitMix64 with seed 1, key k counting 1 + 20000 // (k + 1).
Prints, per solver, the best of several runs, iterations, and the sum and the largest value of the answer, which
`cargo run --release -p ucl-equations --example solve` prints for ours. scikit-learn takes a dense matrix (491 MB).
"""

import sys
import time

import numpy as np
from scipy.sparse import csc_array
from scipy.sparse.linalg import lsmr, lsqr
from sklearn.linear_model import orthogonal_mp

KEYS, ROWS, WIDTH = 15_000, 4, 1024
MASK = (1 << 64) - 1


def split_mix(seed):
    while True:
        seed = (seed + 0x9E3779B97F4A7C15) & MASK
        z = seed
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        yield z ^ (z >> 31)


def system():
    random = split_mix(1)
    indices = [row * WIDTH + ((next(random) * WIDTH) >> 64) for _ in range(KEYS) for row in range(ROWS)]
    starts = np.arange(0, len(indices) + 1, ROWS)
    a = csc_array((np.ones(len(indices)), np.array(indices), starts), shape=(ROWS * WIDTH, KEYS))
    x = (1 + 20_000 // np.arange(1, KEYS + 1)).astype(float)
    return a, a @ x


def best(runs, solve):
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        answer = solve()
        times.append(time.perf_counter() - begin)
    return min(times), answer


def report(name, seconds, iterations, x):
    print(f"{name:<12} {seconds * 1e3:10.2f} ms  {iterations:5} iterations  sum {x.sum():.6f}  max {x.max():.6f}", flush=True)


def main():
    a, y = system()
    for name, solve in (("lsqr", lsqr), ("lsmr", lsmr)):
        for form in ("csc", "csr"):
            matrix = a.asformat(form)
            seconds, answer = best(7, lambda: solve(matrix, y))
            report(f"{name} {form}", seconds, answer[2], answer[0])
    dense = None
    for atoms in [int(arg) for arg in sys.argv[1:]] or [100, 300]:
        if dense is None:
            dense = np.asfortranarray(a.toarray())
        seconds, x = best(1, lambda: orthogonal_mp(dense, y, n_nonzero_coefs=atoms))
        report(f"omp {atoms}", seconds, np.count_nonzero(x), x)


main()
