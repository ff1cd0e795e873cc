"""Bad rows in a folder: files that are there whole or not at all, named by their content.

A task that is tried again, as it was killed after it had written, writes the same content, and finds its file there.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tract_core.errors import InputError
from tract_core.frozen import frozen
from tract_core.importing import imported
from tract_core.saving import whole_file
from tract_ray.placing import digest_of_content

if TYPE_CHECKING:
    from tract_core.plugins.keys import Array


@frozen
class DeadLetters:
    """``content``: of a file; ``digest``: of the rows in it; ``ending``: of its name."""

    content: bytes
    digest: str
    ending: str


def write_dead_letters(folder: str, letters: DeadLetters) -> Path:
    """The file of these rows in a folder, which is made where it is missing. Raises InputError where it cannot be."""
    path = Path(folder) / f"{letters.digest}{letters.ending}"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"it cannot be made: {error.strerror or error}", where=str(path.parent)) from error
    if not path.exists():
        with whole_file(path) as file:
            file.write(letters.content)
    return path


def letters_of_table(table: Any) -> DeadLetters:
    """A table of Arrow as Parquet."""
    parquet: Any = imported("pyarrow.parquet")
    arrow: Any = imported("pyarrow")
    rows, file = io.BytesIO(), io.BytesIO()
    with arrow.ipc.new_stream(rows, table.schema) as stream:
        stream.write_table(table.combine_chunks())
    parquet.write_table(table, file)
    return DeadLetters(file.getvalue(), digest_of_content(rows.getvalue()), ".parquet")


def lines_of_rows(columns: Mapping[str, Array]) -> DeadLetters:
    """Arrays of equally many rows as lines of JSON; what it has no word for, as NaN, is a text."""
    lines = [
        json.dumps(dict(zip(columns, map(_json, row), strict=True))) for row in zip(*columns.values(), strict=True)
    ]
    content = "".join(f"{line}\n" for line in lines).encode()
    return DeadLetters(content, digest_of_content(content), ".jsonl")


def _json(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return _json(cast("Array", value).tolist())
    if isinstance(value, (list, tuple)):
        return [_json(one) for one in cast("list[Any]", value)]
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value if isinstance(value, (bool, int, float, str)) or value is None else str(value)
