"""Write the tables of operators in docs/tensorflow.md: ``python docs/generate_tensorflow.py``."""

# ruff: noqa: T201 (a script prints)

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from tract_tensorflow.graphdef.registry import TENSORFLOW
from tract_tensorflow.tflite.options import CUSTOM, OPERATORS
from tract_tensorflow.tflite.registry import QUANTIZED, TFLITE

from tract_core.plugins import default_registry

PAGE: Final = Path(__file__).parents[1] / "docs" / "tensorflow.md"
BEGIN: Final = "<!-- From here on written by docs/generate_tensorflow.py: change that, and run it. -->"
OF_GRAPHS: Final = {
    "ASSIGN_VARIABLE": "A variable holds X from here on",
    "CALL_ONCE": "A graph that says what variables hold at first",
    "HASHTABLE": "A table, by its number",
    "HASHTABLE_IMPORT": "What a table is filled with, before the first run",
    "READ_VARIABLE": "What a variable holds",
    "VAR_HANDLE": "A variable, by its name",
}
"""Operators of TFLite that become no nodes, and have no rows."""

OF_FLOW: Final = {
    "Enter": "What a loop of TensorFlow 1 begins with",
    "Exit": "What leaves a loop of TensorFlow 1",
    "LoopCond": "Whether a loop of TensorFlow 1 goes on",
    "Merge": "What came of the branches of TensorFlow 1, or of an iteration",
    "NextIteration": "What an iteration of TensorFlow 1 hands on",
    "Switch": "A tensor in one of two branches of TensorFlow 1",
    "_SwitchN": "A tensor in one of several branches",
    "EmptyTensorList": "A list without elements",
    "TensorListReserve": "A list of which nothing is set",
    "TensorArrayV3": "An array of tensors of TensorFlow 1, of which nothing is set",
    "TensorArrayConcatV3": "As TensorListConcatV2",
    "TensorArrayGatherV3": "As TensorListGather",
    "TensorArrayReadV3": "As TensorListGetItem",
    "TensorArrayScatterV3": "As TensorListScatterIntoExistingList",
    "TensorArraySizeV3": "As TensorListLength",
    "TensorArrayWriteV3": "As TensorListSetItem",
    "HashTableV2": "A table of keys and values",
    "InitializeTableV2": "What a table is filled with, before the first run",
    "InitializeTableFromTextFileV2": "What a table is filled with: the lines of a file, or their columns",
    "LookupTableImportV2": "What a table is filled with, before the first run",
    "PartitionedCall": "A function, which takes the node's place",
    "StatefulPartitionedCall": "A function, which takes the node's place",
    "ReadVariableOp": "What a variable holds",
    "VarHandleOp": "A variable, by its name",
    "VariableV2": "A variable of TensorFlow 1, with what it holds",
}
"""Operators of TensorFlow that become no nodes, and have no rows."""

WITHOUT_MEANING: Final = frozenset({"CUSTOM", "DELEGATE", "PLACEHOLDER_FOR_GREATER_OP_CODES"})
"""Names in the format that are no operators."""


def says(function: Any) -> str:
    """The first line of what a row says of itself."""
    lines = (function.__doc__ or "").strip().splitlines()
    return lines[0].replace("|", "\\|") if lines else ""


def tflite() -> Iterator[str]:
    """The table of TFLite's operators, those of the format first, and what is missing."""
    rows = default_registry()[TFLITE]
    known = [name for name in OPERATORS if rows.find(name) or rows.find(QUANTIZED + name) or name in OF_GRAPHS]
    custom = sorted(name for name in rows.names() if name.startswith(CUSTOM))
    yield "| operator | plain | quantised | what |"
    yield "|---|---|---|---|"
    for name in [*sorted(known), *custom]:
        plain, quantised = rows.find(name), rows.find(QUANTIZED + name)
        said = OF_GRAPHS.get(name) or says(plain or quantised)
        yield f"| {name} | {'x' if plain or name in OF_GRAPHS else ''} | {'x' if quantised else ''} | {said} |"
    missing = sorted(set(OPERATORS) - set(known) - WITHOUT_MEANING)
    yield ""
    total = len(set(OPERATORS) - WITHOUT_MEANING)
    yield f"{len(known)} of {total}, and {len(custom)} custom ones. Not known: {listed(missing)}."


def tensorflow() -> Iterator[str]:
    """The table of TensorFlow's operators."""
    rows = default_registry()[TENSORFLOW]
    yield "| operator | what |"
    yield "|---|---|"
    for name in sorted({*rows.names(), *OF_FLOW}):
        yield f"| {name} | {OF_FLOW.get(name) or says(rows.find(name))} |"


def listed(names: Sequence[str]) -> str:
    """Names behind one another."""
    return ", ".join(names) or "none"


def page() -> str:
    """The page: what stands in front of the marker stays."""
    head = PAGE.read_text(encoding="utf-8").partition(BEGIN)[0]
    parts = [BEGIN, "", *tflite(), "", "## Operators of TensorFlow", "", *tensorflow(), ""]
    return head + "\n".join(parts)


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE)


if __name__ == "__main__":
    main()
