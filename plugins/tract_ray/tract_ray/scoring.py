"""A batch, from its columns to its columns with outputs: which rows are bad, and what becomes of them.

A row's last digits may depend on how many rows are run with it, and on where it stands among them. So the place of a
bad row is taken by a copy of a good one: the others get the same bits as in a batch without bad rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from tract_core.errors import InputError, TractError, meant
from tract_core.frozen import frozen
from tract_ray.columns import fitted
from tract_ray.dead_letters import write_dead_letters
from tract_ray.errors import SHOWN, BadRows
from tract_ray.rows import failing_rows, row_runs, run_rows

if TYPE_CHECKING:
    from tract_core.plugins.keys import Array
    from tract_ray.batches import Batch
    from tract_ray.ports import ScoredModel
    from tract_ray.settings import Settings


@frozen
class Outcome:
    """``outputs``: an array for each output, rows outermost; ``bad``: why rows have none, by their number."""

    outputs: Sequence[Array]
    bad: Mapping[int, str]


class Scoring:
    """A model, and what is done with batches. Any number of threads may use one."""

    def __init__(self, model: ScoredModel, settings: Settings) -> None:
        """Raises InputError for inputs and outputs that are not there, Unsupported for a model without rows."""
        self._model, self._settings, columns = model, settings, settings.columns
        for name in columns.inputs or ():
            model.place_of_input(name)
        wanted = columns.outputs or {port.name: port.name for port in model.outputs}
        self._outputs = [model.place_of_output(name) for name in wanted]
        self._names = list(wanted.values())
        if len(set(self._names)) < len(self._names):
            raise InputError(f"two outputs have one column: {', '.join(map(repr, self._names))}")
        self._runs = row_runs(model, self._outputs, settings.at_once)

    def scored(self, batch: Batch) -> Any:
        """The batch with outputs. Raises BadRows as the settings have it, InputError for columns that are not there."""
        settings = self._settings
        kept = self._kept(batch.names)
        result = self._outcome(batch)
        outputs = dict(zip(self._names, result.outputs, strict=True))
        if settings.on_error == "null":
            return batch.with_nulls(kept, outputs, settings.columns.error, result.bad)
        if settings.dead_letter is not None and result.bad:
            rows = sorted(result.bad)
            write_dead_letters(settings.dead_letter, batch.letters(kept, rows, settings.columns.error, result.bad))
            good = np.setdiff1d(np.arange(batch.rows), rows)
            return batch.rows_of(kept, {name: one[good] for name, one in outputs.items()}, good)
        return batch.rows_of(kept, outputs, None)

    def _kept(self, names: Sequence[str]) -> list[str]:
        wanted = self._settings.columns.kept
        kept = list(names) if wanted is None else list(wanted)
        for name in kept:
            _check_there(name, names)
        ours = [*self._names, *([self._settings.columns.error] if self._settings.on_error == "null" else [])]
        twice = [name for name in ours if name in kept]
        if twice:
            problem = f"the batch has a column {twice[0]!r} already, which the result is to have as well"
            raise InputError(problem, hint="name others: outputs={'scores': 'my_scores'}, columns=[...], error_column=")
        return kept

    def _outcome(self, batch: Batch) -> Outcome:
        """What the model makes of the rows. Raises BadRows where bad ones are to be raised."""
        arrays, bad = self._arrays(batch)
        outputs: list[Array] | None = None
        if bad:
            self._raise_if_wanted(batch, bad)
            arrays = _without(arrays, bad)
        if len(bad) < batch.rows:
            try:
                outputs = self._run(arrays)
            except TractError as error:
                outputs, failed = self._without_failing(arrays, bad, error)
                bad |= {row: _text(one) for row, one in failed.items()}
                self._raise_if_wanted(batch, bad, next(iter(failed.values()), error))
        return Outcome(self._nothing(arrays) if outputs is None else outputs, dict(sorted(bad.items())))

    def _arrays(self, batch: Batch) -> tuple[list[Array], dict[int, str]]:
        """The rows for each input, and which do not fit."""
        arrays: list[Array] = []
        bad: dict[int, str] = {}
        for place, port in enumerate(self._model.inputs):
            name = self._column_of(port.name, batch.names)
            found = fitted(batch.column(name), port, self._runs.shape_of_row(port, place))
            arrays.append(found.array)
            bad = {row: f"column {name!r}: {why}" for row, why in found.bad.items()} | bad
        return arrays, bad

    def _column_of(self, input_name: str, names: Sequence[str]) -> str:
        given = self._settings.columns.inputs or {}
        name = given.get(input_name, input_name)
        if input_name not in given and len(self._model.inputs) == 1 == len(names):
            return names[0]
        _check_there(name, names, f"which input {input_name!r} is to have")
        return name

    def _run(self, arrays: Sequence[Array]) -> list[Array]:
        return run_rows(self._model, self._runs, self._outputs, arrays)

    def _without_failing(
        self, arrays: Sequence[Array], bad: Mapping[int, str], error: TractError
    ) -> tuple[list[Array] | None, dict[int, TractError]]:
        """The outputs without the rows on which the model fails, which were found; ``None`` where no row is left.

        Raises ``error``, which all rows together gave, where no row fails alone and errors are raised.
        """
        rows = [row for row in range(len(arrays[0])) if row not in bad]
        raised = self._settings.on_error == "raise"

        def run(some: Sequence[int]) -> None:
            self._run([one[some[0] : some[-1] + 1] if _is_range(some) else one[list(some)] for one in arrays])

        failed = failing_rows(run, rows, SHOWN if raised else None)
        if not failed and raised:
            raise error
        if raised or len(failed) == len(rows):
            return None, failed
        return self._in_parts(_without(arrays, bad.keys() | failed.keys())), failed

    def _in_parts(self, arrays: Sequence[Array]) -> list[Array]:
        """The outputs of rows none of which fails alone, in halves where all together are too many, as for memory."""
        rows = len(arrays[0])
        try:
            return self._run(arrays)
        except TractError:
            if rows == 1:
                raise
        halves = [[one[: rows // 2] for one in arrays], [one[rows // 2 :] for one in arrays]]
        return [np.concatenate(pair) for pair in zip(*map(self._in_parts, halves), strict=True)]

    def _nothing(self, arrays: Sequence[Array]) -> list[Array]:
        """Outputs of rows without a value. Sizes that are symbolic are those of a run of no rows, if there is such."""
        rows = len(arrays[0])
        shapes = [self._model.outputs[place].shape[along:] for place, along in self._places()]
        if any(None in shape for shape in shapes) and not self._runs.exact:
            with suppress(TractError):
                shapes = [one.shape[1:] for one in self._run([one[:0] for one in arrays])]
        ports = [self._model.outputs[place] for place in self._outputs]
        return [
            np.zeros((rows, *(size or 0 for size in shape)), port.dtype)
            for port, shape in zip(ports, shapes, strict=True)
        ]

    def _places(self) -> Iterable[tuple[int, bool]]:
        """The number of each output, and whether its outermost axis is that of the rows."""
        return zip(self._outputs, self._runs.outputs, strict=True)

    def _raise_if_wanted(self, batch: Batch, bad: Mapping[int, str], error: TractError | None = None) -> None:
        """``error``: of the first of the rows on which the model fails, which were looked for up to a number."""
        if self._settings.on_error == "raise":
            more = error is not None and len(bad) >= SHOWN
            raise BadRows(bad, batch.rows, more=more, hint=error and error.hint) from error


def _without(arrays: Sequence[Array], bad: Any) -> list[Array]:
    """The rows, with a copy of the first good one in the place of each bad one. As they are, where none is good."""
    rows = sorted(bad)
    good = np.setdiff1d(np.arange(len(arrays[0])), rows)
    if not len(good):
        return list(arrays)
    result: list[Array] = []
    for one in arrays:
        copy = np.array(one)
        copy[rows] = one[good[0]]
        result.append(copy)
    return result


def _is_range(rows: Sequence[int]) -> bool:
    return rows[-1] - rows[0] + 1 == len(rows)


def _text(error: TractError) -> str:
    return f"{error.where}: {error.problem}" if error.where else error.problem


def _check_there(name: str, names: Sequence[str], what: str = "which is to be kept") -> None:
    if name not in names:
        near = meant(name, names)
        hint = f"did you mean {near[0]!r}?" if near else "inputs= and columns= say which columns are what"
        raise InputError(f"the batch has no column {name!r}, {what}; it has {', '.join(map(repr, names))}", hint=hint)
