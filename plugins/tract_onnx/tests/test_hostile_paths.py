"""External data stays inside the model's folder, whatever the path, the link or the race."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto
from onnx_hostile import model_of, node, refused, taken
from tract_onnx.frontend import OnnxLoader

from tract_core.errors import CorruptModel, LimitExceeded, ModelError, UnsafePath
from tract_core.frontend.external import ExternalFiles
from tract_core.limits import LoadLimits
from tract_core.model.const import Const

pytestmark = pytest.mark.hostile

WEIGHTS = np.arange(12, dtype=np.float32)
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="files of that kind are a matter of POSIX systems")


def model_with(entries, dims=(12,), kind=TensorProto.FLOAT):
    """``entries``: keys and values, in order."""
    weights = TensorProto(name="w", data_type=kind, dims=dims, data_location=TensorProto.EXTERNAL)
    for key, value in entries:
        weights.external_data.add(key=key, value=str(value))
    return model_of([node("Identity", "w")], [], constants=[weights])


def file_with(folder, location, *more, **options):
    path = folder / "model.onnx"
    path.write_bytes(model_with([("location", location), *more], **options).SerializeToString())
    return path


@pytest.fixture
def folder(tmp_path):
    inside = tmp_path / "inside"
    (inside / "below").mkdir(parents=True)
    (inside / "w").write_bytes(WEIGHTS.tobytes())
    (inside / "below" / "w").write_bytes(WEIGHTS.tobytes())
    (tmp_path / "secret").write_bytes(bytes(48))
    return inside


def weights_of(path):
    (found,) = (one.op.value.array for one in taken(path).live_nodes() if isinstance(one.op, Const))
    return found


@pytest.mark.parametrize("location", ["w", "./w", "below/w", "below/./w", ".//w", "below//w"])
def test_paths_inside(folder, location):
    np.testing.assert_array_equal(weights_of(file_with(folder, location)), WEIGHTS)


OUTSIDE = [
    "../secret",
    "below/../../secret",
    "./../secret",
    "below/../w",
    "..",
    "../",
    "below/..",
    "..\\secret",
    "below\\..\\..\\secret",
    "/etc/passwd",
    "//etc/passwd",
    "/dev/zero",
    "/proc/self/environ",
    "\\etc\\passwd",
    "\\\\server\\share\\w",
    "//server/share/w",
    "\\\\?\\C:\\w",
    "\\\\.\\pipe\\w",
    "C:\\w",
    "C:w",
    "C:/w",
    "file:///etc/passwd",
    "file://w",
    "http://example.org/w",
    "w:stream",
    "w\x00",
    "\x00",
    "w\n",
    "w\x7f",
    "w.",
    "w ",
    "below./w",
    "below /w",
    "...",
    ". ./w",
    "NUL",
    "nul.bin",
    "below/CON",
    "aux.txt",
    "COM1",
    "lpt9.w",
    "",
    ".",
    "./",
    "x" * 2000,
    "a/" * 600 + "w",
]


@pytest.mark.parametrize("location", OUTSIDE)
def test_paths_that_lead_outside(folder, location):
    """CVE-2022-25882, CVE-2024-27318: parent folders in any disguise, and everything else that is no plain path."""
    error = refused(file_with(folder, location), UnsafePath)
    assert "tensor 'w'" in error.where
    assert "model.onnx" in error.where
    assert len(error.problem) < 400


@pytest.mark.parametrize(
    "location", ["~/w", "$HOME/w", "%TEMP%/w", "*/_ORT_MEM_ADDR_/*", "w*", "$(id)", "`id`", "é", "w\u202e"]
)
def test_paths_are_taken_literally(folder, location):
    """No shell, no home folders, no marker for memory (which another runtime once took from files)."""
    refused(file_with(folder, location), ModelError)


def test_folders_and_missing_files(folder):
    refused(file_with(folder, "below"), ModelError)
    refused(file_with(folder, "missing"), ModelError, "'missing' cannot be opened")
    refused(file_with(folder, "w/w"), ModelError, "cannot be opened")


@POSIX
@pytest.mark.parametrize(
    "location", ["link", "out/secret", "chain", "circle", "dangling", "below/up/secret", "absolute"]
)
def test_links_that_lead_outside(folder, tmp_path, location):
    """CVE-2026-27489: a link to a file, a link to a folder on the way, a link to a link, and links that go nowhere."""
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "out").symlink_to(tmp_path)
    (folder / "chain").symlink_to("link")
    (folder / "circle").symlink_to("circle")
    (folder / "dangling").symlink_to(tmp_path / "nothing")
    (folder / "below" / "up").symlink_to("../..")
    (folder / "absolute").symlink_to("/etc/passwd")
    refused(file_with(folder, location), ModelError)


@POSIX
def test_links_inside(folder):
    (folder / "link").symlink_to("below/w")
    (folder / "linked").symlink_to("below")
    for location in ("link", "linked/w"):
        np.testing.assert_array_equal(weights_of(file_with(folder, location)), WEIGHTS)


@POSIX
def test_second_names_of_a_file(folder, tmp_path):
    """CVE-2026-34446: a hard link looks like any file, and may be another name of one outside."""
    os.link(tmp_path / "secret", folder / "hard")
    refused(file_with(folder, "hard"), UnsafePath, "has 2 names")
    os.link(folder / "w", folder / "twin")
    refused(file_with(folder, "w"), UnsafePath, "has 2 names")


@POSIX
@pytest.mark.parametrize("location", ["pipe", "below/pipe", "socket"])
def test_files_that_are_no_plain_files(folder, location):
    import socket

    os.mkfifo(folder / "pipe")
    os.mkfifo(folder / "below" / "pipe")
    here = Path.cwd()
    os.chdir(folder)  # the path of a socket must be short
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind("socket")
            refused(folder_file(location), ModelError)
    finally:
        os.chdir(here)


def folder_file(location):
    return file_with(Path.cwd(), location)


@POSIX
@pytest.mark.parametrize("swap", ["file", "folder"])
def test_files_exchanged_between_check_and_use(folder, tmp_path, monkeypatch, swap):
    """GHSA-q56x-g2fj-4rj6: between the check of a path and its use, part of it becomes a link to somewhere else."""
    (tmp_path / "w").write_bytes(bytes(48))
    resolve = ExternalFiles._resolve

    def resolve_then_swap(self, location):
        found = resolve(self, location)
        if swap == "file":
            (folder / "below" / "w").unlink()
            (folder / "below" / "w").symlink_to(tmp_path / "secret")
        else:
            (folder / "below").rename(folder / "away")
            (folder / "below").symlink_to(tmp_path)
        return found

    monkeypatch.setattr(ExternalFiles, "_resolve", resolve_then_swap)
    refused(file_with(folder, "below/w"), ModelError, "cannot be opened")


@POSIX
def test_what_is_opened_is_what_is_read(folder, monkeypatch):
    """A file that is exchanged once it is open does no harm: nothing is opened by name twice."""
    opened, real = [], os.open

    def note(path, *arguments, **options):
        opened.append(str(path))
        return real(path, *arguments, **options)

    path = file_with(folder, "below/w")
    monkeypatch.setattr("tract_core.safe_files.os.open", note)
    OnnxLoader().load(path)
    assert opened == [str(path), str(folder), "below", "w"]


@pytest.mark.parametrize(
    ("entries", "kind"),
    [
        ({"offset": -1}, CorruptModel),
        ({"length": -48}, CorruptModel),
        ({"offset": 48}, CorruptModel),
        ({"offset": 1}, CorruptModel),
        ({"offset": 1 << 62}, CorruptModel),
        ({"offset": (1 << 63) - 1, "length": (1 << 63) - 1}, CorruptModel),
        ({"offset": "1" + "0" * 30}, CorruptModel),
        ({"offset": "9" * 100_000}, CorruptModel),
        ({"offset": "0x10"}, CorruptModel),
        ({"offset": " 4"}, CorruptModel),
        ({"offset": "+4"}, CorruptModel),
        ({"offset": "1_0"}, CorruptModel),
        ({"offset": "4.0"}, CorruptModel),
        ({"offset": "\u0664"}, CorruptModel),
        ({"offset": ""}, CorruptModel),
        ({"offset": "nan"}, CorruptModel),
        ({"length": 0}, CorruptModel),
        ({"length": 47}, CorruptModel),
        ({"length": 49}, CorruptModel),
        ({"length": 1 << 62}, CorruptModel),
    ],
)
def test_offsets_and_lengths(folder, entries, kind):
    """CVE-2026-34445: a negative offset or length reads more than the tensor."""
    error = refused(file_with(folder, "w", *entries.items()), kind)
    assert "tensor 'w'" in error.where
    assert len(error.problem) < 400


def test_a_sparse_file_of_a_terabyte(folder):
    with (folder / "big").open("wb") as file:
        file.truncate(1 << 40)
    refused(file_with(folder, "big"), LimitExceeded, "the file has 1099511627776 bytes")
    limits = LoadLimits(max_bytes=1 << 41)
    refused(file_with(folder, "big"), ModelError, "cannot be mapped|1099511627776 bytes are there", limits=limits)


def test_a_hole_in_a_file_is_no_reason_to_unpack_it(folder):
    """Unpacked, four-bit numbers take twice what the file says, and a file with a hole says what it likes."""
    with (folder / "hole").open("wb") as file:
        file.truncate(256 << 20)
    path = file_with(folder, "hole", dims=[512 << 20], kind=TensorProto.INT4)
    refused(path, LimitExceeded, "when they are unfolded", limits=LoadLimits(max_fold_bytes=64 << 20))


@pytest.mark.parametrize("key", ["__class__", "__dict__", "__init__", "offset_", "info", "", "x" * 10_000, "Location"])
def test_unknown_keys(folder, key):
    """GHSA-538c-55jv-c5g9: keys of a file are no names of attributes."""
    np.testing.assert_array_equal(weights_of(file_with(folder, "w", (key, "evil"))), WEIGHTS)


def test_keys_that_come_twice(folder):
    for key, value in (("location", "below/w"), ("offset", 0), ("__class__", "x")):
        path = file_with(folder, "w", (key, value), (key, value))
        refused(path, CorruptModel, f"says '{key}' twice")


def test_checksums(folder, monkeypatch):
    """The format's SHA-1 digest of the whole file is looked at where it is given, once per file."""
    whole = hashlib.sha1(WEIGHTS.tobytes()).hexdigest()
    for digest in (whole, whole.upper()):
        np.testing.assert_array_equal(weights_of(file_with(folder, "w", ("checksum", digest))), WEIGHTS)
    for digest in ("", "0" * 40, whole[:-1], "x" * 10_000, "é" * 40):
        error = refused(file_with(folder, "w", ("checksum", digest)), CorruptModel, f"has the SHA-1 digest {whole}")
        assert "damaged" in error.hint
    (folder / "large").write_bytes(bytes(1 << 20))
    late = LoadLimits(deadline_s=0)
    refused(file_with(folder, "large", ("checksum", whole)), LimitExceeded, "longer than", limits=late)


def cached(tmp_path):
    """A model and its data as in the cache of Hugging Face: links in one folder to files of other names in another."""
    snapshot, blobs = tmp_path / "snapshots" / "1234" / "onnx", tmp_path / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    (blobs / "beef").write_bytes(WEIGHTS.tobytes())
    (tmp_path / "secret").write_bytes(WEIGHTS.tobytes())
    return snapshot, blobs


def link_to_model(snapshot, blobs, location):
    file_with(blobs, location).rename(blobs / "cafe")
    path = snapshot / "model.onnx"
    path.unlink(missing_ok=True)
    path.symlink_to("../../../blobs/cafe")
    return path


@POSIX
def test_models_that_are_links(tmp_path):
    """What lies beside the link, and what lies beside the file behind it, is in the model's own folder."""
    snapshot, blobs = cached(tmp_path)
    (snapshot / "model.onnx_data").symlink_to("../../../blobs/beef")
    (snapshot / "plain").write_bytes(WEIGHTS.tobytes())
    for location in ("model.onnx_data", "plain", "beef"):
        np.testing.assert_array_equal(weights_of(link_to_model(snapshot, blobs, location)), WEIGHTS)


@POSIX
def test_models_that_are_links_read_nothing_else(tmp_path):
    snapshot, blobs = cached(tmp_path)
    (snapshot / "out").symlink_to(tmp_path / "secret")
    (snapshot / "up").symlink_to("..")
    (blobs / "out2").symlink_to("../secret")
    for location in ("out", "up/../../secret", "out2", "../secret", "/etc/passwd", "nothing"):
        refused(link_to_model(snapshot, blobs, location), ModelError)
    (snapshot / "model.onnx").unlink()
    real = file_with(snapshot, "data")  # a model that is no link gains nothing from one beside it
    (snapshot / "data").symlink_to("../../../blobs/beef")
    refused(real, UnsafePath, "a link that leads out of the model's folder")


def test_models_without_a_folder():
    """A model that came as bytes reads no files, also not those in the current folder."""
    for location in ("w", "../w", "/etc/passwd", "*/_ORT_MEM_ADDR_/*"):
        content = model_with([("location", location)]).SerializeToString()
        assert "load it from its path" in refused(content, UnsafePath, "came without a folder").hint


def test_external_parts_of_other_tensors(folder):
    """Not only initialisers keep their data elsewhere: attributes and the parts of sparse tensors may too."""
    outside = TensorProto(name="a", data_type=1, dims=[12], data_location=TensorProto.EXTERNAL)
    outside.external_data.add(key="location", value="../secret")
    model = model_of([node("Constant", [], value=outside)], [])
    (folder / "m.onnx").write_bytes(model.SerializeToString())
    refused(folder / "m.onnx", UnsafePath, "parent folder")
    sparse = model_of([node("Identity", "w")], [])
    one = sparse.graph.sparse_initializer.add(dims=[100])
    one.values.CopyFrom(outside)
    one.values.name = "w"
    one.indices.CopyFrom(TensorProto(data_type=7, dims=[12], int64_data=range(12)))
    (folder / "m.onnx").write_bytes(sparse.SerializeToString())
    refused(folder / "m.onnx", UnsafePath, "parent folder")


def test_nothing_is_read_that_is_not_asked_for(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    path = file_with(folder, "secret")  # beside the current folder's, not the model's
    refused(path, ModelError, "cannot be opened")
