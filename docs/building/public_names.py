"""``:::{public-names} tract_core``: an entry for each public name of a package, in alphabetical order.

The names are those of the stub that lists them (`tract_core.public_names`), or of ``__all__``. What they are is read by
``autodoc``, with PyTorch and the like mocked: it knows properties, defaults and inherited members, and needs the
environment that the command's page needs anyway. A name that is another package's too has a line that leads there.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.addnodes import desc, desc_signature, pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.ext.autodoc.mock import mock
from sphinx.pycode import ModuleAnalyzer
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

LOGGER: Final = logging.getLogger(__name__)
MODULES: Final = (
    *("tract_core", "tract_core.errors", "tract_core.limits", "tract_core.model", "tract_core.plugins"),
    *("tract_core.data", "tract_core.dims", "tract_core.runtime", "tract_cpu", "tract_gguf", "tract_inferers"),
    *("tract_quantize", "tract_ray", "tract_serve", "tract_torch", "tract_transformers", "tract_view", "tract"),
    "tract.model",
)
"""Where public names are, an earlier one before a later one that has the same."""
ALSO: Final = {"tract_core": ("onnx", "nnef")}
"""What formats of others bring."""


def names(module: str, mocked: list[str]) -> list[str]:
    """The public names of a module: those of its stub, or of ``__all__``, or all that it defines."""
    with mock(mocked):
        found = import_module(module)
        listed = getattr(found, "__all__", None) or [
            name
            for name, value in vars(found).items()
            if not name.startswith("_") and getattr(value, "__module__", None) == module
        ]
    return sorted((*listed, *ALSO.get(module, ())), key=str.lower)


def home(module: str, name: str, mocked: list[str]) -> str:
    """The first module that has a public name: there it is described."""
    with mock(mocked):
        value = getattr(import_module(module), name)
        for other in MODULES[: MODULES.index(module)]:
            if name in names(other, mocked) and getattr(import_module(other), name) is value:
                return other
    return module


def kind(value: object) -> str:
    """The directive of ``autodoc`` for a value."""
    if inspect.isclass(value):
        return "exception" if issubclass(value, BaseException) else "class"
    return "function" if inspect.isroutine(value) else "data"


class PublicNames(SphinxDirective):
    """An entry for each public name of the module that is its argument."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The entries."""
        module: str = self.arguments[0]
        mocked: list[str] = self.config.autodoc_mock_imports
        with mock(mocked):
            found = import_module(module)
        self._depend_on(found)
        return [node for name in names(module, mocked) for node in self._section(module, name, found)]

    def _section(self, module: str, name: str, found: ModuleType) -> list[nodes.Node]:
        """A heading and the entry: the table of contents of a page has its names, and none of their members."""
        mocked: list[str] = self.config.autodoc_mock_imports
        first = home(module, name, mocked)
        with mock(mocked):
            value = getattr(found, name)
        section = nodes.section(ids=[nodes.make_id(f"name {name}")])
        section += nodes.title(name, "", nodes.literal(name, name))
        lines = same(module, name, first, value) if first != module else entry(module, name, value)
        text = StringList(["````{eval-rst}", *lines, "````"], module)  # docstrings are no Markdown
        self.state.nested_parse(text, 0, section)
        return [section]

    def _depend_on(self, found: ModuleType) -> None:
        """The page is made anew when the list of names is another."""
        place = Path(str(found.__file__))
        for path in (place, place.with_suffix(".pyi")):
            if path.is_file():
                self.env.note_dependency(str(path))


def entry(module: str, name: str, value: object) -> Iterator[str]:
    """What ``autodoc`` is asked."""
    if kind(value) == "data":
        yield from constant(module, name, value)
        return
    yield f".. auto{kind(value)}:: {module}.{name}"
    if inspect.isclass(value):
        yield from (
            "   :members:",
            "   :inherited-members: object, int, str, tuple, Exception, BaseException, IntEnum, Enum",
        )
    yield ""


def constant(module: str, name: str, value: object) -> Iterator[str]:
    """A constant or another name of a type, with what is written below it where it is defined."""
    stub = Path(str(import_module(module).__file__)).with_suffix(".pyi")
    found = (
        re.search(rf"^from ([\w.]+) import (?:\(\n)?\s*{name} as", stub.read_text(), re.MULTILINE)
        if stub.is_file()
        else None
    )
    said = ModuleAnalyzer.for_module(found[1] if found else module).find_attr_docs().get(("", name), [])
    yield from (f".. py:data:: {module}.{name}", f"   :value: {shown(value)}", "")
    yield from (f"   {line}" for line in said)
    yield ""


def shown(value: object) -> str:
    """A value in one line, without what differs between machines."""
    text = re.sub(r" at 0x[0-9a-f]+", "", " ".join(repr(value).split()))
    return text if len(text) < 80 else f"{text[:76]} ..."


def same(module: str, name: str, first: str, value: object) -> Iterator[str]:
    """A name that is described elsewhere."""
    yield f".. same-name:: {module}.{name}"
    yield ""
    yield f"   The same {kind(value)} as :py:obj:`{first}.{name}`."
    yield ""


def missing(environment: BuildEnvironment) -> Iterator[str]:
    """Public names that no page has."""
    python, others = environment.domains.python_domain.objects, environment.domains.standard_domain.objects
    for module in MODULES:
        for name in names(module, environment.config.autodoc_mock_imports):
            if f"{module}.{name}" not in python and ("same-name", f"{module}.{name}") not in others:
                yield f"{module}.{name}"


def warn_of_missing(_: Sphinx, environment: BuildEnvironment) -> None:
    """Once all pages are read."""
    for name in missing(environment):
        LOGGER.warning("the public name %s is on no page: docs/api has a page for each module", name)


def name_by_import(app: Sphinx, doctree: nodes.document) -> None:
    """Names that two distributions have, as ``Fact`` and ``Runtime``, are those that the module of an entry imports."""
    for described in doctree.findall(desc):
        signature = described[0]
        for node in described.findall(pending_xref) if "module" in signature else ():
            if (target := node["reftarget"]) in _several(tuple(app.config.autodoc_mock_imports)):
                imports = _imports(_module_of(signature, app.config.autodoc_mock_imports))
                node["reftarget"] = imports.get(target, target)


@cache
def _several(mocked: tuple[str, ...]) -> set[str]:
    """Public names that are not one thing."""
    first = Counter(
        name for module in MODULES for name in names(module, [*mocked]) if home(module, name, [*mocked]) == module
    )
    return {name for name, count in first.items() if count > 1}


def _module_of(signature: desc_signature, mocked: list[str]) -> str:
    with mock(mocked):
        found = import_module(signature["module"])
        return getattr(getattr(found, signature["fullname"].partition(".")[0]), "__module__", signature["module"])


@cache
def _imports(module: str) -> dict[str, str]:
    """Classes that a module has or imports, and from where, also those for type checkers alone."""
    nodes_of_it = list(ast.walk(ast.parse(Path(str(import_module(module).__file__)).read_text())))
    own = {node.name: f"{module}.{node.name}" for node in nodes_of_it if isinstance(node, ast.ClassDef)}
    lines = [node for node in nodes_of_it if isinstance(node, ast.ImportFrom)]
    return own | {one.name: f"{node.module}.{one.name}" for node in lines for one in node.names}


def setup(app: Sphinx) -> dict[str, Any]:
    """What Sphinx calls."""
    app.add_object_type(
        "same-name", "same-name", objname="other name"
    )  # none of Python's, where one name has one place
    app.connect("env-check-consistency", warn_of_missing)
    app.connect("doctree-read", name_by_import)
    app.add_directive("public-names", PublicNames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
