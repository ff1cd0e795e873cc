"""Archives in every container: what is written is read, in place, and the same files give the same bytes."""

from __future__ import annotations

from mmap import mmap

import numpy as np
import pytest
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

from tract_core.errors import CorruptModel, ModelError

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
