"""Archives that somebody made to do harm, or that are damaged: each is refused, in bounded memory and time."""

from __future__ import annotations

import gzip
import io
import os
import random
import sys
import tarfile

import numpy as np
import pytest
from tars import BLOCK, END, GRAPH, deflated, entry, header, pax
from tract_nnef.archive import open_archive, read_tensor, tar_gz_bytes, tar_pieces, tensor_file, write_folder, write_tar
from tract_nnef.archive.reading import MAX_MAPPED, SMALL

from tract_core.errors import CorruptModel, LimitExceeded, ModelError, UnsafePath, Unsupported
from tract_core.limits import LoadLimits

pytestmark = pytest.mark.hostile

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="files of that kind are a matter of POSIX systems")
WEIGHTS = tensor_file(np.arange(12, dtype=np.float32))


def check_message(error):
    assert isinstance(error, ModelError)
    assert error.hint
    assert len(str(error)) < 1000


def refused(content, kind=ModelError, match=None, *, limits=None):
    """The bytes are refused, as they are and gzip-compressed."""
    for given in (content, gzip.compress(content, 1)):
        with pytest.raises(kind, match=match) as caught:
            open_archive(given, *([limits] if limits else []))
        check_message(caught.value)


# --- what a file is ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "wanted a folder, a tar, or a gzip-compressed tar"),
        (b"\x1f", "wanted a folder, a tar, or a gzip-compressed tar"),
        (random.Random(0).randbytes(4096), "wanted a folder, a tar, or a gzip-compressed tar"),
        (b"PK\x03\x04" + bytes(600), "found a ZIP archive"),
        (bytes(4096), "found a file of zeros"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "found a Git LFS pointer"),
        (b"<!DOCTYPE html><html>", "found an HTML page"),
        (b"# made by hand\nversion 1.0;\n", "found the text of a graph\n  hint: give the path of the folder"),
    ],
)
def test_files_that_are_no_archives(content, found, tmp_path):
    with pytest.raises(CorruptModel, match=found):
        open_archive(content)
    (tmp_path / "model.nnef.tgz").write_bytes(content)
    with pytest.raises(CorruptModel, match="the file is empty" if not content else found) as caught:
        open_archive(tmp_path / "model.nnef.tgz")
    assert str(tmp_path) in caught.value.where
    check_message(caught.value)


def test_paths_that_lead_to_no_file(tmp_path):
    for path in (tmp_path / "nothing", tmp_path / "a\0b", tmp_path / ("x" * 500)):
        with pytest.raises(ModelError) as caught:
            open_archive(path)
        check_message(caught.value)


@POSIX
def test_a_pipe_and_a_device(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(ModelError, match="it is not a plain file"):
            open_archive(path)


# --- names ------------------------------------------------------------------------------------------------------------

OUTSIDE = ["../w.dat", "a/../../w.dat", "a/..", "..", "./../w.dat", "/w.dat", "//w.dat", "/etc/passwd", ".a/../../w"]


@pytest.mark.parametrize("name", OUTSIDE)
def test_names_that_lead_outside(name):
    refused(GRAPH + entry(name) + END, UnsafePath, "the archive names a file")
    refused(GRAPH + entry(name + "/", kind=b"5") + END, UnsafePath, "the archive names a file")
    refused(GRAPH + pax({"path": name}) + entry("w.dat") + END, UnsafePath, "the archive names a file")
    refused(GRAPH + entry("@LongLink", name.encode() + b"\0", b"L") + entry("w") + END, UnsafePath)


@pytest.mark.parametrize("name", [".hidden", "a/.git/config", ".a/b", "./.x", "..a/b", "...", "a/...", "._graph.nnef"])
def test_names_that_begin_with_a_dot_are_ignored(name):
    """As they come with files of a Mac, and of a repository."""
    archive = open_archive(GRAPH + entry(name) + END)
    assert archive.names() == ("graph.nnef",)
    assert name not in archive


def test_names_that_harm_those_who_extract_are_only_names():
    names = ["C:\\w", "C:w", "a\\..\\b", "NUL", "aux.dat", "a b", "$HOME", "~root", "\u202ew", "a\nb", "-rf", "w\x7f"]
    archive = open_archive(b"".join([GRAPH, *(entry(name, name.encode()) for name in names), END]))
    for name in names:
        assert archive.content(name).tobytes() == name.encode()


def test_names_that_are_too_long_or_missing():
    refused(GRAPH + pax({"path": "x" * 5000}) + entry("w") + END, LimitExceeded, "has 5000 characters, 1024 are allow")
    refused(GRAPH + pax({"path": "a/" * 5000}) + entry("w") + END, LimitExceeded)
    refused(GRAPH + entry("", b"x") + END, CorruptModel, "without a name")
    refused(GRAPH + entry("./", b"x") + END, CorruptModel)
    refused(GRAPH + entry(b"\xff\xfe", b"x") + END, CorruptModel, "which is not UTF-8")
    refused(GRAPH + pax({"path": "a\0b"}) + entry("w") + END, ModelError)


@pytest.mark.parametrize("second", ["w.dat", "./w.dat", ".//w.dat", "./././w.dat"])
def test_two_files_of_one_name(second):
    refused(GRAPH + entry("w.dat", b"1") + entry(second, b"2") + END, CorruptModel, "the archive has two files 'w.dat'")


# --- kinds of entries -------------------------------------------------------------------------------------------------

KINDS = {
    b"1": (UnsafePath, "a hard link"),
    b"2": (UnsafePath, "a link"),
    b"3": (UnsafePath, "a device"),
    b"4": (UnsafePath, "a device"),
    b"6": (UnsafePath, "a pipe"),
    b"S": (Unsupported, "a sparse file"),
    b"D": (Unsupported, "of kind b'D'"),
    b"M": (Unsupported, "of kind b'M'"),
    b"V": (Unsupported, "of kind b'V'"),
    b"K": (Unsupported, "of kind b'K'"),
    b"Z": (Unsupported, "of kind b'Z'"),
    b"\xff": (Unsupported, "of kind"),
}


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_entries_that_are_no_plain_files(kind):
    error, words = KINDS[kind]
    refused(GRAPH + entry("w.dat", kind=kind, link=b"/etc/passwd") + END, error, words)
    refused(GRAPH + entry("w.dat", kind=kind, link=b"graph.nnef") + entry("w.dat/x", b"x") + END, error, words)


def test_entries_of_the_oldest_kind():
    old = entry("w.dat", b"1", b"\0", magic=bytes(8)) + entry("folder/", b"", b"\0", magic=bytes(8))
    assert open_archive(GRAPH + old + entry("x", b"2", b"7") + END).names() == ("graph.nnef", "w.dat", "x")


def test_a_folder_with_content():
    refused(GRAPH + entry("a/", b"x" * 600, b"5") + END, CorruptModel, "has a folder 'a/' of 600 bytes, wanted 0")


# --- headers ----------------------------------------------------------------------------------------------------------

LIES = {
    "longer than the file": (header("w.dat", 5000) + bytes(BLOCK), CorruptModel, "says that 'w.dat' has 5000 bytes"),
    "8 GiB": (header("w.dat", (8 << 30) - 1) + bytes(BLOCK), ModelError, None),
    "2^62": (header("w.dat", b"\x80" + bytes(3) + (1 << 62).to_bytes(8, "big")), LimitExceeded, None),
    "2^88": (header("w.dat", b"\x80" + b"\xff" * 11), LimitExceeded, None),
    "negative": (header("w.dat", b"\xff" * 12), LimitExceeded, None),
    "words": (header("w.dat", b"many bytes\0\0"), CorruptModel, "has the size b'many bytes', wanted digits"),
    "decimal": (header("w.dat", b"00000000008\0"), CorruptModel, "wanted digits"),
    "a sign": (header("w.dat", b"-0000000001\0"), CorruptModel, "wanted digits"),
    "underscores": (header("w.dat", b"0000_000001\0"), CorruptModel, "wanted digits"),
    "pax, longer": (pax({"size": 5000}) + entry("w.dat", b"x"), CorruptModel, "says that 'w.dat' has 5000 bytes"),
    "pax, 10^18": (pax({"size": 10**18}) + entry("w.dat", b"x"), LimitExceeded, None),
    "pax, 10^30": (pax({"size": 10**30}) + entry("w.dat", b"x"), CorruptModel, "wanted digits"),
    "pax, negative": (pax({"size": -1}) + entry("w.dat", b"x"), CorruptModel, "wanted digits"),
    "pax, a million digits": (pax({"size": "9" * 50_000}) + entry("w.dat"), CorruptModel, "wanted digits"),
    "pax, no number": (pax({"size": "x"}) + entry("w.dat", b"x"), CorruptModel, "wanted digits"),
    "pax, huge": (header("p", 1 << 30, b"x") + bytes(BLOCK), LimitExceeded, "a header of 1073741824 bytes"),
    "pax, 2^62": (header("p", b"\x80" + bytes(3) + (1 << 62).to_bytes(8, "big"), b"x"), LimitExceeded, None),
    "pax, negative size": (header("p", b"\xff" * 12, b"x"), LimitExceeded, None),
    "GNU name, huge": (header("p", 1 << 30, b"L") + bytes(BLOCK), LimitExceeded, "a header of 1073741824 bytes"),
    "pax, cut off": (header("p", 5000, b"x") + bytes(BLOCK), CorruptModel, "is cut off"),
    "pax, no length": (pax(b"path=x\n") + entry("w"), CorruptModel, "wanted digits"),
    "pax, a short length": (pax(b"3 path=x\n") + entry("w"), CorruptModel, "an extended header"),
    "pax, a long length": (pax(b"99 path=x\n") + entry("w"), CorruptModel, "an extended header"),
    "pax, length 0": (pax(b"0 path=x\n") + entry("w"), CorruptModel, "an extended header"),
    "pax, no value": (pax(b"7 path\n") + entry("w"), CorruptModel, "an extended header"),
    "pax, no end": (pax(b"9 path=xx") + entry("w"), CorruptModel, "an extended header"),
    "pax, not UTF-8": (pax(b"9 path=\xff\n") + entry("w"), CorruptModel, "not UTF-8"),
    "pax, sparse": (pax({"GNU.sparse.major": 1}) + entry("w"), Unsupported, "sparse"),
    "pax, sparse size": (pax({"GNU.sparse.realsize": 1 << 40}) + entry("w"), Unsupported, "sparse"),
    "pax, for all": (pax({"path": "w"}, kind=b"g") + entry("w"), Unsupported, "name or size of all its files"),
    "pax, nothing follows": (pax({"path": "w"}), CorruptModel, "ends after a header"),
    "checksum": (header("w.dat", checksum=b"000000\0 "), CorruptModel, "a wrong checksum"),
    "checksum of words": (header("w.dat", checksum=b"checksum"), CorruptModel, "wanted digits"),
    "noise": (random.Random(0).randbytes(BLOCK), CorruptModel, None),
}


@pytest.mark.parametrize("name", LIES)
def test_headers_that_lie(name):
    content, kind, match = LIES[name]
    refused(GRAPH + content + END, kind, match)


def test_pax_headers_after_one_another():
    with pytest.raises(LimitExceeded, match="more than 65536 headers"):
        open_archive(GRAPH + pax({"comment": "x"}) * 70_000)


def test_headers_that_other_tools_write():
    """Comments, dates and owners of POSIX, names in two parts, and sums of signed bytes."""
    content = pax({"comment": "x"}, kind=b"g") + pax({"mtime": "1.5", "uname": "é", "path": "a/w.dat"})
    content += entry("short", b"1") + entry("w.dat", b"2", prefix=b"deep/er") + entry("é", b"3")
    archive = open_archive(GRAPH + content + END + bytes(20 * BLOCK))
    assert archive.names() == ("graph.nnef", "a/w.dat", "deep/er/w.dat", "é")
    block = header("é")
    signed = sum(byte - 256 * (byte > 127) for byte in block[:148] + b" " * 8 + block[156:])
    assert "é" in open_archive(block[:148] + b"%06o\0 " % signed + block[156:] + END)


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_tars_of_the_standard_library(form):
    names = ["graph.nnef", "a/" * 60 + "w.dat", "folder/" + "é" * 40]
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=form) as tar:
        for name in names:
            info = tarfile.TarInfo(f"./{name}")
            info.size, info.mtime = 3, 1.5
            tar.addfile(info, io.BytesIO(b"abc"))
    archive = open_archive(file.getvalue())
    assert list(archive.names()) == names
    assert all(archive.content(name).tobytes() == b"abc" for name in names)


# --- ends -------------------------------------------------------------------------------------------------------------

WHOLE = b"".join(map(bytes, tar_pieces({"graph.nnef": b"version 1.0;\n", "w.dat": WEIGHTS})))


@pytest.mark.parametrize("size", [*range(1, 12), 511, 512, 513, 1023, 1024, 1025, 1536, 1700, 2047, len(WHOLE) - 1024])
def test_tars_that_are_cut_off(size):
    with pytest.raises(CorruptModel):
        open_archive(WHOLE[:size])
    with pytest.raises(CorruptModel):
        open_archive(gzip.compress(WHOLE[:size]))


def test_the_end_of_a_tar():
    for end in (b"", bytes(BLOCK), bytes(9 * BLOCK)):
        assert "w.dat" in open_archive(WHOLE[:-BLOCK] + end)
    for rest in (b"x", bytes(5000) + b"x", WHOLE, gzip.compress(WHOLE), b"PK\x03\x04"):
        refused(WHOLE + rest, CorruptModel, "something follows after the end of the archive")
    refused(GRAPH + bytes(BLOCK) + entry("w.dat") + END, CorruptModel, "something follows")


def test_gzip_that_is_cut_off_or_damaged():
    packed = gzip.compress(WHOLE)
    for size in range(len(packed)):
        with pytest.raises(CorruptModel):
            open_archive(packed[:size])
    for place in range(10, len(packed)):
        damaged = bytearray(packed)
        damaged[place] ^= 0xFF
        with pytest.raises(ModelError):
            open_archive(bytes(damaged))


def test_what_follows_after_gzip():
    packed = gzip.compress(WHOLE)
    for rest in (b"x", bytes(100), b"x" * (1 << 21), packed, gzip.compress(b""), gzip.compress(WHOLE[:512])):
        with pytest.raises(CorruptModel, match=r"after the compressed archive come \d+ more bytes"):
            open_archive(packed + rest)
    half = len(WHOLE) // 2
    with pytest.raises(CorruptModel):
        open_archive(gzip.compress(WHOLE[:half]) + gzip.compress(WHOLE[half:]))


def test_gzip_in_gzip():
    with pytest.raises(CorruptModel, match="compressed twice"):
        open_archive(gzip.compress(gzip.compress(WHOLE)))
    with pytest.raises(CorruptModel, match="no NNEF archive"):
        open_archive(gzip.compress(b"x" * 5000))
    with pytest.raises(CorruptModel, match=r"no NNEF archive.* a ZIP archive"):
        open_archive(gzip.compress(b"PK\x03\x04" + bytes(600)))
    with pytest.raises(CorruptModel, match="no NNEF archive"):
        open_archive(gzip.compress(b""))


# --- bombs ------------------------------------------------------------------------------------------------------------


ZEROS = bytes(1 << 24), 640
"""10 GiB of them, which deflate to 10 MB."""

FEW = LoadLimits(max_fold_bytes=LoadLimits().max_fold_bytes // 4)


@pytest.mark.parametrize(
    "first",
    [
        b"",
        GRAPH,
        GRAPH + END,
        GRAPH + header("w.dat", b"\x80" + bytes(3) + (10 << 30).to_bytes(8, "big")),
        GRAPH + header("w.dat", (8 << 30) - 1),
        GRAPH + header("w.dat", 1 << 29),
    ],
    ids=["nothing", "a graph", "an end", "a file of 10 GiB", "a file of 8 GiB", "a file of 512 MiB"],
)
def test_ten_gigabytes_of_zeros_in_ten_megabytes(first):
    packed = deflated((first, 1), ZEROS)
    assert len(packed) < 64 << 20
    with pytest.raises(ModelError) as caught:
        open_archive(packed)
    check_message(caught.value)


def test_many_files_of_zeros():
    files = [[(header(f"{number}.dat", len(ZEROS[0])), 1), (ZEROS[0], 1)] for number in range(40)]
    packed = deflated((GRAPH, 1), *(piece for file in files for piece in file))
    with pytest.raises(LimitExceeded, match="it inflates to more than"):
        open_archive(packed, FEW)


def test_bombs_in_submodels():
    """Each would be allowed alone: what archives in one another become is counted together."""
    inner = tar_gz_bytes({"graph.nnef": b"", "w.dat": bytes(25 << 20)})
    archive = open_archive(b"".join(map(bytes, tar_pieces({f"{n}.nnef.tgz": inner for n in range(9)}))), FEW)
    with pytest.raises(LimitExceeded, match=r"the submodel '\d.nnef.tgz': it inflates to more than"):
        [archive.submodel(str(number)) for number in range(9)]


def descend(archive, count=40):
    for _ in range(count):
        archive = archive.submodel("x")


def test_archives_in_one_another():
    content = b"version 1.0;"
    packed = tar_gz_bytes({"graph.nnef": content})
    for _ in range(40):
        packed = tar_gz_bytes({"graph.nnef": content, "x.nnef.tgz": packed})
    with pytest.raises(LimitExceeded, match="more than 32 archives inside one another"):
        descend(open_archive(packed))


def test_folders_in_one_another(tmp_path):
    files = {"x/" * depth + "graph.nnef": b"" for depth in range(50)}
    write_folder(tmp_path / "folder", files)
    write_tar(tmp_path / "tar", files)
    for path in ("folder", "tar"):
        with pytest.raises(LimitExceeded, match="more than 32 archives inside one another"):
            descend(open_archive(tmp_path / path))


def test_many_members():
    with pytest.raises(CorruptModel, match="two files"):
        open_archive(entry("w") * 100_000)
    with pytest.raises(LimitExceeded, match="more than 65536 headers"):
        open_archive(entry(".w") * 100_000)
    with pytest.raises(LimitExceeded, match="more than 1000 nodes"):
        open_archive(entry(".w") * 2000 + END, LoadLimits(max_nodes=1000))


def test_limits():
    with pytest.raises(LimitExceeded, match="it takes longer than 0 seconds"):
        open_archive(gzip.compress(WHOLE), LoadLimits(deadline_s=0))
    with pytest.raises(LimitExceeded, match=r"the file has \d+ bytes, 1000 are allowed"):
        open_archive(WHOLE, LoadLimits(max_bytes=1000))
    with pytest.raises(LimitExceeded, match="more than the 1000 bytes"):
        open_archive(gzip.compress(WHOLE), LoadLimits(max_bytes=1000))


# --- folders ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    write_folder(tmp_path / "model", {"graph.nnef": b"version 1.0;", "a/w.dat": WEIGHTS, "w.dat": WEIGHTS})
    (tmp_path / "secret").write_bytes(b"".join(map(bytes, WEIGHTS)))
    return tmp_path / "model"


@POSIX
@pytest.mark.parametrize(
    ("name", "target"),
    [("link", "../secret"), ("link", "/etc/passwd"), ("link", "nothing"), ("link", "link"), ("a/link", "../../secret")],
)
def test_links_out_of_a_folder(folder, name, target):
    (folder / name).symlink_to(target)
    with pytest.raises(ModelError) as caught:
        open_archive(folder).content(name)
    check_message(caught.value)


@POSIX
def test_folders_that_are_links(folder, tmp_path):
    (folder / "up").symlink_to("..")
    (folder / "other").symlink_to(tmp_path / "elsewhere")
    write_folder(tmp_path / "elsewhere", {"graph.nnef": b"", "w.dat": WEIGHTS})
    archive = open_archive(folder)
    assert archive.names() == ("a/w.dat", "graph.nnef", "other", "up", "w.dat")
    for name in ("up/secret", "up/model/w.dat", "other/w.dat", "up/up/up/etc/passwd"):
        with pytest.raises(ModelError) as caught:
            (archive.content(name), archive.content("up"))
        check_message(caught.value)
    with pytest.raises(UnsafePath, match="leads out of the model's folder"):
        archive.submodel("other")


@POSIX
def test_links_inside_a_folder_are_followed(folder):
    (folder / "link").symlink_to("a/w.dat")
    (folder / "b").symlink_to("a")
    archive = open_archive(folder)
    assert archive.content("link").tobytes() == archive.content("b/w.dat").tobytes()


@POSIX
def test_a_folder_of_the_cache_of_hugging_face(tmp_path):
    """Every file is a link to one that is named by its digest, in a folder beside."""
    (tmp_path / "blobs").mkdir()
    (tmp_path / "snapshots" / "main").mkdir(parents=True)
    for number, (name, content) in enumerate({"graph.nnef": b"version 1.0;", "w.dat": bytes(1 << 20)}.items()):
        (tmp_path / "blobs" / str(number)).write_bytes(content)
        (tmp_path / "snapshots" / "main" / name).symlink_to(f"../../blobs/{number}")
    assert len(open_archive(tmp_path / "snapshots" / "main").content("w.dat")) == 1 << 20


@POSIX
def test_files_of_a_folder_that_are_no_files(folder):
    os.mkfifo(folder / "pipe.dat")
    (folder / "zero.dat").symlink_to("/dev/zero")
    for name in ("pipe.dat", "zero.dat"):
        with pytest.raises(UnsafePath) as caught:
            open_archive(folder).content(name)
        check_message(caught.value)
    for name in ("a", "w.dat/x", "nothing", "../secret", "a/../../secret", "x\0y", "x" * 300, "x/" * 600):
        with pytest.raises(ModelError) as caught:
            open_archive(folder).content(name)
        check_message(caught.value)


def test_a_folder_with_many_files(folder):
    """More than a process may hold open at once."""
    resource = pytest.importorskip("resource")
    for number in range(1200):
        (folder / f"{number}.dat").write_bytes(bytes(SMALL + 1))
    archive = open_archive(folder)
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (MAX_MAPPED + 200, limit[1]))
    try:
        contents = [archive.content(f"{number}.dat") for number in range(1200)]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)
    assert all(len(content) == SMALL + 1 for content in contents)


@POSIX
def test_files_with_holes(folder, tmp_path):
    """A terabyte that takes no room on the disk."""
    with (folder / "hole.dat").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(LimitExceeded):
        open_archive(folder).content("hole.dat")
    with (tmp_path / "hole.tar").open("wb") as file:
        file.write(GRAPH)
        file.truncate(1 << 38)
    with pytest.raises(ModelError):
        open_archive(tmp_path / "hole.tar")


# --- races ------------------------------------------------------------------------------------------------------------


@POSIX
def test_a_file_that_is_cut_while_it_is_open(tmp_path):
    """Its pages are gone: who touched them would be killed."""
    path = tmp_path / "model.nnef.tar"
    write_tar(path, {"graph.nnef": b"", "w.dat": bytes(1 << 20), "x.nnef.tar": list(tar_pieces({"graph.nnef": b""}))})
    archive = open_archive(path)
    submodel = archive.submodel("x")
    with path.open("r+b") as file:
        file.truncate(2048)
    for one, name in ((archive, "w.dat"), (archive, "graph.nnef"), (submodel, "graph.nnef")):
        with pytest.raises(CorruptModel, match="the file became shorter while it was open") as caught:
            one.content(name)
        check_message(caught.value)


@POSIX
def test_a_file_that_is_replaced_while_it_is_open(tmp_path):
    path = tmp_path / "model.nnef.tar"
    write_tar(path, {"graph.nnef": b"old", "w.dat": WEIGHTS})
    archive = open_archive(path)
    write_tar(path, {"graph.nnef": b"new"})
    assert archive.content("graph.nnef").tobytes() == b"old"
    np.testing.assert_array_equal(read_tensor(archive.content("w.dat"), "w"), np.arange(12, dtype=np.float32))
    path.unlink()
    assert archive.content("graph.nnef").tobytes() == b"old"
