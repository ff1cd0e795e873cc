"""Small systems of equations of PyTorch in the catalogue."""

from __future__ import annotations

import torch

from catalogue.entry import Entry

L = torch.linalg


def definite(x: torch.Tensor) -> torch.Tensor:
    """Symmetric and positive definite."""
    return x @ x.mT + torch.eye(x.shape[-1], dtype=x.dtype)


ENTRIES = [
    Entry(
        "matrix_exp", lambda x: (torch.matrix_exp(x), torch.linalg.matrix_exp(x * 3)), ("S,3,3,f32",), tolerance=1e-4
    ),
    Entry("cholesky_inverse", lambda x: torch.cholesky_inverse(L.cholesky(definite(x))), ("3,3,f32",), tolerance=1e-3),
    Entry("cholesky, upper", lambda x: torch.cholesky(definite(x), upper=True), ("S,3,3,f32",), tolerance=1e-4),
    Entry("linalg_solve, right", lambda x, b: L.solve(x, b, left=False), ("S,3,3,f32", "S,2,3,f32"), tolerance=1e-3),
    Entry("linalg_solve, of a zero pivot", lambda x: L.solve(torch.eye(3).flip(0) + 0 * x, x), ("3,3,f32",)),
    Entry(
        "linalg_det",
        lambda x: (torch.det(x), L.det(x[..., :2, :2]), L.det(x[..., :1, :1])),
        ("S,4,4,f32",),
        tolerance=1e-4,
    ),
    Entry("slogdet", lambda x: (*torch.slogdet(x), torch.logdet(definite(x))), ("S,3,3,f32",), tolerance=1e-4),
    Entry("linalg_inv", lambda x: (torch.inverse(x), L.inv(x[..., :1, :1])), ("S,3,3,f32",), tolerance=1e-3),
    Entry("linalg_solve", L.solve, ("S,3,3,f32", "S,3,2,f32"), tolerance=1e-3),
    Entry("linalg_solve, a vector", L.solve, ("3,3,f32", "3,f32"), tolerance=1e-3),
    Entry(
        "linalg_cholesky",
        lambda x: (L.cholesky(definite(x)), L.cholesky(definite(x), upper=True)),
        ("S,3,3,f32",),
        tolerance=1e-4,
    ),
    Entry(
        "cholesky_solve",
        lambda x, b: torch.cholesky_solve(b, L.cholesky(definite(x))),
        ("3,3,f32", "3,2,f32"),
        tolerance=1e-4,
    ),
    Entry(
        "linalg_solve_triangular",
        lambda x, b: tuple(L.solve_triangular(definite(x), b, upper=upper) for upper in (True, False)),
        ("S,3,3,f32", "S,3,2,f32"),
        tolerance=1e-4,
    ),
    Entry(
        "linalg_solve_triangular, right",
        lambda x, b: L.solve_triangular(definite(x), b, upper=True, left=False, unitriangular=True),
        ("3,3,f32", "2,3,f32"),
        tolerance=1e-3,
    ),
    Entry("linalg_qr", lambda x: (*L.qr(x), *L.qr(x.mT)), ("S,4,3,f32",), tolerance=1e-4),
    Entry(
        "linalg_qr, complete",
        lambda x: (*L.qr(x, "complete"), L.qr(x, "r")[1]),
        ("S,4,3,f32",),
        tolerance=1e-4,
    ),
    Entry("linalg_qr, of a triangle", lambda x: L.qr(x.triu()), ("S,3,3,f32",), tolerance=1e-4),
    Entry("linalg_inv_ex", lambda x: L.inv_ex(x)[0], ("S,3,3,f32",), tolerance=1e-3),
    Entry("linalg_cholesky_ex", lambda x: L.cholesky_ex(definite(x))[0], ("S,3,3,f32",), tolerance=1e-4),
    Entry("linalg_solve_ex", lambda x, b: L.solve_ex(x, b)[0], ("S,3,3,f32", "S,3,2,f32"), tolerance=1e-3),
    Entry("linalg_tensorsolve", L.tensorsolve, ("3,3,f32", "3,f32"), tolerance=1e-3),
    Entry("linalg_vander", L.vander, ("S,3,f32",)),
    Entry("cov", lambda x: (torch.cov(x), torch.cov(x[0]), torch.cov(x, correction=0)), ("3,S,f32",)),
    Entry(
        "cov, weights",
        lambda x, f, a: (torch.cov(x, fweights=f + 1), torch.cov(x, fweights=f + 1, aweights=a), x.cov(aweights=a)),
        ("3,S,f32", "S,i64:below 3", "S,f32:share"),
    ),
    Entry("corrcoef", lambda x: (torch.corrcoef(x), torch.corrcoef(x[0])), ("3,S,f32",)),
]
