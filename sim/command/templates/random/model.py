"""The results that the accelerator must have."""

import numpy as np


def count(inputs: dict[str, np.ndarray], registers: dict[str, int]) -> dict[str, np.ndarray]:
    """Bytes of the output regions, from the bytes of the input regions and the registers."""
    values = inputs["in"].view("<u4")[: 16 * registers["lines"]] % 1024
    return {"out": np.bincount(values, minlength=1024).astype("<u4").view(np.uint8)}
