"""The storage node, record by record. `python3 model.py` writes the files of data/ again."""

import pathlib
import struct

import numpy as np

RECORD = 4096
MAGIC = 0x31434552
PUT, GET = 1, 2
COMMAND = struct.Struct("<6I2Q24x")  # op, slot, first, records, block, purpose, requester, now
HEADER = struct.Struct("<2I3QI28x")  # magic, flags, owner, purposes, expires, length
REASONS = ["broken", "expired", "owner", "objection", "purpose"]


def refusal(header: bytes, op: int, purpose: int, requester: int, now: int) -> str | None:
    """Why a record does not pass."""
    magic, flags, owner, purposes, expires, length = HEADER.unpack(header)
    if magic != MAGIC or flags > 1 or length > RECORD - 64 or any(header[36:]):
        return "broken"
    if now >= expires:
        return "expired"
    if owner != requester:
        if op == PUT:
            return "owner"
        if flags:
            return "objection"
        if purposes >> purpose & 1 == 0:
            return "purpose"
    return None


def run(inputs: dict[str, np.ndarray], registers: dict[str, int]) -> dict[str, np.ndarray | int]:
    """Bytes of `get` and `results`, and the counters."""
    put = inputs.get("put", np.zeros(0, np.uint8)).tobytes()
    put = put.ljust(registers["put_blocks"] * RECORD, b"\0")
    lines = inputs["commands"].tobytes()
    store: dict[tuple[int, int], bytes] = {}
    get: dict[int, bytes] = {}
    results = b""
    count = {"stored": 0, "released": 0, "refused": 0, "bad": 0}
    for i in range(registers["commands"]):
        line = lines[64 * i : 64 * i + 64]
        op, slot, first, records, block, purpose, requester, now = COMMAND.unpack(line)
        blocks = registers["put_blocks" if op == PUT else "get_blocks"]
        bad = op not in (PUT, GET) or slot >= registers["slots"] or purpose > 63 or any(line[40:])
        if bad or records == 0 or first + records > 256 or block + records > blocks:
            count["bad"] += 1
            results += struct.pack("<I60x", 2)
            continue
        why = []
        for r in range(records):
            if op == PUT:
                record = put[(block + r) * RECORD :][:RECORD]
            else:
                record = store.get((slot, first + r), bytes(RECORD))
            reason = refusal(record[:64], op, purpose, requester, now)
            if reason:
                record = bytes(RECORD)
            else:
                length = HEADER.unpack(record[:64])[5]
                record = record[: 64 + length].ljust(RECORD, b"\0")
            if op == PUT:
                store[slot, first + r] = record
            else:
                get[block + r] = record
            why.append(reason)
        refused = sum(reason is not None for reason in why)
        count["stored" if op == PUT else "released"] += records - refused
        count["refused"] += refused
        numbers = [int(refused > 0), records - refused, refused, *map(why.count, REASONS)]
        results += struct.pack("<8I", *numbers)
        results += sum(1 << r for r, reason in enumerate(why) if reason).to_bytes(32, "little")
    answer = count | {"status": 2}
    answer["results"] = np.frombuffer(results, np.uint8)
    if get:
        answer["get"] = np.frombuffer(b"".join(get[b] for b in range(len(get))), np.uint8)
    return answer


def data() -> dict[str, bytes]:
    """Ten records, and commands that meet each rule of the policy and of the hardware."""
    fill = np.random.default_rng(35)

    def record(owner=7, purposes=1 << 5, expires=2000, length=4032, flags=0, magic=MAGIC, end=0):
        header = HEADER.pack(magic, flags, owner, purposes, expires, length)
        return header[:63] + bytes([end]) + fill.bytes(RECORD - 64)

    put = [
        record(),
        record(flags=1),
        record(magic=MAGIC + 1),
        record(expires=1000),
        record(owner=8),
        record(purposes=1 << 6, length=1000),
        record(owner=8, length=0),
        record(owner=8, purposes=1 << 63, length=4033),
        record(owner=8, expires=1 << 40, length=1, purposes=1 << 63),
        record(owner=8, end=1),
    ]

    def command(op, first, records, block, requester=7, purpose=5, now=1000, slot=3, end=0):
        line = COMMAND.pack(op, slot, first, records, block, purpose, requester, now)
        return line[:63] + bytes([end])

    mix = [
        command(PUT, 0, 6, 0),
        command(GET, 0, 6, 0),
        command(GET, 0, 6, 6, requester=9),
        command(PUT, 4, 4, 6, requester=8),
        command(GET, 3, 6, 12, requester=8, purpose=63),
        command(GET, 255, 1, 18, slot=15),
        command(PUT, 9, 1, 0, slot=16),
        command(0, 9, 1, 0),
        command(3, 9, 1, 0),
        command(PUT, 255, 2, 0),
        command(PUT, 0, 0, 0),
        command(PUT, 0, 1, 10),
        command(GET, 0, 1, 28),
        command(GET, 0, 1, 19, purpose=64),
        command(GET, 0, 1, 19, end=1),
        command(PUT, 17, 1, 0),
        command(GET, 17, 1, 19),
        command(PUT, 17, 1, 1),
        command(GET, 17, 1, 20),
        command(GET, 0, 6, 21, requester=9, now=2000),
        command(GET, 6, 1, 27, requester=9, purpose=63, now=1 << 39),
    ]
    files = [command(PUT, 0, 256, 0, slot=0)]
    for i in range(1, 4):
        files += [command(PUT, 0, 256, 256 * i, slot=i)]
        files += [command(GET, 0, 256, 256 * i - 256, slot=i - 1)]
    files += [command(GET, 0, 256, 768, slot=3)]
    return {"put": b"".join(put), "mix": b"".join(mix), "files": b"".join(files)}


if __name__ == "__main__":
    for name, content in data().items():
        (pathlib.Path(__file__).parent / "data" / f"{name}.bin").write_bytes(content)
