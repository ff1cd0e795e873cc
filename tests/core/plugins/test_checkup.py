"""`tract plugins --check` finds what would otherwise never fail, and never do what its author meant."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from tract_core.cli.frame import app
from tract_core.plugins import PluginState, PluginWarning, Registry
from tract_core.testing.checkup import check_up

HEAD = """
from dataclasses import dataclass
import numpy as np
from tract_core.model.op import TypedOp
from tract_core.ops.elementwise import ElementWise
from tract_core.plugins import Rows
from tract_core.plugins.keys import AXES, COST, REFERENCE
ROWS = Rows()

@dataclass(frozen=True)
class Half(ElementWise):
    pass
"""
MEANING = "\n@ROWS.row(REFERENCE, Half)\ndef half(op, x): return x / 2\n"


def hook(name: str, answer: str) -> str:
    return f"@hookimpl\ndef tract_{name}(): return {answer}\n"


def operators(tables: str) -> str:
    return hook("rows", tables)


def found(install, **modules: str) -> tuple[list[tuple[str, str, str]], list[str]]:
    """What is found in a plugin ``mine``: what was being done, the problem, what to do; and the remarks."""
    install("mine", **modules)
    (record,) = (record for record in check_up(Registry(only=["mine", "onnx"])) if record.name == "mine")
    assert (record.state is PluginState.FAILED) == bool(record.failures)
    return [(one.doing, one.problem, one.fix) for one in record.failures], record.remarks


def test_a_plugin_that_is_right_has_no_findings(install):
    assert found(install, plugin=operators("{'reference': ['mine_ops']}"), ops=HEAD + MEANING) == ([], [])


@pytest.mark.parametrize(("written", "meant"), [("refrence", "reference"), ("decluter", "declutter"), ("onyx", "onnx")])
def test_an_unknown_table_is_told_with_the_nearest(install, written, meant):
    plugin = operators(f"{{'reference': ['mine_ops'], {written!r}: ['mine_more']}}")
    findings, remarks = found(install, plugin=plugin, ops=HEAD + MEANING, more="")
    problem = f"it lists mine_more for the table {written!r}, which nobody asks"
    assert findings == [("hook tract_rows", problem, f"did you mean {meant!r}?")]
    assert not remarks


def test_rows_for_a_format_that_is_not_installed_wait(install):
    plugin = operators("{'reference': ['mine_ops'], 'nnef': ['mine_more'], 'zork': ['mine_x']}")
    findings, remarks = found(install, plugin=plugin, ops=HEAD + MEANING, more="import tract_nnef")
    assert not findings
    assert remarks == [
        "the rows of mine_more wait: no installed plugin asks the table 'nnef'",
        "the rows of mine_x wait: no installed plugin asks the table 'zork'",
    ]


def test_rows_that_no_hook_lists(install):
    rows = HEAD + MEANING + "ROWS.add(COST, Half, lambda *_: {})\nROWS.add(AXES, Half, lambda *_: None)\n"
    findings, _ = found(install, plugin=operators("{'reference': ['mine_ops'], 'axes': ['mine_ops']}"), ops=rows)
    problem = "it has rows for the table 'cost', for which no hook lists it: they are not used"
    assert findings == [
        ("rows in mine_ops", problem, "add 'mine_ops' to 'cost' in what tract_rows returns"),
    ]


def test_a_module_without_rows(install):
    findings, _ = found(
        install, plugin=operators("{'cases': ['mine_ops']}"), ops="from tract_core.plugins import Rows\nROWS = Rows()"
    )
    assert findings == [("rows in mine_ops", "ROWS is empty", "add rows with @ROWS.row or ROWS.add")]


def test_operators_without_a_meaning(install):
    base = (
        "\n@dataclass(frozen=True)\nclass Base(ElementWise): pass\n@dataclass(frozen=True)\nclass Third(Base): pass\n"
    )
    rows = HEAD + MEANING + base + "ROWS.add(COST, Third, lambda *_: {})"
    plugin = operators("{'reference': ['mine_ops'], 'cost': ['mine_ops']}")
    ((doing, problem, fix),), _ = found(install, plugin=plugin, ops=rows)
    assert doing == "operators in mine_ops"
    assert problem == "Third has no row in 'reference' or 'state', so that no model with it can run"
    assert fix.startswith("add one: @ROWS.row(REFERENCE, Third)")


@pytest.mark.parametrize(
    ("head", "problem"),
    [
        ("@dataclass\nclass Mine(ElementWise)", "it is a dataclass that can be changed"),
        ("class Mine(ElementWise)", "it is no dataclass"),
        ("@dataclass(frozen=True)\nclass Mine", "it is not derived from tract_core.model.op.TypedOp"),
    ],
)
def test_classes_that_are_no_operators(install, head, problem):
    rows = f"{HEAD}{MEANING}\n{head}: pass\nROWS.add(REFERENCE, Mine, print)"
    ((doing, what, fix),), _ = found(install, plugin=operators("{'reference': ['mine_ops']}"), ops=rows)
    assert (doing, what) == ("operators in mine_ops", f"Mine is no operator: {problem}")
    assert fix.startswith("write it as @dataclass(frozen=True) above class Mine(TypedOp)")


@pytest.mark.parametrize(
    ("hooks", "code", "doing", "problem"),
    [
        ("transforms", "class Mine: pass", "load transform 'mine'", "it is the class Mine, wanted a frozen dataclass"),
        ("transforms", "Mine = 3", "load transform 'mine'", "it is a int, wanted a frozen dataclass"),
        (
            "transforms",
            "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass Mine: name = 'mine'",
            "load transform 'mine'",
            "Mine has no method 'apply'",
        ),
        (
            "transforms",
            "from dataclasses import dataclass\n@dataclass(frozen=True)\n"
            "class Mine:\n  name = 'yours'\n  def apply(self, m): ...",
            "load transform 'mine'",
            "Mine.name is 'yours', wanted 'mine', under which it is offered",
        ),
        ("commands", "def Mine(): pass", "load command 'mine'", "it is a function, wanted a click.Command"),
        ("tables", "Mine = 'mine'", "load table 'mine'", "it is a str, wanted a tract_core.plugins.TableKey"),
        (
            "tables",
            "from tract_core.plugins import TableKey\nMine = TableKey('yours', '')",
            "load table 'mine'",
            "it is the key of the table 'yours'",
        ),
        (
            "runtimes",
            "class Mine: name = 'yours'",
            "runtime 'mine'",
            "it bears the name 'yours', and is offered as 'mine'",
        ),
        (
            "runtimes",
            "class Mine: pass",
            "set-up of runtime 'mine'",
            "AttributeError: 'Mine' object has no attribute 'name'",
        ),
        ("runtimes", "def nothing(): pass", "load runtime 'mine'", "module 'mine_code' has no 'Mine'"),
        (
            "runtimes",
            "import no_such_module",
            "load runtime 'mine'",
            "ModuleNotFoundError: No module named 'no_such_module'",
        ),
    ],
)
def test_what_an_offer_leads_to(install, hooks, code, doing, problem):
    findings, _ = found(install, plugin=hook(hooks, "{'mine': 'mine_code:Mine'}"), code=code)
    ((where, what, fix),) = findings
    assert where == doing
    assert problem in what
    assert fix


def test_a_frontend_that_loads_nothing(install):
    plugin = "from tract_core.plugins import Format\n" + hook(
        "formats", "[Format('mine', ('.mine',), 'mine_code:Mine')]"
    )
    findings, _ = found(install, plugin=plugin, code="class Mine: pass")
    assert "'mine_code:Mine' does not lead to what tract_formats wants: Mine has no method 'load'" in str(findings)


@pytest.mark.parametrize(
    ("plugin", "problem", "fix"),
    [
        (hook("runtime", "{}"), "there is no hook 'tract_runtime'", "did you mean 'tract_runtimes'?"),
        (hook("rws", "{}"), "there is no hook 'tract_rws'", "did you mean 'tract_rows'?"),
        (hook("zzz", "{}"), "there is no hook 'tract_zzz'", "the hooks are tract_api_version, tract_commands,"),
        ("def tract_runtimes(): return {}", "tract_runtimes is not marked as a hook", "put @hookimpl above it"),
        (
            "@hookimpl\ndef tract_runtimes(model): return {}",
            "tract_runtimes takes the argument 'model', and hooks are called without any",
            "write it as def tract_runtimes():",
        ),
    ],
)
def test_a_hook_that_is_none_is_told_with_the_nearest(install, plugin, problem, fix):
    install("mine", plugin=plugin)
    registry = Registry(only=["mine"])
    with pytest.warns(PluginWarning, match=problem):
        (record,) = (record for record in registry.plugins() if record.name == "mine")
    (failure,) = record.failures
    assert failure.problem.startswith(problem)
    assert failure.fix.startswith(fix)


@pytest.mark.parametrize(
    ("preamble", "problem", "fix"),
    [
        (
            "",
            "the module 'mine_plugin', where its entry point leads, has no hook tract_api_version",
            "let the entry point",
        ),
        ("tract_api_version = '1.0'", "tract_api_version is a str, wanted a function", "have it return '1.0'"),
    ],
)
def test_a_plugin_that_does_not_say_its_version(install, preamble, problem, fix):
    install("mine", preamble=preamble)
    registry = Registry(only=["mine"])
    with pytest.warns(PluginWarning, match=problem):
        (record,) = (record for record in registry.plugins() if record.name == "mine")
    assert record.failures[0].fix.startswith(fix)


def test_the_command_shows_findings_and_remarks(install, monkeypatch):
    install("mine", plugin=operators("{'refrence': ['mine_ops'], 'zork': ['mine_x']}"))
    monkeypatch.setattr("tract_core.plugins.default._default", [Registry(only=["mine"])])
    result = CliRunner().invoke(app, ["plugins", "--check"])
    assert result.exit_code == 1
    assert (
        "mine (tract-mine 1.2): hook tract_rows\n  cause: it lists mine_ops for the table 'refrence'" in result.output
    )
    assert "what to do: did you mean 'reference'?" in result.output
    assert "mine (tract-mine 1.2): the rows of mine_x wait: no installed plugin asks the table 'zork'" in result.output
