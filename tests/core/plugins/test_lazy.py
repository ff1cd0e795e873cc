"""Nothing is imported before it is needed."""

from __future__ import annotations

import subprocess
import sys
import threading

from tract_core.plugins import PluginState, Registry, TableKey, default_registry, refresh

COLOURS: TableKey[str, str] = TableKey("colours", "a colour")

ROWS = """
from tract_core.plugins import Rows, TableKey
ROWS = Rows()
ROWS.add(TableKey("colours", ""), "sky", "blue")
"""

HOOKS = """
@hookimpl
def tract_rows():
    return {"colours": ["demo_ops"]}

@hookimpl
def tract_runtimes():
    return {"demo": "demo_runtime:DemoRuntime"}
"""


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60).stdout


def test_importing_the_core_looks_for_no_plugin():
    code = "import sys, tract_core; print('tract_onnx' in sys.modules, 'onnx' in sys.modules, 'pluggy' in sys.modules)"
    assert run(code).split()[:2] == ["False", "False"]


def test_the_pytest_entry_point_imports_neither_numpy_nor_the_seam():
    code = "import sys, tract_core.testing.pytest_plugin; print('numpy' in sys.modules, 'pluggy' in sys.modules)"
    assert run(code).split() == ["False", "False"]


def test_listing_imports_only_plugin_modules(install):
    install("demo", plugin=HOOKS, ops="raise RuntimeError('heavy')", runtime="raise RuntimeError('heavy')")
    registry = Registry(only=["demo"])
    core, demo = (record for record in registry.plugins() if record.state is not PluginState.BLOCKED)
    assert (core.name, core.distribution) == ("core", "tract-core")
    assert (demo.name, demo.distribution, demo.version, demo.target) == ("demo", "tract-demo", "1.2", "demo_plugin")
    assert demo.hooks == ("tract_api_version", "tract_rows", "tract_runtimes")
    assert demo.state is PluginState.AVAILABLE
    registry.ask_everything()
    assert registry.runtimes()["demo"].loader == "demo_runtime:DemoRuntime"
    assert demo.state is PluginState.AVAILABLE
    assert "demo_plugin" in sys.modules
    assert not {"demo_ops", "demo_runtime"} & sys.modules.keys()


def test_making_a_registry_imports_nothing(install):
    install("demo", plugin=HOOKS)
    Registry(only=["demo"])
    assert "demo_plugin" not in sys.modules


def test_a_table_is_filled_at_its_first_question(install):
    install("demo", plugin=HOOKS, ops=ROWS)
    registry = Registry(only=["demo"])
    registry[TableKey("shapes", "a shape")]
    assert "demo_ops" not in sys.modules
    assert registry[COLOURS]["sky"] == "blue"
    assert registry[COLOURS].owner("sky") == "tract-demo"
    assert {record.name: record.state for record in registry.plugins()}["demo"] is PluginState.LOADED


def test_a_named_offer_is_imported_when_it_is_used(install):
    install("demo", plugin=HOOKS, runtime="class DemoRuntime: pass")
    registry = Registry(only=["demo"])
    assert registry.owner("tract_runtimes", "demo") == "tract-demo"
    assert registry.owner("tract_runtimes", "nobody's") is None
    assert registry.load("tract_runtimes", "demo").__name__ == "DemoRuntime"
    assert {record.name: record.state for record in registry.plugins()}["demo"] is PluginState.LOADED


def test_threads_that_ask_first_together_get_one_whole_table(install):
    slow = "import time; time.sleep(0.2)\nopen(__file__ + '.count', 'a').write('x')\n"
    install("demo", plugin=HOOKS + "\n" + slow, ops=slow + ROWS)
    registry = Registry(only=["demo"])
    barrier, found = threading.Barrier(8), []

    def ask() -> None:
        barrier.wait()
        table = registry[COLOURS]
        found.append((id(table), table["sky"], len(registry.plugins()), registry.runtimes()["demo"]))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
    assert len(found) == 8
    for module in ("demo_plugin", "demo_ops"):
        with open(f"{sys.modules[module].__file__}.count") as count:
            assert count.read() == "x"


def test_all_threads_share_one_default_registry():
    refresh()
    found, barrier = [], threading.Barrier(8)

    def ask() -> None:
        barrier.wait()
        found.append(default_registry())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(registry) for registry in found}) == 1


def test_refresh_finds_what_was_installed_since(install, monkeypatch):
    monkeypatch.delenv("TRACT_PLUGINS", raising=False)
    refresh()
    assert "demo" not in {record.name for record in default_registry().plugins()}
    install("demo", plugin=HOOKS)
    assert "demo" not in {record.name for record in default_registry().plugins()}
    refresh()
    assert "demo" in {record.name for record in default_registry().plugins()}
    refresh()
