"""What an answer has to look like: a schema of JSON, a grammar or an expression, as the package ``llguidance`` has it.

That package says for each place which tokens can still become such a text; it is an extra of this distribution. What
strangers write may be hostile, and there are grammars of some hundred letters that keep it busy for minutes, and others
that end the process. So each grammar is first tried in a process of its own, which is given some seconds.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Literal, Protocol, cast
from weakref import WeakKeyDictionary, ref

import numpy as np
import numpy.typing as npt

import tract_core
from tract_core.errors import InputError, PluginError
from tract_core.frozen import frozen
from tract_transformers.sampling.grammar_child import limits_of, said_of
from tract_transformers.sampling.steps import Logits

Kind = Literal["schema", "grammar", "regex"]


class Tokens(Protocol):
    """What is wanted of a tokenizer here: how many tokens there are, which end answers, and what they spell."""

    @property
    def size(self) -> int:
        """How many there are."""
        ...

    @property
    def ends(self) -> frozenset[int]:
        """Those that end an answer."""
        ...

    def pieces(self) -> Sequence[bytes | None]:
        """What each is in a text; ``None`` for a special one."""
        ...

    def encode(self, text: str) -> list[int]:
        """The tokens of a text."""
        ...


MOST_TEXT: Final = 1 << 20
"""Characters of a schema, a grammar or an expression."""

PATIENCE: Final = 10.0
"""Seconds that reading one may take, on top of those that a process takes to start."""

_EOS: Final = b"\xff<|end of the answer|>"
"""The token that ends an answer, for tokenizers without one: none that a model knows."""

_COMMAND: Final = (
    "import sys; sys.path += sys.argv[1:]; from tract_transformers.sampling.grammar_child import main; main()"
)


@frozen
class Grammar:
    """``text``: a schema, a grammar in the package's own words, or a regular expression, as ``kind`` says."""

    kind: Kind
    text: str

    def matching(self, tokenizer: Tokens) -> Matching:
        """The beginning of a text that is held to it. Raises InputError for a grammar that is none, PluginError."""
        problem = _problem(self)
        if problem:
            raise InputError(problem, where=self.kind, hint=_HINTS[self.kind])
        return Matching(self, tokenizer)


_HINTS: Final = {
    "schema": "docs/generation.md says which schemas are taken",
    "grammar": "its form is that of llguidance, docs/syntax.md there, which is like that of Lark",
    "regex": "expressions are those of Rust's regex package, without looking around",
}


def grammar_of(schema: object = None, grammar: object = None, regex: object = None) -> Grammar | None:
    """The grammar that somebody gives in one of three ways; ``None`` for none.

    ``schema``: an object of JSON, or its text. ``grammar``, ``regex``: texts. Raises InputError for two at once, and
    for what is none of these.
    """
    given: dict[Kind, object] = {"schema": schema, "grammar": grammar, "regex": regex}
    several: list[tuple[Kind, object]] = [(kind, one) for kind, one in given.items() if one is not None]
    if not several:
        return None
    if len(several) > 1:
        raise InputError(f"{' and '.join(kind for kind, _ in several)} are given, wanted one of them")
    kind, one = several[0]
    if kind == "schema" and isinstance(one, Mapping):
        text: object = _written(dict(cast("Mapping[object, object]", one)))
    else:
        text = one
    if not isinstance(text, str):
        wanted = "a text or a dictionary" if kind == "schema" else "a text"
        raise InputError(f"{kind} is a {type(text).__name__}, wanted {wanted}")
    if len(text) > MOST_TEXT:
        raise InputError(f"{kind} has {len(text):,} characters, more than {MOST_TEXT:,}")
    if not text.isprintable() and any("\ud800" <= one <= "\udfff" for one in text):
        raise InputError(f"{kind} holds halves of characters")
    return Grammar(kind, text)


def _written(schema: object) -> str:
    try:
        return json.dumps(schema)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"schema cannot be written as JSON: {error}") from None


class Matching:
    """Which tokens can come next in one text that is held to a grammar."""

    def __init__(self, grammar: Grammar, tokenizer: Tokens) -> None:
        """``grammar``: one that was tried. Raises InputError for one that the package refuses, PluginError."""
        library = _library()
        self._kind = grammar.kind
        self._size = tokenizer.size
        known = _told(tokenizer)
        try:
            said = said_of(library, grammar.kind, grammar.text)
        except ValueError as error:
            raise InputError(str(error), where=grammar.kind, hint=_HINTS[grammar.kind]) from None
        self._matcher: Any = library.LLMatcher(known, said, log_level=0, limits=limits_of(library))
        self._check()
        self._allowed: npt.NDArray[np.bool_] | None = None

    def masked(self, logits: Logits) -> Logits:
        """The logits [V], with minus infinity for tokens that cannot come. Raises InputError where none can."""
        allowed = self._next()
        if not allowed.any():
            raise InputError(_STUCK, where=self._kind)
        return np.where(allowed, logits, logits.dtype.type(-np.inf))

    def add(self, token: int) -> None:
        """The text goes on with a token that can come."""
        self._matcher.consume_token(token)
        self._allowed = None
        self._check()

    def take_back(self, count: int) -> None:
        """The text is without its last tokens."""
        if count:
            self._matcher.rollback(count)
            self._allowed = None
            self._check()

    @property
    def is_whole(self) -> bool:
        """Whether nothing can come behind the text, but what ends answers."""
        return bool(self._matcher.is_stopped()) or (bool(self._matcher.is_accepting()) and not self._next().any())

    def _next(self) -> npt.NDArray[np.bool_]:
        if self._allowed is None:
            found = np.frombuffer(self._matcher.compute_logit_bias(), np.uint8)[: self._size] > 0
            self._check()
            self._allowed = found
        return self._allowed

    def _check(self) -> None:
        """Raise InputError where the package gave up."""
        if self._matcher.is_error():
            said = _first_line(self._matcher.get_error())
            problem = _STUCK if said.startswith("NoExtension") else said
            raise InputError(problem, where=self._kind, hint=_HINTS[self._kind])


_STUCK: Final = "no token of the model goes on with a text as it is wanted"


def _first_line(text: str) -> str:
    """What an error of the package says, without what it knows of its own state."""
    return text.partition("<non-verbose/>")[0].strip()[:500]


# --- what the package is told ---


class _Told:
    """A tokenizer as the package wants it."""

    def __init__(self, tokenizer: Tokens) -> None:
        ends = sorted(tokenizer.ends)
        tokens = [b"\xff<%d>" % token if one is None else one for token, one in enumerate(tokenizer.pieces())]
        for token in ends:  # which are no part of a text, whatever they are
            tokens[token] = b"\xff<%d>" % token
        self.tokens = tokens if ends else [*tokens, _EOS]
        self.ends = ends or [len(tokens)]
        self.eos_token_id = self.ends[0]
        self.bos_token_id = None
        self.special_token_ids = [token for token, one in enumerate(self.tokens) if one.startswith(b"\xff<")]
        self._tokenizer = ref(tokenizer)  # else what is known of a tokenizer would keep it

    def __call__(self, text: str) -> list[int]:
        """The tokens of a text that is forced, as the model would write them where that is possible."""
        wanted, tokenizer = text.encode(), self._tokenizer()
        assert tokenizer is not None  # somebody writes with it
        for before in ("", _BEFORE):
            tokens = tokenizer.encode(before + text)
            found = self._end_of(tokens, len(wanted))
            if b"".join(self.tokens[token] for token in found) == wanted:
                return found
        return []  # which forces nothing: the text comes token by token

    def _end_of(self, tokens: Sequence[int], size: int) -> list[int]:
        """The last tokens, as many as have so many bytes together."""
        first = len(tokens)
        while first and size > 0:
            first -= 1
            size -= len(self.tokens[tokens[first]])
        return list(tokens[first:])


_BEFORE: Final = "\n"
"""What a text is put behind where a tokenizer writes a space in front of each text: words are no part of it."""


_TOLD: Final[WeakKeyDictionary[Tokens, Any]] = WeakKeyDictionary()


def _told(tokenizer: Tokens) -> Any:
    """What the package made of a tokenizer, which takes a second for a large one."""
    found = _TOLD.get(tokenizer)
    if found is None:
        library, told = _library(), _Told(tokenizer)
        wrapper = library.TokenizerWrapper(told)
        found = _TOLD[tokenizer] = library.LLTokenizer(wrapper, n_vocab=len(told.tokens), eos_token=told.ends)
    return found


def _library() -> Any:
    """The package. Raises PluginError, with how to install it, where it is missing."""
    try:
        return import_module("llguidance")
    except ModuleNotFoundError as error:
        if error.name != "llguidance":
            raise
        hint = "pip install 'tract-transformers[grammar]'"
        raise PluginError("answers are held to a grammar by the package llguidance", hint=hint) from None


# --- whether it is safe to read a grammar ---


@lru_cache(maxsize=32)
def _problem(grammar: Grammar) -> str:
    """What is wrong with a grammar, as a process of its own found; empty where nothing is.

    Raises InputError for one that took too long, which may be due to what else this machine does.
    """
    import subprocess

    if not _is_python(sys.executable):
        return ""  # nobody can try it, and the package's own limits have to do
    command = [sys.executable, "-I", "-S", "-c", _COMMAND, *_folders()]
    given = json.dumps([grammar.kind, grammar.text]).encode()
    try:
        done = subprocess.run(command, input=given, capture_output=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        raise InputError(f"reading it takes more than {PATIENCE:g} seconds", where=grammar.kind) from None
    if done.returncode == _RAISED:
        raise PluginError(f"no grammar can be tried: {done.stderr.decode(errors='replace').strip()[-300:]}")
    if done.returncode:
        return "it is too large, or nested too deeply, to be read"
    return _first_line(json.loads(done.stdout))


_RAISED: Final = 1
"""How a process of Python ends over an error that nobody caught."""


def _folders() -> list[str]:
    """Where such a process finds what it imports."""
    packages = (Path(tract_core.__file__).parent, Path(__file__).parents[1], Path(_library().__file__).parent)
    return [str(package.parent) for package in packages]


def _is_python(executable: str | None) -> bool:
    """Whether a program is Python itself: whoever has it as a part would start once more."""
    name = Path(executable or "").name.lower()
    return name.startswith(("python", "pypy")) and not getattr(sys, "frozen", False)
