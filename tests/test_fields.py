"""Every field of a public frozen dataclass is said: what a value holds can be read where its class is.

A field is said by its name in the docstring of its class, in double backticks, or as words
of a sentence there; or by a docstring of its own behind it, or the metadata ``doc`` that the help of transforms shows;
or by its type, where that is a class of ours of the same name, which has a docstring, as in ``fact: TypedFact``.
A class whose fields are all said elsewhere says where, with the words "fields are".
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = [ROOT / "tract_core", *sorted(path for path in (ROOT / "plugins").glob("*/tract*") if path.is_dir())]


def dataclasses(source: str) -> Iterator[ast.ClassDef]:
    """The public frozen dataclasses of a module."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            decorators = {ast.unparse(one) for one in node.decorator_list}
            if any(one == "frozen" or ("dataclass" in one and "frozen=True" in one) for one in decorators):
                yield node


def unsaid(node: ast.ClassDef) -> Iterator[str]:
    """The public fields of a class that nothing says."""
    doc = " ".join((ast.get_docstring(node) or "").split())
    for field, behind in zip(node.body, [*node.body[1:], None], strict=True):
        if not isinstance(field, ast.AnnAssign) or "ClassVar" in ast.unparse(field.annotation):
            continue
        name = ast.unparse(field.target)
        own = isinstance(behind, ast.Expr) or (field.value is not None and "'doc': " in ast.unparse(field.value))
        if not (name.startswith("_") or own or is_named(name, doc) or is_named_by(name, ast.unparse(field.annotation))):
            yield name


def is_named(name: str, doc: str) -> bool:
    """Whether a docstring has the name, or the words of it in one number or the other, or speaks of all fields."""
    words = name.strip("_").replace("_", " ").removesuffix("s")
    return "fields are" in doc or bool(re.search(rf"\b{words}s?\b|\b{name}\b", doc, re.IGNORECASE))


def is_named_by(name: str, annotation: str) -> bool:
    """Whether a class in the annotation is called like the field, as in ``fact: TypedFact``."""
    plain = name.replace("_", "").removesuffix("s")
    return any(plain in one.lower() for one in re.findall(r"\b[A-Z]\w+", annotation))


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_every_field_of_a_public_dataclass_is_said(package: Path) -> None:
    found = [
        f"{path.relative_to(ROOT)}: {node.name}.{name}"
        for path in sorted(package.rglob("*.py"))
        for node in dataclasses(path.read_text())
        for name in unsaid(node)
    ]
    assert not found


CLASS = '''
@frozen
class Window:
    """{doc}"""

    size: int
    fact: TypedFact
    other_end: int
    {own}
'''


@pytest.mark.parametrize(
    ("doc", "own", "missing"),
    [
        ("Of so many elements.", "", ["size", "other_end"]),
        ("``size``: in elements. ``other_end``: of the axis.", "", []),
        ("From one end to the other end, in sizes.", "", []),
        ("Of a ``size``.", '"""Where it stops."""', []),
        ("Of a ``size``, with an ``other`` end.", "", ["other_end"]),
        ("Its fields are those of `Conv`.", "", []),
    ],
)
def test_a_field_that_nothing_says_is_found(doc: str, own: str, missing: list[str]) -> None:
    (node,) = dataclasses(CLASS.format(doc=doc, own=own))
    assert list(unsaid(node)) == missing
