"""What is wrong with a request of the OpenAI interface: of which parameter, and by which word."""

from __future__ import annotations

from tract_core.errors import ModelError, RunError, TractError
from tract_serve.errors import BadRequest, Failed, NotFound


class WrongParameter(BadRequest):
    """A parameter is not what it is to be, or asks for what cannot be done."""

    def __init__(self, param: str, problem: str, *, hint: str | None = None, code: str | None = None) -> None:
        """``param``: its name, as ``messages[0].content``. ``code``: a word for what is wrong."""
        super().__init__(problem, where=param, hint=hint)
        self.param, self.code = param, code


class NoSuchModel(NotFound):
    """There is no model of that name."""

    param = "model"
    code = "model_not_found"


def about(param: str, error: TractError) -> WrongParameter:
    """An error that a parameter caused, wherever it was found."""
    return WrongParameter(param, error.problem, hint=error.hint if not isinstance(error, ModelError) else None)


def failed(error: BaseException) -> BaseException:
    """An error of a model that writes: what the client sent was looked at before, so it is the model's."""
    return Failed(error.problem, where=error.where, hint=error.hint) if isinstance(error, RunError) else error
