"""Write docs/onnx.md, from what is registered and a run of ONNX's backend tests: ``python docs/generate_onnx.py``."""

# ruff: noqa: T201 (a script prints)

from __future__ import annotations

import ast
import dataclasses
import re
import sys
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import onnx
from tract_onnx import plugin
from tract_onnx.frontend import NEWEST
from tract_onnx.ops.refused import REASONS
from tract_onnx.registry import ONNX
from tract_onnx.tensors import ELEMENT_TYPES

from tract_core.limits import LoadLimits
from tract_core.plugins import default_registry

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "onnx.md"
sys.path.insert(0, str(ROOT / "plugins" / "tract_onnx" / "tests"))

Passed = dict[str, Counter[str]]
"""For each operator, as ``domain/OpType``, how many tests with it in their model had which outcome."""


def page(modes: dict[str, Counter[str]], operators: Passed) -> str:
    """The page. ``modes``: how many tests had which outcome, in each mode."""
    parts = [_introduction(), _conformance(modes), _refused(), _operators(operators), _types(), _options(), _limits()]
    return "\n".join("\n".join(part) for part in parts)


def registered() -> dict[str, dict[str, list[int]]]:
    """By domain and operator: the versions of the operator set from which its rows hold, those that refuse left out."""
    found: dict[str, dict[str, list[int]]] = defaultdict(dict)
    for key in default_registry()[ONNX].rows():
        if key not in REASONS:
            domain, name, since = key.rsplit("/", 2)
            found[domain].setdefault(name, []).append(int(since))
    return {domain: {name: sorted(rows[name]) for name in sorted(rows)} for domain, rows in sorted(found.items())}


def _introduction() -> Iterator[str]:
    yield "# ONNX\n"
    yield "<!-- Written by docs/generate_onnx.py: change that, and run it. -->\n"
    yield from _wrapped(
        f"""Files of every version of the operator set are read, 1 to {NEWEST}. `tract.onnx().load(path)` gives an
        `InferenceModel`; `tract_onnx.backend.Backend` is the same behind the interface that the `onnx` package defines
        for engines (`prepare`, `run_model`, `run_node`, `supports_device`), where a device is the name of a runtime.
        What a file passes as an input stays an input: a shape, an axis or a bound may be computed, and change from run
        to run. Functions that a file defines are put in the place of their calls; those that call each other in a
        circle are refused. `tract MODEL doctor` lists all that a file has and that is not taken."""
    )


def _conformance(modes: dict[str, Counter[str]]) -> Iterator[str]:
    from onnx_backend_suite import REFUSED, TOLERANCES, WITHOUT_BATCH

    yield "## Conformance\n"
    yield from _wrapped(
        f"""The backend tests of `onnx` {onnx.__version__} (node, simple, pytorch-operator, pytorch-converted), run by
        its own runner on the `reference` runtime, with the tolerances of each test: as wired, decluttered, and
        decluttered with a symbol for the leading axis of every input. No test ends in a wrong answer, in another error,
        or not at all."""
    )
    yield from _table(
        ["", "passed", "refused", "failed"],
        [[mode, *(str(counts[kind]) for kind in ("passed", "refused", "failed"))] for mode, counts in modes.items()],
    )
    yield "Refused are:\n"
    rows = [[f"`{name}`", error.__name__, reason] for name, (error, reason) in sorted(REFUSED.items())]
    rows += [
        [f"`{name}`", error.__name__, f"{reason} (with symbols only)"]
        for name, (error, reason) in sorted(WITHOUT_BATCH.items())
    ]
    yield from _table(["test", "error", "its message says"], rows)
    yield "Two groups of tests have other tolerances than their own:\n"
    rows = [
        [f"`{name}`", ", ".join(f"{key} {value}" for key, value in given.items())] for name, given in TOLERANCES.items()
    ]
    yield from _table(["test", "tolerance"], rows)
    yield from _wrapped(
        """The numbers that Bernoulli draws are compared by type and shape. The expected results of the two attentions
        in f16 were rounded after every step, and are further from the exact ones than those computed here."""
    )


def _refused() -> Iterator[str]:
    yield "## What is refused\n"
    yield "Operators that are known and not taken:\n"
    rows: list[list[str]] = []
    for key, (reason, hint) in REASONS.items():
        domain, name, _ = key.rsplit("/", 2)
        rows.append([f"`{name}` ({domain})", reason, hint])
    yield from _table(["operator", "why", "what to do"], rows)
    yield "In operators that are taken, this, by the message (`...` stands for what was found):\n"
    yield from _table(["family", "message"], [[f"`{family}`", message] for family, message in _messages()])


def _messages() -> Iterator[tuple[str, str]]:
    """The messages of ``Unsupported`` in the modules that wire operators."""
    for path in sorted((ROOT / "plugins" / "tract_onnx" / "tract_onnx" / "ops").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Unsupported" and path.stem != "refused":
                yield path.stem, _text(node.args[0])


def _text(expression: ast.expr) -> str:
    pieces = expression.values if isinstance(expression, ast.JoinedStr) else [expression]
    return "".join(str(one.value) if isinstance(one, ast.Constant) else "..." for one in pieces).replace("|", "\\|")


def _operators(counts: Passed) -> Iterator[str]:
    yield "## Operators\n"
    yield from _wrapped(
        """`from` is the version of the operator set from which an operator is taken, up to the newest; `changes` are
        the versions in which what is done for it changed. `tests` counts the backend tests with the operator in their
        model that pass when decluttered; none means that it is tested here only."""
    )
    for domain, operators in registered().items():
        yield f"### {domain}\n"
        rows: list[list[str]] = []
        for name, (first, *others) in operators.items():
            found = counts.get(f"{domain}/{name}", Counter())
            passed = f"{found['passed']} of {sum(found.values())}" if found else "none"
            rows.append([f"`{name}`", str(first), ", ".join(map(str, others)), passed])
        yield from _table(["operator", "from", "changes", "tests"], rows)


def _types() -> Iterator[str]:
    yield "## Element types\n"
    names = dict(zip(onnx.TensorProto.DataType.values(), onnx.TensorProto.DataType.keys(), strict=True))
    yield from _table(
        ["ONNX", "here"], [[names.get(code, str(code)), f"`{kind.short}`"] for code, kind in ELEMENT_TYPES.items()]
    )
    yield "And sequences, optionals and maps of them.\n"


def _options() -> Iterator[str]:
    yield "## Options of the loader\n"
    yield from _wrapped(
        """Keywords of `tract.onnx().load`, and flags of the command, as `--onnx-ignore-value-info`. Without them, what
        a file says must agree with what its operators give; contradictions are reported with both sides."""
    )
    flags = next(iter(plugin.tract_frontends())).flags
    yield from _table(["option", "what it does"], [[f"`{name}`", text] for name, text in flags.items()])


def _limits() -> Iterator[str]:
    yield "## Limits\n"
    yield from _wrapped(
        "What a file may ask for, as fields of `tract_core.limits.LoadLimits`; beyond it is `LimitExceeded`."
    )
    documentation = " ".join((LoadLimits.__doc__ or "").split())
    meanings = dict(re.findall(r"``(\w+)``: (.*?)(?= ``\w+``: |$)", documentation))
    rows = [
        [f"`{field.name}`", f"{field.default:,}", _sentence(meanings[field.name])]
        for field in dataclasses.fields(LoadLimits)
    ]
    yield from _table(["limit", "default", "of what"], rows)


def _sentence(text: str) -> str:
    return text.partition(". ")[0].rstrip(".;")


def _wrapped(text: str) -> Iterator[str]:
    yield from textwrap.wrap(" ".join(text.split()), 120)
    yield ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


def main() -> None:
    """Run the tests, and write the page."""
    from onnx_backend_suite import MODES, all_cases, operators, outcome

    labels, cases = operators(), all_cases()
    modes: dict[str, Counter[str]] = {mode: Counter() for mode in MODES}
    counts: Passed = defaultdict(Counter)
    for name, run in cases.items():
        for mode in MODES:
            result, _ = outcome(run, name, mode)
            modes[mode][result] += 1
            if mode == "decluttered":
                for op in labels[name]:
                    counts[op][result] += 1
    PAGE.write_text(page(modes, counts))
    print(f"{PAGE}: {', '.join(f'{mode} {dict(found)}' for mode, found in modes.items())}")


if __name__ == "__main__":
    main()
