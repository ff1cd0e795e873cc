"""From files to text: folders with ``tokenizer.json``, and GGUF files that have all in one."""

from __future__ import annotations

import builtins
import json
import sys
from pathlib import Path

import pytest
import tract_transformers
from model_files import NETWORK, TEMPLATE, folder_with_model, gguf_with_model
from tract_transformers.generation.loading import words_of
from vocabularies import SPECIAL, trained_bytes

from tract_core.errors import CorruptModel, InputError, MissingFile, ModelError, PluginError, Unsupported

PROMPT = "the quick fox"
START, END = (trained_bytes().token_to_id(text) for text in SPECIAL)


@pytest.mark.parametrize("onnx_names", [False, True])
def test_a_folder_writes_what_the_plain_loop_writes(tmp_path: Path, onnx_names: bool) -> None:
    file = folder_with_model(tmp_path, onnx_names=onnx_names)
    prompt = trained_bytes().encode(PROMPT).ids
    for path in (file, tmp_path):
        model = tract_transformers.load(path)
        answer = model.generate(PROMPT, max_tokens=6, temperature=0)
        assert list(answer.tokens) == NETWORK.greedy(prompt, 6)
        assert answer.text == trained_bytes().decode(list(answer.tokens))
    assert model.context == 128
    assert model.conversation([{"role": "user", "content": "x"}]).startswith("<|start|>user\nx<|end|>")


def test_a_gguf_file_writes_what_the_plain_loop_writes(tmp_path: Path) -> None:
    pytest.importorskip("tract_gguf")
    model = tract_transformers.load(gguf_with_model(tmp_path / "tiny.gguf"), "cpu", threads=1)
    prompt = [START, *trained_bytes().encode(PROMPT).ids]
    answer = model.generate(PROMPT, max_tokens=6, temperature=0)
    assert answer.prompt_tokens == len(prompt)
    assert list(answer.tokens) == NETWORK.greedy(prompt, 6)
    assert model.context == 128
    assert model.template is not None
    assert model.template.source == TEMPLATE
    assert model.tokenizer.ends == {END}


def test_a_tokenizer_beside_a_gguf_file_goes_first(tmp_path: Path) -> None:
    pytest.importorskip("tract_gguf")
    path = gguf_with_model(tmp_path / "tiny.gguf")
    trained_bytes().save(str(tmp_path / "tokenizer.json"))
    words = words_of(path)
    assert words.tokenizer.begin == ()
    assert words.template is not None
    assert words.context == 128


def test_templates_are_found_where_people_keep_them(tmp_path: Path) -> None:
    path = folder_with_model(tmp_path, template=False)
    assert words_of(path).template is None
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    config["chat_template"] = [{"name": "tools", "template": "T"}, {"name": "default", "template": "D"}, 3]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    assert words_of(path).template.source == "D"
    (tmp_path / "chat_template.jinja").write_text("J")
    assert words_of(path).template.source == "J"
    (tmp_path / "chat_template.jinja").write_text("{{")
    with pytest.raises(CorruptModel, match="chat template: line 1"):
        words_of(path)
    (tmp_path / "chat_template.jinja").write_bytes(b"\xff")
    with pytest.raises(ModelError, match=r"chat_template.jinja: cannot be read"):
        words_of(path)


def test_exported_folders_have_the_model_one_level_down(tmp_path: Path) -> None:
    folder_with_model(tmp_path)
    (tmp_path / "onnx").mkdir()
    (tmp_path / "onnx" / "model.onnx").write_bytes(b"")
    assert words_of(tmp_path / "onnx" / "model.onnx").context == 128


def test_another_tokenizer(tmp_path: Path) -> None:
    path = folder_with_model(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    (tmp_path / "tokenizer.json").rename(other / "tokenizer.json")
    with pytest.raises(InputError, match=r"there is no tokenizer.json beside the model"):
        tract_transformers.load(path)
    for named in (other, other / "tokenizer.json"):
        assert words_of(path, named).tokenizer.size == trained_bytes().get_vocab_size()
    with pytest.raises(ModelError, match="cannot be read"):
        words_of(path, tmp_path / "nowhere")


def test_what_cannot_be_loaded(tmp_path: Path) -> None:
    folder_with_model(tmp_path)
    with pytest.raises(MissingFile):
        tract_transformers.load(tmp_path / "model.nnef.tgz")
    other = tmp_path / "digits"
    other.mkdir()
    from tract_core.api.model import Model
    from tract_core.model.fact_text import parse_typed_fact
    from tract_core.model.typed import TypedModel

    model = TypedModel()
    model.set_outputs([model.add_source("image", parse_typed_fact("B,3,f32", model.symbols))])
    Model.from_typed(model).save(other / "model.nnef.tar")
    trained_bytes().save(str(other / "tokenizer.json"))
    with pytest.raises(Unsupported, match="this is no language model of a form that is known here"):
        tract_transformers.load(other)
    for broken in ("[1]", "{", "\x00"):
        (tmp_path / "config.json").write_text(broken)
        with pytest.raises(CorruptModel, match=r"config.json: it "):
            tract_transformers.load(tmp_path)


def test_without_the_reader_of_gguf_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.gguf").write_bytes(b"GGUF")
    monkeypatch.setitem(sys.modules, "tract_gguf", None)
    with pytest.raises(PluginError, match=r"GGUF files are read by tract-gguf\n  hint: "):
        tract_transformers.load(tmp_path / "x.gguf")


def test_public_names() -> None:
    names = {"Answer", "Engine", "EngineText", "TextEmbedder", "TextModel", "Writing", "load", "load_embedder"}
    names |= {"TextReranker", "load_reranker"}
    names |= {"Segment", "SpeechModel", "TextToText", "Transcript", "load_speech"}
    assert set(tract_transformers.__all__) == names
    assert all(hasattr(tract_transformers, name) and name not in vars(builtins) for name in tract_transformers.__all__)
