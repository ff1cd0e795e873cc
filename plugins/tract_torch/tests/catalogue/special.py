"""Special functions of PyTorch in the catalogue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from catalogue.entry import Entry, one

S = torch.special
EDGES = "S,24,f32:edges"
NAMES = (
    "digamma",
    "psi",
    "gammaln",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "ndtr",
    "ndtri",
    "log_ndtr",
    "entr",
    "expit",
    "logit",
    "sinc",
    "exp2",
    "expm1",
    "log1p",
    "bessel_j0",
    "bessel_j1",
)


def _both(name: str) -> Callable[..., Any]:
    function = getattr(S, name)
    return lambda x, y: (function(x), function(y))


ENTRIES = [
    *(
        Entry(
            f"special_{name}",
            _both(name),
            (EDGES, "S,50,f32:wide"),
            tolerance=2e-5,
        )
        for name in NAMES
    ),
    one(lambda x: (torch.lgamma(x), torch.mvlgamma(x.abs() + 2, 3)), "lgamma", shape="S,50,f32:wide", tolerance=2e-5),
    one(lambda x: tuple(torch.polygamma(n, x) for n in (0, 1, 2, 3)), "polygamma", "positive", tolerance=5e-5),
    one(lambda x: (S.erfc(x), S.erfcx(x), S.log_ndtr(-x)), "erfc, far", "positive", shape="S,50,f32:wide"),
    one(lambda x: (S.erfinv(x), S.ndtri(x.abs())), "erfinv", "unit", "S,50,f32"),
    Entry("special_zeta", S.zeta, ("S,3,f32:above one", "1,3,f32:positive")),
    Entry("special_multigammaln", lambda x: S.multigammaln(x + 3, 4), ("S,3,f32:positive",)),
    Entry(
        "special_xlogy, special_xlog1py", lambda x, y: (S.xlogy(x, y), S.xlog1py(x, y)), ("S,3,f32", "3,f32:positive")
    ),
    one(lambda x: (S.round(x, decimals=1), S.softmax(x, 1), S.log_softmax(x, 1), S.logsumexp(x, 1)), "special_softmax"),
    *(
        one(getattr(S, name), f"special_{name}, integers", make="positive", shape="S,3,i64", tolerance=2e-5)
        for name in ("digamma", "gammaln", "i0", "erfc", "ndtr", "entr")
    ),
    *(
        one(lambda x, name=name: tuple(getattr(S, name)(x, n) for n in (0, 1, 2, 5)), f"special_{name}", "unit")
        for name in (
            *(f"{prefix}chebyshev_polynomial_{kind}" for prefix in ("", "shifted_") for kind in "tuvw"),
            *("hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p"),
        )
    ),
    one(lambda x: (S.modified_bessel_i0(x), S.modified_bessel_i1(x)), "special_modified_bessel"),
    one(S.spherical_bessel_j0, "special_spherical_bessel_j0", "edges", "S,50,f32"),
    one(S.spherical_bessel_j0, "special_spherical_bessel_j0, near 0", "unit"),
    one(lambda x: S.chebyshev_polynomial_u(x, 0), "special_chebyshev_polynomial_u, no number", "special", "S,4,f32"),
]
