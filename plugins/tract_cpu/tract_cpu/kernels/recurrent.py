"""Gates of recurrent networks: the product of the state with its weights, and all that follows it, in one go.

The columns of the weights come in as many groups as there are gates, one column for each hidden unit in every group.
They are packed into panels of as many units as a vector has lanes: in a panel, the rows follow each other, and in a row
one vector of each gate. So all gates of some units are summed side by side, stay in registers, and become the new state
of these units there. The weights are read once, one after the other, and nothing else takes time beside that.
"""

from __future__ import annotations

from collections.abc import Sequence

from tract_llvm.elements.expressions import Expression, rounded
from tract_llvm.fuse.steps import Fold, Load, RowStep
from tract_llvm.language.buffers import Buffer
from tract_llvm.language.types import ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.signature import Each, Memory, Signature, Size
from tract_cpu.kernels.sums import SMALL_TILES, Sums, Tile


@frozen
class GatesPlan:
    """``tile``: rows, and gates side by side. ``expression``: what becomes of a sum, its first operand.

    ``along_columns``: of each further operand, whether it moves along the columns (else, one element is for all).
    ``steps``: what is computed of the gates: `Load` of a number below that of the gates is a gate, one from there on an
    element of ``tensors``, of which each says its type, and whether it moves along the units. ``results``: the numbers
    of the values that are written, with the types that they have in memory; a value may be written to several places.
    ``left``, ``right``: the types of the factors. ``masks``: whether whole vectors are written under masks, too.
    """

    tile: Tile
    left: ElementType
    right: ElementType
    expression: Expression
    along_columns: tuple[bool, ...]
    steps: tuple[RowStep, ...]
    tensors: tuple[tuple[ElementType, bool], ...]
    results: tuple[tuple[int, ElementType], ...]
    masks: bool

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "gates"

    @property
    def gates(self) -> int:
        """How many there are."""
        return self.tile.vectors

    @property
    def signature(self) -> Signature:
        """What it is called with."""

        def each(name: str, types: Sequence[ElementType]) -> Each:
            return Each(name, tuple((Memory("tensor", one), Size("row")) for one in types))

        return Signature.of(
            *map(Size, ("rows", "units", "depth")),
            Memory("left", self.left),
            Size("left_row"),
            Size("left_step"),
            Memory("right", self.right),
            each("further", self.expression.inputs[1:]),
            each("tensors", [one for one, _ in self.tensors]),
            each("results", [one for _, one in self.results]),
        )

    def emit(self, k: Kernel) -> None:
        """Task by task, the units of a panel, for all rows of the state."""
        gates = _Gates(self, k)
        with k.loop("task", k.end, k.begin) as task:
            gates.panel(task)


class _Gates:
    """The gates while they are written. Sizes: rows of the state, hidden units, and units of the state that is read."""

    def __init__(self, plan: GatesPlan, k: Kernel) -> None:
        self.plan, self.k = plan, k
        taken = plan.signature.taken(k)
        self.rows, self.units, self.depth = map(taken.size, ("rows", "units", "depth"))
        self._left, self._left_row, self._left_step = (
            taken.memory("left"),
            *map(taken.size, ("left_row", "left_step")),
        )
        self._right = taken.memory("right")
        # Each with the distance of its rows.
        self._further, self._tensors, self._results = (
            [(one.memory("tensor"), one.size("row")) for one in taken.each(name)]
            for name in ("further", "tensors", "results")
        )

    def panel(self, task: Value) -> None:
        """The units of one panel."""
        k, tile = self.k, self.plan.tile
        unit = task * tile.lanes
        weights = self._right.at(task * self.depth * tile.columns)
        done: Value = k.index(0)
        for height in [tile.rows, *(one for one in SMALL_TILES if one < tile.rows)]:
            limit = self.rows - (self.rows - done) % height
            with k.loop(f"rows{height}", limit, done, height) as row:
                self._tile(height, row, unit, weights)
            done = limit

    def _tile(self, height: int, row: Value, unit: Value, weights: Buffer) -> None:
        k, plan, tile = self.k, self.plan, self.plan.tile
        sums = Sums(k, tile, plan.expression.inputs[0].computed, height)
        kind = plan.expression.inputs[0].computed
        rows = [self._left.at((row + one) * self._left_row) for one in range(height)]

        def add(d: Value, chain: int) -> None:
            places = [d * tile.columns + gate * tile.lanes for gate in range(plan.gates)]
            columns = [k.convert(weights.vector(one, tile.lanes), kind) for one in places]
            for one, left in enumerate(rows):
                sums.add(chain, one, k.convert(left[d * self._left_step], kind).splat(tile.lanes), columns)

        totals = sums.along(self.depth, add)
        if height == 1:
            self._write(totals[0], row, unit)
            return
        laid = k.own(kind, height * tile.columns)
        for one, line in enumerate(totals):
            for gate, total in enumerate(line):
                laid.put(one * tile.columns + gate * tile.lanes, total)
        with k.loop("row", height) as one:
            starts = range(0, tile.columns, tile.lanes)
            self._write([laid.vector(one * tile.columns + start, tile.lanes) for start in starts], row + one, unit)

    def _write(self, sums: Sequence[Value], row: Value, unit: Value) -> None:
        """Make the new state of the units of a row, and write it."""
        k, lanes = self.k, self.plan.tile.lanes
        mask = k.mask(self.units - unit, lanes)
        if self.plan.masks:
            self._write_under(sums, row, unit, mask)
            return
        with k.either(self.units - unit >= lanes) as (then, otherwise):
            with then:
                self._write_under(sums, row, unit, None)
            with otherwise:
                self._write_under(sums, row, unit, mask)

    def _write_under(self, sums: Sequence[Value], row: Value, unit: Value, mask: Value | None) -> None:
        plan, lanes = self.plan, self.plan.tile.lanes
        gates = [self._gate(number, one, row, unit, mask) for number, one in enumerate(sums)]
        values: list[Value] = []
        for step in plan.steps:
            if isinstance(step, Load):
                number = step.tensor - plan.gates
                values.append(gates[step.tensor] if number < 0 else self._element(number, row, unit, mask))
                continue
            assert not isinstance(step, Fold)  # nothing is reduced here
            found = step.emit(step.op, *(values[operand] for operand in step.operands))
            values.append(rounded(found, step.result).splat(lanes))
        for (number, _), (target, stride) in zip(plan.results, self._results, strict=True):
            target.put(row * stride + unit, values[number], mask)

    def _gate(self, number: int, total: Value, row: Value, unit: Value, mask: Value | None) -> Value:
        """A gate, of its sum and what else it is made of."""
        plan, lanes = self.plan, self.plan.tile.lanes
        operands = [rounded(total, plan.expression.inputs[0])]
        for (source, stride), along in zip(self._further, plan.along_columns, strict=True):
            place = row * stride
            if along:
                operands.append(source.vector(place + (self.units * number + unit), lanes, mask))
            else:
                operands.append(source[place].splat(lanes))
        return plan.expression.compute(operands)

    def _element(self, number: int, row: Value, unit: Value, mask: Value | None) -> Value:
        (source, stride), lanes = self._tensors[number], self.plan.tile.lanes
        _, moves = self.plan.tensors[number]
        return source.vector(row * stride + unit, lanes, mask) if moves else source[row * stride].splat(lanes)
