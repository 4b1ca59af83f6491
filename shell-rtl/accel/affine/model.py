"""The transformed pictures, with NumPy: from the picture as a whole, not tile by tile."""

import numpy as np


def transform(inputs: dict[str, np.ndarray], registers: dict[str, int]) -> dict[str, np.ndarray]:
    """Bytes of the region `target`."""
    width, height = registers["width"], registers["height"]
    across, down = (width + 7) // 8, (height + 7) // 8
    tiles = inputs["source"][: 64 * across * down].reshape(down, across, 8, 8)
    picture = tiles.transpose(0, 2, 1, 3).reshape(8 * down, 8 * across)[:height, :width]
    row, col = np.mgrid[: registers["rows"], : 64 * registers["lines"]].astype(np.int64)
    pictures = []
    for i in range(registers["maps"]):
        a, b, c, d, e, f = (
            int(np.int32(np.uint32(registers[f"{name}{i}"]))) for name in "abcdef"
        )
        x, y = (a * col + b * row + c) >> 8, (d * col + e * row + f) >> 8
        total = np.full(x.shape, 1 << 15)
        for dx, dy in ((0, 0), (1, 0), (0, 1), (1, 1)):
            at_x, at_y = (x >> 8) + dx, (y >> 8) + dy
            inside = (at_x >= 0) & (at_x < width) & (at_y >= 0) & (at_y < height)
            value = np.full(x.shape, registers["border"])
            value[inside] = picture[at_y[inside], at_x[inside]]
            weight_x = (x & 255) if dx else 256 - (x & 255)
            weight_y = (y & 255) if dy else 256 - (y & 255)
            total += value * weight_x * weight_y
        pictures.append((total >> 16).astype(np.uint8))
    return {"target": np.stack(pictures)}
