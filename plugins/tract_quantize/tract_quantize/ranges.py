"""The ranges of tensors by name, as calibration found them; in a file, as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

from tract_core.errors import InputError
from tract_core.frozen import frozen
from tract_core.saving import whole_file

FORMAT: Final = "tract-quantize ranges"
LARGEST: Final = 1 << 28
"""Bytes of a file that are read."""


@frozen
class Range:
    """The numbers that a tensor holds: from ``low`` to ``high``."""

    low: float
    high: float


@frozen
class Calibration:
    """What was found out: ``ranges``, by the names of tensors.

    ``method``: how they were made of what occurred; ``samples``: of how many turns.
    """

    ranges: Mapping[str, Range]
    method: str = "minmax"
    samples: int = 0

    def save(self, path: str | Path) -> None:
        """Write them as JSON, which `load` reads. Raises InputError where that cannot be written."""
        told = {name: [one.low, one.high] for name, one in self.ranges.items()}
        content = {"format": FORMAT, "method": self.method, "samples": self.samples, "ranges": told}
        with whole_file(path) as file:
            file.write(json.dumps(content, indent=1).encode() + b"\n")

    @staticmethod
    def load(path: str | Path) -> Calibration:
        """Those of a file. Raises InputError for what `save` did not write."""
        content = _content_of(Path(path))
        ranges: Any = content.get("ranges")
        if content.get("format") != FORMAT or not isinstance(ranges, dict):
            raise InputError("it holds no ranges of tract-quantize", where=str(path), hint=_HINT)
        found = cast("dict[str, Any]", ranges)
        samples: Any = content.get("samples", 0)
        return Calibration(
            {name: _range(one, f"{path}: {name!r}") for name, one in found.items()},
            str(content.get("method", "minmax")),
            samples if isinstance(samples, int) else 0,
        )


_HINT: Final = "'tract MODEL quantize --save-ranges FILE' writes such files"


def _content_of(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            content: Any = json.loads(file.read(LARGEST))
    except OSError as error:
        raise InputError(f"it cannot be read: {error.strerror or error}", where=str(path), hint=_HINT) from None
    except (ValueError, RecursionError):
        raise InputError("it is no JSON", where=str(path), hint=_HINT) from None
    return cast("dict[str, Any]", content) if isinstance(content, dict) else {}


def _range(given: Any, where: str) -> Range:
    ends = cast("list[Any]", given) if isinstance(given, list) else []
    numbers = [float(one) for one in ends if isinstance(one, int | float) and not isinstance(one, bool)]
    if len(numbers) != 2 or len(ends) != 2 or not all(map(math.isfinite, numbers)) or numbers[0] > numbers[1]:
        raise InputError("a range is two numbers, the smaller one first", where=where, hint=_HINT)
    return Range(*numbers)
