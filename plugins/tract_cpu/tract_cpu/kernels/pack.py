"""Right matrices of products as panels: as many columns as a tile has, one panel after the other, rows from the top."""

from __future__ import annotations

from dataclasses import dataclass

from tract_llvm.language.buffers import Buffer
from tract_llvm.language.types import ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cpu.kernels.dots import GROUPED, DotGrouping, as_integers
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.signature import Memory, Signature, Size
from tract_cpu.kernels.sums import Tile


@frozen
class PackPlan:
    """Packs a right matrix into panels.

    ``held``: the type of what is in no groups there. ``across``: whether neighbours in a row lie beside each other in
    memory. ``grouping``: how neighbours in a column are put together.
    """

    tile: Tile
    element: ElementType
    held: ElementType
    across: bool
    grouping: DotGrouping | None = None

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "pack"

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        strides = Size("down"), Size("across"), Size("pair")
        source, packed = Memory("source", self.element), Memory("packed", self.held)
        return Signature.of(Size("columns"), Size("depth"), source, *strides, packed)

    def emit(self, k: Kernel) -> None:
        """packed[pair, panel, d, column of the panel] = right[pair, d, column], zero where there is no such column.

        With groups, d counts these, and zeros are where the last one goes beyond the last row.
        """
        taken = self.signature.taken(k)
        columns, depth = taken.size("columns"), taken.size("depth")
        source, (down, across, pair_stride) = taken.memory("source"), map(taken.size, ("down", "across", "pair"))
        packed, lines, width = taken.memory("packed"), depth, self.tile.columns
        if self.grouping is not None:
            packed, lines = packed.of(GROUPED), (depth + (self.grouping.size - 1)) // self.grouping.size
            lines = lines + 1 if self.grouping.flips else lines
        panels = (columns + (width - 1)) // width
        with k.loop("task", k.end, k.begin) as task:
            first = (task % panels) * width
            begin = source.at((task // panels) * pair_stride + first * across)
            panel = _Panel(self, k, begin, down, across, columns - first, depth)
            target = packed.at(task * width * lines)
            if self.grouping is None:
                panel.pack(target)
            elif self.across:
                panel.pack_lines_of_groups(target, self.grouping)
            else:
                panel.pack_columns_of_groups(target, self.grouping)


@dataclass(frozen=True, slots=True, eq=False)
class _Panel:
    """A panel while it is packed: where its elements are, how many columns there are from there on, and its depth."""

    plan: PackPlan
    k: Kernel
    source: Buffer
    down: Value
    across: Value
    columns: Value
    depth: Value

    def pack(self, target: Buffer) -> None:
        """One line for each row."""
        k, tile = self.k, self.plan.tile
        with k.loop("depth", self.depth) as d:
            for v in range(0, tile.columns, tile.lanes):
                if self.plan.across:
                    target.put(d * tile.columns + v, self._line(self.source, d, v))
                    continue
                for lane in range(v, v + tile.lanes):
                    kept = k.variable(k.constant(0, self.plan.element.computed))
                    with k.when(self.columns > lane):
                        kept.value = self.source[d * self.down + self.across * lane]
                    target[d * tile.columns + lane] = kept.value

    def pack_lines_of_groups(self, target: Buffer, grouping: DotGrouping) -> None:
        """One line for the groups of so many rows, behind one of what sums start at, where that is not zero."""
        k, tile, whole = self.k, self.plan.tile, self.depth // grouping.size
        source, begin = as_integers(self.source), target.at(tile.columns) if grouping.flips else target
        for v in range(0, tile.columns, tile.lanes):
            nothing = k.constant(0, GROUPED, tile.lanes)
            total = k.variable(nothing)
            with k.loop("depth", whole) as d:
                places = [d * grouping.size + place for place in range(grouping.size)]
                group = [k.convert(self._line(source, one, v), GROUPED) for one in places]
                begin.put(d * tile.columns + v, grouping.joined(group))
                if grouping.flips:
                    total.value = sum(group, total.value)
            with k.when((whole * grouping.size).differs(self.depth)):
                rest = [k.variable(nothing) for _ in range(grouping.size - 1)]
                for place, one in enumerate(rest):
                    with k.when(whole * grouping.size + place < self.depth):
                        one.value = k.convert(self._line(source, whole * grouping.size + place, v), GROUPED)
                begin.put(whole * tile.columns + v, grouping.joined([one.value for one in rest]))
                if grouping.flips:
                    total.value = sum((one.value for one in rest), total.value)
            if grouping.flips:
                target.put(v, total.value * grouping.half)

    def pack_columns_of_groups(self, target: Buffer, grouping: DotGrouping) -> None:
        """The same, column by column: those of a group lie beside each other, or wherever they do."""
        k, width = self.k, self.plan.tile.columns
        source, begin = as_integers(self.source), target.at(width) if grouping.flips else target
        with k.loop("column", width) as column:
            total = k.variable(k.constant(0, GROUPED))
            line = source.at(column * self.across)
            depth = k.select(column < self.columns, self.depth, 0)
            with k.loop("depth", self.depth, step=grouping.size) as d:
                group = [k.variable(total.value.like(0)) for _ in range(grouping.size)]
                for place, one in enumerate(group):
                    with k.when(d + place < depth):
                        one.value = k.convert(line[(d + place) * self.down], GROUPED)
                begin[d // grouping.size * width + column] = grouping.joined([one.value for one in group])
                if grouping.flips:
                    total.value = sum((one.value for one in group), total.value)
            if grouping.flips:
                target[column] = total.value * grouping.half

    def _line(self, source: Buffer, d: Value, v: int) -> Value:
        """The elements of a row, from a column of the panel on, with zeros for columns that there are not."""
        lanes = self.plan.tile.lanes
        return source.at(d * self.down).vector(v, lanes, self.k.mask(self.columns - v, lanes))
