"""``tract MODEL quantize``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest
from quantize_models import turns


def test_it_writes_what_runs_elsewhere_and_says_what_it_costs(tract, folder, tmp_path) -> None:
    model, data = folder("residual")
    found = tract(model, "quantize", "--data", data, "-o", tmp_path / "out.onnx", "--top", "2")
    assert found.exit_code == 0, found.output
    assert "4 of 4 nodes quantised, data of 8 bits, weights of 8, by minmax" in found.output
    assert "error, of 6 samples:" in found.output
    assert "what loses most, each by itself, 2 of 4:" in found.output
    assert "read again, and compared" in found.output
    (turn,) = turns("residual", count=1)
    wanted, other = (ort.InferenceSession(str(path)).run(None, turn)[0] for path in (model, tmp_path / "out.onnx"))
    assert 0 < np.linalg.norm(wanted - other) / np.linalg.norm(wanted) < 0.03


def test_the_report_as_json(tract, folder, tmp_path) -> None:
    model, data = folder("mlp")
    flags = ("--data", data, "--samples", "3", "--method", "percentile", "--percentile", "99.9", "--json")
    told = json.loads(tract(model, "quantize", *flags, "-o", tmp_path / "out.nnef.tar").output)
    assert told["samples"] == 3
    assert told["how"] == "data of 8 bits, weights of 8, by percentile 99.9"
    assert told["bytes"] == (tmp_path / "out.nnef.tar").stat().st_size
    assert {one["name"] for one in told["losses"]} == {"hidden.einsum", "y.einsum"}
    assert told["errors"][0]["name"] == "y"
    assert (told["left"], told["trials"], told["measured_at"]) == ({}, [], "node")


def test_nodes_stay_in_floats_by_name_and_by_error(tract, folder) -> None:
    model, data = folder("residual")
    told = json.loads(tract(model, "quantize", "--data", data, "--exclude", "c[01]", "--json").output)
    assert told["left"] == {"c0": "it is excluded", "c1": "it is excluded"}
    (error,) = told["errors"]
    told = json.loads(tract(model, "quantize", "--data", data, "--max-error", error["error"] / 2, "--json").output)
    assert told["errors"][0]["error"] <= error["error"] / 2
    assert set(told["left"].values()) == {"it costs too much"}
    assert told["measured_at"] == "output"


def test_weights_alone(tract, folder, tmp_path) -> None:
    model, data = folder("mlp")
    found = tract(model, "quantize", "--data", data, "--weights-only", "4", "--block", "16", "-o", tmp_path / "o.onnx")
    assert "1 of 2 nodes quantised, weights of 4 bits, in blocks of 16" in found.output
    assert "it has fewer than 1024 weights" in found.output


def test_ranges_are_kept_for_the_transform(tract, folder, tmp_path) -> None:
    model, data = folder("mlp")
    ranges = tmp_path / "ranges.json"
    assert tract(model, "quantize", "--data", data, "--save-ranges", ranges).exit_code == 0
    found = tract(model, "-t", f'quantize_static(ranges: "{ranges}")', "save", tmp_path / "by_transform.onnx")
    assert found.exit_code == 0, found.output
    tract(model, "quantize", "--data", data, "-o", tmp_path / "out.onnx")
    assert (tmp_path / "by_transform.onnx").read_bytes() == (tmp_path / "out.onnx").read_bytes()


def test_the_picture_shows_every_method(tract, folder, tmp_path) -> None:
    model, data = folder("mlp")
    found = tract(model, "quantize", "--data", data, "--picture", tmp_path / "out.svg")
    assert found.exit_code == 0, found.output
    text = (tmp_path / "out.svg").read_text()
    for name in ("float", "minmax", "percentile", "entropy", "mse", "int8", "int4", "1 in floats"):
        assert name in text
        assert name in found.output


def test_random_data_is_only_for_trying(tract, folder) -> None:
    model, _ = folder("attention")
    found = tract(model, "quantize", "--random", "2", "--set", "S=3")
    assert found.exit_code == 0, found.output
    assert "say nothing of real data" in found.output


class TestRefused:
    @pytest.mark.parametrize(
        ("flags", "message"),
        [
            ((), "it wants data"),
            (("--data", "DATA", "--random", "2"), "--data and --random are one too much"),
            (("--data", "/nowhere"), "there is no such folder"),
            (("--data", "DATA", "--set", "B=2"), "the arrays of --data tell the sizes"),
            (("--random", "1", "--set", "L=2"), "no input has a symbol L"),
            (("--data", "DATA", "--exclude", "nothing"), "no product has a name like 'nothing'"),
            (("--data", "DATA", "--exclude", "*"), "no product is left to quantise"),
            (("--data", "DATA", "--max-error", "1e-9"), "with any product quantised"),
            (("--data", "DATA", "--weights-only", "8", "--block", "48"), "'block' is 48, wanted a power of two"),
            (("--data", "DATA", "--weights-only", "8", "--save-ranges", "r.json"), "weights alone need no ranges"),
            (("--data", "DATA", "-o", "out.strange"), "out.strange"),
        ],
        ids=["none", "both", "nowhere", "sizes", "symbol", "name", "all", "error", "block", "ranges", "format"],
    )
    def test_one_error_and_nothing_is_left(self, flags, message: str, tract, folder, tmp_path) -> None:
        model, data = folder("mlp")
        before = sorted(tmp_path.iterdir())
        paths = {"DATA": data, "r.json": tmp_path / "r.json", "out.strange": tmp_path / "out.strange"}
        found = tract(model, "quantize", *(paths.get(one, one) for one in flags))
        assert found.exit_code != 0
        assert message in found.output
        assert found.output.count("Error:") == 1
        assert sorted(tmp_path.iterdir()) == before

    def test_a_quantised_model(self, tract, folder, tmp_path) -> None:
        model, data = folder("mlp")
        tract(model, "quantize", "--data", data, "-o", tmp_path / "out.onnx")
        found = tract(tmp_path / "out.onnx", "quantize", "--data", data, "-o", tmp_path / "twice.onnx")
        assert "the model is quantised already" in found.output
        assert not (tmp_path / "twice.onnx").exists()

    def test_data_that_holds_no_numbers(self, tract, folder, tmp_path) -> None:
        model, data = folder("mlp")
        np.savez(data / "9.npz", x=np.full((1, 24), np.nan, np.float32))
        found = tract(model, "quantize", "--data", data, "-o", tmp_path / "out.onnx")
        assert "tensor 'x' holds what is no number with this data" in found.output
        assert str(Path("data") / "9.npz") in found.output
        assert not (tmp_path / "out.onnx").exists()
