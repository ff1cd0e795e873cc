"""A plugin that fails is recorded with the cause, reported once, and disturbs nobody."""

from __future__ import annotations

import warnings

import pytest

from tract_core.errors import InputError, PluginError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.identity import Identity
from tract_core.model.typed import TypedModel
from tract_core.ops.wiring import wire_one
from tract_core.plugins import PluginRecord, PluginState, PluginWarning, Registry, TableKey
from tract_core.plugins.keys import DECLUTTER, REFERENCE
from tract_core.plugins.tables import function_row

COLOURS = TableKey("colours", "a function that makes a colour", function_row)

ROWS = """
from tract_core.plugins import Rows, TableKey
ROWS = Rows()
COLOURS = TableKey("colours", "")
"""

GOOD = {
    "plugin": """
        @hookimpl
        def tract_rows():
            return {"colours": ["good_ops"]}

        @hookimpl
        def tract_runtimes():
            return {"good": "good_runtime:Runtime"}
    """,
    "ops": ROWS + "ROWS.add(COLOURS, 'sky', lambda: 'blue')",
    "runtime": "class Runtime: pass",
}


def record_of(registry: Registry, name: str) -> PluginRecord:
    return next(record for record in registry.plugins() if record.name == name)


def ask_all(registry: Registry) -> list[warnings.WarningMessage]:
    """Ask everything twice; the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            registry.plugins()
            registry.ask_everything()
            assert registry[COLOURS]["sky"]() == "blue"
            assert registry.load("tract_runtimes", "good").__name__ == "Runtime"
    return [warning for warning in caught if issubclass(warning.category, PluginWarning)]


OPERATORS = "@hookimpl\ndef tract_rows(): "
RUNTIMES = "@hookimpl\ndef tract_runtimes(): "
FRONTENDS = "@hookimpl\ndef tract_formats(): "
MY_ROWS = OPERATORS + "return {'colours': ['worse_ops']}"

BROKEN = {
    "import": ({"plugin": "import no_such_module"}, "import of worse_plugin", "No module named 'no_such_module'"),
    "syntax": ({"plugin": "def f(:"}, "import of worse_plugin", "SyntaxError"),
    "odd exception": (
        {"plugin": "class Odd(BaseException): pass\nraise Odd('very')"},
        "import of worse_plugin",
        "Odd: very",
    ),
    "no version": (
        {"preamble": ""},
        "import of worse_plugin",
        "where its entry point leads, has no hook tract_api_version",
    ),
    "odd version": (
        {"preamble": "def tract_api_version(): return 'new'"},
        "import of worse_plugin",
        "tract_api_version returned 'new', wanted a text like '1.0'",
    ),
    "version fails": ({"preamble": "def tract_api_version(): 1 / 0"}, "import of worse_plugin", "ZeroDivisionError"),
    "unknown hook": (
        {"plugin": "@hookimpl\ndef tract_runtime(): return {}"},
        "import of worse_plugin",
        "there is no hook 'tract_runtime'",
    ),
    "hook with arguments": (
        {"plugin": "@hookimpl\ndef tract_runtimes(model): return {}"},
        "import of worse_plugin",
        "model",
    ),
    "hook fails": ({"plugin": RUNTIMES + "1 / 0"}, "hook tract_runtimes", "ZeroDivisionError"),
    "hook raises oddly": ({"plugin": RUNTIMES + "raise GeneratorExit()"}, "hook tract_runtimes", "GeneratorExit"),
    "hook returns a list": ({"plugin": RUNTIMES + "return ['toy']"}, "hook tract_runtimes", "a list, wanted texts by"),
    "hook returns no texts": ({"plugin": RUNTIMES + "return {'toy': int}"}, "hook tract_runtimes", "<class 'int'>"),
    "hook returns no reference": (
        {"plugin": RUNTIMES + "return {'toy': 'toy'}"},
        "hook tract_runtimes",
        "'toy' leads to 'toy', wanted a text like 'module:attribute'",
    ),
    "hook names nothing": ({"plugin": RUNTIMES + "return {'': 'a:b'}"}, "hook tract_runtimes", "wanted a name"),
    "operators return a text": (
        {"plugin": OPERATORS + "return {'colours': 'worse_ops'}"},
        "hook tract_rows",
        "'colours' leads to 'worse_ops', wanted a list of modules",
    ),
    "operators return a list": (
        {"plugin": OPERATORS + "return ['worse_ops']"},
        "hook tract_rows",
        "a list, wanted",
    ),
    "operators return modules": (
        {"plugin": "import json\n" + OPERATORS + "return {'colours': [json]}"},
        "hook tract_rows",
        "wanted a module for 'colours'",
    ),
    "formats return a mapping": (
        {"plugin": FRONTENDS + "return {'a': 'b'}"},
        "hook tract_formats",
        "a dict, wanted",
    ),
    "formats return texts": ({"plugin": FRONTENDS + "return ['a']"}, "hook tract_formats", "a list with a str"),
    "rows: import": ({"plugin": MY_ROWS, "ops": "1 / 0"}, "import of worse_ops", "ZeroDivisionError"),
    "rows: missing": (
        {"plugin": MY_ROWS, "ops": ""},
        "import of worse_ops",
        "module 'worse_ops' has no 'ROWS', wanted a tract_core.plugins.Rows",
    ),
    "rows: no module": ({"plugin": MY_ROWS}, "import of worse_ops", "No module named 'worse_ops'"),
    "rows: odd": ({"plugin": MY_ROWS, "ops": "ROWS = []"}, "import of worse_ops", "worse_ops.ROWS is a list, wanted a"),
    "rows: key taken": (
        {"plugin": MY_ROWS, "ops": ROWS + "ROWS.add(COLOURS, 'sky', print)"},
        "rows in worse_ops",
        "table 'colours': both tract-good and tract-worse have a row for sky",
    ),
    "rows: key twice": (
        {"plugin": MY_ROWS, "ops": ROWS + "ROWS.add(COLOURS, 'a', print); ROWS.add(COLOURS, 'a', print)"},
        "rows in worse_ops",
        "tract-worse has two rows for a in one module",
    ),
    "rows: wrong value": (
        {"plugin": MY_ROWS, "ops": ROWS + "ROWS.add(COLOURS, 'grass', 'green')"},
        "rows in worse_ops",
        "the row of tract-worse for grass is a str, wanted a function",
    ),
    "asks at import": (
        {
            "plugin": MY_ROWS,
            "ops": "import worse_registry\nworse_registry.registry[worse_registry.COLOURS]",
            "registry": "",
        },
        "import of worse_ops",
        "the table 'colours' is asked for while it is being made",
    ),
    "name taken": (
        {"plugin": RUNTIMES + "return {'mine': 'a:b', 'good': 'a:b'}"},
        "hook tract_runtimes",
        "both tract-good and tract-worse offer 'good'",
    ),
    "name of the core": (
        {"plugin": RUNTIMES + "return {'reference': 'a:b'}"},
        "hook tract_runtimes",
        "both tract-core and tract-worse offer 'reference'",
    ),
    "damaged entry points": ({"entry_points": "[tract]\nnonsense\n"}, "discovery", ""),
}


@pytest.mark.parametrize(("modules", "doing", "problem"), BROKEN.values(), ids=BROKEN)
def test_a_broken_plugin_is_recorded_and_disturbs_nobody(install, modules, doing, problem):
    install("worse", **modules)
    install("good", **GOOD)
    registry = Registry(only=["good", "tract-worse"])
    if "registry" in modules:
        import worse_registry  # pyright: ignore[reportMissingImports]: made for this test

        worse_registry.registry, worse_registry.COLOURS = registry, COLOURS
    caught = ask_all(registry)
    worse = next(record for record in registry.plugins() if record.distribution == "tract-worse")
    assert worse.state is PluginState.FAILED
    (failure,) = worse.failures
    assert failure.doing == doing
    assert problem in failure.problem
    assert failure.trace.startswith("Traceback")
    assert "TRACT_PLUGINS_BLOCK=" in failure.fix or len(failure.fix) > 10
    assert record_of(registry, "good").state is PluginState.LOADED
    (warning,) = caught
    assert str(warning.message).startswith(f"plugin {worse.name!r} of tract-worse: {doing}: ")
    assert "'tract plugins --check'" in str(warning.message)


def test_a_module_with_a_row_that_does_not_fit_is_left_out_whole(install):
    install(
        "late",
        plugin=OPERATORS + "return {'colours': ['late_ops', 'late_more']}",
        ops=ROWS + "ROWS.add(COLOURS, 'grass', print); ROWS.add(COLOURS, 'sky', 'blue')",
        more=ROWS + "ROWS.add(COLOURS, 'mud', print)",
    )
    with pytest.warns(PluginWarning, match="the row of tract-late for sky is a str, wanted a function"):
        assert sorted(Registry(only=["late"])[COLOURS].rows()) == ["mud"]


def test_a_module_listed_for_several_tables_fails_once(install):
    install("worse", plugin=OPERATORS + "return {'colours': ['worse_ops'], 'shapes': ['worse_ops']}", ops="1 / 0")
    registry = Registry(only=["worse"])
    with pytest.warns(PluginWarning) as caught:
        assert not any(len(registry[key]) for key in (COLOURS, TableKey("shapes", "a shape")))
    assert len(caught) == 1
    assert len(record_of(registry, "worse").failures) == 1


def test_a_warning_made_an_error_leaves_everything_in_place(install):
    install("worse", plugin="1 / 0")
    install("good", **GOOD)
    registry = Registry(only=["worse", "good"])
    with warnings.catch_warnings():
        warnings.simplefilter("error", PluginWarning)
        with pytest.raises(PluginWarning, match="ZeroDivisionError"):
            registry[COLOURS]
        assert registry[COLOURS]["sky"]() == "blue"


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interruption_is_no_failure_and_the_next_question_is_answered(install, error):
    install(
        "slow",
        plugin=OPERATORS + "return {'colours': ['slow_ops']}",
        ops=f"import slow_switch\nslow_switch.on()\n{ROWS}ROWS.add(COLOURS, 'sky', print)",
        switch="def on(): pass",
    )
    import slow_switch  # pyright: ignore[reportMissingImports]: made for this test

    def interrupt():
        raise error

    registry = Registry(only=["slow"])
    on, slow_switch.on = slow_switch.on, interrupt
    with pytest.raises(error):
        registry[COLOURS]
    slow_switch.on = on
    assert registry[COLOURS]["sky"] is print
    assert not record_of(registry, "slow").failures


def test_strict_raises_what_the_plugin_raised(install):
    install("worse", plugin=RUNTIMES + "1 / 0")
    with pytest.raises(ZeroDivisionError):
        Registry(only=["worse"], strict=True).runtimes()
    install("other", plugin="import no_such_module")
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        Registry(only=["other"], strict=True).plugins()


DECLUTTER_ROWS = """
from tract_core.model.rewriter import rewrites
from tract_core.plugins import Rows
from tract_core.plugins.keys import DECLUTTER

ROWS = Rows()

@rewrites(object)
def mine(model, node, op):
    return None
"""


def test_a_rule_that_is_no_rule_is_refused(install):
    for name, row in {"plain": "'mine', print", "renamed": "'yours', mine"}.items():
        ops = f"{DECLUTTER_ROWS}\nROWS.add(DECLUTTER, {row})"
        install(name, plugin=OPERATORS + f"return {{'declutter': ['{name}_ops']}}", ops=ops)
    registry = Registry(only=["plain", "renamed"])
    with pytest.warns(PluginWarning):
        assert not {"mine", "yours"} & registry[DECLUTTER].rows().keys()
    assert "wanted a Rule (decorate it with " in str(record_of(registry, "plain").cause)
    assert "is a rule named mine, wanted one named yours" in str(record_of(registry, "renamed").cause)


def test_a_rule_that_raises_is_left_out_and_the_others_go_on(install):
    raising = DECLUTTER_ROWS.replace("return None", "return 1 // 0") + "\nROWS.add(DECLUTTER, 'mine', mine)"
    install("raising", plugin=OPERATORS + "return {'declutter': ['raising_ops']}", ops=raising)
    registry = Registry(only=["raising"])
    model = TypedModel(registry=registry)
    x = model.add_source("x", parse_typed_fact("S,f32", model.symbols))
    model.set_outputs([wire_one(model, "y", Identity(), wire_one(model, "same", Identity(), x))])
    with pytest.warns(PluginWarning, match="rule mine: ZeroDivisionError"):
        model.declutter()
    assert not model.has_node("same")
    assert record_of(registry, "raising").state is PluginState.FAILED
    strict = TypedModel(registry=Registry(only=["raising"], strict=True))
    strict.set_outputs([wire_one(strict, "y", Identity(), strict.add_source("x", parse_typed_fact("S,f32")))])
    with pytest.raises(ZeroDivisionError):
        strict.declutter()


def test_rows_for_a_type_that_is_not_installed_wait(install):
    ops = "from tract_core.plugins import Rows\nfrom tract_core.plugins.keys import REFERENCE\nROWS = Rows()\n"
    text = "tract_elsewhere.ops:Hidden"
    install(
        "early",
        plugin=OPERATORS + "return {'reference': ['early_ops']}",
        ops=f"{ops}@ROWS.row(REFERENCE, {text!r})\ndef hidden(op, x): return x",
    )
    registry = Registry(only=["early"])
    assert text in registry[REFERENCE].rows()
    assert record_of(registry, "early").state is PluginState.LOADED
    assert not record_of(registry, "early").failures
    hidden = type("Hidden", (), {"__module__": "tract_elsewhere.ops", "__qualname__": "Hidden"})
    assert registry[REFERENCE][hidden].__name__ == "hidden"  # the day its distribution is there


def test_rows_for_a_table_that_nobody_asks_wait(install):
    plugin = "@hookimpl\ndef tract_rows(): return {'onyx': ['early_ops']}"
    install("early", plugin=plugin, ops="import tract_onyx")
    registry = Registry(only=["early"])
    registry.load_everything()
    assert not record_of(registry, "early").failures
    install(
        "onyx",
        plugin="@hookimpl\ndef tract_tables(): return {'onyx': 'onyx_keys:ONYX'}",
        keys="from tract_core.plugins import TableKey\nONYX = TableKey('onyx', 'a row')",
    )
    registry = Registry(only=["early", "onyx"])
    with pytest.warns(PluginWarning, match="tract_onyx"):
        registry.load_everything()
    assert record_of(registry, "early").failures[0].fix.startswith("install what provides the module 'tract_onyx'")


class TestNamedOffers:
    def test_a_class_that_cannot_be_imported(self, install):
        install("worse", plugin=RUNTIMES + "return {'worse': 'worse_runtime:Runtime'}", runtime="1 / 0")
        install("good", **GOOD)
        registry = Registry(only=["worse", "good"])
        for _ in range(2):
            with pytest.raises(
                PluginError, match=r"load runtime 'worse' of tract-worse failed: ZeroDivisionError"
            ) as caught:
                registry.load("tract_runtimes", "worse")
        assert isinstance(caught.value.__cause__, ZeroDivisionError)
        assert [failure.doing for failure in record_of(registry, "worse").failures] == ["load runtime 'worse'"]
        assert registry.load("tract_runtimes", "good").__name__ == "Runtime"

    def test_a_class_that_is_not_there(self, install):
        install(
            "worse", plugin=RUNTIMES + "return {'worse': 'worse_runtime:Runtime.Inner'}", runtime="class Runtime: pass"
        )
        registry = Registry(only=["worse"])
        with pytest.raises(PluginError, match=r"module 'worse_runtime' has no 'Runtime.Inner'"):
            registry.load("tract_runtimes", "worse")

    def test_an_attribute_error_inside_the_module_is_not_taken_for_a_missing_class(self, install):
        install(
            "worse", plugin=RUNTIMES + "return {'worse': 'worse_runtime:Runtime'}", runtime="import json\njson.nothing"
        )
        with pytest.raises(PluginError, match="module 'json' has no attribute 'nothing'"):
            Registry(only=["worse"]).load("tract_runtimes", "worse")

    def test_an_unknown_name_lists_the_known_ones(self):
        with pytest.raises(PluginError, match="no plugin offers 'toy' to tract_runtimes; there are: reference"):
            Registry(discover=False).load("tract_runtimes", "toy")

    def test_everything_can_be_loaded_to_see_what_fails(self, install):
        install("worse", plugin=RUNTIMES + "return {'worse': 'worse_runtime:Runtime'}", runtime="1 / 0")
        registry = Registry(only=["worse"])
        registry.load_everything()
        assert str(record_of(registry, "worse").cause) == "load runtime 'worse': ZeroDivisionError: division by zero"


class TestCalls:
    """Calls into what a plugin offers: prepare and run of a runtime, apply of a transform."""

    @pytest.fixture
    def registry(self, install) -> Registry:
        install("worse", plugin=RUNTIMES + "return {'worse': 'worse_runtime:Runtime'}")
        return Registry(only=["worse"])

    def test_an_exception_becomes_an_error_of_ours_with_the_distribution(self, registry):
        for _ in range(2):
            with pytest.raises(PluginError) as caught, registry.blaming("tract_runtimes", "worse", "prepare"):
                {}["device"]
        assert str(caught.value) == (
            "prepare of runtime 'worse' of tract-worse failed: KeyError: 'device'\n"
            "  hint: this is a defect of tract-worse; its authors want the traceback, which --debug shows"
        )
        (failure,) = record_of(registry, "worse").failures
        assert failure.doing == "prepare of runtime 'worse'"
        assert "in test_an_exception_becomes_an_error_of_ours" in failure.trace

    def test_an_error_of_ours_is_an_answer(self, registry):
        with pytest.raises(InputError), registry.blaming("tract_runtimes", "worse", "run"):
            raise InputError("rank 2")
        assert not record_of(registry, "worse").failures

    def test_an_interruption_passes(self, registry):
        with pytest.raises(KeyboardInterrupt), registry.blaming("tract_runtimes", "worse", "run"):
            raise KeyboardInterrupt
        assert not record_of(registry, "worse").failures

    def test_the_core_is_blamed_on_nobody(self, registry):
        with pytest.raises(ZeroDivisionError), registry.blaming("tract_runtimes", "reference", "run"):
            _ = 1 / 0


def test_the_core_never_fails_quietly(monkeypatch):
    from tract_core.plugins import builtin

    monkeypatch.setattr(builtin, "read_index", lambda _: {"reference": {"no_such_family": ["demo:Op"]}})
    with pytest.raises(ModuleNotFoundError, match="no_such_family"):
        Registry(discover=False)[REFERENCE].find("demo:Op")
    monkeypatch.setattr(builtin, "read_index", lambda _: {"reference": ["no_such_family"]})
    with pytest.raises(ModuleNotFoundError, match="no_such_family"):
        Registry(discover=False)[REFERENCE]
