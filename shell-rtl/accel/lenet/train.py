"""Trains the network on rows 0 to 999 of the digits, turns it into int8, and writes its weights.

    python3 train.py ../../../tests/data/digits.csv.gz ../../../tests/data/lenet.bin

The seed is constant and sums are computed by one thread, so the same NumPy gives the same file on
processors of one kind; on others, sums may be rounded otherwise. README.md defines the arithmetic,
sim/workloads/src/lenet.rs the format of the file. Only NumPy is needed; it takes a minute.
"""

import gzip
import os
import struct
import sys

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # NumPy reads it when it is loaded
import numpy as np

SEED = 1
TRAIN = 1000
EPOCHS = 40
BATCH = 50
RATE = 1e-3
# Outputs and inputs of each layer: two of 5 x 5 filters, three of full rows.
SHAPES = [(6, 25), (16, 150), (120, 400), (84, 120), (10, 84)]


def pictures(rows: np.ndarray) -> np.ndarray:
    """Rows of 64 pixels of 0 to 16 as int8 pictures of 32 x 32."""
    large = rows.reshape(-1, 8, 8).repeat(3, axis=1).repeat(3, axis=2) * 7
    return np.pad(large, ((0, 0), (4, 4), (4, 4)))


def windows(x: np.ndarray) -> np.ndarray:
    """(n, channels, side, side) to (n, side - 4, side - 4, channels * 25)."""
    w = np.lib.stride_tricks.sliding_window_view(x, (5, 5), axis=(2, 3)).transpose(0, 2, 3, 1, 4, 5)
    return w.reshape(*w.shape[:3], -1)


def pool(x: np.ndarray) -> np.ndarray:
    """Largest of each 2 x 2, (n, channels, side, side)."""
    n, c, side, _ = x.shape
    return x.reshape(n, c, side // 2, 2, side // 2, 2).max(axis=(3, 5))


# ---- training, in float32 ----


def forward(net, x):
    """Scores, and what the way back needs."""
    kept = []
    for i, (w, b) in enumerate(net):
        if i < 2:
            cols = windows(x)
            y = np.maximum((cols @ w.T + b).transpose(0, 3, 1, 2), 0)
            kept.append((x.shape, cols, y))
            x = pool(y)
        else:
            x = x.reshape(len(x), -1)
            y = x @ w.T + b
            kept.append((x.shape, x, y))
            x = np.maximum(y, 0) if i < 4 else y
    return x, kept


def backward(net, kept, d):
    """Gradients of all weights and biases, from that of the scores."""
    grads = []
    for i in reversed(range(5)):
        w, _ = net[i]
        shape, x, y = kept[i]
        if i >= 2:
            if i < 4:
                d = d * (y > 0)
            grads.append((d.T @ x, d.sum(axis=0)))
            d = d @ w
            continue
        n, c, side, _ = y.shape
        d = d.reshape(n, c, side // 2, side // 2).repeat(2, axis=2).repeat(2, axis=3)
        d = d * ((y == pool(y).repeat(2, axis=2).repeat(2, axis=3)) & (y > 0))
        d = d.transpose(0, 2, 3, 1).reshape(-1, c)
        grads.append((d.T @ x.reshape(len(d), -1), d.sum(axis=0)))
        if i:
            cols = (d @ w).reshape(n, side, side, shape[1], 5, 5)
            d = np.zeros(shape, np.float32)
            for ky in range(5):
                for kx in range(5):
                    part = cols[..., ky, kx].transpose(0, 3, 1, 2)
                    d[:, :, ky : ky + side, kx : kx + side] += part
    return grads[::-1]


def train(x, labels, rng):
    """The network after all epochs of Adam, on pictures that are moved by up to two pixels."""
    net = [
        [rng.normal(0, np.sqrt(2 / n), (m, n)).astype(np.float32), np.zeros(m, np.float32)]
        for m, n in SHAPES
    ]
    moments = [[[np.zeros_like(p), np.zeros_like(p)] for p in layer] for layer in net]
    step = 0
    for epoch in range(EPOCHS):
        losses = []
        for part in rng.permutation(len(x)).reshape(-1, BATCH):
            moved = np.stack([np.roll(x[i], rng.integers(-2, 3, 2), (0, 1)) for i in part])
            scores, kept = forward(net, moved[:, None])
            p = np.exp(scores - scores.max(axis=1, keepdims=True))
            p /= p.sum(axis=1, keepdims=True)
            right = np.arange(BATCH), labels[part]
            losses.append(-np.log(p[right] + 1e-9).mean())
            p[right] -= 1
            step += 1
            rate = RATE * (1 - epoch / EPOCHS) * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
            for layer, moment, grad in zip(net, moments, backward(net, kept, p / BATCH)):
                for value, (m, v), g in zip(layer, moment, grad):
                    m += 0.1 * (g - m)
                    v += 0.001 * (g * g - v)
                    value -= rate * m / (np.sqrt(v) + 1e-8)
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1}: loss {np.mean(losses):.4f}")
    return net


# ---- int8 ----


def quantise(net, x):
    """Per layer: int8 weights, int16 biases, and the shift of its sums. `x` shows the ranges."""
    _, kept = forward(net, x[:, None])
    scale = 112.0  # of the inputs of the layer
    layers = []
    for (w, b), (_, _, y) in zip(net, kept):
        of_weights = 127 / np.abs(w).max()
        of_sums = scale * of_weights
        shift = 0
        if len(layers) < 4:
            shift = int(np.ceil(np.log2(of_sums * np.percentile(y, 99.95) / 127)))
        biases = np.rint(b * of_sums)
        assert np.abs(biases).max() < 1 << 15
        layers.append((np.rint(w * of_weights).astype(np.int8), biases.astype(np.int16), shift))
        scale = of_sums / 2**shift
    return layers


def integer(layers, x):
    """The scores as the accelerator computes them."""
    x = x.astype(np.int64)[:, None]
    for i, (w, b, shift) in enumerate(layers):
        x = windows(x) if i < 2 else x.reshape(len(x), -1)
        x = x @ w.astype(np.int64).T + b
        if i == 4:
            return x
        x = np.clip((x + (1 << shift >> 1)) >> shift, 0, 127)
        if i < 2:
            x = pool(x.transpose(0, 3, 1, 2))


def main() -> None:
    data, out = sys.argv[1:]
    rows = np.loadtxt(gzip.open(data, "rt"), delimiter=",", dtype=np.int64)
    x, labels = pictures(rows[:, :64]), rows[:, 64]
    floats = (x / 112).astype(np.float32)
    net = train(floats[:TRAIN], labels[:TRAIN], np.random.default_rng(SEED))
    layers = quantise(net, floats[:TRAIN])
    for name, part in (("training", slice(0, TRAIN)), ("test", slice(TRAIN, None))):
        exact = forward(net, floats[part][:, None])[0].argmax(axis=1) == labels[part]
        int8 = integer(layers, x[part]).argmax(axis=1) == labels[part]
        count = f"{int8.sum()} of {len(int8)}"
        print(f"{name} rows: {exact.mean():.4f} in float32, {int8.mean():.4f} in int8 ({count})")
    with open(out, "wb") as file:
        file.write(b"lenet\0\0\1")
        for w, _, shift in layers:
            file.write(struct.pack("<HHHH", *w.shape, shift, 0))
        for w, b, _ in layers:
            file.write(w.tobytes() + b.astype("<i2").tobytes())


main()
