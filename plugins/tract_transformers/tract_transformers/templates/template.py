"""Chat templates: what the turns of a conversation look like to a model."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from jinja2 import TemplateSyntaxError

from tract_core.errors import CorruptModel, InputError, LimitExceeded, TractError
from tract_transformers.templates.budget import RenderBudget
from tract_transformers.templates.environment import BoundedEnvironment
from tract_transformers.templates.functions import RaisedByTemplateError

MOST_SOURCE: Final = 1_000_000
"""Characters of a template; long ones have some 20,000."""

WHERE: Final = "chat template"


class ChatTemplate:
    """A template of Jinja, as the ``transformers`` package has them, in a sandbox with a budget.

    ``source``: its text. Many threads may use one.
    """

    def __init__(self, source: str) -> None:
        """Raises CorruptModel for what is no template."""
        if len(source) > MOST_SOURCE:
            raise LimitExceeded(f"it has {len(source):,} characters, more than {MOST_SOURCE:,}", where=WHERE)
        self.source = source
        self._lock = threading.Lock()
        self._environment = BoundedEnvironment()
        try:
            self._template = self._environment.from_string(source)
        except TemplateSyntaxError as error:
            raise CorruptModel(f"line {error.lineno}: {error.message}", where=WHERE) from None
        except Exception as error:
            raise CorruptModel(f"it cannot be compiled: {type(error).__name__}: {error}", where=WHERE) from error

    def render(
        self, messages: Sequence[Mapping[str, Any]], names: Mapping[str, str] | None = None, **variables: Any
    ) -> str:
        """What it writes for a conversation, up to where the model's answer begins.

        ``messages``: each with a ``role`` and its ``content``, and whatever else the template reads. ``names``: texts
        of special tokens, as ``{"bos_token": "<s>"}``. ``variables``: others that it reads, as
        ``enable_thinking=False``.

        Raises InputError for messages that are none, and where the template refuses them; LimitExceeded where it takes
        too much; CorruptModel where it fails.
        """
        given = {"tools": None, "documents": None, "add_generation_prompt": True, **(names or {}), **variables}
        with self._lock:
            self._environment.budget = RenderBudget()
            try:
                return self._template.render(messages=checked_messages(messages), **given)
            except TractError:
                raise
            except RaisedByTemplateError as error:
                problem = f"it refuses the conversation: {error.message}"
                raise InputError(problem, where=WHERE, hint="give the messages as it wants them") from None
            except Exception as error:
                raise CorruptModel(f"it fails: {type(error).__name__}: {error}", where=WHERE) from error


def checked_messages(messages: Any) -> list[dict[str, Any]]:
    """The messages of a conversation. Raises InputError for what are none."""
    hint = 'as in [{"role": "user", "content": "Hello!"}]'
    if not isinstance(messages, (list, tuple)):
        raise InputError(f"messages are a {type(messages).__name__}, wanted a list", hint=hint)
    found = list(cast("Sequence[Any]", messages))
    for place, one in enumerate(found):
        if not isinstance(one, Mapping) or not isinstance(cast("Mapping[str, Any]", one).get("role"), str):
            raise InputError(f"message {place} is {one!r}, wanted a dictionary with a role and its content", hint=hint)
    return [dict(cast("Mapping[str, Any]", one)) for one in found]
