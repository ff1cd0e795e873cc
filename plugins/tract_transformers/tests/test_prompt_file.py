"""What a model has seen, in files: it goes on from there as if it had read the prompt, and takes no other file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_llama import TinyLlama
from tract_transformers.generation.loading import Words, text_model
from tract_transformers.generation.prompt_file import identity_of
from tract_transformers.generation.text_model import TextModel
from tract_transformers.language_model.past import StatelessPast
from tract_transformers.tokenizers.from_gguf import tokenizer_from_gguf
from tract_transformers.transforms.wanted_logits import LastLogits
from vocabularies import bytes_metadata

from tract_core.api.runnable import Runnable
from tract_core.errors import CorruptModel, InputError, ModelError

TOKENIZER = tokenizer_from_gguf({**bytes_metadata(), "tokenizer.ggml.add_bos_token": True})
PROMPT = "the quick brown fox jumps"
GREEDY: dict[str, Any] = {"max_tokens": 8, "temperature": 0}


@cache
def runnable(seed: int, form: tuple[str, bool] | None) -> Runnable:
    model = TinyLlama(vocabulary=TOKENIZER.size, seed=seed).model(**dict([form] if form else []))
    model.transform(LastLogits("logits"))
    return model.into_runnable("cpu")


def writer(seed: int = 3, form: tuple[str, bool] | None = None) -> TextModel:
    """A model that knows no text."""
    return text_model(runnable(seed, form), Words(TOKENIZER, None, None))


@pytest.fixture(scope="module")
def model() -> TextModel:
    return writer()


@pytest.fixture
def saved(model: TextModel, tmp_path: Path) -> Path:
    model.save_prompt(tmp_path / "prompt", PROMPT)
    return tmp_path / "prompt"


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many tokens models were given, in each step."""
    counts: list[int] = []
    extend = StatelessPast.extend

    def counted(self: StatelessPast, tokens: Sequence[int], *, every: bool = False) -> Any:
        counts.append(len(tokens))
        return extend(self, tokens, every=every)

    monkeypatch.setattr(StatelessPast, "extend", counted)
    return counts


@pytest.mark.parametrize("prompt", [PROMPT, "the quick brown", f"{PROMPT} over the lazy dog", "the other"])
@pytest.mark.parametrize("form", [None, ("onnx_names", True), ("past", False)])
def test_answers_are_those_of_who_read_the_prompt(
    prompt: str, form: tuple[str, bool] | None, tmp_path: Path, seen: list[int]
) -> None:
    path = tmp_path / "prompt"
    writer(form=form).save_prompt(path, PROMPT)
    wanted = writer(form=form).generate(prompt, **GREEDY)
    model = writer(form=form)
    length = len(model.prompt_tokens(prompt))
    del seen[:]
    answer = model.generate(prompt, prompt_cache=path, **GREEDY)
    assert answer.tokens == wanted.tokens
    old, new = model.prompt_tokens(PROMPT), model.prompt_tokens(prompt)
    alike = next((at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    assert seen[0] == max(1, length - alike)  # nothing is read again, but for a last token


def test_the_file_is_one_of_safetensors(model: TextModel, saved: Path) -> None:
    content = saved.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    assert header.pop("__metadata__") == {"format": "tract prompt 1", "model": identity_of(model.runnable)}
    first, last = header["tokens"]["data_offsets"]
    assert np.frombuffer(content[8 + length :][first:last], "<i8").tolist() == model.prompt_tokens(PROMPT)
    assert set(header) == {"tokens", *(f"past.{layer}.{part}" for layer in (0, 1) for part in ("key", "value"))}
    count = len(model.prompt_tokens(PROMPT))
    assert all(one["shape"] == [2, count, 8] for name, one in header.items() if name != "tokens")


def test_what_a_model_knows_better_is_not_read(model: TextModel, saved: Path, seen: list[int]) -> None:
    longer = f"{PROMPT} over the lazy dog"
    wanted = model.generate(longer, **GREEDY)
    del seen[:]
    assert model.generate(longer, prompt_cache=saved, **GREEDY).tokens == wanted.tokens
    assert seen[0] == 1


def test_other_models_do_not_take_it(saved: Path) -> None:
    assert identity_of(writer().runnable) == identity_of(writer().runnable)
    for other in (writer(seed=4), writer(form=("onnx_names", True))):
        if identity_of(other.runnable) == identity_of(writer().runnable):
            problem, kind = "the past has", CorruptModel
        else:
            problem, kind = "it was written for another model", InputError
        with pytest.raises(kind, match=problem) as caught:
            other.generate(PROMPT, prompt_cache=saved)
        assert caught.value.hint == "write it again by TextModel.save_prompt"


def damaged(content: bytes, name: str) -> bytes:
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    data = content[8 + length :]
    key = "past.0.key"
    changes: dict[str, dict[str, Any]] = {
        "type": {key: {**header[key], "dtype": "F99"}},
        "other type": {key: {**header[key], "dtype": "I64", "shape": [1, 1, len(data) and 1]}},
        "negative": {key: {**header[key], "shape": [-2, -1, 8]}},
        "huge": {key: {**header[key], "shape": [1 << 62, 1 << 62]}},
        "many axes": {key: {**header[key], "shape": [1] * 100}},
        "behind the end": {key: {**header[key], "data_offsets": [len(data), len(data) + 100]}},
        "backwards": {key: {**header[key], "data_offsets": [100, 0]}},
        "no offsets": {key: {"dtype": "F32", "shape": []}},
        "no object": {key: 3},
        "another name": {"past.7.key": header[key]},
        "fewer positions": {"tokens": {"dtype": "I64", "shape": [1], "data_offsets": [0, 8]}},
        "tokens of floats": {"tokens": header[key]},
        "format": {"__metadata__": {"format": "x", "model": header["__metadata__"]["model"]}},
        "no metadata": {"__metadata__": None},
    }
    text = json.dumps(header | changes[name]).encode()
    return len(text).to_bytes(8, "little") + text + data


@pytest.mark.parametrize(
    "name",
    ["type", "other type", "negative", "huge", "many axes", "behind the end", "backwards", "no offsets", "no object",
     "another name", "fewer positions", "tokens of floats", "format", "no metadata"],
)  # fmt: skip
def test_damaged_files_are_refused(saved: Path, name: str) -> None:
    saved.write_bytes(damaged(saved.read_bytes(), name))
    with pytest.raises(ModelError) as caught:
        writer().generate("the quick fox", prompt_cache=saved, **GREEDY)
    assert str(saved) in str(caught.value)


def test_tokens_that_are_none(saved: Path) -> None:
    content = bytearray(saved.read_bytes())
    start = 8 + int.from_bytes(content[:8], "little")
    for strange in (-1, 1 << 40):
        content[start + 8 : start + 16] = strange.to_bytes(8, "little", signed=True)
        saved.write_bytes(content)
        with pytest.raises(CorruptModel):
            writer().generate(PROMPT, prompt_cache=saved, **GREEDY)


def test_files_that_are_cut_or_no_such_files(model: TextModel, saved: Path, tmp_path: Path) -> None:
    content = saved.read_bytes()
    for one in (b"", b"abc", content[:100], content[:-1], b"\xff" * 100, (5).to_bytes(8, "little") + b"[1,2]"):
        saved.write_bytes(one)
        with pytest.raises(ModelError):
            writer().generate("a quick fox", prompt_cache=saved, **GREEDY)
    deep = b"[" * 100_000
    saved.write_bytes(len(deep).to_bytes(8, "little") + deep)
    with pytest.raises(CorruptModel, match="its header is no JSON"):
        writer().generate("a quick fox", prompt_cache=saved, **GREEDY)
    for path, kind in ((tmp_path / "nothing", ModelError), (tmp_path, ModelError), (3, InputError)):
        with pytest.raises(kind):
            model.generate(PROMPT, prompt_cache=path)
    with pytest.raises(InputError):
        model.save_prompt(tmp_path, PROMPT)
