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
from tract_torch.capture.decomposing import decomposed
from tract_torch.capture.exporting import exported_program
from tract_torch.wiring.rows import ATEN, find

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
    every = torch._C._dispatch_get_all_op_names()  # pyright: ignore[reportPrivateUsage]: dir() knows only those that were used
    for whole in sorted(every):
        library, _, name = whole.partition("::")
        operator, _, overload = name.partition(".")
        one = f"aten.{operator}.{overload or 'default'}"
        if library == "aten" and "backward" not in operator and torch.Tag.core in _operator(one).tags:
            found.setdefault(operator, []).append(one)
    return {name: found[name] for name in found if name not in NO_OPERATORS}


def tested() -> Counter[str]:
    """For each ATen operator, in how many entries of the catalogue it occurs, before or after decomposition."""
    from calling import Calling
    from catalogue import CATALOGUE

    counts: Counter[str] = Counter()
    for entry in CATALOGUE:
        program = exported_program(Calling(entry.call), entry.drawn(5), {}, None)
        nodes = [*program.graph.nodes, *decomposed(program, default_registry()).graph.nodes]
        targets = {str(node.target) for node in nodes if node.op == "call_function"}
        counts.update({target.split(".")[1] for target in targets if target.startswith("aten.")})
    return counts


def ways(core: Mapping[str, list[str]]) -> dict[str, str]:
    """How each core operator is imported: ``whole``, ``decomposed``, or nothing."""
    decompositions = torch.export.default_decompositions()
    found: dict[str, str] = {}
    for name, overloads in core.items():
        rowless = [one for one in overloads if not _has_row(one)]
        apart = all(_operator(one) in decompositions or _has_row(_without_writing(one)) for one in rowless)
        found[name] = "whole" if not rowless else "decomposed" if apart else ""
    return found


def _has_row(name: str) -> bool:
    return find(default_registry()[ATEN], name) is not None


def _without_writing(name: str) -> str:
    """What PyTorch puts in the place of an operator that changes its arguments."""
    return (
        name.replace("_.default", ".default")
        if "_.default" in name
        else name.replace(".default", "_functional.default")
    )


def _operator(name: str) -> Any:
    _, operator, overload = name.split(".")
    return getattr(getattr(torch.ops.aten, operator), overload)


def table(counts: Mapping[str, int]) -> Iterator[str]:
    """The lines of the page from `BEGIN` on. ``counts``: as of `tested`."""
    from catalogue import CATALOGUE

    core = core_operators()
    found = ways(core)
    taken = [name for name in core if found[name]]
    names = {str(entry).partition(",")[0] for entry in CATALOGUE}
    yield from (BEGIN, "")
    yield f"Of the {len(core)} core ATen operators of PyTorch {torch.__version__.partition('+')[0]} in the forward"
    yield f"direction, {len(taken)} are imported. The catalogue has more than"
    yield f"{_rounded(len(CATALOGUE))} entries for more than {_rounded(len(names))} names."
    yield ""
    yield "| core operator | imported | entries in which it occurs |"
    yield "|---|---|---|"
    for name in sorted(core, key=lambda one: one.strip("_")):
        yield f"| `{name}` | {found[name] or '**no**'} | {counts.get(name) or '-'} |"
    others = sorted((name for name in counts if name not in core), key=lambda one: one.strip("_"))
    yield ""
    yield f"Beside them the catalogue exports {len(others)} operators that PyTorch does not count as core:"
    yield ""
    yield from textwrap.wrap(", ".join(f"`{name}`" for name in others), WIDTH, break_on_hyphens=False)


def _rounded(count: int) -> int:
    """Down to hundreds, so that the page stays true for a while."""
    return (count - 1) // 100 * 100


def main() -> None:
    """Write the page anew."""
    warnings.simplefilter("ignore")
    kept = PAGE.read_text().partition(BEGIN)[0]
    PAGE.write_text(kept + "\n".join(table(tested())) + "\n")
    print(PAGE)


if __name__ == "__main__":
    main()
