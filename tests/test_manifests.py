"""The distributions: what their wheels hold, and which versions of one another they want."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from zipfile import ZipFile

import pytest

from tract_core.plugins import builtin
from tract_core.plugins.missing import ENDINGS, PLANNED, RESERVED

ROOT = Path(__file__).parents[1]
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
    mentioned |= set(ENDINGS.values())
    assert not PLANNED & OURS.keys()
    assert mentioned <= PLANNED | OURS.keys()
    assert mentioned - OURS.keys() == PLANNED


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
