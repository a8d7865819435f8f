"""Golden values for the metrics: the paper's formulas, written densely in NumPy.

Packages: numpy 2.4.6 (Python 3.11). Run: python make_metrics.py > metrics.json

Frequencies are drawn from a fixed linear congruential generator, so that the file does not depend on NumPy's own. Each
case lists the true and the estimated frequency of every key, and the errors.
"""

import json

import numpy as np


def draws(seed):
    state = seed
    while True:
        state = (6364136223846793005 * state + 1442695040888963407) % 2**64
        yield state >> 33


def errors(truth, estimate):
    f, g = np.array(truth, dtype=np.float64), np.array(estimate, dtype=np.float64)
    z = int(max(f.max(), g.max()))
    n = np.bincount(np.array(truth), minlength=z + 1)[1:].astype(np.float64)
    m = np.bincount(np.array(estimate), minlength=z + 1)[1:].astype(np.float64)

    def entropy(counts, total):
        if total == 0:
            return 0.0
        p = counts / total
        i = np.arange(1, len(counts) + 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(p > 0, i * p * np.log2(p), 0.0)
        return -terms.sum()

    return {
        "aae": np.abs(f - g).mean(),
        "are": (np.abs(f - g) / f).mean(),
        "wmrd": np.abs(n - m).sum() / ((n + m) / 2).sum(),
        # The formula as printed, and the authors' code, which divides by all keys.
        "entropy_error": abs(entropy(n, n.sum()) - entropy(m, m.sum())),
        "entropy_error_all_keys": abs(entropy(n, len(truth)) - entropy(m, len(truth))),
    }


def case(name, seed, keys, spread, heavy):
    random = draws(seed)
    truth, estimate = [], []
    for k in range(keys):
        f = 1 + next(random) % (heavy if k % 97 == 0 else 12)
        error = next(random) % (2 * spread + 1) - spread
        truth.append(f)
        estimate.append(max(0, f + error))
    return {"name": name, "truth": truth, "estimate": estimate, **errors(truth, estimate)}


CASES = [
    case("exact", 1, 50, 0, 1000),
    case("near", 2, 400, 1, 5000),
    case("far", 3, 400, 40, 300000),
    {"name": "all zero", "truth": [3, 1, 4], "estimate": [0, 0, 0], **errors([3, 1, 4], [0, 0, 0])},
    {"name": "one key", "truth": [7], "estimate": [9], **errors([7], [9])},
]

if __name__ == "__main__":
    print(json.dumps(CASES, indent=None, separators=(",", ":")))
