"""Write docs/operators.md, from the tables of all installed distributions: ``python docs/generate_operators.py``.

What needs PyTorch is left out: docs/torch.md has its table.
"""

# ruff: noqa: T201 (a script prints)

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from pkgutil import resolve_name
from typing import Final

from tract_core.model.op import TypedOp
from tract_core.plugins import Registry, default_registry
from tract_core.plugins.keys import REFERENCE, STATE

PAGE = Path(__file__).parents[1] / "docs" / "operators.md"

COLUMNS: Final = {
    "NumPy": ("reference", "state"),
    "`cpu`": ("cpu", "cpu_moves", "elements", "nests"),
    "`cuda`": ("cuda", "elements", "nests"),
    "`metal`": ("metal",),
    "in pulses": ("pulse",),
    "to ONNX": ("onnx_write",),
    "to NNEF": ("nnef_write",),
}
"""The columns of the table, and the tables of the registry that are looked up for each."""

HEAD: Final = """\
# Operators

<!-- Written by docs/generate_operators.py: change that, and run it. -->

Models of any format are made of these operators, so this is what a transform, a runtime or a plugin meets. A mark says
that there is a row for the operator, or for a family that it belongs to. Without one:

- under a runtime, it is written out as others, traced from its NumPy meaning, or left to NumPy: `explain()` says which,
  and why;
- *in pulses*, it streams where its axes allow it, and is refused by name otherwise: `doctor` says which;
- *to ONNX*, it is refused, all such nodes of a model at once;
- *to NNEF*, it is written by its fields, in a registry of this project.

What files may hold, version by version, and on which element types:

| | |
|---|---|
| [ONNX](onnx.md#operators) | what each operator of a file becomes, and what is refused |
| [NNEF](nnef.md#which-operators-it-uses) | which registries archives use |
| [PyTorch](torch.md) | operators of `torch.export` |
| [GGUF](gguf.md#architectures) | architectures |
| [`cpu`](cpu.md#operators-with-native-code), [`cuda`](cuda.md), [`metal`](metal.md) | which types are computed where |
"""


def operators(registry: Registry) -> list[type[TypedOp]]:
    """Every operator that has a meaning, by name."""
    names = {name for table in (REFERENCE, STATE) for name in registry[table].names()}
    found = {resolve_name(name) for name in names}
    ours = (one for one in found if not one.__module__.startswith("tract_torch."))
    return sorted(
        (one for one in ours if not one.__name__.startswith("_")),
        key=lambda one: (one.__name__.lower(), one.__module__),
    )


def cells(registry: Registry, operator: type[TypedOp]) -> Iterator[str]:
    """What its tables have for an operator."""
    for tables in COLUMNS.values():
        yield "x" if any(registry[registry.load("tract_tables", name)].find(operator) for name in tables) else ""


def says(operator: type[TypedOp]) -> str:
    """The first sentence of its description."""
    text = " ".join((operator.__doc__ or "").split()).replace("``", "`").replace("|", "\\|")
    return "" if text.startswith(f"{operator.__name__}(") else text.split(". ")[0].rstrip(".:")


def page() -> str:
    """The page."""
    registry = default_registry()
    lines = [HEAD]
    by_module: dict[str, list[type[TypedOp]]] = {}
    for operator in operators(registry):
        by_module.setdefault(operator.__module__, []).append(operator)
    for module, members in sorted(by_module.items()):
        said = (inspect.getmodule(members[0]).__doc__ or "").split("\n")[0]
        lines += [
            f"## `{module}`\n",
            f"{said}\n",
            f"| operator | {' | '.join(COLUMNS)} | what |",
            "|---" * (len(COLUMNS) + 2) + "|",
        ]
        lines += [f"| `{one.__name__}` | {' | '.join(cells(registry, one))} | {says(one)} |" for one in members]
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    """Write the page."""
    PAGE.write_text(page())
    print(PAGE)


if __name__ == "__main__":
    main()
