"""What cannot be exported: one error of few lines, the module and PyTorch as they were, nothing left on the disk."""

from __future__ import annotations

import errno
import json
import struct
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import tract_torch
from tract_torch import TractNNEF, export_model_to_nnef

import tract_core as tract
import tract_core.saving
from tract_core.errors import InputError, TractError, Unsupported

TARGET = TractNNEF(None)
X = torch.randn(2, 3)


class Calling(torch.nn.Module):
    """A layer in training mode, with a gradient and a hook, and a function of it and the input."""

    def __init__(self, function: Callable[[torch.nn.Module, torch.Tensor], Any]) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)
        self.register_buffer("count", torch.zeros(3))
        self.function = function
        self.layer(X).sum().backward()
        self.layer.bias.requires_grad_(requires_grad=False)
        self.hook = self.layer.register_forward_hook(lambda *_: None)

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(self, x)


def state_of(module: torch.nn.Module) -> tuple[Any, ...]:
    """All that must be the same afterwards, of a module and of PyTorch: objects by identity, tensors by content."""
    held = [(name, id(one), one.requires_grad) for name, one in module.state_dict(keep_vars=True).items()]
    content = [one.numpy(force=True).tobytes() for one in module.state_dict().values() if not one.is_meta]
    parts = [
        (part.training, {k: id(v) for k, v in part.__dict__.items() if k != "training"}) for part in module.modules()
    ]
    gradients = [None if one.grad is None else one.grad.numpy().tobytes() for one in module.parameters()]
    flags = torch.get_default_dtype(), torch.is_grad_enabled(), torch.are_deterministic_algorithms_enabled()
    return held, content, parts, gradients, flags, torch.get_rng_state().numpy().tobytes(), torch.get_num_threads()


REFUSED = [
    (lambda m, x: m.layer(x) if x.sum() > 0 else x, "the module decides by what only a run knows"),
    (lambda _, x: torch.from_numpy(x.numpy() * 2), "calling the module gave RuntimeError"),
    (lambda *_: {}["a"], "calling the module gave KeyError: 'a'"),
    (lambda _, x: x.add_(1) * 2, "the module changes its arguments in place: x"),
    (lambda m, x: (m.count.add_(1), x + m.count)[1], "the module changes what it holds: count"),
    (lambda *_: None, "the module returns no tensor"),
    (lambda *_: (), "the module returns no tensor"),
    (lambda _, x: (x * 2, "text"), "output 'output_1': is 'text', wanted a tensor or a number"),
]


@pytest.mark.parametrize(("function", "says"), REFUSED, ids=range(len(REFUSED)))
def test_modules_that_are_refused(function: Any, says: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    module = Calling(function).train()
    before = state_of(module)
    with pytest.raises(Unsupported, match=says) as caught:
        export_model_to_nnef(module, X, tmp_path / "m.nnef", TARGET)
    assert len(str(caught.value).splitlines()) < 6
    assert state_of(module) == before
    assert not list(tmp_path.iterdir())
    assert not [record for record in caplog.records if record.exc_info]


def test_a_module_is_as_it_was_after_an_export(tmp_path: Path) -> None:
    module = Calling(lambda m, x: m.layer(x)).train()
    before = state_of(module)
    export_model_to_nnef(module, X, tmp_path / "m.nnef", TARGET)
    assert state_of(module) == before


NAMES = [
    ({"input_names": [None]}, "None is no name of an input"),
    ({"input_names": ["a b"]}, "(?s)'a b' is no name of an input of an archive.*as 'a_b'"),
    ({"output_names": ["é"]}, "'é' is no name of an output of an archive"),
    ({"output_names": ["a\nb"]}, "is no name of an output of an archive"),
    ({"input_names": ["graph"]}, "'graph' is no name of an input of an archive"),
    ({"input_names": ["layer_weight"]}, "the input 'layer_weight' is called as a parameter or a symbol: 'layer"),
    ({"inference_target": TARGET.with_dynamic_axes({"input_0": {0: "output_0"}})}, "output 'output_0' is called as"),
    ({"nnef_variable_naming_scheme": "short"}, "nnef_variable_naming_scheme is 'short', wanted one of raw, natural"),
    ({"log_level": "loud"}, "log_level is 'loud', wanted a level of logging"),
    ({"custom_extensions": ["tract_symbol 3x"]}, "'3x' is no name of a symbol"),
    ({"file_path_export": "a\0.nnef"}, "it is no path: embedded null"),
    ({"args": torch.empty(2, 3, device="meta")}, "(?s)the example: is on the device 'meta'.*give tensors"),
    ({"weights": 3}, "weights is int, wanted a mapping"),
    ({"weights": {"layer.weight": np.zeros((3, 3))}}, "the weight 'layer.weight' is ndarray, wanted a tensor"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "says"), NAMES, ids=range(len(NAMES)))
def test_what_is_asked_wrongly(change: Any, says: str, tmp_path: Path) -> None:
    asked = {"model": Calling(lambda m, x: m.layer(x)), "args": X, "inference_target": TARGET} | change
    asked["file_path_export"] = tmp_path / asked.get("file_path_export", "m.nnef")
    with pytest.raises(TractError, match=says):
        export_model_to_nnef(**asked)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("option", ["check_io_tolerance", "feature_flags"])
def test_options_of_targets_are_told_with_what_there_is(option: str) -> None:
    with pytest.raises(InputError, match="is 'none', wanted one of"):
        TractNNEF(None, **{option: ["none"] if option == "feature_flags" else "none"})


def test_names_of_300_characters_and_keys_of_any_kind(tmp_path: Path) -> None:
    module = Calling(lambda _, x: {"a.b": x["é"] * 2, "c": x["é"]})
    path = export_model_to_nnef(module, ({"é": X},), tmp_path / "m.nnef", TARGET, ["x" * 300], ["y"])
    runnable = tract.load(path).into_runnable()
    assert runnable.input_names() == ["x" * 300 + "__"]
    assert runnable.output_names() == ["y_a_b", "y_c"]


def test_a_module_that_was_compiled_stays_as_it_was(tmp_path: Path) -> None:
    for module in (torch.jit.script(torch.nn.Linear(3, 3)), torch.jit.trace(torch.nn.Linear(3, 3), X)):
        with pytest.raises(Unsupported, match=r"torch.export does not take a ScriptModule"):
            export_model_to_nnef(module, X, tmp_path / "m.nnef", TARGET)
        assert module.training


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tract_core.saving.os, "fsync", full)
    with pytest.raises(InputError, match=r"m\.nnef\.tar: it cannot be written: No space left on device"):
        export_model_to_nnef(torch.nn.Linear(3, 3), X, tmp_path / "m.nnef", TARGET)
    assert not list(tmp_path.iterdir())


def test_an_interrupt_while_it_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    module = Calling(lambda m, x: m.layer(x)).train()
    before = state_of(module)
    monkeypatch.setattr(TractNNEF, "post_export", interrupted)
    with pytest.raises(KeyboardInterrupt):
        export_model_to_nnef(module, X, tmp_path / "m.nnef", TARGET)
    assert state_of(module) == before
    assert not list(tmp_path.iterdir())


def test_one_module_in_several_threads(tmp_path: Path) -> None:
    module = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3), torch.nn.Dropout()).train()
    before = state_of(module)
    with ThreadPoolExecutor(4) as pool:
        paths = list(
            pool.map(lambda place: export_model_to_nnef(module, X, tmp_path / f"{place}.nnef", TARGET), range(6))
        )
    assert len({path.read_bytes() for path in paths}) == 1
    assert state_of(module)[:5] == before[:5]


def stored(path: Path, entry: dict[str, Any], content: bytes) -> Path:
    """A file in the format of safetensors with one tensor."""
    head = json.dumps({"weight": entry}).encode()
    path.write_bytes(struct.pack("<Q", len(head)) + head + content)
    return path


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"dtype": "F32", "shape": [3, 3], "data_offsets": [0, 4000]}, "it cannot be read"),
        ({"dtype": "F32", "shape": [4, 3], "data_offsets": [0, 48]}, r"'weight' is \[3, 3\] of torch.float32 in the"),
        ({"dtype": "F99", "shape": [3, 3], "data_offsets": [0, 36]}, "it cannot be read"),
    ],
)
def test_weights_in_hostile_files(entry: dict[str, Any], says: str, tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    path = stored(tmp_path / "w.safetensors", entry, bytes(48 if "48" in str(entry) else 36))
    with pytest.raises(InputError, match=says):
        tract_torch.load(torch.nn.Linear(3, 3), X, weights=path)


def test_an_index_that_names_no_files(tmp_path: Path) -> None:
    (tmp_path / "a.index.json").write_text('{"weight_map": {"a": "b.bin", "c": 3}}')
    with pytest.raises(InputError, match="it is no index of files of weights"):
        tract_torch.load(torch.nn.Linear(3, 3), X, weights=tmp_path / "a.index.json")
