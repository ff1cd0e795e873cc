"""What happens while a module is exported: on which line of which module something is found out about sizes."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Final

import torch

from tract_torch.capture.rewritten import Rewritten

_OURS: Final = (f"{Path(str(torch.__file__)).parent}/", f"{Path(__file__).parents[1]}/")


class Watching(Rewritten):
    """Exports as `Rewritten`, and notes where PyTorch decides that a size must be this or that.

    ``places``: for each such decision, by its number, the line that led to it.
    """

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self.module = module
        self.environment: Any = None
        self.places: dict[int, str] = {}
        self._count = 0

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """The result of the function, or of what stands for it."""
        self._note(args)
        try:
            return super().__torch_function__(func, types, args, kwargs)
        finally:
            self._note(args)

    def _note(self, args: Sequence[Any]) -> None:
        if self.environment is None:
            modes = [getattr(one, "fake_mode", None) for one in args]
            self.environment = next((mode.shape_env for mode in modes if mode is not None), None)
        if self.environment is None or len(self.environment.guards) <= self._count:
            return
        frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        frames = traceback.walk_stack(frame)
        place = place_of_frames(list(frames), self.module)
        self.places |= dict.fromkeys(range(self._count, len(self.environment.guards)), place or "?")
        self._count = len(self.environment.guards)

    def lines(self, symbol: str) -> list[str]:
        """Where something was found out about a symbol of PyTorch."""
        guards = self.environment.guards if self.environment is not None else []
        about = [place for place, guard in enumerate(guards) if symbol in map(str, guard.expr.free_symbols)]
        return list(dict.fromkeys(self.places[place] for place in about if self.places.get(place, "?") != "?"))


def place_of_error(trace: TracebackType | None, module: torch.nn.Module) -> str | None:
    """The innermost line of the user's own code, and the module that it is of."""
    return place_of_frames(list(traceback.walk_tb(trace))[::-1], module)


def place_of_frames(frames: Iterable[tuple[FrameType, int]], module: torch.nn.Module) -> str | None:
    """The first line that is neither PyTorch's nor ours, and the module that it is of; ``frames``: innermost first."""
    names = {id(part): name for name, part in module.named_modules()}
    line: str | None = None
    for frame, number in frames:
        code = frame.f_code
        if line is None and not code.co_filename.startswith((*_OURS, "<")):
            line = f"{code.co_filename}, line {number}, in {code.co_name}"
        part = names.get(id(frame.f_locals.get("self"))) if "self" in frame.f_locals else None
        if line is not None and part is not None:
            return f"module {part!r}, {line}" if part else line
    return line
