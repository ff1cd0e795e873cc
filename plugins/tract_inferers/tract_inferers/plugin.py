"""What this distribution offers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tract_core.plugins.descriptor import Format
from tract_core.plugins.hookspecs import hookimpl


@hookimpl
def tract_api_version() -> str:
    """The version of the plugin seam that this was written for."""
    return "1.0"


@hookimpl
def tract_formats() -> Sequence[Format]:
    """Assets: a model of another format, with a header in front."""
    summary = "policies as one file: an ONNX or NNEF model behind a header of 8 bytes"
    loader, writer = "tract_inferers.assets.format:Crvo", "tract_inferers.assets.format:CrvoWriter"
    return [Format("crvo", (".crvo",), loader, summary, writer=writer, signatures=((0, b"CRVO"),))]


@hookimpl
def tract_commands() -> Mapping[str, str]:
    """Subcommands of ``tract``."""
    return {"inferers": "tract_inferers.cli.group:command"}
