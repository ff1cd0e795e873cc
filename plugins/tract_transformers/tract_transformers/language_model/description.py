"""Which input and which output of a model is what, so that it can be asked for the next token.

Two forms are known, by the names and by the shapes of their tensors:

========== ==================================== =====================================================
..         models of tract-gguf                 what generative exporters of ONNX write
========== ==================================== =====================================================
tokens     ``tokens``: B,S,i64                  ``input_ids``: B,S
positions  (that of token s is P+s)             ``position_ids``: B,S, where the model has it
mask       (each token sees all before it)      ``attention_mask``: B,P+S, where the model has it
past       ``past.N.key``, ``past.N.value``     ``past_key_values.N.key``, ``past_key_values.N.value``
present    ``present.N.key``, ...               ``present.N.key``, ...
logits     ``logits``: B,S,V                    ``logits``: B,S,V
========== ==================================== =====================================================

A past is B,H,P,D: the batch, heads, positions, numbers of each; a present is the same with the S new positions behind.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NoReturn

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim
from tract_core.errors import Unsupported
from tract_core.frozen import frozen
from tract_core.model.fact import TypedFact

TOKENS: Final = ("tokens", "input_ids")
POSITIONS: Final = ("position_ids", "positions")
MASKS: Final = ("attention_mask",)
LOGITS: Final = ("logits",)
PAGED: Final = ("positions", "begins", "pages", "copies", "room", "rows")
"""The inputs that `PagedCache` brings."""

_PAST: Final = re.compile(r"past(?:_key_values?)?[._](\d+)[._](?:decoder[._])?(key|value)s?")
_PRESENT: Final = re.compile(r"present(?:_key_values?)?[._](\d+)[._](?:decoder[._])?(key|value)s?")

HINT: Final = "'tract MODEL dump' lists inputs and outputs; docs/generation.md says which ones a language model has"


@frozen
class Kept:
    """One tensor of the past. ``input``, ``output``: names, of what the model is given and of what it gives back.

    ``heads``, ``size``: the sizes of its axes but the batch and the positions. ``kind``: its element type.
    """

    input: str
    output: str
    heads: int
    size: int
    kind: DatumType

    def empty(self, batch: int = 1) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
        """A past without a position: batch,heads,0,size."""
        return np.zeros((batch, self.heads, 0, self.size), self.kind.numpy)


@frozen
class LanguageModel:
    """The names of a language model's inputs and outputs; ``None`` for an input that it has not.

    ``kinds``: the element types of ``tokens``, ``positions`` and ``mask``. ``past``: by layer; keys, then values. It is
    empty for a model that is given the whole text each time. ``vocabulary``: how many logits there are for a token.
    ``pages``: positions of a page and bytes of one, of a model that keeps the past in pages (`PagedCache`).
    """

    tokens: str
    logits: str
    past: tuple[Kept, ...]
    positions: str | None = None
    mask: str | None = None
    kinds: tuple[DatumType, DatumType, DatumType] = (DatumType.I64, DatumType.I64, DatumType.I64)
    vocabulary: int | None = None
    pages: tuple[int, int] | None = None


Facts = Mapping[str, TypedFact]


def describe(inputs: Facts, outputs: Facts, pages: tuple[int, int] | None = None) -> LanguageModel:
    """What the inputs and outputs of a model are, by their names and facts.

    ``pages``: as in `LanguageModel`. Raises Unsupported, with what is missing or not understood, for what is no
    language model of a known form.
    """
    if pages is not None:
        inputs = {name: fact for name, fact in inputs.items() if name not in PAGED}
    tokens = _one_of(inputs, TOKENS, "input of tokens") or _lone_tokens(inputs)
    logits = _one_of(outputs, LOGITS, "output of logits") or _lone_logits(outputs)
    positions, mask = _one_of(inputs, POSITIONS, "input of positions"), _one_of(inputs, MASKS, "mask")
    past = _past(inputs, outputs)
    known = {tokens, positions, mask, *(one.input for one in past)}
    others = [name for name in inputs if name not in known]
    if others:
        _refuse(f"nobody knows what to give to {_listed(others, inputs)}")
    for name, rank in ((tokens, 2), (positions, 2), (mask, 2)):
        if name is not None and (inputs[name].rank != rank or not inputs[name].datum_type.is_integer()):
            _refuse(f"{name!r} is {inputs[name]}, wanted whole numbers for batch and positions, B,S")
    last = outputs[logits].shape[-1]
    kinds = [DatumType.I64 if name is None else _kind(inputs[name]) for name in (tokens, positions, mask)]
    return LanguageModel(
        tokens=tokens,
        logits=logits,
        past=tuple(past),
        positions=positions,
        mask=mask,
        kinds=(kinds[0], kinds[1], kinds[2]),
        vocabulary=last if isinstance(last, int) else None,
        pages=pages,
    )


def _one_of(facts: Facts, names: Sequence[str], role: str) -> str | None:
    found = [name for name in names if name in facts]
    if len(found) > 1:
        _refuse(f"there are several for the {role}: {', '.join(map(repr, found))}")
    return found[0] if found else None


def _lone_tokens(inputs: Facts) -> str:
    """The only input that can be tokens. Raises Unsupported where there is none, or more."""
    taken = {*POSITIONS, *MASKS}
    found = [
        name for name, fact in inputs.items() if fact.rank == 2 and fact.datum_type.is_integer() and name not in taken
    ]
    if len(found) != 1:
        _refuse(f"no input is named {' or '.join(map(repr, TOKENS))}; there are {_listed(list(inputs), inputs)}")
    return found[0]


def _lone_logits(outputs: Facts) -> str:
    found = [
        name
        for name, fact in outputs.items()
        if fact.rank == 3 and fact.datum_type.is_float() and not _PRESENT.fullmatch(name)
    ]
    if len(found) != 1:
        _refuse(f"no output is named 'logits'; there are {_listed(list(outputs), outputs)}")
    return found[0]


def _past(inputs: Facts, outputs: Facts) -> list[Kept]:
    """The tensors of the past, each with what comes of it. Raises Unsupported where one has no counterpart."""
    given = _by_layer(inputs, _PAST)
    back = _by_layer(outputs, _PRESENT)
    for key in given.keys() ^ back.keys():
        name = given.get(key) or back[key]
        other = "output 'present" if key in given else "input 'past"
        _refuse(f"{name!r} has no counterpart: no {other}.{key[0]}.{key[1]}'")
    return [_kept(given[key], inputs[given[key]], back[key], outputs[back[key]]) for key in sorted(given)]


def _by_layer(facts: Facts, pattern: re.Pattern[str]) -> dict[tuple[int, str], str]:
    found: dict[tuple[int, str], str] = {}
    for name in facts:
        match = pattern.fullmatch(name)
        if match is not None:
            key = int(match[1]), match[2]
            if key in found:
                _refuse(f"{found[key]!r} and {name!r} are both the {key[1]} of layer {key[0]}")
            found[key] = name
    return found


def _kept(given: str, before: TypedFact, back: str, after: TypedFact) -> Kept:
    """One tensor of the past. Raises Unsupported where the two differ in more than the positions."""
    heads, size = (before.shape[1], before.shape[3]) if before.rank == 4 else (None, None)
    if not isinstance(heads, int) or not isinstance(size, int) or isinstance(before.shape[2], int):
        _refuse(f"{given!r} is {before}, wanted B,H,P,D with numbers for H and D and a symbol for P")
    others: list[tuple[Dim, Dim]] = [(before.shape[at], after.shape[at]) for at in (1, 3)] if after.rank == 4 else []
    agree = others and all(one == other for one, other in others if isinstance(other, int))
    if not agree or before.datum_type != after.datum_type:
        _refuse(f"{back!r} is {after}, which is not {given!r}, {before}, with more positions")
    return Kept(given, back, heads, size, _kind(before))


def _kind(fact: TypedFact) -> DatumType:
    """The element type. Raises Unsupported for one that is none of the plain ones."""
    if not isinstance(fact.datum_type, DatumType):
        _refuse(f"{fact} is not of a plain type of numbers")
    return fact.datum_type


def _listed(names: Sequence[str], facts: Facts) -> str:
    shown = ", ".join(f"{name!r} ({facts[name]})" for name in names[:5])
    return f"{shown or 'none'}{f' and {len(names) - 5} more' if len(names) > 5 else ''}"


def _refuse(problem: str) -> NoReturn:
    raise Unsupported(f"this is no language model of a form that is known here: {problem}", hint=HINT)
