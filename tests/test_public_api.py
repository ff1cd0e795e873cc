"""The public names, under ``tract_core`` and under ``tract``: what there is, and nothing else."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from typing import Any

import pytest
import tract

import tract_core

NAMES = {
    "DatumType",
    "Dim",
    "Fact",
    "Feeding",
    "FloatPrecision",
    "FrozenFeeding",
    "FrozenState",
    "InferenceFact",
    "InferenceModel",
    "Model",
    "Pulse",
    "Runnable",
    "Runtime",
    "SetSymbols",
    "State",
    "Tensor",
    "TractError",
    "TransformSpec",
    "load",
    "load_bytes",
    "runtime_for_name",
    "version",
}

_NAMED = {"input_count", "output_count", "input_name", "output_name", "input_names", "output_names"}
_FACTS = {"input_fact", "output_fact"}
_TYPED = _NAMED | _FACTS | {"input_facts", "output_facts", "property_keys", "property"}

METHODS: dict[str, set[str]] = {
    "Onnx": {"load", "load_bytes"},
    "InferenceModel": _NAMED
    | _FACTS
    | {"set_input_names", "set_output_names"}
    | {"set_input_fact", "set_output_fact", "fact", "analyse", "into_analysed", "into_model"},
    "Model": _TYPED
    | {"transform", "parse_fact", "into_runnable", "declutter", "clone", "save"}
    | {"from_typed", "into_typed"},
    "Runtime": {"name", "options", "prepare"},
    "Runnable": _TYPED | {"run", "__call__", "spawn_state", "profile_json", "chrome_trace", "explain", "stream"},
    "State": _TYPED | {"run", "__call__", "reset", "freeze", "stream", "feed", "end_of_stream"},
    "Feeding": {"push", "finish", "stream", "freeze"},
    "FrozenFeeding": {"unfreeze"},
    "FrozenState": {"unfreeze", "with_kept"},
    "Tensor": {
        "from_numpy",
        "around",
        "view",
        "numpy",
        "to_numpy",
        "into_numpy",
        "datum_type",
        "convert_to",
        "dump",
        "item",
        "__eq__",
        "__len__",
        "__getitem__",
        "__iter__",
        "__array__",
        "__add__",
        "__lt__",
    }
    | {"all", "any", "argmax", "argmin", "argsort", "astype", "clip", "cumsum", "dot", "flatten", "max", "mean", "min"}
    | {"prod", "ravel", "reshape", "round", "squeeze", "std", "sum", "swapaxes", "tolist", "transpose", "var"}
    | {"__dlpack__", "__dlpack_device__"},
    "DatumType": {"is_bool", "is_number", "is_float", "is_signed", "is_unsigned", "ctype"},
    "Fact": {"datum_type", "rank", "dim", "dims", "dump"},
    "InferenceFact": {"datum_type", "rank", "dim", "dims", "dump"},
    "Dim": {"dump", "eval", "symbols", "to_int64", "__int__"},
    "SetSymbols": {"value", "parameters", "to_json"},
    "Pulse": {"symbol", "parameters", "to_json"},
    "FloatPrecision": {"include", "exclude", "parameters", "to_json"},
    "TransformSpec": {"parameters", "to_json"},
}
"""What the objects of the established binding can do (but for what other distributions bring), and what we add."""

PROPERTIES: dict[str, set[str]] = {
    "InferenceModel": {"graph", "is_consumed"},
    "Model": {"graph", "typed", "is_consumed"},
    "Runtime": {"backend", "registry"},
    "Runnable": {"graph", "typed", "plan", "runtime"},
    "State": {"graph", "typed"},
    "FrozenState": {"kept"},
    "Tensor": {"T", "dtype", "ndim", "shape", "size", "is_consumed"},
    "Fact": {"typed"},
    "InferenceFact": {"partial"},
    "Dim": {"size"},
    "SetSymbols": {"name"},
    "Pulse": {"name"},
    "FloatPrecision": {"name"},
}
"""What they hold: facts about themselves, and the objects of the core behind them."""

PAGES = {
    "runtime": {"Runtime", "runtime_for_name"},
    "runnable": {"Runnable"},
    "state": {"State", "FrozenState"},
    "dim": {"Dim"},
    "tensor": {"Tensor", "DatumType"},
    "fact": {"Fact", "InferenceFact"},
    "inference_model": {"InferenceModel"},
    "transform": {"TransformSpec", "SetSymbols", "FloatPrecision", "Pulse"},
}

MODEL_PAGE = {
    "DatumExt",
    "DatumTypeExt",
    "Fact",
    "Graph",
    "InferenceModel",
    "InletId",
    "ModelPatch",
    "Node",
    "Op",
    "Outlet",
    "OutletId",
    "Rewriter",
    "RunnableModel",
    "ShapeFact",
    "SpecialOps",
    "TypedFact",
    "TypedFrozenSimpleState",
    "TypedModel",
    "TypedModelPatch",
    "TypedNode",
    "TypedOp",
    "TypedRunnableModel",
    "TypedSimplePlan",
    "TypedSimpleState",
}

OF_FORMATS = {"onnx", "Onnx", "nnef", "Nnef", "crvo", "gguf", "huggingface", "tflite", "tensorflow"}
"""What the installed formats add."""

both = pytest.mark.parametrize("package", [tract_core, tract], ids=["tract_core", "tract"])


@both
def test_names(package: Any) -> None:
    assert set(package.__all__) == NAMES
    assert len(package.__all__) == len(NAMES)
    assert set(dir(package)) - {"pt2"} == NAMES | OF_FORMATS | {"errors", "limits"}  # pt2: where PyTorch is installed
    assert package.errors.TractError is package.TractError
    assert package.limits.LoadLimits
    assert package.__version__ == package.version()
    for name in NAMES | OF_FORMATS:
        assert getattr(package, name) is getattr(tract_core, name)
    with pytest.raises(AttributeError, match="has no attribute 'c_int'"):
        _ = package.c_int


@both
@pytest.mark.parametrize("kind", METHODS)
def test_methods(package: Any, kind: str) -> None:
    found = getattr(package, kind)
    missing = [name for name in METHODS[kind] if not callable(getattr(found, name, None))]
    assert missing == []
    for name in METHODS[kind]:
        if not name.startswith("__"):
            assert inspect.getdoc(getattr(found, name)), f"{kind}.{name} is not documented"


@pytest.mark.parametrize("kind", sorted(METHODS.keys() - {"DatumType"}))
def test_nothing_else_is_shown(kind: str) -> None:
    """What ``dir()`` and ``help()`` list is for users, and says what it is."""
    found = getattr(tract_core, kind)
    shown = {name for name in dir(found) if not name.startswith("_")}
    assert shown == {name for name in METHODS[kind] if not name.startswith("_")} | PROPERTIES.get(kind, set())
    undocumented = [name for name in shown - {"name"} if not inspect.getdoc(getattr(found, name))]
    assert undocumented == []


@both
@pytest.mark.parametrize("page", PAGES)
def test_pages(package: Any, page: str) -> None:
    module = importlib.import_module(f"{package.__name__}.{page}")
    assert set(module.__all__) == PAGES[page]
    for name in PAGES[page]:
        assert getattr(module, name) is getattr(tract_core, name)


@both
def test_the_model_page(package: Any) -> None:
    module = importlib.import_module(f"{package.__name__}.model")
    assert set(module.__all__) >= MODEL_PAGE | {"Model"}
    assert module.__all__ == sorted(set(module.__all__))
    for name in module.__all__:
        assert getattr(module, name) is not None
    assert module.Model is tract_core.Model


def test_what_the_core_shares_fits_its_protocols() -> None:
    import numpy as np

    from tract_core.data import Constant, QuantizedType
    from tract_core.model import DatumExt, DatumTypeExt, SpecialOps, TypedModel

    kind = tract_core.DatumType.I8
    assert isinstance(kind, DatumTypeExt)
    assert isinstance(QuantizedType(kind, 0, 1.0), DatumTypeExt)
    assert isinstance(Constant(np.zeros(1)), DatumExt)
    assert isinstance(TypedModel(), SpecialOps)


def test_version() -> None:
    assert tract.version() == tract_core.version()
    assert tract_core.version()[0].isdigit()
    importlib.import_module("tract_core.version")
    assert callable(tract_core.version)


def test_errors_are_one_family() -> None:
    from tract_core import errors

    kinds = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, Exception)]
    kinds = [kind for kind in kinds if not issubclass(kind, Warning)]
    assert len(kinds) > 10
    assert all(issubclass(kind, tract_core.TractError) for kind in kinds)


def _in_a_fresh_process(script: str) -> str:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize("package", ["tract_core", "tract"])
def test_importing_is_light(package: str) -> None:
    heavy = "{'numpy', 'onnx', 'torch', 'rich', 'click', 'pluggy', 'ml_dtypes'}"
    script = f"import sys; import {package}; print(sorted({heavy} & sys.modules.keys()))"
    assert _in_a_fresh_process(script) == "[]"


@pytest.mark.parametrize("name", ["Dim", "Fact", "onnx", "Model", "Runnable", "Pulse", "FrozenState", "Tensor"])
def test_any_name_can_be_the_first(name: str) -> None:
    assert name in _in_a_fresh_process(f"from tract_core import {name}; print('{name}')")


@both
@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("BOOL", 0x01),
        ("U8", 0x11),
        ("U16", 0x12),
        ("U32", 0x14),
        ("U64", 0x18),
        ("I8", 0x21),
        ("I16", 0x22),
        ("I32", 0x24),
        ("I64", 0x28),
        ("F16", 0x32),
        ("F32", 0x34),
        ("F64", 0x38),
        ("COMPLEX_I16", 0x42),
        ("COMPLEX_I32", 0x44),
        ("COMPLEX_I64", 0x48),
        ("COMPLEX_F16", 0x52),
        ("COMPLEX_F32", 0x54),
        ("COMPLEX_F64", 0x58),
    ],
)
def test_datum_types_keep_their_values(package: Any, member: str, value: int) -> None:
    kind = package.DatumType[member]
    assert kind == value
    assert str(kind) == member


def test_what_datum_types_answer() -> None:
    import ctypes

    kind = tract_core.DatumType
    assert [k.is_bool() for k in (kind.BOOL, kind.U8)] == [True, False]
    assert [k.is_number() for k in (kind.BOOL, kind.U8, kind.F16, kind.STRING)] == [False, True, True, False]
    assert [k.is_float() for k in (kind.F16, kind.F64, kind.I8, kind.COMPLEX_F32)] == [True, True, False, False]
    assert [k.is_signed() for k in (kind.I8, kind.U8, kind.I64)] == [True, False, True]
    assert [k.is_unsigned() for k in (kind.I8, kind.U8, kind.BOOL)] == [False, True, False]
    assert kind.I32.ctype() is ctypes.c_int32
    with pytest.raises(tract_core.TractError, match="F16 has no C type"):
        kind.F16.ctype()
