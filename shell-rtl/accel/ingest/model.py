"""The batch, with NumPy."""

import numpy as np


def logarithm(x: np.ndarray) -> np.ndarray:
    """log2(1 + x) with 16 fractional bits: the line between the nodes at multiples of 1/128."""
    exponent = np.frexp(1.0 + x)[1] - 1
    mantissa = np.ldexp(1.0 + x, 23 - exponent).astype(np.int64) - (1 << 23)  # 23 fractional bits
    nodes = np.rint(np.log2(1 + np.arange(129) / 128) * 2**20).astype(np.int64)
    segment, part = np.divmod(mantissa, 1 << 16)
    fraction = nodes[segment] + (np.diff(nodes)[segment] * part) // 65536
    return exponent.astype(np.int64) * 65536 + (fraction + 8) // 16


def table_rows(ids: np.ndarray, salt: int, size: int) -> np.ndarray:
    """Hashes of MurmurHash3's finaliser, scaled to the size of the table."""
    mask = np.uint64(0xFFFFFFFF)
    h = ids.astype(np.uint64) ^ np.uint64(salt)
    for shift, factor in (16, 0x85EBCA6B), (13, 0xC2B2AE35):
        h = (h ^ (h >> np.uint64(shift))) * np.uint64(factor) & mask
    h ^= h >> np.uint64(16)
    rows = h * np.uint64(size) >> np.uint64(32)
    return np.where(ids == 0xFFFFFFFF, ids, rows.astype(np.uint32))


def rows(inputs: dict[str, np.ndarray], registers: dict[str, int]) -> dict[str, np.ndarray]:
    """Bytes of the region `batch`."""
    config = inputs["config"].view("<u4").reshape(-1, 16)
    low, high, ops = config[0].view("<i4"), config[1].view("<i4"), config[2]
    lines = inputs["columns"].reshape(-1, 64)
    sparse = registers["sparse"]
    batch = []
    while len(lines):
        header = lines[0].view("<u4")
        count = int(header[0])
        inverse, lines = lines[1 : 1 + sparse, :count], lines[1 + sparse :]
        height = -(-count // 16)
        columns = lines[: 16 * height].view("<i4").reshape(16, -1)[:, :count].T
        lines = lines[16 * height :]
        values = np.clip(columns, low, high).astype(np.int64)
        parts = []
        for feature in range(16):
            column = values[:, feature]
            if ops[feature] == 1:
                column = logarithm(np.maximum(column, 0))
            elif ops[feature] == 2:
                column = np.searchsorted(config[4 + feature].view("<i4"), column, side="left")
            parts.append(column.astype(np.uint32)[:, None])
        for feature in range(sparse):
            unique = int(header[1 + feature])
            lists, lines = lines[:unique].view("<u4"), lines[unique:]
            size, salt = int(config[3][feature]), int(config[3][8 + feature])
            parts.append(table_rows(lists, salt, size)[inverse[feature]])
        batch.append(np.hstack(parts))
    return {"batch": np.vstack(batch).astype("<u4")}
