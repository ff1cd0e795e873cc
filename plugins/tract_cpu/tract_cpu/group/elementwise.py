"""Element-wise operators and those that reduce: neighbours of them are one kernel."""

from __future__ import annotations

from functools import partial

from tract_llvm.fuse.chain import chain_from
from tract_llvm.fuse.nest import Nest
from tract_llvm.fuse.region import Operand, region_from

from tract_core.model.op import TypedOp
from tract_cpu.group.blocks import NestInBlocks
from tract_cpu.group.groups import CpuGroup, Elements, Reduced
from tract_cpu.group.start import Start, read_along
from tract_cpu.program.form import Form


def group_elements(op: TypedOp, start: Start) -> CpuGroup:
    """The program for rows that begins with the operator; where nothing is reduced, the chain.

    On tensors in blocks of channels where one of them is in blocks.
    """
    form = _form(start)
    rows = _rows(start, form)
    if rows is not None:
        return rows
    chain = None if form is None else chain_from(start.walk, start.node.node, start.operands(form))
    if form is not None and chain is None:
        rows = _rows(start, None)
        if rows is not None:
            return rows
        form = None
    if chain is None:
        chain = chain_from(start.walk, start.node.node, start.operands(None))
    if chain is None:
        return start.host("native code does not know these types, or a symbolic size may have to stretch")
    return Elements(chain.nodes, tuple(read_along(chain, form)), form, chain)


def group_rows(op: TypedOp, start: Start) -> CpuGroup:
    """The program for rows that begins with the operator."""
    form = _form(start)
    found = None if form is None else _rows(start, form)
    found = found or _rows(start, None)
    return found or start.host("native code does not know this operator on these types, or a part of it")


def _rows(start: Start, form: Form | None) -> Reduced | None:
    """The program for rows that begins with the operator, if there is one. ``form``: of the blocks it works in."""
    nest_of = Nest if form is None else partial(NestInBlocks.of, form=form)
    region = region_from(start.walk, start.node.node, start.operands(form), nest_of)
    if region is None:
        return None
    loaded = [one.outlet for one in region.tensors if isinstance(one, Operand)]
    return Reduced(region.nodes, tuple((outlet, form) for outlet in loaded), form, region)


def _form(start: Start) -> Form | None:
    """The form of the operands that are only there in blocks."""
    forms = (start.only_blocked(slot) for slot in range(len(start.node.inputs)))
    return next((form for form in forms if form is not None), None)
