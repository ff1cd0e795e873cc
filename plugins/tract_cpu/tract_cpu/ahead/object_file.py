"""A model as one object file: its kernels, what calls them, and its constants."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from hashlib import sha256
from itertools import pairwise
from typing import Any, Final

import numpy as np
from tract_llvm.llvm import LOCK, ir
from tract_llvm.objects.library import module_text
from tract_llvm.objects.target import machine_for, optimised_for, parsed

from tract_core.errors import InputError, Unsupported
from tract_core.frozen import frozen
from tract_core.model.fact import TypedFact
from tract_core.model.typed import TypedModel
from tract_core.plugins.keys import Array
from tract_cpu.ahead.arm import ARM, FUNCTIONS
from tract_cpu.ahead.glue import CONSTANTS, Glue, function_names
from tract_cpu.ahead.layout import Laid, laid
from tract_cpu.ahead.open_glue import OpenGlue
from tract_cpu.ahead.sharing import MOST_THREADS
from tract_cpu.ahead.stack import stack_of, unprobed
from tract_cpu.ahead.targets import ObjectTarget
from tract_cpu.aligned import ALIGNMENT
from tract_cpu.compile import compiled
from tract_cpu.kernels.code import code_of
from tract_cpu.lay_arguments import native_steps
from tract_cpu.target import Target

_MARK: Final = 32
"""Bytes by which the place of the constants is found again in the file."""


@frozen
class CompiledModel:
    """``code``: the object file. ``name``: with which its functions begin. ``arrays``: inputs, then outputs, by name.

    ``inputs``: how many of these are inputs. ``memory``: bytes that a run works in, of which the first ``kept`` stay.
    ``constants``: those that lie apart from the code, as they follow each other, in pieces of bytes. ``threads``: how
    many may do a run; ``shared``: how many steps are cut into parts for them. ``sizes``: the names of open sizes, whose
    values runs are given; these tell how many more bytes a run works in, and how many steps are cut.
    """

    code: bytes | bytearray
    name: str
    arrays: tuple[tuple[str, TypedFact], ...]
    inputs: int
    memory: int
    kept: int
    constants: tuple[Array, ...] = ()
    threads: int = 1
    shared: int = 0
    sizes: tuple[str, ...] = ()


def compile_model(
    model: TypedModel, target: ObjectTarget, name: str, *, apart: bool = False, threads: int = 1
) -> CompiledModel:
    """Compile a model in normal form. What sizes are open, runs are told.

    ``name``: with which the functions of the object begin. ``apart``: whether its constants lie apart from the code
    (`tract_cpu.ahead.glue`). ``threads``: how many of the caller's may do a run (`tract_cpu.ahead.sharing`), which
    changes no result. Raises InputError where ``name`` is no name in C, or there are no such threads; Unsupported,
    naming them, where nodes have no native code, or what stays or lies apart has open sizes; and where the target has
    too few addresses.
    """
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise InputError(f"{name!r} is no name in C", hint="letters, digits and underscores, no digit first: --name")
    if not 1 <= threads <= MOST_THREADS:
        raise InputError(f"{threads} threads were asked for", hint=f"from 1 to {MOST_THREADS}")
    if threads > 1 and target.is_module:
        raise Unsupported(f"modules for {target.name} have one thread", hint="leave --threads out")
    planned = compiled(model, Target(target.isa, threads))
    found, formed = laid(planned, threads), planned.model
    if apart and found.open is not None:
        refuse_open(found.open.symbols)
    arrays = tuple((formed.outlet_name(one), formed.outlet_fact(one)) for one in (*formed.inputs, *formed.outputs))
    _refuse_large(found, target)
    codes = [code_of(step.kernel, target.isa) for step in native_steps(planned.program)]
    texts = [module_text(code.emit) for code in {code.name: code for code in codes}.values()]
    touched = stack_of(texts) if target.has_pages_to_touch else 0
    module: Any = ir.Module()
    kernels = [one.name for one in codes]
    made = Glue if found.open is None else partial(OpenGlue, threads=threads, limit=_limit(target))
    glue = made(module, name, target.isa, found, kernels, touched=touched, apart=apart, shared=threads > 1)
    glue.write(len(arrays))
    with LOCK:
        code = _linked(target, texts, glue)
    memory, constants = found.memory, tuple(_pieces(found)) if apart else ()
    shared, kept = sum((one or 0) > 1 for one in found.tables.parts), memory.passed - memory.kept
    sizes = found.open.symbols if found.open else ()
    return CompiledModel(code, name, arrays, len(model.inputs), memory.bytes, kept, constants, threads, shared, sizes)


def refuse_open(sizes: Sequence[str]) -> None:
    """Raise Unsupported, naming them, where there are open sizes and may be none."""
    if sizes:
        wanted = " ".join(f"--set {name}=..." for name in sizes)
        raise Unsupported(f"sizes are open: {', '.join(sizes)}", hint=f"fix them: {wanted}, or write an object file")


def _refuse_large(found: Laid, target: ObjectTarget) -> None:
    """Raise Unsupported where memory or constants have more bytes than there are addresses, but for half of them."""
    limit = _limit(target)
    for what, size in (("a run works in", found.memory.bytes), ("constants have", found.offsets[-1])):
        if size > limit:
            problem = f"{what} {size:,} bytes, and {target.name} has addresses for {limit:,}"
            raise Unsupported(problem, hint="smaller sizes, or a target of 64 bits")


def _limit(target: ObjectTarget) -> int:
    """How many bytes there may be at most."""
    return 1 << (target.address_bits - 1)


def _linked(target: ObjectTarget, kernels: Sequence[str], glue: Glue) -> bytearray:
    """The object file of kernels, each as the runtime has it, and of the functions that call them."""
    machine = machine_for(target.isa, target.triple)
    written = unprobed if target.has_pages_to_touch else str
    whole = parsed(written(_text_of(glue)), machine)
    for text in kernels:
        whole.link_in(optimised_for(written(text), machine))
    if target.isa.architecture == ARM:
        whole.link_in(parsed(FUNCTIONS, machine))
    outside = {*function_names(glue.name, shared=glue.shared, is_open=glue.laid.open is not None).values()}
    for function in whole.functions:
        if not function.is_declaration and function.name not in outside:
            function.linkage = "internal"
    code = bytearray(machine.emit_object(whole))
    if glue.apart:
        return code
    place = code.find(_mark(glue.laid))
    assert place >= 0, "LLVM writes constants as they are"
    code[place : place + _MARK] = bytes(_MARK)
    for array, offset in zip(glue.laid.constants, glue.laid.offsets, strict=False):
        begin = place + offset
        code[begin : begin + array.nbytes] = np.ascontiguousarray(array).tobytes()
    return code


def _pieces(found: Laid) -> Iterator[Array]:
    """All constants, each as long as its place."""
    for array, (begin, end) in zip(found.constants, pairwise(found.offsets), strict=True):
        content = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        yield content
        yield np.zeros(end - begin - len(content), np.uint8)


def _text_of(glue: Glue) -> str:
    """The module of the functions that call kernels, with constants that are filled in when all is written."""
    if glue.apart:
        return str(glue.module)
    more = max(glue.laid.offsets[-1] - _MARK, 0)
    mark = "".join(f"\\{byte:02x}" for byte in _mark(glue.laid))
    rest, zeros = (f", [{more} x i8]", f", [{more} x i8] zeroinitializer") if more else ("", "")
    kind = f"<{{ [{_MARK} x i8]{rest} }}>"
    held = f'@{CONSTANTS} = internal constant {kind} <{{ [{_MARK} x i8] c"{mark}"{zeros} }}>, align {ALIGNMENT}'
    declared = re.compile(rf'^@"{CONSTANTS}" = .*$', re.MULTILINE)
    return declared.sub(lambda _: held, str(glue.module), count=1)


def _mark(found: Laid) -> bytes:
    """Bytes that are nowhere else in the file."""
    return sha256(repr(found.tables).encode()).digest()[:_MARK]
