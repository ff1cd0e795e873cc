"""The callable that users hold."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from time import perf_counter
from typing import Any, TypeVar

from tract_core.errors import InputError
from tract_ray.batches import batch_of
from tract_ray.preparing import scored_model
from tract_ray.progress import progress_of
from tract_ray.scoring import Scoring
from tract_ray.settings import Columns, ModelRecipe, ModelSource, OnError, Progress, Settings, Threads

Batch = TypeVar("Batch")


class Predictor:
    """A model over rows: takes a batch, and gives it back with the model's outputs as further columns.

    A batch is a dictionary of NumPy arrays, a ``pyarrow.Table`` or a ``pandas.DataFrame``; what comes back is of the
    same kind. For ``map_batches`` of Ray Data, as a class, for others as an object; it can be pickled, and whoever
    receives it prepares the model again, or finds it prepared in his process.
    """

    def __init__(
        self,
        source: ModelSource,
        *,
        inputs: Mapping[str, str] | None = None,
        outputs: Mapping[str, str] | None = None,
        columns: Sequence[str] | None = None,
        facts: Mapping[str, str] | None = None,
        runtime: str = "default",
        threads: Threads = "from_ray",
        trust: bool | str = False,
        at_once: int | None = None,
        on_error: OnError = "raise",
        dead_letter: str | os.PathLike[str] | None = None,
        error_column: str = "error",
        progress: Progress = False,
    ) -> None:
        """Prepares the model.

        ``source``: a path of any installed format, the bytes of one, or a reference to bytes in Ray's object store, as
        `put` gives it. ``inputs``: the column of each input; default: the one of its name, or the only one.
        ``outputs``: the column for each output that is wanted; default: all, by their names. ``columns``: which columns
        of the batch are kept; default: all. ``facts``: what inputs are, in place of what the file says, as
        ``{"image": "N,3,224,224,f32"}``. ``runtime``: its name, with options. ``threads``: how many a run may use;
        ``"from_ray"``: as many as the worker has CPUs, and outside of Ray what the runtime does unasked, as ``None``.
        ``trust``: runs the machine code of an archive: its digest, or ``True``, as `tract_cpu.load_compiled` has it.

        ``at_once``: rows of one run at most; default: all of a batch. ``on_error``: of rows that do not fit or on
        which the model fails. ``"raise"``: BadRows, with their numbers. ``"null"``: their outputs are null, and why is
        in the column ``error_column``. ``"dead_letter"``: they leave the batch, and are written to the folder
        ``dead_letter``, with why. ``progress``: whether rows a second are logged, every few seconds; or what is called
        instead, with the number of rows and the seconds so far.

        Raises InputError for what cannot be, and whatever loading and preparing raise.
        """
        recipe = ModelRecipe(_path_or_other(source), dict(facts or {}), runtime, threads, trust)
        kept = None if columns is None else tuple(columns)
        names = Columns(_copied(inputs), _copied(outputs), kept, error_column)
        folder = None if dead_letter is None else os.fspath(dead_letter)
        self._settings = Settings(recipe, names, at_once, on_error, folder, progress)
        self._progress = progress_of(progress)
        self._scoring: Scoring | None = self._begun()

    def __call__(self, batch: Batch) -> Batch:
        """The batch with outputs. Raises BadRows, and InputError where a column is missing, whatever on_error says."""
        scoring = self._scoring = self._scoring or self._begun()
        given = batch_of(batch)
        result = scoring.scored(given)
        self._progress(given.rows)
        return result

    def frames(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Each batch with outputs, one after the other: for ``mapInPandas`` and ``mapInArrow`` of Spark."""
        return map(self, batches)

    def __repr__(self) -> str:
        recipe = self._settings.recipe
        source = recipe.source if isinstance(recipe.source, str) else type(recipe.source).__name__
        return f"Predictor({source!r}, runtime={recipe.runtime!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return _received, (self._settings,)

    def _begun(self) -> Scoring:
        return Scoring(scored_model(self._settings.recipe), self._settings)


def warm(
    source: ModelSource,
    *,
    facts: Mapping[str, str] | None = None,
    runtime: str = "default",
    threads: Threads = "from_ray",
) -> float:
    """Prepare a model, so that its kernels and its plan are kept for processes that come later: seconds that it took.

    Parameters are those of `Predictor`. Plans are kept for a number of threads: give the same. Raises as that does.
    """
    begin = perf_counter()
    scored_model(ModelRecipe(_path_or_other(source), dict(facts or {}), runtime, threads, trust=False))
    return perf_counter() - begin


def _received(settings: Settings) -> Predictor:
    """A predictor that came by pickle. Its model is prepared at the first batch: not all who hold one run it."""
    made = Predictor.__new__(Predictor)
    made._settings, made._scoring = settings, None  # pyright: ignore[reportPrivateUsage]: it is made here
    made._progress = progress_of(settings.progress)  # pyright: ignore[reportPrivateUsage]: the same
    return made


def _path_or_other(source: Any) -> ModelSource:
    """A path as a text, whatever else as it is."""
    return os.fspath(source) if hasattr(source, "__fspath__") else source  # pyright: ignore[reportUnknownVariableType]: a text, or bytes


def _copied(names: Any) -> dict[str, str] | None:
    """Raises InputError for what is no dictionary of texts."""
    if names is None:
        return None
    if not isinstance(names, Mapping):
        problem = f"names are given as a dictionary, from those of the model to columns; got {type(names).__name__}"
        raise InputError(problem, hint="as inputs={'image': 'pixels'}")
    return {str(key): str(value) for key, value in names.items()}  # pyright: ignore[reportUnknownArgumentType,reportUnknownVariableType]: any are taken
