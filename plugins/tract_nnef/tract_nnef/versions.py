"""What archives say of themselves."""

from __future__ import annotations

from typing import Final

PROPERTIES: Final = "tract_core_properties"
"""The fragment that holds the properties of a model."""

FORMAT: Final = "beta1"
"""The version of the format, which the established engine gives to the operators that it adds to the standard."""

OF_THE_FILE: Final = frozenset({"tract_nnef_ser_version", "tract_nnef_format_version"})
"""Properties that say who wrote the archive, in which version of the format: of the file, and not of the model."""
