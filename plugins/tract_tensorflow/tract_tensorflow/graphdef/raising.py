"""Branches and loops of TensorFlow 1 as what they are in TensorFlow 2: nodes ``If`` and ``While`` that run functions.

A `Merge` of two branches is an ``If``, with all others of that predicate that do not wait for it; a loop with its
`Merge`, `Switch` and `NextIteration` is a ``While``. Nodes in branches and bodies go into functions, which are given
what they read from outside. Only what is wanted is looked at. What is not of the form that TensorFlow writes is
refused where it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from tract_core.errors import CorruptModel, TractError, Unsupported
from tract_core.frozen import frozen
from tract_core.limits import count_node
from tract_tensorflow.graphdef.node import node_place
from tract_tensorflow.graphdef.old_graph import ENTERS, EXITS, MERGES, NEXTS, OLD, SWITCHES, OldGraph, OldLoop, OldNode
from tract_tensorflow.graphdef.places import Choice, Key, Place, Places, Region
from tract_tensorflow.graphdef.protos import CLASSES, Message
from tract_tensorflow.graphdef.raised_node import RaisedArgument, RaisedFunction, RaisedNode, RaisedSignature
from tract_tensorflow.graphdef.references import Reference

_I32: Final = 3


@frozen
class Raised:
    """What a graph has become.

    ``results``: the texts of what was wanted; ``functions``: the new ones, by name; ``refused``: why a node is not
    read, by its function and its name.
    """

    nodes: Sequence[Message]
    results: Sequence[str]
    functions: Mapping[str, Message]
    refused: Mapping[tuple[str, str], TractError]


def is_old(nodes: Iterable[Message]) -> bool:
    """Whether there are branches or loops of TensorFlow 1."""
    return any(node.op in OLD for node in nodes)


def raised(
    nodes: Sequence[Message],
    reference: Callable[[str], Reference],
    wanted: Sequence[Reference],
    *,
    scope: str = "",
    taken: Collection[str] = (),
    max_depth: int,
) -> Raised:
    """The graph, or the function ``scope``, without branches and loops of TensorFlow 1, as far as it is ``wanted``.

    ``reference``: the tensor that a text names in it. ``taken``: the names of functions that there are. ``max_depth``:
    how deep branches and loops may be in one another. Raises LimitExceeded.
    """
    graph = OldGraph(nodes, reference)
    work = _Raising(graph, Places(graph, max_depth), scope, taken)
    work.find_wanted(wanted)
    written = _Writer(work, work.places.root, scope, in_graph=not scope)
    results = [written.text(one) for one in wanted]
    written.write()
    return Raised(written.in_order(node.name for node in nodes), results, work.functions, work.refused)


class _Raising:
    """What the functions that are made of one graph share."""

    def __init__(self, graph: OldGraph, places: Places, scope: str, taken: Collection[str]) -> None:
        self.graph = graph
        self.places = places
        self.functions: dict[str, Any] = {}
        self.refused: dict[tuple[str, str], TractError] = {}
        self._taken = set(taken)
        self._names = set(self.graph.nodes)
        self._numbers: dict[str, int] = {}
        self._scope = scope
        self.groups: dict[tuple[Region, Key, int], list[str]] = {}
        self.variables: dict[str, list[str]] = {}
        self.made: dict[object, _Made] = {}
        self.numbered: set[str] = set()
        self._resolved: dict[Reference, Reference] = {}

    def find_wanted(self, wanted: Sequence[Reference]) -> None:
        """Which Merges, of branches and of loops, are wanted."""
        pending, seen = [*wanted], set[str]()
        while pending:
            name, slot = pending.pop()
            node = self.graph.nodes.get(name)
            if node is not None and node.op in MERGES and slot == 1:
                self.numbered.add(name)
            if node is None or name in seen:
                continue
            seen.add(name)
            pending += [one for one in node.reads if one is not None]
            choice, loop = self.places.choices.get(name), self.graph.loop_of.get(name)
            if choice is not None:
                self.groups.setdefault((choice.base, choice.key, choice.level), []).append(name)
                pending.append(choice.key[0])
            elif loop is not None and node.op in MERGES:
                self.variables.setdefault(loop.name, []).append(name)
                pending.append((loop.name, 0))

    def fresh(self, name: str) -> str:
        """A name that no node has."""
        return self._unlike(name, self._names)

    def fresh_function(self, name: str) -> str:
        """A name that no function has."""
        return self._unlike(f"{self._scope}/{name}" if self._scope else name, self._taken)

    def _unlike(self, name: str, taken: set[str]) -> str:
        found = name
        while found in taken:
            self._numbers[name] = self._numbers.get(name, 0) + 1
            found = f"{name}_{self._numbers[name]}"
        taken.add(found)
        return found

    def resolved(self, reference: Reference) -> Reference:
        """The tensor that another one is: behind a loop's Switch, and behind those whose predicate is a constant."""
        passed: list[Reference] = []
        while (further := self._resolved.get(reference) or self._one_further(reference)) is not None:
            passed.append(reference)
            reference = further
        self._resolved.update(dict.fromkeys(passed, reference))
        return reference

    def _one_further(self, reference: Reference) -> Reference | None:
        name, slot = reference
        node, loop = self.graph.nodes.get(name), self.graph.loop_of.get(name)
        if node is None or node.op not in SWITCHES:
            return None
        if loop is not None:
            return (loop.switches[name], 0) if slot == 1 else None
        return node.reads[0] if self.places.folded.get(name) == slot else None

    def group_of(self, choice: Choice) -> list[str]:
        """The Merges that one ``If`` stands for."""
        return self.groups[choice.base, choice.key, choice.level]


@frozen
class _Made:
    """A node with its functions: ``given``, what these read from outside, and ``slots``, which output is what."""

    name: str
    op: str
    attr: Mapping[str, Any]
    given: Sequence[Reference]
    slots: Mapping[Reference, int]


class _Writer:
    """The nodes of one function, or of the graph itself. ``context``: the branch, or the loop, that it is.

    ``arguments``: the names of its arguments, by what they are; shared with the function beside it.
    """

    def __init__(
        self,
        work: _Raising,
        context: Region,
        name: str,
        *,
        in_graph: bool = False,
        arguments: dict[Reference, str] | None = None,
    ) -> None:
        self._work = work
        self._context = context
        self._name = name
        self._in_graph = in_graph
        self._is_root = context.parent is None
        self._arguments = {} if arguments is None else arguments
        self._pending: list[str] = []
        self._nodes: dict[str, Message] = {}

    def text(self, reference: Reference) -> str:
        """How a node of this function reads a tensor, which is written too, or an argument from here on."""
        work, reference = self._work, self._work.resolved(reference)
        node = work.graph.nodes.get(reference[0])
        if self._is_root:
            if node is not None:
                self._pending.append(reference[0])
            return self._form(*reference)
        if reference in self._arguments:
            return self._arguments[reference]
        place = work.places.of(reference)
        if node is not None and node.op in SWITCHES and place.context is self._context and node.reads[0] is not None:
            return self.text(node.reads[0])  # a branch is given what goes into it
        is_here = node is not None and (place.context is self._context or _is_small(node))
        if not is_here:
            return self._arguments.setdefault(reference, work.fresh(f"given{len(self._arguments)}"))
        self._pending.append(reference[0])
        return self._form(*reference)

    def _form(self, name: str, slot: int) -> str:
        if self._in_graph:
            return f"{name}:{slot}" if slot else name
        return f"{name}:0:{slot}" if slot else name

    def write(self) -> None:
        """Write all nodes that texts asked for, and what they need."""
        while self._pending:
            name = self._pending.pop()
            if name not in self._nodes:
                count_node()
                self._write(self._work.graph.nodes[name])

    def in_order(self, names: Iterable[str]) -> list[Message]:
        """The nodes in the order of names, then the others."""
        found = [self._nodes.pop(name) for name in names if name in self._nodes]
        return [*found, *self._nodes.values()]

    def function(self, results: Sequence[str]) -> None:
        """Add the function to those of the file. ``results``: the texts of its outputs."""
        outputs = [f"output{slot}" for slot in range(len(results))]
        arguments = [RaisedArgument(name) for name in self._arguments.values()]
        signature = RaisedSignature(self._name, arguments, [RaisedArgument(name) for name in outputs])
        ret = dict(zip(outputs, results, strict=True))
        self._work.functions[self._name] = RaisedFunction(signature, list(self._nodes.values()), ret)

    def number(self, value: int) -> str:
        """The text of a constant."""
        name = self._work.fresh(f"number{value}")
        tensor = CLASSES["TensorProto"](dtype=_I32, int_val=[value])
        attr = {"dtype": CLASSES["AttrValue"](type=_I32), "value": CLASSES["AttrValue"](tensor=tensor)}
        self._nodes[name] = RaisedNode(name, "Const", (), attr)
        return name

    # --- one node each ---

    def _write(self, node: OldNode) -> None:
        place = self._work.places.of_node(node.name)
        problem = self._problem(node, place)
        if problem is not None:
            self._work.refused[self._name, node.name] = problem
            self._nodes[node.name] = RaisedNode(node.name, node.op, ())
        elif node.op in MERGES:
            self._merge(node)
        elif node.op in EXITS and node.reads[0] is not None:
            loop = self._work.graph.loop_of[node.reads[0][0]]
            made = self._node_of(loop.name, lambda: self._loop(loop))
            self._identity(node, [self._form(made.name, made.slots[self._work.resolved((node.reads[0][0], 1))])])
        elif node.op in ENTERS or node.op == "LoopCond":
            self._identity(node, [self.text(one) for one in node.reads if one is not None])
        else:
            inputs = [self.text(one) for one in node.reads if one is not None]
            self._nodes[node.name] = RaisedNode(node.name, node.op, inputs, node.attr)

    def _problem(self, node: OldNode, place: Place | None) -> TractError | None:
        """Why a node cannot be written here."""
        if place is None:  # it is in a circle, which whoever puts nodes into order finds unless it is cut here
            said = "the nodes depend on each other in a circle, other than by a NextIteration"
            return CorruptModel(said, where=node_place(node.proto)) if node.op in OLD else None
        here = place.context is self._context or _is_small(node)
        fits = here and not place.dead and node.op not in SWITCHES and node.op not in NEXTS
        return place.problem or (None if fits else self._misplaced(node))

    def _misplaced(self, node: OldNode) -> TractError:
        where = node_place(node.proto)
        if node.op in NEXTS:
            return Unsupported("what an iteration hands on is read outside of a loop", where=where)
        return Unsupported(
            "it is computed in one branch of a condition only, or inside of a loop",
            where=where,
            hint="take the Merge, or the Exit, that it leads to",
        )

    def _identity(self, node: OldNode, inputs: Sequence[str]) -> None:
        self._nodes[node.name] = RaisedNode(node.name, "Identity" if len(inputs) == 1 else "IdentityN", inputs)

    def _merge(self, node: OldNode) -> None:
        work, choice = self._work, self._work.places.choices.get(node.name)
        if choice is None:
            slot = work.places.passed[node.name]
            inputs = [self.text(one) for one in (node.reads[slot],) if one is not None]
            inputs += [self.number(slot)] if node.name in work.numbered else []
        else:
            made = self._node_of((choice.key, choice.base, choice.level), lambda: self._choice(choice))
            slots = [made.slots[node.name, one] for one in range(2) if (node.name, one) in made.slots]
            inputs = [self._form(made.name, slot) for slot in slots]
        self._identity(node, inputs)

    def _node_of(self, key: object, make: Callable[[], _Made]) -> _Made:
        """The node of a choice, or of a loop, which is written here unless it is already."""
        made = self._work.made.get(key)
        if made is None:
            made = self._work.made[key] = make()
        if made.name not in self._nodes:
            self._nodes[made.name] = RaisedNode(made.name, made.op, (), made.attr)  # until its inputs are written
            inputs = [self.text(one) for one in made.given]
            self._nodes[made.name] = RaisedNode(made.name, made.op, inputs, made.attr)
        return made

    def _choice(self, choice: Choice) -> _Made:
        work, merges = self._work, self._work.group_of(choice)
        arguments: dict[Reference, str] = {}
        slots: dict[Reference, int] = {}
        for name in merges:
            slots[name, 0] = len(slots)
            if name in work.numbered:
                slots[name, 1] = len(slots)
        functions = [self._branch(choice, taken, arguments) for taken in range(len(choice.slots))]
        for writer, results in functions:
            writer.function(results)
        names = [writer.name for writer, _ in functions]
        given = [choice.key[0], *arguments]
        if choice.key[1]:
            listed = CLASSES["ListValue"](func=[CLASSES["NameAttrList"](name=name) for name in names])
            attr = {"branches": CLASSES["AttrValue"](list=listed)}
            return _Made(work.fresh(f"{merges[0]}.case"), "StatelessCase", attr, given, slots)
        attr = {"else_branch": _function_attr(names[0]), "then_branch": _function_attr(names[1])}
        return _Made(work.fresh(f"{merges[0]}.if"), "StatelessIf", attr, given, slots)

    def _branch(self, choice: Choice, taken: int, arguments: dict[Reference, str]) -> tuple[_Writer, list[str]]:
        """The nodes of a branch, and the texts of what it gives to the Merges."""
        work, merges = self._work, self._work.group_of(choice)
        function = work.fresh_function(f"{merges[0]}.branch{taken}")
        writer = _Writer(work, choice.base.child(choice.key, taken), function, arguments=arguments)
        results: list[str] = []
        for name in merges:
            slot = work.places.choices[name].slots[taken]
            read = work.graph.nodes[name].reads[slot]
            assert read is not None  # or it were no choice
            results += [writer.text(read), *([writer.number(slot)] if name in work.numbered else [])]
        writer.write()
        return writer, results

    def _loop(self, loop: OldLoop) -> _Made:
        work, merges = self._work, self._work.variables[loop.name]
        arguments = {(name, 0): work.fresh(f"carried{slot}") for slot, name in enumerate(merges)}
        context = work.places.of((merges[0], 0)).context
        condition = _Writer(work, context, work.fresh_function(f"{loop.name}.condition"), arguments=arguments)
        body = _Writer(work, context, work.fresh_function(f"{loop.name}.body"), arguments=arguments)
        going = [condition.result(one) for one in work.graph.nodes[loop.name].reads[:1] if one is not None]
        after = [work.graph.nodes[loop.variables[name][1]] for name in merges]
        results = [body.result(one) for node in after for one in node.reads[:1] if one is not None]
        condition.write()
        body.write()
        condition.function(going)
        body.function([*results, *[*arguments.values()][len(merges) :]])
        attr = {"cond": _function_attr(condition.name), "body": _function_attr(body.name)}
        given = [loop.variables[name][0] for name in merges] + [*arguments][len(merges) :]
        slots = {(name, 0): slot for slot, name in enumerate(merges)}
        return _Made(loop.name, "StatelessWhile", attr, given, slots)

    @property
    def name(self) -> str:
        """The function's name."""
        return self._name

    def result(self, reference: Reference) -> str:
        """The text of what a function gives; one of what is inside of a branch in it is a node that is refused."""
        place = self._work.places.of(self._work.resolved(reference))
        if self._context.is_in(place.context) and place.problem is None and not place.dead:
            return self.text(reference)
        node = self._work.graph.nodes[reference[0]]
        self._work.refused[self._name, node.name] = place.problem or self._misplaced(node)
        self._nodes[node.name] = RaisedNode(node.name, node.op, ())
        return self._form(*reference)


def _function_attr(name: str) -> Any:
    return CLASSES["AttrValue"](func=CLASSES["NameAttrList"](name=name))


def _is_small(node: OldNode) -> bool:
    """Whether a node is a number, which is written wherever it is read: what counts is told by it."""
    return node.op == "Const" and "value" in node.attr and not node.attr["value"].tensor.tensor_shape.dim
