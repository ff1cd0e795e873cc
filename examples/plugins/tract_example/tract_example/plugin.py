"""What this distribution brings, as data: the entry point leads here; nothing else is imported before it is used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tract_core.plugins.hookspecs import hookimpl


@hookimpl
def tract_api_version() -> str:
    """The version of the plugin interface that this was written for."""
    return "1.0"


@hookimpl
def tract_rows() -> Mapping[str, Sequence[str]]:
    """Which module holds rows of which table."""
    return {
        "state": ["tract_example.smooth"],
        "cost": ["tract_example.smooth"],
        "axes": ["tract_example.smooth"],
        "declutter": ["tract_example.rules"],
        "cases": ["tract_example.cases"],
        "known_gaps": ["tract_example.gaps"],
        "onnx": ["tract_example.importer"],  # imported by who reads such files, and by nobody where nobody does
        "nnef": ["tract_example.archives"],
        "nnef_write": ["tract_example.archives"],
    }


@hookimpl
def tract_transforms() -> Mapping[str, str]:
    """Transforms by name."""
    return {"smooth_outputs": "tract_example.transforms:SmoothOutputs"}


@hookimpl
def tract_runtimes() -> Mapping[str, str]:
    """Runtimes by name."""
    return {"toy": "tract_example.runtime:ToyRuntime"}


@hookimpl
def tract_commands() -> Mapping[str, str]:
    """Subcommands of ``tract``."""
    return {"half-life": "tract_example.cli:half_life"}
