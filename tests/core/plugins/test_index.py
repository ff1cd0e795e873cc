"""A plugin may say which rows a module has: then the module is imported when one of them is needed."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from tract_core.plugins import PluginState, PluginWarning, Registry, TableKey
from tract_core.plugins.index import FILE, read_index
from tract_core.plugins.keys import DECLUTTER
from tract_core.plugins.write_index import index_text

OURS = (
    "tract_core.plugins.builtin",
    "tract_onnx.plugin",
    "tract_nnef.plugin",
    "tract_pulse.plugin",
    "tract_gguf.plugin",
    "tract_tensorflow.plugin",
    "tract_transformers.plugin",
    "tract_llvm.plugin",
    "tract_cuda.plugin",
    "tract_metal.plugin",
    "tract_cpu.plugin",
)

COLOURS: TableKey[str, str] = TableKey("colours", "a colour")

INDEX = """
@hookimpl
def tract_rows():
    return {{"colours": {}}}
"""
PLAIN = INDEX.format('{"demo_ops": ["sky"], "demo_more": ["grass", "sea"]}')


def rows(**colours: str) -> str:
    added = "".join(f"ROWS.add(TableKey('colours', ''), {key!r}, {value!r})\n" for key, value in colours.items())
    return f"from tract_core.plugins import Rows, TableKey\nROWS = Rows()\n{added}"


@pytest.fixture
def demo(install):
    """A plugin whose two modules are indexed, and its registry."""
    install("demo", plugin=PLAIN, ops=rows(sky="blue"), more=rows(grass="green", sea="grey"))
    return Registry(only=["demo", "other"])


@pytest.mark.parametrize("plugin", OURS)
def test_the_indexes_of_this_repository_are_true(plugin: str) -> None:
    file = Path(importlib.import_module(plugin).__file__ or "").with_name(FILE)
    assert file.read_text() == index_text(plugin, OURS), "run `make index`"


@pytest.mark.parametrize("plugin", OURS)
def test_every_module_with_rows_is_indexed(plugin: str) -> None:
    folder = Path(importlib.import_module(plugin).__file__ or "").parent
    root = folder.parent if folder.name == "plugins" else folder
    package = root.name
    listed = {module for by_module in read_index(str(folder / FILE)).values() for module in by_module}
    found = {
        ".".join((package, *path.relative_to(root).with_suffix("").parts))
        for path in root.rglob("*.py")
        if "\nROWS = Rows()" in path.read_text() and "cases" not in path.parts
    }
    assert found == listed


def test_a_module_is_imported_when_one_of_its_rows_is_needed(demo):
    table = demo[COLOURS]
    assert table.names() == ["sky", "grass", "sea"]
    assert table.owner("grass") == "tract-demo"
    assert not {"demo_ops", "demo_more"} & sys.modules.keys()
    assert table["sea"] == "grey"
    assert "demo_more" in sys.modules
    assert "demo_ops" not in sys.modules
    assert table.rows() == {"sky": "blue", "grass": "green", "sea": "grey"}


def test_clashes_are_found_without_importing_either(demo, install):
    install("other", plugin=INDEX.format('{"other_ops": ["sky", "mud"]}'), ops=rows(sky="red", mud="brown"))
    with pytest.warns(PluginWarning, match="both tract-demo and tract-other have a row for sky; that of tract-demo"):
        table = demo[COLOURS]
    assert not {"demo_ops", "other_ops"} & sys.modules.keys()
    assert (table["sky"], table["mud"]) == ("blue", "brown")


BROKEN = {
    "that cannot be imported": ("raise RuntimeError('broken')", "import of demo_ops: RuntimeError: broken"),
    "without rows": ("", "module 'demo_ops' has no 'ROWS'"),
    "with other rows": (rows(sea="grey"), "the index and demo_ops differ in sea, sky"),
    "that asks for its own": (
        "import demo_switch\ndemo_switch.registry[demo_switch.COLOURS]['sky']",
        "the list of rows in demo_ops is asked for while it is being made",
    ),
}


@pytest.mark.parametrize(("code", "problem"), BROKEN.values(), ids=BROKEN)
def test_a_module_that_fails_makes_room_for_who_comes_next(install, code, problem):
    install("demo", plugin=INDEX.format('{"demo_ops": ["sky"]}'), ops=code, switch="registry = COLOURS = None")
    install("other", plugin=INDEX.format('{"other_ops": ["sky", "mud"]}'), ops=rows(sky="red", mud="brown"))
    import demo_switch  # pyright: ignore[reportMissingImports]: made for this test

    registry = Registry(only=["demo", "other"])
    demo_switch.registry, demo_switch.COLOURS = registry, COLOURS
    with pytest.warns(PluginWarning, match="both tract-demo and tract-other"):
        table = registry[COLOURS]
    assert table["mud"] == "brown"
    with pytest.warns(PluginWarning) as caught:
        assert table["sky"] == "red"
    assert problem in str(caught[0].message)
    demo = next(record for record in registry.plugins() if record.name == "demo")
    assert demo.state is PluginState.FAILED


@pytest.mark.parametrize(
    ("listed", "problem"),
    [
        ('{"demo_ops": 3}', "'demo_ops' leads to 3, wanted the keys of its rows"),
        ('{"demo_ops": "sky"}', "'demo_ops' leads to 'sky', wanted the keys of its rows"),
        ('{"demo_ops": [3]}', "found 3, wanted a key of 'demo_ops'"),
        ('{3: ["sky"]}', "found 3, wanted a module for 'colours'"),
    ],
)
def test_an_index_that_is_none(install, listed, problem):
    install("demo", plugin=INDEX.format(listed))
    with pytest.warns(PluginWarning, match=problem):
        assert not len(Registry(only=["demo"])[COLOURS])


def test_rules_are_imported_for_operators_that_are_there(install):
    index = "{'demo_any': {'any': ['builtins:object']}, 'demo_relu': {'relu': ['somewhere:Relu']}}"
    code = "from tract_core.model.rewriter import rewrites\nfrom tract_core.plugins import Rows\n"
    code += "from tract_core.plugins.keys import DECLUTTER\nROWS = Rows()\nKIND = {}\n"
    code += "@rewrites(KIND)\ndef {}(model, node, op): return None\nROWS.add(DECLUTTER, {}.name, {})\n"
    install(
        "demo",
        plugin=INDEX.format(index).replace("colours", "declutter"),
        any=code.replace("{}", "object", 1).replace("{}", "any"),
        relu="raise RuntimeError('not needed')",
    )
    from tract_core.model.declutter import declutter_rules

    registry = Registry(only=["demo"])
    assert {"any", "relu"} <= set(registry[DECLUTTER].names())
    assert [rule.name for rule in declutter_rules(registry).for_type(str)][-1] == "any"
    assert "demo_relu" not in sys.modules


def test_a_small_model_imports_the_modules_of_its_operators() -> None:
    code = """
import sys
import numpy as np
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.softmax import Softmax
from tract_core.model.declutter import declutter

model = TypedModel()
x = model.add_source("x", parse_typed_fact("3,f32"))
model.set_outputs(model.wire_node("y", Softmax((0,)), [x]))
declutter(model)
print(*(name for name in sys.modules if name.startswith(("tract_core.ops.", "tract_core.rules.", "tract_onnx.op"))))
"""
    found = set(subprocess.check_output([sys.executable, "-c", code], text=True).split())
    assert "tract_core.ops.softmax" in found
    assert not {"tract_core.ops.scan", "tract_core.ops.conv", "tract_core.rules.conv", "tract_core.rules.scan"} & found
    assert not {name for name in found if name.startswith("tract_onnx")}
