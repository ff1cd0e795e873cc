"""Whether every distribution has the version that is to be released: ``python tests/released_version.py 0.1.0``."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def others(version: str) -> dict[str, str]:
    """The distributions that have another version, and which."""
    manifests = [ROOT / "pyproject.toml", *ROOT.glob("plugins/*/pyproject.toml")]
    projects = [tomllib.loads(path.read_text())["project"] for path in manifests]
    return {project["name"]: project["version"] for project in projects if project["version"] != version}


if __name__ == "__main__":
    wrong = others(sys.argv[1])
    sys.exit(f"these have another version than {sys.argv[1]}: {wrong}" if wrong else 0)
