"""How texts are cut into words before their bytes are merged: expressions by the names that GGUF files give them.

The names are those of ``tokenizer.ggml.pre``, as llama.cpp's ``src/llama-vocab.cpp`` lists them; the expressions are
those of the models' own ``tokenizer.json``. Each expression cuts further what the one before it left.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tract_core.frozen import frozen


@frozen
class Cut:
    """How a text is cut.

    ``expressions``: what words look like, in Oniguruma's syntax. ``whole_words``: whether a word that is a token is
    taken as it is, whatever the merges say.
    """

    expressions: tuple[str, ...]
    whole_words: bool = False


_SPACES: Final = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_SHORT: Final = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_UPPER: Final = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER: Final = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_SIGNS: Final = r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]"

_GPT2: Final = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def _words(digits: str) -> str:
    """Letters with one other character before them, so many digits, signs, ends of lines with the spaces before."""
    return rf"{_SHORT}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_SPACES}"


def _cased(digits: str, short: str) -> str:
    """The same, where a word ends before a capital letter."""
    first = rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{short}|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{short}"
    return rf"{first}|{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACES}"


_PLAIN: Final = Cut((_GPT2,))
_DIGITS: Final = Cut((r"\p{N}", _GPT2))
_LLAMA3: Final = Cut((_words(r"\p{N}{1,3}"),), whole_words=True)
_DBRX: Final = Cut((_words(r"\p{N}{1,3}"),))
_QWEN2: Final = Cut((_words(r"\p{N}"),))
_QWEN35: Final = Cut(
    (rf"{_SHORT}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_SPACES}",)
)
_DEEPSEEK: Final = Cut(
    (
        r"\p{N}{1,3}",
        "[一-龥\u3040-ゟ゠-ヿ]+",
        rf"{_SIGNS}[A-Za-z]+|[^\r\n\p{{L}}\p{{P}}\p{{S}}]?[\p{{L}}\p{{M}}]+| ?[\p{{P}}\p{{S}}]+[\r\n]*|{_SPACES}",
    )
)
_DEEPSEEK_CODER: Final = Cut((r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-\ud7ff]+", r"\p{N}"))
_FALCON: Final = Cut((r"[\p{P}\$\+<=>\^~\|`]+", _GPT2, "[0-9][0-9][0-9]"))
_BLOOM: Final = Cut((r" ?[^(\s|.,!?…。，、।۔،)]+",))
_DEFAULT: Final = Cut((r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", "[0-9][0-9][0-9]"))

CUTS: Final[Mapping[str, Cut]] = {
    "default": _DEFAULT,
    **dict.fromkeys(
        ("gpt-2", "phi-2", "jina-es", "jina-de", "jina-v1-en", "jina-v2-es", "jina-v2-de", "jina-v2-code"), _PLAIN
    ),
    **dict.fromkeys(
        ("mpt", "olmo", "jais", "trillion", "granite-docling", "gigachat", "roberta-bpe", "exaone4"), _PLAIN
    ),
    **dict.fromkeys(
        ("starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b", "mellum"), _DIGITS
    ),
    **dict.fromkeys(
        ("llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"), _LLAMA3
    ),
    **dict.fromkeys(("dbrx", "smaug-bpe", "chatglm-bpe", "glm4"), _DBRX),
    **dict.fromkeys(("qwen2", "deepseek-r1-qwen", "stablelm2", "megrez", "hunyuan", "grok-2", "kormo"), _QWEN2),
    "qwen35": _QWEN35,
    **dict.fromkeys(("deepseek-v3", "hunyuan-dense"), _DEEPSEEK),
    "deepseek-coder": _DEEPSEEK_CODER,
    "falcon": _FALCON,
    **dict.fromkeys(("bloom", "poro-chat", "gpt3-finnish"), _BLOOM),
    "tekken": Cut((_cased(r"\p{N}", ""),), whole_words=True),
    **dict.fromkeys(("gpt-4o", "llama4"), Cut((_cased(r"\p{N}{1,3}", f"{_SHORT}?"),))),
}
"""The cuts by name."""
