"""Files: what they say and hold, beside the package ``gguf``; and files that are wrong, which end in errors of ours."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from time import monotonic

import gguf
import numpy as np
import pytest
import tract_gguf
from gguf import GGMLQuantizationType as Type
from tract_gguf.loader import GgufLoader
from tract_gguf.reading.file import read_file
from written import packed, write_network

import tract_core as tract
from tract_core.data.blocks import Blocks
from tract_core.data.stored import mapped_around
from tract_core.errors import CorruptModel, LimitExceeded, ModelError, TractError, Unsupported, VersionError
from tract_core.limits import LoadLimits

RNG = np.random.default_rng(5)


def text(value: str | bytes) -> bytes:
    content = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(content)) + content


def pair(key: str | bytes, code: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", code) + value


def info(name: str, dims: list[int], code: int = 0, offset: int = 0) -> bytes:
    return text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, code, offset)


def file_of(
    pairs: Sequence[bytes] = (), infos: Sequence[bytes] = (), data: bytes = b"", version: int = 3, **counts: int
) -> bytes:
    """A file. ``counts``: of ``tensors`` and ``metadata``, where they are not those that are there."""
    said = counts.get("tensors", len(infos)), counts.get("metadata", len(pairs))
    head = struct.pack("<4sIQQ", b"GGUF", version, *said) + b"".join([*pairs, *infos])
    return head + bytes(-len(head) % 32) + data


# --- what is there ---


def test_metadata_of_every_type(tmp_path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "none")
    for kind, value in {"uint8": 200, "int8": -3, "uint16": 60000, "int16": -9, "uint32": 1 << 31}.items():
        getattr(writer, f"add_{kind}")(kind, value)
    for kind, value in {"int32": -7, "float32": 0.5, "uint64": 1 << 63, "int64": -1 << 62, "float64": 0.1}.items():
        getattr(writer, f"add_{kind}")(kind, value)
    writer.add_bool("bool", True)
    writer.add_string("text", "grüße")
    writer.add_array("texts", ["a", "", "ß"])
    writer.add_array("numbers", [1, 2, -3])
    writer.add_array("floats", [0.5, 1.5])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    found = tract_gguf.read(tmp_path / "m.gguf")
    wanted = {name: field.contents() for name, field in gguf.GGUFReader(tmp_path / "m.gguf").fields.items()}
    wanted = {name: value for name, value in wanted.items() if not name.startswith("GGUF.")}
    plain = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in found.metadata.items()}
    assert {name: list(value) if isinstance(value, tuple) else value for name, value in plain.items()} == wanted
    assert found.version == 3
    assert not found.tensors


def test_arrays_inside_arrays_and_booleans() -> None:
    inner = struct.pack("<IQ3h", 3, 3, 1, -2, 3)
    nested = struct.pack("<IQ", 9, 2) + inner + struct.pack("<IQ", 8, 1) + text("x")
    flags = struct.pack("<IQ3B", 7, 3, 1, 0, 1)
    found = read_file(file_of([pair("nested", 9, nested), pair("flags", 9, flags)])).metadata
    assert [list(one) for one in found["nested"]] == [[1, -2, 3], ["x"]]
    assert found["flags"].tolist() == [True, False, True]
    assert not found["flags"].flags.writeable


def test_bytes_that_are_no_text_are_kept() -> None:
    found = read_file(file_of([pair("token", 8, text(b"a\xff"))])).metadata["token"]
    assert found.encode("utf-8", "surrogateescape") == b"a\xff"


PLAIN = {"F32": np.float32, "F16": np.float16, "F64": np.float64, "I8": np.int8, "I16": np.int16, "I32": np.int32}
BLOCKS = [
    *(
        "Q4_0",
        "Q4_1",
        "Q5_0",
        "Q5_1",
        "Q8_0",
        "Q2_K",
        "Q3_K",
        "Q4_K",
        "Q5_K",
        "Q6_K",
        "IQ4_NL",
        "IQ4_XS",
        "MXFP4",
        "NVFP4",
    ),
    *("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "TQ1_0", "TQ2_0"),
]


def test_tensors_of_every_type_lie_in_the_file(tmp_path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "none")
    arrays = {kind: RNG.standard_normal((3, 5)).astype(dtype) for kind, dtype in PLAIN.items()}
    for name, array in arrays.items():
        writer.add_tensor(name, array)
    held = {name: packed(RNG.standard_normal((2, 256)).astype(np.float32), Type[name], RNG) for name in BLOCKS}
    for name, array in held.items():
        writer.add_tensor(name, array, raw_dtype=Type[name])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    tensors = tract_gguf.read(tmp_path / "m.gguf").tensors
    for name, array in arrays.items():
        stored = tensors[name].stored()
        np.testing.assert_array_equal(stored, array, strict=True)
        assert mapped_around(stored) is not None
        assert not stored.flags.writeable
    for name, array in held.items():
        stored = tensors[name].stored()
        assert isinstance(stored, Blocks)
        assert mapped_around(stored.content) is not None
        np.testing.assert_array_equal(stored.to_f32(), gguf.quants.dequantize(array, Type[name]))


def test_sizes_of_zero_and_one_and_another_alignment() -> None:
    alignment = pair("general.alignment", 4, struct.pack("<I", 64))
    content = file_of([alignment], [info("none", [0, 3], 0, 0), info("one", [], 0, 64)])
    content += bytes(-len(content) % 64) + bytes(64) + struct.pack("<f", 2.5)
    tensors = read_file(content).tensors
    assert tensors["none"].stored().shape == (3, 0)
    assert tensors["one"].stored() == np.float32(2.5)


def test_the_second_version_is_read() -> None:
    assert read_file(file_of(version=2)).version == 2


def test_types_without_a_meaning_are_refused_when_they_are_looked_at() -> None:
    tensor = read_file(file_of(infos=[info("w", [256], 15)], data=bytes(292))).tensors["w"]
    assert (tensor.kind, tensor.shape) == ("q8_k", (256,))
    with pytest.raises(Unsupported, match=r"tensor 'w': its elements are of type q8_k; known are .*q6_k"):
        tensor.stored()


# --- what is wrong ---

WRONG = {
    "nothing": (b"", CorruptModel, "begins with nothing"),
    "another": (b"PK\3\4", CorruptModel, "a file of GGUF with 47 47 55 46"),
    "old": (b"tjgg\1\0\0\0", VersionError, "from before GGUF"),
    "first": (file_of(version=1), VersionError, "version 1 of GGUF, versions 2 and 3 are read"),
    "newer": (file_of(version=9), VersionError, "version 9"),
    "big-endian": (struct.pack(">4sIQQ", b"GGUF", 3, 0, 0), Unsupported, "big-endian"),
    "tensors": (file_of(tensors=1 << 60), CorruptModel, "the number of tensors is 1152921504606846976"),
    "pairs": (file_of(metadata=(1 << 64) - 1), CorruptModel, "the number of pairs of metadata is"),
    "key": (file_of([pair("", 0, b"\1")]), CorruptModel, "has 0 characters, wanted 1 to"),
    "key-bytes": (file_of([pair(b"\xff\xfe", 0, b"\1")]), CorruptModel, "is no UTF-8"),
    "key-twice": (file_of([pair("a", 0, b"\1")] * 2), CorruptModel, "the key 'a' twice"),
    "type": (file_of([pair("a", 13, bytes(64))]), CorruptModel, "is of type 13; the types are 0 to 12"),
    "bool": (file_of([pair("a", 7, b"\2")]), CorruptModel, "is 2, wanted 0 or 1"),
    "text": (file_of([pair("a", 8, struct.pack("<Q", 1 << 62))]), CorruptModel, "cannot hold"),
    "array": (file_of([pair("a", 9, struct.pack("<IQ", 8, 1 << 40))]), CorruptModel, "cannot hold"),
    "array-type": (file_of([pair("a", 9, struct.pack("<IQ", 77, 1))]), CorruptModel, "an array of type 77"),
    "nested": (file_of([pair("a", 9, struct.pack("<IQ", 9, 1) * 5)]), LimitExceeded, "more than 4 arrays inside"),
    "alignment": (file_of([pair("general.alignment", 4, struct.pack("<I", 24))]), CorruptModel, "a power of two"),
    "alignment-0": (file_of([pair("general.alignment", 4, bytes(4))]), CorruptModel, "a power of two"),
    "rank": (file_of(infos=[info("w", [1] * 5)]), CorruptModel, "it has 5 axes"),
    "sizes": (file_of(infos=[info("w", [1 << 40, 1 << 40])]), LimitExceeded, "more elements than memory"),
    "size": (file_of(infos=[info("w", [1 << 40])]), CorruptModel, "the file has 0 for all tensors"),
    "kind": (file_of(infos=[info("w", [1], 99)]), Unsupported, "the number 99, which is not known"),
    "removed": (file_of(infos=[info("w", [32], 4)]), Unsupported, "the number 4, which is not known"),
    "blocks": (file_of(infos=[info("w", [33], 2)], data=bytes(64)), CorruptModel, "blocks of q4_0 have 32 elements"),
    "offset": (file_of(infos=[info("w", [4], 0, 1 << 63)], data=bytes(64)), CorruptModel, "it takes 16 bytes from 922"),
    "unaligned": (file_of(infos=[info("w", [4], 0, 4)], data=bytes(64)), CorruptModel, "a multiple of 32"),
    "short": (file_of(infos=[info("w", [16], 0, 32)], data=bytes(64)), CorruptModel, "the file has 64"),
    "twice": (file_of(infos=[info("w", [1])] * 2, data=bytes(64)), CorruptModel, "two tensors of the name 'w'"),
    "over": (
        *(file_of(infos=[info("a", [16]), info("b", [8], 0, 32)], data=bytes(64)), CorruptModel),
        "it begins at 32, where tensor 'a' is until 64",
    ),
}


@pytest.mark.hostile
@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said(name) -> None:
    content, kind, said = WRONG[name]
    with pytest.raises(kind, match=said):
        read_file(content)


def header_size(content: bytes) -> int:
    """Bytes in front of the elements of tensors."""
    tensors = read_file(content).tensors.values()
    return len(content) - sum(-(-one.content.nbytes // 32) * 32 for one in tensors)


@pytest.fixture(scope="module")
def network(tmp_path_factory) -> bytes:
    return write_network(tmp_path_factory.mktemp("files") / "m.gguf", kinds=[Type.Q4_0], tied=True).read_bytes()


@pytest.mark.hostile
def test_a_file_that_ends_anywhere_is_refused(network) -> None:
    for length in [*range(header_size(network)), *range(header_size(network), len(network) - 32, 977)]:
        with pytest.raises(ModelError):
            read_file(network[:length])


@pytest.mark.hostile
def test_bytes_that_changed_give_another_model_or_an_error_of_ours(network) -> None:
    random, size, loaded, begin = np.random.default_rng(11), header_size(network), 0, monotonic()
    for _ in range(400):
        changed = bytearray(network)
        for place in random.integers(0, size, random.integers(1, 4)):
            changed[place] = random.integers(0, 256)
        try:
            GgufLoader().load_bytes(bytes(changed))
            loaded += 1
        except TractError:
            continue
    assert loaded > 0
    assert monotonic() - begin < 30


@pytest.mark.hostile
def test_many_small_things_are_read_in_little_time_or_refused() -> None:
    texts = struct.pack("<IQ", 8, 200_000) + bytes(8 * 200_000)
    begin = monotonic()
    assert read_file(file_of([pair("a", 9, texts)])).metadata["a"] == ("",) * 200_000
    assert monotonic() - begin < 5
    with pytest.raises(LimitExceeded, match="more than 1000 bytes"):
        read_file(file_of([pair("a", 9, texts)]), LoadLimits(max_parsed_bytes=1000))
    with pytest.raises(LimitExceeded, match="longer than 0 seconds"):
        read_file(file_of([pair("a", 9, texts)]), LoadLimits(deadline_s=0))


def test_limits_hold_for_files_and_tensors(tmp_path, network) -> None:
    with pytest.raises(LimitExceeded, match="1000 are allowed"):
        read_file(network, LoadLimits(max_tensor_bytes=1000))
    (tmp_path / "m.gguf").write_bytes(network)
    with pytest.raises(LimitExceeded, match=r"m\.gguf: the file has \d+ bytes, 1000 are allowed"):
        tract_gguf.read(tmp_path / "m.gguf", limits=LoadLimits(max_bytes=1000))
    with pytest.raises(ModelError, match=r"m\.gguf"):
        tract_gguf.read(tmp_path / "none" / "m.gguf")


# --- what is no network ---


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ({"attention.head_count": 0}, r"llama\.attention\.head_count is 0, wanted an integer from 1 to"),
        ({"attention.head_count_kv": 3}, "4 heads of queries cannot share 3 heads of keys"),
        ({"attention.key_length": 1 << 20}, r"attention\.key_length is 1048576, wanted an integer from 1 to 65536"),
        ({"block_count": 3}, r"there is no tensor 'blk\.2\.attn_norm\.weight'"),
        ({"block_count": 4_000_000}, "the network has 4000000 layers, 2048 are allowed"),
        ({"block_count": 1}, r"nothing reads the weights blk\.1\."),
        ({"embedding_length": 128}, "has shape .* wanted"),
        ({"rope.dimension_count": 7}, "wanted an even number from 2 to 16"),
        ({"rope.freq_base": 0.0}, "wanted a number above 0"),
        ({"rope.scaling.type": "other"}, "positions are scaled by 'other'"),
        ({"rope.scaling.type": "linear", "rope.scaling.factor": 0.0}, "scaling.factor is 0.0"),
        ({"attention.layer_norm_rms_epsilon": 5}, None),
        ({"attention.head_count": [4, 2]}, "wanted one integer for all layers"),
    ],
    ids=lambda one: str(next(iter(one.items()))) if isinstance(one, dict) else "",
)
def test_what_makes_no_network_is_said(said, wanted, tmp_path) -> None:
    path = write_network(tmp_path / "m.gguf")
    content = write_network(tmp_path / "other.gguf", said=said) if set(said) & CHANGES_NO_SHAPE else None
    path = content or changed(path, tmp_path, said)
    if wanted is None:
        tract.load(path)
        return
    with pytest.raises(ModelError, match=wanted) as raised:
        tract.load(path)
    assert str(path) in str(raised.value)


CHANGES_NO_SHAPE = {
    *("rope.dimension_count", "rope.freq_base", "rope.scaling.type"),
    *("attention.layer_norm_rms_epsilon",),
}


def put(writer, key, value):
    """A value of the metadata, by its type."""
    {int: writer.add_uint32, float: writer.add_float32, list: writer.add_array}[type(value)](key, value)


def changed(path, folder, said):
    """The network of a file, which says something else of its sizes."""
    reader = gguf.GGUFReader(path)
    writer = gguf.GGUFWriter(folder / "changed.gguf", "llama")
    for key, field in reader.fields.items():
        short = key.removeprefix("llama.")
        if key.startswith("llama."):
            put(writer, key, said.get(short, field.contents()))
    for short in said:
        if f"llama.{short}" not in reader.fields:
            put(writer, f"llama.{short}", said[short])
    for one in reader.tensors:
        writer.add_tensor(one.name, np.array(one.data))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return folder / "changed.gguf"


def test_architectures_without_a_builder_are_named(tmp_path) -> None:
    content = file_of([pair("general.architecture", 8, text("rwkv7"))])
    (tmp_path / "m.gguf").write_bytes(content)
    with pytest.raises(Unsupported, match=r"the architecture 'rwkv7'; known are bert, exaone, gemma, .*llama"):
        tract.load(tmp_path / "m.gguf")
    with pytest.raises(CorruptModel, match=r"have nothing as general\.architecture, wanted a text"):
        tract.load_bytes(file_of())


def test_weights_that_are_no_floats_are_refused(tmp_path) -> None:
    path = write_network(tmp_path / "m.gguf", beside={"rope_freqs.weight": np.ones(8, np.int32)})
    with pytest.raises(Unsupported, match=r"'rope_freqs\.weight' has elements of int32, wanted floats"):
        tract.load(path)


def test_what_a_file_says_stays_reachable(tmp_path) -> None:
    file = tract_gguf.read(write_network(tmp_path / "m.gguf"))
    assert file.architecture == "llama"
    assert file.metadata["tokenizer.ggml.tokens"][:2] == ("t0", "t1")
    with pytest.raises(TypeError):
        file.metadata["a"] = 1
    with pytest.raises(CorruptModel, match=r"'llama' as general\.architecture, wanted an integer"):
        file.integer("general.architecture")
