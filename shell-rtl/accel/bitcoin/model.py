"""The first nonce of a window, with hashlib."""

import hashlib

import numpy as np


def target(words: list[int], difficulty: int) -> int:
    """The largest hash that is a hit."""
    if difficulty:
        return (1 << 256 - difficulty) - 1
    exponent, mantissa = words[18] >> 24, words[18] & 0x7FFFFF
    return mantissa * 256**exponent >> 24


def search(inputs: dict[str, np.ndarray], registers: dict[str, int]) -> dict[str, int]:
    """The registers of the result."""
    words = [registers[f"header{i}"] for i in range(19)]
    head = np.array(words, dtype="<u4").tobytes()
    start = hashlib.sha256(head)
    limit = target(words, registers["difficulty"])
    window = registers["window"]
    for tried in range(window):
        nonce = registers["first"] + tried
        once = start.copy()
        once.update(nonce.to_bytes(4, "little"))
        hash = hashlib.sha256(once.digest()).digest()[::-1]
        if int.from_bytes(hash, "big") <= limit:
            return result(1, nonce, tried + 1, hash)
    return result(0, 0, window, bytes(32))


def result(found: int, nonce: int, tried: int, hash: bytes) -> dict[str, int]:
    """Registers of a run."""
    parts = {f"hash{i}": int.from_bytes(hash[4 * i : 4 * i + 4], "big") for i in range(8)}
    return {"status": 2, "found": found, "nonce": nonce, "tried": tried} | parts
