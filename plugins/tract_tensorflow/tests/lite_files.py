"""Files of the cases, and what is changed in them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from tract_tensorflow.tflite.file import TfliteFile
from tract_tensorflow.tflite.flatbuffer import FlatTable
from tract_tensorflow.tflite.registry import TFLITE

from tract_core.limits import DEFAULT_LIMITS
from tract_core.plugins import default_registry

CASES = Path(__file__).parent / "tflite_cases"


@cache
def archive(family: str) -> dict[str, dict[str, Any]]:
    """What a family holds, case by case."""
    found: dict[str, dict[str, Any]] = {}
    with np.load(CASES / f"{family}.npz") as file:
        for name in file.files:
            case, _, part = name.partition("/")
            found.setdefault(case, {})[part] = file[name]
    return found


def content_of(family: str, case: str) -> bytes:
    """The file of a case."""
    return archive(family)[case]["model"].tobytes()


def inputs_of(family: str, case: str) -> list[Any]:
    """What it is given."""
    parts = archive(family)[case]
    return [parts[f"in{slot}"] for slot in range(sum(name.startswith("in") for name in parts))]


def outputs_of(family: str, case: str) -> list[Any]:
    """The first output of each run."""
    parts = archive(family)[case]
    return [parts[name] for name in ("out0", *(f"out0/{run}" for run in range(1, 9))) if name in parts]


def opened(content: bytes) -> TfliteFile:
    """The file as tables."""
    return TfliteFile(content, default_registry()[TFLITE], DEFAULT_LIMITS)


def operators(file: TfliteFile, graph: int = 0) -> list[FlatTable]:
    """The operators of a graph."""
    return list(file.graph(graph).tables("operators"))


def patched(content: bytes, table: FlatTable, field: str, value: int) -> bytes:
    """The same file with another number in a field of 4 bytes, which it has."""
    place = table._place(table.fields[field])  # pyright: ignore[reportPrivateUsage]: where a field lies
    assert place is not None
    return content[:place] + value.to_bytes(4, "little", signed=True) + content[place + 4 :]
