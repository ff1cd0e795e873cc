"""``docs/torch.md``: what it shows runs, its names are there, its table is that of the last run of its generator."""

from __future__ import annotations

import importlib.util
import inspect
import re
import shlex
from pathlib import Path
from types import ModuleType

import pytest
import torch
import tract_torch
import tract_torch.inference_target.tract
from catalogue import CATALOGUE
from click.testing import CliRunner
from tract_torch import InferenceTarget, TractNNEF, export_model_to_nnef

from tract_core.cli.frame import app

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "torch.md").read_text()
HINT = "run `python docs/generate_torch.py`"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_torch", ROOT / "docs" / "generate_torch.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def listed(page: str) -> dict[str, str]:
    """Each core operator in the table of the page, and how it is imported."""
    return dict(re.findall(r"^\| `(\w+)` \| (whole|decomposed|\*\*no\*\*) \| (?:\d+|-) \|$", page, re.MULTILINE))


def test_every_core_operator_is_listed_as_it_is_imported(generator: ModuleType) -> None:
    core = generator.core_operators()
    assert listed(PAGE) == {name: way or "**no**" for name, way in generator.ways(core).items()}, HINT
    assert len(core) >= 150


def test_the_counts_are_those_of_the_table(generator: ModuleType) -> None:
    told = re.search(
        r"Of the (\d+) core ATen operators of PyTorch ([\d.]+) .*?, (\d+) are imported. "
        r"The catalogue has more than (\d+) entries for more than (\d+) names.",
        " ".join(PAGE.split()),
    )
    assert told is not None
    rows = listed(PAGE)
    assert (int(told[1]), int(told[3])) == (len(rows), sum(way != "**no**" for way in rows.values()))
    assert torch.__version__ >= told[2], HINT
    names = {str(entry).partition(",")[0] for entry in CATALOGUE}
    assert len(CATALOGUE) > int(told[4]) >= 1000
    assert len(names) > int(told[5]) >= 400


def test_a_row_that_is_gone_is_noticed(generator: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generator, "_has_row", lambda name: name != "aten.gelu.default")
    assert listed(PAGE) != generator.ways(generator.core_operators())


class Classifier(torch.nn.Module):
    """What the page calls ``module``."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, 8), torch.nn.ReLU(), torch.nn.Conv2d(4, 8, 3, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x).mean((2, 3))


def test_the_python_of_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names = {"module": Classifier()}
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    for block in blocks:
        exec(compile(block, "docs/torch.md", "exec"), names)
    assert len(blocks) >= 5
    promised = re.findall(r"print\(.*\)\s+# (.*)", PAGE)
    assert promised
    assert set(promised) <= set(capsys.readouterr().out.splitlines())
    assert (tmp_path / "classifier.nnef.tar").is_file()


def test_the_python_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "plugins" / "tract_torch" / "README.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(compile(block, "README.md", "exec"), {})
    assert (tmp_path / "scores.nnef.tar").is_file()


def test_the_command_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "networks.py").write_text("from test_docs_torch import Classifier as classifier")
    lines = re.findall(r"^\$ (tract .*)", PAGE, re.MULTILINE)
    for line in lines:
        done = CliRunner().invoke(app, shlex.split(line)[1:])
        assert done.exit_code == 0, done.output
    assert lines
    assert (tmp_path / "classifier.nnef.tgz").is_file()


def test_names_of_the_page_are_there() -> None:
    """Those in the column ``here`` of the table of names, and those that stay ``the same``."""
    table = PAGE.partition("## Coming from torch_to_nnef")[2].partition("\n\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| (.+?) \| .*\|$", table, re.MULTILINE)[2:]
    assert len(rows) > 25
    there = {*dir(tract_torch), *dir(tract_torch.inference_target.tract), *vars(InferenceTarget)}
    there |= set(inspect.signature(export_model_to_nnef).parameters) | set(inspect.signature(TractNNEF).parameters)
    for theirs, here in rows:
        for name in re.findall(r"`(\w+)(?:\(.*?\))?`", theirs) if here.startswith("the same") else ():
            assert name in there or name.startswith("T2N_"), name
