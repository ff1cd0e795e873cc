"""What the exporter to archives refuses besides what every model may be refused for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tract_core.errors import ModelError, TractError

if TYPE_CHECKING:
    import numpy as np

    from tract_torch.report import CheckReport


class CheckError(ModelError):
    """What was exported gives something else than the module.

    ``report``: what was compared until then, if anything. ``inputs``, ``outputs``: where it differs, the module's, by
    name.
    """

    advice = "check_io_tolerance loosens the comparison; 'tract MODEL compare' looks at single nodes"
    report: CheckReport | None = None
    inputs: Mapping[str, np.ndarray[Any, Any]] | None = None
    outputs: Mapping[str, np.ndarray[Any, Any]] | None = None


class CommandError(TractError):
    """A program that was called failed, took too long, or could not be started."""


class DownloadError(TractError):
    """A file could not be downloaded, or is not the one that was wanted."""

    advice = "try again later, or give a binary of your own with specific_tract_binary_path"


class OnnxExportError(TractError):
    """PyTorch's own exporter to ONNX does not take a module, or what it wrote cannot be loaded."""
