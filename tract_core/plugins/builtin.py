"""What the core itself offers, through the same hooks as everybody else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tract_core.plugins.hookspecs import hookimpl

_OPS: Final = (
    "axis",
    "binary",
    "broadcast",
    "cast",
    "const",
    "elementwise",
    "source",
)
_CASES: Final = ("elementwise",)
_RULES: Final = ("axis", "binary", "const", "elementwise")


@hookimpl
def tract_api_version() -> str:
    """Always the current one."""
    from tract_core.plugins.hookspecs import API_VERSION

    return ".".join(map(str, API_VERSION))


@hookimpl
def tract_operators() -> Mapping[str, Sequence[str]]:
    """The operators' modules fill the tables that say what operators mean; the rules' modules fill ``declutter``."""
    ops = [f"tract_core.ops.{family}" for family in _OPS]
    tables = dict.fromkeys(("reference", "state", "symbolic", "cost", "axes"), ops)
    return {
        **tables,
        "declutter": [f"tract_core.rules.{family}" for family in _RULES],
        "cases": [f"tract_core.testing.cases.{family}" for family in _CASES],
    }


@hookimpl
def tract_transforms() -> Mapping[str, str]:
    """The transforms that need nothing but the core."""
    return {
        "set_symbols": "tract_core.transforms.set_symbols:SetSymbols",
        "select_inputs": "tract_core.transforms.select:SelectInputs",
        "select_outputs": "tract_core.transforms.select:SelectOutputs",
        "float_precision": "tract_core.transforms.float_precision:FloatPrecision",
        "f32_to_f16": "tract_core.transforms.float_precision:F32ToF16",
        "f16_to_f32": "tract_core.transforms.float_precision:F16ToF32",
    }


@hookimpl
def tract_runtimes() -> Mapping[str, str]:
    """The plain NumPy interpreter."""
    return {"reference": "tract_core.runtime.reference:ReferenceRuntime"}


@hookimpl
def tract_commands() -> Mapping[str, str]:
    """The subcommands of ``tract``."""
    names = ("dump", "run", "bench", "compare", "list-ops", "list-runtimes", "list-transforms", "plugins")
    return {name: f"tract_core.cli.{name.replace('-', '_')}:command" for name in names}
