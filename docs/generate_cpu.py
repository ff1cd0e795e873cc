"""Write docs/cpu.md, from what the CPU runtime decides for the cases of the core: ``python docs/generate_cpu.py``.

Nothing is compiled or run: every case is lowered, with its own element types and with others in their place.
"""

# ruff: noqa: T201 (a script prints)

from __future__ import annotations

import re
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
from tract_cpu.compile import program_of
from tract_cpu.group.grouping import NO_ROW
from tract_cpu.program.program import HostStep
from tract_cpu.target import Target
from tract_llvm.isa import ISAS, Isa

from tract_core.data import DatumType
from tract_core.plugins import default_registry
from tract_core.runtime.host import host_nodes
from tract_core.testing.case import CASES, Case

PAGE = Path(__file__).parents[1] / "docs" / "cpu.md"

GROUPS: Final = {
    "floats": ("f16", "bf16", "f32", "f64"),
    "integers": ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"),
    "bool": ("bool",),
    "narrow types": (
        *("i2", "i4", "u2", "u4", "f4e2m1fn"),
        *("f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f8e8m0fnu"),
    ),
    "complex": ("complex_f32", "complex_f64"),
}
TYPES: Final = tuple(name for names in GROUPS.values() for name in names)
_TYPE: Final = re.compile(rf"\b({'|'.join(TYPES)})\b")
UNKNOWN: Final = ("native code does not know", "native code only moves and converts")

Native = dict[str, set[str]]
"""For each operator, the types of its first input on which it is computed by native code."""
Reasons = dict[str, dict[str, set[str]]]
"""For each operator, why cases of it are left to the host, and on which types."""


def survey(isa: Isa) -> tuple[Native, Reasons]:
    """What native code computes on an instruction set, and why it does not compute the rest."""
    native: Native = defaultdict(set)
    reasons: Reasons = defaultdict(lambda: defaultdict(set))
    for cases in default_registry()[CASES].rows().values():
        for case in cases:
            operator, own = type(case.op).__name__, _type_of(case)
            if not case.args:
                continue
            for kind in (own, *(kind for kind in TYPES if kind != own and own in TYPES)):
                if kind == own or kind not in native[operator]:
                    _enter(case, own, kind, isa, (native[operator], reasons[operator]))
    return native, reasons


def _enter(case: Case, own: str, kind: str, isa: Isa, found: tuple[set[str], dict[str, set[str]]]) -> None:
    """Note how a case is computed with ``kind`` in the place of the type ``own``.

    What the caller gives as written is tried as weights too, as part of the model, but for the first input.
    """
    retyped = _retyped(case, own, kind)
    first, *others = retyped.args
    for inputs in ([first, *others], [first, *(replace(arg, constant=True) for arg in others)]):
        try:
            with np.errstate(all="ignore"):  # values that another type has no room for are as good as any
                model = replace(retyped, inputs=inputs).model(symbolic=False, registry=default_registry())
        except Exception:  # the operator takes no such type, and says so in a way of its own
            return
        nodes = host_nodes(model)
        steps = program_of(model, Target(isa)).steps
        why = next((step.why for step in steps if isinstance(step, HostStep) and step.node.op == nodes[-1].op), None)
        if why is None:
            found[0].add(kind)
            return
        why = NO_ROW if why.startswith("its meaning") else why  # why none was made of its meaning is no news
        found[1][_TYPE.sub("these types", why)].add(kind)


def _type_of(case: Case) -> str:
    return case.args[0].fact.rpartition(",")[2] if case.args else ""


def _retyped(case: Case, old: str, new: str) -> Case:
    inputs = [replace(arg, fact=_with_type(arg.fact, old, new)) for arg in case.args]
    return case if old == new else replace(case, inputs=inputs)


def _with_type(fact: str, old: str, new: str) -> str:
    shape, comma, kind = fact.rpartition(",")
    return f"{shape}{comma}{new if kind == old else kind}"


def page() -> str:
    """The page, for the richest instruction set, with what others lack."""
    native, reasons = survey(ISAS[-1])
    ends = [_winograd(), _block_weights(), _hosted(native, reasons), _of_others(), _streams()]
    parts = [_introduction(), _types(native), _operators(native, reasons), *ends]
    return "\n".join("\n".join(part) for part in parts)


def _introduction() -> Iterator[str]:
    yield "# What the CPU runtime computes natively\n"
    yield "<!-- Written by docs/generate_cpu.py: change that, and run it. -->\n"
    yield from _wrapped(
        """`runtime_for_name("cpu")` computes operators by kernels that it compiles, looks at tensors in other ways
        where that is all an operator does, and leaves the rest to the operator's NumPy meaning: right, slower, and
        never silently. `runnable.explain()` says for a model of yours which node is computed how, and why."""
    )
    yield from _wrapped(
        """This page says it for single operators, by the cases that every runtime must pass, each with every element
        type that the operator takes. Types are those of the first input. Sizes may be symbols everywhere. They may come
        up in the middle of a run, but in bodies: a loop or a branch in which that happens is left to the host."""
    )


def _types(native: Native) -> Iterator[str]:
    yield "## Instruction sets\n"
    yield from _wrapped(
        f"""Kernels are made for {_names(isa.name for isa in ISAS)}. They compute the same operators; of those that
        this machine has, the last one is used unless the option `isa` says another. `avxvnniint8` and `amx` were run
        in the emulator Bochs only, `avx10.2` in plain operations only. `amx` is there where Linux gives this process
        the registers of tiles; `avx512bf16` not on Intel's processors, where its products take longer than those of
        f32. Floats narrower than f32 are computed in f32, and rounded after every operator. Floats of eight bits
        and less, and integers narrower than a byte, which this page calls narrow types, are only moved and
        converted; so are complex numbers."""
    )
    everywhere = set().union(*native.values())
    unknown = [kind.short for kind in DatumType if kind.short not in everywhere]
    yield from _wrapped(
        f"Operators on {_names(unknown)}, on sequences and optionals are left to it; of quantised types, "
        "only moves and conversions are native."
    )


def _operators(native: Native, reasons: Reasons) -> Iterator[str]:
    yield "## Operators with native code\n"
    rows = [
        [f"`{operator}`", _grouped(kinds), "; ".join(_exceptions(reasons[operator], kinds))]
        for operator, kinds in sorted(native.items())
        if kinds
    ]
    yield from _table(["operator", "on", "left to the host"], rows)


def _exceptions(reasons: dict[str, set[str]], native: set[str]) -> Iterator[str]:
    for why, kinds in sorted(reasons.items()):
        if not why.startswith(UNKNOWN):
            yield f"{why} ({_grouped(kinds)})" if kinds - native else why


def _winograd() -> Iterator[str]:
    yield "## Convolutions with fewer products\n"
    yield from _wrapped(
        """Where windows have three positions along their axes, or one, strides and dilations are 1, and there is one
        group, convolutions of floats up to f32 are computed by Winograd's method, if that is much less work: a 3 x 3
        window then takes a quarter of the products (`winograd` in `explain()`). Sums are rounded otherwise. On random
        numbers, with 16 to 512 input channels, the largest error was 0.6 to 2.5 millionths of the largest output, and
        that of direct sums 0.2 to 1.6; from run to run, and with any number of threads, bits are the same. Infinities
        and what is no number go as far as windows reach, and no further: their surroundings are summed directly. Where
        bytes are multiplied as pairs of 16 bits (without instructions that sum products of bytes, and on the web),
        their convolutions take 16 products for 36 in the same way, and are exact. The runtime `cpu(winograd=false)`
        sums all directly."""
    )


def _block_weights() -> Iterator[str]:
    yield "## Weights in blocks\n"
    yield from _wrapped(
        """Weights of up to 8 bits in blocks with a scale each, floats of 8 bits (e4m3fn) too, as GGUF files, quantised
        folders, archives with Q4_0 and ONNX's `MatMulNBits` have them, are multiplied as they lie (`view` in
        `explain()`, as nothing is computed for them): up to 16 rows with codes that are taken out of words in
        registers, more with panels that are unpacked to the cache. Rows of embeddings are looked up in the same
        panels. Numbers are those of unpacked weights, but for the order of sums. What others read is unpacked once.
        Codes that are places in a table are kept as its integers: of IQ4_NL and IQ4_XS in 8 bits, of IQ3_XXS and
        NVFP4 in 6, of MXFP4 in 5, of IQ1_M, IQ2 and IQ3_S in 4, of IQ1_S, TQ1_0 and TQ2_0 in 2; those of Q3_K take 4.
        With `cpu(bytes=true)`, up to 16 rows are rounded to 8 bits, each block with a scale of its own, and summed as
        integers where codes have up to 6 bits: about half as much time for a token, and an error of about 2 % of the
        deviation of a product's results for random numbers."""
    )


def _hosted(native: Native, reasons: Reasons) -> Iterator[str]:
    yield "## Operators without\n"
    by_reason: dict[str, list[str]] = defaultdict(list)
    for operator, kinds in sorted(native.items()):
        if not kinds:
            known = [why for why in reasons[operator] if not why.startswith(UNKNOWN)]
            by_reason["; ".join(known) or "their types are not known"].append(f"`{operator}`")
    for why, operators in by_reason.items():
        yield from _wrapped(f"{why[0].upper()}{why[1:]}: {', '.join(operators)}.")


def _of_others() -> Iterator[str]:
    yield "## Operators of others\n"
    yield from _wrapped(
        """An operator of a plugin needs no more than its NumPy meaning, its row in the table `reference`, to be native.
        When a model is prepared, the meaning is called once, with symbolic arrays in the place of arrays. What it does
        with them becomes a graph of the operators above, with the types and the rounding of NumPy, and goes the way of
        any other graph. An operator that computes each element by itself stays one node, in one kernel with its
        neighbours; others become several."""
    )
    yield from _wrapped(
        """What native code knows: arithmetic, comparisons and bits, of arrays and numbers; element-wise functions from
        `abs` to `trunc`; `where`, `clip`, `astype`; `sum`, `prod`, `mean`, `var`, `std`, `max`, `min`, `any`, `all`,
        `argmax`, `argmin`, `cumsum`, `linalg.norm`; `reshape` and what else arranges axes; `concatenate`, `stack`,
        `split`; places, ranges, `None` and `...` as indices; `matmul`, `dot` and `einsum` of floats. The list is
        `tract_cpu/tracing/table.py`. A function is there where it is the same at what is not a number, infinities,
        signed zeros and the ends of integers; but for which of two zeros `maximum` gives, which NumPy leaves open."""
    )
    yield from _wrapped(
        """The rest stays on the host, and `explain()` says why: a meaning that looks at values (`if x.sum() > 0`), that
        calls a function that is not known, that draws random numbers, that writes to its input, or that needs the
        number of a symbolic size. A meaning is called once and not in every run, so it may read only what nobody can
        change: numbers, texts, tuples, arrays that are not writeable, functions that hold to the same. Lists, dicts and
        writeable arrays are not, nor a global that a function of the module assigns. That is found by reading the code,
        before it is called. Names of a function around it keep the value that they have then."""
    )
    yield from _wrapped(
        """The graph is compared with the meaning when it is made, on two arrays for each of the sizes 0, 1, 2 and some
        more that symbols may be, or on arrays as large as the model says: one without and one with all that is special
        in its type. They must agree to 64 units in the last place of the largest number, and exactly in what is not
        finite, in integers, and in the signs of zeros; where they do not, the node stays on the host. That took
        3 to 86 ms for each of 39 operators, half of them less than 17 ms, on a busy machine of two cores, once in a
        process for each shape; on large arrays, it takes as long as the meaning. In a model without such operators,
        looking for them took 0.1 ms for 1000 nodes."""
    )


def _streams() -> Iterator[str]:
    yield "## Models that take pulses\n"
    yield from _wrapped(
        """The operators that `tract-pulse` puts into a model (`Delay`, `PulsePad`, `PulseMask`, `PulseConcat`,
        `PulseRange`) are native on all types that are moved: what a pulse leaves for the next one is memory of the
        state. A delay is a window that moves through it, so that nothing is copied but the pulse, however far back the
        model looks; in front of a convolution it lies in blocks of channels, with zeros around. A pulsed model that
        leaves nothing to the host is one native call per pulse, loops included, with the short way from Python."""
    )
    yield from _wrapped(
        "How long a pulse takes, beside the established engine, is on [the page on speed](performance.md)."
    )


def _grouped(kinds: set[str]) -> str:
    """Types, in which whole groups have one name."""
    whole = [name for name, members in GROUPS.items() if set(members) <= kinds]
    covered = {kind for name in whole for kind in GROUPS[name]}
    return ", ".join([*whole, *(kind for kind in TYPES if kind in kinds - covered), *sorted(kinds - set(TYPES))])


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _wrapped(text: str) -> Iterator[str]:
    yield from textwrap.wrap(" ".join(text.split()), 120)
    yield ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


def main() -> None:
    """Write the page."""
    PAGE.write_text(page())
    print(PAGE)


if __name__ == "__main__":
    main()
