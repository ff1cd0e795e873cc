"""Tokenizers that encoders have in GGUF files: WordPiece, as BERT has it, and unigrams, as XLM-RoBERTa has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as Library

from tract_core.errors import CorruptModel

SPACE: Final = "\u2581"
"""What stands in files in front of pieces with which words begin."""

MOST_LETTERS: Final = 100
"""Of a word of WordPiece; a longer one is unknown, as BERT has it."""

_INSIDE: Final = "##"
"""What the package writes in front of pieces with which no word begins."""

NORMALIZER: Final = "tokenizer.ggml.normalizer"
CHARS_MAP: Final = "tokenizer.ggml.precompiled_charsmap"

MOST_MAP: Final = 16 << 20
"""Bytes of a map of characters; that of XLM-RoBERTa has some 240,000."""


def word_pieces(metadata: Mapping[str, Any], texts: Sequence[str], plain: set[int], unknown: str | None) -> Library:
    """Words cut into the longest pieces that are there, from the front on (Schuster and Nakajima, 2012).

    ``texts``: of all tokens. ``plain``: the tokens that are special, whose texts stand as they are. Letters become
    small and lose their accents where the file says so, or where it says nothing and no piece has a capital. Raises
    CorruptModel where no piece stands for what is none.
    """
    pieces = [_piece(text, special=token in plain) for token, text in enumerate(texts)]
    unknown = unknown if unknown is not None else next((one for one in pieces if one == "[UNK]"), None)
    if unknown is None:
        raise CorruptModel("no token stands for words that are unknown", where="tokenizer.ggml.unknown_token_id")
    small = all(text == text.lower() for token, text in enumerate(texts) if token not in plain and text[:1] != "[")
    lowercase = _flag(metadata, f"{NORMALIZER}.lowercase", default=small)
    strip = _flag(metadata, f"{NORMALIZER}.strip_accents", default=lowercase)
    numbers = {piece: token for token, piece in enumerate(pieces)}
    library = Library(models.WordPiece(numbers, unk_token=unknown, max_input_chars_per_word=MOST_LETTERS))
    library.normalizer = normalizers.BertNormalizer(lowercase=lowercase, strip_accents=strip)
    library.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    library.decoder = decoders.WordPiece(_INSIDE)
    return library


def _piece(text: str, *, special: bool) -> str:
    """How the package writes a token: special ones and beginnings of words as they are, others behind a mark."""
    begins = text.startswith(SPACE)
    return text.removeprefix(SPACE) if begins or special else _INSIDE + text


def unigrams(
    metadata: Mapping[str, Any], texts: Sequence[str], scores: Sequence[float], unknown: int | None
) -> Library:
    """Words cut so that the scores of their pieces sum up to the most (Kudo, 2018). Raises CorruptModel."""
    if unknown is None:
        raise CorruptModel("no token stands for what is unknown", where="tokenizer.ggml.unknown_token_id")
    vocabulary = [(text, float(score)) for text, score in zip(texts, scores, strict=True)]
    library = Library(models.Unigram(vocabulary, unknown, False))
    parts: list[Any] = [] if CHARS_MAP not in metadata else [_characters(metadata[CHARS_MAP])]
    if _flag(metadata, "tokenizer.ggml.remove_extra_whitespaces", default=True):
        parts += [normalizers.Strip(), normalizers.Replace(Regex(" {2,}"), " ")]
    if parts:
        library.normalizer = normalizers.Sequence(parts)
    scheme = "always" if _flag(metadata, "tokenizer.ggml.add_space_prefix", default=True) else "never"
    library.pre_tokenizer = pre_tokenizers.Metaspace(SPACE, scheme)
    library.decoder = decoders.Metaspace(SPACE, scheme)
    return library


def _characters(found: Any) -> Any:
    """What replaces characters, from the bytes of SentencePiece. Raises CorruptModel for others."""
    held: Any = found.tolist() if hasattr(found, "tolist") else found
    try:
        content = bytes(one & 0xFF for one in held) if len(held) <= MOST_MAP else None
        if content is not None:
            return normalizers.Precompiled(content)
    except Exception as error:  # the package raises nothing more precise
        raise CorruptModel(f"it is no map of characters: {error!s:.200}", where=CHARS_MAP) from None
    raise CorruptModel(f"it has more than {MOST_MAP:,} bytes", where=CHARS_MAP)


def framed_as(library: Library, first: tuple[str, int], last: tuple[str, int], *, two_types: bool) -> None:
    """Have texts stand between two special tokens, and a second text behind the first.

    ``two_types``: as BERT has it, ``[CLS] a [SEP] b [SEP]``, where the second text is of type 1; otherwise as RoBERTa
    has it, ``<s> a </s></s> b </s>``, where all is of type 0.
    """
    if two_types:
        library.post_processor = processors.BertProcessing(last, first)
    else:
        library.post_processor = processors.RobertaProcessing(last, first, trim_offsets=False, add_prefix_space=False)


def _flag(metadata: Mapping[str, Any], key: str, *, default: bool) -> bool:
    found = metadata.get(key, default)
    if not isinstance(found, bool):
        raise CorruptModel(f"it is {found!r:.40}, wanted a boolean", where=key)
    return found
