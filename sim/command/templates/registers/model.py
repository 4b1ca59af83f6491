"""The results that the accelerator must have."""

import numpy as np


def encrypt(inputs: dict[str, np.ndarray], registers: dict[str, int]) -> dict[str, np.ndarray]:
    """Values of the registers that the job reads, from those that it writes. There are no inputs."""
    key = [registers[f"key{i}"] for i in range(4)]
    left, right = registers["block0"], registers["block1"]
    total = 0

    def mix(x: int) -> int:
        return ((x << 4) ^ (x >> 5)) + x

    for _ in range(32):
        left = (left + (mix(right) ^ (total + key[total & 3]))) & 0xFFFF_FFFF
        total = (total + 0x9E37_79B9) & 0xFFFF_FFFF
        right = (right + (mix(left) ^ (total + key[total >> 11 & 3]))) & 0xFFFF_FFFF
    return {"result0": np.array([left], np.uint32), "result1": np.array([right], np.uint32)}
