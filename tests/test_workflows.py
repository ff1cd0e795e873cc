"""What the workflows may do, as far as their texts say it: nothing has run them here."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

FOLDER = Path(__file__).parents[1] / ".github" / "workflows"
FILES = sorted(FOLDER.glob("*.yml"))
NEW = ("release", "site")


def read(name: str) -> dict[str, Any]:
    return yaml.safe_load((FOLDER / f"{name}.yml").read_text())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_jobs_end_and_targets_exist(path: Path) -> None:
    jobs = read(path.stem)["jobs"]
    assert [name for name, job in jobs.items() if "timeout-minutes" not in job] == []
    makefile = (FOLDER.parents[1] / "Makefile").read_text()
    lines = [step.get("run", "") for job in jobs.values() for step in job["steps"]]
    targets = {
        word for line in lines for found in re.findall(r"^make (.*)$", line, re.MULTILINE) for word in found.split()
    }
    assert [
        one for one in targets if not re.search(rf"^{re.escape(one)}:|^\.?\$\(VENV\)/\.%:", makefile, re.MULTILINE)
    ] == []


@pytest.mark.parametrize("name", NEW)
def test_only_the_job_that_publishes_may_do_more_than_read(name: str) -> None:
    workflow = read(name)
    assert workflow["permissions"] == {"contents": "read"}
    more = {job for job, said in workflow["jobs"].items() if "write" in said.get("permissions", {}).values()}
    assert more == {"publish"}


def test_a_release_is_published_by_a_tag_alone_and_after_all_that_tries_it() -> None:
    jobs = read("release")["jobs"]
    assert jobs["publish"]["if"] == "startsWith(github.ref, 'refs/tags/v')"
    assert set(jobs["publish"]["needs"]) == jobs.keys() - {"publish"}
    assert jobs["publish"]["environment"] == "release"
    assert {one.rpartition("-")[0] for one in jobs["try"]["strategy"]["matrix"]["machine"]} == {
        "ubuntu",
        "windows",
        "macos",
    }
    assert "secrets." not in (FOLDER / "release.yml").read_text()


def test_a_change_builds_the_site_and_does_not_publish_it() -> None:
    workflow = read("site")
    assert set(workflow[True]) == {"workflow_dispatch", "pull_request", "push"}  # YAML takes the word `on` for a yes
    assert workflow[True]["push"] == {"tags": ["v*"]}
    assert workflow["jobs"]["publish"]["if"] == "github.event_name != 'pull_request'"
