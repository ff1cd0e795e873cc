"""Every operator of the catalogue on other element types than it is written with, where PyTorch takes them."""

from __future__ import annotations

import dataclasses
import os
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
import tract_torch
from calling import Calling
from catalogue import CATALOGUE, Entry
from torch.utils import _pytree as pytree
from tract_torch.tensors import array_of

import tract_core as tract
from tract_core.errors import FactError, Unsupported

FLOATS = {"f16": 4e-3, "bf16": 3e-2, "f64": 1e-9}
"""Types, and by how much the last digits of PyTorch's own kernels differ: they round in between."""
INTEGERS = ("i8", "u8", "i16", "i32")
ROUGH = {"special_bessel_j0": 1e-6, "fake_quantize_per_tensor_affine": 1e-6}
"""What PyTorch computes less precisely than the type is, and than we do: J0(6) is
0.15064525725099692, and 6 * 0.1 is 0.6."""
LOOSE = ("grid_sampler", "affine_grid", "upsample")
"""What PyTorch computes in narrow types throughout: only one digit is to be expected of these."""
UNDEFINED = ("type_as",)
"""What gives bytes of negative floats, which C leaves undefined."""
ALL = bool(os.environ.get("TRACT_TORCH_ALL"))
"""Whether every type of a kind is tried for each entry; else one for each operator, which depends on its name."""


def retyped(entry: Entry, old: str, new: str) -> Entry:
    """The entry with inputs of another type."""

    def other(text: str) -> str:
        shape, colon, make = text.partition(":")
        *sizes, kind = shape.split(",")
        return ",".join([*sizes, new if kind == old else kind]) + colon + make

    return dataclasses.replace(entry, inputs=tuple(map(other, entry.inputs)))


def has(entry: Entry, kind: str) -> bool:
    return any(text.partition(":")[0].split(",")[-1] == kind for text in entry.inputs)


def wide(x: Any) -> np.ndarray[Any, Any]:
    found = array_of(x) if isinstance(x, torch.Tensor) else np.asarray(x)
    return found.astype(np.float64) if found.dtype.kind in "fV" else found


def check(entry: Entry, tolerance: float) -> None:
    """What the entry gives on `reference` is what PyTorch gives, if it takes these types."""
    inputs = entry.drawn(5)
    try:
        want = pytree.tree_leaves(entry.call(*(x.clone() for x in inputs)))
    except (RuntimeError, IndexError, TypeError, ValueError) as error:
        pytest.skip(f"PyTorch does not take these types: {error}")
    try:
        model = tract_torch.load(Calling(entry.call), inputs)
    except (Unsupported, FactError) as error:
        if "calling the module gave" not in str(error) and "ToComplex" not in str(error):
            raise
        pytest.skip(f"torch.export does not take these types, or they make complex numbers of 16 bits: {error}")
    found = tract.runtime_for_name("reference").prepare(model).run([array_of(x) for x in inputs])
    for ours, theirs in zip(map(np.asarray, found), want, strict=True):
        if isinstance(theirs, torch.Tensor):
            assert (ours.dtype, ours.shape) == (array_of(theirs).dtype, tuple(theirs.shape))
        np.testing.assert_allclose(wide(ours), wide(theirs), rtol=tolerance, atol=tolerance)


def _pairs(old: str, kinds: Sequence[str]) -> list[Any]:
    """Entries with inputs of a type, and other types for them."""
    return [
        pytest.param(entry, kind, id=f"{entry}, {kind}")
        for entry in CATALOGUE
        if has(entry, old) and entry.name not in UNDEFINED
        for place, kind in enumerate(kinds)
        if ALL or ("," not in entry.name and zlib.crc32(entry.name.encode()) % len(kinds) == place)
    ]


@pytest.mark.parametrize(("entry", "kind"), _pairs("f32", tuple(FLOATS)))
def test_floats(entry: Entry, kind: str) -> None:
    loose = 0.15 if entry.name.startswith(LOOSE) else entry.tolerance
    precise = kind == "f64" and not has(entry, "f16")
    check(retyped(entry, "f32", kind), ROUGH.get(entry.name, FLOATS[kind]) if precise else max(FLOATS[kind], loose))


@pytest.mark.parametrize(("entry", "kind"), _pairs("i64", INTEGERS))
def test_integers(entry: Entry, kind: str) -> None:
    check(retyped(entry, "i64", kind), entry.tolerance)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64])
def test_modules_of_other_types_share_their_weights(kind: torch.dtype) -> None:
    layers = torch.nn.Linear(4, 600), torch.nn.LayerNorm(600), torch.nn.GELU(), torch.nn.Linear(600, 2)
    module = torch.nn.Sequential(*layers).to(kind).eval()
    x = torch.randn(3, 4).to(kind)
    model = tract_torch.load(module, (x,))
    (found,) = tract.runtime_for_name("cpu").prepare(model.clone()).run([array_of(x)])
    np.testing.assert_allclose(wide(found), wide(module(x).detach()), rtol=3e-2, atol=3e-2)
    held = [array_of(one) for one in module.parameters() if one.dim() == 2]
    consts = [np.asarray(node.op.value.array) for node in model.typed.live_nodes() if hasattr(node.op, "value")]
    assert all(any(np.shares_memory(one, const) for const in consts) for one in held)
