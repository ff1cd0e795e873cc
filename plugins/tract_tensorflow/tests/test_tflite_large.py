"""Files above 2 GB, whose content lies behind the tables: read in place, and nothing of what is not there."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lite_files import archive, content_of, inputs_of, opened, outputs_of
from tract_tensorflow.tflite.flatbuffer import FlatTable

import tract_core as tract
from tract_core.errors import CorruptModel, LimitExceeded
from tract_core.limits import LoadLimits

GAP = (1 << 31) + (1 << 20)


def moved(content: bytes, table: FlatTable, field: str, value: int) -> bytes:
    """The same file with another number in a field of 8 bytes, which it has."""
    place = table._place(table.fields[field])  # pyright: ignore[reportPrivateUsage]: where a field lies
    assert place is not None
    return content[:place] + value.to_bytes(8, "little") + content[place + 8 :]


def large(path: Path) -> tuple[Any, Any]:
    """A file with holes, whose weights lie above 2 GB; what it is given, and what comes out."""
    content = content_of("behind_tables", "weights")
    buffers = [buffer for buffer in opened(content).buffers if buffer.integer("offset") > 1]
    tables = content
    for buffer in buffers:
        tables = moved(tables, buffer, "offset", buffer.integer("offset") + GAP)
    first = min(buffer.integer("offset") for buffer in buffers)
    with path.open("wb") as file:
        file.write(tables[:first])
        file.seek(first + GAP)
        file.write(content[first:])
    return inputs_of("behind_tables", "weights"), outputs_of("behind_tables", "weights")[0]


def test_a_file_above_2_gb_is_mapped(tmp_path: Path) -> None:
    path = tmp_path / "large.tflite"
    given, wanted = large(path)
    assert path.stat().st_size > GAP
    tracemalloc.start()
    limits = LoadLimits(max_bytes=1 << 33)
    model = tract.load(path, limits=limits)
    found = model.into_runnable("cpu").run(given)[0]
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 1 << 27
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=0, atol=2e-6 * np.abs(wanted).max())
    with pytest.raises(LimitExceeded, match="bytes, 1000000 are allowed"):
        tract.load(path, limits=LoadLimits(max_bytes=1_000_000))


@pytest.mark.parametrize("offset", [2, 1 << 20, (1 << 63) - 1, (1 << 64) - 1])
def test_content_that_is_not_there(offset: int) -> None:
    content = content_of("behind_tables", "weights")
    buffer = next(buffer for buffer in opened(content).buffers if buffer.integer("offset") > 1)
    changed = moved(content, buffer, "size" if offset == 2 else "offset", offset)
    with pytest.raises(CorruptModel, match=r"it has 2 bytes, wanted 96|bytes from byte \d+ on are not in the file"):
        tract.load_bytes(changed)


@pytest.mark.parametrize("field", ["offset", "size"])
def test_options_that_are_not_there(field: str) -> None:
    case = next(name for name in archive_names() if name.startswith("options"))
    content = content_of("behind_tables", case)
    operator = next(iter(opened(content).graphs[0].tables("operators")))
    with pytest.raises(CorruptModel, match=r"bytes from byte \d+ on are not in the file"):
        tract.load_bytes(moved(content, operator, f"large_custom_options_{field}", 1 << 40))


def archive_names() -> list[str]:
    """The cases of the family."""
    return list(archive("behind_tables"))
