"""What the exporter to archives refuses besides what every model may be refused for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tract_core.errors import ModelError, TractError

if TYPE_CHECKING:
    from tract_torch.check.report import CheckReport


class CheckError(ModelError):
    """What was exported gives something else than the module. ``report``: what was compared until then, if anything."""

    advice = "check_io_tolerance loosens the comparison; 'tract MODEL compare' looks at single nodes"
    report: CheckReport | None = None


class CommandError(TractError):
    """A program that was called failed, took too long, or could not be started."""


class DownloadError(TractError):
    """A file could not be downloaded, or is not the one that was wanted."""

    advice = "try again later, or give a binary of your own with specific_tract_binary_path"
