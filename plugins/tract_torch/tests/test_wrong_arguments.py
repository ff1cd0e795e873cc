"""Arguments of the public functions that are none: one clear error each, and nothing is left on the disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import tract_torch as t
from tract_torch.inference_target import tract as page

from tract_core.errors import TractError

LAYER = torch.nn.Linear(3, 4)
X = torch.randn(2, 3)
TARGET: Any = t.TractNNEF(None)
ZEROS = torch.zeros(4, 3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive, a file of weights, a folder, and a file that is none of these."""
    found = tmp_path_factory.mktemp("wrong")
    t.export_model_to_nnef(LAYER, X, found / "good.nnef", TARGET)
    torch.save({"weight": ZEROS, "bias": torch.zeros(4)}, found / "weights.pt")
    (found / "folder").mkdir()
    (found / "other.pt").write_text("x")
    return found


def export(**change: Any) -> Any:
    asked: Any = {"model": LAYER, "args": X, "file_path_export": "m.nnef", "inference_target": TARGET}
    return t.export_model_to_nnef(**asked | change)


def axes(**given: Any) -> Any:
    return export(inference_target=t.TractNNEF(None, **given))


def quantise(*given: Any) -> Any:
    return t.fp_to_tract_q4_0_with_min_max_calibration(*given)


def offload(*given: Any) -> Any:
    return t.OffloadedTensor.from_original_tensor(*given)


def load(*given: Any, **options: Any) -> Any:
    return t.load(*given, **options)


def target(*given: Any, **options: Any) -> Any:
    return t.TractNNEF(*given, **options)


def check(*given: Any, **options: Any) -> Any:
    return t.check_io(*given, **options)


def asserting(*given: Any, **options: Any) -> Any:
    page.assert_io(*given, **options)


G = "good.nnef.tar"
WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: export(model=3), "the module is int, wanted a torch.nn.Module$"),
    (lambda: export(model=torch.nn.ReLU), r"(?s)the module is a class.*make one: ReLU\(...\)"),
    (lambda: export(model=torch.export.export(LAYER, (X,))), "the module is ExportedProgram, wanted a torch.nn.Module"),
    (lambda: export(args=None), "args is NoneType"),
    (lambda: export(args=[]), "the example does not fit Linear: missing a required argument: 'input'"),
    (lambda: export(file_path_export=None), "file_path_export is NoneType, wanted a path"),
    (lambda: export(file_path_export=""), "(?s)the name of an archive holds '.nnef'.*as in classifier.nnef"),
    (lambda: export(file_path_export="folder/../folder", compression_level=None), "the name of an archive holds"),
    (lambda: export(file_path_export="no/m.nnef"), "(?s)it cannot be written: No such file.*there is no folder 'no'"),
    (lambda: export(file_path_export="other.pt/m.nnef"), "it cannot be written: Not a directory"),
    (lambda: export(inference_target="0.23.9"), "inference_target is str"),
    (lambda: export(input_names=[]), "0 names for 1 input\n  hint: name each of the inputs"),
    (lambda: export(input_names="x"), "the names of the inputs are 'x', wanted a list of texts"),
    (lambda: export(input_names=3), "the names of the inputs are 3, wanted a list of texts"),
    (lambda: export(input_names=["a", "a"]), "two inputs have the name 'a'"),
    (lambda: export(input_names=["a", "b"]), "2 names for 1 input: a, b"),
    (lambda: export(output_names=["a", "b"]), "2 names for 1 output: a, b"),
    (lambda: export(compression_level=11), "compression_level is 11"),
    (lambda: export(debug_bundle_path=3), "debug_bundle_path is int, wanted a path"),
    (lambda: export(custom_extensions=3), "custom_extensions is no list of texts"),
    (lambda: export(custom_extensions=[""]), "custom_extensions has an empty line"),
    (lambda: export(weights="no.pt"), "no.pt: there is no such file"),
    (lambda: export(weights="folder"), "the folder holds no files of weights"),
    (lambda: export(weights="other.pt"), "other.pt: it holds more than weights, or is damaged"),
    (lambda: axes(dynamic_axes={"z": {0: "B"}}), r"dynamic_axes\['z'\]: there is no such input"),
    (lambda: axes(dynamic_axes={"input_0": {-3: "B"}}), "axis -3 is outside a tensor of 2 axes"),
    (lambda: axes(dynamic_axes={"input_0": {0: "B", -2: "C"}}), "axes 0 and -2 are one axis"),
    (lambda: axes(dynamic_axes={3: {0: "B"}}), "dynamic_axes has the key 3, wanted the name of an input"),
    (lambda: target("x"), "'x' is no version"),
    (lambda: target(None, feature_flags=3), "feature_flags is int, wanted a set"),
    (lambda: target(None, specific_properties=[1]), "specific_properties is list, wanted a mapping"),
    (lambda: target("0.23.9", specific_tract_binary_path=3), "specific_tract_binary_path is int, wanted a path"),
    (lambda: load(None), "wanted a torch.nn.Module, an ExportedProgram or a path, got NoneType"),
    (lambda: load("folder"), "folder: it is a folder, wanted a file of torch.export.save"),
    (lambda: load(LAYER, 3), "args is int, wanted a tensor, or a list or tuple"),
    (lambda: load(LAYER, (X,), 3), "kwargs is int, wanted a mapping"),
    (lambda: load(LAYER, (X,), dynamic_shapes=3), "dynamic_shapes is int, wanted a dictionary"),
    (lambda: load(LAYER, (X,), input_names="x"), "the names of the inputs are 'x'"),
    (lambda: load(LAYER, (X,), input_names=["a", "b"]), "2 names for 1 input: a, b"),
    (lambda: load(torch.nn.Bilinear(3, 3, 2), (X, X), input_names=["a", "a"]), "two inputs have the name 'a'"),
    (lambda: load(LAYER, (X,), output_names=["a", "b"]), "2 names for 1 output: a, b"),
    (lambda: load(LAYER, (X,), states="some"), "states='some' is none of 'refuse', 'inputs' and 'inside'"),
    (lambda: check(LAYER, 3, X), "archive is int, wanted a path"),
    (lambda: check(3, G, X), "model is int, wanted a torch.nn.Module"),
    (lambda: check(LAYER, G, X, tolerance="soft"), "tolerance is 'soft', wanted one of exact"),
    (lambda: check(LAYER, G, X, sizes=[{"Q": 3}]), "sizes has 'Q', which is no symbol .*: all its sizes are fixed"),
    (lambda: check(LAYER, G, X, input_names=["z"]), "(?s)its inputs are input_0.*hint: give the names of the archive"),
    (lambda: t.export_tensors_to_nnef({"a": X}, "no"), "there is no such folder"),
    (lambda: t.export_tensors_to_nnef({"a": 3}, "folder"), "tensor 'a': it is int, wanted a tensor"),  # pyright: ignore[reportArgumentType]: a wrong one
    (lambda: t.export_tensors_to_nnef(3, "folder"), "name_to_torch_tensors is int, wanted a mapping"),  # pyright: ignore[reportArgumentType]: a wrong one
    (lambda: list(t.iter_torch_tensors_from_disk("folder")), "folder: it is a folder"),
    (lambda: t.torch_safe_load("no.pt"), "no.pt: it cannot be read: No such file or directory$"),
    (lambda: t.torch_safe_load(3), "path is int, wanted a path"),  # pyright: ignore[reportArgumentType]: a wrong one
    (lambda: t.patch_archive(G, {"weight": 3}, "o.nnef.tar"), "tensor 'weight': it is int, wanted a tensor"),  # pyright: ignore[reportArgumentType]: a wrong one
    (lambda: t.patch_archive(G, 3, "o.nnef.tar"), "name_to_torch_tensors is int"),  # pyright: ignore[reportArgumentType]: a wrong one
    (lambda: t.patch_archive(G, {"weight": ZEROS}, "no/o.nnef.tar"), "there is no folder 'no'"),
    (lambda: t.ModTensorUpdater(3), "model is int"),  # pyright: ignore[reportArgumentType]: a wrong one
    (lambda: t.ModTensorUpdater(LAYER).update_by_name("weight", 3), "what is put in the place of 'weight' is int"),  # pyright: ignore[reportArgumentType]: a wrong one
    (lambda: quantise(3), "fp_tensor is int, wanted a tensor of floats"),
    (lambda: quantise(torch.zeros(2, 32), 2), "'percentile' is 2, wanted more than 0 and at most 1"),
    (lambda: t.dynamic_load_registry(3), "path is int, wanted the dotted path of a registry"),  # pyright: ignore[reportArgumentType]: a wrong one
    (lambda: offload(3, "a"), "tensor is int, wanted a tensor"),
    (lambda: offload(X, "a", "no"), "it cannot be written: No such file or directory"),
    (lambda: t.t2n_load_checkpoint_and_dispatch(LAYER, "weights.pt", "gpu9"), "device_map is 'gpu9'"),
    (lambda: page.TractCli(3), "tract_path is int, wanted a path"),  # pyright: ignore[reportArgumentType]: a wrong one
    (lambda: t.SemanticVersion(-1, 2, 3), "'-1.2.3' is no version"),
    (lambda: asserting(LAYER, X, "no.nnef.tar", page.TractCli.own()), "no.nnef.tar: there is no such archive"),
    (lambda: asserting(LAYER, X, G, "tract"), "tract_cli is str, wanted a TractCli"),
    (lambda: asserting(LAYER, X, G, page.TractCli.own(), check_tolerance="soft"), "check_tolerance is 'soft', wanted"),
    (lambda: page.build_io(LAYER, X, "no/a.npz"), "there is no folder 'no'"),
    (lambda: page.debug_dumper_pytorch_to_onnx_to_nnef(LAYER, X, "other.pt", None), "it is no folder to write to"),
    (lambda: page.all_close_map_weights({Path("no.dat"): Path("no.dat")}), "no.dat: it cannot be read"),
]


@pytest.mark.parametrize("place", range(len(WRONG)))
def test_one_clear_error_and_nothing_is_left(place: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call, says = WRONG[place]
    monkeypatch.chdir(folder)
    before = sorted(folder.rglob("*"))
    with pytest.raises(TractError, match=says) as caught:
        call()
    assert len(str(caught.value)) < 500
    assert sorted(folder.rglob("*")) == before
