"""The groups of a model in native form, or of a body in it."""

from __future__ import annotations

from tract_llvm.elements.expressions import ELEMENTS
from tract_llvm.fuse.nest import NESTS

from tract_core.compile.groups import given_by
from tract_core.errors import FactError
from tract_core.ops.axis import AxisOp
from tract_core.plugins.distributions import CORE
from tract_core.plugins.keys import REFERENCE
from tract_core.plugins.registry import Registry
from tract_core.runtime.host import HostNode
from tract_cpu.group.elementwise import group_elements, group_rows
from tract_cpu.group.groups import CpuGroup, Host
from tract_cpu.group.start import GROUPS, Start, StartFn
from tract_cpu.group.walk import CpuWalk
from tract_cpu.table import BLOCKS, CPU, MOVES

NO_ROW = "there is no native code for this operator yet"


class CpuGrouper(CpuWalk):
    """Puts nodes into groups by the table ``cpu_groups``; what native code cannot compute is left to the host."""

    def begin(self, node: HostNode) -> CpuGroup | None:
        """The group that begins with a node."""
        known, start = self.known, Start(self, node)
        if not has_native_code(self.model.registry, type(node.op)):
            return start.host(self._why_no_row(node))
        if known.wants_reading(node):
            known.learn(node)
        why = known.why_unfit(node.node) or self.refused.get(node.node)
        if why is not None:
            return start.host(why)
        try:
            return _row(self.model.registry, type(node.op))(node.op, start)
        except FactError as error:  # more is known now than when it was wired: every run is refused
            return start.host(f"sizes do not fit: {error.problem}")

    def begin_early(self, node: HostNode) -> CpuGroup | None:
        """Element-wise operators, and those on axes, may be computed before their turn."""
        kind, known = type(node.op), self.known
        if not issubclass(kind, AxisOp) and self.model.registry[ELEMENTS].find(kind) is None:
            return None
        if not has_native_code(self.model.registry, kind) or known.why_unfit(node.node) is not None:
            return None
        found = self.begin(node)
        return None if isinstance(found, Host) else found

    def added(self, group: CpuGroup) -> None:
        """Note how tensors are there now, and what is known of sizes that a node of the host gives values."""
        for outlet, form in group.reads:
            self.layouts.read(outlet, form)
        for outlet in given_by(self.model, group.nodes):
            self.layouts.write(outlet, group.form)
        for number in group.nodes if isinstance(group, Host) else ():
            if self.nodes[number].binds:
                self.known.learn(self.nodes[number])

    def _why_no_row(self, node: HostNode) -> str:
        """Why an operator that native code has no row for is left to the host."""
        registry, kind = self.model.registry, type(node.op)
        if registry[REFERENCE].owner(kind) in (None, CORE):
            return NO_ROW
        from tract_cpu.tracing.meaning import meaning_of  # most models do without

        return meaning_of(self.model, node.op, self.known.facts_of(node)).why or NO_ROW


def has_native_code(registry: Registry, op: type) -> bool:
    """Whether there is some for operators of a type."""
    tables = (registry[CPU], registry[MOVES], registry[NESTS], registry[ELEMENTS], registry[BLOCKS])
    return any(table.find(op) is not None for table in tables)


def _row(registry: Registry, op: type) -> StartFn:
    """Which group begins with operators of a type."""
    found = registry[GROUPS].find(op)
    if found is None and (registry[CPU].find(op) or registry[MOVES].find(op)) is not None:
        return lambda _, start: start.alone()
    return found or (group_rows if registry[NESTS].find(op) is not None else group_elements)
