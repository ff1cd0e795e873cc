"""Which plugins are found, which are kept, and for which version of the seam they were made."""

from __future__ import annotations

import importlib.metadata

import pytest

from tract_core.errors import PluginError
from tract_core.plugins import API_VERSION, PluginState, PluginWarning, Registry, hookimpl
from tract_core.plugins.discovery import installed_plugins, normal_name
from tract_core.plugins.keys import REFERENCE

NOT_OURS = "[console_scripts]\nnonsense\n"


def names(registry: Registry) -> dict[str, PluginState]:
    return {record.name: record.state for record in registry.plugins()}


def test_installed_plugins_are_found_by_name(install):
    install("b")
    install("a")
    assert [f.record.name for f in installed_plugins() if f.record.name in "ab"] == ["a", "b"]


class TestDamagedDistributions:
    def test_one_that_mentions_the_group_is_reported_and_the_others_are_found(self, install):
        install("broken", entry_points="[tract]\nnonsense\n")
        install("fine")
        registry = Registry(only=["fine", "tract-broken"])
        with pytest.warns(PluginWarning, match="plugin 'tract-broken' of tract-broken: discovery"):
            assert names(registry)["fine"] is PluginState.AVAILABLE
        broken = next(record for record in registry.plugins() if record.name == "tract-broken")
        assert broken.state is PluginState.FAILED

    def test_one_that_is_no_plugin_is_no_business_of_ours(self, install):
        install("broken", entry_points=NOT_OURS)
        install("fine")
        assert "tract-broken" not in names(Registry(only=["fine"]))

    def test_one_whose_files_cannot_be_read(self, install, monkeypatch):
        install("fine")

        def unreadable(self: object, name: str) -> str:
            if name == "entry_points.txt" and "fine" not in str(getattr(self, "_path", "")):
                raise PermissionError(name)
            return read(self, name)

        read = importlib.metadata.PathDistribution.read_text
        monkeypatch.setattr(importlib.metadata.PathDistribution, "read_text", unreadable)
        registry = Registry(only=["fine"])
        assert names(registry)["fine"] is PluginState.AVAILABLE

    def test_one_without_a_name(self, install, tmp_path):
        install("fine")
        (tmp_path / "site" / "tract_fine-1.2.dist-info" / "METADATA").write_text("")
        assert Registry(only=["fine"])[REFERENCE] is not None


def test_a_distribution_that_is_on_the_path_twice_counts_once(install, monkeypatch):
    install("demo")
    (site,) = {str(f.record) for f in installed_plugins() if f.record.name == "demo"}
    import sys

    monkeypatch.setattr(sys, "path", [sys.path[0], *sys.path])
    assert [str(f.record) for f in installed_plugins() if f.record.name == "demo"] == [site]


def test_two_plugins_of_one_name_name_both_distributions(install):
    install("alpha", entry_points="[tract]\ndemo = alpha_plugin\n")
    install("beta", entry_points="[tract]\ndemo = beta_plugin\n")
    registry = Registry(only=["demo"])
    with pytest.warns(PluginWarning, match="tract-alpha and tract-beta both have a plugin named 'demo'"):
        found = names(registry)
    assert found["demo"] is PluginState.AVAILABLE
    assert found["demo (tract-beta)"] is PluginState.FAILED
    (second,) = (record for record in registry.plugins() if record.distribution == "tract-beta")
    assert second.failures[0].fix == "uninstall one of them; that of tract-alpha is used"


def test_a_plugin_cannot_take_the_place_of_the_core(install):
    install("usurper", entry_points="[tract]\ncore = usurper_plugin\n")
    registry = Registry(only=["core"])
    with pytest.warns(PluginWarning, match="tract-core and tract-usurper both have a plugin named 'core'"):
        assert registry[REFERENCE]


class TestChoice:
    @pytest.fixture(autouse=True)
    def plugins(self, install, monkeypatch):
        monkeypatch.delenv("TRACT_PLUGINS", raising=False)
        monkeypatch.delenv("TRACT_PLUGINS_BLOCK", raising=False)
        for name in ("one", "two", "three"):
            install(name, plugin="open(__file__ + '.imported', 'w').close()")

    def kept(self, registry: Registry) -> set[str]:
        states = names(registry)
        return {name for name in ("one", "two", "three") if states[name] is not PluginState.BLOCKED}

    @pytest.mark.parametrize(
        ("variable", "value", "kept"),
        [
            ("TRACT_PLUGINS", "none", set()),
            ("TRACT_PLUGINS", "", {"one", "two", "three"}),
            ("TRACT_PLUGINS", "one, two", {"one", "two"}),
            ("TRACT_PLUGINS", "tract-one,Tract_Two", {"one", "two"}),
            ("TRACT_PLUGINS", "one,not-installed", {"one"}),
            ("TRACT_PLUGINS_BLOCK", "one", {"two", "three"}),
            ("TRACT_PLUGINS_BLOCK", "tract_one, three", {"two"}),
            ("TRACT_PLUGINS_BLOCK", "", {"one", "two", "three"}),
            ("TRACT_PLUGINS_BLOCK", "core,not-installed", {"one", "two", "three"}),
        ],
    )
    def test_by_environment(self, monkeypatch, tmp_path, variable, value, kept):
        monkeypatch.setenv(variable, value)
        registry = Registry()
        assert self.kept(registry) == kept
        assert names(registry)["core"] is not PluginState.BLOCKED
        imported = {path.name.partition("_")[0] for path in (tmp_path / "site").glob("*.imported")}
        assert imported == kept

    def test_a_block_wins_over_a_choice(self):
        assert self.kept(Registry(only=["one", "two"], block=["two"])) == {"one"}

    def test_arguments_win_over_the_environment(self, monkeypatch):
        monkeypatch.setenv("TRACT_PLUGINS", "none")
        monkeypatch.setenv("TRACT_PLUGINS_BLOCK", "one")
        assert self.kept(Registry(only=["one"], block=[])) == {"one"}

    def test_without_discovery_there_is_the_core_and_what_is_given(self):
        class Mine:
            @hookimpl
            def tract_api_version(self) -> str:
                return "1.0"

            @hookimpl
            def tract_runtimes(self) -> dict[str, str]:
                return {"mine": "somewhere:Mine"}

        registry = Registry({"mine": Mine()}, discover=False, strict=True)
        assert names(registry) == {"core": PluginState.AVAILABLE, "mine": PluginState.AVAILABLE}
        assert registry.runtimes()["mine"].loader == "somewhere:Mine"
        assert "mine" not in Registry(discover=False).runtimes()


class TestApiVersion:
    @pytest.mark.parametrize(
        ("version", "upgrade"),
        [
            ("0.9", "pip install --upgrade tract-demo"),
            ("2.0", "install a newer tract-core"),
            ("1.1", "install a newer tract-core"),
        ],
    )
    def test_another_version_is_refused_with_what_to_do(self, install, version, upgrade):
        assert API_VERSION == (1, 0)
        hooks = "@hookimpl\ndef tract_runtimes(): return {'demo': 'a:b'}"
        install(
            "demo",
            preamble=f"from tract_core.plugins import hookimpl\ndef tract_api_version(): return '{version}'\n",
            plugin=hooks,
        )
        registry = Registry(only=["demo"])
        with pytest.warns(PluginWarning, match=f"made for version {version} of the plugin interface, this is 1.0"):
            assert "demo" not in registry.runtimes()
        (record,) = (record for record in registry.plugins() if record.name == "demo")
        assert record.state is PluginState.INCOMPATIBLE
        (failure,) = record.failures
        assert failure.fix.startswith(upgrade)
        assert record.hooks == ()

    def test_strict_raises(self, install):
        install("demo", preamble="def tract_api_version(): return '2.0'\n")
        with pytest.raises(PluginError, match=r"made for version 2.0"):
            Registry(only=["demo"], strict=True).plugins()


def test_normal_name():
    assert normal_name("Tract__ONNX.plus") == normal_name("tract-onnx-plus") == "tract-onnx-plus"
