"""How long the operations on symbolic sizes take.

Run from the root of the repository: ``python bench/bench_dims.py``. Prints microseconds per operation, the best of five
rounds. A model of 2,000 nodes makes some 20,000 of the cheap ones, so 5 microseconds each is a tenth of a second.
"""

from __future__ import annotations

import platform
import timeit
from collections.abc import Callable

from tract_core.dims import (
    Dim,
    broadcast,
    ceil_div,
    dim_max,
    dim_min,
    evaluate,
    exact_div,
    parse_dim,
    product,
    same_dim,
    substitute,
    symbol,
)

_ROUNDS = 5
_REPEAT = 2000

B, S, P = symbol("B"), symbol("S"), symbol("P")
LONG = (S + 3) // 4 + P
CASES: dict[str, Callable[[], object]] = {
    "symbol('S')": lambda: symbol("S"),
    "S + 1": lambda: S + 1,
    "S + P": lambda: S + P,
    "2 * S": lambda: 2 * S,
    "B * S": lambda: B * S,
    "(S + 3) // 4": lambda: (S + 3) // 4,
    "S % 8": lambda: S % 8,
    "ceil_div(S + P, 16)": lambda: ceil_div(S + P, 16),
    "convolution: (S + 2 - 3) // 2 + 1": lambda: (S + 2 - 3) // 2 + 1,
    "three of these in a row": lambda: (((S - 1) // 2 + 1 - 1) // 2 + 1 - 1) // 2 + 1,
    "product(B, S, 64)": lambda: product((B, S, 64)),
    "exact_div(64*B*S, 8*S)": lambda: exact_div(64 * B * S, 8 * S),
    "broadcast(S, P)": lambda: broadcast(S, P),
    "dim_max(0, S)": lambda: dim_max(0, S),
    "dim_min(S, P)": lambda: dim_min(S, P),
    "S + 1 == S + 1": lambda: S + 1 == S + 1,
    "same_dim(S, P)": lambda: same_dim(S, P),
    "same_dim(S, S + 1)": lambda: same_dim(S, S + 1),
    "same_dim(S - S/2, (S + 1)/2)": lambda: same_dim(S - S // 2, (S + 1) // 2),
    "same_dim((S + 3)/4, P)": lambda: same_dim((S + 3) // 4, P),
    "hash((S + 3)/4 + P)": lambda: hash((S + 3) // 4 + P),
    "substitute((S + 3)/4 + P, S=2*B)": lambda: substitute(LONG, {"S": 2 * B}),
    "evaluate((S + 3)/4 + P)": lambda: evaluate(LONG, {"S": 9, "P": 5}),
    "parse_dim, seen before": lambda: parse_dim("(S+3)/4+P"),
    "parse_dim, new": lambda: parse_dim.__wrapped__("(S+3)/4+P"),
    "str((S + 3)/4 + P)": lambda: str(LONG),
}


def microseconds(case: Callable[[], object]) -> float:
    """The time of one call, in microseconds."""
    return min(timeit.repeat(case, number=_REPEAT, repeat=_ROUNDS)) / _REPEAT * 1e6


def long_chain(nodes: int) -> Dim:
    """The sizes that ``nodes`` operators of a model make: three axes each."""
    size: Dim = S
    for _ in range(nodes):
        size = (size + 2 - 3) // 1 + 1
        product((B, size, 64))
        same_dim(size, S)
    return size


def main() -> None:
    """Print one line per operation."""
    print(f"Python {platform.python_version()}, {platform.machine()}; microseconds per operation")
    for name, case in CASES.items():
        print(f"{microseconds(case):8.2f}  {name}")
    print(f"{timeit.timeit(lambda: long_chain(2000), number=1) * 1e6:8.0f}  sizes of a model of 2,000 nodes")


if __name__ == "__main__":
    main()
