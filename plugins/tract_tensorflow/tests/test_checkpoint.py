"""Checkpoints: tables of keys and values as LevelDB has them, and the files of elements beside them."""

from __future__ import annotations

import os
import random
import struct
import sys

import google_crc32c
import ml_dtypes
import numpy as np
import pytest
from graphdef_builder import CODES, shape
from tract_tensorflow.graphdef import slices
from tract_tensorflow.graphdef.checkpoint import Checkpoint
from tract_tensorflow.graphdef.protos import CLASSES
from tract_tensorflow.graphdef.sstable import entries, varint

from tract_core.data import DatumType
from tract_core.errors import CorruptModel, LimitExceeded, ModelError, TractError, UnsafePath, Unsupported
from tract_core.limits import DEFAULT_LIMITS, LoadLimits, spending

MAGIC = 0xDB4775248B80FB57


def number(value):
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def masked(content):
    found = google_crc32c.value(content)
    return ((found >> 15 | found << 17) + 0xA282EAD8) & 0xFFFFFFFF


def block(pairs, *, restart=16):
    """The entries of a block; a key is written whole at every ``restart``-th of them."""
    content, places, before = b"", [], b""
    for place, (key, value) in enumerate(pairs):
        shared = 0
        if place % restart:
            shared = next(
                (n for n, (a, b) in enumerate(zip(before, key, strict=False)) if a != b), min(len(before), len(key))
            )
        else:
            places.append(len(content))
        content += number(shared) + number(len(key) - shared) + number(len(value)) + key[shared:] + value
        before = key
    places = places or [0]
    return content + struct.pack(f"<{len(places) + 1}I", *places, len(places))


def table(pairs, *, per_block=1000, compression=0, restart=16):
    """A whole table; ``per_block``: entries of a block."""
    content, index = b"", []

    def add(found):
        nonlocal content
        handle = number(len(content)) + number(len(found))
        content += found + bytes([compression]) + struct.pack("<I", masked(found + bytes([compression])))
        return handle

    for first in range(0, len(pairs), per_block):
        part = pairs[first : first + per_block]
        index.append((part[-1][0], add(block(part, restart=restart))))
    meta = add(block([]))
    footer = meta + add(block(index, restart=1))
    return content + footer + bytes(40 - len(footer)) + struct.pack("<Q", MAGIC)


@pytest.mark.parametrize("count", [0, 1, 2, 17, 300])
@pytest.mark.parametrize("per_block", [1, 7, 1000])
def test_a_table_gives_its_keys_and_values(count, per_block):
    pairs = [
        (f"layer/{n:04}/{'kernel' if n % 2 else 'bias'}".encode(), bytes([n % 256]) * (n % 200)) for n in range(count)
    ]
    assert list(entries(table(pairs, per_block=per_block))) == pairs
    assert list(entries(table(pairs, per_block=per_block, restart=1))) == pairs


PAIRS = [(b"alpha", b"1"), (b"alphabet", b"22"), (b"beta", b"")]


@pytest.mark.parametrize(
    ("content", "kind", "said"),
    [
        (b"", CorruptModel, "it is no table"),
        (table(PAIRS)[:-1], CorruptModel, "it is no table"),
        (table(PAIRS, compression=1), Unsupported, "compressed with Snappy"),
        (table(PAIRS, compression=9), Unsupported, "compressed with method 9"),
        (b"\xff" + table(PAIRS)[1:], CorruptModel, "its checksum is another one"),
        (bytes(40) + struct.pack("<Q", MAGIC), CorruptModel, "its checksum is another one"),
        (
            number(0) + number(0) + number(40) + number(99) + bytes(36) + struct.pack("<Q", MAGIC),
            CorruptModel,
            "goes beyond",
        ),
    ],
    ids=["empty", "cut", "snappy", "method 9", "damaged", "zeros", "beyond"],
)
def test_a_table_that_is_wrong_is_refused(content, kind, said):
    with pytest.raises(kind, match=said):
        list(entries(content))


def with_block(content):
    """A table whose only block has this content."""
    whole = content + b"\0" + struct.pack("<I", masked(content + b"\0"))
    index = block([(b"z", number(0) + number(len(content)))])
    footer = number(0) + number(0) + number(len(whole)) + number(len(index))
    whole += index + b"\0" + struct.pack("<I", masked(index + b"\0"))
    return whole + footer + bytes(40 - len(footer)) + struct.pack("<Q", MAGIC)


END = struct.pack("<II", 0, 1)


@pytest.mark.parametrize(
    ("content", "kind", "said"),
    [
        (b"\x05\x01\x00a" + END, CorruptModel, "more of the key before it than there is"),
        (b"\x00\x7f\x00a" + END, CorruptModel, "goes beyond its block"),
        (b"\x00\x01\x7fa" + END, CorruptModel, "goes beyond its block"),
        (b"\x80" * 20 + END, CorruptModel, "more than 64 bits"),
        (b"\x00\x01", CorruptModel, "a block has 2 bytes"),
        (struct.pack("<I", 1 << 30), CorruptModel, "1073741824 places in its list"),
        (b"\x00" + number(70_000) + b"\x00" + b"k" * 70_000 + END, LimitExceeded, "a key has 70000 bytes"),
    ],
    ids=["shared", "key", "value", "number", "short", "list", "long key"],
)
def test_a_block_that_is_wrong_is_refused(content, kind, said):
    with pytest.raises(kind, match=said):
        list(entries(with_block(content)))


def test_keys_that_grow_from_each_other_are_counted():
    content = b"".join(number(n) + b"\x01\x00k" for n in range(20_000)) + END
    with spending(LoadLimits(max_nodes=10_000)), pytest.raises(LimitExceeded, match="more than 10000 nodes"):
        list(entries(with_block(content)))


def test_a_number_that_is_cut_off_is_refused():
    with pytest.raises(CorruptModel, match="ends beyond the end"):
        varint(b"\x80\x80", 0)


@pytest.mark.hostile
def test_damaged_tables_give_errors_of_ours():
    chance, whole = random.Random(5), table([(f"k{n:03}".encode(), bytes(20)) for n in range(40)], per_block=9)
    for _ in range(2000):
        data = bytearray(whole)
        for _ in range(chance.choice((1, 1, 3))):
            data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            found = list(entries(bytes(data[: chance.choice((len(data), chance.randrange(len(data))))])))
        except TractError:
            continue
        assert len(found) <= 40


# --- checkpoints ---


def entry(array, place, **fields):
    found = CLASSES["BundleEntryProto"](
        dtype=CODES[DatumType.from_numpy(array.dtype)],
        shape=shape(*array.shape),
        offset=place,
        size=array.nbytes,
        crc32c=masked(array.tobytes()),
    )
    for name, value in fields.items():
        setattr(found, name, value)
    return found


def write(folder, arrays, *, header=None, changes=None, compression=0):
    """A checkpoint of one file, in ``folder/variables``; returns the path of the model beside it."""
    header = CLASSES["BundleHeaderProto"](num_shards=1) if header is None else header
    content, pairs = b"", [(b"", header.SerializeToString())]
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        pairs.append((name.encode(), entry(array, len(content), **(changes or {})).SerializeToString()))
        content += array.tobytes()
    (folder / "variables").mkdir(exist_ok=True)
    (folder / "variables/variables.index").write_bytes(table(pairs, compression=compression))
    (folder / "variables/variables.data-00000-of-00001").write_bytes(content)
    return folder / "saved_model.pb"


def read(path, limits=DEFAULT_LIMITS):
    return Checkpoint(path, "variables/variables", limits)


ARRAYS = {
    "b": np.arange(6, dtype=np.float32).reshape(2, 3),
    "flag": np.array(True),
    "half": np.ones(3, ml_dtypes.bfloat16),
    "nothing": np.zeros((0, 4), np.float32),
    "odd": np.arange(5, dtype=np.int8),
    "scalar": np.array(1 << 40),
}


def test_variables_are_read_in_place(tmp_path):
    found = read(write(tmp_path, ARRAYS))
    for name, array in ARRAYS.items():
        value = found.tensor(name)
        assert value.dtype == array.dtype
        np.testing.assert_array_equal(value, array)
    assert not found.tensor("b").flags.owndata
    assert not found.tensor("b").flags.writeable


@pytest.mark.parametrize(
    ("changes", "kind", "said"),
    [
        ({"offset": 1 << 40}, CorruptModel, "go beyond the 24 bytes"),
        ({"offset": -1}, CorruptModel, "at -1 of file 1 of 1"),
        ({"size": 20}, CorruptModel, "is to be 20 bytes"),
        ({"shard_id": 3}, CorruptModel, "of file 4 of 1"),
        ({"crc32c": 1}, CorruptModel, "its checksum is another one"),
        ({"dtype": 77}, Unsupported, "element type number 77"),
        ({"dtype": 7}, Unsupported, "strings"),
    ],
)
def test_an_entry_that_is_wrong_is_refused(tmp_path, changes, kind, said):
    found = read(write(tmp_path, {"b": ARRAYS["b"]}, changes=changes))
    with pytest.raises(kind, match=said) as caught:
        found.tensor("b")
    assert "variable 'b'" in str(caught.value)


def test_what_is_not_there_is_refused(tmp_path):
    with pytest.raises(CorruptModel, match="it is not in the checkpoint"):
        read(write(tmp_path, ARRAYS)).tensor("c")


def test_an_index_that_is_wrong_is_refused(tmp_path):
    big = CLASSES["BundleHeaderProto"](num_shards=1, endianness=1)
    with pytest.raises(Unsupported, match="the highest byte first"):
        read(write(tmp_path, ARRAYS, header=big))
    with pytest.raises(CorruptModel, match="in 0 files"):
        read(write(tmp_path, ARRAYS, header=CLASSES["BundleHeaderProto"]()))
    with pytest.raises(Unsupported, match=r"variables/variables.index: a block is compressed with Snappy"):
        read(write(tmp_path, ARRAYS, compression=1))
    path = write(tmp_path, ARRAYS)
    with pytest.raises(LimitExceeded, match="the index has"):
        read(path, LoadLimits(max_parsed_bytes=10))
    (tmp_path / "variables/variables.index").write_bytes(table([(b"b", b"")]))
    with pytest.raises(CorruptModel, match="does not begin with how many files"):
        read(path)


def test_a_file_that_is_missing_or_cut_off_is_refused(tmp_path):
    path = write(tmp_path, {"b": ARRAYS["b"]})
    data = tmp_path / "variables/variables.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:-4])
    with pytest.raises(CorruptModel, match="go beyond the 20 bytes"):
        read(path).tensor("b")
    data.unlink()
    with pytest.raises(ModelError, match="cannot be opened"):
        read(path).tensor("b")


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_links_that_lead_out_of_the_folder_are_refused(tmp_path):
    inside, outside = tmp_path / "model", tmp_path / "secret"
    inside.mkdir()
    path = write(inside, {"b": ARRAYS["b"]})
    data = inside / "variables/variables.data-00000-of-00001"
    data.rename(outside)
    os.symlink(outside, data)
    with pytest.raises(UnsafePath, match="leads out of the model's folder"):
        read(path).tensor("b")


def test_names_of_variables_lead_to_keys(tmp_path):
    found = read(write(tmp_path, {"a/.ATTRIBUTES/VARIABLE_VALUE": ARRAYS["b"], "b": ARRAYS["b"]}))
    assert found.key_of("a") == "a/.ATTRIBUTES/VARIABLE_VALUE"
    assert found.key_of("b") == "b"
    assert found.key_of("c") is None


# --- variables in parts ---


def write_parts(folder, whole, parts, *, stored=None, extents=None):
    """A checkpoint of the variable ``v``, of which the file has ``parts``. ``stored``: other elements of them."""
    file = CLASSES["BundleHeaderProto"](num_shards=1)
    of_all = entry(np.zeros(0, whole.dtype), 0, crc32c=0)
    of_all.ClearField("shape")
    of_all.shape.CopyFrom(shape(*whole.shape))
    pairs, content = [(b"", file.SerializeToString())], b""
    for number_, part in enumerate(parts):
        found = of_all.slices.add()
        for start, length in (extents or parts)[number_]:
            one = found.extent.add(start=start)
            if length >= 0:
                one.length = length
        array = np.ascontiguousarray(whole[slices.places(slices.inside(part, whole.shape))])
        array = array if stored is None else stored
        pairs.append((slices.key_of("v", part), entry(array, len(content)).SerializeToString()))
        content += array.tobytes()
    pairs.append((b"v", of_all.SerializeToString()))
    (folder / "variables").mkdir(exist_ok=True)
    (folder / "variables/variables.index").write_bytes(table(sorted(pairs)))
    (folder / "variables/variables.data-00000-of-00001").write_bytes(content)
    return read(folder / "saved_model.pb")


WHOLE = np.arange(35, dtype=np.float32).reshape(5, 7)
HALVES = [((0, 3), (0, -1)), ((3, 2), (0, -1))]
QUARTERS = [((0, 2), (0, 3)), ((0, 2), (3, 4)), ((2, 3), (0, 3)), ((2, 3), (3, 4))]


@pytest.mark.parametrize("parts", [HALVES, QUARTERS, [((0, -1), (0, -1))]])
@pytest.mark.parametrize(
    "wanted", ["", "5 7 -:-", "5 7 0,3:-", "5 7 0,3:0,7", "5 7 2,3:3,4", "5 7 1,3:2,4", "5 7 5,0:-"]
)
def test_parts_of_a_variable(tmp_path, parts, wanted):
    found = write_parts(tmp_path, WHOLE, parts).tensor("v", wanted)
    where = (slice(None), slice(None))
    if wanted:
        pieces = wanted.split(" ")[-1].split(":")
        ends = [None if one == "-" else [int(n) for n in one.split(",")] for one in pieces]
        where = tuple(slice(None) if one is None else slice(one[0], one[0] + one[1]) for one in ends)
    np.testing.assert_array_equal(found, WHOLE[where])


def test_a_part_that_the_file_has_is_read_in_place(tmp_path):
    found = write_parts(tmp_path, WHOLE, HALVES).tensor("v", "5 7 3,2:0,7")
    assert not found.flags.owndata


def test_a_part_of_what_is_in_one_piece(tmp_path):
    np.testing.assert_array_equal(read(write(tmp_path, {"v": WHOLE})).tensor("v", "5 7 1,2:-"), WHOLE[1:3])


@pytest.mark.parametrize(
    ("parts", "options", "wanted", "said"),
    [
        (HALVES, {}, "5 8 0,3:-", "a part of a variable of shape [5, 8] is wanted, it has [5, 7]"),
        (HALVES, {}, "5 7 0,3", "a part of 1 axes is not of shape [5, 7]"),
        (HALVES, {}, "5 7 3,3:-", "the part 3,3:0,7 is not within the shape [5, 7]"),
        (HALVES, {}, "5 7 -1,3:-", "is not within the shape"),
        (HALVES, {}, "5 7 0:-", "'5 7 0:-' is no part of a variable"),
        (HALVES, {}, "\x1b[31m", "is no part of a variable"),
        (HALVES[:1], {}, "", "its 1 parts are not all of shape [5, 7]"),
        ([((0, 3), (0, -1)), ((2, 2), (0, -1))], {}, "", "its parts overlap"),
        (HALVES, {"extents": [((0, 3), (0, -1)), ((3, 2), (0, 7))]}, "", "its part 3,2:0,7 is not in the checkpoint"),
        (HALVES, {"stored": np.zeros((3, 6), np.float32)}, "", "is of another shape or type: [3, 6]"),
        (HALVES, {"stored": np.zeros((3, 7), np.int32)}, "", "is of another shape or type"),
        (HALVES, {"extents": [((0, 9), (0, -1)), ((3, 2), (0, -1))]}, "", "is not within the shape"),
    ],
)  # fmt: skip
def test_parts_that_do_not_fit_are_refused(tmp_path, parts, options, wanted, said):
    found = write_parts(tmp_path, WHOLE, parts, **options)
    with pytest.raises(CorruptModel) as caught:
        found.tensor("v", wanted)
    assert said in str(caught.value)
    assert "variable 'v'" in str(caught.value)


def test_what_takes_too_much_is_refused_before_it_is_put_together(tmp_path):
    write_parts(tmp_path, WHOLE, QUARTERS)
    with pytest.raises(LimitExceeded, match="it has 140 bytes, 100 are allowed"):
        read(tmp_path / "saved_model.pb", LoadLimits(max_tensor_bytes=100)).tensor("v")


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (0, "80"), (1, "81"), (63, "bf"), (-1, "7f"), (-64, "40"), (64, "c040"), (-65, "3fbf"), (8191, "dfff"),
        (8192, "e02000"), (1 << 20, "f0100000"),
        ((1 << 63) - 1, "ffc07fffffffffffffff"), (-(1 << 63), "003f8000000000000000"),
    ],
)  # fmt: skip
def test_numbers_in_keys_have_the_order_of_what_they_stand_for(value, wanted):
    """Numbers of one to ten bytes; the order is looked at below."""
    key = slices.key_of("", ((value, 0),))
    assert key.hex() == "00" + "0001" + "0101" + wanted + "80"


def test_keys_are_in_order():
    chance = random.Random(3)
    values = sorted({chance.choice((-1, 1)) * chance.randrange(1 << bits) for bits in range(64) for _ in range(20)})
    keys = [slices.key_of("a\0b", ((value, 1),)) for value in values]
    assert keys == sorted(keys)
