"""What `make dist` builds, installed as a stranger would: into an environment that has none of our distributions."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Callable, Mapping
from importlib.metadata import distributions
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = [ROOT, *sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: Mapping[str, list[str]] = PROJECT["optional-dependencies"]
DIGITS = ROOT / "examples" / "digits" / "digits.onnx"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="what is installed here is seen through links")


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheels and source archives of all our distributions."""
    folder = tmp_path_factory.mktemp("dist")
    for source in FOLDERS:
        build(source, folder)
    return folder


def build(source: Path, folder: Path, *options: str) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder), *options]
    subprocess.run(command, cwd=source, check=True, capture_output=True, timeout=120)


class Environment:
    """An environment with what others made that is installed here, and nothing of ours; it reaches no index."""

    def __init__(self, folder: Path, python: Path) -> None:
        self.python = python
        self.scripts = python.parent
        (folder / "home").mkdir()
        kept = {"PATH": os.environ["PATH"], "HOME": str(folder / "home"), "COLUMNS": "200"}
        self.variables = {
            **kept,
            "PIP_NO_INDEX": "1",
            "PIP_NO_COMPILE": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_CONFIG_FILE": os.devnull,
        }

    def run(self, *command: str, status: int = 0) -> str:
        found = subprocess.run(
            command,
            env=self.variables,
            cwd=self.variables["HOME"],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert found.returncode == status, f"$ {command}\n{found.stdout}{found.stderr}"
        return found.stdout + found.stderr

    def pip(self, *arguments: str) -> str:
        return self.run(str(self.python), "-m", "pip", *arguments)

    def tract(self, *arguments: str, status: int = 0) -> str:
        return self.run(str(self.scripts / "tract"), *arguments, status=status)


@pytest.fixture
def stranger(tmp_path: Path, fresh_environment: Callable[..., Path]) -> Environment:
    """The packages of others are links in a folder of their own, so that pip finds none of ours installed."""
    others = tmp_path / "others"
    others.mkdir()
    for path in (path for path in sys.path if path.endswith(("site-packages", "dist-packages"))):
        for one in Path(path).iterdir():
            ours = one.name.startswith(("tract", "_tract", "__editable__", "_editable", "__pycache__"))
            if not ours and one.suffix != ".pth" and not (others / one.name).exists():
                (others / one.name).symlink_to(one)
    return Environment(tmp_path, fresh_environment(tmp_path / "venv", [str(others)]))


def installable(extra: str) -> bool:
    """Whether all that others made is installed here which the distributions of an extra need."""
    there = {found.metadata["Name"].lower().replace("_", "-") for found in distributions()}
    return extra != "torch" or "torch" in there


def test_one_line_brings_what_runs_anywhere(dist: Path, stranger: Environment) -> None:
    stranger.pip("install", "--find-links", str(dist), "tract-core[standard]")
    stranger.tract("plugins", "--check")
    assert "(default)" in next(line for line in stranger.tract("list-runtimes").splitlines() if line.startswith("cpu"))
    assert " on cpu" in stranger.tract(str(DIGITS), "bench", "--set", "B=2", "--max-time", "50")
    stranger.tract("cook", str(DIGITS), "-o", "digits.nnef.tar")
    code = (
        "import numpy as np, tract_core as tract\n"
        "(scores,) = tract.load('digits.nnef.tar').into_runnable()(np.zeros((3, 1, 8, 8), np.float32))\n"
        "print(scores.shape)"
    )
    assert stranger.run(str(stranger.python), "-c", code).strip() == "(3, 10)"
    assert "hwbench" in stranger.tract("--help")
    stranger.tract("inferers", "--help")


@pytest.mark.parametrize("extra", EXTRAS)
def test_every_extra_is_found(dist: Path, stranger: Environment, extra: str) -> None:
    if not installable(extra):
        pytest.skip("needs PyTorch: run `make test-torch`")
    told = stranger.pip("install", "--dry-run", "--find-links", str(dist), f"tract-core[{extra}]")
    (would,) = (line for line in told.splitlines() if line.startswith("Would install"))
    there = {line.lower() for line in stranger.pip("list", "--format", "freeze").splitlines()} | {*would.split()}
    assert all(
        any(one.startswith(wanted.partition(">")[0]) for one in there) for wanted in (*EXTRAS[extra], "tract-core>")
    )


LINES = sorted(set(re.findall(r"pip install ((?:\.|--find-links)[^`\n]*)", (ROOT / "README.md").read_text())))


@pytest.mark.parametrize("line", LINES)
def test_every_line_of_the_readme_finds_all_that_it_needs(dist: Path, stranger: Environment, line: str) -> None:
    """From a checkout and from wheels; the first of the page brings what ``standard`` does."""
    if "torch" in line and not installable("torch"):
        pytest.skip("needs PyTorch: run `make test-torch`")
    places = {"dist": str(dist), ".": str(ROOT)}
    words = [str(ROOT / word) if word.startswith("plugins/") else places.get(word, word) for word in shlex.split(line)]
    told = stranger.pip("install", "--dry-run", "--no-build-isolation", *words)
    (would,) = (found for found in told.splitlines() if found.startswith("Would install"))
    ours = {one.rpartition("-")[0] for one in would.split() if one.startswith("tract-")}
    if line.count("plugins/") > 2 or "standard" in line:
        assert ours == {"tract-core", *(wanted.partition(">")[0] for wanted in EXTRAS["standard"])}
    else:
        assert ours >= {"tract-core", *(Path(word).name.replace("_", "-") for word in words if "/plugins/" in word)}


def test_standard_is_what_runs_anywhere() -> None:
    """All but PyTorch, Ray and the server, which bring much, what wants a GPU, and `import tract`."""
    every = {one for name, several in EXTRAS.items() if name != "standard" for one in several if "tract-" in one}
    not_everywhere = ("tract-torch", "tract-ray", "tract-serve", "tract-compat", "tract-cuda", "tract-metal")
    left_out = {wanted for wanted in every if wanted.startswith(not_everywhere)}
    assert set(EXTRAS["standard"]) == every - left_out


def test_the_core_alone_says_how_to_get_the_rest(dist: Path, stranger: Environment) -> None:
    """Each line that is shown is pasted: what was missing is there then."""
    (core,) = dist.glob("tract_core-*.whl")
    stranger.pip("install", str(core))
    for arguments, wanted in (
        ([str(DIGITS)], "tract_onnx"),
        ([str(DIGITS), "native"], "tract_cpu"),
        ([str(DIGITS), "--pulse", "4"], "tract_pulse"),
        ([str(DIGITS), "dump", "--nnef-tar", "x.tar"], "tract_nnef"),
        (["inferers"], "tract_inferers"),
    ):
        told = stranger.tract(*arguments, status=2 if wanted != "tract_onnx" else 1)
        (line,) = (line for line in told.splitlines() if "pip install" in line)
        command = line[line.index("pip install") :].split("'")[0]
        assert wanted in command
        stranger.run("sh", "-c", f"{stranger.python} -m {command}")
    stranger.tract(str(DIGITS), "native", "--set", "B=1")


def test_bench_on_the_interpreter_says_that_there_is_a_compiler(dist: Path, stranger: Environment) -> None:
    stranger.pip("install", "--find-links", str(dist), "tract-core[onnx]")
    for arguments in (["bench"], ["dump", "--profile"]):
        told = stranger.tract(str(DIGITS), *arguments, "--set", "B=2", "--max-time", "50")
        assert "'reference' is the plain NumPy interpreter" in told
        assert "pip install" in told
        assert "tract_cpu" in told


PROGRAM = Path(__file__).parent / "typed_program.py"


def test_type_checkers_know_what_the_wheels_bring(dist: Path, stranger: Environment, tmp_path: Path) -> None:
    """Also ``tract.onnx()`` and its like, whose distributions are found when the program runs."""
    for name in ("mypy", "basedpyright"):
        pytest.importorskip(name, reason="needs the tools of `make check`")
    stranger.pip("install", "--find-links", str(dist), "tract-core[standard,compat]")
    (tmp_path / "program.py").write_text(PROGRAM.read_text())
    (tmp_path / "pyrightconfig.json").write_text('{"include": ["program.py"], "typeCheckingMode": "strict"}')
    interpreter, cache = str(stranger.python), str(tmp_path / "cache")
    mypy = ("--strict", "--python-executable", interpreter, "--cache-dir", cache, str(tmp_path / "program.py"))
    stranger.run(sys.executable, "-m", "mypy", *mypy)
    stranger.run(sys.executable, "-m", "basedpyright", "--pythonpath", interpreter, "--project", str(tmp_path))


@pytest.mark.parametrize("source", FOLDERS, ids=lambda folder: folder.name)
def test_a_source_archive_gives_the_same_wheel(dist: Path, tmp_path: Path, source: Path) -> None:
    name = tomllib.loads((source / "pyproject.toml").read_text())["project"]["name"].replace("-", "_")
    (archive,) = dist.glob(f"{name}-*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    assert {"README.md", "LICENSE-MIT", "LICENSE-APACHE"} <= {path.name for path in unpacked.iterdir()}
    assert not (unpacked / "examples").exists()
    build(unpacked, tmp_path / "again", "--target", "wheel")
    (first,), (second,) = dist.glob(f"{name}-*.whl"), (tmp_path / "again").glob("*.whl")
    assert contents(first) == contents(second)


def contents(wheel: Path) -> dict[str, bytes]:
    with ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}
