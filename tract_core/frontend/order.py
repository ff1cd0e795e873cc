"""The nodes of a file in an order in which they can be added to a model: files may have them in any other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from tract_core.errors import CorruptModel


def ordered(
    needs: Sequence[Sequence[int]], place: Callable[[int], str], roots: Iterable[int] | None = None
) -> Iterator[int]:
    """The numbers of nodes, each after those that it needs.

    ``needs``: for each node, the numbers of those whose outputs it reads; of these, the last is placed first.
    ``place``: a node, as messages name it. ``roots``: the nodes that are wanted, with all that they need; all of them
    by default. Raises CorruptModel for nodes that need each other.
    """
    state = [0] * len(needs)  # 0: not seen, 1: what it reads is being placed, 2: placed
    for root in range(len(needs)) if roots is None else roots:
        stack = [root]
        while stack:
            index = stack[-1]
            missing = [need for need in needs[index] if state[need] < 2] if state[index] < 2 else []
            if state[index] == 2 or not missing:
                stack.pop()
                if state[index] < 2:
                    state[index] = 2
                    yield index
            elif state[index] == 1 or any(state[need] == 1 for need in missing):
                raise CorruptModel("the nodes depend on each other in a circle", where=place(index))
            else:
                state[index] = 1
                stack.extend(missing)
