"""Complex numbers of PyTorch in the catalogue."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F  # noqa: N812 - as everybody calls it

from catalogue.entry import Entry


def of(name: str, call: Any = None, *inputs: str, make: str = "normal") -> Entry:
    """An operator on complex numbers, by its name."""
    return Entry(f"{name}, complex", call or getattr(torch, name), inputs or ("S,3,c64",), make, tolerance=3e-5)


TWO = ("S,3,c64", "1,3,c64")

ENTRIES = [
    Entry("complex", torch.complex, ("S,3,f32", "3,f32")),
    Entry("polar", torch.polar, ("S,3,f32", "S,3,f32")),
    Entry("view_as_real", torch.view_as_real, ("S,3,c64",)),
    Entry("view_as_complex", torch.view_as_complex, ("S,3,2,f32",)),
    Entry("real and imag", lambda x: (x.real, x.imag * 2, torch.real(x.real)), ("S,3,c64",)),
    Entry("conj, complex and real", lambda x: (x.conj(), x.real.conj()), ("S,3,c64",)),
    Entry("conj, parts of it", lambda x: x.conj().imag + x.conj().real, ("S,3,c64",)),
    Entry("conj_physical, resolve_conj", lambda x: x.conj_physical() + x.conj().resolve_conj(), ("S,3,c64",)),
    *(of(name) for name in ("abs", "angle", "neg", "exp", "log", "sqrt", "sin", "cos", "sinh", "cosh", "square")),
    *(of(name) for name in ("sgn", "reciprocal", "sigmoid", "tanh", "tan", "isnan", "isfinite")),
    *(
        of(f"{name}, {scale}", lambda x, name=name, scale=scale: getattr(torch, name)(x * scale) / scale**0.5)
        for name, scale in (("sqrt", 1e38), ("sqrt", 1e-38), ("tanh", 1e3), ("tanh", 1e30), ("tan", 1e3))
    ),
    of("add", lambda a, b: torch.add(a, b, alpha=2.5) + (1 - 2j) + b.real, *TWO),
    of("sub", lambda a, b: 1 - a - b, *TWO),
    of("mul", lambda a, b: a * b * 2 * (0.5 + 1j) * b.real, *TWO),
    of("div", lambda a, b: a / b + 1 / a + a / 3, *TWO),
    of("div, large", lambda a, b: (a * 1e30) / (b * 1e30), *TWO),
    of("pow", lambda x: x**3 + x**0.5 + x**-1),
    of(
        "eq",
        lambda a, b: (torch.complex(a, b) == torch.complex(b, a), torch.complex(a, b) != 1j),
        *("S,3,f32", "S,3,f32"),
        make="integers",
    ),
    of("where", lambda a, b: torch.where(a.real > 0, a, b), "S,3,c64", "S,3,c64"),
    of("sum", lambda x: (x.sum(), x.sum(0), x.mean(-1, keepdim=True))),
    of("cumsum", lambda x: x.cumsum(1)),
    of("matmul", lambda a, b: a @ b, "2,S,3,c64", "3,4,c64"),
    of("matmul, adjoint", lambda a: a @ a.mH, "2,S,3,c64"),
    of("mv", torch.mv, "S,3,c64", "3,c64"),
    of("linear", F.linear, "S,3,c64", "4,3,c64", "4,c64"),
    of("einsum", lambda a, b: torch.einsum("sk,nk->sn", a, b), "S,3,c64", "4,3,c64"),
    of("moves", lambda x: torch.cat([x.t().flip(0), x[:3].t()], 1).unsqueeze(0).permute(2, 1, 0)),
    of("pads and zeros", lambda x: F.pad(x, (1, 2)) + torch.zeros(6, dtype=torch.complex64)),
    of("to", lambda x: (x.to(torch.complex128), x.real.to(torch.complex64)), "S,3,c64"),
    of("norm", lambda x: x.abs().norm(dim=1)),
]
