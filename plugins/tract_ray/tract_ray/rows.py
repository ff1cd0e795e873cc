"""How rows become runs of a model, and which rows it fails on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tract_core.errors import RunError, TractError, Unsupported
from tract_core.frozen import frozen
from tract_ray.ports import Port, ScoredModel, shown

if TYPE_CHECKING:
    from tract_core.plugins.keys import Array


@frozen
class RowRuns:
    """Where rows are in a model, and how many of them a run takes.

    ``most``: rows of a run at most; ``None`` for any number. ``exact``: whether it takes neither more nor fewer.
    ``inputs``, ``outputs``: for each, whether its outermost axis is that of the rows; else it is of one row, whole.
    """

    most: int | None
    exact: bool
    inputs: tuple[bool, ...]
    outputs: tuple[bool, ...]

    def shape_of_row(self, port: Port, place: int) -> tuple[int | None, ...]:
        """That of one row of an input, by its number."""
        return port.shape[1:] if self.inputs[place] else port.shape


def row_runs(model: ScoredModel, outputs: Sequence[int], at_once: int | None) -> RowRuns:
    """How a model runs rows. ``outputs``: those that are wanted, by number; ``at_once``: rows of a run at most.

    Outermost axes of inputs that are symbolic are those of rows; so are those of one size that all inputs and outputs
    have. Where there is none, each row is a run. Raises Unsupported for anything in between.
    """
    wanted = [model.outputs[place] for place in outputs]
    first = {port.shape[0] if port.shape else -1 for port in model.inputs}
    if first == {None}:
        _check_rows(wanted)
        return RowRuns(at_once, exact=False, inputs=(True,) * len(model.inputs), outputs=(True,) * len(wanted))
    if None in first:
        lacking = [str(port) for port in model.inputs if not port.shape or port.shape[0] is not None]
        problem = f"some inputs have an outermost axis of symbolic size, for rows, and {', '.join(lacking)} has none"
        raise Unsupported(problem, hint="say by facts= what inputs are, as {'image': 'N,3,224,224,f32'}")
    size = first.pop() if len(first) == 1 else -1
    alike = tuple(port.shape[:1] == (size,) for port in wanted)
    if size is not None and size > 1 and all(alike):
        return RowRuns(size, exact=True, inputs=(True,) * len(model.inputs), outputs=alike)
    return RowRuns(
        1, exact=True, inputs=(size == 1,) * len(model.inputs), outputs=tuple(size == 1 and one for one in alike)
    )


def _check_rows(outputs: Sequence[Port]) -> None:
    for port in outputs:
        if not port.shape or port.shape[0] is not None:
            problem = f"output {port} has no axis of rows: its outermost one does not grow with the batch"
            raise Unsupported(problem, hint="name the outputs that are wanted: outputs={'scores': 'scores'}")


def run_rows(model: ScoredModel, runs: RowRuns, outputs: Sequence[int], arrays: Sequence[Array]) -> list[Array]:
    """The wanted outputs of rows, with the rows outermost.

    ``arrays``: for each input, rows outermost, one row at least. Raises TractError.
    """
    rows = len(arrays[0])
    step = runs.most or rows
    if rows <= step:
        return _run(model, runs, outputs, arrays)
    parts = [_run(model, runs, outputs, [one[at : at + step] for one in arrays]) for at in range(0, rows, step)]
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def _run(model: ScoredModel, runs: RowRuns, outputs: Sequence[int], arrays: Sequence[Array]) -> list[Array]:
    rows = len(arrays[0])
    taken = runs.most if runs.exact and runs.most else rows
    if rows < taken:
        arrays = [np.concatenate([one, np.repeat(one[-1:], taken - rows, axis=0)]) for one in arrays]
    found = model.run([one if along else one[0] for one, along in zip(arrays, runs.inputs, strict=True)])
    result = [
        found[place] if along else found[place][np.newaxis] for place, along in zip(outputs, runs.outputs, strict=True)
    ]
    for place, one in zip(outputs, result, strict=True):
        if len(one) != taken:
            problem = f"{taken} rows gave an output of shape {shown(one.shape)}, whose outermost axis is not theirs"
            raise RunError(problem, where=f"output {model.outputs[place].name!r}")
    return [one[:rows] for one in result]


Run = Callable[[Sequence[int]], object]
"""Runs the rows of these numbers. Raises TractError where it fails on one of them."""


def failing_rows(run: Run, rows: Sequence[int], most: int | None = None) -> dict[int, TractError]:
    """Which rows a model fails on, and how, where it failed on all of them together.

    Found by bisection: one among n costs at most 2 log2(n) + 1 runs. ``most``: it is enough to find so many.
    """
    found: dict[int, TractError] = {}
    waiting = [(list(rows), True)]  # groups of rows, and whether a run of them is known to fail
    while waiting and (most is None or len(found) < most):
        group, known = waiting.pop()
        error = None if known and len(group) > 1 else _error_of(run, group)
        if len(group) == 1 and error is not None:
            found[group[0]] = error
        elif len(group) > 1 and (known or error is not None):
            half = len(group) // 2
            error = _error_of(run, group[:half])
            waiting.append((group[half:], error is None))
            if error is not None:
                waiting.append((group[:half], True))
    return dict(sorted(found.items()))


def _error_of(run: Run, rows: Sequence[int]) -> TractError | None:
    try:
        run(rows)
    except TractError as error:
        return error
    return None
