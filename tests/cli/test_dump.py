from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result
from rich.console import Console

from tract_core.cli.printing.render import Show, describe, print_graph
from tract_core.cli.printing.terminal import Terminal
from tract_core.model import TypedModel
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.op import TypedOp
from tract_core.model.rewriter import checks_wanted
from tract_core.ops.binary import Add

Call = Callable[..., Result]


def test_the_decluttered_graph(tract: Call, model: Path) -> None:
    output = tract(model).output
    assert "EinSum" in output
    assert "Identity" not in output
    assert "B,3,f32" in output
    assert "output 0: y  B,3,f32" in output


def test_the_graph_of_the_file(tract: Call, model: Path) -> None:
    output = tract(model, "--pass", "load").output
    assert "MatMul" in output
    assert "Identity" in output


def test_constants_are_hidden_until_asked_for(tract: Call, model: Path) -> None:
    assert "constants not shown" in tract(model).output
    assert "Const" in tract(model, "dump", "--const").output


def test_a_symbol_gets_a_value(tract: Call, model: Path) -> None:
    assert "5,3,f32" in tract(model, "--set", "B=5").output
    assert "2*S,3,f32" in tract(model, "--set", "B=2*S").output
    result = tract(model, "--set", "Z=5")
    assert result.exit_code == 1
    assert "no symbol Z" in result.output


def test_an_input_fact_is_overridden(tract: Call, model: Path) -> None:
    assert "7,3,f32" in tract(model, "-i", "7,4,f32").output
    assert "7,3,f32" in tract(model, "-i", "x:7,4,f32").output
    result = tract(model, "-i", "7,5,f32")
    assert result.exit_code == 1
    assert "product" in result.output


def test_outputs_can_be_chosen(tract: Call, model: Path) -> None:
    assert "output 0: product" in tract(model, "--output-node", "product").output
    cut = tract(model, "--input-node", "sum")
    assert cut.exit_code == 0
    assert "EinSum" not in cut.output


def test_costs_and_axes(tract: Call, model: Path) -> None:
    assert "FMA(F32)=12*B" in tract(model, "--machine-friendly", "dump", "--cost").output
    assert "->" in tract(model, "dump", "--invariants").output


def test_profile(tract: Call, model: Path) -> None:
    assert " ms" in tract(model, "dump", "--profile", "--set", "B=2", "--max-time", "200").output
    timed = json.loads(tract(model, "dump", "--profile", "--json", "--set", "B=2", "--max-time", "200").output)
    assert timed["profiling_info"]["iterations"] >= 1
    costs = json.loads(tract(model, "dump", "--json").output)
    assert costs["profiling_info"] is None
    assert any("FMA(F32)" in node.get("cost", {}) for node in costs["nodes"])


def test_the_audit(tract: Call, model: Path) -> None:
    audit = json.loads(tract(model, "dump", "--audit-json").output)
    assert audit["inputs"][0]["fact"] == "B,4,f32"
    assert audit["outputs"][0]["name"] == "y"
    assert {"id", "name", "op", "info", "inputs", "outputs", "cost"} <= audit["nodes"][0].keys()


def test_the_summary(tract: Call, model: Path) -> None:
    output = tract(model, "dump", "--summary").output
    assert "property onnx.producer_name: test" in output
    assert "input 0: x  B,4,f32" in output


def test_filters(tract: Call, model: Path) -> None:
    output = tract(model, "dump", "--op-name", "einsum").output
    assert "EinSum" in output
    assert "TypedSource" not in output


def test_assertions_hold_or_fail(tract: Call, model: Path) -> None:
    assert tract(model, "dump", "--assert-op-count", "EinSum", 1, "--assert-output-fact", "B,3,f32").exit_code == 0
    failed = tract(model, "dump", "--assert-op-count", "EinSum", 2, "--assert-output-count", 3)
    assert failed.exit_code == 1
    assert "there are 1 nodes of EinSum, not 2" in failed.output
    assert "the model has 1 outputs, not 3" in failed.output
    assert tract(model, "dump", "--assert-op-only", "EinSum,Add,Max,Const,*Source").exit_code == 0
    assert tract(model, "dump", "--assert-op-only", "Conv").exit_code == 1


def test_verbose_says_which_rules_fired(tract: Call, model: Path) -> None:
    assert "patches" in tract("-v", model).output


def test_the_graph_as_a_picture(tract: Call, model: Path, tmp_path: Path) -> None:
    svg = tract(model, "dump", "--svg").output
    assert svg.startswith("<svg xmlns=")
    assert ">EinSum</text>" in svg
    assert ">B,3,f32</text>" in svg
    dot = tract(model, "--dot").output
    assert dot.startswith('digraph "small.onnx" {')
    assert "<B>EinSum</B>" in dot
    for line in (("dump", "--svg", tmp_path / "a.svg", "--const"), ("--const", "--svg", tmp_path / "a.svg")):
        assert tract(model, *line).output == ""
        assert (tmp_path / "a.svg").read_text().count(">Const</text>") == 3
    assert "MatMul" in tract(model, "--pass", "load", "dump", "--svg").output
    only = tract(model, "dump", "--op-name", "EinSum", "--svg").output
    assert ">EinSum</text>" in only
    assert ">Add</text>" not in only


def test_a_graph_that_is_too_large_to_draw(tract: Call, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tract_core.drawing.layout.MOST_PLACES", 3)
    monkeypatch.setattr("shutil.which", lambda _: None)
    result = tract(model, "dump", "--svg")
    assert result.exit_code == 1
    assert "the picture: there are more than 3 boxes" in result.output
    assert "--node-name" in result.output
    assert tract(model, "dump", "--dot").exit_code == 0


def test_figures_stay_whole_on_a_terminal_of_80_columns() -> None:
    graph = TypedModel()
    outlet = graph.add_source("x", parse_typed_fact("B,S,64,128,f32", graph.symbols))
    bias = graph.add_const("bias", np.zeros((1, 1, 64, 128), np.float32))
    for number in range(3):
        (outlet,) = graph.wire_node(f"encoder/layer.{number}/attention/output_0", Add(), [outlet, bias])
    graph.set_outputs([outlet])
    cost = {((), node.id): "FMA(F32)=1234567*B*S\nDIV(F32)=678*B*S" for node in graph.nodes}
    written = StringIO()
    print_graph(Terminal(Console(file=written, width=80, force_terminal=True)), graph, Show(columns={"cost": cost}))
    assert written.getvalue().count("FMA(F32)=1234567*B*S") == 4
    assert "\u2026" not in written.getvalue()


def test_checking_patches_ends_with_the_command(tract: Call, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRACT_CHECK_PATCHES")
    checks: list[bool] = []
    check = TypedModel.check_consistency
    monkeypatch.setattr(TypedModel, "check_consistency", lambda self: checks.append(checks_wanted()) or check(self))
    assert tract(model, "--check-patches", "dump").exit_code == 0
    assert checks
    assert all(checks)
    assert not checks_wanted()
    assert "TRACT_CHECK_PATCHES" not in os.environ


@pytest.mark.parametrize(
    ("held", "text"),
    [((1, (2,)), "(1, (2,))"), ([1, 2], "[1, 2]"), ({"a": (1, 2)}, "{a: (1, 2)}"), ({3}, "{3}"), ([], "[]")],
    ids=str,
)
def test_what_an_operator_holds_is_shown_at_any_depth(held: object, text: str) -> None:
    @dataclass(frozen=True)
    class Holds(TypedOp):
        what: object

    body = TypedModel()
    assert describe(Holds(held)) == f"what={text}"
    assert describe(Holds([body, {"in": body}])) == "what=[<0 nodes>, {in: <0 nodes>}]"
