"""The distributions: what their wheels hold, and which versions of one another they want."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from zipfile import ZipFile

import click
import pytest

from tract_core.cli.brought import BroughtFlag
from tract_core.cli.frame import app
from tract_core.plugins import builtin, default_registry
from tract_core.plugins.distributions import DISTRIBUTIONS
from tract_core.plugins.installing import _NEEDS
from tract_core.plugins.missing import ENDINGS, FLAGS, PLANNED, RESERVED, brings_flag

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples" / "plugins"
LICENCES = ("LICENSE-MIT", "LICENSE-APACHE")
FOLDERS = [
    ROOT,
    *sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml")),
    *sorted(path.parent for path in ROOT.glob("examples/plugins/tract_*/pyproject.toml")),
]


def project(folder: Path) -> dict[str, str]:
    return tomllib.loads((folder / "pyproject.toml").read_text())["project"]


OURS = {project(folder)["name"]: project(folder)["version"] for folder in FOLDERS}


@pytest.fixture(scope="module", params=FOLDERS, ids=lambda folder: project(folder)["name"])
def wheel(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ZipFile:
    folder = tmp_path_factory.mktemp("wheels")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=request.param, check=True, capture_output=True, timeout=120)
    (path,) = folder.glob("*.whl")
    return ZipFile(path)


def metadata(wheel: ZipFile) -> Message:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return message_from_bytes(wheel.read(name))


def test_the_wheel_holds_the_licences(wheel):
    assert metadata(wheel)["License-Expression"] == "MIT OR Apache-2.0"
    assert sorted(metadata(wheel).get_all("License-File", [])) == sorted(LICENCES)
    for licence in LICENCES:
        (inside,) = (name for name in wheel.namelist() if name.endswith(f"/licenses/{licence}"))
        assert wheel.read(inside) == (ROOT / licence).read_bytes()


def test_the_versions_of_one_another_have_bounds(wheel):
    """What differs in the second number may be incompatible, as is usual before 1.0."""
    wanted = [line for line in metadata(wheel).get_all("Requires-Dist", []) if line.startswith("tract-")]
    assert wanted or metadata(wheel)["Name"] == "tract-core"
    for line in wanted:
        name, bounds = line.partition(";")[0].strip().split("<")
        first, second, _ = OURS[name].split(".")
        assert bounds == f"{first}.{int(second) + 1},>={first}.{second}", line


def test_what_is_planned_does_not_exist_and_the_rest_does():
    mentioned = {name for names in RESERVED.values() for several in names.values() for name in several}
    mentioned |= {*ENDINGS.values(), *FLAGS.values(), *DISTRIBUTIONS}
    assert not PLANNED & OURS.keys()
    assert mentioned <= PLANNED | OURS.keys()
    assert mentioned - OURS.keys() == PLANNED


def test_what_our_plugins_offer_is_reserved_for_them():
    """So that whoever asks for it without the plugin is told which distribution to install."""
    registry = default_registry()
    for kind, hook in (
        ("runtime", "tract_runtimes"),
        ("format", "tract_formats"),
        ("transform", "tract_transforms"),
        ("subcommand", "tract_commands"),
    ):
        offered = {"runtime": registry.runtimes, "format": registry.formats, "transform": registry.transforms}
        for name in offered.get(kind, registry.commands)():
            owner = registry.owner(hook, name)
            if owner in DISTRIBUTIONS - {"tract-core"}:
                assert owner in RESERVED[kind][name]


def test_the_flags_that_our_plugins_bring_are_known_to_be_theirs():
    context = click.Context(app, **app.context_settings)  # commands remember which flags ask for help
    commands = [app, *(app.get_command(context, name) for name in app.list_commands(context))]
    brought = [flag for one in commands for flag in one.get_params(context) if isinstance(flag, BroughtFlag)]
    assert len(brought) > 10
    for flag in brought:
        owner = default_registry().owner(flag.hook, flag.offer)
        assert [brings_flag(name) for name in flag.opts] == [owner] * len(flag.opts)
    of_the_core = {name for one in app.params for name in one.opts}
    assert not any(map(brings_flag, of_the_core))


def test_what_a_distribution_needs_of_ours_is_known():
    for name, needs in _NEEDS.items():
        assert set(needs) == needed_of_ours(name)
    assert {name for name in OURS if needed_of_ours(name)} - {"tract-core"} == set(_NEEDS)


def needed_of_ours(name: str) -> set[str]:
    """Beside the core. Examples are none of ours here."""
    (folder,) = (folder for folder in FOLDERS if project(folder)["name"] == name)
    if folder.parent == EXAMPLES:
        return set()
    return ({re.split("[<>=]", one)[0] for one in project(folder)["dependencies"]} & DISTRIBUTIONS) - {"tract-core"}


def test_nobody_is_told_to_install_what_is_planned():
    pages = [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("plugins/*/README.md"), *ROOT.glob("*/**/*.py")]
    for page in pages:
        if ".venv" in page.parts or page == Path(__file__):
            continue
        text = page.read_text()
        for name in PLANNED:
            assert f"install {name}" not in text, (page, name)
            assert f"install '{name}" not in text, (page, name)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert not [one for several in extras.values() for one in several if one.startswith(tuple(PLANNED))]


def test_the_core_offers_what_it_reserves_for_nobody():
    for kind, offers in (("runtime", builtin.tract_runtimes()), ("transform", builtin.tract_transforms())):
        assert not RESERVED[kind].keys() & offers.keys()
