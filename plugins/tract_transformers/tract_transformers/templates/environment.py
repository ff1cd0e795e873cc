"""Jinja's sandbox with a budget: templates reach nothing but what they are given, and do not go on for ever.

Before a template is compiled, its syntax tree is changed: loops go over values that are counted; what is written, and
what is put together, passes through the budget. The sandbox asks the budget before it calls or multiplies anything.
"""

from __future__ import annotations

from typing import Any, Final, cast

from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from tract_transformers.templates import functions
from tract_transformers.templates.budget import MOST_BITS, RenderBudget, fits, refuse, weight

_UNBOUNDED: Final = frozenset({"expandtabs", "translate", "maketrans", "center", "ljust", "rjust", "zfill", "encode"})
"""Methods of texts that no template of a conversation needs, and that make long texts."""


class BoundedEnvironment(ImmutableSandboxedEnvironment):
    """Compiles templates, and renders each with the budget that is set."""

    intercepted_binops = frozenset({"*", "**", "+", "%", "//", "/", "-"})

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True, lstrip_blocks=True, optimized=False, extensions=["jinja2.ext.loopcontrols", _Generation]
        )
        self.budget = RenderBudget()
        kept = {name: one for name, one in self.filters.items() if name in functions.FILTERS}
        kept |= {"tojson": functions.to_json}
        self.filters = {
            name: functions.bounded_filter(name, one, lambda: self.budget) for name, one in kept.items()
        } | {"join": functions.joining(lambda: self.budget)}
        self.globals = {
            "range": functions.bounded_range,
            "dict": dict,
            "namespace": self.globals["namespace"],
            "raise_exception": functions.raise_exception,
            "strftime_now": functions.strftime_now,
        }
        self.ask = _Ask(self)

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        return cast("nodes.Template", _Counting().visit(tree))

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Whether a template may have an attribute."""
        return not (isinstance(obj, str) and attr in _UNBOUNDED) and super().is_safe_attribute(obj, attr, value)

    def call(__self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805 - as in the sandbox
        """Call something, if the budget allows it."""
        if isinstance(__obj, _Ask):
            return __obj(*args)
        budget, name = __self.budget, getattr(__obj, "__name__", "")
        given = [*args, *kwargs.values()]
        budget.called(given)
        owner = getattr(getattr(__obj, "__wrapped__", __obj), "__self__", None)  # the sandbox wraps str.format
        if isinstance(owner, str):
            if name in {"format", "format_map"}:
                functions.checked_format(owner, given)
            elif name == "replace":
                functions.checked_replace(owner, given)
            elif name == "join" and given:
                return budget.joined(given[0], owner)
        return budget.made(super().call(__context, __obj, *args, **kwargs))

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Compute something, if the budget allows it."""
        self.budget.step()
        if operator == "*":
            _check_product(left, right)
        elif operator == "**" and (not isinstance(right, (int, float)) or abs(right) > MOST_BITS):
            refuse("computes a power that is too large")
        elif operator == "%":
            functions.checked_format(left, right)
        return self.budget.made(super().call_binop(context, operator, left, right))


def _check_product(left: Any, right: Any) -> None:
    """Refuse to repeat a text or a list too often."""
    for one, times in ((left, right), (right, left)):
        if isinstance(one, (str, list, tuple)) and isinstance(times, int):
            fits("makes a value", (weight(cast("object", one)) + 1) * max(times, 0))


class _Ask:
    """What the changed syntax tree calls."""

    def __init__(self, environment: BoundedEnvironment) -> None:
        self._environment = environment

    def __call__(self, what: str, value: Any) -> Any:
        budget = self._environment.budget
        if what == "text":
            weight(value)
            return budget.written(str(value))
        return getattr(budget, what)(value)


class _Generation(Extension):
    """``{% generation %}...{% endgeneration %}``, which marks what a model wrote: here, its body alone."""

    tags: set[str] = {"generation"}  # noqa: RUF012 - as the base class has it

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """The body."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _Counting(NodeTransformer):
    """Has loops, texts that are written, and values that are put together pass through the budget."""

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802 - named after the class of nodes
        """The rounds of loops."""
        self.generic_visit(node)
        node.iter = _asked("rounds", cast("nodes.Expr", node.iter))
        return node

    def visit_Output(self, node: nodes.Output) -> nodes.Node:  # noqa: N802
        """What is written."""
        self.generic_visit(node)
        texts = [nodes.Const(one.data) if isinstance(one, nodes.TemplateData) else one for one in node.nodes]
        node.nodes = [_asked("text", one) for one in texts]
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802
        """Texts put together."""
        self.generic_visit(node)
        return _asked("joined", nodes.List(node.nodes))

    def visit_List(self, node: nodes.List) -> nodes.Node:  # noqa: N802
        """Lists that are written down."""
        self.generic_visit(node)
        return _asked("made", node)

    def visit_Dict(self, node: nodes.Dict) -> nodes.Node:  # noqa: N802
        """Dictionaries that are written down."""
        self.generic_visit(node)
        return _asked("made", node)

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Node:  # noqa: N802
        """Tuples that are written down; others are names that get values."""
        self.generic_visit(node)
        return _asked("made", node) if node.ctx == "load" else node


def _asked(what: str, node: nodes.Expr) -> nodes.Expr:
    """A call of a method of the budget."""
    call = nodes.Call(nodes.EnvironmentAttribute("ask"), [nodes.Const(what), node], [], None, None)
    call.set_lineno(node.lineno or 1)
    return call
