"""What PyTorch found out about sizes, as assertions of the model: ranges, and what the program was decided by."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, cast

import sympy
import torch
from torch.utils._sympy.functions import FloorDiv
from torch.utils._sympy.symbol import SymT, symbol_is_type

from tract_core.dims import Assertion, Comparison, Dim, SymbolScope, evaluate, symbol, symbols_of
from tract_core.errors import TractError
from tract_core.model.conditions import Condition
from tract_torch.wiring.multiples import multiples, of_multiples
from tract_torch.wiring.sizes import Names, dim_of, expression_of

_RELATIONS: Final[dict[type, Comparison]] = {
    sympy.Eq: "==",
    sympy.Ge: ">=",
    sympy.Gt: ">",
    sympy.Le: "<=",
    sympy.Lt: "<",
}


ASSUMED: Final = 2
"""Where sizes begin that PyTorch was given no range of: it takes 0 and 1 for numbers, which says nothing of them."""


_TRIED: Final = 1 << 10
"""Below this a size is sought that alone makes an equation true."""


_UNDEFINED: Final = (ArithmeticError, AssertionError, TypeError, ValueError)
"""What functions of PyTorch raise for numbers that they are not defined for."""


def assert_ranges(
    program: torch.export.ExportedProgram, names: Names, scope: SymbolScope, free: Collection[str]
) -> None:
    """Rely on the ranges of symbols that the scope has. ``free``: names of those that PyTorch was given no range of."""
    for name, found in program.range_constraints.items():
        size = dim_of(name, names)
        if isinstance(size, int) or not symbols_of(size) <= set(scope.names):
            continue
        lowest = evaluate(size, dict.fromkeys(free, ASSUMED)) if symbols_of(size) <= set(free) else 0
        if found.lower.is_Integer and int(found.lower) > lowest:
            scope.add_assertion(Assertion(size, ">=", int(found.lower)))
        if found.upper.is_Integer:
            scope.add_assertion(Assertion(size, "<=", int(found.upper)))


def late_ranges(program: torch.export.ExportedProgram, names: Names, late: Collection[str]) -> Iterator[Condition]:
    """The ranges of the symbols ``late``, which get their values in the middle of a run, and so are checked there."""
    for name, found in program.range_constraints.items():
        size = dim_of(name, names)
        if isinstance(size, int) or not symbols_of(size) <= set(late):
            continue
        if found.lower.is_Integer and int(found.lower) > 0:
            yield Condition(int(found.lower), "<=", size)
        if found.upper.is_Integer:
            yield Condition(size, "<=", int(found.upper))


def assert_guards(
    program: torch.export.ExportedProgram, names: Names, scope: SymbolScope, free: Collection[str]
) -> list[str]:
    """Rely on what the program was decided by. Returns what no assertion can say. ``free``: as for `assert_ranges`."""
    guards = list(guards_of(program))
    known = multiples(guards)
    return [
        str(guard) for guard in guards if not any(_relied_on(form, names, scope, free) for form in _forms(guard, known))
    ]


def _forms(guard: Any, known: Mapping[Any, int]) -> Iterator[Any]:
    """The guard in one way after another that sizes may be able to say."""
    yield guard
    yield of_multiples(guard, known)
    symbols = list(guard.free_symbols)
    if isinstance(guard, sympy.Eq) and len(symbols) == 1:  # a number that was computed from the size of the example
        right = [size for size in range(1, _TRIED) if _holds(guard, symbols[0], size)]
        yield from (sympy.Eq(symbols[0], size) for size in right if len(right) == 1)


def _holds(guard: Any, name: Any, size: int) -> bool:
    """Whether a guard is true of one size. Where it is not defined, as a quotient by 0, it is not."""
    try:
        found = guard.xreplace({name: sympy.Integer(size)})
    except _UNDEFINED:
        return False
    return found == sympy.true


def guards_of(program: torch.export.ExportedProgram) -> Iterator[Any]:
    """What must hold of sizes, as expressions of SymPy: for the program as a whole, then for data in it."""
    environment = _environment(program)
    if environment is not None:
        yield from [environment.replace(guard.expr) for guard in environment.guards]
    for node in program.graph.nodes:
        if node.target is torch.ops.aten._assert_scalar.default and isinstance(node.args[0], torch.fx.Node):
            yield expression_of(node.args[0].meta["val"])


def _environment(program: torch.export.ExportedProgram) -> Any:
    for node in program.graph.nodes:
        value = node.meta.get("val")
        for size in value.shape if isinstance(value, torch.Tensor) else ():
            if isinstance(size, torch.SymInt):
                return size.node.shape_env
    return None


def _relied_on(guard: Any, names: Names, scope: SymbolScope, free: Collection[str]) -> bool:
    """Add one assertion, unless it follows from others. Returns whether sizes can say it."""
    try:
        _rely_on(guard, names, scope, free)
    except TractError:
        return False
    return True


def _rely_on(guard: Any, names: Names, scope: SymbolScope, free: Collection[str]) -> None:
    """Add one assertion, unless it follows from others. Raises TractError where sizes cannot say it."""
    assumed = scope.copy()
    for name in free:
        assumed.add_assertion(Assertion(symbol(name), ">=", ASSUMED))
    for part in _parts(guard):
        holds = dim_of(part, names)
        if isinstance(part, sympy.Ne) and assumed.simplify(holds) == 1:
            continue  # it says that a size without a range is neither 0 nor 1
        if scope.simplify(holds) == 1 or not symbols_of(holds) <= set(scope.names):
            continue
        relation = _RELATIONS.get(type(part))
        if relation is not None:
            left, right = (dim_of(side, names) for side in part.args)
            scope.add_assertion(Assertion(left, relation, right))
        elif isinstance(part, sympy.Ne):
            _exclude(part, names, scope, holds)
        else:
            scope.add_assertion(Assertion(holds, "==", 1))


def _parts(guard: Any) -> Sequence[Any]:
    """What all has to hold for a guard to hold; a quotient by a size, which no size can be, is told by its bounds.

    That sizes differ is told of the factors of their difference. PyTorch does not know of a product that it is not 0,
    also where each factor is so: what it takes for granted of a symbol is left out there, as it is where it is alone.
    """
    if isinstance(guard, sympy.And):
        return guard.args
    if isinstance(guard, sympy.Ne):
        one, other = cast("tuple[Any, Any]", guard.args)
        factors = [base for base, _ in sympy.factor_list(one - other)[1]]
        return [sympy.Ne(one, 0) for one in factors if not _is_assumed(one)] if len(factors) > 1 else (guard,)
    left, right = cast("tuple[Any, Any]", guard.args) if isinstance(guard, sympy.Eq) else (None, None)
    if isinstance(left, FloorDiv) and not left.args[1].is_Integer and right is not None and right.is_Integer:
        size, divisor = cast("tuple[Any, Any]", left.args)
        return sympy.Ge(divisor, 1), sympy.Ge(size, right * divisor), sympy.Lt(size, (right + 1) * divisor)
    return (guard,)


def _is_assumed(factor: Any) -> bool:
    """Whether this is a symbol of an input, which PyTorch takes to be 2 or more, or such a one less 1."""
    found = next((one for one in (factor, factor + 1) if one.is_Symbol), None)
    return found is not None and not symbol_is_type(found, SymT.UNBACKED_INT)


def _exclude(part: Any, names: Names, scope: SymbolScope, holds: Dim) -> None:
    """That two sizes differ: a narrower range, where the one excluded value is at its end."""
    symbols = list(part.free_symbols)
    solved = sympy.solve(part.args[0] - part.args[1], symbols[0]) if len(symbols) == 1 and _is_linear(part) else []
    value = int(solved[0]) if len(solved) == 1 and solved[0].is_Integer else None
    if value is not None:
        size = dim_of(symbols[0], names)
        bounds = scope.bounds(size)
        if value in {bounds[0], ASSUMED}:
            scope.add_assertion(Assertion(size, ">=", value + 1))
            return
        if bounds[1] == value:
            scope.add_assertion(Assertion(size, "<=", value - 1))
            return
    scope.add_assertion(Assertion(holds, "==", 1))


def _is_linear(part: Any) -> bool:
    kinds = (sympy.Add, sympy.Mul, sympy.Symbol, sympy.Integer)
    return all(isinstance(one, kinds) for one in sympy.preorder_traversal(part.args[0] - part.args[1]))
