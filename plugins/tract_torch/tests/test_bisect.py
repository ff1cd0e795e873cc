"""Where an archive goes wrong: the first module that differs, and the stage that did it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import tract_torch.wiring.graph
from checked import TOKENS, Encoder, archive_of, encoder_archive
from tract_torch.check import bisect
from tract_torch.check.in_process import check_io
from tract_torch.errors import CheckError
from tract_torch.export import export_model_to_nnef
from tract_torch.inference_target import TractNNEF
from tract_torch.naming import VariableNamingScheme
from tract_torch.wiring.call import Call

from tract_core.ops.binary import Add, FloorRem, Le, Sub
from tract_core.ops.node_wiring import NodeWiring


def with_row(monkeypatch: pytest.MonkeyPatch, operator: str, row: Callable[[Call, NodeWiring], Any]) -> None:
    """Let an operator be imported in another way, as if its row were wrong."""
    real = tract_torch.wiring.graph.find
    monkeypatch.setattr(
        tract_torch.wiring.graph, "find", lambda table, name: row if name == operator else real(table, name)
    )


def failure(module: torch.nn.Module, archive: Path, args: Any, **options: Any) -> str:
    with pytest.raises(CheckError) as raised:
        check_io(module, archive, args, **options)
    assert raised.value.report is not None
    assert raised.value.report.notes
    return raised.value.report.notes[-1]


def test_an_importer_that_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_row(monkeypatch, "aten.gelu.default", lambda call, _: call.input("self"))
    encoder = Encoder()
    archive = encoder_archive(encoder, tmp_path)
    text = failure(encoder, archive, TOKENS, runtime="reference")
    assert text.startswith(
        "as it was imported, on reference: the first that differs is in module 'head.1' (GELU), node "
    )
    assert "(aten.gelu.default)" in text
    assert "activation.py" in text
    assert "elements differ; the worst, at [" in text


def test_one_that_is_wrong_at_other_sizes_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wraps(call: Call, wire: NodeWiring) -> Any:
        """x <= 0, for x from -5 to 4 only."""
        five, ten, zero = (wire.const(np.array(number)) for number in (5, 10, 0))
        x = wire.binary(FloorRem(), wire.binary(Add(), call.input("self"), five), ten)
        return wire.binary(Le(), wire.binary(Sub(), x, five), zero)

    with_row(monkeypatch, "aten.le.Scalar", wraps)
    encoder = Encoder()
    archive = encoder_archive(encoder, tmp_path)
    check_io(encoder, archive, TOKENS, runtime="reference", sizes=[])
    text = failure(encoder, archive, TOKENS, runtime="reference")
    assert "as it was imported, on reference" in text
    assert "(aten.le.Scalar)" in text


def test_an_archive_of_other_weights(tmp_path: Path) -> None:
    encoder = Encoder()
    archive = encoder_archive(encoder, tmp_path)
    with torch.no_grad():
        encoder.attention.out_proj.bias[0] += 1
    text = failure(encoder, archive, TOKENS)
    assert text.startswith("read back from the archive, on cpu: the first that differs is in module 'attention'")


@pytest.mark.parametrize("scheme", VariableNamingScheme)
def test_the_names_of_an_archive_tell_how_it_was_made(tmp_path: Path, scheme: VariableNamingScheme) -> None:
    encoder = Encoder()
    archive = tmp_path / "m.nnef.tar"
    target = TractNNEF(None, check_io=False, dynamic_axes={"input_0": {0: "B"}})
    export_model_to_nnef(encoder, TOKENS, archive, target, nnef_variable_naming_scheme=scheme)
    with torch.no_grad():
        encoder.head[2].weight[0] += 1
    text = failure(encoder, archive, TOKENS)
    assert text.startswith("read back from the archive, on cpu: the first that differs is in module 'head.2'")


def test_a_module_that_is_not_what_was_exported(tmp_path: Path) -> None:
    class Moody(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1 if torch.compiler.is_exporting() else x + 2

    archive = archive_of(Moody(), torch.rand(3), tmp_path)
    text = failure(Moody(), archive, torch.rand(3), runtime="reference")
    assert text.startswith("exported by PyTorch: no node of the module could be told, 'output_0' differs")


def test_differences_that_add_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Chain(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for _ in range(8):
                x = torch.relu(x)
            return x

    def off(call: Call, wire: NodeWiring) -> Any:
        x = call.input("self")
        return wire.binary(Add(), x, wire.const(np.float32(3e-2)))

    with_row(monkeypatch, "aten.relu.default", off)
    archive = archive_of(Chain(), torch.rand(3), tmp_path)
    text = failure(Chain(), archive, torch.rand(3), tolerance="very", runtime="reference")
    assert "differences of several nodes become too large in the module itself, node 'relu_" in text


def test_tensors_are_held_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_row(monkeypatch, "aten.gelu.default", lambda call, _: call.input("self"))
    monkeypatch.setattr(bisect, "AT_ONCE", 300)
    held: list[int] = []
    real = bisect._Run

    class Run(real):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            held.append(sum(array.nbytes for array in self.kept.values()))

    monkeypatch.setattr(bisect, "_Run", Run)
    encoder = Encoder()
    text = failure(encoder, encoder_archive(encoder, tmp_path), TOKENS, runtime="reference", sizes=[])
    assert "in module 'head.1' (GELU)" in text
    assert len(held) > 3
    assert 0 < max(held) <= max(300, 2 * 5 * 5 * 8 * 4)


def test_a_search_that_fails_hides_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = archive_of(torch.nn.ReLU(), torch.rand(3), tmp_path)

    def fails(*_: Any, **__: Any) -> None:
        raise ValueError("no")

    monkeypatch.setattr(bisect, "first_difference", fails)
    with pytest.raises(
        CheckError, match=r"(?s)elements differ.*the search for the first module.*failed: ValueError: no"
    ):
        check_io(torch.nn.Sigmoid(), archive, torch.rand(3))
    with pytest.raises(CheckError) as raised:
        check_io(torch.nn.Sigmoid(), archive, torch.rand(3), find_module=False)
    assert "the first" not in str(raised.value)
