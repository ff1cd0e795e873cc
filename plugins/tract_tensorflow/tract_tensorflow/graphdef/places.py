"""In which branches and loops the nodes of a graph of TensorFlow 1 are: told from where tensors come to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from tract_core.errors import CorruptModel, LimitExceeded, TractError, Unsupported
from tract_core.frozen import frozen
from tract_core.limits import count_node
from tract_tensorflow.graphdef.node import node_place
from tract_tensorflow.graphdef.old_graph import EXITS, MERGES, NEXTS, SWITCHES, OldGraph, OldLoop, OldNode
from tract_tensorflow.graphdef.references import Reference

Key = tuple[Reference, int]
"""What tells a condition, or a loop, from others."""


class Region:
    """A branch or the body of a loop, inside of another.

    ``key``: the predicate of a branch, and among how many it chooses by its number, 0 for one that holds or not; or the
    loop's condition. ``taken``: which of the branches; ``None`` for a loop.
    """

    __slots__ = ("depth", "inside", "key", "parent", "taken")

    def __init__(self, parent: Region | None, key: Key | None = None, taken: int | None = None) -> None:
        self.parent = parent
        self.key = key
        self.taken = taken
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.inside: dict[tuple[Key, int | None], Region] = {}

    def child(self, key: Key, taken: int | None) -> Region:
        """The branch, or the loop, of that key inside this one: always the same."""
        found = self.inside.get((key, taken))
        if found is None:
            found = self.inside[key, taken] = Region(self, key, taken)
        return found

    def is_in(self, other: Region) -> bool:
        """Whether this one is the other one, or inside of it."""
        found = self
        while found.depth > other.depth and found.parent is not None:
            found = found.parent
        return found is other


@frozen
class Place:
    """Where a node is.

    ``levels``: for each context around it, how many conditions one behind the other come before it there.
    ``problem``: why it cannot be told. ``dead``: whether a constant says that it is never computed.
    """

    context: Region
    levels: tuple[int, ...]
    problem: TractError | None = None
    dead: bool = False

    __eq__ = object.__eq__
    __hash__ = object.__hash__


@frozen
class Choice:
    """A Merge of all the branches of a condition.

    ``base``: what they are in; ``key``: their predicate; ``level``: how many conditions come before it there;
    ``slots``: for each branch, which of its inputs that is.
    """

    base: Region
    key: Key
    level: int
    slots: tuple[int, ...]

    __eq__ = object.__eq__
    __hash__ = object.__hash__


_START: Final = "start"
_END: Final = "end"
_Step = str | tuple[str, str]
"""A node by its name, or that a loop starts, or has ended: ``(_START, name)``."""


class Places:
    """The place of each node. A node that needs itself, other than by a NextIteration, has none.

    ``choices``: the Merges of branches; ``passed``: those of which a constant leaves one input; ``folded``: for each
    Switch whose predicate is a constant, which output is not dead.
    """

    def __init__(self, graph: OldGraph, max_depth: int) -> None:
        self.root = Region(None)
        self.choices: dict[str, Choice] = {}
        self.passed: dict[str, int] = {}
        self.folded: dict[str, int] = {}
        self._graph = graph
        self._max_depth = max_depth
        self._everywhere = Place(self.root, (0,))
        self._found: dict[_Step, Place] = {}
        self._branches: dict[Reference, Place] = {}
        self._walk()

    def of_node(self, name: str) -> Place | None:
        """Where a node is; an argument of a function is outside of all branches. ``None`` for a circle."""
        return self._found.get(name) if name in self._graph.nodes else self._everywhere

    def of(self, reference: Reference) -> Place:
        """Where a tensor is: one of a Switch is in a branch."""
        found = self._branches.get(reference)
        if found is not None:
            return found
        found = self.of_node(reference[0]) or self._everywhere
        problem = self._misread(reference)
        return found if problem is None or found.problem is not None else self._wrong(reference[0], problem)

    def _misread(self, reference: Reference) -> TractError | None:
        name, slot = reference
        node = self._graph.nodes.get(name)
        if node is None:
            return None
        if node.op in NEXTS:
            return Unsupported("what an iteration hands on is read by something else than a Merge")
        if name in self._graph.loop_of and (node.op in MERGES) == (slot == 1):
            what = "which input a loop's Merge takes is read" if slot else "what leaves a loop is read by no Exit"
            return Unsupported(what)
        return None

    def _located(self, key: _Step, place: Place) -> Place:
        if place.problem is None or place.problem.where or not isinstance(key, str):
            return place
        return self._wrong(key, place.problem)

    # --- the walk: each node after all that it needs ---

    def _walk(self) -> None:
        graph = self._graph
        needs: dict[_Step, list[_Step]] = {name: list(self._needs(node)) for name, node in graph.nodes.items()}
        for loop in graph.loops.values():
            needs[_START, loop.name] = [start[0] for start, _ in loop.variables.values()]
            needs[_END, loop.name] = [after for _, after in loop.variables.values()]
        readers: dict[_Step, list[_Step]] = {}
        missing: dict[_Step, int] = {}
        for key, wanted in needs.items():
            there = {one for one in wanted if one in needs}
            missing[key] = len(there)
            for one in there:
                readers.setdefault(one, []).append(key)
        ready = [key for key, count in missing.items() if not count]
        while ready:
            key = ready.pop()
            count_node()
            self._found[key] = self._located(key, self._place(key, needs[key]))
            for reader in readers.get(key, ()):
                missing[reader] -= 1
                if not missing[reader]:
                    ready.append(reader)

    def _needs(self, node: OldNode) -> Iterator[_Step]:
        loop = self._graph.loop_of.get(node.name)
        if node.name in self._graph.problems:
            return
        if loop is not None and node.op in MERGES:
            yield _START, loop.name
        else:
            yield from (one[0] for one in node.reads if one is not None)
        left = self._left(node)
        if left is not None:
            yield _END, left.name
        yield from node.waits

    def _left(self, node: OldNode) -> OldLoop | None:
        """The loop that an Exit leaves."""
        if node.op not in EXITS or not node.reads or node.reads[0] is None or node.reads[0][1] != 0:
            return None
        return self._graph.loop_of.get(node.reads[0][0]) if self._graph.op(node.reads[0]) in SWITCHES else None

    def _place(self, key: _Step, needs: list[_Step]) -> Place:
        if not isinstance(key, str):
            problem = self._graph.loops[key[1]].problem
            if problem is not None:
                return Place(self.root, (0,), problem)
            return self._joined(self._found.get(one, self._everywhere) for one in needs)
        node = self._graph.nodes[key]
        if key in self._graph.problems:
            return Place(self.root, (0,), self._graph.problems[key])
        if node.op == "ControlTrigger":
            return self._everywhere
        waits = [self._found.get(name, self._everywhere) for name in node.waits]
        waits = [one for one in waits if one.problem is None]  # nothing of it is computed here
        if node.op in MERGES:
            return self._merge(node, waits)
        if node.op in EXITS:
            return self._exit(node)
        found = self._joined([*(self.of(one) for one in node.reads if one is not None), *waits])
        if found.problem is None and not found.dead and node.op in SWITCHES and key not in self._graph.loop_of:
            return self._switch(node, found)
        return found

    def _joined(self, places: Iterable[Place]) -> Place:
        """Where what needs all of these is."""
        found = self._everywhere
        for place in places:
            if place is found:
                continue
            if place.problem is not None or found.problem is not None:
                found = place if found.problem is None else found
            elif place.dead or found.dead:
                found = place if place.dead else found
            else:
                found = self._deeper(found, place)
        return found

    def _deeper(self, a: Place, b: Place) -> Place:
        low, high = (a, b) if a.context.depth <= b.context.depth else (b, a)
        if not high.context.is_in(low.context):
            error = Unsupported("a node reads tensors of two branches, or loops, of which none is in the other")
            return Place(self.root, (0,), error)
        levels = (*map(max, low.levels, high.levels), *high.levels[len(low.levels) :])
        return high if levels == high.levels else Place(high.context, levels)

    def _inside(self, place: Place, key: Key, taken: int | None) -> Place:
        if place.context.depth >= self._max_depth:
            error = LimitExceeded(
                f"branches and loops are more than {self._max_depth} deep inside one another",
                hint="a model that needs so many can be loaded with LoadLimits(max_depth=...)",
            )
            return Place(self.root, (0,), error)
        return Place(place.context.child(key, taken), (*place.levels, 0))

    def _wrong(self, name: str, error: TractError) -> Place:
        return Place(self.root, (0,), error.at(node_place(self._graph.nodes[name].proto)))

    def _switch(self, node: OldNode, place: Place) -> Place:
        if len(node.reads) != 2 or node.reads[1] is None:
            return self._wrong(node.name, CorruptModel(f"it has {len(node.reads)} inputs, two are wanted"))
        count = int(node.attr["num_outs"].i) if node.op == "_SwitchN" and "num_outs" in node.attr else 0
        if not 0 <= count <= self._max_depth:
            return self._wrong(node.name, LimitExceeded(f"{count} branches, from 1 to {self._max_depth} are allowed"))
        known = self._graph.known(node.reads[1])
        if known is not None and count:
            known = known if 0 <= known < count else count - 1
            self.folded[node.name] = known
        elif known is not None:
            self.folded[node.name] = known = int(bool(known))
        key = (self._graph.origin(node.reads[1]), count)
        for slot in range(count or 2):
            if known is None:
                self._branches[node.name, slot] = self._inside(place, key, slot)
            else:
                self._branches[node.name, slot] = Place(place.context, place.levels, dead=slot != known)
        return place

    def _merge(self, node: OldNode, waits: list[Place]) -> Place:
        loop = self._graph.loop_of.get(node.name)
        if loop is not None:
            found = self._joined([self._found[_START, loop.name], *waits])
            return found if found.problem is not None or found.dead else self._inside(found, ((loop.name, 0), 0), None)
        if len(node.reads) < 2 or None in node.reads:
            return self._wrong(node.name, CorruptModel(f"it joins {len(node.reads)} tensors, two or more are wanted"))
        places = [self._joined([self.of(one), *waits]) for one in node.reads if one is not None]
        broken = next((one for one in places if one.problem is not None), None)
        if broken is not None:
            return broken
        alive = [slot for slot, one in enumerate(places) if not one.dead]
        if len(alive) < 2:  # a constant says which
            self.passed[node.name] = alive[0] if alive else 0
            return places[self.passed[node.name]]
        return self._choice(node, places)

    def _choice(self, node: OldNode, places: list[Place]) -> Place:
        context = places[0].context
        base, key = context.parent, context.key
        taken = {one.context.taken: slot for slot, one in enumerate(places)}
        alike = all(one.context.parent is base and one.context.key == key for one in places)
        wanted = range(2 if key is None or not key[1] else key[1])
        if base is None or key is None or not alike or len(places) != len(wanted) or taken.keys() != set(wanted):
            error = Unsupported("what it joins is not what the branches of one predicate give, one each")
            return self._wrong(node.name, error)
        levels = [*map(max, *(one.levels[:-1] for one in places))]
        self.choices[node.name] = Choice(base, key, levels[-1], tuple(taken[branch] for branch in wanted))
        levels[-1] += 1
        return Place(base, tuple(levels))

    def _exit(self, node: OldNode) -> Place:
        loop = self._left(node)
        if loop is None:
            read = self._joined(self.of(one) for one in node.reads if one is not None)
            if read.problem is not None:
                return read
            return self._wrong(node.name, Unsupported("it is not what leaves a loop: the first output of its Switch"))
        switch = self._found[node.reads[0][0]] if node.reads[0] is not None else self._everywhere
        found = self._joined([switch, self._found[_END, loop.name]])
        if found.problem is not None or found.dead:
            return found
        if found.context.key != ((loop.name, 0), 0) or found.context.parent is None or found.context.taken is not None:
            return self._wrong(node.name, Unsupported("an iteration of its loop ends inside of a branch"))
        return Place(found.context.parent, found.levels[:-1])
