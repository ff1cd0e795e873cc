"""The command ``tract``: that of the established engine, in whatever version, or this project's own.

It is a program of its own, so that the version which an archive is checked with is the one that it is written for,
whatever is installed beside PyTorch. How the program ends says whether an archive is right; what it says is reported.
"""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Final, Self

from tract_core.errors import MissingFile
from tract_torch.arguments import chosen, path_of
from tract_torch.errors import CheckError, CommandError
from tract_torch.established.semantic_version import SemanticVersion
from tract_torch.tolerance import TractCheckTolerance

logger: Final = logging.getLogger("tract_torch")

TIMEOUT: Final = 600.0
"""Seconds that a run may take."""

_SAID: Final = 4000
"""Characters of what a command says that are told."""

_HARMLESS: Final = re.compile(
    r"ignore unknown extension|tract_pulse_streaming_symbol|flatten.?shape|assertion on an absent symbol", re.IGNORECASE
)
"""Lines on standard error that say nothing of an archive."""

Paths = str | os.PathLike[str]


class TractCli:
    """Calls of the command at ``tract_path``."""

    def __init__(self, tract_path: Paths) -> None:
        """Raises MissingFile where there is no file."""
        self.tract_path = path_of(tract_path, "tract_path")
        if not self.tract_path.is_file():
            raise MissingFile("there is no command tract", where=str(tract_path))

    @classmethod
    def download(cls, version: SemanticVersion | str) -> Self:
        """That of a release of the established engine, which is downloaded unless it was before."""
        from tract_torch.established.download import TractBinaryDownloader

        return cls(TractBinaryDownloader(SemanticVersion.of(version)).tract_path)

    @classmethod
    def own(cls) -> Self:
        """The command of this project, beside the interpreter that runs. Raises MissingFile where it is not there."""
        return cls(Path(sys.executable).with_name("tract.exe" if os.name == "nt" else "tract"))

    @cached_property
    def _says(self) -> str:
        return self.run(["--version"], quiet=True).stdout.strip()

    @cached_property
    def version(self) -> SemanticVersion:
        """What ``tract --version`` says. Raises CommandError where that is no version."""
        found = re.search(r"\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.+-]+)?", self._says)
        if found is None:
            raise CommandError(f"{self.tract_path} --version says {self._says[:80]!r}, wanted a version")
        return SemanticVersion.from_str(found[0])

    @property
    def is_own(self) -> bool:
        """Whether it is the command of this project, whose versions are others."""
        return "(tract-core)" in self._says

    # --- command lines ---

    def assert_io_cmd_str(
        self,
        nnef_path: Paths,
        io_npz_path: Paths | None = None,
        check_tolerance: TractCheckTolerance | str = TractCheckTolerance.EXACT,
        *,
        input_bundle_path: Paths | None = None,
        output_bundle_path: Paths | None = None,
    ) -> list[str]:
        """The words of the command that checks the outputs of an archive.

        ``io_npz_path``: inputs and outputs by name, where there are not two files, ``input_bundle_path`` and
        ``output_bundle_path``. ``check_tolerance``: ignored by engines before 0.21.7, which compare in one way only.
        """
        outputs = ["--assert-output-bundle", _path(output_bundle_path or io_npz_path, "outputs")]
        level = chosen(TractCheckTolerance, check_tolerance, "check_tolerance")
        if self._since("0.21.7"):
            if self.version == "0.21.7" and not self.is_own and level in {level.VERY, level.ULTRA}:
                level = level.SUPER  # that one has no others which are as loose
            outputs += ["--approx", level.value]
        elif level is not level.EXACT:
            logger.warning("tract %s has no levels of tolerance: %s is ignored", self.version, level.value)
        return self._run_words(nnef_path, input_bundle_path or io_npz_path, outputs)

    def run_save_outputs_cmd_str(
        self, nnef_path: Paths, input_bundle_path: Paths, output_bundle_path: Paths
    ) -> list[str]:
        """The words of the command that runs an archive, and saves its outputs in an ``.npz`` file."""
        return self._run_words(
            nnef_path, input_bundle_path, ["--save-outputs-npz", _path(output_bundle_path, "outputs")]
        )

    def _since(self, version: str) -> bool:
        return self.is_own or self.version >= version

    def _nnef_flags(self) -> list[str]:
        since = {"core": "0", "pulse": "0", "extra": "0.20.20", "transformers": "0.22.0"}
        return [f"--nnef-tract-{name}" for name, version in since.items() if version == "0" or self._since(version)]

    def _run_words(self, nnef_path: Paths, inputs: Paths | None, outputs: Sequence[str]) -> list[str]:
        given = _path(inputs, "inputs")
        early = [] if self._since("0.18.0") else ["--input-bundle", given]
        late = ["--input-from-bundle", given] if self._since("0.18.0") else []
        loaded = [str(self.tract_path), os.fspath(nnef_path), *self._nnef_flags(), *early, "-O"]
        return [*loaded, "run", *late, *outputs, "--allow-float-casts"]

    # --- running it ---

    def run(
        self, args: Sequence[Paths], quiet: bool = False, *, timeout: float = TIMEOUT
    ) -> subprocess.CompletedProcess[str]:
        """Call the command with these words. ``quiet``: without telling what it writes to standard error.

        Raises CommandError where it fails, cannot be started, or takes longer than ``timeout`` seconds.
        """
        words = [str(self.tract_path), *(os.fspath(one) for one in args)]
        done = _called(words, timeout)
        if done.returncode:
            raise CommandError(_failed(words, done))
        if not quiet:
            _tell(done.stderr)
        return done

    def assert_io(
        self,
        nnef_path: Paths,
        io_npz_path: Paths | None = None,
        check_tolerance: TractCheckTolerance | str = TractCheckTolerance.EXACT,
        raise_exception: bool = True,
        *,
        input_bundle_path: Paths | None = None,
        output_bundle_path: Paths | None = None,
        timeout: float = TIMEOUT,
    ) -> bool:
        """Whether the outputs of an archive are those in a file, as the command's exit status says.

        Raises CheckError where they are not, unless ``raise_exception`` is False: then it is told in the log.
        CommandError is raised as by `run`, but where the command only fails.
        """
        words = self.assert_io_cmd_str(
            nnef_path,
            io_npz_path,
            check_tolerance,
            input_bundle_path=input_bundle_path,
            output_bundle_path=output_bundle_path,
        )
        done = _called(words, timeout)
        if done.returncode == 0:
            _tell(done.stderr)
            return True
        error = CheckError(_failed(words, done), where=os.fspath(nnef_path))
        if raise_exception:
            raise error
        logger.error("%s", error)
        return False

    def convert_onnx_to_nnef(
        self, onnx_path: Paths, io_npz_path: Paths | None, nnef_path: Paths, *, timeout: float = TIMEOUT
    ) -> None:
        """Let the command make an archive of an ONNX file. ``io_npz_path``: inputs, whose shapes count.

        Raises CommandError.
        """
        words: list[Paths] = [onnx_path, *self._nnef_flags()[:2], "dump"]
        words += ["--input-from-bundle", io_npz_path] if io_npz_path is not None else []
        self.run([*words, "--nnef", nnef_path], timeout=timeout)

    def __repr__(self) -> str:
        return f"TractCli({str(self.tract_path)!r})"


def _path(path: Paths | None, what: str) -> str:
    if path is None:
        raise TypeError(f"no file of {what} is given: io_npz_path holds both, or there is one for each")
    return os.fspath(path)


def _called(words: Sequence[str], timeout: float) -> subprocess.CompletedProcess[str]:
    """Raises CommandError where it cannot be started, or takes too long: then it is ended, with what it started."""
    try:
        with subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        ) as process:
            try:
                out, err = process.communicate(timeout=timeout)
            except BaseException:
                _end(process)
                raise
    except subprocess.TimeoutExpired:
        raise CommandError(f"it took longer than {timeout:g} s: {' '.join(words)}") from None
    except OSError as error:
        raise CommandError(f"it cannot be started: {error.strerror or error}", where=words[0]) from None
    return subprocess.CompletedProcess(list(words), process.returncode, out, err)


def _end(process: subprocess.Popen[str]) -> None:
    """End a process and those that it started, which are in a group of their own."""
    if sys.platform == "win32":  # which has no groups of this kind
        process.kill()
        return
    try:
        os.killpg(process.pid, 9)
    except OSError:  # there is no such group
        process.kill()


def _failed(words: Sequence[str], done: subprocess.CompletedProcess[str]) -> str:
    ended = f"ended with {done.returncode}" if done.returncode > 0 else f"was ended by signal {-done.returncode}"
    said = (done.stderr.strip() or done.stdout.strip())[-_SAID:]
    return f"the command {ended}: {' '.join(words)}\n{said}" if said else f"the command {ended}: {' '.join(words)}"


def _tell(stderr: str) -> None:
    """What a command that did well wrote to standard error, but for what is known to be harmless."""
    lines = [line for line in stderr.splitlines() if line.strip() and not _HARMLESS.search(line)]
    if lines:
        logger.warning("tract says: %s", "\n".join(lines)[:_SAID])
