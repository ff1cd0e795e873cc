"""Where several distributions bring the same: who comes first, and that the others are refused alone, by name."""

from __future__ import annotations

import re
import warnings

import pytest

from tract_core.api.formats import find_format
from tract_core.errors import InputError, RegistrationError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.conv import Conv
from tract_core.ops.elementwise import ElementWise, Exp
from tract_core.ops.reduce import Reduce
from tract_core.plugins import PluginState, PluginWarning, Registry, TableKey
from tract_core.plugins.keys import COST, DECLUTTER, REFERENCE, STATE
from tract_core.testing.checkup import check_up

COLOURS = TableKey("colours", "a colour")
ROWS = """
from tract_core.plugins import Rows, TableKey
ROWS = Rows()
COLOURS = TableKey("colours", "a colour")
"""
PREAMBLE = "from tract_core.plugins import hookimpl\n@hookimpl\ndef tract_api_version(): return '1.0'\n"
OPERATORS = "@hookimpl\ndef tract_rows(): "
MY_ROWS = OPERATORS + "return {{'colours': ['{0}_ops']}}"
RUNTIMES = "@hookimpl\ndef tract_runtimes(): "
DECLARES = "@hookimpl\ndef tract_tables(): return {'colours': 'owner_plugin:COLOURS'}\n"


def told(registry: Registry, key: TableKey) -> list[str]:
    """Fill a table; the warnings, without what all of them end in."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        registry[key]
    return [
        str(one.message).removesuffix("; it is left out, 'tract plugins --check' says what to do") for one in caught
    ]


def failures(registry: Registry) -> dict[str, list[str]]:
    return {record.name: [str(one) for one in record.failures] for record in registry.plugins() if record.failures}


class TestRows:
    def install_owner(self, install, *, colour: str = "blue") -> None:
        install(
            "owner",
            plugin=DECLARES + MY_ROWS.format("owner"),
            ops=ROWS + f"ROWS.add(COLOURS, 'sky', '{colour}'); ROWS.add(COLOURS, 'sea', '{colour}')",
        )

    def test_the_owner_of_a_table_wins_though_another_name_comes_first(self, install):
        install(
            "aaa",
            plugin=MY_ROWS.format("aaa"),
            ops=ROWS + "ROWS.add(COLOURS, 'grass', 'green'); ROWS.add(COLOURS, 'sky', 'pink')",
        )
        self.install_owner(install)
        registry = Registry(only=["aaa", "owner"])
        (warning,) = told(registry, COLOURS)
        assert warning == (
            "plugin 'aaa' of tract-aaa: rows in aaa_ops: table 'colours': both tract-owner and tract-aaa have a row "
            "for sky; that of tract-owner is used"
        )
        assert registry[COLOURS].rows() == {"sky": "blue", "sea": "blue", "grass": "green"}
        assert failures(registry).keys() == {"aaa"}

    def test_who_declares_a_table_of_somebody_else_does_not_own_it(self, install):
        install("aaa", plugin=DECLARES + MY_ROWS.format("aaa"), ops=ROWS + "ROWS.add(COLOURS, 'sky', 'pink')")
        self.install_owner(install)
        registry = Registry(only=["aaa", "owner"])
        told(registry, COLOURS)
        assert registry[COLOURS]["sky"] == "blue"
        assert "both tract-owner and tract-aaa offer 'colours'; that of tract-owner is used" in str(failures(registry))

    def test_many_rows_that_clash_are_told_in_one_message(self, install):
        keys = [f"k{number}" for number in range(8)]
        for name in ("one", "two"):
            adding = "\n".join(f"ROWS.add(COLOURS, {key!r}, '{name}')" for key in keys)
            install(name, plugin=MY_ROWS.format(name), ops=ROWS + adding)
        (warning,) = told(Registry(only=["one", "two"]), COLOURS)
        assert warning.endswith("have rows for k0, k1, k2, k3, k4 and 3 more; those of tract-one are used")

    def test_of_two_newcomers_the_first_by_name_stays(self, install):
        for name in ("zoo", "bee"):
            install(name, plugin=MY_ROWS.format(name), ops=ROWS + f"ROWS.add(COLOURS, 'sky', '{name}')")
        registry = Registry(only=["zoo", "bee"])
        (warning,) = told(registry, COLOURS)
        assert "both tract-bee and tract-zoo have a row for sky; that of tract-bee is used" in warning
        assert registry[COLOURS]["sky"] == "bee"
        (failure,) = next(record for record in registry.plugins() if record.name == "zoo").failures
        assert "TRACT_PLUGINS_BLOCK=tract-zoo" in failure.fix
        with pytest.raises(RegistrationError, match="both tract-bee and tract-zoo have a row for sky"):
            Registry(only=["zoo", "bee"], strict=True)[COLOURS]

    def test_one_distribution_with_a_key_in_two_modules(self, install):
        more = ROWS + "ROWS.add(COLOURS, 'sky', 'grey')"
        plugin = OPERATORS + "return {'colours': ['one_ops', 'one_more']}"
        install("one", plugin=plugin, ops=ROWS + "ROWS.add(COLOURS, 'sky', 'blue')", more=more)
        registry = Registry(only=["one"])
        (warning,) = told(registry, COLOURS)
        assert warning.endswith(
            "rows in one_more: table 'colours': tract-one has a row for sky in two modules; the first is used"
        )
        assert registry[COLOURS]["sky"] == "blue"


HEAD = """
from tract_core.plugins import Rows
from tract_core.plugins.keys import AXES, COST, DECLUTTER, REFERENCE, STATE
ROWS = Rows()
"""


class TestOperators:
    """Nobody changes the answer to a question about an operator of somebody else."""

    def taken(self, install, key: TableKey, operator: str, row: str = "lambda *_: 'mine'"):
        ops = f"{HEAD}ROWS.add({key.name.upper()}, {operator!r}, {row})"
        install("aaa", plugin=OPERATORS + f"return {{{key.name!r}: ['aaa_ops']}}", ops=ops)
        return Registry(only=["aaa"])

    @pytest.mark.parametrize(
        ("key", "operator", "asked", "first"),
        [
            (REFERENCE, "tract_core.ops.elementwise:Exp", Exp, REFERENCE),
            (COST, "tract_core.ops.elementwise:Exp", Exp, COST),
            (STATE, "tract_core.ops.elementwise:Exp", Exp, REFERENCE),
            (STATE, "tract_core.ops.elementwise:ElementWise", Exp, REFERENCE),
            (STATE, "builtins:object", Conv, REFERENCE),
        ],
        ids=["the same key", "the row of a base", "another table", "a base in another table", "everything"],
    )
    def test_the_answer_stays(self, install, key, operator, asked, first):
        registry = self.taken(install, key, operator)
        wanted = Registry(discover=False)[key].find(asked)
        with pytest.warns(PluginWarning, match=f"both tract-core and tract-aaa have a row for {re.escape(operator)}"):
            assert registry[key].find(asked) is wanted
        assert registry[key].find(asked) is wanted
        assert registry[first].owner(asked) == "tract-core"
        assert failures(registry).keys() == {"aaa"}

    def test_strict_raises(self, install):
        self.taken(install, COST, "tract_core.ops.elementwise:Exp")
        with pytest.raises(RegistrationError, match="both tract-core and tract-aaa have a row"):
            Registry(only=["aaa"], strict=True)[COST].find(Exp)

    def test_a_question_that_nobody_answered_may_be_answered(self, install):
        registry = self.taken(install, STATE, "tract_elsewhere.ops:Hidden")
        hidden = type("Hidden", (), {"__module__": "tract_elsewhere.ops", "__qualname__": "Hidden"})
        assert registry[STATE][hidden]() == "mine"

    def test_who_brings_an_operator_comes_before_others_who_answer_for_it(self, install):
        hidden = "bbb_ops:Hidden"
        install(
            "aaa",
            plugin=OPERATORS + "return {'reference': ['aaa_ops']}",
            ops=f"{HEAD}ROWS.add(REFERENCE, {hidden!r}, lambda op: 'theirs')",
        )
        install(
            "bbb",
            plugin=OPERATORS + "return {'reference': ['bbb_ops']}",
            ops=f"{HEAD}class Hidden: pass\nROWS.add(REFERENCE, Hidden, lambda op: 'mine')",
        )
        registry = Registry(only=["aaa", "bbb"])
        (warning,) = told(registry, REFERENCE)
        assert f"both tract-bbb and tract-aaa have a row for {hidden}; that of tract-bbb is used" in warning
        assert registry[REFERENCE][hidden](None) == "mine"

    def test_an_operator_of_ones_own_may_differ_from_its_base(self, install):
        ops = f"""{HEAD}
from tract_core.ops.elementwise import ElementWise
class Half(ElementWise): pass
ROWS.add(COST, Half, lambda *_: 'mine')
"""
        install("aaa", plugin=OPERATORS + "return {'cost': ['aaa_ops']}", ops=ops)
        registry = Registry(only=["aaa"])
        assert registry[COST].find(ElementWise) is not None
        import aaa_ops  # pyright: ignore[reportMissingImports]: made for this test

        assert registry[COST][aaa_ops.Half]() == "mine"
        assert registry[COST].find(Reduce) is Registry(discover=False)[COST].find(Reduce)

    def test_a_rule_of_the_core_stays_and_the_newcomers_others_are_in_place(self, install):
        rules = HEAD + "from tract_core.model.rewriter import rewrites\n"
        for name in ("aaa_rule", "drop_identity"):
            rules += f"@rewrites(object)\ndef {name}(model, node, op): return None\n"
            rules += f"ROWS.add(DECLUTTER, {name}.name, {name})\n"
        known = Registry(discover=False)[DECLUTTER].rows()
        taken = next(iter(known))
        install(
            "aaa",
            plugin=OPERATORS + "return {'declutter': ['aaa_ops']}",
            ops=rules.replace("drop_identity", taken),
        )
        registry = Registry(only=["aaa"])
        (warning,) = told(registry, DECLUTTER)
        assert f"both tract-core and tract-aaa have a row for {taken}; that of tract-core is used" in warning
        rows = registry[DECLUTTER].rows()
        assert rows[taken] is known[taken]
        assert list(rows) == [*known, "aaa_rule"]


class TestNames:
    def test_a_name_that_is_taken_is_refused_alone(self, install):
        install("good", plugin=RUNTIMES + "return {'good': 'a:b'}")
        install("late", plugin=RUNTIMES + "return {'late': 'a:b', 'good': 'c:d', 'later': 'a:b'}")
        registry = Registry(only=["good", "late"])
        with pytest.warns(
            PluginWarning, match="both tract-good and tract-late offer 'good'; that of tract-good is used"
        ):
            assert sorted(registry.runtimes()) == ["good", "late", "later", "reference"]
        assert registry.owner("tract_runtimes", "good") == "tract-good"

    @pytest.mark.parametrize(
        ("hook", "name", "owner", "offer"),
        [
            ("runtimes", "cpu", "cpu", "{'cpu': 'NAME:b'}"),
            ("transforms", "pulse", "pulse", "{'pulse': 'NAME:b'}"),
            ("formats", "nnef", "nnef", "[Format('nnef', ('.x',), 'NAME:b')]"),
        ],
    )
    def test_a_reserved_name_belongs_to_the_distribution_it_is_reserved_for(self, install, hook, name, owner, offer):
        for plugin in ("aaa", owner):
            head = f"from tract_core.plugins import Format\n@hookimpl\ndef tract_{hook}(): return "
            install(plugin, plugin=head + offer.replace("NAME", plugin))
        registry = Registry(only=["aaa", owner])
        with pytest.warns(PluginWarning, match=f"both tract-{owner} and tract-aaa offer '{name}'"):
            assert registry.owner(f"tract_{hook}", name) == f"tract-{owner}"

    def test_of_two_plugins_of_one_name_that_of_the_distribution_called_so_stays(self, install):
        install("aaa", entry_points="[tract]\ndemo = aaa_plugin\n")
        install("demo")
        registry = Registry(only=["demo"])
        with pytest.warns(PluginWarning, match="tract-demo and tract-aaa both have a plugin named 'demo'"):
            states = {record.distribution: record.state for record in registry.plugins()}
        assert (states["tract-demo"], states["tract-aaa"]) == (PluginState.AVAILABLE, PluginState.FAILED)


class TestEndings:
    """Several formats that take files of one name."""

    def asked(self, install, monkeypatch, tmp_path, name: str, **plugins: str) -> str:
        for plugin, formats in plugins.items():
            hook = f"@hookimpl\ndef tract_formats(): return [{formats}]"
            install(plugin, plugin="from tract_core.plugins import Format\n" + hook)
        registry = Registry(only=list(plugins))
        monkeypatch.setattr("tract_core.api.formats.default_registry", lambda: registry)
        (tmp_path / name).write_bytes(b"?")
        return find_format(tmp_path / name)[0]

    def test_a_reserved_ending_belongs_to_the_distribution_it_is_reserved_for(self, install, monkeypatch, tmp_path):
        newcomer, owner = "Format('new', ('.nnef',), 'a:b')", "Format('nnef', ('.nnef',), 'a:b')"
        assert self.asked(install, monkeypatch, tmp_path, "m.nnef", aaa=newcomer, nnef=owner) == "nnef"

    def test_the_longest_ending_fits_best(self, install, monkeypatch, tmp_path):
        one, two = "Format('packed', ('.gz',), 'a:b')", "Format('exact', ('.abc.gz',), 'a:b')"
        assert self.asked(install, monkeypatch, tmp_path, "m.abc.gz", aaa=one, bbb=two) == "exact"

    def test_of_two_newcomers_none_is_taken_unasked(self, install, monkeypatch, tmp_path):
        one, two = "Format('one', ('.abc',), 'a:b')", "Format('two', ('.abc',), 'a:b')"
        with pytest.raises(InputError, match="the formats one and two all take files named so") as caught:
            self.asked(install, monkeypatch, tmp_path, "m.abc", aaa=one, bbb=two)
        assert "--format" in str(caught.value.hint)


class TestTwoPluginsOfOneDistribution:
    """What fails is put down to the one that brought it."""

    ENTRIES = "[tract]\nfirst = two_plugin\nsecond = two_second\n"

    def failed(self, registry: Registry) -> set[str]:
        return set(failures(registry))

    def test_a_row_that_is_not_used(self, install):
        ops = f"{HEAD}ROWS.add(COST, 'tract_core.ops.elementwise:Exp', lambda *_: 'mine')"
        second = PREAMBLE + OPERATORS + "return {'cost': ['two_ops']}"
        install("two", entry_points=self.ENTRIES, ops=ops, second=second)
        registry = Registry(only=["tract-two"])
        with pytest.warns(PluginWarning, match="plugin 'second' of tract-two"):
            registry[COST].find(Exp)
        assert self.failed(registry) == {"second"}

    def test_a_row_that_raises(self, install):
        ops = HEAD + (
            "from tract_core.model.rewriter import Rule\nfrom tract_core.model.op import TypedOp\n"
            "ROWS.add(DECLUTTER, 'mine', Rule('mine', (TypedOp,), lambda *_: 1 // 0))"
        )
        second = PREAMBLE + OPERATORS + "return {'declutter': ['two_ops']}"
        install("two", entry_points=self.ENTRIES, ops=ops, second=second)
        registry = Registry(only=["tract-two"])
        model = TypedModel(registry=registry)
        x = model.add_source("x", parse_typed_fact("S,f32", model.symbols))
        model.set_outputs(model.wire_node("y", Exp(), [x]))
        with pytest.warns(PluginWarning, match="plugin 'second' of tract-two: rule mine"):
            model.declutter()
        assert self.failed(registry) == {"second"}

    def test_a_runtime_of_another_name(self, install):
        runtime = """
            from dataclasses import dataclass
            @dataclass(frozen=True)
            class Toy:
                name = "other"
                def why_unusable(self): return None
                def prepare(self, model): raise NotImplementedError
        """
        second = PREAMBLE + RUNTIMES + "return {'toy': 'two_toy:Toy'}"
        install("two", entry_points=self.ENTRIES, second=second, toy=runtime)
        registry = Registry(only=["tract-two"])
        check_up(registry)
        assert self.failed(registry) == {"second"}
