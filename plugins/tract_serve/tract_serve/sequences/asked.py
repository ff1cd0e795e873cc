"""What the parameters of a request say of the sequence that it belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tract_core.frozen import frozen
from tract_core.texts import printable
from tract_serve.errors import BadRequest
from tract_serve.fields import flag_in, whole_in

MOST_CHARACTERS: Final = 256
"""Of the text that names a sequence."""


@frozen
class AskedTurn:
    """``id``: of the sequence, a number or a text; ``None`` for a request that is alone.

    ``starts``, ``ends``: whether it is the first, or the last one. ``streams``: whether it brings a chunk of any
    length, and gets what is known by now; else it is one turn of the model. ``keeps``: whether the state is to be in
    the store when the answer comes. ``turn``: which request of the sequence it is, counted from 0, if it says so.
    """

    id: int | str | None = None
    starts: bool = False
    ends: bool = False
    streams: bool = False
    keeps: bool = False
    turn: int | None = None

    @property
    def name(self) -> str:
        """What messages call the sequence."""
        return f"sequence {printable(str(self.id))[:100]!r}"

    @property
    def key(self) -> str:
        """The sequence among those of its model: numbers and texts never name the same one."""
        return f"{'number' if isinstance(self.id, int) else 'text'} {self.id}"


_ALONE: Final = AskedTurn()

_NONE: Final[tuple[Any, ...]] = (None, 0, "")
"""How clients say that a request belongs to no sequence."""


def asked_of(parameters: Mapping[str, Any] | None) -> AskedTurn:
    """What parameters say, as clients of Triton write them. Raises BadRequest.

    ``sequence_id``: 0, or an empty text, for none; ``sequence_start``, ``sequence_end``; and ours: ``stream``, ``keep``
    and ``sequence_turn``.
    """
    if not parameters:
        return _ALONE
    name = _id(parameters.get("sequence_id"))
    made = AskedTurn(
        name,
        flag_in(parameters, "sequence_start"),
        flag_in(parameters, "sequence_end"),
        flag_in(parameters, "stream"),
        flag_in(parameters, "keep"),
        whole_in(parameters, "sequence_turn"),
    )
    if name is None and (made.keeps or made.turn is not None or made.starts or made.ends):
        raise BadRequest("the request says something of a sequence, and has no sequence_id")
    return made


def _id(given: Any) -> int | str | None:
    if not isinstance(given, bool) and given in _NONE:
        return None
    if isinstance(given, str) and len(given) <= MOST_CHARACTERS and given.isprintable():
        return given
    if isinstance(given, int) and not isinstance(given, bool) and 0 < given < 1 << 64:
        return given
    wanted = f"a number from 1 on, or a text of at most {MOST_CHARACTERS} printable characters"
    raise BadRequest(f"sequence_id is {printable(str(given))[:40]!r}, wanted {wanted}")
