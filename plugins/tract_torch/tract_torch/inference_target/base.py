"""What all targets have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Thread, current_thread
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import torch
from tract_nnef.options import Writing
from tract_nnef.syntax.ast import Document

from tract_torch.established.semantic_version import SemanticVersion
from tract_torch.report import CheckReport
from tract_torch.wiring.lowering import Lowering


class InferenceTarget:
    """Whom an archive is written for: what it may say, and how it is checked. Targets of others derive from it.

    An export calls `pre_trace` before anything is done, `post_trace` with the document before it is written, and
    `post_export` with the archive, which stays only where that raises nothing.
    """

    OFFICIAL_SUPPORTED_VERSIONS: ClassVar[Sequence[SemanticVersion]] = ()
    """Versions of the target that archives are tested with, newest first."""

    def __init__(self, version: str | SemanticVersion, check_io: bool = False) -> None:
        """``check_io``: whether an archive is run and compared with the module. Raises InputError for no version."""
        self.version = SemanticVersion.of(version)
        self.check_io = check_io
        self._reports = WeakKeyDictionary[Thread, CheckReport | None]()
        self._latest: CheckReport | None = None

    @property
    def report(self) -> CheckReport | None:
        """What was compared in the last export of this thread, once it was; in one that made none, in the last one."""
        return self._reports.get(current_thread(), self._latest)

    @report.setter
    def report(self, report: CheckReport | None) -> None:
        self._reports[current_thread()] = self._latest = report

    @property
    def dynamic_axes(self) -> Mapping[str, Mapping[int, str]]:
        """The symbols of sizes that may be others, by the name of the tensor and the axis, which may be negative."""
        return {}

    @property
    def has_dynamic_axes(self) -> bool:
        """Whether some size may be another one than that of the example."""
        return bool(self.dynamic_axes)

    @property
    def lowering(self) -> Lowering:
        """How operators become operators of the core."""
        return Lowering()

    @property
    def keeps_states(self) -> bool:
        """Whether what runs the archive can keep buffers from one call to the next."""
        return False

    def writing(self) -> Writing:
        """Which operators the archive may use."""
        raise NotImplementedError

    def specific_fragments(self, model: torch.nn.Module) -> dict[str, str]:
        """Fragments to add to the document: their text, by name."""
        return {}

    def specific_metadata(self, model: torch.nn.Module) -> dict[str, str]:
        """What the archive says of itself: texts by name."""
        return {}

    def pre_trace(
        self, model: torch.nn.Module, input_names: Sequence[str] | None, output_names: Sequence[str] | None
    ) -> None:
        """Look at what is asked before anything is done. Raises InputError for what cannot be."""

    def post_trace(self, nnef_graph: Document, active_custom_extensions: list[str]) -> Document:
        """The document to write for ``nnef_graph``. ``active_custom_extensions``: lines that are added to it."""
        return nnef_graph

    def post_export(
        self,
        model: torch.nn.Module,
        nnef_graph: Document,
        args: Sequence[Any] | Mapping[str, Any],
        exported_filepath: Path,
        debug_bundle_path: Path | None = None,
    ) -> None:
        """Check the archive. Raises CheckError where it computes something else than the module."""
