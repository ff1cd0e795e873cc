"""``tract MODEL compare --with tensorflow``: where TensorFlow is installed (`make test-tensorflow`), and where not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from graphdef_builder import const, content, function, node, placeholder
from saved_model_cases import runs, unpack, values
from tract_tensorflow.tensorflow import run_in_tensorflow

from tract_core.cli import app
from tract_core.errors import InputError, RunError

WEIGHTS = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
FLOAT = ("type", 1)


def frozen(path, weights=WEIGHTS):
    """relu(x w), its two largest elements of each row, and what is left when a function takes 1 away, with a minus."""
    call = node("PartitionedCall", "call", "kept", f=("func", "smaller"))
    call.attr["Tin"].list.type.append(1)
    call.attr["Tout"].list.type.append(1)
    less = [node("Sub", "less", "a", "one:output:0", T=FLOAT), const("one", np.float32(1))]
    nodes = [
        placeholder("x", 2, 3),
        const("w", weights),
        node("MatMul", "product", "x", "w", T=FLOAT),
        node("Relu", "kept", "product", T=FLOAT),
        call,
        node("Neg", "y", "call", T=FLOAT),
        const("k", np.int32(2)),
        node("TopKV2", "t", "kept", "k", T=FLOAT),
    ]
    path.write_bytes(content(*nodes, functions=[function("smaller", ["a"], {"b": "less:z:0"}, less)]))
    return path


def compare(path, *flags):
    result = CliRunner().invoke(app, [str(path), "-r", "reference", "compare", "--with", "tensorflow", "-R", *flags])
    assert "Traceback" not in result.output
    return result


@pytest.fixture
def tensorflow():
    return pytest.importorskip("tensorflow", reason="run by make test-tensorflow")


def test_where_tensorflow_is_not_installed(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    result = compare(frozen(tmp_path / "model.pb"))
    assert result.exit_code == 1
    assert "TensorFlow cannot be imported" in result.output
    assert 'pip install "tract-tensorflow[check]"' in result.output


def test_what_tensorflow_says_on_the_error_stream_is_dropped_and_what_it_raises_is_told(tmp_path, monkeypatch, capfd):
    def fail():
        os.write(2, b"I0000 port.cc: a long story\n")
        raise ValueError("no graph\n  of  mine")

    monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(Graph=fail))
    with pytest.raises(RunError, match=r"model\.pb: TensorFlow fails: no graph of mine"):
        run_in_tensorflow(frozen(tmp_path / "model.pb"), {}, {})
    os.write(2, b"heard again\n")
    assert capfd.readouterr().err == "heard again\n"
    with pytest.raises(RunError, match=r"absent\.pb: cannot be read: No such file or directory"):
        run_in_tensorflow(tmp_path / "absent.pb", {}, {})


def test_what_the_loader_was_asked_is_told(tmp_path, monkeypatch):
    """A stand-in for the run gives what NumPy computes, so that nothing differs."""
    asked = []

    def stand_in(tensorflow, path, inputs, options):
        asked.append(options)
        return {"kept": np.maximum(inputs["x"] @ WEIGHTS, 0)}

    monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace())
    monkeypatch.setattr("tract_tensorflow.tensorflow._run", stand_in)
    path = frozen(tmp_path / "model.pb")
    assert compare(path, "--tensorflow-outputs", "kept", "--json").exit_code == 0
    result = compare(path, "--allow-missing-outputs")
    assert result.exit_code == 0, result.output
    assert asked == [{"outputs": "kept"}, {}]


def test_a_frozen_graph_is_compared_node_by_node(tensorflow, tmp_path):
    path = frozen(tmp_path / "model.pb")
    result = compare(path, "--json")
    assert result.exit_code == 0, result.output
    compared = {one["name"] for one in json.loads(result.stdout)["tensors"] if one["compared"]}
    assert {"product", "kept", "y", "call/less"} <= compared


def test_the_first_tensor_that_differs_is_named(tensorflow, tmp_path):
    right = frozen(tmp_path / "right.pb")
    weights = WEIGHTS.copy()
    weights[1, 2] += 1
    wrong = frozen(tmp_path / "wrong.pb", weights)
    result = compare(wrong, "--original", right, "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["first"] == "product"
    assert "the first is 'product', which EinSum computes" in result.output


def test_outputs_that_are_asked_for(tensorflow, tmp_path):
    path = frozen(tmp_path / "model.pb")
    result = compare(path, "--tensorflow-outputs", "t:1", "--json")
    assert result.exit_code == 0, result.output
    assert [one["name"] for one in json.loads(result.stdout)["tensors"] if one["output"]] == ["t:1"]
    x = np.array([[1, 2, 3], [0, -1, 4]], np.float32)
    found = run_in_tensorflow(path, {"x": x}, {"outputs": "t:1"})
    kept = np.maximum(x @ WEIGHTS, 0)
    np.testing.assert_allclose(found["kept"], kept, rtol=1e-6)
    np.testing.assert_array_equal(found["t:1"], np.argsort(-kept, axis=-1, kind="stable")[:, :2])
    assert "y" not in found


@pytest.mark.parametrize(("name", "signature", "number"), runs(), ids=["-".join(one) for one in runs()])
def test_saved_models(tensorflow, name, signature, number, tmp_path):
    """The signature's outputs are those that were written down, and every tensor that both have agrees."""
    given, wanted = values(name, signature, number)
    folder = unpack(name, tmp_path / name)
    found = run_in_tensorflow(folder, given, {"signature": signature})
    for key, array in wanted.items():
        assert found[key].dtype == array.dtype
        if array.dtype.kind == "O":
            assert found[key].tolist() == array.tolist()
            continue
        np.testing.assert_allclose(found[key].astype(np.float64), array.astype(np.float64), rtol=1e-5, atol=1e-6)
    if any(one.dtype.kind == "O" for one in given.values()):
        return  # files of arrays hold no texts
    np.savez(tmp_path / "given.npz", **given)
    result = CliRunner().invoke(
        app,
        [
            *(str(folder), "-r", "reference", "--tensorflow-signature", signature, "compare", "--with", "tensorflow"),
            *("--allow-missing-outputs", "--input-from-bundle", str(tmp_path / "given.npz")),
        ],
    )
    assert result.exit_code == 0, result.output


def test_what_it_cannot_run(tensorflow, tmp_path):
    path = frozen(tmp_path / "model.pb")
    with pytest.raises(InputError, match=r"model\.pb: TensorFlow wants the inputs x, which have no value"):
        run_in_tensorflow(path, {"y": np.zeros(3)}, {})
    with pytest.raises(RunError, match=r"TensorFlow fails: "):
        run_in_tensorflow(path, {"x": np.zeros((2, 5), np.float32)}, {})
    (tmp_path / "other.pb").write_bytes(b"PK\3\4")
    with pytest.raises(
        InputError, match=r"other\.pb: TensorFlow runs SavedModels and frozen graphs\n  hint: .*--original"
    ):
        run_in_tensorflow(tmp_path / "other.pb", {}, {})
    with pytest.raises(InputError, match="it has no signature 'absent'"):
        run_in_tensorflow(unpack("dense", tmp_path / "dense"), {}, {"signature": "absent"})


def test_it_is_quiet(tensorflow, tmp_path):
    words = [str(frozen(tmp_path / "model.pb")), "-r", "reference", "compare", "--with", "tensorflow", "-R"]
    line = f"from tract_core.cli import main; import sys; sys.argv[1:] = {words!r}; main()"
    done = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, "")
