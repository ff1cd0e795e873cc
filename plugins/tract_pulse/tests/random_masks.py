"""Random masks of positions: arithmetic on rows and columns, comparisons of it, and what is made of the answers."""

from __future__ import annotations

import random
from typing import Any

from cases_attention import band, block_diagonal, number, scalar
from stream_cases import Net

from tract_core.data import DatumType
from tract_core.ops.binary import (
    Add,
    And,
    Div,
    Eq,
    FloorRem,
    Ge,
    Gt,
    Le,
    Lt,
    Max,
    Min,
    Mul,
    Ne,
    Or,
    Rem,
    Sub,
    SubF,
    Xor,
)
from tract_core.ops.cast import Cast
from tract_core.ops.elementwise import Abs, Ceil, Floor, Neg, Not
from tract_core.ops.iff import Iff


class Masks:
    """Masks that a seed tells."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def number(self, net: Net, rows: Any, columns: Any, depth: int) -> Any:
        """Integers of rows and columns."""
        pick = self.random.choice
        if not depth or self.random.random() < 0.25:
            return pick([rows, columns, rows, columns, number(net, self.random.randint(-4, 6))])
        a, b = (self.number(net, rows, columns, depth - 1) for _ in range(2))
        kind = pick(["one", "two", "two", "constant", "float"])
        if kind == "one":
            return net(pick([Abs(), Neg()]), a)
        if kind == "two":
            return net(pick([Add(), Sub(), Sub(), SubF(), Min(), Max()]), a, b)
        if kind == "constant":
            op = pick([Div(), Div(), FloorRem(), Rem(), Mul()])
            size = pick([0, 1, 2, 3, 4, -1]) if isinstance(op, Mul) else pick([1, 2, 3, 4, 6])
            return net(op, a, number(net, -size if isinstance(op, Div) and size == 6 else size))
        scaled = net(pick([Mul(), Div()]), net(Cast(DatumType.F32), a), scalar(net, pick([0.5, 2.0, 3.0, -1.5])))
        return net(Cast(DatumType.I64), net(pick([Floor(), Ceil()]), scaled))

    def mask(self, net: Net, rows: Any, columns: Any, depth: int) -> Any:
        """Booleans of rows and columns, that are more often limited to a band than not."""
        pick = self.random.choice
        if not depth or self.random.random() < 0.3:
            kind = pick(["band", "band", "blocks", "comparison", "comparison"])
            if kind == "band":
                first, last = sorted(self.random.randint(-5, 5) for _ in range(2))
                return band(-first, last)(net, rows, columns)
            if kind == "blocks":
                return block_diagonal(self.random.randint(1, 5))(net, rows, columns)
            return net(pick([Eq, Ne, Lt, Le, Gt, Ge])(), *(self.number(net, rows, columns, 2) for _ in range(2)))
        parts = [self.mask(net, rows, columns, depth - 1) for _ in range(3)]
        op = pick([And(), And(), And(), Or(), Not(), Xor(), Iff()])
        return net(op, *parts[: 1 if isinstance(op, Not) else 3 if isinstance(op, Iff) else 2])
