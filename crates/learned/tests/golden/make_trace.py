"""Writes trace.txt: 17 epochs (51 steps) of training on a small problem, computed with PyTorch.

Packages: torch 2.15.0 (CPU is enough).
Run:      python make_trace.py > trace.txt

Nothing is shared with the Rust code but the definition: network, loss, transformation and Adam are PyTorch's or written
here once more, in float32. So that both start from the same weights and make the same random choices, the generator
(xoshiro256++ seeded by SplitMix64) is written here too. The random numbers are used in this order:

1. initial weights, layer by layer (row.0, row.1, mix.0, mix.1, embed.0, embed.1, head.0, head.1), weight then bias, each
   value (2u - 1) / sqrt(inputs) with u = (next >> 40) / 2^24;
2. per epoch, a Fisher-Yates shuffle of the snapshots from the end, carried on from epoch to epoch;
3. per step, for each snapshot of the batch: round(5% of the cold keys) different cold keys, each drawn again while it was
   already drawn for this snapshot.

The problem itself (columns, hot flags, snapshots) comes from a second generator and is written into the file.
"""

import math

import torch
from torch.nn import functional as F

ROWS, WIDTH, KEYS, SNAPSHOTS = 3, 24, 100, 12
HIDDEN, NECK, LENGTH, BATCH, LAMBDA, SHARE, RATE = 16, 12, 32, 5, 0.1, 0.05, 1e-3
SEED, EPOCHS, INTERVAL = 42, 17, 60
MASK = (1 << 64) - 1


class Rng:
    def __init__(self, seed):
        self.s = []
        for _ in range(4):
            seed = (seed + 0x9E3779B97F4A7C15) & MASK
            z = seed
            z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
            z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
            self.s.append(z ^ (z >> 31))

    def next(self):
        s = self.s
        rotl = lambda x, k: (x << k | x >> (64 - k)) & MASK
        result = (rotl((s[0] + s[3]) & MASK, 23) + s[0]) & MASK
        t = s[1] << 17 & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotl(s[3], 45)
        return result

    def below(self, n):
        return self.next() * n >> 64

    def symmetric(self, bound):
        return (2 * ((self.next() >> 40) / 2**24) - 1) * bound


def make_problem():
    """Columns of a Count-Min, and a skewed stream through it."""
    rng = Rng(7)
    columns = [[r * WIDTH + rng.below(WIDTH) for r in range(ROWS)] for _ in range(KEYS)]
    hot = [k % 9 == 0 for k in range(KEYS)]
    counters = [0] * (ROWS * WIDTH)

    def add(key):
        for c in columns[key]:
            counters[c] += 1

    for key in range(KEYS):
        add(key)
    snapshots = []
    for _ in range(SNAPSHOTS):
        for _ in range(INTERVAL):
            add(9 * rng.below(12) if rng.below(4) else rng.below(KEYS))
        snapshots.append(list(counters))
    return columns, hot, snapshots


def make_network(rng):
    shapes = {
        "row.0": (WIDTH, HIDDEN), "row.1": (HIDDEN, HIDDEN),
        "mix.0": (ROWS * HIDDEN, NECK), "mix.1": (NECK, HIDDEN),
        "embed.0": (HIDDEN, NECK), "embed.1": (NECK, 2 * HIDDEN),
        "head.0": (HIDDEN, NECK), "head.1": (NECK, LENGTH),
    }  # fmt: skip
    layers = {}
    for name, (inputs, outputs) in shapes.items():
        layer = torch.nn.Linear(inputs, outputs)
        bound = 1 / math.sqrt(inputs)
        values = torch.tensor([rng.symmetric(bound) for _ in range(outputs * (inputs + 1))], dtype=torch.float64)
        with torch.no_grad():
            layer.weight.copy_(values[: outputs * inputs].view(outputs, inputs))
            layer.bias.copy_(values[outputs * inputs :])
        layers[name] = layer
    return layers


def decode(layers, y):
    """(batch, rows, width) -> (batch, keys)."""
    v = F.relu(layers["row.1"](F.relu(layers["row.0"](y)))).flatten(1)
    v = F.relu(layers["mix.1"](F.relu(layers["mix.0"](v))))
    v = F.instance_norm(v[:, None, :])[:, 0, :]
    half = HIDDEN // 2
    buckets = torch.arange(-(-KEYS // LENGTH), dtype=torch.float64)
    angles = buckets[:, None] * torch.exp(torch.arange(half) * -(math.log(10_000) / (half - 1)))[None, :]
    code = torch.cat([angles.sin(), angles.cos()], 1).float()
    scale, shift = layers["embed.1"](F.silu(layers["embed.0"](F.silu(code)))).chunk(2, 1)
    v = v[:, None, :] * (1 + scale) + shift
    return torch.sigmoid(layers["head.1"](layers["head.0"](v))).flatten(1)[:, :KEYS]


def scales(y):
    return y.abs().amax(2).amin(1, keepdim=True)


def main():
    columns, hot, snapshots = make_problem()
    rng = Rng(SEED)
    layers = make_network(rng)
    parameters = [p for layer in layers.values() for p in (layer.weight, layer.bias)]
    optimiser = torch.optim.Adam(parameters, lr=RATE)
    a = torch.zeros(ROWS * WIDTH, KEYS)
    for k, column in enumerate(columns):
        for c in column:
            a[c, k] += 1
    hot_mask = torch.tensor(hot)
    cold = [k for k in range(KEYS) if not hot[k]]
    y_all = torch.tensor(snapshots, dtype=torch.float64).view(SNAPSHOTS, ROWS, WIDTH)
    scale_all = scales(y_all)
    y_all = (y_all / scale_all[:, :, None]).float()
    smallest_all, interval_all = (1 / scale_all).float(), (INTERVAL / scale_all).float()

    order = list(range(SNAPSHOTS))
    history = []
    for _ in range(EPOCHS):
        for last in range(SNAPSHOTS - 1, 0, -1):
            other = rng.below(last + 1)
            order[last], order[other] = order[other], order[last]
        sums = torch.zeros(3, dtype=torch.float64)
        for start in range(0, SNAPSHOTS, BATCH):
            batch = order[start : start + BATCH]
            y, smallest, interval = y_all[batch], smallest_all[batch], interval_all[batch]
            x = decode(layers, y)
            raised = torch.zeros(len(batch), KEYS)
            for s in range(len(batch)):
                drawn = set()
                while len(drawn) < round(SHARE * len(cold)):
                    drawn.add(cold[rng.below(len(cold))])
                raised[s, list(drawn)] = 1
            with torch.no_grad():
                u = x.maximum(smallest)
                volume = u[:, hot_mask].sum(1, keepdim=True)
                z = torch.where(hot_mask, u + interval * u / volume, u + raised * smallest)
                again = (z @ a.T).view(len(batch), ROWS, WIDTH)
                unit = scales(again)
                again, z = again / unit[:, :, None], z / unit
            terms = [F.mse_loss(x @ a.T, y.flatten(1)), x.abs().mean(), F.mse_loss(decode(layers, again), z)]
            loss = terms[0] + LAMBDA * terms[1] + terms[2]
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            sums += len(batch) * torch.tensor([t.item() for t in terms], dtype=torch.float64)
        history.append((sums / SNAPSHOTS).tolist())

    print("# made by make_trace.py; one record per line: name, then numbers")
    print("shape", ROWS, WIDTH)
    print("network", HIDDEN, NECK, LENGTH, BATCH, SEED, INTERVAL)
    for column in columns:
        print("column", *column)
    print("hot", *[int(h) for h in hot])
    for counters in snapshots:
        print("snapshot", *counters)
    for terms in history:
        print("epoch", *[f"{t:.9g}" for t in terms])
    with torch.no_grad():
        x = decode(layers, y_all[-1:])[0] * scale_all[-1]
    print("decoded", *[f"{v:.9g}" for v in x.tolist()])
    check = Rng(1)
    print("rng", check.next(), check.next())


if __name__ == "__main__":
    main()
