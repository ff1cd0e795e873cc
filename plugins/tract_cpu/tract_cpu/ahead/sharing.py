"""Steps that several threads of the caller do: how a run asks for them, and what each thread calls.

``NAME_run_shared(memory, share, pool, inputs ..., outputs ...)`` runs the model. Where a step is cut into parts, it
calls ``share(pool, parts, part, work)``, whose caller has ``part(work, number)`` called once for every number below
``parts``, on whatever threads, and returns when all have. Nothing else is wanted of threads. Without ``share``, all is
done at once, one part after the other, and so it is in ``NAME_run``.

What is to be done lies in memory: one line of words, which the run writes before it asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tract_llvm.isa import Isa
from tract_llvm.language.function import Function
from tract_llvm.language.types import BOOL, I32, INDEX, POINTER, ElementType, ir_type
from tract_llvm.language.values import Value
from tract_llvm.llvm import ir

KERNEL, ARGUMENTS, TASKS, PARTS, SCRATCH, SCRATCH_BYTES, COURSE = range(7)
"""The words: addresses of a kernel, of its arguments, of memory for each part, and of where steps say how to go on; how
many tasks and parts there are, and how many bytes the memory for each has."""


def write_part(module: Any, name: str, isa: Isa, touch: Any) -> Any:
    """``name(work, number)`` does one part of a step. ``touch``: what is called before. Returns the function."""
    f = Function(module, name, isa, [POINTER, I32])
    f.function.linkage = "internal"
    if touch is not None:
        f.builder.call(touch, [])
    work, part = f.buffer(0, INDEX), f.convert(f.argument(1), INDEX)
    begin, end = (work[TASKS] * one // work[PARTS] for one in (part, part + 1))
    scratch = work[SCRATCH] + part * work[SCRATCH_BYTES]
    arguments, own, course = (_pointer(f, one) for one in (work[ARGUMENTS], scratch, work[COURSE]))
    kind = ir.FunctionType(ir.VoidType(), [ir_type(one) for one in (POINTER, INDEX, INDEX, POINTER, POINTER)])
    kernel = f.builder.inttoptr(work[KERNEL].ir, kind.as_pointer())
    f.builder.call(kernel, [arguments, begin.ir, end.ir, own, course])
    f.finish()
    return f.function


def write_call(f: Function, part: Any, work: Value, parts: Value) -> None:
    """Have all parts done of what ``work`` is the address of, by the ``share`` and ``pool`` that ``f`` was given."""
    pointer, number = ir_type(POINTER), ir_type(I32)
    share, pool = f.function.args[1], f.function.args[2]
    given = f.builder.icmp_unsigned("!=", share, ir.Constant(pointer, None))
    with f.either(Value(f, given, BOOL)) as (shared, alone):
        with shared:
            kind = ir.FunctionType(ir.VoidType(), [pointer, number, pointer, pointer])
            called = f.builder.inttoptr(f.builder.ptrtoint(share, ir_type(INDEX)), kind.as_pointer())
            f.builder.call(called, [pool, f.convert(parts, I32).ir, part, _pointer(f, work)])
        with alone, f.loop("part", parts) as one:
            f.builder.call(part, [_pointer(f, work), f.convert(one, I32).ir])


def write_alone(module: Any, name: str, isa: Isa, given: Sequence[ElementType]) -> None:
    """``name_run`` as ``name_run_shared`` without anybody to share with. ``given``: what comes behind memory."""
    f = Function(module, f"{name}_run", isa, [POINTER, *given], I32)
    memory, *others = f.function.args
    nobody = ir.Constant(ir_type(POINTER), None)
    found = f.builder.call(module.globals[f"{name}_run_shared"], [memory, nobody, nobody, *others])
    f.finish(Value(f, found, I32))


def _pointer(f: Function, address: Value) -> Any:
    return f.builder.inttoptr(address.ir, ir_type(POINTER))


MOST_THREADS: Final = 1 << 10
"""Each has memory of its own for what kernels work with."""
