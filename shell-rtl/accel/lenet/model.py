"""The network on weights and images as they lie in memory, with NumPy."""

import numpy as np

# Of each layer: groups of 16 outputs, steps of a sum.
LAYERS = [(1, 3), (1, 15), (8, 46), (6, 14), (1, 14)]
# First byte of the windows of a row of 32 bytes.
WINDOWS = [0, 5, 10, 15, 20, 25, 27]


def blocks(memory: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Weights (groups, steps, 16 lanes, 2 rows, 5 bytes) and biases (groups, 16) of each layer."""
    lines = memory.view(np.int8).reshape(-1, 64)
    found, at = [], 0
    for groups, steps in LAYERS:
        biases = lines[at : at + groups, :32].copy().view("<i2")
        at += groups
        words = lines[at : at + 3 * groups * steps].reshape(groups, steps, 192)[..., :160]
        at += 3 * groups * steps
        words = words.reshape(groups, steps, 16, 2, 5)
        found.append((words.astype(np.int64), biases.astype(np.int64)))
    return found


def windows(x: np.ndarray) -> np.ndarray:
    """(n, channels, height, width) to (n, channels, rows, columns, 5, 5)."""
    return np.lib.stride_tricks.sliding_window_view(x, (5, 5), axis=(2, 3))


def pool(x: np.ndarray) -> np.ndarray:
    n, c, height, width = x.shape
    return x.reshape(n, c, height // 2, 2, width // 2, 2).max(axis=(3, 5))


def classify(inputs: dict[str, np.ndarray], registers: dict[str, int]) -> dict[str, np.ndarray]:
    """Bytes of the region `result`."""
    count = registers["count"]
    shifts = [registers["shifts"] >> 8 * i & 255 for i in range(4)]
    layers = blocks(inputs["weights"])

    def scale(sums: np.ndarray, layer: int) -> np.ndarray:
        return np.clip((sums + (1 << shifts[layer] >> 1)) >> shifts[layer], 0, 127)

    # Layer 0: lanes 0 to 5 are the channels in even columns, lanes 6 to 11 in odd ones. Rows 0 and
    # 1, 2 and 3, 4 of a filter in a step.
    x = inputs["images"].view(np.int8)[: 1024 * count].reshape(count, 1, 32, 32).astype(np.int64)
    weights, biases = layers[0]
    filters = weights[0].transpose(1, 0, 2, 3).reshape(16, 6, 5)[:, :5]
    sums = np.einsum("nchwij,oij->nohw", windows(x), filters)
    sums = np.where(np.arange(28) % 2, sums[:, 6:12] + biases[0, 6:12, None, None],
                    sums[:, :6] + biases[0, :6, None, None])
    x = pool(scale(sums, 0))

    # Layer 1: a step has one row of the filters of two channels.
    weights, biases = layers[1]
    filters = weights[0].reshape(3, 5, 16, 2, 5).transpose(2, 0, 3, 1, 4).reshape(16, 6, 5, 5)
    sums = np.einsum("nchwij,ocij->nohw", windows(x), filters) + biases[0, :, None, None]
    x = pool(scale(sums, 1)).transpose(0, 2, 3, 1).reshape(count, 400)

    # Others: a step has a window of both halves of a line; the windows may overlap.
    for layer in (2, 3, 4):
        weights, biases = layers[layer]
        groups, steps = LAYERS[layer]
        matrix = np.zeros((groups * 16, 64 * 7), np.int64)
        for step in range(steps):
            for row in range(2):
                at = 64 * (step // 7) + 32 * row + WINDOWS[step % 7]
                matrix[:, at : at + 5] += weights[:, step, :, row].reshape(-1, 5)
        x = x @ matrix[:, : x.shape[1]].T + biases.reshape(-1)
        if layer < 4:
            x = scale(x, layer)

    result = np.zeros((count, 16), "<i4")
    result[:, :10] = x[:, :10]
    result[:, 10] = x[:, :10].argmax(axis=1)
    return {"result": result}
