"""What graphs that others call read and assign, besides what they are handed: variables, and tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from tract_core.frozen import frozen
from tract_tensorflow.tflite.file import TfliteFile, options_of
from tract_tensorflow.tflite.flatbuffer import FlatTable

CALLING: Final[Mapping[str, tuple[int, tuple[str, ...]]]] = {
    "CALL": (0, ("subgraph",)),
    "IF": (1, ("then_subgraph_index", "else_subgraph_index")),
    "STABLEHLO_CASE": (1, ("branch_subgraph_indices",)),
    "STABLEHLO_COMPOSITE": (0, ("decomposition_subgraph_index",)),
    "STABLEHLO_WHILE": (0, ("cond_subgraph_index", "body_subgraph_index")),
    "WHILE": (0, ("cond_subgraph_index", "body_subgraph_index")),
}
"""Operators that call graphs: from which input on they hand their inputs to these, and the options that name them."""

LOOPS: Final = frozenset({"WHILE", "STABLEHLO_WHILE"})

ASK_TABLES: Final = frozenset({"HASHTABLE_FIND", "HASHTABLE_SIZE"})
"""Operators that are given the keys and the values of their table behind their inputs."""


@frozen
class Handed:
    """What an operator hands to the graphs that it calls, besides tensors.

    ``handles``: for each input of a graph, which variable or table it is; ``None`` for a tensor. ``held``: the names of
    what the graphs read or assign, which come behind the operator's inputs; ``assigned``: how many of these, the first
    ones, the graphs assign. They come behind its outputs.
    """

    handles: tuple[str | None, ...] = ()
    held: tuple[str, ...] = ()
    assigned: int = 0


NOTHING_HANDED: Final = Handed()


@frozen
class Touched:
    """What a graph, and those that it calls, do with variables and tables, in order.

    ``read``, ``assigned``: by name; ``once``: the graphs that they call once, by number.
    """

    read: dict[str, None]
    assigned: dict[str, None]
    once: dict[int, None]

    def add(self, other: Touched) -> None:
        """As well what another one does."""
        self.read.update(other.read)
        self.assigned.update(other.assigned)
        self.once.update(other.once)

    def calls(self, handles: Sequence[str | None]) -> Handed:
        """What an operator hands to graphs that do all this."""
        others = [name for name in self.read if name not in self.assigned]
        return Handed(tuple(handles), (*self.assigned, *others), len(self.assigned))


def handle_of(op_type: str, options: FlatTable | None) -> str | None:
    """Which variable or table an operator names; ``None`` for one that names none."""
    if op_type == "VAR_HANDLE":
        return f"variable {'' if options is None else options.text('shared_name')}"
    if op_type == "HASHTABLE":
        return f"table {0 if options is None else options.integer('table_id')}"
    return None


def parts_of_table(name: str) -> tuple[str, str]:
    """What a table holds: its keys and its values, each by a name of its own."""
    return f"{name}.keys", f"{name}.values"


def called_graphs(op_type: str, options: FlatTable | None) -> Iterator[int]:
    """The numbers of the graphs that an operator calls."""
    for name in CALLING[op_type][1] if options is not None else ():
        assert options is not None  # as above
        if options.fields[name].many:
            yield from options.numbers(name).tolist()
        else:
            yield options.integer(name)


def touched(file: TfliteFile, index: int, given: Sequence[str | None]) -> Touched:
    """What a graph does with variables and tables. ``given``: which of these each of its inputs is.

    Raises ModelError.
    """
    key = index, tuple(given)
    if key not in file.touched:
        file.touched[key] = touched_by(file.inside(index), given)
    return file.touched[key]


def touched_by(file: TfliteFile, given: Sequence[str | None] = ()) -> Touched:
    """The same of the graph that was entered last. Raises ModelError."""
    graph, found = file.graph(file.entered[-1]), Touched({}, {}, {})
    places: Sequence[int] = graph.numbers("inputs").tolist()
    handles = {place: name for place, name in zip(places, given, strict=False) if name is not None}
    for table in graph.tables("operators"):
        op_type, options = file.op_type(table), options_of(table)
        inputs, outputs = (table.numbers(name).tolist() for name in ("inputs", "outputs"))
        name = handle_of(op_type, options)
        if name is not None:
            handles |= dict.fromkeys(outputs[:1], name)
        elif op_type == "CALL_ONCE":
            found.once[0 if options is None else options.integer("init_subgraph_index")] = None
        elif op_type in CALLING:
            handed = [handles.get(place) for place in inputs[CALLING[op_type][0] :]]
            for number in called_graphs(op_type, options):
                found.add(touched(file, number, handed))
            if op_type in LOOPS:
                handles |= {place: one for place, one in zip(outputs, handed, strict=False) if one is not None}
        elif inputs and inputs[0] in handles:
            _note(found, op_type, handles[inputs[0]])
    return found


def _note(found: Touched, op_type: str, name: str) -> None:
    if op_type == "READ_VARIABLE":
        found.read[name] = None
    elif op_type == "ASSIGN_VARIABLE":
        found.assigned[name] = None
    elif op_type in ASK_TABLES:
        found.read.update(dict.fromkeys(parts_of_table(name)))
