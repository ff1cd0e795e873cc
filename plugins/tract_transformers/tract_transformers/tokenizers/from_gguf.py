"""Tokenizers from the metadata of GGUF files.

``tokenizer.ggml.model`` is ``gpt2`` for byte-level byte pair encoding, with the merges in order; ``llama`` for that of
SentencePiece, where the piece with the best score is merged first, and what is no piece falls back to its bytes;
``bert`` for WordPiece, and ``t5`` for unigrams. The keys are those of GGUF's specification (ggml, ``docs/gguf.md``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any, Final, TypeVar, cast

from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Library

from tract_core.errors import CorruptModel, LimitExceeded, Unsupported
from tract_core.frozen import frozen
from tract_transformers.tokenizers.encoder_kinds import framed_as, unigrams, word_pieces
from tract_transformers.tokenizers.library import LibraryTokenizer
from tract_transformers.tokenizers.pre_tokenizers import CUTS

SPACE: Final = "\u2581"
"""What SentencePiece writes for a space."""

MOST_SPLITS: Final = 200_000_000
"""Characters that are looked at, at most, to find which pairs make pieces; of 256,000 pieces, it is some 20 million."""

ROLES: Final = ("bos", "eos", "unknown", "padding", "eot", "eom", "cls", "seperator", "mask")
"""Special tokens that the metadata names, as in ``tokenizer.ggml.bos_token_id``."""

_TEMPLATE_NAMES: Final = {"unknown": "unk_token", "padding": "pad_token", "seperator": "sep_token"}

T = TypeVar("T")


class TokenType(IntEnum):
    """What ``tokenizer.ggml.token_type`` says of a token."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


@frozen
class Vocabulary:
    """What the metadata says, checked. ``texts``, ``types``: of each token. ``roles``: tokens by `ROLES`."""

    texts: list[str]
    types: list[int]
    roles: dict[str, int]

    @property
    def numbers(self) -> dict[str, int]:
        """Tokens by their texts."""
        return {text: token for token, text in enumerate(self.texts)}

    def of_type(self, *types: TokenType) -> list[str]:
        """The texts of the tokens of some types, in order."""
        return [text for text, kind in zip(self.texts, self.types, strict=True) if kind in types]


def tokenizer_from_gguf(metadata: Mapping[str, Any]) -> LibraryTokenizer:
    """The tokenizer that the metadata describes.

    Raises CorruptModel where something is missing or contradicts itself, Unsupported for another kind of tokenizer.
    """
    kind = _value(metadata, "tokenizer.ggml.model", str)
    build = _KINDS.get(kind)
    if build is None:
        known = " and ".join(map(repr, _KINDS))
        raise Unsupported(f"tokenizers of kind {kind!r} are not known here, those of {known} are", where=_WHERE)
    words = _vocabulary(metadata)
    library = build(metadata, words)
    _add_tokens(library, words)
    _frame(library, metadata, words, kind)
    begins = metadata.get("tokenizer.ggml.add_bos_token", kind == "llama") and "bos" in words.roles
    return LibraryTokenizer(
        library,
        begin=[words.roles["bos"]] if begins else [],
        ends=[words.roles[role] for role in ("eos", "eot", "eom") if role in words.roles],
        names={_TEMPLATE_NAMES.get(role, f"{role}_token"): words.texts[token] for role, token in words.roles.items()},
    )


_WHERE: Final = "tokenizer.ggml.model"


def _frame(library: Library, metadata: Mapping[str, Any], words: Vocabulary, kind: str) -> None:
    """Have the package put around a text what encoders want there, where the metadata say what that is."""
    said = all(metadata.get(f"tokenizer.ggml.add_{one}_token") is True for one in ("bos", "eos"))
    first, last = (_role(words, *roles) for roles in (("cls", "bos", "[CLS]"), ("seperator", "eos", "[SEP]")))
    if first is not None and last is not None and (kind == "bert" or said):
        framed_as(library, first, last, two_types=kind == "bert")


def _role(words: Vocabulary, role: str, other: str, text: str) -> tuple[str, int] | None:
    """The token of one of two roles, else of a text, if there is one."""
    token = words.roles.get(role, words.roles.get(other, words.numbers.get(text)))
    return None if token is None else (words.texts[token], token)


def _byte_level(metadata: Mapping[str, Any], words: Vocabulary) -> Library:
    """Bytes as letters, cut into words, merged in the order of the merges."""
    name = metadata.get("tokenizer.ggml.pre", "default")
    cut = CUTS.get(name) if isinstance(name, str) else None
    if cut is None:
        raise Unsupported(
            f"how {name!r} cuts texts into words is not known here", where="tokenizer.ggml.pre", hint=_OTHER_TOKENIZER
        )
    merges = [_pair(line) for line in _texts(metadata, "tokenizer.ggml.merges")]
    numbers = words.numbers
    for left, right in merges:
        if not {left, right, left + right} <= numbers.keys():
            problem = f"{left!r} and {right!r} are merged, and one of them or what they make is no token"
            raise CorruptModel(problem, where="tokenizer.ggml.merges")
    library = Library(models.BPE(vocab=numbers, merges=merges, fuse_unk=False, ignore_merges=cut.whole_words))
    cuts = [pre_tokenizers.Split(Regex(one), "isolated") for one in cut.expressions]
    library.pre_tokenizer = pre_tokenizers.Sequence(
        [*cuts, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    library.decoder = decoders.ByteLevel()
    return library


_OTHER_TOKENIZER: Final = "put the model's tokenizer.json beside the file: it is used instead"


def _pair(line: str) -> tuple[str, str]:
    left, space, right = line.partition(" ")
    if not (left and space and right) or " " in right:
        raise CorruptModel(f"{line!r} is no pair of tokens", where="tokenizer.ggml.merges")
    return left, right


def _by_scores(metadata: Mapping[str, Any], words: Vocabulary) -> Library:
    """Characters, merged to the piece with the best score first; what is no piece becomes its bytes."""
    scores = _list(metadata, "tokenizer.ggml.scores", (int, float))
    if len(scores) != len(words.texts):
        raise CorruptModel(f"there are {len(scores)} scores for {len(words.texts)} tokens", where=_SCORES)
    unknown = words.roles.get("unknown")
    has_bytes = TokenType.BYTE in words.types
    library = Library(
        models.BPE(
            vocab=words.numbers,
            merges=merges_by_scores(words, scores),
            unk_token=None if unknown is None else words.texts[unknown],
            fuse_unk=True,
            byte_fallback=has_bytes,
        )
    )
    spaced = metadata.get("tokenizer.ggml.add_space_prefix", True)
    before = [normalizers.Prepend(SPACE)] if spaced else []
    library.normalizer = normalizers.Sequence([*before, normalizers.Replace(" ", SPACE)])
    behind = [decoders.Strip(" ", 1, 0)] if spaced else []
    library.decoder = decoders.Sequence(
        [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), *behind]
    )
    return library


_SCORES: Final = "tokenizer.ggml.scores"


def merges_by_scores(words: Vocabulary, scores: Sequence[float]) -> list[tuple[str, str]]:
    """The pairs of pieces that make a piece, those of the best score first.

    Raises LimitExceeded for pieces so long that looking at every way to cut them takes too much time.
    """
    numbers = words.numbers
    pieces = [
        (text, -scores[token], token)
        for token, text in enumerate(words.texts)
        if words.types[token] in (TokenType.NORMAL, TokenType.USER_DEFINED, TokenType.UNUSED)
    ]
    if sum(len(text) ** 2 for text, _, _ in pieces) > MOST_SPLITS:
        raise LimitExceeded("the tokens are too long to be merged from others", where="tokenizer.ggml.tokens")
    found: list[tuple[float, int, int, tuple[str, str]]] = []
    for text, rank, token in pieces:
        for at in range(1, len(text)):
            left, right = text[:at], text[at:]
            if left in numbers and right in numbers:
                found.append((rank, token, at, (left, right)))
    found.sort(key=lambda one: one[:3])
    return [pair for *_, pair in found]


def _word_pieces(metadata: Mapping[str, Any], words: Vocabulary) -> Library:
    """Words of pieces, of which those inside of words are other ones than those at their beginning."""
    special = {token for token, kind in enumerate(words.types) if kind in (TokenType.CONTROL, TokenType.UNKNOWN)}
    unknown = words.roles.get("unknown")
    text = None if unknown is None else words.texts[unknown].removeprefix(SPACE)
    return word_pieces(metadata, words.texts, special | set(words.roles.values()), text)


def _unigrams(metadata: Mapping[str, Any], words: Vocabulary) -> Library:
    scores = _list(metadata, _SCORES, (int, float))
    if len(scores) != len(words.texts):
        raise CorruptModel(f"there are {len(scores)} scores for {len(words.texts)} tokens", where=_SCORES)
    return unigrams(metadata, words.texts, scores, words.roles.get("unknown"))


_KINDS: Final = {"gpt2": _byte_level, "llama": _by_scores, "bert": _word_pieces, "t5": _unigrams}


def _vocabulary(metadata: Mapping[str, Any]) -> Vocabulary:
    texts = [_whole(text) for text in _texts(metadata, "tokenizer.ggml.tokens")]
    types = [TokenType.NORMAL] * len(texts)
    if "tokenizer.ggml.token_type" in metadata:
        types = _list(metadata, "tokenizer.ggml.token_type", (int,))
    if len(types) != len(texts):
        raise CorruptModel(f"there are {len(types)} types for {len(texts)} tokens", where="tokenizer.ggml.token_type")
    roles: dict[str, int] = {}
    for role in ROLES:
        token = metadata.get(f"tokenizer.ggml.{role}_token_id")
        if token is not None:
            if not isinstance(token, int) or not 0 <= token < len(texts):
                raise CorruptModel(f"it is {token!r}, which is no token", where=f"tokenizer.ggml.{role}_token_id")
            roles[role] = token
    return Vocabulary(_told_apart(texts), [int(kind) for kind in types], roles)


def _whole(text: str) -> str:
    """A text with U+FFFD for bytes that are no UTF-8, which readers of files keep as lone surrogates."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _told_apart(texts: list[str]) -> list[str]:
    """The texts, where those of the second and of later tokens of one text are made unlike any other.

    Such tokens are paddings; nothing is encoded as one.
    """
    seen: set[str] = set()
    found: list[str] = []
    for token, text in enumerate(texts):
        found.append(f"{text}<another {token}>" if text in seen else text)
        seen.add(found[-1])
    return found


def _add_tokens(library: Library, words: Vocabulary) -> None:
    """Have the tokens found in texts that are no pieces of words."""
    special = [AddedToken(text, normalized=False, special=True) for text in words.of_type(TokenType.CONTROL) if text]
    others = [AddedToken(text, normalized=False) for text in words.of_type(TokenType.USER_DEFINED) if text]
    library.add_tokens(others)  # pyright: ignore[reportUnknownMemberType]: the package leaves the list's type open
    library.add_special_tokens(special)  # pyright: ignore[reportUnknownMemberType]: the same


def _value(metadata: Mapping[str, Any], key: str, kind: type[T]) -> T:
    found = metadata.get(key)
    if not isinstance(found, kind):
        what = "is missing" if found is None else f"is a {type(found).__name__}, wanted {kind.__name__}"
        raise CorruptModel(f"{key} {what}", hint="the file has no tokenizer; put the model's tokenizer.json beside it")
    return found


def _list(metadata: Mapping[str, Any], key: str, kinds: tuple[type, ...]) -> list[Any]:
    found: Any = metadata.get(key)
    if hasattr(found, "tolist"):
        found = found.tolist()
    if not isinstance(found, (list, tuple)):
        raise CorruptModel(f"{key} is {'missing' if found is None else f'a {type(found).__name__}, wanted a list'}")
    several = cast("Iterable[Any]", found)
    values = list(several)
    strange = next((one for one in values if not isinstance(one, kinds)), None)
    if strange is not None:
        raise CorruptModel(f"{key} holds a {type(strange).__name__}")
    return values


def _texts(metadata: Mapping[str, Any], key: str) -> list[str]:
    return _list(metadata, key, (str,))
