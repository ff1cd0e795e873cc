"""The tensors of archives: every element type there and back, headers byte by byte, and what is refused."""

from __future__ import annotations

import contextlib
import struct

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tract_nnef.archive import Q4_0, Q8_1, Blocks, encode_q4_0, read_tensor, tensor_file

from tract_core.data import DatumType
from tract_core.errors import CorruptModel, InputError, LimitExceeded, ModelError, Unsupported, VersionError
from tract_core.limits import LoadLimits, spending

NAN, INF = float("nan"), float("inf")
FLOATS = [0.0, -0.0, 1.0, -2.5, NAN, -NAN, INF, -INF, 1e-45, 65504.0, 3.4e38, 2**-149]
NO_ARRAYS = {"STRING", "TDIM", "BLOB", "COMPLEX_F16", "COMPLEX_I16", "COMPLEX_I32", "COMPLEX_I64"}
ARRAYS = [kind for kind in DatumType if kind.name not in NO_ARRAYS]


def file_of(value, **options):
    return np.frombuffer(b"".join(map(bytes, tensor_file(value, **options))), np.uint8)


def back(value, **options):
    return read_tensor(file_of(value, **options), "w.dat")


def bits(array):
    """The elements, so that NaN equals NaN and -0.0 does not equal 0.0."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).tobytes()


def values(kind):
    """Elements that are easily lost."""
    dtype = kind.numpy
    if kind is DatumType.BOOL:
        return np.array([False, True, True])
    if kind.is_complex():
        return np.array([complex(a, b) for a in FLOATS for b in FLOATS]).astype(dtype)
    if kind.is_float():
        with np.errstate(over="ignore"):
            return np.array(FLOATS).astype(dtype)
    info = ml_dtypes.iinfo(dtype)
    return np.array([int(info.min), int(info.min) + 1, 0, 1, int(info.max)], dtype)


@pytest.mark.parametrize("kind", ARRAYS, ids=lambda kind: kind.short)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (2,), (3, 5), (2, 0, 3), (7,), (1,) * 8, (33,)])
def test_every_element_type_there_and_back(kind, shape):
    array = np.resize(values(kind), shape).astype(kind.numpy)
    found = back(array)
    assert found.dtype == kind.numpy
    assert found.shape == shape
    assert bits(found) == bits(array)
    assert not found.flags.writeable


@pytest.mark.parametrize("kind", ARRAYS, ids=lambda kind: kind.short)
def test_every_value_of_narrow_types(kind):
    if kind.itemsize > 2:
        return
    codes = np.arange(1 << 8 * kind.itemsize, dtype=f"u{kind.itemsize}")
    array = codes.view(kind.numpy)
    if kind in (DatumType.U4, DatumType.U2, DatumType.F4E2M1FN, DatumType.BOOL):
        array = codes[: {DatumType.U2: 4, DatumType.BOOL: 2}.get(kind, 16)].view(kind.numpy)
    elif kind in (DatumType.I4, DatumType.I2):
        edge = 8 if kind is DatumType.I4 else 2
        array = np.arange(-edge, edge).astype(kind.numpy)
    assert bits(back(array)) == bits(array)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_array_there_and_back(data):
    dtypes = st.one_of(hnp.floating_dtypes(), hnp.integer_dtypes(), hnp.unsigned_integer_dtypes(), hnp.boolean_dtypes())
    known = dtypes.filter(lambda one: one.itemsize <= 8)
    array = data.draw(hnp.arrays(known, hnp.array_shapes(min_dims=0, max_dims=8)))
    found = back(array)
    assert found.dtype == array.dtype.newbyteorder("=")
    assert bits(found) == bits(array.astype(found.dtype))


@settings(max_examples=200, deadline=None)
@given(hnp.arrays(object, hnp.array_shapes(min_dims=0, max_dims=3), elements=st.text(st.characters(codec="utf-8"))))
def test_texts_there_and_back(array):
    found = back(array)
    assert found.dtype == object
    assert found.tolist() == array.tolist()


def test_arrays_that_do_not_lie_in_order():
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    views = array.transpose(2, 0, 1), array[:, ::-1], array[..., 1], np.asfortranarray(array)
    for other in (*views, array.astype(">f4")):
        np.testing.assert_array_equal(back(other), other)
    np.testing.assert_array_equal(back(np.array(["a", "bc"])), np.array(["a", "bc"], object))


def test_weights_are_not_copied():
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    header, data = tensor_file(array)
    assert np.shares_memory(data, array)
    content = file_of(array)
    assert np.shares_memory(read_tensor(content, "w"), content)
    assert len(header) == 128


def test_elements_at_odd_addresses_are_copied():
    content = np.frombuffer(b"x" + file_of(np.arange(9, dtype=np.float64)).tobytes(), np.uint8)[1:]
    found = read_tensor(content, "w")
    assert found.flags.aligned
    np.testing.assert_array_equal(found, np.arange(9))


# --- headers ----------------------------------------------------------------------------------------------------------

HEADERS = [
    (np.float16, 16, 0, 0),
    (np.float32, 32, 0, 0),
    (np.float64, 64, 0, 0),
    (np.uint8, 8, 1, 0),
    (np.uint64, 64, 1, 0),
    (np.int8, 8, 4, 0),
    (np.int64, 64, 4, 0),
    (np.bool_, 8, 5, 0),
    (np.complex64, 64, 0, b"RT"),
    (np.complex128, 128, 0, b"RT"),
    (ml_dtypes.bfloat16, 16, 0x132, b"PY"),
    (ml_dtypes.float8_e4m3fn, 8, 0x140, b"PY"),
    (ml_dtypes.int4, 4, 0x121, b"PY"),
    (ml_dtypes.uint2, 2, 0x110, b"PY"),
]


@pytest.mark.parametrize(("dtype", "width", "code", "vendor"), HEADERS, ids=lambda value: str(value)[:30])
def test_headers_byte_by_byte(dtype, width, code, vendor):
    array = np.zeros((2, 3), dtype)
    count = -(-6 * width // 8)
    wanted = b"\x4e\xef\x01\x00" + struct.pack("<II", count, 2) + struct.pack("<8I", 2, 3, *[0] * 6)
    wanted += struct.pack("<IH", width, code) + (vendor or b"\0\0") + bytes(32 + 44)
    header, data = tensor_file(array)
    assert header == wanted
    assert len(data) == count


def test_headers_of_quantised_integers():
    for dtype, code in ((np.uint8, 2), (np.int8, 3), (np.int32, 3), (np.uint32, 2)):
        header, _ = tensor_file(np.zeros(3, dtype), quantised=True)
        assert header[48:52] == bytes([code, 0, 0, 0])
        assert back(np.zeros(3, dtype), quantised=True).dtype == dtype
    with pytest.raises(Unsupported, match="elements of type f32"):
        tensor_file(np.zeros(3, np.float32), quantised=True)


def test_headers_of_texts_and_blocks():
    header, data = tensor_file(np.array(["a", "bcd"], object))
    assert header[44:52] == b"\xff\xff\xff\xff\x00\x10RT"
    assert bytes(data) == b"\x01\0\0\0a\x03\0\0\0bcd"
    assert struct.unpack("<I", header[4:8]) == (12,)
    header, data = tensor_file(encode_q4_0(np.zeros((64, 32), np.float32)))
    assert header[44:52] == b"\xff\xff\xff\xff\x40\x30RT"
    assert len(header) + len(data) == 1280
    header, _ = tensor_file(Blocks(Q8_1, (1, 32), np.zeros(36, np.uint8)))
    assert header[44:52] == b"\xff\xff\xff\xff\x80\x30RT"


def dat(data=b"", shape=(), bits=32, code=0, vendor=0, **fields):
    """A file by hand. ``fields``: ``magic``, ``version``, ``count``, ``rank``, ``rest``."""
    sizes = [*shape, *[0] * 8][:8]
    head = fields.get("magic", b"\x4e\xef") + bytes(fields.get("version", (1, 0)))
    head += struct.pack("<II8I", fields.get("count", len(data)), fields.get("rank", len(shape)), *sizes)
    head += struct.pack("<IHH", bits, code, vendor) + fields.get("rest", bytes(76))
    return np.frombuffer(head + data, np.uint8)


TR, PY = 0x5452, 0x5950
VARIES = (1 << 32) - 1


@pytest.mark.parametrize(("code", "signed"), [(1, False), (2, False), (3, True), (4, True)])
@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_integers_of_all_codes(code, signed, width):
    found = read_tensor(dat(b"\xff" * (width // 8), (1,), width, code), "w")
    assert found.dtype == f"{'i' if signed else 'u'}{width // 8}"
    assert found[0] == (-1 if signed else (1 << width) - 1)


def test_signed_integers_as_they_were_before_1_0_3():
    assert read_tensor(dat(b"\xff", (1,), 8, 1, rest=b"\x01" + bytes(75)), "w")[0] == -1


def test_what_fills_up_the_header_does_not_count():
    assert read_tensor(dat(bytes(4), (1,), rest=b"\xff" * 76), "w").shape == (1,)
    sizes = dat(bytes(4), (1, 9, 9, 9), rank=1)
    assert read_tensor(sizes, "w").shape == (1,)


def test_booleans():
    """Of one bit: the first in the highest. Of eight: anything but zero is true, and what comes out is 0 or 1."""
    found = read_tensor(dat(b"\xa0\x40", (10,), 1, 5), "w")
    assert found.tolist() == [True, False, True, *[False] * 6, True]
    assert read_tensor(dat(b"", (0,), 1, 5), "w").shape == (0,)
    assert bits(read_tensor(dat(b"\x00\x01\x02\xff", (4,), 8, 5), "w")) == b"\0\1\1\1"
    for count in (0, 1, 3):
        with pytest.raises(CorruptModel, match=f"w.dat: {count} bytes are there, 10 booleans of one bit take 2"):
            read_tensor(dat(bytes(count), (10,), 1, 5), "w.dat")


def test_texts_as_the_established_engine_writes_them():
    data = b"\x01\0\0\0a\x00\0\0\0"
    for count in (len(data), 48):
        assert read_tensor(dat(data, (2,), VARIES, 0x1000, TR, count=count), "w").tolist() == ["a", ""]


REFUSED = {
    "nothing": (np.zeros(0, np.uint8), CorruptModel, "begins with nothing"),
    "one byte": (np.zeros(1, np.uint8), CorruptModel, "begins with 00, a tensor with 4e ef"),
    "magic": (dat(magic=b"\xef\x4e"), CorruptModel, "begins with ef 4e, a tensor with 4e ef"),
    "only magic": (dat()[:2], CorruptModel, "has 2 bytes, the header of a tensor has 128"),
    "no data": (dat()[:127], CorruptModel, "has 127 bytes"),
    "version 2.0": (dat(bytes(4), version=(2, 0)), VersionError, "version 2.0 of the tensor format, version 1.0 is"),
    "version 1.1": (dat(bytes(4), version=(1, 1)), VersionError, "version 1.1"),
    "version 0.0": (dat(bytes(4), version=(0, 0)), VersionError, "version 0.0"),
    "rank 9": (dat(bytes(4), (1,) * 8, rank=9), CorruptModel, "its rank is 9, tensor files have up to 8"),
    "rank 2^32-1": (dat(bytes(4), rank=VARIES), CorruptModel, "its rank is 4294967295"),
    "count, short": (dat(bytes(4), (1,), count=3), CorruptModel, "header says 3 bytes of data, 4 are there"),
    "count, long": (dat(bytes(4), (1,), count=5), CorruptModel, "header says 5 bytes of data, 4 are there"),
    "count 2^32-1": (dat(bytes(4), (1,), count=VARIES), CorruptModel, "header says 4294967295 bytes"),
    "too little": (dat(bytes(4), (2,)), CorruptModel, r"4 bytes are there, f32 of shape \[2\] takes 8"),
    "too much": (dat(bytes(12), (2,)), CorruptModel, r"12 bytes are there, f32 of shape \[2\] takes 8"),
    "overflow to 0": (dat(b"", (1 << 16,) * 8), LimitExceeded, "more elements than memory has addresses"),
    "overflow to 4": (dat(bytes(4), (1 << 31, 1 << 31, 1 << 2)), LimitExceeded, "more elements than memory"),
    "2^57": (dat(bytes(4), (1 << 29, 1 << 28)), LimitExceeded, r"f32 of shape \[536870912,268435456\] takes"),
    "0 of 2^256": (dat(b"", (VARIES,) * 7 + (0,)), LimitExceeded, "more elements than memory has addresses"),
    "bits 0": (dat(bytes(4), (1,), 0), Unsupported, "type 0x0 of vendor 0x0000 and 0 bits, which is not known"),
    "bits 24": (dat(bytes(3), (1,), 24), Unsupported, "24 bits"),
    "bits 2^31": (dat(bytes(4), (1,), 1 << 31), Unsupported, "2147483648 bits"),
    "bits 2^32-1": (dat(bytes(4), (1,), VARIES), Unsupported, "4294967295 bits"),
    "float of 8 bits": (dat(bytes(1), (1,), 8), Unsupported, "8 bits"),
    "type 6": (dat(bytes(4), (1,), 32, 6), Unsupported, "type 0x6"),
    "type 2^16-1": (dat(bytes(4), (1,), 32, 65535), Unsupported, "type 0xffff"),
    "vendor": (dat(bytes(4), (1,), 32, 0, 0x4242), Unsupported, "of vendor 0x4242, known are 0, 0x5452 and 0x5950"),
    "no type of ours": (dat(bytes(4), (1,), 32, 0, PY), Unsupported, "vendor 0x5950"),
    "wrong bits of ours": (dat(bytes(4), (1,), 8, 0x132, PY), Unsupported, "type 0x132"),
    "complex of halves": (dat(bytes(4), (1,), 32, 0, TR), Unsupported, "arrays of COMPLEX_F16 cannot be held"),
    "complex of integers": (dat(bytes(8), (1,), 64, 4, TR), Unsupported, "arrays of COMPLEX_I32 cannot be held"),
    "blocks of nobody": (dat(bytes(18), (1, 32), VARIES, 0x2041, TR), Unsupported, "type 0x2041"),
    "blocks, rank 1": (dat(bytes(18), (32,), VARIES, 0x3040, TR), CorruptModel, r"its shape is \[32\], wanted rows"),
    "blocks, rank 0": (dat(bytes(18), (), VARIES, 0x3040, TR), CorruptModel, r"its shape is \[\], wanted rows"),
    "blocks, half": (dat(bytes(9), (1, 16), VARIES, 0x3040, TR), CorruptModel, "wanted rows of whole blocks of 32"),
    "blocks, short": (dat(bytes(17), (1, 32), VARIES, 0x3040, TR), CorruptModel, r"17 bytes are there, q4_0 of shape"),
    "blocks, long": (dat(bytes(37), (1, 32), VARIES, 0x3080, TR), CorruptModel, r"\[1,32\] takes 36"),
    "blocks, huge": (dat(bytes(18), (1 << 31, 1 << 31), VARIES, 0x3040, TR), LimitExceeded, "more elements than"),
    "blocks, large": (dat(bytes(18), (1 << 20, 1 << 20), VARIES, 0x3040, TR), CorruptModel, "18 bytes are there"),
    "texts, short": (dat(bytes(7), (2,), VARIES, 0x1000, TR), CorruptModel, "7 bytes are there, 2 texts take 8 at"),
    "texts, long": (dat(bytes(9), (2,), VARIES, 0x1000, TR), CorruptModel, "after its 2 texts come 1 more bytes"),
    "texts, beyond": (dat(b"\x05\0\0\0a", (1,), VARIES, 0x1000, TR), CorruptModel, "text 0 of 1 goes beyond the end"),
    "texts, 4 GiB": (dat(b"\xff" * 8, (2,), VARIES, 0x1000, TR), CorruptModel, "text 0 of 2 goes beyond"),
    "texts, other": (dat(b"\x02\0\0\0\xff\xff", (1,), VARIES, 0x1000, TR), CorruptModel, "text 0 is not UTF-8"),
    "texts, halves": (dat(b"\x03\0\0\0\xed\xa0\x80", (1,), VARIES, 0x1000, TR), CorruptModel, "text 0 is not UTF-8"),
    "texts, many": (dat(bytes(4), (VARIES,), VARIES, 0x1000, TR), CorruptModel, "4294967295 texts take"),
    "texts, count": (dat(bytes(4), (1,), VARIES, 0x1000, TR, count=9), CorruptModel, "header says 9 bytes of data"),
    "texts, 32 bits": (dat(bytes(4), (1,), 32, 0x1000, TR), Unsupported, "type 0x1000"),
}


@pytest.mark.hostile
@pytest.mark.parametrize("name", REFUSED)
def test_files_that_are_refused(name):
    content, kind, match = REFUSED[name]
    with pytest.raises(kind, match=match) as caught:
        read_tensor(content, "weights/w.dat")
    assert caught.value.where == "weights/w.dat"
    assert caught.value.hint
    assert isinstance(caught.value, ModelError)


@pytest.mark.hostile
def test_limits():
    with spending(LoadLimits(max_tensor_bytes=100)):
        assert back(np.zeros(25, np.float32)).size == 25
        with pytest.raises(LimitExceeded, match="takes 104 bytes, 100 are allowed"):
            back(np.zeros(26, np.float32))
        with pytest.raises(LimitExceeded, match="takes 800 bytes, 100 are allowed"):
            read_tensor(dat(bytes(100), (800,), 1, 5), "w")
    with spending(LoadLimits(max_fold_bytes=1000)), pytest.raises(LimitExceeded, match="texts take 6800 bytes, 1000"):
        read_tensor(dat(bytes(400), (100,), VARIES, 0x1000, TR), "w")


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=64), st.lists(st.tuples(st.integers(0, 127), st.integers(0, 255)), max_size=6))
def test_any_header(data, changes):
    """Whatever it says, a tensor comes of it, or an error of the family."""
    content = dat(data, (1, 32), 32).copy()
    for place, byte in changes:
        content[place] = byte
    with contextlib.suppress(ModelError):
        read_tensor(content, "w.dat")


UNWRITABLE = [
    (
        np.zeros((1,) * 9, np.float32),
        Unsupported,
        "a tensor of 9 axes cannot be in a file of NNEF, where 8",
    ),
    (np.broadcast_to(np.float32(0), (0, 1 << 33)), Unsupported, "takes 4 GiB"),
    (np.array([1, "a"], object), Unsupported, "an element of type int cannot be in a file of NNEF"),
    (np.array(["\ud800"], object), Unsupported, "half a character"),
    (np.array([b"a"], object), Unsupported, "an element of type bytes"),
]


@pytest.mark.parametrize(("array", "kind", "match"), UNWRITABLE, ids=str)
def test_what_cannot_be_written(array, kind, match):
    with pytest.raises(kind, match=match) as caught:
        tensor_file(array)
    assert caught.value.hint


# --- blocks -----------------------------------------------------------------------------------------------------------


def q4_0_by_hand(row):
    """One block, element by element, as ggml describes it."""
    largest = max(row, key=abs)
    scale = np.float32(largest) / np.float32(-8)
    codes = [min(15, int(np.float32(value) / scale + np.float32(8.5))) if scale else 8 for value in row]
    return np.float16(scale).tobytes() + bytes(codes[j] | codes[j + 16] << 4 for j in range(16))


@pytest.mark.parametrize("shape", [(1, 32), (3, 64), (5, 96), (0, 32), (2, 0)])
def test_q4_0_block_by_block(shape):
    array = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    blocks = encode_q4_0(array)
    assert bytes(blocks.content) == b"".join(q4_0_by_hand(row.tolist()) for row in array.reshape(-1, 32))
    found = back(blocks)
    assert found == blocks
    assert found.content.tobytes() == blocks.content.tobytes()
    decoded = found.to_f32()
    assert decoded.shape == shape
    scale = np.abs(array.reshape(-1, 32)).max(axis=1, initial=0)[:, None] / 8
    assert (np.abs(decoded - array).reshape(-1, 32) <= scale * 1.01).all()


def test_q4_0_of_zeros_and_ends():
    assert (encode_q4_0(np.zeros((1, 32), np.float32)).to_f32() == 0).all()
    assert (encode_q4_0(np.full((1, 32), 8, np.float32)).to_f32() == 8).all()
    ramp = np.arange(-8, 8, dtype=np.float32)
    np.testing.assert_array_equal(encode_q4_0(np.concatenate([ramp, ramp])[None]).to_f32()[0, :16], ramp)
    for shape in ((32,), (1, 31), (1, 1, 32)):
        with pytest.raises(InputError, match="no rows of whole blocks of 32 elements"):
            encode_q4_0(np.zeros(shape, np.float32))
    for value in (NAN, INF, 1e30):
        with pytest.raises(InputError, match="no finite scale"):
            encode_q4_0(np.full((1, 32), value, np.float32))


def test_blocks_of_the_older_order():
    """Neighbours share a byte there, halves of a block do in ggml's order."""
    codes = np.arange(32) % 16
    scale = np.float16(0.5).tobytes()
    old = scale + bytes(codes[2 * j] | codes[2 * j + 1] << 4 for j in range(16))
    new = scale + bytes(codes[j] | codes[j + 16] << 4 for j in range(16))
    found = [read_tensor(dat(data, (1, 32), VARIES, code, TR), "w") for data, code in ((old, 0x2040), (new, 0x3040))]
    for blocks in found:
        assert blocks.format is Q4_0
        assert blocks.content.tobytes() == new
        np.testing.assert_array_equal(blocks.to_f32()[0], (codes - 8) * np.float32(0.5))


@pytest.mark.parametrize("code", [0x3080, 0x3081])
def test_q8_1(code):
    codes = np.arange(-16, 16, dtype=np.int8) * 8
    data = np.float16(0.25).tobytes() + np.float16(NAN).tobytes() + codes.tobytes()
    blocks = read_tensor(dat(data * 6, (2, 3, 32), VARIES, code, TR), "w")
    assert (blocks.format, blocks.shape) == (Q8_1, (2, 3, 32))
    np.testing.assert_array_equal(blocks.to_f32(), np.tile(codes * np.float32(0.25), 6).reshape(2, 3, 32))
    assert not blocks.content.flags.writeable
