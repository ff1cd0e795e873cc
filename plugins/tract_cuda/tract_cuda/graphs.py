"""What a state has made for sizes that it saw, and what becomes of that once others come."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Mapping
from typing import Final

from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.plugins.keys import Array
from tract_cuda.driver.device import Graph, Pinned, Stream

MOST_GRAPHS: Final = 16
"""For how many sizes a state keeps what it did in each segment."""

MOST_KEPT: Final = 1 << 16
"""How many launches there are in all that it keeps of a segment, but for the one that was used last."""


@frozen
class Uncaptured:
    """Work that is too much for a graph: ``put`` puts it into a stream."""

    put: Callable[[], None]

    def launch(self, stream: Stream) -> None:
        """Have all of it done, behind what is in the stream."""
        stream.device.enter()
        self.put()


@frozen
class Ready:
    """A segment for certain sizes: its ``work``, and the ``pinned`` memory that it copies from and to, by tensor.

    ``uploads``, ``downloads``: that memory as arrays, by tensor. ``status``: where it says that a kernel refused to do
    its work, if any can. ``launches``: how many there are.
    """

    work: Graph | Uncaptured
    uploads: tuple[tuple[OutletId, Array], ...]
    downloads: tuple[tuple[OutletId, Array], ...]
    pinned: Mapping[OutletId, Pinned]
    status: Array | None
    launches: int

    @property
    def graph(self) -> Graph | None:
        """Its graph, if it is one."""
        return self.work if isinstance(self.work, Graph) else None


class ReadySegments:
    """The segments that are ready, by their numbers and sizes; of each, those used last."""

    def __init__(self) -> None:
        self._ready: defaultdict[int, OrderedDict[Hashable, Ready]] = defaultdict(OrderedDict)
        self._over: defaultdict[int, list[Ready]] = defaultdict(list)

    def find(self, segment: int, sizes: Hashable) -> Ready | None:
        """What is ready for some sizes."""
        found = self._ready[segment].get(sizes)
        if found is not None:
            self._ready[segment].move_to_end(sizes)
        return found

    def put(self, segment: int, sizes: Hashable, ready: Ready) -> None:
        """A segment is ready for some sizes. What was not used for longest is gone where there is too much."""
        here = self._ready[segment]
        here[sizes] = ready
        while len(here) > 1 and sum(one.launches for one in here.values()) > MOST_KEPT:
            here.popitem(last=False)

    def take(self, segment: int) -> Ready | None:
        """What nobody needs any more of a segment, once another takes its place: its graph may become that one's."""
        if self._over[segment]:
            return self._over[segment].pop()
        here = self._ready[segment]
        return here.popitem(last=False)[1] if len(here) >= MOST_GRAPHS else None

    def forget(self) -> None:
        """Memory lies elsewhere now: nothing is ready any more."""
        for segment, here in self._ready.items():
            self._over[segment] = [*self._over[segment], *here.values()][-MOST_GRAPHS:]
            here.clear()
