"""The best boxes of each image and class: one after the other, and what overlaps with it much is out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tract_llvm.language.buffers import Buffer
from tract_llvm.language.types import F64, INDEX, U64, ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_core.limits import MAX_SIZE
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.signature import Memory, Signature, Size, Taken

_CORNERS = 4


@frozen
class KeepBoxesPlan:
    """Which boxes are kept, and how many of each class of an image. A task is one of these.

    ``boxes``, ``scores``, ``asked``, ``overlap``: the types of these inputs, the last one that of the share.
    ``centred``: whether a box is a centre and its sizes, rather than two corners. ``lanes``: of vectors of scores.
    """

    boxes: ElementType
    scores: ElementType
    asked: ElementType
    overlap: ElementType
    centred: bool
    lanes: int

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "keep_boxes"

    @property
    def signature(self) -> Signature:
        """What it is called with. ``size``: of boxes of an image; ``room``: for those that are kept in one task."""
        inputs = Memory("boxes", self.boxes), Memory("scores", self.scores), Memory("asked", self.asked)
        limits = Memory("overlap", self.overlap), Memory("least", self.scores)
        results = Memory("kept", INDEX), Memory("counts", INDEX)
        return Signature.of(Size("size"), Size("classes"), Size("room"), *inputs, *limits, *results)

    def emit(self, k: Kernel) -> None:
        """Task by task, one class of one image."""
        taken = self.signature.taken(k)
        with k.loop("task", k.end, k.begin) as task:
            taken.memory("counts")[task] = _Class(self, k, taken, task).write()


class _Class:
    """The boxes of one class of an image, while the kernel is written."""

    def __init__(self, plan: KeepBoxesPlan, k: Kernel, taken: Taken, task: Value) -> None:
        self._plan, self._k, self._size = plan, k, taken.size("size")
        self._boxes = taken.memory("boxes").at(task // taken.size("classes") * self._size * _CORNERS)
        self._scores = taken.memory("scores").at(task * self._size)
        self._kept, self._room = taken.memory("kept").at(task * taken.size("room")), taken.size("room")
        self._asked, self._least = taken.memory("asked"), taken.memory("least")
        self._overlap = k.convert(taken.memory("overlap")[0], F64)
        self._left: Buffer = k.scratch(INDEX)
        self._count = k.variable(k.index(0))

    def write(self) -> Value:
        """Choose boxes. Gives how many there are."""
        k, kept = self._k, self._k.variable(self._k.index(0))
        self._collect()
        most = k.smaller(self._most(), self._room)
        with k.loop_while("box", lambda: (kept.value < most) & (self._count.value > 0)):
            best = self._best()
            box = self._left[best]
            self._kept[kept.value] = box
            kept.value = kept.value + 1
            self._drop(best, box)
        return kept.value

    def _most(self) -> Value:
        """How many may be kept."""
        asked = self._k.convert(self._asked[0], INDEX)
        return self._k.select(asked < 0, self._k.index(MAX_SIZE), asked) if self._plan.asked == U64 else asked

    def _collect(self) -> None:
        """Note the boxes, in order, whose score is good enough."""
        k, lanes, least = self._k, self._plan.lanes, self._least[0]
        whole = self._size - self._size % lanes
        with k.loop("vector", whole, step=lanes) as begin:
            some = k.any(self._scores.vector(begin, lanes) > least.splat(lanes))
            with k.when(some):
                self._collect_of(begin, begin + lanes, least)
        self._collect_of(whole, self._size, least)

    def _collect_of(self, begin: Value, end: Value, least: Value) -> None:
        k, count = self._k, self._count
        with k.loop("score", end, begin) as place, k.when(self._scores[place] > least):
            self._left[count.value] = place
            count.value = count.value + 1

    def _best(self) -> Value:
        """Where the best of those that are left is noted; of equal ones the first."""
        k, best = self._k, self._k.variable(self._k.index(0))
        score = k.variable(self._scores[self._left[0]])
        with k.loop("left", self._count.value, 1) as place:
            found = self._scores[self._left[place]]
            with k.when(found > score.value):
                best.value, score.value = place, found
        return best.value

    def _drop(self, best: Value, box: Value) -> None:
        """Leave out the one that was chosen, and those that have too much in common with it."""
        k, corners, still = self._k, self._corners(box), self._k.variable(self._k.index(0))
        with k.loop("left", self._count.value) as place:
            other = self._left[place]
            with k.when(place.differs(best) & ~(self._share(corners, self._corners(other)) > self._overlap)):
                self._left[still.value] = other
                still.value = still.value + 1
        self._count.value = still.value

    def _corners(self, box: Value) -> list[Value]:
        """The smallest and the largest place of a box along both axes."""
        first, second, third, fourth = (
            self._k.convert(self._boxes[box * _CORNERS + number], F64) for number in range(_CORNERS)
        )
        ends = [(first, third), (second, fourth)]
        if self._plan.centred:
            ends = [(centre - size / 2, centre + size / 2) for centre, size in ends]
        return [choose(*pair) for choose in (self._smaller, self._larger) for pair in ends]

    def _share(self, one: list[Value], other: list[Value]) -> Value:
        """The area that two boxes have in common, as a share of what they cover: in the order of the meaning."""
        k, zero = self._k, self._k.constant(0, F64)
        sides = [
            self._larger(self._smaller(one[axis + 2], other[axis + 2]) - self._larger(one[axis], other[axis]), zero)
            for axis in range(2)
        ]
        common = sides[0] * sides[1]
        union = _area(one) + _area(other) - common
        return k.select(union > 0, common / union, zero)

    def _smaller(self, a: Value, b: Value) -> Value:
        return self._chosen(lambda a, b: a < b, a, b)

    def _larger(self, a: Value, b: Value) -> Value:
        return self._chosen(lambda a, b: a > b, a, b)

    def _chosen(self, is_first: Callable[[Any, Any], Value], a: Value, b: Value) -> Value:
        """One of two numbers; what is no number where one of them is none."""
        return self._k.select(is_first(a, b) | a.differs(a), a, b)


def _area(corners: list[Value]) -> Value:
    return (corners[2] - corners[0]) * (corners[3] - corners[1])


@frozen
class BoxesPlan:
    """The image, the class and the number of each box that is kept. A task is a class of an image."""

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "boxes"

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        memory = Memory("kept", INDEX), Memory("starts", INDEX), Memory("result", INDEX)
        return Signature.of(Size("classes"), Size("room"), *memory)

    def emit(self, k: Kernel) -> None:
        """result[start + n] = image, class, kept[n]"""
        taken = self.signature.taken(k)
        classes, room = taken.size("classes"), taken.size("room")
        kept, starts, result = map(taken.memory, ("kept", "starts", "result"))
        with k.loop("task", k.end, k.begin) as task:
            begin = starts[task]
            with k.loop("box", starts[task + 1] - begin) as number:
                row = result.at((begin + number) * 3)
                row[0], row[1], row[2] = task // classes, task % classes, kept[task * room + number]
