"""Write the table of operators in docs/torch.md: ``python docs/generate_torch.py``. It needs PyTorch, and minutes.

Every entry of the catalogue of tests is exported, so the table knows which operators are compared with PyTorch.
"""

# ruff: noqa: T201 (a script prints)

from __future__ import annotations

import sys
import textwrap
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import torch
from tract_torch.capture.exporting import exported_program
from tract_torch.registry import ATEN, find

from tract_core.errors import TractError
from tract_core.plugins import default_registry

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "torch.md"
sys.path.insert(0, str(ROOT / "plugins" / "tract_torch" / "tests"))

BEGIN: Final = "<!-- From here on written by docs/generate_torch.py: change that, and run it. -->"
WIDTH: Final = 128
NO_OPERATORS: Final = frozenset({"sym_is_contiguous", "sym_numel", "sym_size", "sym_storage_offset", "sym_stride"})
"""Core operators that are sizes: they are known without being computed."""


def core_operators() -> dict[str, list[str]]:
    """The core ATen operators of the installed PyTorch in the forward direction, each with its overloads."""
    found: dict[str, list[str]] = {}
    for name in dir(torch.ops.aten):
        packet = getattr(torch.ops.aten, name)
        for overload in packet.overloads() if hasattr(packet, "overloads") else ():
            if torch.Tag.core in getattr(packet, overload).tags:
                found.setdefault(name, []).append(str(getattr(packet, overload)))
    return {name: found[name] for name in found if "backward" not in name and name not in NO_OPERATORS}


def tested() -> Counter[str]:
    """For each ATen operator, in how many entries of the catalogue it occurs, before or after decomposition."""
    from calling import Calling
    from catalogue import CATALOGUE

    counts: Counter[str] = Counter()
    for entry in CATALOGUE:
        try:
            program = exported_program(Calling(entry.call), entry.drawn(5), {}, None)
            decomposed = program.run_decompositions()
        except TractError as error:
            print(f"{entry}: {error}", file=sys.stderr)
            continue
        nodes = [*program.graph.nodes, *decomposed.graph.nodes]
        targets = {str(node.target) for node in nodes if node.op == "call_function"}
        counts.update({target.split(".")[1] for target in targets if target.startswith("aten.")})
    return counts


def ways(core: Mapping[str, list[str]]) -> dict[str, str]:
    """How each core operator is imported: ``whole``, ``decomposed``, or nothing."""
    table, decompositions = default_registry()[ATEN], torch.export.default_decompositions()
    found: dict[str, str] = {}
    for name, overloads in core.items():
        if all(find(table, overload) is not None for overload in overloads):
            found[name] = "whole"
        elif all(find(table, one) is not None or _operator(one) in decompositions for one in overloads):
            found[name] = "decomposed"
        else:
            found[name] = ""
    return found


def _operator(name: str) -> Any:
    _, operator, overload = name.split(".")
    return getattr(getattr(torch.ops.aten, operator), overload)


def table() -> Iterator[str]:
    """The lines of the page from `BEGIN` on."""
    from catalogue import CATALOGUE

    core, counts = core_operators(), tested()
    found = ways(core)
    taken = [name for name in core if found[name]]
    names = {str(entry).partition(",")[0] for entry in CATALOGUE}
    yield from (BEGIN, "")
    yield f"Of the {len(core)} core ATen operators of PyTorch {torch.__version__.partition('+')[0]} in the forward"
    yield f"direction, {len(taken)} are imported. The catalogue has {len(CATALOGUE)} entries for {len(names)} names."
    yield ""
    yield "| core operator | imported | entries in which it occurs |"
    yield "|---|---|---|"
    for name in sorted(core, key=lambda one: one.strip("_")):
        yield f"| `{name}` | {found[name] or '**no**'} | {counts[name] or '-'} |"
    others = sorted((name for name in counts if name not in core), key=lambda one: one.strip("_"))
    yield ""
    yield f"Beside them the catalogue exports {len(others)} operators that PyTorch does not count as core:"
    yield ""
    yield from textwrap.wrap(", ".join(f"`{name}`" for name in others), WIDTH, break_on_hyphens=False)


def main() -> None:
    """Write the page anew."""
    warnings.simplefilter("ignore")
    kept = PAGE.read_text().partition(BEGIN)[0]
    PAGE.write_text(kept + "\n".join(table()) + "\n")
    print(PAGE)


if __name__ == "__main__":
    main()
