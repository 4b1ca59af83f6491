"""The three nearest rows, with NumPy."""

import numpy as np


def nearest(inputs: dict[str, np.ndarray], registers: dict[str, int]) -> dict[str, np.ndarray]:
    """Records of the region `result`."""
    rows, queries = registers["train_rows"], registers["query_rows"]
    train = inputs["train"][: 64 * rows].reshape(rows, 64).astype(np.int64)
    labels = inputs["train"][4096 : 4096 + rows] & 15
    query = inputs["query"][: 64 * queries].reshape(queries, 64).astype(np.int64)
    records = np.zeros((-(-queries // 4) * 4, 16), np.uint8)
    for record, one in zip(records, query):
        distance = ((train - one) ** 2).sum(axis=1)
        first = np.argsort(distance, kind="stable")[:3]
        votes = [int((labels[first] == labels[row]).sum()) for row in first]
        winner = next((k for k in range(len(first)) if votes[k] >= 2), 0)
        record[0], record[1] = labels[first[winner]], votes[winner]
        near = np.full(3, 0xFFFF, "<u2")
        near[: len(first)] = first
        record[2:8] = near.view(np.uint8)
        record[8:12] = np.array([distance[first[0]]], "<u4").view(np.uint8)
    return {"result": records}
