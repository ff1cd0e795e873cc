"""What ``@frozen`` makes, beside what the decorator of the standard library makes of the same class."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import math
import pickle
import typing
from collections.abc import Callable
from dataclasses import KW_ONLY, FrozenInstanceError, dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

import pytest

from tract_core.frozen import MANY, frozen

T = TypeVar("T")

Decorator = Callable[[type], Any]
BOTH: list[Decorator] = [dataclass(frozen=True, slots=True), frozen]


class Plain:
    """The base of operators: no dataclass, no slots."""


def point(decorate: Decorator) -> Any:
    @decorate
    class Point:
        """A place."""

        x: int
        y: float = 0.5
        names: list[str] = field(default_factory=list[str])
        _: KW_ONLY
        hidden: int = field(default=3, compare=False, repr=False)
        keyed: str = field(default="k", hash=False)
        count: ClassVar[int] = 7

        def norm(self) -> float:
            return abs(self.x) + abs(self.y)

    return Point


def empty(decorate: Decorator) -> Any:
    @decorate
    class Empty(Plain):
        """Nothing."""

    return Empty


def derived(decorate: Decorator) -> Any:
    @decorate
    class Base(Plain):
        """A base."""

        a: int
        b: int = 2

    @decorate
    class Derived(Base):
        """Another default for what the base has, and a field more."""

        b: int = 5
        c: tuple[int, ...] = ()

        def __post_init__(self) -> None:
            if self.a < 0:
                raise ValueError("a is negative")

    return Derived


def same_facts(of: Callable[[Any], object], make: Callable[[Decorator], Any]) -> None:
    """``of`` says the same of the two classes."""
    standard, ours = (of(make(decorate)) for decorate in BOTH)
    assert ours == standard


@pytest.mark.parametrize("make", [point, empty, derived])
@pytest.mark.parametrize(
    "of",
    [
        lambda kind: [(one.name, one.type, one.default, one.repr, one.compare) for one in dataclasses.fields(kind)],
        lambda kind: kind.__match_args__,
        lambda kind: (kind.__dataclass_params__.frozen, kind.__dataclass_params__.eq, kind.__dataclass_params__.order),
        lambda kind: tuple(kind.__slots__),
        lambda kind: (kind.__doc__, kind.__module__, kind.__qualname__, kind.__init__.__qualname__),
        lambda kind: [(one.name, one.kind) for one in inspect.signature(kind).parameters.values()],
        lambda kind: kind.__init__.__annotations__,
        lambda kind: typing.get_type_hints(kind.__init__),
    ],
)
def test_what_a_class_says_of_itself(make: Callable[[Decorator], Any], of: Callable[[Any], object]) -> None:
    same_facts(of, make)


@pytest.mark.parametrize(
    ("make", "use"),
    [
        (point, lambda kind: repr(kind(1))),
        (point, lambda kind: repr(kind(1, 2.0, ["n"], hidden=4, keyed="q"))),
        (point, lambda kind: kind(1) == kind(1, hidden=4)),
        (point, lambda kind: kind(1) == kind(1, keyed="other")),
        (point, lambda kind: kind(1) == kind(2)),
        (point, lambda kind: kind(1) == (1, 0.5)),
        (point, lambda kind: kind(1).names is kind(1).names),
        (point, lambda kind: kind(1, names=["a"]).names),
        (point, lambda kind: kind.count),
        (point, lambda kind: kind(-1).norm()),
        (point, lambda kind: dataclasses.asdict(dataclasses.replace(kind(1), y=2.5, hidden=8))),
        (empty, lambda kind: (repr(kind()), kind() == kind(), hash(kind()) == hash(kind()))),
        (derived, lambda kind: (repr(kind(1)), kind(1, 5) == kind(1), hash(kind(1)) == hash(kind(1, 5, ())))),
        (derived, lambda kind: kind(1) == kind.__mro__[1](1, 5)),
        (derived, lambda kind: isinstance(kind(1), Plain)),
    ],
)
def test_what_objects_do(make: Callable[[Decorator], Any], use: Callable[[Any], object]) -> None:
    same_facts(use, make)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda kind: kind(),
        lambda kind: kind(1, 2, 3, 4),
        lambda kind: kind(1, d=2),
        lambda kind: kind(1, a=2),
        lambda kind: kind(-1),
        lambda kind: setattr(kind(1), "a", 3),
        lambda kind: delattr(kind(1), "a"),
        lambda kind: hash(kind(1, c=[])),
        lambda kind: kind(1) < kind(2),
        lambda kind: kind(1).missing,
        lambda kind: dataclasses.replace(kind(1), missing=2),
    ],
)
def test_what_is_refused_is_refused_with_the_same_words(wrong: Callable[[Any], object]) -> None:
    said: list[tuple[type[Exception], str]] = []
    for decorate in BOTH:
        kind = derived(decorate)
        try:
            wrong(kind)
        except (TypeError, ValueError, AttributeError) as error:
            said.append((type(error), str(error)))
    assert len(said) == 2
    assert said[1] == said[0]


def test_what_is_not_a_number_equals_itself_on_every_version_of_python() -> None:
    kind = point(frozen)
    assert kind(math.nan) == kind(math.nan)
    assert kind(math.nan) != kind(float("nan"))


def test_match_takes_objects_apart() -> None:
    match derived(frozen)(1):
        case Plain(a=1, b=b):
            assert b == 5
        case other:
            raise AssertionError(other)


@frozen
class Kept:  # noqa: PLW1641 - the decorator gives it one
    """Methods of its own."""

    x: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Kept)

    def __repr__(self) -> str:
        return "kept"


def test_methods_that_a_class_has_are_kept_and_a_hash_comes_with_its_own_eq() -> None:
    assert Kept(1) == Kept(2)
    assert repr(Kept(1)) == "kept"
    assert hash(Kept(1)) == hash(Kept(1))


@frozen
class Nested:
    """For pickles, which find classes by name."""

    x: int
    y: Kept | None = None


@dataclass(frozen=True, slots=True)
class StandardOnOurs(Nested):
    """As a plugin may derive from an operator of the core."""

    z: int = 0


@frozen
class OursOnStandard(StandardOnOurs):
    """And back."""

    w: int = 1


class Undecorated(Nested):
    """A class that derives and says nothing."""


@pytest.mark.parametrize(
    "thing", [Nested(1, Kept(2)), StandardOnOurs(1, None, 3), OursOnStandard(1, None, 3, 4), Undecorated(1)]
)
@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda thing: pickle.loads(pickle.dumps(thing))])
def test_copies_and_pickles_are_equal(thing: Any, again: Callable[[Any], Any]) -> None:
    other = again(thing)
    assert type(other) is type(thing)
    assert other == thing


def test_either_kind_may_derive_from_the_other() -> None:
    assert repr(OursOnStandard(1, z=2)) == "OursOnStandard(x=1, y=None, z=2, w=1)"
    assert StandardOnOurs(1) != Nested(1)
    for thing in (StandardOnOurs(1), OursOnStandard(1)):
        with pytest.raises(FrozenInstanceError):
            thing.x = 2  # pyright: ignore[reportAttributeAccessIssue]: refused when it runs, too


def test_a_class_that_derives_without_a_decorator_may_add_attributes() -> None:
    thing: Any = Undecorated(1)
    thing.more = 2
    del thing.more
    with pytest.raises(FrozenInstanceError):
        thing.x = 2


def test_generic_classes_keep_their_parameters() -> None:
    @frozen
    class Box(Generic[T]):
        """Holds one."""

        content: T

    assert Box[int](3) == Box(3)
    assert Box.__parameters__ == (T,)  # pyright: ignore[reportAttributeAccessIssue]: Generic adds it


def test_an_object_that_holds_itself_is_printed() -> None:
    thing = Nested(1)
    object.__setattr__(thing, "y", thing)
    assert repr(thing) == "Nested(x=1, y=...)"


def test_fields_that_the_constructor_does_not_take_are_refused() -> None:
    with pytest.raises(TypeError, match=r"Late\.y is no parameter of the constructor"):

        @frozen
        class Late:
            """Half made."""

            x: int
            y: int = field(init=False)


def given(decorate: Decorator) -> Any:
    @decorate
    class Given:
        """For constructors, which make the first objects in another way than the others."""

        a: int
        b: int = 2
        c: list[int] = field(default_factory=list[int])
        d: int = field(default=4, kw_only=True)

        def __post_init__(self) -> None:
            if self.a < 0:
                raise ValueError("a is negative")

    return Given


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ((1,), {}),
        ((1, 3), {"d": 5}),
        ((), {"a": 1, "c": [1]}),
        ((1, 2, [3]), {}),
        ((), {}),
        ((1, 2, [3], 4), {}),
        ((1,), {"a": 2}),
        ((1,), {"e": 2}),
        ((), {"b": 1}),
        ((-1,), {}),
    ],
)
def test_the_first_objects_are_made_as_the_others_are(values: tuple[Any, ...], named: dict[str, Any]) -> None:
    def made(kind: Any) -> list[object]:
        found: list[object] = []
        for _ in range(MANY + 3):
            try:
                one = kind(*values, **named)
                found.append((one.a, one.b, one.c, one.d))
            except (TypeError, ValueError) as error:
                found.append((type(error), str(error)))
        return found

    assert made(given(frozen)) == made(given(dataclass(frozen=True, slots=True)))
