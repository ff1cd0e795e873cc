"""What the options of a target change in archives; each archive is checked against the module."""

from __future__ import annotations

from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest
import torch
from torch.nn import functional as F  # noqa: N812 - as everybody calls it
from tract_nnef.archive.reading import open_archive
from tract_nnef.syntax.parser import parse_document
from tract_torch import TractNNEF, export_model_to_nnef
from tract_torch.established.semantic_version import SemanticVersion
from tract_torch.inference_target.spellings import check_since, with_debox

from tract_core.errors import InputError, Unsupported


class Attention(torch.nn.Module):
    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options = options

    def forward(self, q: torch.Tensor, k: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, k, mask, **self.options)


def text_of(tmp_path: Path, module: torch.nn.Module, args: Any, **options: Any) -> str:
    target = TractNNEF("0.23.9", check_io_tolerance=options.pop("tolerance", "approximate"), **options)
    path = export_model_to_nnef(module, args, tmp_path / "m.nnef", target)
    return bytes(open_archive(path).content("graph.nnef")).decode()


def heads(count: int, length: int, kind: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(2, count, length, 8).to(kind)


@pytest.mark.parametrize(
    ("options", "args"),
    [
        ({}, (heads(4, 5), heads(4, 6))),
        ({"enable_gqa": True}, (heads(4, 5), heads(2, 6))),
        ({"is_causal": True, "scale": 0.5}, (heads(4, 5), heads(4, 5))),
        ({}, (heads(4, 5), heads(4, 6), torch.randn(2, 1, 5, 6))),
        ({}, (heads(4, 5), heads(4, 6), torch.rand(5, 6) > 0.5)),
    ],
    ids=["plain", "grouped", "causal", "mask", "booleans"],
)
def test_attention_may_stay_one_operator(tmp_path: Path, options: dict[str, Any], args: Any) -> None:
    text = text_of(tmp_path, Attention(**options), args, reify_sdpa_operator=True)
    assert "tract_transformers_sdpa" in text
    assert "softmax" not in text
    assert "tract_transformers" not in text_of(tmp_path, Attention(**options), args)


def test_causal_attention_of_other_lengths_does_not_stay_one_operator(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match=r"causal attention of 5 queries to 6 keys(?s:.*)reify_sdpa_operator"):
        text_of(tmp_path, Attention(is_causal=True), (heads(4, 5), heads(4, 6)), reify_sdpa_operator=True)


def test_attention_may_be_computed_in_32_bits(tmp_path: Path) -> None:
    args = heads(4, 5, torch.float16), heads(4, 6, torch.float16)
    forced = {"force_attention_inner_in_f32": True, "tolerance": "very"}
    assert 'to = "f32"' in text_of(tmp_path, Attention(), args, **forced)
    assert 'acc_datum_type = "f32"' in text_of(tmp_path, Attention(), args, reify_sdpa_operator=True, **forced)
    assert 'to = "f32"' not in text_of(tmp_path, Attention(), args, tolerance="very")


def test_products_may_be_added_up_in_32_bits(tmp_path: Path) -> None:
    module, x = torch.nn.Linear(8, 4).half(), torch.randn(2, 8).half()
    assert 'acc = "f32"' in text_of(tmp_path, module, x, force_linear_accumulation_in_f32=True, tolerance="very")
    assert 'acc = "f32"' not in text_of(tmp_path, module, x, tolerance="very")


def test_normalisations_are_computed_in_32_bits(tmp_path: Path) -> None:
    for forced in (True, False):
        text = text_of(tmp_path, torch.nn.LayerNorm(8).half(), torch.randn(2, 8).half(), force_norm_in_f32=forced)
        assert 'to = "f32"' in text


UPSAMPLED = """version 1.0;
graph network(x) -> (y)
{
  x = external(shape = [1, 3, 4, 5]);
  y = nearest_upsample(x, factor = [2, 3]);
}
"""


def test_images_may_be_enlarged_by_debox() -> None:
    (_, assignment) = with_debox(parse_document(UPSAMPLED)).graph.body
    assert getattr(assignment.value, "name", "") == "debox"


def test_operators_that_an_engine_does_not_have_yet_are_refused() -> None:
    document = parse_document(UPSAMPLED.replace("nearest_upsample(x, factor = [2, 3])", "tract_core_resize(x + 1)"))
    with pytest.raises(Unsupported, match=r"tract 0\.23\.1 has no tract_core_resize \(since 0\.23\.2\)"):
        check_since(document, SemanticVersion(0, 23, 1))
    check_since(document, SemanticVersion(0, 23, 2))


def test_targets_like_another_one() -> None:
    target = TractNNEF.latest(check_io=False)
    assert target.version == TractNNEF.OFFICIAL_SUPPORTED_VERSIONS[0] == TractNNEF.latest_version()
    other = target.with_dynamic_axes({"x": [0]}).with_specific_properties({"a": "b"}).with_check_io_tolerance("close")  # pyright: ignore[reportArgumentType]: the value of a level
    assert other.dynamic_axes == {"x": {0: "x_dynamic_axes_0"}}
    assert other.has_dynamic_axes
    assert not target.has_dynamic_axes
    assert (other.specific_properties, target.specific_properties) == ({"a": "b"}, {})


def test_threads_that_share_a_target_have_a_report_each(tmp_path: Path) -> None:
    target, both = TractNNEF(None), Barrier(2)
    found: dict[str, str] = {}

    def export(name: str, size: int) -> None:
        path = export_model_to_nnef(torch.nn.Linear(size, 3), torch.ones(1, size), tmp_path / f"{name}.nnef", target)
        both.wait()
        assert target.report is not None
        found[str(path)] = target.report.archive

    threads = [Thread(target=export, args=one) for one in (("a", 3), ("b", 4))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {str(tmp_path / f"{name}.nnef.tar"): str(tmp_path / f"{name}.nnef.tar") for name in "ab"}
    assert target.report is not None  # in a thread without an export, that of the last one
    assert target.report.archive in found


def test_an_export_that_fails_leaves_no_report_of_an_earlier_one(tmp_path: Path) -> None:
    target = TractNNEF(None)
    export_model_to_nnef(torch.nn.ReLU(), torch.ones(2), tmp_path / "m.nnef", target)
    assert target.report is not None
    with pytest.raises(InputError):
        export_model_to_nnef(torch.nn.ReLU(), torch.ones(2), tmp_path / "m.nnef", target, ["x", "y"])
    with pytest.raises(InputError, match="is the name of an input and of an output"):
        export_model_to_nnef(torch.nn.ReLU(), torch.ones(2), tmp_path / "m.nnef", target, ["x"], ["x"])
    assert target.report is None
