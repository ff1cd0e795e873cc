"""One runtime per moment at which it breaks."""

from dataclasses import dataclass
from typing import ClassVar


class Construction:
    """Breaks when it is made."""

    def __init__(self):
        raise MemoryError("no room for a device")


class Question:
    """Breaks when it is asked whether it works here."""

    name = "broken-question"

    def why_unusable(self):
        """Raises."""
        raise ZeroDivisionError("devices per rack")


class Prepare:
    """Breaks when it prepares a model."""

    name = "broken-prepare"

    def why_unusable(self):
        """Says that it works."""

    def prepare(self, model):
        """Raises."""
        return model["nodes"]


class _Plan:
    def __init__(self, outputs):
        self.outputs = outputs

    def spawn(self):
        """Itself."""
        return self

    def run(self, inputs):
        """Raises, or returns what nobody asked for."""
        if self.outputs is None:
            raise RuntimeError("the device fell off the bus")
        return self.outputs


class Run(Prepare):
    """Breaks when it runs."""

    name = "broken-run"

    def prepare(self, model):
        """A plan that raises."""
        return _Plan(None)


class Lies(Prepare):
    """Returns another number of outputs than the model has, and none of them an array."""

    name = "broken-lies"

    def prepare(self, model):
        """A plan that returns texts."""
        return _Plan(["one", "two", "three"])


@dataclass(frozen=True)
class BrokenTransform:
    """Breaks when it is applied."""

    name: ClassVar[str] = "broken"

    def apply(self, model):
        """Raises."""
        raise IndexError("no such node")
