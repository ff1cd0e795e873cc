"""The report of ``doctor``, for people and for machines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from tract_core.analysis.findings import Finding, Sheet
from tract_core.api.display import size
from tract_core.cli.commands.diagnosis import LARGEST, Diagnosis
from tract_core.cli.printing.console import Console
from tract_core.cli.printing.printed import Column, PrintedTable, Styled
from tract_core.texts import printable

_TITLES: Final = {
    "operator": "missing operator: ",
    "path": "unsafe path: ",
    "unknown": "not known: ",
    "shape": "facts that do not fit: ",
    "corrupt": "corrupt file: ",
    "unsupported": "not supported: ",
    "error": "",
}
"""How the text announces kinds of findings, where their own names say less."""

PLACES: Final = 6
"""How many places of a finding are named in the text."""


def as_text(diagnosis: Diagnosis) -> str:
    """The report as JSON."""
    content: dict[str, Any] = {
        "model": diagnosis.model,
        "runtime": diagnosis.runtime,
        "loads": diagnosis.loads,
        "runs": not diagnosis.problems,
        "about": dict(diagnosis.about),
        "findings": [asdict(finding) for finding in diagnosis.findings],
        "inputs": diagnosis.inputs,
        "outputs": diagnosis.outputs,
        "symbols": diagnosis.symbols,
        "operators": dict(diagnosis.operators),
        "sheets": [
            {"title": one.title, "rows": [dict(zip(one.columns, row, strict=True)) for row in one.rows]}
            for one in diagnosis.sheets
        ],
        "constants": {"count": len(diagnosis.constants), "bytes": diagnosis.constants.total()},
    }
    return json.dumps(content, indent=1)


def print_report(console: Console, diagnosis: Diagnosis) -> None:
    """The verdict, what the model is, tables of what transforms say of it, then problems and remarks."""
    console.line(*_verdict(diagnosis))
    console.table(_facts(diagnosis))
    for sheet in diagnosis.sheets:
        console.line((f"\n{sheet.title}", "bold"))
        console.table(_filled(sheet))
    remarks = [finding for finding in diagnosis.findings if finding.severity == "remark"]
    _print_findings(console, "problem", diagnosis.problems, "red")
    _print_findings(console, "remark", remarks, "yellow")


def _verdict(diagnosis: Diagnosis) -> tuple[Styled, Styled]:
    model = f"{diagnosis.model}: ", "bold"
    if not diagnosis.problems:
        return model, (f"loads, and would run on {diagnosis.runtime!r}", "bold green")
    count = f"{len(diagnosis.problems)} problem{'s' if len(diagnosis.problems) > 1 else ''}"
    what = f"loads, and would not run on {diagnosis.runtime!r}" if diagnosis.loads else "does not load"
    return model, (f"{what}: {count}", "bold red")


def _facts(diagnosis: Diagnosis) -> PrintedTable:
    table = PrintedTable((Column(whole=True, style="dim"), Column()))
    rows: list[tuple[str, str]] = list(diagnosis.about.items())
    if diagnosis.operators:
        counts = ", ".join(f"{op} {count}" for op, count in diagnosis.operators.most_common())
        rows.append(("nodes", f"{diagnosis.operators.total()}: {counts}"))
    if diagnosis.constants:
        largest = ", ".join(f"{name} {size(count)}" for name, count in diagnosis.constants.most_common(LARGEST))
        total = size(diagnosis.constants.total())
        rows.append(("constants", f"{len(diagnosis.constants)}, {total}; the largest: {largest}"))
    rows += [(f"input {slot}", f"{name}  {fact}") for slot, (name, fact) in enumerate(diagnosis.inputs.items())]
    rows += [(f"output {slot}", f"{name}  {fact}") for slot, (name, fact) in enumerate(diagnosis.outputs.items())]
    rows += [(f"symbol {name}", f"from {origin}") for name, origin in diagnosis.symbols.items()]
    for title, content in rows:
        table.add(f"  {title}", printable(content))
    return table


def _filled(sheet: Sheet) -> PrintedTable:
    """The table as it is printed: numbers below each other, ``-`` for what is not known."""
    numbers = [all(not isinstance(row[place], str) for row in sheet.rows) for place in range(len(sheet.columns))]
    titles = zip(sheet.columns, numbers, strict=True)
    table = PrintedTable((Column(), *(Column(title, right=right, whole=right) for title, right in titles)))
    for row in sheet.rows:
        table.add(
            "",
            *("-" if cell is None else printable(f"{cell:,}" if isinstance(cell, int) else f"{cell}") for cell in row),
        )
    return table


def _print_findings(console: Console, title: str, findings: Sequence[Finding], colour: str) -> None:
    if not findings:
        return
    console.line((f"\n{len(findings)} {title}{'s' if len(findings) > 1 else ''}", f"bold {colour}"))
    for number, finding in enumerate(findings, 1):
        table = PrintedTable((Column(whole=True), Column()))
        title = _TITLES.get(finding.kind, f"{finding.kind}: ")
        table.add(f"{number:2}.", [(title, colour), finding.problem])
        for place in finding.places[:PLACES]:
            table.add("", f"at {place}")
        if len(finding.places) > PLACES:
            table.add("", f"and {len(finding.places) - PLACES} more (--json names all)")
        if finding.hint:
            table.add("", (f"to do: {finding.hint}", "cyan"))
        console.table(table)
