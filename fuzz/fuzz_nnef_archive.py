"""Feed damaged archives and tensors to the NNEF reader: only typed errors or whole tensors may come of them.

    python fuzz/fuzz_nnef_archive.py [--seconds 60] [--seed 0] [--replay FILE ...]

Seeds are tars as this project and the standard library write them, the same gzip-compressed, and files of one tensor of
every type. Bytes are changed at random, also inside of what is compressed, with checksums mended, so that what they say
is looked at. A *finding* is what `driver` says; a tensor that takes more memory than its file allows; and one that does
not come back as it was when it is written again.
"""

from __future__ import annotations

import gzip
import io
import struct
import sys
import tarfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from driver import Finding, Target, look_for_mistake, main, place_of

BLOCK = 512
NUMBERS = (0, 1, 2, 7, 8, 9, 127, 128, 255, 256, 512, 1 << 15, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 32) - 1)
CODES = (0, 1, 2, 3, 4, 5, 6, 0x110, 0x111, 0x121, 0x132, 0x140, 0x144, 0x150, 0x1000, 0x2040, 0x3040, 0x3080, 0x3081)
NAMES = ("graph.nnef", "../w", "/w", "./w.dat", ".w", "a/../../b", "w.dat", "", "a" * 99, "x.nnef.tgz", "a\0b", "\xff")
SIZES = (b"%011o\0", b"%o ", b"-%o", b"%d")
LIMIT = 64 << 20
"""Bytes of memory that files of a few kilobytes may become."""


def tensors():
    import numpy as np
    from tract_nnef.archive import Q8_1, Blocks, encode_q4_0, tensor_file

    from tract_core.data import DatumType

    arrays = [np.array(["a", "", "é" * 50], object), encode_q4_0(np.ones((2, 64), np.float32))]
    arrays.append(Blocks(Q8_1, (1, 32), np.zeros(36, np.uint8)))
    others = ("STRING", "TDIM", "BLOB", "COMPLEX_F16", "COMPLEX_I16", "COMPLEX_I32", "COMPLEX_I64")
    arrays += [np.ones((3, 5), kind.numpy) for kind in DatumType if kind.name not in others]
    return {f"{number}.dat": b"".join(map(bytes, tensor_file(array))) for number, array in enumerate(arrays)}


def seeds():
    from tract_nnef.archive import tar_gz_bytes, tar_pieces

    files = {"graph.nnef": b"version 1.0;\n", **tensors()}
    inner = tar_gz_bytes({"graph.nnef": b"", "w.dat": files["3.dat"]})
    whole = {**files, "x.nnef.tgz": inner, "y/graph.nnef": b"", "long" * 40: b"1"}
    tars = [b"".join(map(bytes, tar_pieces(whole)))]
    for form in (tarfile.USTAR_FORMAT, tarfile.PAX_FORMAT):
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w", format=form) as tar:
            for name, content in {"graph.nnef": b"", "long/" * 30 + "w.dat": files["0.dat"]}.items():
                entry = tarfile.TarInfo(name)
                entry.size, entry.mtime = len(content), 1.5
                tar.addfile(entry, io.BytesIO(content))
        tars.append(file.getvalue())
    return [*tars, *(gzip.compress(tar, mtime=0) for tar in tars), *tensors().values()]


def mutated(contents, chance):
    content = bytearray(chance.choice(contents))
    is_compressed = content[:2] == b"\x1f\x8b"
    if is_compressed and chance.random() < 0.8:
        content = bytearray(gzip.decompress(content))
    for _ in range(chance.choice((1, 1, 2, 3, 8))):
        change = chance.choice(TENSOR if content[:2] == b"\x4e\xef" else TAR)
        change(content, chance)
    if is_compressed and content[:2] != b"\x1f\x8b":
        content = bytearray(gzip.compress(bytes(content), 1))
        if chance.random() < 0.1:
            flip(content, chance)
    return bytes(content)


def flip(content, chance):
    if content:
        content[chance.randrange(len(content))] = chance.randrange(256)


def cut(content, chance):
    del content[chance.randrange(len(content) + 1) :]


def grow(content, chance):
    content += chance.choice((bytes(chance.choice((1, 512, 5000))), chance.randbytes(20), bytes(content[:1024])))


def move(content, chance):
    """A piece of it stands somewhere else, once more or instead."""
    unit = chance.choice((1, 4, BLOCK))
    count = len(content) // unit + 1
    start, size, target = chance.randrange(count) * unit, chance.randrange(1, 5) * unit, chance.randrange(count) * unit
    content[target : target + chance.choice((0, size))] = content[start : start + size]


def header_field(content, chance):
    """A field of a tar's header says something else, and the checksum is right."""
    if len(content) < BLOCK:
        return
    start = chance.randrange(len(content) // BLOCK) * BLOCK
    block = bytearray(content[start : start + BLOCK])
    field = chance.choice(("name", "size", "kind", "prefix", "magic", "link"))
    if field == "name":
        block[:100] = chance.choice(NAMES).encode()[:100].ljust(100, b"\0")
    elif field == "size":
        number = chance.choice(NUMBERS)
        wide = chance.choice((b"\x80", b"\xff")) + bytes(3) + number.to_bytes(8, "big")
        text = chance.choice(SIZES) % number
        block[124:136] = wide if chance.random() < 0.3 else text[:12].ljust(12, b"\0")
    elif field == "kind":
        block[156] = chance.choice(b"\x0001234567xgLKSDMVZ\xff")
    elif field == "prefix":
        block[345:500] = chance.choice(NAMES).encode()[:155].ljust(155, b"\0")
    else:
        block[257:265] = chance.choice((b"ustar\x0000", b"ustar  \0", bytes(8), chance.randbytes(8)))
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    content[start : start + BLOCK] = block


def tensor_field(content, chance):
    """A number of a tensor's header says something else."""
    if len(content) < 128:
        return
    if chance.random() < 0.3:
        width, vendor = chance.choice((*NUMBERS, 4, 16, 32, 64)), chance.choice((0, 0x5452, 0x5950))
        content[44:52] = struct.pack("<IHH", width, chance.choice(CODES), vendor)
    else:
        place = 4 * chance.randrange(13)
        content[place : place + 4] = struct.pack("<I", chance.choice(NUMBERS))
    if chance.random() < 0.5:
        content[4:8] = struct.pack("<I", len(content) - 128)


TAR = (flip, cut, grow, move, header_field, header_field, header_field)
TENSOR = (flip, cut, grow, move, tensor_field, tensor_field, tensor_field)


def examine(content, chance):
    """``"read"`` or ``"refused"``."""
    import numpy as np
    from tract_nnef.archive import open_archive, read_tensor

    from tract_core.errors import TractError
    from tract_core.limits import LoadLimits, spending

    limits = LoadLimits(max_nodes=10_000, deadline_s=5, max_fold_bytes=LIMIT, max_tensor_bytes=LIMIT)
    try:
        with spending(limits):
            if content[:2] == b"\x4e\xef":
                written_again(read_tensor(np.frombuffer(content, np.uint8), "w.dat"))
            else:
                read_all(open_archive(content, limits))
    except TractError as error:
        look_for_mistake(error)
        if not error.hint:
            raise Finding(f"no hint: {place_of(error)}") from error
        return "refused"
    return "read"


def read_all(archive):
    """Every file, as a tensor where it is one, and every submodel."""
    from tract_nnef.archive import read_tensor

    from tract_core.errors import ModelError

    total = 0
    for name in archive.names():
        content = archive.content(name)
        total += len(content)
        if name.startswith("/") or {"", ".", ".."} & set(name.split("/")):
            raise Finding("a name that leads outside")
        try:
            submodel = archive.submodel(name.partition(".")[0].rpartition("/")[0] or name.partition(".")[0])
            if submodel is not None:
                submodel.names()
            if name.endswith(".dat"):
                written_again(read_tensor(content, name))
        except ModelError as error:
            look_for_mistake(error)
    if total > 2 * LIMIT:
        raise Finding("more memory than allowed")


def written_again(tensor):
    """A tensor that is written and read once more is the same."""
    import numpy as np
    from tract_nnef.archive import Blocks, read_tensor, tensor_file

    again = read_tensor(np.frombuffer(b"".join(map(bytes, tensor_file(tensor))), np.uint8), "again")
    one, other = ((t.content if isinstance(t, Blocks) else t) for t in (tensor, again))
    is_same = (one == other).all() if one.dtype == object else one.tobytes() == other.tobytes()
    if not (is_same and one.shape == other.shape and one.dtype == other.dtype):
        raise Finding("a tensor is not what it was")


TARGET = Target(__file__, ".nnef", seeds, mutated, examine)

if __name__ == "__main__":
    sys.exit(main(TARGET, __doc__))
