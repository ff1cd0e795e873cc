"""The one family of errors that users meet.

Every error says where it happened, what was found, what was wanted, and what to do about it. ``where`` and
``hint`` are fields, so that tools can show them apart; ``str(error)`` holds all three parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Final

from tract_core.texts import printable_lines, with_short_sizes


class TractError(Exception):
    """Anything that this project refuses or cannot do.

    ``problem``: what was found and what was wanted. ``where``: the node, file, tensor or argument concerned.
    ``hint``: what the reader can do about it. None of them steers a terminal, whatever a file's texts in them hold, and
    long symbolic sizes are shortened.
    """

    advice: ClassVar[str | None] = None
    """The hint of errors that are given none."""

    def __init__(self, problem: str, *, where: str | None = None, hint: str | None = None) -> None:
        self.problem = with_short_sizes(printable_lines(problem))
        super().__init__(self.problem)
        self.where = where and printable_lines(where)
        self.hint = self.advice if hint is None else with_short_sizes(printable_lines(hint))

    def __str__(self) -> str:
        text = f"{self.where}: {self.problem}" if self.where else self.problem
        return f"{text}\n  hint: {self.hint}" if self.hint else text

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.problem, self.where, self.hint)

    def at(self, where: str) -> TractError:
        """The same error, with ``where`` put in front of the place it already names, unless that begins so."""
        place = printable_lines(where)
        if not f"{self.where}: ".startswith(f"{place}: "):
            self.where = f"{place}: {self.where}" if self.where else place
        return self


def _rebuild(kind: type[TractError], problem: str, where: str | None, hint: str | None) -> TractError:
    """Pickling support: subclasses with more arguments come back as the same class."""
    error = kind.__new__(kind)
    TractError.__init__(error, problem, where=where, hint=hint)
    return error


def together(
    problems: Sequence[TractError], kind: type[TractError], what: str, *, where: str | None = None, hint: str | None
) -> TractError:
    """One error for several, of nodes of one model: it lists them, those with one text together.

    ``kind``, ``what``, ``where``: its class, what it says in front, and of what. ``hint``: that where theirs differ.
    """
    places: dict[str, list[str]] = {}
    for problem in problems:
        places.setdefault(problem.problem, []).append(problem.where or "model")
    shown = "".join(f"\n  {_listed(where)}: {text}" for text, where in list(places.items())[:_MOST])
    more = f"\n  and {len(places) - _MOST} more problems" if len(places) > _MOST else ""
    hints = {problem.hint for problem in problems}
    error = kind(f"{what}:{shown}{more}", where=where, hint=hints.pop() if len(hints) == 1 else hint)
    error.__cause__ = ExceptionGroup("the nodes' own errors", problems)
    return error


_MOST: Final = 50
"""Problems that are listed."""


def _listed(places: Sequence[str]) -> str:
    more = f" and {len(places) - 5} more" if len(places) > 5 else ""
    return ", ".join(places[:5]) + more


class ModelError(TractError):
    """A model file or graph cannot be taken as it is."""

    advice = "'tract MODEL doctor' lists all that is wrong with a model"


class MissingFile(ModelError, FileNotFoundError):
    """There is no file of the name that was given."""

    advice = "check the path"


class CorruptModel(ModelError):
    """The file breaks the rules of its own format."""

    advice = "export or download the model again"


class UnsafePath(ModelError):
    """The file asks for something outside its own folder."""

    advice = "external data must be in plain files in the model's own folder, or in one below it"


class LimitExceeded(ModelError):
    """The file asks for more memory, time or depth than the limits allow."""

    advice = "take the model from a source that you trust; LoadLimits can allow more"


class Unsupported(ModelError):
    """The file is right, and this installation cannot take it."""

    advice = "export the model without it; a plugin can add what is missing, see docs/plugins.md"


class Unwritable(Unsupported):
    """A format cannot say the model. The error names every node that it has no words for."""

    advice = "write it in another format, or transform the model first"


class MissingOperator(Unsupported):
    """An operator that nothing here knows."""


class ContradictoryFacts(ModelError):
    """What is said about a tensor is not what its operators give."""

    advice = "correct the side that is wrong"


class ModelWarning(UserWarning):
    """A model file says something that cannot be, and that was set aside."""


class VersionError(ModelError):
    """The file's format or operator-set version is outside the supported range."""

    advice = "convert the model with onnx.version_converter"


class FactError(TractError):
    """The facts of a node's inputs do not fit its operator."""


class UntypableModel(ModelError, FactError):
    """A node of a model does not take what the nodes before it give."""


class DimError(TractError):
    """A symbolic size cannot be parsed, evaluated or bound."""


class GraphError(TractError):
    """A graph or a patch is inconsistent, or names something that is not there."""


class InputError(TractError):
    """The arrays or arguments that the caller gave do not fit."""


class ConsumedError(TractError):
    """The object was handed over to another one and can no longer be used."""


class TransformError(TractError):
    """A transform is unknown, misparametrised, or does not apply to this model."""


class RunError(TractError):
    """A node failed while it was computing."""


class PluginError(TractError):
    """A plugin cannot be found, loaded or used."""


class RegistrationError(PluginError):
    """Two rows claim one key, or a row does not fit its table."""


def meant(name: str, there: Iterable[str], count: int = 1, *, alike: float = 0.6) -> list[str]:
    """Which of the names that are there somebody may have meant by one that is not, the nearest first, for hints.

    ``alike``: the share of characters in common, between 0 and 1, from which on a name is near.
    """
    from difflib import get_close_matches

    return get_close_matches(name, list(there), count, alike)
