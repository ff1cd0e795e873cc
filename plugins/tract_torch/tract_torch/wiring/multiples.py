"""Sizes that are multiples of a number, as PyTorch found out, and what is simpler because of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, cast

import sympy
from torch.utils._sympy.functions import FloorDiv, Mod


def multiples(guards: Iterable[Any]) -> dict[Any, int]:
    """Symbols that are multiples of a number, which guards say."""
    found: dict[Any, int] = {}
    for guard in guards:
        if isinstance(guard, sympy.Eq) and all(isinstance(side, sympy.Expr) for side in guard.args):
            symbol, number = _without_rest(guard) or _as_its_part(guard) or (None, 1)
            if symbol is not None:
                found[symbol] = math.lcm(number, found.get(symbol, 1))
    return found


def of_multiples(expression: Any, known: Mapping[Any, int]) -> Any:
    """The same, in which quotients of what is a multiple are simplified, as ``S//(S//4)`` to 4."""
    parts = {one: sympy.Dummy(integer=True, positive=True) for one in known if expression.has(one)}
    found = expression.xreplace({one: known[one] * part for one, part in parts.items()})
    return found.xreplace({part: FloorDiv(one, known[one]) for one, part in parts.items()})


def _without_rest(guard: Any) -> tuple[Any, int] | None:
    """Of ``4*S % 8 == 0``, S and 2."""
    left, right = cast("tuple[Any, Any]", guard.args)
    if not isinstance(left, Mod) or right != 0:
        return None
    of, by = cast("tuple[Any, Any]", left.args)
    factor, symbol = of.as_coeff_Mul()
    if not (by.is_Integer and symbol.is_Symbol and factor.is_Integer):
        return None
    return symbol, int(by) // math.gcd(int(by), int(factor))


def _as_its_part(guard: Any) -> tuple[Any, int] | None:
    """Of ``4*S == 8*(S//2)``, S and 2."""
    sides = [side.as_coeff_Mul() for side in guard.args]
    for (factor, symbol), (times, quotient) in (sides, reversed(sides)):
        if symbol.is_Symbol and isinstance(quotient, FloorDiv) and quotient.args[0] == symbol:
            by = cast("Any", quotient.args[1])
            if by.is_Integer and times == factor * by:
                return symbol, int(by)
    return None
