"""``tract init plugin NAME``: a folder to begin with."""

from __future__ import annotations

import keyword
import re
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template
from typing import Final

import click

_NAME: Final = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")
_ENDING: Final = ".txt"
"""Behind the names of the templates, which are no modules yet."""


@click.group(short_help="A folder to begin with: a plugin.")
def command() -> None:
    """Make a folder to begin with."""


@command.command()
@click.argument("name")
@click.option(
    "-o", "--output", metavar="FOLDER", help="The folder to make; by default it is called as the distribution."
)
def plugin(name: str, output: str | None) -> None:
    """Make the folder of a distribution that brings the operator NAME, complete and tested.

    NAME is in small letters, with hyphens: 'tract init plugin soft-clip' makes the folder tract-soft-clip with the
    package tract_soft_clip and the operator SoftClip. docs/plugins.md says how to go on from there.
    """
    from tract_core.saving import whole_folder

    words = _words(name)
    target = Path(output or words["distribution"])
    with whole_folder(target) as folder:
        written = [_written(path, text, folder, words) for path, text in _templates()]
    for path in sorted(written):
        click.echo(target / path)
    click.echo(f"\nto go on:\n  pip install -e '{target}[test]'\n  tract plugins --check\n  pytest {target}", err=True)


def _words(name: str) -> dict[str, str]:
    """What stands in the templates. Raises BadParameter for a name that is none, or that is taken."""
    from tract_core.plugins import default_registry
    from tract_core.version import version

    plain = name.removeprefix("tract-").removeprefix("tract_")
    if not _NAME.fullmatch(plain) or keyword.iskeyword(plain):
        raise click.BadParameter(f"{name!r} is no name: small letters and digits, with hyphens", param_hint="NAME")
    module, hyphens = plain.replace("-", "_"), plain.replace("_", "-")
    if hyphens in {record.name for record in default_registry().ask_everything()}:
        raise click.BadParameter(f"a plugin {hyphens!r} is installed already", param_hint="NAME")
    operator = "".join(part.capitalize() for part in module.split("_"))
    return {
        "name": hyphens,
        "distribution": f"tract-{hyphens}",
        "package": f"tract_{module}",
        "module": module,
        "operator": operator,
        "domain": f"org.example.{module}",
        "core": _versions(version()),
    }


def _versions(version: str) -> str:
    """Which versions of the core do: those up to the next one that may change what plugins see."""
    first, second, *_ = [*map(int, re.findall(r"\d+", version)), 0, 0]
    return f">={first}.{second},<{first}.{second + 1}"


def _templates() -> list[tuple[Path, str]]:
    """Where each file is to be, and its text, with names to fill in."""
    found: list[tuple[Path, str]] = []

    def look(at: Traversable, path: Path) -> None:
        for one in at.iterdir():
            if one.is_dir():
                look(one, path / one.name)
            elif one.name.endswith(_ENDING):
                found.append((path / one.name.removesuffix(_ENDING), one.read_text(encoding="utf-8")))

    look(files("tract_core.cli") / "templates" / "plugin", Path())
    return found


def _written(path: Path, text: str, folder: Path, words: dict[str, str]) -> Path:
    """Write one file. Returns where it is in the folder."""
    places = {
        "package": words["package"],
        "operator.py": f"{words['module']}.py",
        "test_operator.py": f"test_{words['module']}.py",
    }
    path = Path(*(places.get(part, part) for part in path.parts))
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(Template(text).substitute(words), encoding="utf-8", newline="\n")
    return path
