"""Archives of modules that change their buffers: these are inputs and outputs, or a running model keeps them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from remembering import MODULES, Counter, Ring, Stream, Total, buffers_of, rows
from torch import Tensor, nn
from tract_torch import KhronosNNEF, TractNNEF, check_io, export_model_to_nnef
from tract_torch.check.assert_io import assert_io, build_io
from tract_torch.errors import CheckError
from tract_torch.established.tract_cli import TractCli

import tract_core as tract
from tract_core.cli.frame import app
from tract_core.errors import InputError, Unsupported

sys.path.insert(0, str(Path(__file__).parents[2] / "tract_nnef" / "tests"))

import established
from established import interchange

VERSION = "0.23.9"


def made(name: str) -> tuple[nn.Module, Any, dict[str, dict[int, str]]]:
    """A module, what makes its argument, and its dynamic axes."""
    torch.manual_seed(0)
    factory, argument, axis = MODULES[name]
    return factory().eval(), argument, {"x": {axis: "N"}}


def export(module: nn.Module, args: Any, path: Path, states: Any, version: str | None = VERSION, **options: Any) -> Any:
    """The archive, which was checked, and what was compared."""
    axes = options.pop("axes", None)
    target = TractNNEF(version, dynamic_axes=axes)
    before = buffers_of(module)
    names = options.pop("input_names", ["x"])
    found = export_model_to_nnef(
        module, args, path / "m.nnef.tar", target, input_names=names, output_names=["y"], states=states, **options
    )
    unchanged(module, before)
    return found, target.report


def unchanged(module: nn.Module, before: dict[str, Any]) -> None:
    """The module has the same buffers, with the same values."""
    now = buffers_of(module)
    assert {name: place for name, (place, _) in now.items()} == {name: place for name, (place, _) in before.items()}
    assert all(torch.equal(value, before[name][1]) for name, (_, value) in now.items())


def calls(module: nn.Module, argument: Any, count: int = 6) -> tuple[list[Tensor], list[Tensor]]:
    """Arguments of different sizes, and what the module gives for them, one after the other."""
    torch.manual_seed(1)
    given = [argument(2 + number % 3) for number in range(count)]
    with torch.no_grad():
        return given, [module(x).clone() for x in given]


@pytest.mark.parametrize("name", MODULES)
def test_buffers_go_in_and_come_out(tmp_path: Path, name: str) -> None:
    module, argument, axes = made(name)
    archive, report = export(module, argument(3), tmp_path, "inputs", axes=axes)
    assert {trial.inputs for trial in report.trials} >= {"example", "example, call 2", "seed 2, call 3"}
    assert len(report.values_of("N")) > 2
    model = tract.load(archive)
    held = {name: value.numpy() for name, (_, value) in buffers_of(module).items() if f"{name}_out" in outputs(model)}
    assert model.input_names() == ["x", *held]
    assert outputs(model) == ["y", *(f"{name}_out" for name in held)]
    runnable = model.into_runnable()
    for x, wanted in zip(*calls(module, argument), strict=True):
        y, *after = runnable.run([x.numpy(), *held.values()])
        np.testing.assert_allclose(y, wanted, 1e-5, 1e-5)
        held = dict(zip(held, map(np.asarray, after), strict=True))
    now = buffers_of(module)
    for buffer, found in held.items():
        np.testing.assert_allclose(found, now[buffer][1], 1e-5, 1e-5)


@pytest.mark.parametrize("name", MODULES)
def test_a_running_model_keeps_buffers(tmp_path: Path, name: str) -> None:
    module, argument, axes = made(name)
    archive, report = export(module, argument(3), tmp_path, "inside", None, axes=axes)
    assert {trial.inputs for trial in report.trials} >= {"example", "example, call 3", "seed 1, call 2"}
    model = tract.load(archive)
    assert (model.input_names(), outputs(model)) == (["x"], ["y"])
    state = model.into_runnable().spawn_state()
    for x, wanted in zip(*calls(module, argument), strict=True):
        np.testing.assert_allclose(state.run([x.numpy()])[0], wanted, 1e-5, 1e-5)


def outputs(model: tract.Model) -> list[str]:
    return model.output_names()


def members(archive: Path) -> set[str]:
    import tarfile

    with tarfile.open(archive) as content:
        return {name.removeprefix("./") for name in content.getnames()}


def test_a_buffer_that_goes_in_is_no_tensor_of_the_archive(tmp_path: Path) -> None:
    archive, _ = export(Stream(), torch.randn(1, 2, 5), tmp_path, "inputs")
    assert {name for name in members(archive) if name.endswith(".dat")} == {"conv.weight.dat", "conv.bias.dat"}
    archive, _ = export(Ring(), rows(2), tmp_path, "inside", None)
    assert {name for name in members(archive) if name.endswith(".dat")} == {"rows.dat", "at.dat"}
    archive, _ = export(Ring(), rows(2), tmp_path, "inputs")
    assert members(archive) == {"graph.nnef"}


def test_a_module_that_changes_its_buffers_is_refused_unless_asked(tmp_path: Path) -> None:
    wanted = r"(?s)changes what it holds: rows, at.*states='inputs' \(of load, of export_model_to_nnef.*'inside'"
    with pytest.raises(Unsupported, match=wanted):
        export(Ring(), rows(2), tmp_path, "refuse")
    with pytest.raises(InputError, match="states='outside' is none of 'refuse', 'inputs' and 'inside'"):
        export(Ring(), rows(2), tmp_path, "outside")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("target", [TractNNEF(VERSION), KhronosNNEF()], ids=["0.23.9", "khronos"])
def test_what_cannot_keep_states_is_told_so(tmp_path: Path, target: Any) -> None:
    with pytest.raises(Unsupported, match=r"(?s)cannot keep states inside.*states='inputs'.*TractNNEF\(None\)"):
        export_model_to_nnef(Counter(), rows(2), tmp_path / "m.nnef", target, states="inside")


def test_names_that_are_taken(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the input 'at' is called as a parameter or a symbol: 'at'"):
        export(Counter(), rows(2), tmp_path, "inputs", input_names=["at"])
    target = TractNNEF(VERSION)
    with pytest.raises(InputError, match="two outputs have the name 'total_out'"):
        export_model_to_nnef(Total(), rows(2), tmp_path / "m.nnef", target, output_names=["total_out"], states="inputs")


class Doubling(nn.Module):
    """One that changes an argument, too"""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        x.mul_(2)
        self.calls += 1
        return x + self.calls


def test_an_argument_that_changes_comes_out(tmp_path: Path) -> None:
    archive, report = export(Doubling(), rows(2), tmp_path, "inputs", input_names=["image"], axes={"image": {0: "N"}})
    model = tract.load(archive)
    assert outputs(model) == ["y", "calls_out", "image_out"]
    assert {one.name for trial in report.trials for one in trial.outputs} == set(outputs(model))


class Growing(Total):
    """One whose buffer becomes larger"""

    def forward(self, x: Tensor) -> Tensor:
        self.total = torch.cat([self.total, x[0]])
        return x * self.total.sum()


class Retyped(Total):
    """One whose buffer becomes of another type"""

    def forward(self, x: Tensor) -> Tensor:
        self.total = self.total > 1
        return x * self.total


class Overlapping(Total):
    """One of whose buffers is a part of the other"""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("part", self.total[:1])

    def forward(self, x: Tensor) -> Tensor:
        self.total += x.sum(0)
        return x * self.part


class Late(nn.Module):
    """One that makes its buffer when it is called"""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", None)

    def forward(self, x: Tensor) -> Tensor:
        self.total = x.sum(0) if self.total is None else self.total + x.sum(0)
        return x * self.total


class Plain(nn.Module):
    """One that changes a tensor which is no buffer"""

    def __init__(self) -> None:
        super().__init__()
        self.total = torch.zeros(3)

    def forward(self, x: Tensor) -> Tensor:
        self.total += x.sum(0)
        return x * self.total


class Learning(nn.Module):
    """One that changes a parameter"""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            self.weight.add_(x.sum(0))
        return x * self.weight


@pytest.mark.parametrize("states", ["inputs", "inside"])
@pytest.mark.parametrize(
    ("module", "message"),
    [
        (Growing, r"(?s)'total' is of the shape \[3\] before a call and of \[6\] after it.*large enough"),
        (Retyped, "(?s)'total' is 3,f32 before a call and 3,bool after it.*have to stay"),
        (Overlapping, "(?s)the buffers 'total' and 'part' share memory.*compute the others of it in forward"),
        (Late, r"(?s)makes the buffer 'total' while it is called.*self.register_buffer\('total', torch.zeros"),
        (Plain, r"(?s)changes the tensor 'total', which is no buffer.*self.register_buffer\('total', tensor\)"),
        (Learning, "(?s)changes its parameters: weight.*what changes is a buffer"),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_what_cannot_be_kept_is_told(tmp_path: Path, module: type[nn.Module], message: str, states: Any) -> None:
    changing = module()
    before = {name: one.clone() for name, one in changing.state_dict().items()}
    with pytest.raises(Unsupported, match=message):
        export(changing, rows(2), tmp_path, states, None)
    now = changing.state_dict()
    assert now.keys() == before.keys()
    assert all(torch.equal(now[name], value) for name, value in before.items())
    assert not list(tmp_path.iterdir())


class Full(nn.Module):
    """Takes two rows and no more"""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("at", torch.zeros(1, dtype=torch.int64))
        self.register_buffer("rows", torch.zeros(2, 3))

    def forward(self, x: Tensor) -> Tensor:
        self.rows.index_copy_(0, self.at, x)
        self.at += 1
        return self.rows * 2


def test_a_cache_that_is_full_ends_the_calls_in_a_row(tmp_path: Path) -> None:
    _, report = export(Full(), rows(1), tmp_path, "inputs")
    assert [trial.inputs for trial in report.trials][:3] == ["example", "example, call 2", "seed 1"]
    assert any("example, call 3: the module takes no more calls in a row" in note for note in report.notes)


# --- the check sees what is wrong -------------------------------------------------------------------------------------


class Twice(Ring):
    """A `Ring` that counts otherwise"""

    def forward(self, x: Tensor) -> Tensor:
        self.rows.index_copy_(0, self.at, x.sum(0, keepdim=True))
        self.at.copy_((self.at + 2) % 4)
        return self.rows * torch.arange(1, 5)[:, None]


def test_a_buffer_that_is_wrong_afterwards_is_seen(tmp_path: Path) -> None:
    archive, _ = export(Ring(), rows(2), tmp_path, "inputs")
    module = Twice()
    before = buffers_of(module)
    with pytest.raises(CheckError, match="example: output 'at_out': 1 of 1 elements differ") as told:
        check_io(module, archive, rows(2), input_names=["x"])
    unchanged(module, before)
    assert "read back from the archive" in str(told.value)
    assert set(told.value.inputs or ()) == {"x", "rows", "at"}
    assert (told.value.outputs or {})["at_out"] == 2


def test_what_is_kept_wrong_is_seen_at_the_next_call(tmp_path: Path) -> None:
    archive, _ = export(Ring(), rows(2), tmp_path, "inside", None)
    module = Twice()
    before = buffers_of(module)
    with pytest.raises(CheckError, match=r"(?s)example, call 2: output 'y'.*read back from the archive") as told:
        check_io(module, archive, rows(2))
    unchanged(module, before)
    assert told.value.inputs is None


def test_a_module_that_fails_is_left_as_it_was(tmp_path: Path) -> None:
    class Failing(Counter):
        def forward(self, x: Tensor) -> Tensor:
            self.at = self.at + 1
            raise ValueError("nothing comes of it")

    archive, _ = export(Counter(), rows(2), tmp_path, "inputs")
    module = Failing()
    before = buffers_of(module)
    with pytest.raises(ValueError, match="nothing comes of it"):
        check_io(module, archive, rows(2), input_names=["x"])
    unchanged(module, before)


# --- files of inputs and outputs --------------------------------------------------------------------------------------


@pytest.mark.parametrize("states", ["inputs", "inside"])
def test_a_command_checks_an_archive_with_states(tmp_path: Path, states: Any) -> None:
    archive, _ = export(Ring(), rows(2), tmp_path, states, None)
    module, given = Ring(), rows(2)
    before = buffers_of(module)
    names = {"input_names": ["x"], "output_names": ["y"], "states": states}
    assert_io(module, given, archive, TractCli.own(), check_tolerance="close", **names)
    assert_io(module, given, archive, TractCli.own(), tmp_path / "io.npz", check_tolerance="close", **names)
    unchanged(module, before)
    saved = dict(np.load(tmp_path / "io.npz"))
    held = {"rows", "at", "rows_out", "at_out"} if states == "inputs" else set[str]()
    assert set(saved) == {"x", "y", *held}
    if held:
        assert saved["at_out"] == saved["at"] + 1


def test_files_of_a_module_that_changes_its_buffers_ask_for_the_option(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match=r"(?s)changes what it holds: rows, at.*states='inputs'"):
        build_io(Ring(), rows(2), tmp_path / "i.npz")
    assert not list(tmp_path.iterdir())


def test_a_debug_bundle_holds_the_buffers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tract_torch.inference_target import tract as targets

    def differs(*_: Any, **__: Any) -> None:
        raise CheckError("it differs")

    monkeypatch.setattr(targets, "check_io", differs)
    monkeypatch.setattr(targets, "Opinion", lambda *_: None)
    target, place = TractNNEF(VERSION), tmp_path / "m.nnef"
    bundle = tmp_path / "bundle"
    with pytest.raises(CheckError, match="it differs"):
        export_model_to_nnef(Ring(), rows(2), place, target, debug_bundle_path=bundle, states="inputs")
    given, wanted = (dict(np.load(bundle / "torch_to_nnef" / f"{name}.npz")) for name in ("inputs", "outputs"))
    assert set(given) == {"input_0", "rows", "at"}
    assert set(wanted) == {"output_0", "rows_out", "at_out"}
    assert wanted["at_out"] == 1


def test_the_command_has_the_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    words = ["torch-export", "remembering:Ring", str(tmp_path / "m.nnef"), "-i", "x:N,3,f32", "-o", "y"]
    refused = CliRunner().invoke(app, words)
    assert refused.exit_code
    assert "states='inputs'" in refused.output
    done = CliRunner().invoke(app, [*words, "--states", "inputs"])
    assert done.exit_code == 0, done.output
    assert tract.load(tmp_path / "m.nnef.tar").input_names() == ["x", "rows", "at"]
    done = CliRunner().invoke(app, [*words, "--states", "inside"])
    assert done.exit_code == 0, done.output
    assert tract.load(tmp_path / "m.nnef.tar").input_names() == ["x"]


# --- the established engine -------------------------------------------------------------------------------------------


@interchange
@pytest.mark.parametrize("name", MODULES)
def test_buffers_mean_the_same_in_the_established_engine(tmp_path: Path, name: str) -> None:
    module, argument, axes = made(name)
    archive, _ = export(module, argument(3), tmp_path, "inputs", axes=axes)
    names = tract.load(archive).input_names()[1:]
    held = [buffers_of(module)[name][1].numpy() for name in names]
    for x, wanted in zip(*calls(module, argument, 3), strict=True):
        y, *held = established.run(archive, [x.numpy(), *held])
        np.testing.assert_allclose(y, wanted, 1e-5, 1e-5)
    for buffer, found in zip(names, held, strict=True):
        np.testing.assert_allclose(found, buffers_of(module)[buffer][1], 1e-5, 1e-5)
