"""Every name of the page of `torch_to_nnef.inference_target.tract`: it is there, takes what it takes, and does that."""

from __future__ import annotations

import inspect
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
import torch
from tract_nnef.syntax.parser import parse_document
from tract_torch import CheckError, InferenceTarget, SemanticVersion, export_model_to_nnef
from tract_torch.inference_target import tract as page

import tract_core as tract
from tract_core.errors import InputError

X = torch.randn(2, 3)

SIGNATURES: dict[str, dict[str, Any]] = {
    "TractBinaryDownloader": {"version": ..., "auto_download": True},
    "TractBinaryDownloader.dl_tract": {"self": ...},
    "TractCli": {"tract_path": ...},
    "TractCli.assert_io_cmd_str": {"self": ..., "nnef_path": ..., "io_npz_path": ..., "check_tolerance": "exact"},
    "TractCli.download": {"version": ...},
    "TractNNEF": {
        "version": ...,
        "feature_flags": None,
        "check_io": True,
        "dynamic_axes": None,
        "specific_tract_binary_path": None,
        "check_io_tolerance": "approximate",
        "specific_properties": None,
        "dump_identity_properties": False,  # True there: archives tell nobody about their user unasked
        "force_attention_inner_in_f32": False,
        "force_linear_accumulation_in_f32": False,
        "force_norm_in_f32": False,
        "reify_sdpa_operator": False,
        "upsample_with_debox": False,
    },
    "TractNNEF.post_export": {
        "self": ...,
        "model": ...,
        "nnef_graph": ...,
        "args": ...,
        "exported_filepath": ...,
        "debug_bundle_path": None,
    },
    "TractNNEF.post_trace": {"self": ..., "nnef_graph": ..., "active_custom_extensions": ...},
    "TractNNEF.pre_trace": {"self": ..., "model": ..., "input_names": ..., "output_names": ...},
    "TractNNEF.specific_fragments": {"self": ..., "model": ...},
    "assert_io": {
        "model": ...,
        "test_input": ...,
        "nnef_file_path": ...,
        "tract_cli": ...,
        "io_npz_path": None,
        "input_names": None,
        "output_names": None,
        "check_tolerance": "exact",
    },
    "assert_io_and_debug_bundle": {
        "model": ...,
        "test_input": ...,
        "nnef_file_path": ...,
        "tract_cli": ...,
        "io_npz_path": None,
        "debug_bundle_path": None,
        "input_names": None,
        "output_names": None,
        "check_tolerance": "exact",
    },
    "debug_dumper_pytorch_to_onnx_to_nnef": {
        "model": ...,
        "test_input": ...,
        "target_folder": ...,
        "tract_cli": ...,
        "raise_export_error": True,
    },
}
"""The parameters of the page, in order, with their defaults; ``...`` for those that it has none of."""


@pytest.mark.parametrize("name", SIGNATURES)
def test_what_the_page_calls_can_be_called_so(name: str) -> None:
    found: Any = page
    for part in name.split("."):
        found = getattr(found, part)
    parameters = inspect.signature(found).parameters
    wanted = SIGNATURES[name]
    assert list(parameters)[: len(wanted)] == list(wanted)
    for key, default in wanted.items():
        assert parameters[key].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
        if default is not ...:
            assert parameters[key].default == default
    others = list(parameters.values())[len(wanted) :]
    assert all(one.default is not inspect.Parameter.empty for one in others)


def test_the_levels_are_texts() -> None:
    assert issubclass(page.TractCheckTolerance, str)
    assert issubclass(page.TractCheckTolerance, Enum)
    assert {one.value for one in page.TractCheckTolerance} == {
        "exact", "approximate", "close", "very", "super", "ultra"
    }  # fmt: skip
    assert issubclass(page.TractNNEF, InferenceTarget)


def test_nothing_is_downloaded_by_making_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACT_CACHE", str(tmp_path))
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    assert page.TractBinaryDownloader(SemanticVersion(0, 23, 9)).arch == "x86_64-unknown-linux-musl"
    page.TractNNEF("0.23.9")
    page.TractNNEF(SemanticVersion(0, 23, 9), check_io=False)
    assert not list(tmp_path.iterdir())


def test_the_steps_of_an_export(tmp_path: Path) -> None:
    """`pre_trace`, `specific_fragments`, `post_trace`, `post_export`, in this order, with what the page says."""
    called: list[str] = []

    class Target(page.TractNNEF):
        def pre_trace(self, model: Any, input_names: Any, output_names: Any) -> None:
            called.append(f"pre_trace {input_names} {output_names}")
            super().pre_trace(model, input_names, output_names)

        def specific_fragments(self, model: Any) -> dict[str, str]:
            called.append("specific_fragments")
            return {"twice": "fragment twice(x: tensor<scalar>) -> (y: tensor<scalar>) { y = x + x; }"}

        def post_trace(self, nnef_graph: Any, active_custom_extensions: list[str]) -> Any:
            called.append(f"post_trace {active_custom_extensions}")
            return super().post_trace(nnef_graph, active_custom_extensions)

        def post_export(self, *args: Any, **options: Any) -> None:
            called.append("post_export")
            super().post_export(*args, **options)

    target = Target(None, dynamic_axes={"x": {-2: "B"}}, specific_properties={"licence": "MIT"})
    extensions = ["KHR_enable_operator_expressions"]
    path = export_model_to_nnef(
        torch.nn.Linear(3, 4), X, tmp_path / "m.nnef", target, ["x"], ["y"], None, custom_extensions=extensions
    )
    steps = ["pre_trace ['x'] ['y']", f"post_trace {extensions}", "specific_fragments", "post_export"]
    assert called == steps
    text = (path / "graph.nnef").read_text()
    assert "extension tract_symbol B;" in text
    assert "tract_core_external(shape = [B, 3]" in text
    assert [one.name for one in parse_document(text).fragments][-1] == "twice"
    assert str(tract.load(path).typed.properties["licence"]) == "MIT"


def test_axes_are_looked_at_before_anything_is_done() -> None:
    with pytest.raises(InputError, match="'0' is no axis"):
        page.TractNNEF("0.23.9", dynamic_axes={"x": {"0": "B"}})  # pyright: ignore[reportArgumentType]: a wrong one
    listed = page.TractNNEF("0.23.9", dynamic_axes={"x": [0, 1]})
    assert listed.dynamic_axes == {"x": {0: "x_dynamic_axes_0", 1: "x_dynamic_axes_1"}}


def test_the_checks_of_the_page(tmp_path: Path) -> None:
    module = torch.nn.Linear(3, 4)
    archive = export_model_to_nnef(module, X, tmp_path / "m.nnef", page.TractNNEF(None), ["x"], ["y"])
    command = page.TractCli.own()
    page.assert_io(module, X, archive, command, tmp_path / "io.npz", ["x"], ["y"], page.TractCheckTolerance.CLOSE)
    words = command.assert_io_cmd_str(archive, tmp_path / "io.npz", page.TractCheckTolerance.CLOSE)
    assert words[0] == str(command.tract_path)
    assert words[-3:] == ["--approx", "close", "--allow-float-casts"]
    other = torch.nn.Linear(3, 4)
    with pytest.raises(CheckError):
        page.assert_io_and_debug_bundle(other, X, archive, command, None, tmp_path / "bundle", ["x"], ["y"])
    assert (tmp_path / "bundle" / "torch_to_nnef" / "run.sh").is_file()
