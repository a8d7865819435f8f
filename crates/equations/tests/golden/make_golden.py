"""Writes systems.txt beside this file: small systems and what NumPy, SciPy and scikit-learn make of them.

Made with Python 3.11, numpy 2.4.6, scipy 1.17.1, scikit-learn 1.9.1:

    pip install numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1
    python make_golden.py

Format: blocks that start with `system <name>`; then one `<field> <values...>` a line. The matrix is given as `counters`,
`degree`, `kind` (ones, signed, weighted), `indices` and `coefficients`, column after column.
LSQR and LSMR are SciPy's; OMP is scikit-learn's on columns scaled to length one, scaled back afterwards; EM and
MAP are the formulas of the module docs, written out on the dense matrix.
"""

from pathlib import Path

import numpy as np
from scipy.sparse import csc_array
from scipy.sparse.linalg import lsmr, lsqr
from sklearn.linear_model import orthogonal_mp

LINES = []


def put(field, values):
    text = " ".join(str(v) for v in np.atleast_1d(values).tolist())
    LINES.append(f"{field} {text}")


def dense(counters, indices, coefficients):
    a = np.zeros((counters, len(indices)))
    for k, (rows, values) in enumerate(zip(indices, coefficients)):
        for i, c in zip(rows, values):
            a[i, k] += c
    return a


def em(a, y, start, iterations):
    """EM on the columns without an empty counter; the others are 0."""
    live = np.array([np.all(y[a[:, k] > 0] > 0) for k in range(a.shape[1])])
    x = np.where(live, start, 0.0)
    degree = a.sum(axis=0)
    for _ in range(iterations):
        z = a @ x
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(z > 0, y / z, 0.0)
            mean = a.T @ ratio / degree
        x = np.where(x > 0, x * mean, 0.0)
    return x


def system(name, kind, counters, indices, coefficients, x, noise=None, damp=0.5, atoms=6):
    a = dense(counters, indices, coefficients)
    y = a @ x
    if noise is not None:
        y = y + noise
    sparse = csc_array(a)
    put("system", [name])
    put("counters", counters)
    put("degree", len(indices[0]))
    put("kind", [kind])
    put("indices", np.ravel(indices))
    put("coefficients", np.ravel(coefficients))
    put("y", y)
    for d in (0.0, damp):
        suffix = "_damped" if d else ""
        put("damp", d)
        found = lsqr(sparse, y, damp=d)
        put("lsqr" + suffix, found[0])
        put("lsqr_iterations" + suffix, found[2])
        found = lsmr(sparse, y, damp=d)
        put("lsmr" + suffix, found[0])
        put("lsmr_iterations" + suffix, found[2])
    # Eight iterations whatever the tolerances: rounding has had no time to grow.
    put("lsqr_eight", lsqr(sparse, y, atol=0, btol=0, conlim=0, iter_lim=8)[0])
    put("lsmr_eight", lsmr(sparse, y, atol=0, btol=0, conlim=0, maxiter=8)[0])
    norms = np.linalg.norm(a, axis=0)
    put("atoms", atoms)
    put("omp", orthogonal_mp(a / norms, y, n_nonzero_coefs=atoms) / norms)
    return a, y


def main():
    random = np.random.default_rng(7)

    rows, width, keys = 4, 16, 120
    indices = np.stack([r * width + random.integers(width, size=keys) for r in range(rows)], axis=1)
    x = np.floor(200 / np.arange(1, keys + 1) ** 1.1) + 1
    x[random.integers(keys, size=30)] = 0
    a, y = system("countmin", "ones", rows * width, indices, np.ones_like(indices), x, atoms=12)
    start = random.integers(1, 50, size=keys).astype(float)
    put("start", start)
    put("em", em(a, y, np.ones(keys), 100))
    put("em_from_start", em(a, y, start, 20))
    l1 = y.sum() / rows
    mean = l1 / keys
    l2 = (width * np.mean([np.sum(y[r * width : (r + 1) * width] ** 2) for r in range(rows)]) - l1**2) / (width - 1)
    variance = l2 / keys - mean**2
    put("rows", [rows, width])
    put("map", (mean * l2 + variance * (width * (a.T @ y) - rows * l1)) / (l2 + variance * rows * (width - 1)))

    # More counters than keys, some of them empty.
    keys, width = 30, 24
    indices = np.stack([r * width + random.integers(width, size=keys) for r in range(rows)], axis=1)
    x = np.floor(100 / np.arange(1, keys + 1)) * (random.random(keys) < 0.7)
    a, y = system("sparse", "ones", rows * width, indices, np.ones_like(indices), x)
    put("em", em(a, y, np.ones(keys), 100))

    keys, width = 50, 8
    indices = np.stack([r * width + random.integers(width, size=keys) for r in range(rows)], axis=1)
    signs = random.choice([-1, 1], size=indices.shape)
    x = np.floor(300 / np.arange(1, keys + 1))
    system("countsketch", "signed", rows * width, indices, signs, x, noise=random.normal(size=rows * width))

    # Indices anywhere, repeats included.
    keys, counters = 25, 40
    indices = random.integers(counters, size=(keys, 3))
    indices[0, 1] = indices[0, 0]
    indices[7] = 11
    weights = random.integers(1, 9, size=indices.shape) / 8
    x = np.floor(80 / np.arange(1, keys + 1)) + random.random(keys)
    system("weighted", "weighted", counters, indices, weights, x, noise=random.normal(size=counters), damp=1.5)

    # Ones with repeats (FlowRadar): EM counts an index as often as it stands.
    keys, counters = 60, 50
    indices = random.integers(counters, size=(keys, 3))
    indices[3, 2] = indices[3, 0]
    x = np.floor(120 / np.arange(1, keys + 1)) + 1
    a, y = system("flowradar", "ones", counters, indices, np.ones_like(indices), x)
    put("em", em(a, y, np.ones(keys), 100))

    (Path(__file__).parent / "systems.txt").write_text("\n".join(LINES) + "\n")


main()
