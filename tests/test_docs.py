"""What the documents show is run as pasted, one block after the other: Python, and the lines that call a command."""

from __future__ import annotations

import pkgutil
import re
import shlex
import subprocess
import sys
import wave
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from shutil import which
from typing import Any

import gguf
import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from docs_server import Servers
from gguf import GGMLQuantizationType as QuantizationType
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

from tract_core.cli.frame import app

ROOT = Path(__file__).parents[1]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


DOCUMENTS = sorted(
    path
    for pattern in (
        "*.md",
        "docs/*.md",
        "docs/inside/*.md",
        "docs/tutorials/*.md",
        "docs/howto/*.md",
        "docs/api/*.md",
        "examples/**/*.md",
        "plugins/*/*.md",
        "bench/*.md",
    )
    for path in ROOT.glob(pattern)
)
ELSEWHERE = {
    **dict.fromkeys(
        ("docs/plugins.md", "docs/tutorials/write-an-operator-and-a-runtime.md"),
        "a tutorial, which tests/test_docs_plugins.py follows in an empty folder",
    ),
    **{name_of(path): "tests/test_docs_inside.py runs them" for path in ROOT.glob("docs/inside/*.md")},
    **{
        name_of(path): "tests/test_example_plugins.py runs them where the examples are installed"
        for path in ROOT.glob("examples/plugins/*/README.md")
    },
}
"""Documents whose blocks another test runs."""

BLOCK = re.compile(
    r"^```(\w*)(?: printed| after=\w+ of=\w+| title=\"([^\"]+)\")?\n(.*?)^```$", re.DOTALL | re.MULTILINE
)
INDENTED = re.compile(r"(?:^|\n)\n( {4}(?:\$|import |from |tract |pip |make )[^\n]*)")

RUN = [path for path in DOCUMENTS if name_of(path) not in ELSEWHERE and BLOCK.search(path.read_text())]

OF_TORCH = ("docs/torch.md", "plugins/tract_torch/README.md")
WITH_TORCH = find_spec("tract_torch") is not None
"""Without it, `make test-torch` runs the documents of PyTorch, and its blocks in others."""

USES_TORCH = re.compile(r"^(import|from) (torch|tract_torch)\b", re.MULTILINE)


def case(*values: object, of_torch: bool, name: str) -> Any:
    """The parameters of a case; it is marked where `make test-torch` is to run it once more."""
    return pytest.param(*values, marks=[pytest.mark.torch] if of_torch else [], id=name)


def uses_torch(path: Path) -> bool:
    """Whether a document has blocks that want PyTorch."""
    return name_of(path) in OF_TORCH or USES_TORCH.search(path.read_text()) is not None


OF_RAY = re.compile(r"^(?:import|from) (?:ray|dask)\b|^from tract_ray import put\b", re.MULTILINE)
"""Blocks that tract-ray's own tests run, by `make test-ray`."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder that has the examples, and the files that documents call ``model.onnx``, ``sound.onnx``."""
    for name in ("examples", "bench", "Makefile"):
        (tmp_path / name).symlink_to(ROOT / name)
    onnx.save(classifier(), tmp_path / "model.onnx")
    onnx.save(denoiser(), tmp_path / "sound.onnx")
    (tmp_path / "model.tflite").write_bytes(lite_case("conv", "conv FLOAT32 same stride 1 dilation 1 activation 0"))
    language_model(tmp_path / "model.gguf")
    text_encoder(tmp_path / "embedder.gguf", gguf.PoolingType.MEAN)
    text_encoder(tmp_path / "reranker.gguf", gguf.PoolingType.RANK)
    encoders_with_decoders(tmp_path)
    np.savez(tmp_path / "in.npz", image=np.ones((2, 3, 8, 8), np.float32))
    np.savez(tmp_path / "sound.npz", sound=np.ones((1, 1, 50), np.float32))
    Image.new("RGB", (16, 12), "red").save(tmp_path / "cat.jpg")
    with wave.open(str(tmp_path / "hello.wav"), "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", "not compressed"))
        file.writeframes(bytes(100))
    (tmp_path / "my_program.py").touch()
    monkeypatch.chdir(tmp_path)  # what is written does not stay
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def lite_case(family: str, name: str) -> bytes:
    """A file of TFLite, of the cases that LiteRT computed: image: 2,7,9,4,f32, and one convolution."""
    with np.load(ROOT / "plugins" / "tract_tensorflow" / "tests" / "tflite_cases" / f"{family}.npz") as cases:
        return cases[f"{name}/model"].tobytes()


def classifier() -> onnx.ModelProto:
    """image: B,3,8,8,f32, a node ``conv1``, one in ``encoder/0``, and logits."""
    random = np.random.default_rng(0)
    weights = {"filters": random.standard_normal((4, 3, 3, 3)), "matrix": random.standard_normal((144, 10))}
    nodes = [
        helper.make_node("Conv", ["image", "filters"], ["conv1"], name="conv1"),
        helper.make_node("Relu", ["conv1"], ["encoder/0/relu"], name="encoder/0/relu"),
        helper.make_node("Flatten", ["encoder/0/relu"], ["flat"]),
        helper.make_node("MatMul", ["flat", "matrix"], ["logits"], name="logits"),
    ]
    return made(nodes, "image", ["B", 3, 8, 8], weights)


def denoiser() -> onnx.ModelProto:
    """sound: 1,1,S,f32, and one convolution over it."""
    nodes = [helper.make_node("Conv", ["sound", "filters"], ["less"], pads=[1, 1])]
    return made(nodes, "sound", [1, 1, "S"], {"filters": np.ones((1, 1, 3))})


LETTERS = '{}[]":,0123456789abcdefghijklmno'
"""Tokens of the language model by which it can write JSON."""


def language_model(path: Path) -> None:
    """Two layers of width 64, with four heads over two, of random weights in blocks."""
    random, writer = np.random.default_rng(0), gguf.GGUFWriter(path, "llama")
    sizes = {"block_count": 2, "context_length": 32, "embedding_length": 64, "feed_forward_length": 96}
    for name, size in (sizes | {"attention.head_count": 4, "attention.head_count_kv": 2}).items():
        writer.add_uint32(f"llama.{name}", size)
    writer.add_float32("llama.attention.layer_norm_rms_epsilon", 1e-5)
    words = [*(f"t{number}" for number in range(96 - len(LETTERS))), *LETTERS]
    writer.add_array("tokenizer.ggml.tokens", words)
    writer.add_array("tokenizer.ggml.scores", [0.0] * 96)
    writer.add_array("tokenizer.ggml.token_type", [3, *[1] * 95])
    writer.add_string("tokenizer.ggml.model", "llama")
    said = "{% for message in messages %}{{ message.content }}{% endfor %}"
    writer.add_string("tokenizer.chat_template", "{{ bos_token }}" + said)
    writer.add_uint32("tokenizer.ggml.bos_token_id", 0)
    matrices = {"token_embd": (96, 64)}
    for layer in ("blk.0", "blk.1"):
        matrices |= {f"{layer}.attn_q": (64, 64), f"{layer}.attn_k": (32, 64), f"{layer}.attn_v": (32, 64)}
        matrices |= {f"{layer}.attn_output": (64, 64), f"{layer}.ffn_gate": (96, 64), f"{layer}.ffn_up": (96, 64)}
        matrices |= {f"{layer}.ffn_down": (64, 96)}
    for name, shape in matrices.items():
        packed = gguf.quants.quantize(random.standard_normal(shape).astype(np.float32), QuantizationType.Q8_0)
        writer.add_tensor(f"{name}.weight", packed, raw_dtype=QuantizationType.Q8_0)
    for name in ("output_norm", *(f"blk.{layer}.{part}_norm" for layer in range(2) for part in ("attn", "ffn"))):
        writer.add_tensor(f"{name}.weight", np.ones(64, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def text_encoder(path: Path, pooling: gguf.PoolingType) -> None:
    """A layer of width 32 as BERT has it, of random weights; with a head for one score where that is the pooling."""
    random, writer = np.random.default_rng(0), gguf.GGUFWriter(path, "bert")
    sizes = {"block_count": 1, "context_length": 16, "embedding_length": 32, "feed_forward_length": 48}
    for name, size in (sizes | {"attention.head_count": 4, "pooling_type": pooling.value}).items():
        writer.add_uint32(f"bert.{name}", size)
    writer.add_layer_norm_eps(1e-12)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    words = [*special, *(f"\u2581t{number}" for number in range(20))]
    writer.add_tokenizer_model("bert")
    writer.add_token_list(words)
    writer.add_token_types([3] * len(special) + [1] * 20)
    matrices = {"token_embd": (len(words), 32), "position_embd": (16, 32), "token_types": (2, 32)}
    matrices |= {f"blk.0.attn_{part}": (32, 32) for part in ("q", "k", "v", "output")}
    matrices |= {"blk.0.ffn_up": (48, 32), "blk.0.ffn_down": (32, 48)}
    matrices |= {"cls": (32, 32), "cls.output": (1, 32)} if pooling == gguf.PoolingType.RANK else {}
    for name, shape in matrices.items():
        writer.add_tensor(f"{name}.weight", random.standard_normal(shape).astype(np.float32))
    for name in ("token_embd_norm", "blk.0.attn_output_norm", "blk.0.layer_output_norm"):
        writer.add_tensor(f"{name}.weight", np.ones(32, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def encoders_with_decoders(folder: Path) -> None:
    """The folders ``t5`` and ``whisper``, of the tests of tract-transformers, and the recording ``speech.wav``."""
    place = ROOT / "plugins" / "tract_transformers" / "tests" / "halves_files.py"
    spec = spec_from_file_location("halves_files", place)
    assert spec is not None
    assert spec.loader is not None
    helper = module_from_spec(spec)
    spec.loader.exec_module(helper)
    for name in ("t5", "whisper"):
        helper.write_folder(folder / name, name)
    helper.write_wave(folder / "speech.wav", helper.sound(2.0, 8))


def made(nodes, name, shape, weights) -> onnx.ModelProto:
    taken = helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    given = helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, None)
    held = [numpy_helper.from_array(array.astype(np.float32), key) for key, array in weights.items()]
    graph = helper.make_graph(nodes, "graph", [taken], [given], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("path", [case(path, of_torch=uses_torch(path), name=name_of(path)) for path in RUN])
def test_every_block_runs_as_pasted(path: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    if name_of(path) in OF_TORCH and not WITH_TORCH:
        pytest.skip("needs PyTorch: run `make test-torch`")
    servers = Servers(folder)
    try:
        for language, title, text in BLOCK.findall(path.read_text()):
            if title:
                (folder / title).parent.mkdir(exist_ok=True, parents=True)
                (folder / title).write_text(text)
            if language == "python":
                run_python(servers.said(text), title, names, capsys)
            elif language == "console":
                run_lines(text, folder, servers)
            else:
                assert language == "text", f"a block of {language or 'no language'}: {text}"
    finally:
        servers.end()


def run_python(block: str, title: str, names: dict[str, object], capsys: pytest.CaptureFixture[str]) -> None:
    """Run in the names of the blocks before, or as a module where it is a file; what it prints is told beside it."""
    if USES_TORCH.search(block) and not WITH_TORCH:
        return
    if OF_RAY.search(block) and not find_spec("ray"):
        return
    if any(find_spec(name) is None for name in OF_RAY.findall(block)):
        return
    capsys.readouterr()
    if title:
        import_module(title.removesuffix(".py").replace("/", "."))
        return
    exec(compile(block, "document", "exec"), names)
    printed = capsys.readouterr().out.splitlines()
    promised = re.findall(r"print\(.*\)\s+# (.*)", block)
    assert printed == promised or not promised


NOT_RUN = {
    "pip install": "tests/test_dist.py installs, as the README says, into an environment that has nothing",
    ".venv/bin/pip install": "it installs into the environment that the tests run in",
    "TRACT_PERF=1 perf": "perf is a tool of the system",
    "docker ": "no engine of containers is there; test_elsewhere.py of tract-serve does what an image does",
    "kubectl ": "no cluster is there; the same reads what would be applied",
}
"""How lines begin that are not run here, and why."""


def run_lines(text: str, folder: Path, servers: Servers) -> None:
    """Lines of the command run; of others it is seen that what they name is there."""
    lines = re.findall(r"^\$ (.*?)(?:\s+#.*)?$", text, re.MULTILINE)
    assert lines, f"no line begins with '$ ': {text}"
    for line in lines:
        if line.startswith("tract serve ") and line.endswith(" &"):
            servers.start(line)
        elif line.startswith("curl "):
            servers.ask(line)
        elif line.startswith("tract "):
            run_tract(line, folder)
        elif line.startswith("make "):
            names = [word for word in shlex.split(line)[1:] if "=" not in word]
            targets = re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE)
            assert set(names) <= set(targets), line
        elif re.match(r"(\.venv/bin/)?python \S+\.py", line):
            (script,) = re.findall(r"(\S+\.py)", line)
            assert (ROOT / script).is_file(), line
        else:
            assert line.startswith(tuple(NOT_RUN)), f"what runs {line!r}?"


BRIEFLY: dict[str, Any] = {
    **{command: {"max_time": 200.0} for command in ("bench", "dump", "view")},
    "hwbench": {"seconds": 0.02},
}
"""What is measured, by default, for seconds: here it is to work, and the figures matter to nobody."""


def run_tract(line: str, folder: Path) -> None:
    line, _, piped = line.partition(" | ")
    # Nobody's kernels go: all tests that follow would compile them again.
    env = {"TRACT_CACHE": str(folder / "cache")} if line.startswith("tract cache clear") else None
    result = CliRunner(env=env).invoke(app, shlex.split(line)[1:], prog_name="tract", default_map=BRIEFLY)
    assert result.exit_code == 0, f"$ {line}\n{result.output}"
    if piped and which(shlex.split(piped)[0]):
        given = result.stdout.encode()
        subprocess.run(piped, shell=True, input=given, cwd=folder, check=True, capture_output=True, timeout=60)


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_code_is_in_blocks_that_are_run(path: Path) -> None:
    """Not indented, where nothing would find it."""
    assert not INDENTED.findall(BLOCK.sub("", path.read_text()))


def prose(path: Path) -> str:
    """A document without its code."""
    return re.sub(r"`[^`\n]+`", "code", BLOCK.sub("", path.read_text()))


def test_links_lead_somewhere() -> None:
    for path in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#]+)\)", prose(path)):
            assert target.startswith("http") or (path.parent / target).exists(), f"{path.name}: {target}"


def test_links_to_headings_lead_to_one() -> None:
    for path in DOCUMENTS:
        for target, heading in re.findall(r"\]\(([^)#]*)#([^)]+)\)", prose(path)):
            if not target.startswith("http"):
                page = (path.parent / target if target else path).read_text()
                anchors = {anchor(found) for found in re.findall(r"^#+ (.*)$", page, re.MULTILINE)}
                assert heading in anchors, f"{path.name}: {target}#{heading}"


def test_files_that_pages_name_are_there() -> None:
    """By the end of their path. ``FAMILY`` stands for the name of any."""
    places = (ROOT / place for place in ("tract_core", "plugins", "tests", "bench", "docs", "examples", "fuzz"))
    found = [f"/{path.relative_to(ROOT).as_posix()}" for place in places for path in place.rglob("*.py")]
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for name in re.findall(r"`([\w./-]+\.py)`", page.read_text()):
            assert "FAMILY" in name or any(path.endswith(f"/{name}") for path in found), f"{page.name}: {name}"


def anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_every_decision_is_in_their_list() -> None:
    folder = ROOT / "docs/decisions"
    listed = re.findall(r"\]\((\d{4}-[^)]*\.md)\)", (folder / "README.md").read_text())
    assert sorted(listed) == sorted(path.name for path in folder.glob("[0-9]*.md"))


def test_every_distribution_is_in_the_readme_and_every_extra_exists() -> None:
    import tomllib

    readme = (ROOT / "README.md").read_text()
    names = {tomllib.loads(path.read_text())["project"]["name"] for path in (ROOT / "plugins").glob("*/pyproject.toml")}
    assert all(f"`{name}`" in readme for name in names)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    wanted = [requirement for requirements in extras.values() for requirement in requirements]
    assert {requirement.partition(">")[0] for requirement in wanted if requirement.startswith("tract-")} == names
    rows = {row[0].strip(" `"): re.findall(r"`(\w+)`", row[2]) for row in table(readme, "distribution")}
    told = {
        name: [extra for extra, several in extras.items() if any(one.startswith(name) for one in several)]
        for name in names
    }
    assert {name: sorted(rows[name]) for name in names} == {name: sorted(told[name]) for name in names}


def table(page: str, first: str) -> list[list[str]]:
    """The cells of the rows of a table whose header begins so."""
    (found,) = re.findall(rf"^\| {first} \|.*\n\|[-|]+\n((?:\|.*\n)+)", page, re.MULTILINE)
    return [line.strip("|").split("|") for line in found.splitlines()]


def test_the_readme_shows_how_to_install_and_how_fast_before_the_details() -> None:
    headings = re.findall(r"^## (.*)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert headings[:2] == ["Install", "How fast it is"]


def test_figures_of_the_readme_are_those_of_the_page() -> None:
    one_thread = (ROOT / "docs/performance.md").read_text().partition("## 1 thread\n")[2].partition("\n## ")[0]
    shown = table((ROOT / "README.md").read_text(), "milliseconds")
    assert len(shown) >= 8
    assert all(row in table(one_thread, "milliseconds") for row in shown)


GLOSSARY = re.findall(r"^\| ([^|]+) \| [^|]+ \| `([\w.]+)` \|$", (ROOT / "docs/glossary.md").read_text(), re.MULTILINE)


@pytest.mark.parametrize(
    ("word", "place"),
    [case(word, place, of_torch=place.startswith("tract_torch."), name=word) for word, place in GLOSSARY],
)
def test_words_lead_to_what_they_mean(word: str, place: str) -> None:
    if place.startswith("tract_torch.") and not WITH_TORCH:
        pytest.skip("needs PyTorch: run `make test-torch`")
    assert pkgutil.resolve_name(place) is not None


def test_every_word_has_one_meaning() -> None:
    words = [word for word, _ in GLOSSARY]
    lines = (ROOT / "docs/glossary.md").read_text().splitlines()
    rows = [line for line in lines if line.startswith("| ") and not line.startswith("| word ")]
    assert len(words) == len(rows)
    assert len(set(words)) == len(words)
