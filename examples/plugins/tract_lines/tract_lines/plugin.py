"""What this distribution brings, as data: the entry point leads here; nothing else is imported before it is used."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.plugins import Format, hookimpl
from tract_core.plugins.descriptor import Option


@hookimpl
def tract_api_version() -> str:
    """The version of the plugin interface that this was written for."""
    return "1.0"


@hookimpl
def tract_formats() -> Sequence[Format]:
    """The format: how it is read, how it is written, and the class that users hold."""
    return [
        Format(
            "lines",
            (".lines",),
            loader="tract_lines.reader:Reader",
            summary="networks without weights, one operator on a line",
            flags={"default_type": Option("The element type of inputs that name none.", str, "TYPE")},
            writer="tract_lines.writer:Writer",
            writer_flags={"comment": Option("A text for the first line.", str, "TEXT")},
            handle="tract_lines.handle:Lines",
        )
    ]
