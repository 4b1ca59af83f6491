"""The results of the commands, and the checksum of the leaves, with NumPy."""

from typing import Iterator

import numpy as np

BLOCKS = 4096


def words(key: list[int]) -> Iterator[int]:
    """The keystream of ChaCha8, nonce 0."""
    block = 0
    while True:
        first = np.frombuffer(b"expand 32-byte k", "<u4").tolist() + key
        first = np.array(first + [block % 2**32, block >> 32, 0, 0], np.uint32)
        rows = first.reshape(4, 4).copy()
        for turn in (0, 1) * 4:
            a, b, c, d = (np.roll(row, -turn * i) for i, row in enumerate(rows))
            for left, right in (16, 12), (8, 7):
                a = a + b
                d = rotate(d ^ a, left)
                c = c + d
                b = rotate(b ^ c, right)
            rows = np.stack([np.roll(row, turn * i) for i, row in enumerate((a, b, c, d))])
        yield from (rows.reshape(16) + first).tolist()
        block += 1


def rotate(x: np.ndarray, bits: int) -> np.ndarray:
    """Words, rotated to the left."""
    return x << np.uint32(bits) | x >> np.uint32(32 - bits)


def access(inputs: dict[str, np.ndarray], registers: dict[str, int]) -> dict[str, object]:
    """Bytes of the region `results`, and the register `trace`."""
    random = words([registers[f"seed{i}"] for i in range(8)])
    leaf_of = [next(random) % 2048 for _ in range(BLOCKS)]
    memory = np.zeros((BLOCKS, 60), np.uint8)
    results = inputs["commands"].reshape(-1, 64).copy()
    trace = 0
    for line in results:
        word, data = int(line[:4].view("<u4")[0]), line[4:].copy()
        op, block = word >> 30, word & 0x3FFF
        status = 2 if op > 1 else 1 if block >= BLOCKS else 0
        line[:4] = np.array([word & 0x3FFFFFFF | status << 30], "<u4").view(np.uint8)
        draw = next(random)
        if status:
            line[4:] = 0
            leaf = (draw >> 16) % 2048
        else:
            line[4:] = memory[block]
            leaf, leaf_of[block] = leaf_of[block], draw % 2048
        if op == 1 and not status:
            memory[block] = data
        trace = (trace ^ leaf) * 0x01000193 % 2**32
    return {"results": results, "trace": trace}
