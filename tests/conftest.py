"""What every test of the project relies on."""

from __future__ import annotations

import gc
import subprocess
import sys
import venv
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))  # for the helpers beside the tests

# 200 random models per property in every run, always the same ones, and 2,000 new ones in `make test-long`; a property
# that says another number keeps it.
_UNHURRIED = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("usual", max_examples=200, deadline=None, derandomize=True, suppress_health_check=_UNHURRIED)
settings.register_profile("long", max_examples=2000, deadline=None, suppress_health_check=_UNHURRIED)
settings.load_profile("usual")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Tests stay until the end: a search for garbage that goes through all of them takes a second each time."""
    from tract_core.garbage import uncollected

    with uncollected():
        found = yield
        gc.freeze()
    return found


@pytest.fixture(autouse=True)
def _patches_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every rewrite of a model is followed by a check of the whole model."""
    monkeypatch.setenv("TRACT_CHECK_PATCHES", "1")


@pytest.fixture
def fuse_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The runtime ``fuse`` of ``examples/plugins/tract_fuse``, which fuses nodes, is installed."""
    from tract_core.plugins import refresh

    info = tmp_path / "site" / "tract_fuse-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tract-fuse\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text("[tract]\nfuse = tract_fuse.plugin\n")
    for folder in (info.parent, Path(__file__).parents[1] / "examples" / "plugins" / "tract_fuse"):
        monkeypatch.syspath_prepend(str(folder))
    refresh()
    yield
    monkeypatch.undo()
    refresh()


@pytest.fixture(scope="session")
def fresh_environment() -> Callable[..., Path]:
    """``fresh_environment(folder)``: makes a Python environment in a folder, returns its interpreter.

    It sees what is installed beside these tests, or in the folders ``sees``, and things can be installed into it with
    nothing else noticing.
    """

    def make(folder: Path, sees: Sequence[str] | None = None) -> Path:
        venv.create(folder, symlinks=sys.platform != "win32")
        python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
        code = "import sysconfig; print(sysconfig.get_path('purelib'))"
        site = Path(subprocess.check_output([python, "-c", code], text=True).strip())
        outer = sees or [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
        (site / "outer.pth").write_text("".join(f"import site; site.addsitedir({path!r})\n" for path in outer))
        return python

    return make


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory, fresh_environment: Callable[[Path], Path]) -> object:
    """An environment with the example and the broken plugins beside our own distributions."""
    from example_environment import Environment

    folder = tmp_path_factory.mktemp("environment")
    return Environment.made(fresh_environment(folder / "venv"), folder)
