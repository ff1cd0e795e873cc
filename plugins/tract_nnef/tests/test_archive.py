"""Archives in every container: what is written is read, in place, and the same files give the same bytes."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import tarfile
import zlib
from mmap import mmap
from pathlib import Path

import numpy as np
import pytest
from tars import BLOCK
from tract_nnef.archive import (
    open_archive,
    read_tensor,
    tar_gz_bytes,
    tar_pieces,
    tensor_file,
    write_folder,
    write_tar,
    write_tar_gz,
)

from tract_core.errors import CorruptModel, InputError, ModelError

WEIGHTS = np.random.default_rng(0).standard_normal((300, 100)).astype(np.float32)
LONG = "layers/" + "long" * 40 + ".dat"

FILES = {
    "graph.nnef": b"version 1.0;\n",
    "graph.quant": b"",
    "block/w.dat": tensor_file(WEIGHTS),
    "a:b.dat": tensor_file(WEIGHTS[:2]),
    LONG: tensor_file(WEIGHTS[:1]),
    "é.json": '{"é": 1}'.encode(),
    "body/graph.nnef": b"version 1.0; # in a folder",
    "body/w.dat": tensor_file(WEIGHTS[:3]),
    "loop.nnef.tar": list(tar_pieces({"graph.nnef": b"version 1.0; # in a tar", "w.dat": tensor_file(WEIGHTS)})),
    "branch.nnef.tgz": tar_gz_bytes({"graph.nnef": b"version 1.0; # compressed"}),
}

WRITERS = {"folder": write_folder, "tar": write_tar, "tgz": write_tar_gz}


def bytes_of(pieces):
    return pieces if isinstance(pieces, bytes) else b"".join(map(bytes, pieces))


@pytest.fixture(params=["folder", "tar", "tgz", "bytes of a tar", "bytes of a tgz"])
def archive(request, tmp_path):
    kind = request.param.split()[-1]
    path = tmp_path / "model.onnx"  # the name does not count
    WRITERS[kind](path, FILES)
    return open_archive(path.read_bytes() if request.param.startswith("bytes") else path)


def test_what_is_written_is_read(archive):
    assert sorted(archive.names()) == sorted(FILES)
    for name, pieces in FILES.items():
        content = archive.content(name)
        assert name in archive
        assert content.dtype == np.uint8
        assert content.ndim == 1
        assert content.tobytes() == bytes_of(pieces)
        assert not content.flags.writeable


def test_names_as_models_write_them(archive):
    for name in ("/block/w.dat", "//block/w.dat", "./block/w.dat", "block//w.dat", "block/./w.dat"):
        assert name in archive
        np.testing.assert_array_equal(read_tensor(archive.content(name), name), WEIGHTS)
    for name in ("w.dat", "block", "block/W.dat", "", "/", ".", "graph", "block/w.dat/x", "block\0w.dat"[:5] + "x"):
        with pytest.raises(ModelError):
            archive.content(name)
    assert "w.dat" not in archive


def test_a_missing_file_is_named_with_what_it_may_have_been(tmp_path):
    write_tar(tmp_path / "model", FILES)
    with pytest.raises(CorruptModel, match=r"there is no file 'blocks/w.dat' in the archive\n  hint: .*'block/w.dat'"):
        open_archive(tmp_path / "model").content("blocks/w.dat")


def test_submodels(archive):
    def comment(label):
        return archive.submodel(label).content("graph.nnef").tobytes().partition(b"# ")[2]

    assert [comment(label) for label in ("body", "loop", "branch")] == [b"in a folder", b"in a tar", b"compressed"]
    assert comment("loop.nnef") == b"in a tar"
    np.testing.assert_array_equal(read_tensor(archive.submodel("loop").content("w.dat"), "w"), WEIGHTS)
    assert archive.submodel("body").names() == ("graph.nnef", "w.dat")
    assert archive.submodel("block") is None
    assert archive.submodel("nothing") is None


def owner(array):
    """Whose memory an array is a view of."""
    while isinstance(array, np.ndarray) and array.base is not None:
        array = array.base
    return array.obj if isinstance(array, memoryview) else array


@pytest.mark.parametrize("kind", ["folder", "tar"])
def test_weights_are_mapped_not_read(tmp_path, kind):
    """They begin where the runtimes read them in place, in submodels too."""
    WRITERS[kind](tmp_path / "model", FILES)
    archive = open_archive(tmp_path / "model")
    for found in (archive, archive.submodel("loop")):
        weights = read_tensor(found.content("w.dat" if found is not archive else "block/w.dat"), "w")
        assert isinstance(owner(weights), mmap)
        assert weights.ctypes.data % 64 == 0


def test_inflated_weights_are_not_copied_again(tmp_path):
    write_tar_gz(tmp_path / "model", FILES)
    content = open_archive(tmp_path / "model").content("block/w.dat")
    weights = read_tensor(content, "w")
    assert np.shares_memory(weights, content)
    assert weights.ctypes.data % 64 == 0


def test_gzip_of_any_level_is_read(tmp_path):
    """As others write it: one stream, in which everything is compressed."""
    write_tar(tmp_path / "model.tar", FILES)
    wanted = open_archive(tmp_path / "model.tar")
    for level in (0, 1, 6, 9):
        found = open_archive(gzip.compress((tmp_path / "model.tar").read_bytes(), level))
        assert found.names() == wanted.names()
        assert all(found.content(name).tobytes() == wanted.content(name).tobytes() for name in found.names())


# --- writing ----------------------------------------------------------------------------------------------------------


def test_what_is_compressed_is_one_file_of_gzip_that_everybody_reads(tmp_path):
    files = {**FILES, "large.dat": tensor_file(np.arange(700_000).astype(np.int32)), "empty.dat": b""}
    write_tar(tmp_path / "model.tar", files)
    wanted = (tmp_path / "model.tar").read_bytes()
    for level in (None, 1, 9):
        write_tar_gz(tmp_path / "model.tgz", files, level)
        found = (tmp_path / "model.tgz").read_bytes()
        stream = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)  # of one member, as the established engine reads it
        assert stream.decompress(found) == wanted
        assert stream.eof
        assert not stream.unused_data


def test_weights_are_stored_as_they_are_and_the_rest_is_compressed(tmp_path):
    """Those that deflate gains little on are read as fast as memory is; unless somebody says how hard it is to try."""
    random = np.random.default_rng(0)
    noise = tensor_file(random.standard_normal(1 << 20).astype(np.float32))
    few = tensor_file(random.integers(0, 16, 1 << 20).astype(np.uint8))
    text = b"x = add(y, z);\n" * (1 << 16)

    def size(name, content, level=None):
        write_tar_gz(tmp_path / "model", {"graph.nnef": b"", name: content}, level)
        return (tmp_path / "model").stat().st_size

    assert 1 <= size("w.dat", noise) / (4 << 20) < 1.001
    assert 0.9 < size("w.dat", noise, 6) / (4 << 20) < 0.95
    assert size("w.dat", few) / (1 << 20) < 0.7
    assert size("t.txt", text) < 20_000


def test_headers_byte_by_byte(tmp_path):
    """Nothing of who writes, when and where is in them."""
    write_tar(tmp_path / "model", {"graph.nnef": b"version 1.0;\n"})
    content = (tmp_path / "model").read_bytes()
    header = b"graph.nnef".ljust(100, b"\0") + b"0000644\0" + b"0000000\0" * 2 + b"00000000015\0" + b"02263523000\0"
    header += b"%06o\0 " + b"0" + bytes(100) + b"ustar  \0" + bytes(64)
    header = header.ljust(BLOCK + 1, b"\0")
    checksum = sum(header.replace(b"%06o\0 ", b" " * 8)[:BLOCK])
    assert content == (header % checksum)[:BLOCK] + b"version 1.0;\n".ljust(BLOCK, b"\0") + bytes(2 * BLOCK)
    write_tar_gz(tmp_path / "model", {"graph.nnef": b"version 1.0;\n"})
    assert (tmp_path / "model").read_bytes()[:10] == b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
    assert gzip.decompress((tmp_path / "model").read_bytes()) == content


WRITE = """
import os, sys, time
os.umask(int(sys.argv[2], 8))
time.time = lambda: float(sys.argv[3])
sys.path.insert(0, sys.argv[4])
from test_archive import FILES, WRITERS
os.mkdir(sys.argv[1])
for kind, write in WRITERS.items():
    write(f"{sys.argv[1]}/{kind}", FILES)
"""


def test_the_same_files_give_the_same_bytes(tmp_path):
    """Under another umask, home, user, time zone, language and clock, and in another process."""
    here = str(Path(__file__).parent)
    runs = (
        ("one", "022", "1e9", {}),
        ("other", "077", "2e9", {"HOME": "/", "USER": "eve", "TZ": "Asia/Tokyo", "LC_ALL": "C"}),
    )
    for name, umask, clock, environment in runs:
        arguments = [sys.executable, "-c", WRITE, str(tmp_path / name), umask, clock, here]
        subprocess.run(arguments, check=True, env={**os.environ, "PYTHONHASHSEED": "random", **environment})
    for path in sorted((tmp_path / "one").rglob("*")):
        other = tmp_path / "other" / path.relative_to(tmp_path / "one")
        assert path.is_dir() == other.is_dir()
        assert path.is_dir() or path.read_bytes() == other.read_bytes()


def test_other_tools_read_what_is_written(tmp_path):
    for kind in ("tar", "tgz"):
        WRITERS[kind](tmp_path / kind, FILES)
        with tarfile.open(tmp_path / kind) as tar:
            assert tar.getnames() == list(FILES)
            for member in tar.getmembers():
                assert tar.extractfile(member).read() == bytes_of(FILES[member.name])
                assert (member.mtime, member.mode, member.uid, member.gid) == (315532800, 0o644, 0, 0)
                assert (member.uname, member.gname) == ("", "")


def test_files_of_eight_gibibytes_and_more():
    """Their size does not fit in octal digits. Nothing of that size is made: the pieces are one array, many times."""
    piece = np.broadcast_to(np.uint8(0), 1 << 33)
    pieces = tar_pieces({"w.dat": [piece], "x": b"x"})
    header = next(pieces)
    assert tarfile.TarInfo.frombuf(header, "utf-8", "strict").size == 1 << 33
    assert next(pieces) is piece


def test_weights_are_not_copied_when_they_are_written():
    weights = np.zeros(1 << 20, np.float32)
    inner = list(tar_pieces({"w.dat": tensor_file(weights)}))
    pieces = list(tar_pieces({"w.dat": tensor_file(weights), "x.nnef.tar": inner}))
    assert sum(isinstance(piece, np.ndarray) and np.shares_memory(piece, weights) for piece in pieces) == 2


NAMES = ["", "/", ".", "..", "/w", "../w", "a/../w", "./w", "a//b", "a/", ".w", "a/.w", "a\0b", "x" * 2000]


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("name", NAMES)
def test_names_that_would_not_be_found_again(kind, name, tmp_path):
    with pytest.raises(InputError, match="a file of an archive cannot be called"):
        WRITERS[kind](tmp_path / "model", {"graph.nnef": b"", name: b""})
    assert not list(tmp_path.iterdir())


class Stops:
    """Pieces that end in the middle."""

    def __len__(self):
        return 1

    def __iter__(self):
        yield b"x"
        raise KeyboardInterrupt


@pytest.mark.parametrize("kind", WRITERS)
def test_nothing_is_left_of_what_was_not_finished(kind, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        WRITERS[kind](tmp_path / "model", {"graph.nnef": b"", "a/w.dat": Stops()})
    assert not list(tmp_path.iterdir())
    if kind != "folder":
        WRITERS[kind](tmp_path / "model", FILES)
        before = (tmp_path / "model").read_bytes()
        with pytest.raises(KeyboardInterrupt):
            WRITERS[kind](tmp_path / "model", {"graph.nnef": b"", "a/w.dat": Stops()})
        assert (tmp_path / "model").read_bytes() == before


def test_a_folder_is_never_written_over(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "dangling").symlink_to("nothing")
    for name in ("file", "empty", "dangling"):
        with pytest.raises(InputError, match="it is there already, and a folder is never written over"):
            write_folder(tmp_path / name, FILES)
    with pytest.raises(InputError, match="it cannot be written: No such file or directory"):
        write_folder(tmp_path / "no" / "folder", FILES)
    assert {path.name for path in tmp_path.iterdir()} == {"file", "empty", "dangling"}


def test_a_tar_takes_the_place_of_files_only(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="it is a folder, which is not written over"):
        write_tar(tmp_path / "folder", FILES)


def test_a_folder_is_listed_without_what_is_hidden(tmp_path):
    write_folder(tmp_path / "model", {"graph.nnef": b"", "a/w.dat": b""})
    (tmp_path / "model" / ".git").mkdir()
    (tmp_path / "model" / ".git" / "config").touch()
    (tmp_path / "model" / ".DS_Store").touch()
    archive = open_archive(tmp_path / "model")
    assert archive.names() == ("a/w.dat", "graph.nnef")
    for name in (".DS_Store", ".git/config"):
        assert name not in archive
        with pytest.raises(CorruptModel):
            archive.content(name)
