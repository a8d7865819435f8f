"""Time of one training step of the learned solver in PyTorch on the CPU, and its peak memory.

The same network, loss and data shape as `crates/learned/examples/training_step.rs`: Count-Min of 4 rows of 1024
counters, batch 32, hidden 128, buckets of 512 keys. The products with A and its transpose are sparse matrix products,
the tail runs for all buckets at once, and the raised keys are drawn independently (drawing exactly 5% takes longer).

Packages: torch 2.15.0 (CPU is enough), numpy 2.4.6.
Run:      python learned_pytorch.py [keys] [threads] [steps]     (15000 1 40 by default)
Prints one line in the format of the Rust example.
"""

import math
import resource
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

ROWS, WIDTH, HIDDEN, NECK, LENGTH, BATCH, LAMBDA = 4, 1024, 128, 64, 512, 32, 0.1


class Network(nn.Module):
    """Counters (batch, rows, width) and all bucket numbers to frequencies (batch, buckets * length)."""

    def __init__(self, buckets):
        super().__init__()
        self.row = nn.ModuleList([nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, HIDDEN)])
        self.mix = nn.ModuleList([nn.Linear(ROWS * HIDDEN, NECK), nn.Linear(NECK, HIDDEN)])
        self.embed = nn.ModuleList([nn.Linear(HIDDEN, NECK), nn.Linear(NECK, 2 * HIDDEN)])
        self.head = nn.ModuleList([nn.Linear(HIDDEN, NECK), nn.Linear(NECK, LENGTH)])
        half = HIDDEN // 2
        frequencies = torch.exp(torch.arange(half) * -(math.log(10_000) / (half - 1)))
        angles = torch.arange(buckets)[:, None] * frequencies[None, :]
        self.register_buffer("codes", F.silu(torch.cat([angles.sin(), angles.cos()], 1)))

    def forward(self, y):
        v = F.relu(self.row[1](F.relu(self.row[0](y)))).flatten(1)
        v = F.relu(self.mix[1](F.relu(self.mix[0](v))))
        v = F.layer_norm(v, v.shape[1:])
        scale, shift = self.embed[1](F.silu(self.embed[0](self.codes))).chunk(2, 1)
        v = v[:, None, :] * (1 + scale) + shift
        return torch.sigmoid(self.head[1](self.head[0](v))).flatten(1)


class Measure(torch.autograd.Function):
    """x -> A x for (batch, keys). Keeps A and its transpose: PyTorch's own gradient transposes A in every step."""

    @staticmethod
    def forward(context, x, a, a_transposed):
        context.a_transposed = a_transposed
        return (a @ x.T).T

    @staticmethod
    def backward(context, by_y):
        return (context.a_transposed @ by_y.T).T, None, None


def scales(y):
    """Minimum over the rows of the largest counter, (batch, 1)."""
    return y.abs().amax(2).amin(1, keepdim=True)


def main():
    arguments = [int(a) for a in sys.argv[1:]] + [15_000, 1, 40][len(sys.argv) - 1 :]
    keys, threads, steps = arguments
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    index = torch.randint(WIDTH, (keys, ROWS)) + torch.arange(ROWS) * WIDTH
    column = torch.arange(keys)[:, None].expand(-1, ROWS)
    places = torch.stack([index.flatten(), column.flatten()])
    a = torch.sparse_coo_tensor(places, torch.ones(keys * ROWS), (ROWS * WIDTH, keys))
    a, a_transposed = a.to_sparse_csr(), a.T.to_sparse_csr()
    frequency = (keys / torch.arange(1, keys + 1)).ceil()
    y = torch.stack([(a @ (frequency * t).floor()[:, None])[:, 0] for t in range(1, BATCH + 1)])
    hot = torch.arange(keys) % 20 == 0
    cold = ~hot

    y = y.view(BATCH, ROWS, WIDTH)
    scale = scales(y)
    y = y / scale[:, :, None]
    smallest, interval = 1 / scale, 1000 / scale
    network = Network(-(-keys // LENGTH))
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)
    times = []
    for _ in range(steps):
        start = time.perf_counter()
        x = network(y)[:, :keys]
        measurement = F.mse_loss(Measure.apply(x, a, a_transposed), y.flatten(1))
        with torch.no_grad():
            z = x.maximum(smallest)
            volume = z[:, hot]
            z[:, hot] += interval * volume / volume.sum(1, keepdim=True)
            z += ((torch.rand(BATCH, keys) < 0.05) & cold) * smallest
            again = (a @ z.T).T.reshape(BATCH, ROWS, WIDTH)
            unit = scales(again)
            again, z = again / unit[:, :, None], z / unit
        equivariant = F.mse_loss(network(again)[:, :keys], z)
        loss = measurement + LAMBDA * x.mean() + equivariant
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        times.append((time.perf_counter() - start) * 1e3)
    times.sort()
    with torch.no_grad():
        decode = math.inf
        for _ in range(20):
            start = time.perf_counter()
            network(y[-1:])
            decode = min(decode, (time.perf_counter() - start) * 1e3)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"keys {keys}  threads {threads}  step {times[len(times) // 2]:.2f} ms (best {times[0]:.2f})  "
        f"encode and decode {decode:.3f} ms  peak memory {peak:.0f} MB"
    )


if __name__ == "__main__":
    main()
