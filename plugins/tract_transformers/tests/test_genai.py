"""Folders that the builder of ``onnxruntime-genai`` wrote, against ``transformers`` in float64 and ONNX Runtime."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tract_transformers
from click.testing import CliRunner
from tract_transformers.generation.genai import CONFIG, genai_folder, load_genai

import tract_core as tract
from tract_core.cli.frame import app
from tract_core.errors import CorruptModel, UnsafePath, Unsupported

pytest.importorskip("tract_onnx")

HERE = Path(__file__).parent / "genai"
GEMMA, LLAMA = HERE / "gemma2", HERE / "llama_int4"
REFERENCE = np.load(HERE / "logits.npz")
TOKENS, LOGITS = REFERENCE["tokens"], REFERENCE["logits"]
CHUNKS = (9, 1, 1, 5, 1, 4)
WINDOW = 8


def steps(runnable: tract.Runnable, pasts: dict[str, np.ndarray], batch: int = 1, chunks=CHUNKS) -> np.ndarray:
    """The logits of the tokens, given in chunks; each row of the batch is the same text."""
    at, found = 0, []
    for count in chunks:
        inputs = {"input_ids": np.repeat(TOKENS[:, at : at + count], batch, 0), **pasts}
        if "attention_mask" in runnable.input_names():
            inputs["attention_mask"] = np.ones((batch, at + count), np.int64)
        outputs = dict(zip(runnable.output_names(), runnable.run(inputs), strict=True))
        pasts = {name: outputs[name.replace("past_key_values", "present")].view() for name in pasts}
        found.append(outputs["logits"].view())
        at += count
    return np.concatenate(found, 1)


def pasts_of(runnable: tract.Runnable, batch: int = 1, *, window: int = 0) -> dict[str, np.ndarray]:
    names = [name for name in runnable.input_names() if name.startswith("past")]
    return {name: np.zeros((batch, 2, window if ".0." in name else 0, 16), np.float32) for name in names}


def same(found: np.ndarray, wanted: np.ndarray) -> None:
    np.testing.assert_allclose(found, np.broadcast_to(wanted, found.shape), rtol=0, atol=4e-6 * np.abs(wanted).max())


@pytest.mark.parametrize("runtime", ["cpu", "reference"])
def test_logits_of_chunks_where_caches_grow(runtime: str) -> None:
    runnable = load_genai(GEMMA).into_runnable(runtime)
    assert "attention_mask" not in runnable.input_names()
    same(steps(runnable, pasts_of(runnable)), LOGITS)
    assert not [one for one in runnable.explain().placements if one.where == "host"]


@pytest.mark.parametrize("capacity", [WINDOW, WINDOW + 3])
def test_logits_where_a_cache_holds_a_window_as_the_file_wants_it(capacity: int) -> None:
    runnable = tract.onnx().load(GEMMA / "model.onnx", ignore_value_info=True).into_model().into_runnable("cpu")
    same(steps(runnable, pasts_of(runnable, window=capacity)), LOGITS)
    alone = [6, *[1] * 15]
    same(steps(runnable, pasts_of(runnable, 3, window=capacity), 3, alone), LOGITS)


def test_attention_is_found_in_all_layers() -> None:
    for folder in (GEMMA, LLAMA):
        first = str(load_genai(folder).into_runnable("cpu").explain()).splitlines()[0]
        assert "by attention on cpu (2 groups)" in first


def test_weights_of_four_bits_as_onnxruntime_multiplies_them_in_floats() -> None:
    onnx, onnxruntime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    model = onnx.load(LLAMA / "model.onnx")
    for attribute in (one for node in model.graph.node for one in node.attribute if one.name == "accuracy_level"):
        attribute.i = 0  # else, what is multiplied is rounded to 8 bits
    session = onnxruntime.InferenceSession(model.SerializeToString())
    runnable = load_genai(LLAMA).into_runnable("cpu")
    names = [one.name for one in session.get_inputs() if one.name.startswith("past")]
    for count in (1, 2, 7):
        tokens = TOKENS[:, :count]
        empty = {name: np.zeros((1, 2, 0, 16), np.float32) for name in names}
        (wanted,) = session.run(["logits"], {"input_ids": tokens, "attention_mask": np.ones_like(tokens), **empty})
        same(steps(runnable, pasts_of(runnable), chunks=(count,)), wanted)


@pytest.mark.parametrize("named", ["folder", "file"])
def test_text_is_written_and_the_past_is_kept_in_pages(named: str) -> None:
    model = tract_transformers.load(GEMMA if named == "folder" else GEMMA / "model.onnx", "cpu", threads=1)
    assert model.context == 32
    assert model.tokenizer.ends == {2}
    for count in (1, 2, 13):
        prompt = model.tokenizer.decode(TOKENS[0, :count].tolist()).replace(" ", "")
        answer = model.generate(prompt, max_tokens=1, temperature=0)
        assert answer.prompt_tokens == count
        assert list(answer.tokens) == [int(LOGITS[count - 1].argmax())]


def changed(folder: Path, **changes: Any) -> Path:
    """A copy of a folder, with other entries of the decoder."""
    shutil.copytree(LLAMA, folder)
    config = json.loads((folder / CONFIG).read_text())
    config["model"]["decoder"].update(changes)
    (folder / CONFIG).write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize(
    ("changes", "error", "match"),
    [
        ({"filename": "../model.onnx"}, UnsafePath, "wanted the name of a file in the folder"),
        ({"filename": 3}, UnsafePath, "'filename' is '3'"),
        ({"num_hidden_layers": 10**9}, CorruptModel, "'num_hidden_layers' is 1000000000, wanted a number from 1 to"),
        ({"head_size": "x"}, CorruptModel, "'head_size' is x"),
        ({"num_key_value_heads": True}, CorruptModel, "'num_key_value_heads' is True"),
        ({"inputs": []}, CorruptModel, r"'inputs' is \[\], wanted an object"),
        ({"inputs": {"past_key_names": 1}}, CorruptModel, "'past_key_names' is 1, wanted a name"),
        ({"pipeline": []}, Unsupported, "the model has a part 'pipeline'"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, changes: Any, error: type[Exception], match: str) -> None:
    folder = changed(tmp_path / "model", **changes)
    with pytest.raises(error, match=match) as caught:
        load_genai(folder)
    assert CONFIG in str(caught.value)


def test_which_folders_are_of_this_kind(tmp_path: Path) -> None:
    assert genai_folder(LLAMA) == LLAMA
    assert genai_folder(LLAMA / "model.onnx") == LLAMA
    assert genai_folder(LLAMA / "tokenizer.json") is None
    assert genai_folder(tmp_path) is None
    assert genai_folder(tmp_path / "model.onnx") is None
    (tmp_path / CONFIG).write_text("{")
    with pytest.raises(CorruptModel, match="it is no JSON"):
        load_genai(tmp_path)


def test_the_command_writes_the_same_text() -> None:
    model = tract_transformers.load(LLAMA)
    for path in (LLAMA, LLAMA / "model.onnx"):
        line = [str(path), "generate", "--prompt", "Hello!", "-n", "3", "--temperature", "0", "--exact"]
        result = CliRunner().invoke(app, line)
        assert result.exit_code == 0, result.output
        assert result.stdout.rstrip("\n") == model.generate("Hello!", max_tokens=3, temperature=0).text
        assert "Warning" not in result.output
