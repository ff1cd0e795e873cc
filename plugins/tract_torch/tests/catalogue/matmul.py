"""Products of matrices, vectors and more of PyTorch in the catalogue."""

from __future__ import annotations

import torch
from torch.nn import functional as F  # noqa: N812 - as everybody calls it

from catalogue.entry import A_NUMBER, Entry

BATCHES = ("2,S,3,f32", "2,3,4,f32")


def _grouped(x: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """One row for the first matrix, none for the second, the rest for the third."""
    ends = torch.tensor([1, 1, x.shape[0]], dtype=torch.int32)
    return F.grouped_mm(x, weights, offs=ends)


ENTRIES = [
    Entry("mm", torch.mm, ("S,3,f32", "3,4,f32")),
    Entry("mm, integers", lambda a, b: (a @ b, torch.mm(a.int(), b.int())), ("S,3,i64", "3,4,i64")),
    Entry("mm, bytes", lambda a, b: a @ b, ("S,3,u8", "3,4,u8")),
    Entry("mm, short", lambda a, b: (a @ b * 30 @ b.t(), (a * 40) @ b), ("S,3,i8", "3,4,i8")),
    Entry("mm, of nothing", lambda a, b: a[:, :0] @ b[:0], ("S,3,f32", "3,4,f32")),
    Entry("bmm", torch.bmm, BATCHES),
    Entry("matmul", torch.matmul, ("2,S,3,f32", "3,4,f32")),
    Entry("matmul, a vector", lambda a, b: (a @ b, b @ a.mT, b @ b), ("2,S,3,f32", "3,f32")),
    Entry("matmul, broadcast", torch.matmul, ("2,1,S,3,f32", "5,3,4,f32")),
    Entry("mv", torch.mv, ("S,3,f32", "3,f32")),
    Entry("dot", lambda a, b: (torch.dot(a, b), torch.vdot(a, b), torch.inner(a, b)), ("S,f32", "S,f32")),
    Entry("dot, integers", torch.dot, ("S,i64", "S,i64")),
    Entry("grouped_mm", _grouped, ("S,8,bf16", "3,8,16,bf16"), tolerance=1e-2, sizes=(3, 8)),
    Entry("inner", torch.inner, ("S,2,3,f32", "4,3,f32")),
    Entry("linear", F.linear, ("2,S,3,f32", "4,3,f32", "4,f32")),
    Entry("linear, no bias", F.linear, ("S,3,f32", "4,3,f32")),
    Entry("linear, a vector", F.linear, ("3,f32", "4,3,f32", "4,f32")),
    Entry("linear, one output", F.linear, ("S,3,f32", "3,f32")),
    Entry("bilinear", F.bilinear, ("S,3,f32", "S,2,f32", "4,3,2,f32", "4,f32")),
    Entry("addmm", lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2), ("4,f32", "S,3,f32", "3,4,f32")),
    Entry("addmm, beta 0", lambda c, a, b: torch.addmm(c / 0, a, b, beta=0), ("4,f32", "S,3,f32", "3,4,f32")),
    Entry("addmm, integers", lambda c, a, b: torch.addmm(c, a, b, beta=2, alpha=3), ("4,i64", "S,3,i64", "3,4,i64")),
    Entry("addmv", lambda c, a, b: torch.addmv(c, a, b, beta=0.5, alpha=2), ("S,f32", "S,3,f32", "3,f32")),
    Entry("addr", lambda c, a, b: torch.addr(c, a, b, beta=0.5, alpha=2), ("S,4,f32", "S,f32", "4,f32")),
    Entry("addbmm", lambda c, a, b: torch.addbmm(c, a, b, beta=0.5, alpha=2), ("4,f32", *BATCHES)),
    Entry("baddbmm", lambda c, a, b: torch.baddbmm(c, a, b, beta=0.5, alpha=2), ("4,f32", *BATCHES)),
    Entry("_addmm_activation", torch._addmm_activation, ("4,f32", "S,3,f32", "3,4,f32")),
    Entry("chain_matmul", torch.chain_matmul, ("S,3,f32", "3,4,f32", "4,2,f32"), fixed=A_NUMBER),
    Entry(
        "linalg_multi_dot",
        lambda *m: torch.linalg.multi_dot(m),
        ("S,3,f32", "3,4,f32", "4,2,f32", "2,f32"),
        fixed=A_NUMBER,
    ),
    Entry("outer", lambda a, b: (torch.outer(a, b), torch.ger(a, b)), ("S,f32", "3,f32")),
    Entry("kron", torch.kron, ("S,3,f32", "2,4,f32"), fixed=A_NUMBER),
    Entry("kron, ranks", torch.kron, ("S,3,2,f32", "4,f32"), fixed=A_NUMBER),
    Entry("tensordot", lambda a, b: torch.tensordot(a, b, 2), ("S,3,4,f32", "3,4,2,f32")),
    Entry("tensordot, axes", lambda a, b: torch.tensordot(a, b, ([0, 2], [1, 0])), ("2,S,4,f32", "4,2,5,f32")),
    Entry("tensordot, none", lambda a, b: torch.tensordot(a, b, 0), ("S,3,f32", "2,f32")),
    Entry("cross", lambda a, b: torch.cross(a, b, dim=-1), ("S,3,f32", "S,3,f32")),
    Entry("linalg_cross", lambda a, b: torch.linalg.cross(a, b, dim=1), ("S,3,2,f32", "1,3,2,f32")),
    Entry(
        "cartesian_prod, block_diag",
        lambda a, b: (torch.cartesian_prod(a, b), torch.block_diag(a, b)),
        ("4,f32", "3,f32"),
    ),
    Entry("einsum", lambda a, b: torch.einsum("bij,bjk->bik", a, b), BATCHES),
    Entry("einsum, no arrow", lambda a, b: torch.einsum("bij,bjk", a, b), BATCHES),
    Entry("einsum, an outer product", lambda a, b: torch.einsum("i,jk->ijk", a, b), ("S,f32", "3,4,f32")),
    Entry("einsum, all summed", lambda a, b: torch.einsum("ij,ij->", a, b), ("S,3,f32", "S,3,f32")),
    Entry(
        "einsum, one tensor",
        lambda a: (torch.einsum("ij->ji", a), torch.einsum("ij->j", a), torch.einsum("ij->", a)),
        ("S,3,f32",),
    ),
    Entry("einsum, dots", lambda a, b: torch.einsum("...ij,...jk->...ik", a, b), ("2,S,3,f32", "3,4,f32")),
    Entry("einsum, three", lambda a, b, c: torch.einsum("ij,jk,kl->il", a, b, c), ("S,3,f32", "3,4,f32", "4,2,f32")),
    Entry("einsum, elements", lambda a, b: torch.einsum("bi,bi->bi", a, b), ("S,3,f32", "S,3,f32")),
    Entry("einsum, attention", lambda q, k: torch.einsum("bhid,bhjd->bhij", q, k), ("2,2,S,4,f32", "2,2,5,4,f32")),
    Entry("einsum, lists", lambda a, b: torch.einsum(a, [0, 1], b, [1, 2], [0, 2]), ("S,3,f32", "3,4,f32")),
    Entry("einsum, integers", lambda a, b: torch.einsum("ij,jk->ik", a, b), ("S,3,i64", "3,4,i64")),
    Entry("matrix_power", lambda x: tuple(torch.linalg.matrix_power(x, n) for n in (0, 1, 2, 3, 5)), ("S,3,3,f32",)),
    Entry("trace", torch.trace, ("4,4,f32",)),
    Entry("einsum, a diagonal", lambda a: (torch.einsum("ii->i", a), torch.einsum("ii", a)), ("3,3,f32",)),
    Entry("_int_mm", torch._int_mm, ("32,16,i8", "16,8,i8")),
]
