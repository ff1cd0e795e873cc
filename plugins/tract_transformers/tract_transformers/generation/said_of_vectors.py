"""What a model says of how its texts become vectors: in the files of sentence-transformers, or in a GGUF file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, cast

from tract_core.errors import CorruptModel, LimitExceeded, TractError, Unsupported
from tract_core.frozen import frozen
from tract_core.safe_files import plain_file_below, resolve_below
from tract_transformers.generation.gguf_files import gguf, has_weights, is_gguf
from tract_transformers.tokenizers.from_json import settings

Pooling = Literal["last", "mean", "cls"]

POOLINGS: Final = ("last", "mean", "cls")
"""What stands for a text: the vector of its last token, the mean of all, or that of its first token."""

ARCHITECTURE: Final = "general.architecture"
MODULES: Final = "modules.json"
SENTENCES: Final = "sentence_bert_config.json"
PROMPTS: Final = "config_sentence_transformers.json"

MOST_BYTES: Final = 1 << 20
"""Of a file that says something of modules."""

_OF_GGUF: Final[Mapping[int, Pooling]] = {1: "mean", 2: "cls", 3: "last"}
_RANK: Final = 4
"""Of ``pooling_type``: texts get scores instead of vectors."""

_MODES: Final[Mapping[str, Pooling]] = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean",  # another length, and the same direction
    "pooling_mode_lasttoken": "last",
}
_NAMES: Final[Mapping[str, Pooling]] = {
    "cls": "cls",
    "mean": "mean",
    "mean_sqrt_len_tokens": "mean",
    "lasttoken": "last",
}


@frozen
class SaidOfVectors:
    """What a model says: ``None`` for what it says nothing of. ``context``: the most tokens of a text.

    ``before``: what stands in front of each text. ``lowercase``: whether texts are written in small letters.
    """

    pooling: Pooling | None = None
    context: int | None = None
    before: str = ""
    lowercase: bool = False


def said_of_vectors(path: Path, *, pooling: Pooling | None = None) -> SaidOfVectors:
    """What a model says of its vectors. ``path``: its file or folder. ``pooling``: what counts instead.

    Raises ModelError for files that cannot be read, and Unsupported for vectors that are made otherwise.
    """
    if is_gguf(path):
        metadata = gguf().read(path).metadata
        return SaidOfVectors(
            pooling or _of_file(metadata.get(f"{metadata.get(ARCHITECTURE)}.pooling_type")), context_of(path)
        )
    folder = _folder(path)
    lowercase = settings(folder, SENTENCES).get("do_lower_case") is True
    return SaidOfVectors(pooling or _of_folder(folder), context_of(path), _before(folder), lowercase)


def context_of(path: Path) -> int | None:
    """The most tokens of a text that an encoder takes; ``None`` where nobody says. Raises ModelError.

    It may be less than the matrix of positions has rows, of which the first ones of some networks are none.
    """
    found = None
    if is_gguf(path) or has_weights(path):
        metadata = gguf().read(path).metadata
        found = _count(metadata.get(f"{metadata.get(ARCHITECTURE)}.context_length"))
    most = None if is_gguf(path) else _count(settings(_folder(path), SENTENCES).get("max_seq_length"))
    return min((one for one in (found, most) if one is not None), default=None)


def _folder(path: Path) -> Path:
    return path if path.is_dir() else path.parent


def _before(folder: Path) -> str:
    """What stands in front of each text unless somebody says otherwise. Raises CorruptModel."""
    config = settings(folder, PROMPTS)
    name, prompts = config.get("default_prompt_name"), config.get("prompts")
    if name is None:
        return ""
    known: Mapping[object, object] = cast("dict[object, object]", prompts) if isinstance(prompts, dict) else {}
    found = known.get(name, "") if isinstance(name, str) else None
    if not isinstance(found, str):
        raise CorruptModel(f"the prompt {name!r:.80} is {found!r:.80}, wanted a text", where=str(folder / PROMPTS))
    return found


def _count(found: object) -> int | None:
    return found if type(found) is int and found > 0 else None


def _of_file(kind: object) -> Pooling | None:
    if kind is None:
        return None
    if not isinstance(kind, int) or not 0 <= kind <= _RANK:
        raise CorruptModel(f"the metadata have {kind!r:.80} as pooling_type, wanted an integer from 0 to {_RANK}")
    if kind == _RANK:
        hint = "tract_transformers.load_reranker gives scores; or say which vector stands for a text (pooling=...)"
        raise Unsupported("the file is of a model that gives pairs of texts scores, and no vectors", hint=hint)
    return _OF_GGUF.get(kind)


def _of_folder(folder: Path) -> Pooling | None:
    """What the modules behind the network do. Raises Unsupported for others than pooling and scaling to length 1."""
    if not (folder / MODULES).is_file():
        return None
    found: Pooling | None = None
    for module in _modules(folder):
        kind = str(module.get("type")).rpartition(".")[2]
        if kind == "Pooling":
            found = _pooling(folder, module.get("path"))
        elif kind not in ("Transformer", "Normalize"):
            problem = f"{MODULES} has a module of the type {kind!r:.80} behind the network, which is not built"
            raise Unsupported(problem, hint="say which vector stands for a text (pooling=...) to leave it out")
    return found


def _modules(folder: Path) -> list[Mapping[str, Any]]:
    found = _read(folder, MODULES)
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in cast("list[object]", found)):
        raise CorruptModel("it is no list of objects", where=str(folder / MODULES))
    return cast("list[Mapping[str, Any]]", found)


def _pooling(folder: Path, path: object) -> Pooling:
    """What stands for a text, as the module of pooling says it."""
    name = f"{path}/config.json" if path else "config.json"
    said = _read(folder, name)
    if not isinstance(said, dict):
        raise CorruptModel(f"it holds a {type(said).__name__}, wanted an object", where=str(folder / name))
    config = cast("Mapping[str, Any]", said)
    modes = [key for key, value in config.items() if key.startswith("pooling_mode_") and value is True]
    named = config.get("pooling_mode")
    known = _NAMES.get(str(named)) if named is not None else _MODES.get(modes[0]) if len(modes) == 1 else None
    if known is None:
        shown = str(named) if named is not None else ", ".join(modes) or "nothing"
        problem = f"{name} says that {shown:.120} stands for a text, which is not built"
        raise Unsupported(problem, hint="say what does (pooling='mean', 'cls' or 'last')")
    return known


def _read(folder: Path, name: str) -> object:
    """What a file of JSON holds, below a folder. Raises ModelError."""
    try:
        folders = dict.fromkeys((folder.resolve(), (folder / MODULES).resolve().parent))  # links of a cache lead there
        inside, path = resolve_below([*folders], name)
        with plain_file_below(inside, path, name) as (descriptor, status):
            if status.st_size > MOST_BYTES:
                raise LimitExceeded(f"it has {status.st_size:,} bytes, {MOST_BYTES:,} are allowed")
            with open(descriptor, "rb", closefd=False) as file:
                return json.loads(file.read(MOST_BYTES))
    except OSError as error:
        raise CorruptModel(f"it cannot be read: {error.strerror or error}", where=str(folder / name)) from None
    except (ValueError, RecursionError) as error:
        raise CorruptModel(f"it is no JSON: {error!s:.200}", where=str(folder / name)) from None
    except TractError as error:
        raise error.at(str(folder / name)) from None
