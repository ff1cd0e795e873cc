"""Operators of PyTorch that take parts of tensors, or join them, in the catalogue."""

from __future__ import annotations

import torch

from catalogue.entry import Entry, one

ENTRIES = [
    one(lambda x: x[1:], "slice"),
    one(lambda x: x[:, 0], "select"),
    one(lambda x: x[-1], "select, the last"),
    one(lambda x: x[:, x.shape[0] - 2 - x.shape[0]], "select, by a size"),
    one(lambda x: x[:, ::2], "slice, every second"),
    Entry("slice, every second row", lambda x: x[1::2], ("S,3,f32",), sizes=(4, 7)),
    one(lambda x: x[-2:], "slice, from the end"),
    one(lambda x: x[:-1], "slice, but the last"),
    one(lambda x: x[5:9], "slice, beyond the end", shape="4,3,f32"),
    Entry(
        "slice, half", lambda x: x[: x.shape[0] // 2], ("S,3,f32",), fixed="PyTorch cannot tell that the half is less"
    ),
    one(lambda x: x[..., None, 1:], "slice, with a new axis"),
    one(lambda x: x.narrow(1, -2, 2), "narrow"),
    one(lambda x: x.narrow(0, -2, 2), "narrow, rows"),
    Entry("narrow, by a size", lambda x: x.narrow(0, 1, x.shape[0] - 2), ("S,3,f32",), sizes=(4, 7)),
    one(lambda x: torch.cat([x, x * 2], 0), "cat"),
    one(lambda x: torch.cat([x, torch.zeros(0), x.double()], 1), "cat, types and nothing"),
    one(lambda x: torch.cat([x], -1), "cat, one"),
    one(lambda x: torch.concat((x[:1], x)), "concat"),
    one(lambda x: torch.stack([x, x + 1], 1), "stack"),
    one(lambda x: torch.stack([x, x + 1], -1), "stack, behind"),
    Entry("hstack", lambda x, y: torch.hstack((x, y)), ("S,3,f32", "S,2,f32")),
    Entry("vstack", lambda x, y: torch.vstack((x, y)), ("S,3,f32", "3,f32")),
    Entry("dstack", lambda x, y: torch.dstack((x, y)), ("S,3,f32", "S,3,f32")),
    Entry("column_stack", lambda x, y: torch.column_stack((x, y)), ("S,3,f32", "S,f32")),
    one(lambda x: torch.cat(x.chunk(3, 1)[::-1], 1), "chunk"),
    one(lambda x: x.chunk(2, 1), "chunk, uneven"),
    one(lambda x: x.split([1, 2], 1)[1], "split"),
    one(lambda x: x.split(2, 1), "split, uneven"),
    one(lambda x: x.split((1, x.shape[0] - 1)), "split, by a size"),
    one(lambda x: torch.split_with_sizes(x, [1, 2], 1), "split_with_sizes"),
    one(lambda x: torch.split_copy(x, 2, 1), "split_copy"),
    one(lambda x: torch.cat([part * 2 for part in x.unbind(1)]), "unbind"),
    one(lambda x: torch.unbind_copy(x, 1), "unbind_copy"),
    one(lambda x: x.tensor_split(2, 1), "tensor_split"),
    Entry("tensor_split, places", lambda x: x.tensor_split((1, 2), 0), ("S,3,f32",), sizes=(4, 7)),
    one(lambda x: x.tensor_split(4, 1), "tensor_split, into nothing"),
    one(lambda x: x.tensor_split(3, 0), "tensor_split, rows", shape="5,3,f32"),
    one(lambda x: x.hsplit(3), "hsplit"),
    one(lambda x: x.vsplit((1,)), "vsplit"),
    one(lambda x: x.dsplit(2), "dsplit", shape="S,3,4,f32"),
    one(lambda x: torch.unsafe_split(x, 2, 1), "unsafe_split"),
    one(lambda x: torch.unsafe_chunk(x, 2, 1), "unsafe_chunk"),
    one(lambda x: torch.unsafe_split_with_sizes(x, [2, 1], 1), "unsafe_split_with_sizes"),
    Entry("slice, by a size behind the end", lambda x, y: y[: x.shape[0]] + x, ("S,3,f32", "1,3,f32")),
]
