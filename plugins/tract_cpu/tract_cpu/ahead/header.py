"""The header of C of a compiled model: what is called, with what, and how much memory it takes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from tract_core.data import DatumType
from tract_cpu.ahead.object_file import CompiledModel
from tract_cpu.aligned import ALIGNMENT

_TYPES: Final = {
    DatumType.BOOL: "uint8_t",
    DatumType.F16: "uint16_t",
    DatumType.BF16: "uint16_t",
    DatumType.F32: "float",
    DatumType.F64: "double",
    **{kind: f"uint{8 * kind.itemsize}_t" for kind in (DatumType.U8, DatumType.U16, DatumType.U32, DatumType.U64)},
    **{kind: f"int{8 * kind.itemsize}_t" for kind in (DatumType.I8, DatumType.I16, DatumType.I32, DatumType.I64)},
}
"""What elements are in C; halves are their bits."""

_KEYWORDS: Final = frozenset(
    """
    auto break case char const continue default do double else enum extern float for goto if inline int long register
    restrict return short signed sizeof static struct switch typedef union unsigned void volatile while memory
    share pool shapes
    """.split()  # noqa: SIM905 (a line each is longer than what it says)
)


def header_text(found: CompiledModel) -> str:
    """The whole file."""
    name, upper = found.name, found.name.upper()
    parameters = _parameters([*found.sizes, *(label for label, _ in found.arrays)])
    sizes, arrays = parameters[: len(found.sizes)], parameters[len(found.sizes) :]
    lines = [
        f"/* {name}: a model, compiled by tract.",
        "",
        "   One piece of memory is for one run at a time; after start, it may not be moved.",
        *(f"   {line}" for line in _told(found, sizes, arrays)),
        "*/",
        f"#ifndef {upper}_H",
        f"#define {upper}_H",
        "",
        "#include <stdint.h>",
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
        *(_of_sizes(found, sizes) if sizes else _of_memory(found)),
        f"#define {upper}_ALIGNMENT {ALIGNMENT} /* at a multiple of which they begin */",
        "",
        "/* Make memory ready, once before the first run"
        + ("; what the model keeps from run to run is forgotten. */" if found.kept else ". */"),
        f"void {name}_start(void *memory);",
        "",
        "/* Run the model. Gives 0, or 1 where it could not be run, as an index is beyond its axis"
        + ("; start anew then" if found.kept else "")
        + ("; 2 where sizes cannot be these. */" if sizes else ". */"),
        f"int32_t {name}_run(void *memory{_declared(found, sizes, arrays)});",
        *(_shared(found, _declared(found, sizes, arrays)) if found.threads > 1 else ()),
        "",
        "#ifdef __cplusplus",
        "}",
        "#endif",
        "",
        "#endif",
    ]
    return "\n".join(lines) + "\n"


def _of_memory(found: CompiledModel) -> Iterator[str]:
    yield f"#define {found.name.upper()}_MEMORY {found.memory} /* bytes that a run works in */"


def _of_sizes(found: CompiledModel, sizes: Sequence[str]) -> Iterator[str]:
    """What there is for open sizes."""
    name, given = found.name, ", ".join(f"int64_t {one}" for one in sizes)
    rank = sum(len(fact.shape) for _, fact in found.arrays)
    yield "/* Bytes that a run works in, 0 where sizes cannot be these. More will do, too: one piece of memory is for"
    yield "   all sizes for which it is large enough. */"
    yield f"int64_t {name}_memory({given});"
    yield ""
    yield "/* Write the sizes of all axes of the inputs, one after the other, then of the outputs. Gives 0, or 2 where"
    yield "   sizes cannot be these. */"
    yield f"int32_t {name}_shapes({given}, int64_t *shapes);"
    yield ""
    yield f"#define {name.upper()}_AXES {rank} /* how many these are */"


def _shared(found: CompiledModel, declared: str) -> Iterator[str]:
    """What there is for several threads."""
    name = found.name
    yield ""
    yield "/* The same with threads of the caller. For each step that is cut into parts, share is called: it has"
    yield "   part(work, number) called once for every number from 0 to before parts, on whatever threads, this one"
    yield f"   among them, and returns when all of these calls have. There are at most {found.threads} parts. pool is"
    yield "   what share gets first. Without share (NULL), this thread does all. Outputs are the same bits always. */"
    part = "void (*part)(void *work, int32_t number), void *work"
    yield f"typedef void (*{name}_share)(void *pool, int32_t parts, {part});"
    yield f"int32_t {name}_run_shared(void *memory, {name}_share share, void *pool{declared});"


def _told(found: CompiledModel, sizes: Sequence[str], arrays: Sequence[str]) -> Iterator[str]:
    """The open sizes; each input and output, with its shape and type."""
    for name, label in zip(sizes, found.sizes, strict=True):
        yield f"{name}: a size, which runs are given{_named(name, label)}"
    for number, (name, (label, fact)) in enumerate(zip(arrays, found.arrays, strict=True)):
        kind = "input" if number < found.inputs else "output"
        shape = ", ".join(map(str, fact.shape)).replace("*/", "* /")
        yield f"{name}: {kind} [{shape}] {fact.datum_type.storage.short}, row by row{_named(name, label)}"


def _named(name: str, label: str) -> str:
    return "" if name == label else f", {label!r} in the model".replace("*/", "* /")


def _declared(found: CompiledModel, sizes: Sequence[str], arrays: Sequence[str]) -> str:
    """The parameters of a run behind the first ones."""
    kinds = [_TYPES.get(fact.datum_type.storage, "void") for _, fact in found.arrays]
    given = [f", int64_t {name}" for name in sizes]
    given += [
        f", {'' if number >= found.inputs else 'const '}{kind} *{name}"
        for number, (name, kind) in enumerate(zip(arrays, kinds, strict=True))
    ]
    return "".join(given)


def _parameters(labels: Sequence[str]) -> list[str]:
    """Names in C, each once: letters, digits and underscores."""
    found = list[str]()
    for label in labels:
        plain = re.sub(r"[^A-Za-z0-9_]", "_", label, flags=re.ASCII) or "tensor"
        plain = f"_{plain}" if plain[0].isdigit() else plain
        plain = f"{plain}_" if plain in _KEYWORDS else plain
        number, name = 1, plain
        while name in found:
            number += 1
            name = f"{plain}_{number}"
        found.append(name)
    return found
