"""Archives of the standard alone, for whoever reads NNEF 1.0.5."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from tract_nnef.options import Writing
from tract_nnef.syntax.ast import Document

from tract_core.errors import InputError
from tract_torch.check.in_process import check_io
from tract_torch.established.semantic_version import SemanticVersion
from tract_torch.inference_target.base import InferenceTarget


class KhronosNNEF(InferenceTarget):
    """The standard, version 1.0.5: sizes are fixed, and there are no operators beside its own."""

    OFFICIAL_SUPPORTED_VERSIONS: ClassVar[Sequence[SemanticVersion]] = (SemanticVersion(1, 0, 5),)

    def __init__(self, version: str | SemanticVersion = "1.0.5", check_io: bool = True) -> None:
        """Raises InputError for another version than 1.0.5."""
        super().__init__(version, check_io)
        if self.version not in self.OFFICIAL_SUPPORTED_VERSIONS:
            raise InputError(f"archives are written for 1.0.5 of the standard, not for {self.version}")

    @classmethod
    def latest(cls) -> Self:
        """The newest version."""
        return cls()

    def writing(self) -> Writing:
        """Nothing but the standard."""
        return Writing(registries=frozenset())

    def post_export(
        self,
        model: torch.nn.Module,
        nnef_graph: Document,
        args: Sequence[Any] | Mapping[str, Any],
        exported_filepath: Path,
        debug_bundle_path: Path | None = None,
    ) -> None:
        """Run the archive, and compare with the module. Raises CheckError."""
        if self.check_io:
            self.report = check_io(model, exported_filepath, args, input_names=nnef_graph.graph.inputs)
