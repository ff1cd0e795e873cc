"""Files of `torch.export.save`: as models, and what is refused in them."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import tract_torch
from agreement import same

import tract_core as tract
from tract_core.errors import CorruptModel, MissingFile, ModelError, Unsupported


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[torch.nn.Module, Path]:
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU()).eval()
    shapes = ({0: torch.export.Dim("B", min=2, max=9)},)
    path = tmp_path_factory.mktemp("saved") / "model.pt2"
    torch.export.save(torch.export.export(module, (torch.randn(2, 3),), dynamic_shapes=shapes), path)
    return module, path


@pytest.mark.parametrize("load", [tract.load, tract_torch.load])
def test_a_file_is_a_model(load: Any, saved: tuple[torch.nn.Module, Path]) -> None:
    module, path = saved
    model = load(path)
    assert [str(fact) for fact in model.input_facts()] == ["input_0,3,f32"]
    x = torch.randn(7, 3)
    same(model.into_runnable().run([x.numpy()]), [module(x).detach()])


def rewritten(saved: Path, path: Path, change: Callable[[str, bytes], bytes | None]) -> Path:
    """A copy in which each member is what ``change`` makes of it; None leaves it out."""
    with zipfile.ZipFile(saved) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            content = change(name, old.read(name))
            if content is not None:
                new.writestr(name, content)
    return path


def in_graph(old: bytes, new: bytes) -> Callable[[str, bytes], bytes]:
    def change(name: str, content: bytes) -> bytes:
        if not name.endswith("models/model.json"):
            return content
        assert old in content
        return content.replace(old, new)

    return change


class Calling:
    """Pickled as a call."""

    def __reduce__(self) -> Any:
        return _unpickle, ()


def _unpickle() -> None:
    UNPICKLED.append(1)


UNPICKLED: list[int] = []
"""What a pickle that is read would be seen by."""


def evil(name: str, content: bytes) -> bytes:
    if "sample_inputs" not in name:
        return content

    written = io.BytesIO()
    torch.save(((Calling(),), {}), written)
    return written.getvalue()


def pickled(name: str, content: bytes) -> bytes:
    if not name.endswith("model_weights_config.json"):
        return content
    config = json.loads(content)
    for entry in config["config"].values():
        entry["use_pickle"] = True
    return json.dumps(config).encode()


@pytest.mark.parametrize(
    ("change", "kind", "says"),
    [
        (evil, Unsupported, "its example holds pickled objects, which can run any program"),
        (pickled, Unsupported, "has pickled tensors or objects"),
        (
            in_graph(b"torch.ops.aten.linear.default", b"torch.serialization.os.getcwd"),
            Unsupported,
            "wanted an operator",
        ),
        (lambda name, content: None if "models/" in name else content, Unsupported, "has no member models/model.json"),
        (lambda name, content: b"{" if "models/" in name else content, CorruptModel, "is no file of torch.export.save"),
    ],
)
def test_what_a_file_must_not_have(
    change: Any, kind: type[ModelError], says: str, saved: tuple[torch.nn.Module, Path], tmp_path: Path
) -> None:
    path = rewritten(saved[1], tmp_path / "bad.pt2", change)
    with pytest.raises(kind, match=f"bad.pt2: .*{says}"):
        tract_torch.load(path)
    with pytest.raises(kind, match=says):
        tract.load(path)
    assert not UNPICKLED


def test_expressions_are_of_sizes(saved: tuple[torch.nn.Module, Path], tmp_path: Path) -> None:
    with zipfile.ZipFile(saved[1]) as archive:
        name = next(one for one in archive.namelist() if one.endswith("models/model.json"))
        graph = archive.read(name)
    symbol = graph.partition(b'"expr_str"')[2].split(b'"')[1]
    for text in (b"__import__('os').getcwd()", b"9**9**9**9", b"[1 for _ in (1,)]"):
        path = rewritten(
            saved[1], tmp_path / "bad.pt2", in_graph(b'"' + symbol + b'"', json.dumps(text.decode()).encode())
        )
        with pytest.raises(CorruptModel, match="wanted one of sizes"):
            tract_torch.load(path)


CALL = "__import__('pathlib').Path({!r}).touch()"
"""What would be seen if it was run, in a file of this name."""


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"guards_code": []', '"guards_code": [CALL]', "wanted one of sizes"),
        ('"guards_code": []', '"guards_code": ["f(L[\'input\'].size()[0])"]', "wanted one of sizes"),
        ('"p_0_weight"', "CALL", "wanted a name"),
        ('"forward_arg_names": ["input"]', '"forward_arg_names": [CALL]', "wanted a name"),
        (r"\"type\": \"builtins.dict\"", r"\"type\": \"collections.defaultdict\"", "are in a collections.defaultdict"),
        (r"\"context\": \"[]\"", r"\"context\": \"{\\\"__enum__\\\": 1}\"", "wanted names or numbers"),
    ],
)
def test_texts_that_would_become_part_of_a_program(
    old: str, new: str, says: str, saved: tuple[torch.nn.Module, Path], tmp_path: Path
) -> None:
    mark = tmp_path / "was run"
    call = json.dumps(CALL.format(str(mark)))
    change = in_graph(old.encode(), new.replace("CALL", call).encode())
    with pytest.raises(ModelError, match=says):
        tract_torch.load(rewritten(saved[1], tmp_path / "bad.pt2", change))
    assert not mark.exists()


@pytest.mark.parametrize("name", ["archive/data/aotinductor/model/a.so", "archive/models/other.jsn", "other/models/a"])
def test_members_that_pytorch_would_run_or_read_too(
    name: str, saved: tuple[torch.nn.Module, Path], tmp_path: Path
) -> None:
    path = tmp_path / "more.pt2"
    path.write_bytes(saved[1].read_bytes())
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(name.replace("archive/", archive.namelist()[0].partition("/")[0] + "/"), b"")
    with pytest.raises(ModelError, match=r"which torch.export.save does not write|are in several folders"):
        tract_torch.load(path)


def test_tensors_by_the_names_of_pickles(saved: tuple[torch.nn.Module, Path], tmp_path: Path) -> None:
    def change(name: str, content: bytes) -> bytes:
        return content.replace(b"weight_0", b"opaque_obj_0") if name.endswith("_config.json") else content

    with pytest.raises(Unsupported, match="which PyTorch would unpickle"):
        tract_torch.load(rewritten(saved[1], tmp_path / "bad.pt2", change))


def test_an_archive_with_another_one_behind_it(saved: tuple[torch.nn.Module, Path], tmp_path: Path) -> None:
    path = tmp_path / "two.pt2"
    path.write_bytes(saved[1].read_bytes() + b"behind")
    with pytest.raises(ModelError, match=r"two.pt2: does not end with the directory|is no file of torch.export.save"):
        tract_torch.load(path)


def test_guards_of_a_file_are_kept(tmp_path: Path) -> None:
    class Deciding(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2 if x.shape[0] % 2 == 0 and max(x.shape[0], 3) < 9 else x

    shapes = ({0: torch.export.Dim.DYNAMIC},)
    program = torch.export.export(Deciding(), (torch.ones(4),), dynamic_shapes=shapes)
    torch.export.save(program, tmp_path / "m.pt2")
    runnable = tract_torch.load(tmp_path / "m.pt2").into_runnable()
    same(runnable.run([torch.ones(6).numpy()]), [torch.full((6,), 2.0)])


def test_files_that_are_something_else(tmp_path: Path) -> None:
    with pytest.raises(MissingFile):
        tract_torch.load(tmp_path / "none.pt2")
    (tmp_path / "page.pt2").write_text("<!doctype html><html>")
    with pytest.raises(CorruptModel, match="it is an HTML page"):
        tract_torch.load(tmp_path / "page.pt2")


def test_half_a_file(saved: tuple[torch.nn.Module, Path], tmp_path: Path) -> None:
    content = saved[1].read_bytes()
    (tmp_path / "half.pt2").write_bytes(content[: len(content) // 2])
    with pytest.raises(ModelError, match=r"half.pt2: "):
        tract_torch.load(tmp_path / "half.pt2")
