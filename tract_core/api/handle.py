"""Objects that can be handed over: each owns something until another object takes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, cast

from tract_core.errors import ConsumedError
from tract_core.later import Later, already
from tract_core.plugins.callers import line_of_caller

if TYPE_CHECKING:
    from tract_core.prepared.recipe import Recipe

T = TypeVar("T")
U = TypeVar("U")


class Handle(Generic[T]):
    """Owns one thing. Once that was handed over, every use raises ConsumedError, which says who has it now.

    The thing may be made only when somebody looks at it. As long as it is known how it was made, and nobody else can
    have changed it, there is a recipe.
    """

    __slots__ = ("_consumer", "_content", "_recipe")

    _advice: ClassVar[str] = "make another one"
    """What to do instead of using a consumed object."""

    def __init__(self, content: T | Later[T], recipe: Recipe | None = None) -> None:
        """``recipe``: how the content was made, where that is known."""
        self._content: T | Later[T] | None = content
        self._recipe = recipe
        self._consumer = ""

    @property
    def _held(self) -> T:
        """What it owns. Raises ConsumedError when that was handed over."""
        return _made(self._there)

    @property
    def _there(self) -> T | Later[T]:
        """What it owns, if need be as something that is made when it is asked for. Raises as `_held`."""
        if self._content is None:
            kind = type(self).__name__
            raise ConsumedError(f"this {kind} was consumed by {self._consumer} and is empty now", hint=self._advice)
        return self._content

    @property
    def _shown(self) -> T:
        """What it owns, for somebody who may change it: how it was made tells no more what it is. Raises as `_held`."""
        self._recipe = None
        return self._held

    @property
    def is_consumed(self) -> bool:
        """Whether it was handed over."""
        return self._content is None

    def _hand_over(self, to: str) -> T:
        """What it owns, which from now on belongs to ``to``. Raises ConsumedError when that happened before."""
        return _made(self._give(to))

    def _give(self, to: str) -> T | Later[T]:
        """As `_hand_over`, if need be as something that is made when it is asked for."""
        there = self._there
        self._content, self._recipe, self._consumer = None, None, f"{to}{line_of_caller()}"
        return there

    def _next(
        self, make: Callable[[T], U], tell: Callable[[U], Any], *step: object
    ) -> tuple[U | Later[U], Recipe | None, Any]:
        """What a step makes of the content, with how it was made then, and what is said of it before it is there.

        ``tell``: finds out what is said of it. ``step``: what is done, and with which values. Where another process has
        done the same, and kept a plan in the end, the step is only done when somebody looks at what it makes.
        """
        there, recipe = self._there, self._recipe and self._recipe.then(*step)
        found = None if recipe is None else recipe.found()
        if recipe is not None and found is not None:
            return Later(lambda: make(_made(there))), recipe.telling(found.value), found.value
        made = make(_made(there))
        return made, recipe and recipe.telling(tell(made)), None


def recipe_of(handle: Handle[Any]) -> Recipe | None:
    """How the content of a handle was made, where that is known, and nobody can have changed it since."""
    return handle._recipe  # pyright: ignore[reportPrivateUsage]: what users hold shows no more than they need


def was_made(handle: Handle[Any], recipe: Recipe) -> None:
    """Say how the content of a handle was made, as nobody has changed it since."""
    handle._recipe = recipe  # pyright: ignore[reportPrivateUsage]: what users hold shows no more than they need


def later_of(handle: Handle[T]) -> Later[T]:
    """The content of a handle, which is only made when somebody looks at it. Raises ConsumedError."""
    there = handle._there  # pyright: ignore[reportPrivateUsage]: what users hold shows no more than they need
    return cast("Later[T]", there) if isinstance(there, Later) else already(there)


def taken_later(handle: Handle[T], to: str) -> Later[T]:
    """As `later_of`; from now on it belongs to ``to``."""
    found = later_of(handle)
    handle._give(to)  # pyright: ignore[reportPrivateUsage]: what users hold shows no more than they need
    return found


def _made(content: T | Later[T]) -> T:
    if not isinstance(content, Later):
        return content
    later = cast("Later[T]", content)  # no content of a handle is one itself
    return later.value
