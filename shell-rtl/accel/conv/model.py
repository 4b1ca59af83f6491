"""The convolution, with NumPy."""

import numpy as np


def convolution(inputs: dict[str, np.ndarray], registers: dict[str, int]) -> dict[str, np.ndarray]:
    """Bytes of the region `output`."""
    count, height, width, channels, filters = (
        registers[name] for name in ("count", "height", "width", "channels", "filters")
    )
    images = inputs["images"].view("<u4").reshape(count, height, width, channels)
    weights = inputs["weights"].view("<u4").reshape(filters // 32, 5, 5, channels, 32)
    padded = np.pad(images, ((0, 0), (2, 2), (2, 2), (0, 0)))
    output = np.zeros((count, height, width, filters), "<u4")
    for y in range(5):
        for x in range(5):
            part = padded[:, y : y + height, x : x + width]
            for group, taps in enumerate(weights[:, y, x]):
                output[..., 32 * group : 32 * group + 32] += part @ taps
    return {"output": output.view(np.uint8)}
