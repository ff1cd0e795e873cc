"""The registries of operators, in the sense of the format, that this project has rows in."""

from __future__ import annotations

from typing import Final

STANDARD: Final = "tract_nnef"
"""The registry of the standard's own operators, which needs no extension line."""

CORE: Final = "tract_core"
"""The registry of the operators that the tract engines have beyond the standard."""

ONNX: Final = "tract_onnx"
"""The registry of operators that come from ONNX alone."""

RESOURCE: Final = "tract_resource"
"""The registry of values that lie beside the model."""

EXTRA: Final = "tract_extra"
"""The registry of what is used by few."""

TRANSFORMERS: Final = "tract_transformers"
"""The registry of the parts of transformers."""

PY: Final = "tract_py"
"""The registry of what only this project can say: see `tract_nnef.schema`."""
