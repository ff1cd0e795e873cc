"""Instruction sets, as data: what LLVM is told, and what the plans of kernels need to know."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from typing import Any, Final

from tract_core.errors import Unsupported
from tract_core.frozen import frozen, replaced
from tract_core.machine import architecture
from tract_llvm.processor import FAST_BF16, features, sve_of


@frozen
class Dot:
    """An instruction that sums the products of neighbours: ``group`` of them, which take the bits of a sum.

    ``name``: the intrinsic of LLVM. ``left``, ``right``: the names of the factors' types; ``sums``: that of the sums'.
    ``adds``: whether it adds to given sums. ``turned``: whether it takes the right factors first. ``square``: the
    intrinsic that has four sums in each 128 bits of a register, of two rows and two columns, and adds two groups to
    each of them, one after the other; empty for none.

    Where ``name`` only sums pairs of bytes, the first of them without a sign, to 16 bits, ``pairs`` is the intrinsic
    that sums pairs of these to 32. ``limit``: how large right factors may be at most then, left ones where it is
    turned, so that 16 bits hold a pair; 0 where all that their type holds fits. ``signs``: the intrinsic that gives the
    right factors the signs of left ones that have some, before these lose theirs; empty where plain operations do.
    """

    name: str
    group: int
    left: str
    right: str
    sums: str
    adds: bool = True
    turned: bool = False
    square: str = ""
    pairs: str = ""
    limit: int = 0
    signs: str = ""

    @property
    def is_for_few(self) -> bool:
        """Whether it pays for few left factors only.

        It takes more instructions than products of 16 bits do, and reads half as many bytes of right factors.
        """
        return bool(self.pairs) and self.left == self.right

    def other_way(self) -> Dot:
        """The same for factors that changed places."""
        return replaced(self, left=self.right, right=self.left, turned=not self.turned)


@frozen
class ByteLookup:
    """An instruction that finds bytes in a table, at places that are bytes: 0 at those beyond it.

    ``name``: the intrinsic of LLVM. ``rows``: how many rows of 16 bytes it has, each a register; ``places``: how many
    bytes it finds; where there are more than 16, a register has its row once for each 16 of them. ``is_by_sign``:
    whether only places from 128 on are beyond a table, and of others the lowest four bits count.
    """

    name: str
    rows: int
    places: int = 16
    is_by_sign: bool = False


@frozen
class Isa:
    """One instruction set.

    ``architecture``: as LLVM calls it. ``processor`` and ``features``: what LLVM may use. ``needs``: features that the
    processor must have, as `tract_llvm.processor` names them. ``vector_bytes``: of one register; ``registers``: how
    many kernels fill, of those that there are: where instructions read no factor from memory, some are left for factors
    on their way. ``masks_bits``: the narrowest elements of which parts of a vector are read and written at the price of
    the whole. ``fma``: whether one instruction multiplies and adds; ``half``: whether one converts half floats;
    ``rounds``: whether one rounds floats to integers; ``scales``: the intrinsics of LLVM that multiply a register of
    f32, and one of f64, by powers of two, empty for none. ``dots``: the instructions that sum products of neighbours in
    whole registers, the best ones first; ``tiles``: those that do so in tiles (`tract_llvm.language.tiles`), for which
    LLVM writes code in processes of their own only, as what it does not expect there ends them. ``pause``: the
    intrinsic, with its arguments, that tells the processor that a thread waits for another. ``picks``: the one that
    picks lanes of 16 bits from two registers, empty for none. ``written_out``: whether kernels have plain operations in
    the place of ``scales``, ``dots``, ``tiles``, ``picks`` and ``lookup``. ``any_nan``: whether arithmetic may give any
    of the bits that are no number, and not only those of an operand, or those of the processor, whose lower half is 0.
    ``widens``: whether convolutions read bytes from a copy of as many bits as ``dots`` take.
    ``may_fuse``: whether one instruction multiplies and adds, but rounds once or twice, as whoever runs it likes.
    ``vscale``: where instructions do not say how long registers are, how many times 128 bits they have; else 0.
    ``flushes``: whether vectors of f32 have 0 in the place of subnormal numbers. ``extremes_bits``: the widest floats
    of which LLVM writes the larger and the smaller one of two. ``compares_to_masks``: whether comparing vectors gives
    bits in registers of their own, and not vectors. ``picks_bytes``: the intrinsic that picks bytes within each 128
    bits of a register, empty for none. ``lookup``: what finds bytes in a table, where ``picks`` does not.
    """

    name: str
    architecture: str
    processor: str
    features: str
    needs: tuple[str, ...]
    vector_bytes: int
    registers: int
    masks_bits: int
    fma: bool
    half: bool
    rounds: bool
    scales: tuple[str, ...]
    dots: tuple[Dot, ...]
    pause: tuple[Any, ...]
    picks: str = ""
    tiles: tuple[Dot, ...] = ()
    written_out: bool = False
    any_nan: bool = False
    widens: bool = False
    may_fuse: bool = False
    vscale: int = 0
    flushes: bool = False
    extremes_bits: int = 64
    compares_to_masks: bool = False
    picks_bytes: str = ""
    lookup: ByteLookup | None = None

    def lanes(self, bits: int) -> int:
        """How many elements of so many bits fit one register."""
        return self.vector_bytes * 8 // bits


_NEVER: Final = 1 << 10
"""Wider than any element."""

_X86_PAUSE: Final = ("x86.sse2.pause",)

_V3: Final = ("avx2", "fma", "f16c", "bmi2")
_V4: Final = (*_V3, "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd")

_VNNI_FEATURES: Final = "+avx512vnni,+fast-dpwssd"
"""The second one says that what multiplies and adds is not taken apart again."""

_VNNI: Final = (
    Dot("x86.avx512.vpdpbusd.512", 4, "u8", "i8", "i32"),
    Dot("x86.avx512.vpdpwssd.512", 2, "i16", "i16", "i32"),
)
_BF16: Final = Dot("x86.avx512bf16.dpbf16ps.512", 2, "bf16", "bf16", "f32")


def _with_equal_signs(dots: tuple[Dot, ...], family: str, bits: str) -> tuple[Dot, ...]:
    """With the instructions for bytes that both have a sign, and that both have none."""
    signed = Dot(f"{family}.vpdpbssd.{bits}", 4, "i8", "i8", "i32")
    unsigned = Dot(f"{family}.vpdpbuud.{bits}", 4, "u8", "u8", "i32")
    return (signed, dots[0], unsigned, *dots[1:])


def _by_pairs(of_bytes: str, of_words: str, signs: str = "") -> tuple[Dot, ...]:
    """What there is without instructions for bytes: those for pairs of them, and for pairs of 16 bits."""
    pairs = partial(Dot, of_bytes, 4, right="i8", sums="i32", adds=False, pairs=of_words)
    words = Dot(of_words, 2, "i16", "i16", "i32", adds=False)
    return pairs(left="u8", limit=64), pairs(left="i8", limit=127, signs=signs), words


_AVX512: Final = Isa(
    "avx512",
    "x86_64",
    "x86-64-v4",
    "",
    _V4,
    64,
    32,
    masks_bits=8,
    fma=True,
    half=True,
    rounds=True,
    scales=("x86.avx512.mask.scalef.ps.512", "x86.avx512.mask.scalef.pd.512"),
    dots=_by_pairs("x86.avx512.pmaddubs.w.512", "x86.avx512.pmaddw.d.512"),
    widens=True,
    pause=_X86_PAUSE,
    picks="x86.avx512.vpermi2var.hi.512",
    compares_to_masks=True,
)
_AVX512_VNNI: Final = replaced(
    _AVX512, name="avx512vnni", features=_VNNI_FEATURES, needs=(*_V4, "avx512vnni"), dots=_VNNI
)
_AVX512_BF16: Final = replaced(
    _AVX512_VNNI,
    name="avx512bf16",
    features=f"{_VNNI_FEATURES},+avx512bf16",
    needs=(*_AVX512_VNNI.needs, "avx512bf16", FAST_BF16),
    dots=(*_VNNI, _BF16),
)
_AVX10_2: Final = replaced(
    _AVX512_VNNI,
    name="avx10.2",
    features=f"{_VNNI_FEATURES},+avx10.2",
    needs=(*_AVX512_VNNI.needs, "avx10.2"),
    dots=_with_equal_signs(_VNNI, "x86.avx10", "512"),
)
_AMX: Final = replaced(
    _AVX512_VNNI,
    name="amx",
    features=f"{_VNNI_FEATURES},+amx-tile,+amx-int8,+amx-bf16",
    needs=(*_AVX512_VNNI.needs, "amx-tile", "amx-int8", "amx-bf16"),
    tiles=(
        Dot("x86.tdpbusd", 4, "u8", "i8", "i32"),
        Dot("x86.tdpbssd", 4, "i8", "i8", "i32"),
        Dot("x86.tdpbuud", 4, "u8", "u8", "i32"),
        Dot("x86.tdpbsud", 4, "i8", "u8", "i32"),
        Dot("x86.tdpbf16ps", 2, "bf16", "bf16", "f32"),
    ),
)

_AVX2: Final = Isa(
    "avx2",
    "x86_64",
    "x86-64-v3",
    "",
    _V3,
    32,
    16,
    masks_bits=32,
    fma=True,
    half=True,
    rounds=True,
    scales=(),
    dots=_by_pairs("x86.avx2.pmadd.ub.sw", "x86.avx2.pmadd.wd", "x86.avx2.psign.b"),
    pause=_X86_PAUSE,
    widens=True,
    picks_bytes="x86.avx2.pshuf.b",
    lookup=ByteLookup("x86.avx2.pshuf.b", 1, 32, is_by_sign=True),
)
_AVX_VNNI: Final = replaced(
    _AVX2,
    name="avxvnni",
    features="+avxvnni,+fast-dpwssd",
    needs=(*_V3, "avxvnni"),
    dots=(
        Dot("x86.avx512.vpdpbusd.256", 4, "u8", "i8", "i32"),
        Dot("x86.avx512.vpdpwssd.256", 2, "i16", "i16", "i32"),
    ),
)
_AVX_VNNI_INT8: Final = replaced(
    _AVX_VNNI,
    name="avxvnniint8",
    features="+avxvnni,+avxvnniint8,+fast-dpwssd",
    needs=(*_AVX_VNNI.needs, "avxvnniint8"),
    dots=_with_equal_signs(_AVX_VNNI.dots, "x86.avx2", "256"),
)

_SDOT, _UDOT, _USDOT = (
    Dot(f"aarch64.neon.{name}.v4i32.v16i8", 4, left, right, "i32")
    for name, left, right in (("sdot", "i8", "i8"), ("udot", "u8", "u8"), ("usdot", "u8", "i8"))
)
_BFDOT: Final = Dot("aarch64.neon.bfdot.v4f32.v8bf16", 2, "bf16", "bf16", "f32")

_NEON: Final = Isa(
    "neon",
    "aarch64",
    "generic",
    "+neon",
    (),
    16,
    28,
    masks_bits=_NEVER,
    fma=True,
    half=True,
    rounds=True,
    scales=(),
    dots=(),
    pause=("aarch64.hint", 1),
    lookup=ByteLookup("aarch64.neon.tbl4.v16i8", 4),
)
_NEON_DOT: Final = replaced(_NEON, name="neondot", features="+neon,+dotprod", needs=("dotprod",), dots=(_SDOT, _UDOT))
_NEON_I8MM: Final = replaced(
    _NEON_DOT,
    name="neoni8mm",
    features="+neon,+dotprod,+i8mm,+bf16",
    needs=("dotprod", "i8mm", "bf16"),
    dots=(
        replaced(_SDOT, square="aarch64.neon.smmla.v4i32.v16i8"),
        replaced(_UDOT, square="aarch64.neon.ummla.v4i32.v16i8"),
        replaced(_USDOT, square="aarch64.neon.usmmla.v4i32.v16i8"),
        replaced(_BFDOT, square="aarch64.neon.bfmmla"),
    ),
)

_SVE_SDOT, _SVE_UDOT, _SVE_USDOT = (
    Dot(f"aarch64.sve.{name}.nxv4i32", 4, left, right, "i32")
    for name, left, right in (("sdot", "i8", "i8"), ("udot", "u8", "u8"), ("usdot", "u8", "i8"))
)
_SVE_BFDOT: Final = Dot("aarch64.sve.bfdot", 2, "bf16", "bf16", "f32")

_SVE_512: Final = replaced(
    _NEON,
    name="sve512",
    features="+neon,+sve",
    needs=("sve", sve_of(512)),
    vector_bytes=64,
    masks_bits=32,
    dots=(_SVE_SDOT, _SVE_UDOT),
    vscale=4,
    compares_to_masks=True,
)
"""As A64FX has it."""
_SVE_256: Final = replaced(
    _SVE_512,
    name="sve256",
    features="+neon,+sve,+dotprod,+i8mm,+bf16",
    needs=("sve", sve_of(256), *_NEON_I8MM.needs, "sve-i8mm", "sve-bf16"),
    vector_bytes=32,
    dots=(
        replaced(_SVE_SDOT, square="aarch64.sve.smmla.nxv4i32"),
        replaced(_SVE_UDOT, square="aarch64.sve.ummla.nxv4i32"),
        replaced(_SVE_USDOT, square="aarch64.sve.usmmla.nxv4i32"),
        replaced(_SVE_BFDOT, square="aarch64.sve.bfmmla"),
    ),
    vscale=2,
)
"""As Neoverse V1 has it."""

ISAS: Final = (
    Isa(
        "sse2",
        "x86_64",
        "x86-64",
        "",
        (),
        16,
        16,
        masks_bits=_NEVER,
        fma=False,
        half=False,
        rounds=False,
        scales=(),
        dots=(Dot("x86.sse2.pmadd.wd", 2, "i16", "i16", "i32", adds=False),),
        pause=_X86_PAUSE,
        widens=True,
    ),
    _AVX2,
    _AVX_VNNI,
    _AVX_VNNI_INT8,
    _AVX512,
    _AVX512_VNNI,
    _AVX512_BF16,
    _AVX10_2,
    _AMX,
    _NEON,
    _NEON_DOT,
    _NEON_I8MM,
    _SVE_256,
    _SVE_512,
)
"""From the plainest to the best of each architecture."""


def usable(features: Mapping[str, bool], architecture: str) -> list[Isa]:
    """The instruction sets that a processor with these features has, the best one last."""
    found = [one for one in ISAS if one.architecture == architecture]
    return [one for one in found if all(features.get(name, False) for name in one.needs)]


@cache
def of_this_machine() -> tuple[Isa, ...]:
    """The instruction sets that kernels for this machine may use, the best one last; empty for an unknown processor."""
    return tuple(usable(features(), architecture()))


def chosen(name: str) -> Isa:
    """The instruction set of a name, or the best one. Raises Unsupported where this machine lacks it."""
    machine = of_this_machine()
    if not machine:
        raise Unsupported(f"there are no kernels for processors of type {architecture()!r}")
    found = [one for one in machine if one.name == name] if name else machine[-1:]
    if not found:
        has = ", ".join(one.name for one in machine)
        raise Unsupported(f"this machine has no instruction set {name!r}", hint=f"it has {has}")
    return found[0]


def portable(isa: Isa, host: Isa | None = None) -> Isa:
    """An instruction set for a processor that may lack it: kernels are planned the same, and compute the same.

    Its instructions are written out in plain operations of LLVM, which give the same bits, but for those of
    not-a-number. ``host``: what that processor has, the best set of this machine where it is not given. Raises
    Unsupported where there are no kernels for this machine.
    """
    there = host or chosen("")
    return replaced(
        isa,
        architecture=there.architecture,
        processor=there.processor,
        features=there.features,
        needs=there.needs,
        half=isa.half and there.half,
        rounds=isa.rounds and there.rounds,
        pause=there.pause,
        vscale=there.vscale,
        written_out=True,
    )
