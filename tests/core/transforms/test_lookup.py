"""Transforms by name, JSON, spec and class; what is said when that goes wrong."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest

from tract_core import Model, SetSymbols
from tract_core.errors import PluginError, TransformError, Unsupported
from tract_core.model import TypedModel
from tract_core.plugins import Registry, default_registry
from tract_core.plugins.parameters import parameters_of
from tract_core.testing.toys import toy_registry
from tract_core.transforms.apply import apply_transform
from tract_core.transforms.lookup import transform_class
from tract_core.transforms.select import SelectOutputs
from tract_core.transforms.set_symbols import SetSymbols as SetSymbolsTransform

Maker = Callable[..., TypedModel]

BUILT_IN = ["f16_to_f32", "f32_to_f16", "float_precision", "select_inputs", "select_outputs", "set_symbols"]


@pytest.mark.parametrize(
    "way",
    [
        '{"name": "set_symbols", "values": {"B": 4}}',
        ' { "name": "set-symbols", "values": {"B": "2*2"} }',
        SetSymbols({"B": 4}),
        SetSymbolsTransform({"B": 4}),
    ],
    ids=["json", "kebab", "spec", "instance"],
)
def test_every_way_to_say_it(network: Maker, way: Any) -> None:
    model = Model.from_typed(network())
    model.transform(way)
    assert str(model.input_fact(0)) == "4,S,3,f32"


@pytest.mark.parametrize("name", ["f32_to_f16", "f32-to-f16", " f32_to_f16 "])
def test_a_name_alone(network: Maker, name: str) -> None:
    model = Model.from_typed(network())
    model.transform(name)
    assert "f16" in {str(model.typed.output_facts(node)[0]).split(",")[-1] for node in model.typed.live_nodes()}


@pytest.mark.parametrize(
    ("way", "problem"),
    [
        ("x", r"transform `x' could not be found; installed transforms: .*f16_to_f32, "),
        ("set_symbol", r"transform `set_symbol' could not be found.*\n  hint: did you mean 'set_symbols'"),
        ('{"values": {"B": 4}}', "missing 'name' field"),
        ('{"name": 3}', "missing 'name' field"),
        ('{"name": "set_symbols"', "is no JSON"),
        ('{"name": "float_precision"}', "float_precision transform requires 'from' and 'to' parameters"),
        ('{"name": "float_precision", "from": "f32"}', "float_precision transform requires 'from' and 'to' parameters"),
        ("set_symbols", "set_symbols transform requires 'values' parameter"),
        ('{"name": "set_symbols", "value": {"B": 1}}', "set_symbols has no parameter 'value'; its parameters: values"),
        ('{"name": "f32_to_f16", "include": 3}', "f32_to_f16: 'include' is 3, wanted a list of texts"),
        ('{"name": "select_outputs", "outputs": [1]}', r"select_outputs: 'outputs' is .*, wanted a list of texts"),
        ('{"name": "set_symbols", "values": [1]}', "set_symbols: 'values' is .* wanted {name: value}"),
        ('{"name": "f32_to_f16", "keep_io_types": 1}', "f32_to_f16: 'keep_io_types' is 1, wanted true or false"),
        ('{"name": "f32_to_f16", "filter": ["a"]}', r"f32_to_f16: 'filter' is \('a',\), wanted a text or nothing"),
        ('{"name": "patch", "body": 3}', "patch: 'body' is 3, wanted a text"),
        ('{"name": "block_quant", "elements": "x"}', "block_quant: 'elements' is 'x', wanted an integer"),
        ('{"name": "block_quant", "elements": true}', "block_quant: 'elements' is True, wanted an integer"),
        ('{"name": "pulse", "pulse": 1.5}', "pulse: 'pulse' is 1.5, wanted an integer or a text or a TDim"),
        (SelectOutputs({"a": 1}), "select_outputs: 'outputs' is {'a': 1}, wanted a list of texts"),  # type: ignore[arg-type]
        (None, "NoneType is no transform"),
        (3, "int is no transform"),
        (SetSymbolsTransform, "SetSymbols is no transform\n  hint: give a name.* an instance of a transform"),
    ],
)
def test_mistakes(network: Maker, way: Any, problem: str) -> None:
    model = Model.from_typed(network())
    with pytest.raises(TransformError, match=problem):
        model.transform(way)
    assert str(model.input_fact(0)) == "B,S,3,f32"


GIVEN: dict[str, Any] = {
    "values": {"B": 2},
    "inputs": ["input"],
    "outputs": ["act"],
    "from": "f32",
    "to": "f16",
    "pulse": 4,
    "body": "",
    "key": "purpose",
    "value": "a test",
    "ranges": "absent.json",
}


@pytest.mark.parametrize("name", sorted(default_registry().transforms()))
@pytest.mark.parametrize("value", [None, True, 1, 1.5, "f32", ["f32"], [1], [None], [[]], {}, {"f32": []}, math.nan])
def test_whatever_a_parameter_is_nobody_but_the_caller_is_blamed(network: Maker, name: str, value: Any) -> None:
    parameters = parameters_of(transform_class(name, default_registry()))
    given = {one.key: GIVEN[one.key] for one in parameters if one.required}
    for one in parameters:
        with suppress(TransformError, Unsupported):  # which a PluginError is none of
            Model.from_typed(network()).transform(json.dumps({"name": name, **given, one.key: value}))


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("pulse", "tract-pulse is installed, but not in use"),
        ("transformers-detect-all", "it will come with tract-"),
        ("patch", "tract-nnef is installed, but not in use"),
    ],
)
def test_transforms_of_distributions_that_are_not_installed(name: str, hint: str) -> None:
    model = TypedModel(registry=Registry(discover=False))
    with pytest.raises(PluginError, match=rf"is not installed; installed transforms: .*\n  hint: {hint}"):
        apply_transform(model, name)


def test_every_transform_documents_its_parameters() -> None:
    registry = default_registry()
    assert set(BUILT_IN) <= set(registry.transforms())
    for name in BUILT_IN:
        kind = transform_class(name, registry)
        assert kind.__doc__
        assert kind.name == name
        for one in parameters_of(kind):
            assert one.doc, (name, one.key)
    keys = [(one.key, one.required) for one in parameters_of(transform_class("float_precision", registry))]
    options = [(key, False) for key in ("include", "exclude", "keep_io_types")]
    assert keys == [("from", True), ("to", True), *options]


def test_constants_are_shared_and_the_original_stays(network: Maker) -> None:
    model = network()
    result = apply_transform(model, SetSymbols({"B": 2}))
    assert str(model.outlet_fact(model.inputs[0])) == "B,S,3,f32"
    mine = model.constant(model.node_by_name("weights").outlets()[0])
    others = result.constant(result.node_by_name("weights").outlets()[0])
    assert mine is not None
    assert others is not None
    assert np.shares_memory(mine, others)


@dataclass(frozen=True)
class Rename:
    """Rename a node, or break."""

    name: ClassVar[str] = "rename"
    old: str = field(metadata={"doc": "name of a node"})
    new: str = field(default="renamed", metadata={"doc": "what to call it"})

    def apply(self, model: TypedModel) -> TypedModel:
        result = model.clone()
        if self.new == "broken":
            raise ZeroDivisionError("in the plugin")
        result.rename(result.node_by_name(self.old).id, self.new)
        return result


@pytest.fixture
def registry() -> Registry:
    return toy_registry("renamer", transforms={"rename": f"{__name__}:Rename"})


def test_a_plugin_brings_its_own(network: Maker, registry: Registry) -> None:
    result = apply_transform(network(), '{"name": "rename", "old": "act"}', registry)
    assert result.has_node("renamed")
    assert not result.has_node("act")


def test_a_plugin_that_breaks_is_blamed(network: Maker, registry: Registry) -> None:
    with pytest.raises(PluginError, match="of renamer failed: ZeroDivisionError: in the plugin"):
        apply_transform(network(), '{"name": "rename", "old": "act", "new": "broken"}', registry)
