"""The one family of errors that users meet.

Every error says where it happened, what was found, what was wanted, and what to do about it. ``where`` and
``hint`` are fields, so that tools can show them apart; ``str(error)`` holds all three parts.
"""

from __future__ import annotations


class TractError(Exception):
    """Anything that this project refuses or cannot do.

    ``problem``: what was found and what was wanted. ``where``: the node, file, tensor or argument concerned.
    ``hint``: what the reader can do about it.
    """

    def __init__(self, problem: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        text = f"{self.where}: {self.problem}" if self.where else self.problem
        return f"{text}\n  hint: {self.hint}" if self.hint else text

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.problem, self.where, self.hint)

    def at(self, where: str) -> TractError:
        """This error, with ``where`` put in front of the place it already names."""
        self.where = f"{where}: {self.where}" if self.where else where
        return self


def _rebuild(kind: type[TractError], problem: str, where: str | None, hint: str | None) -> TractError:
    """Pickling support: subclasses with more arguments come back as the same class."""
    error = kind.__new__(kind)
    TractError.__init__(error, problem, where=where, hint=hint)
    return error


class ModelError(TractError):
    """A model file or graph cannot be taken as it is."""


class CorruptModel(ModelError):
    """The file breaks the rules of its own format."""


class UnsafePath(ModelError):
    """The file asks for something outside its own folder."""


class LimitExceeded(ModelError):
    """The file asks for more memory, time or depth than the limits allow."""


class Unsupported(ModelError):
    """The file is right, and this installation cannot take it."""


class ContradictoryFacts(ModelError):
    """What is said about a tensor is not what its operators give."""


class VersionError(ModelError):
    """The file's format or operator-set version is outside the supported range."""


class FactError(TractError):
    """The facts of a node's inputs do not fit its operator."""


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
