"""Random things that NNEF can say, and a text in which it says all kinds of things."""

from __future__ import annotations

from functools import cache

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from tract_nnef.syntax import ast

PROPERTY = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
"""The same examples in every run; the fuzz target has others."""

EVERYTHING = r"""version 1.0;

extension KHR_enable_fragment_definitions;
extension tract_assert S>=0;
extension tract_registry tract_core;

fragment declared<?>(
  x: tensor<?>[],
  any: tensor<>,
  how: string = 'no'
) -> (y: tensor<?>);

fragment several<? = scalar>(
  x: tensor<?>,
  padding: (integer, integer)[] = [(0, -1), (1, 2)],
  rates: scalar[] = [],
  flag: logical = false
) -> (a: tensor<?>, b: tensor<logical>[], c: (integer, tensor<>))
{
  (a, b, c) = two(x, padding);
  [d, (e, f)] = g<scalar>(x[0], x[1:], x[:1], x[1:2], x[:]);
  h = [for i in padding, j in range_of(rates) if i > 0 yield (i, j)];
  k = -a ^ 2 + !flag * 3 - a / b if flag && true || 2 in rates else length_of(rates);
}

fragment tract_core_properties(
) -> (properties: (string, tensor<scalar>)[])
{
  properties = [("it\'s", "a \"text\""), ("inf", inf), ("less", -1e-5)];
}

graph network(x, i"a.b/c") -> (y) {
  x = external(shape = [2, S]);
  i"a.b/c" = tract_core_external(shape = [(S + 3) / 4, 3], datum_type = "U8");
  y = select(x < i"a.b/c", 1.5, (x + 1.0) * 2.0);
}
""".replace("'no'", '"no"')

PRIMITIVES = st.sampled_from(["integer", "scalar", "logical", "string", "complex", "?"]).map(ast.Primitive)
WORDS = ["a", "b", "x_1", "graph", "for", "integer", "tensor", "shape_of", "in", "inf"]
NAMES = st.sampled_from(WORDS) | st.text(max_size=5)
BINARY = ["+", "-", "*", "/", "^", "<", "<=", ">", ">=", "==", "!=", "&&", "||", "in"]


@cache
def literals():
    integers = st.integers(-(1 << 63), (1 << 64) - 1)
    return st.builds(ast.Literal, st.booleans() | integers | st.floats(allow_nan=False) | st.text(max_size=5))


def unary(inner):
    """A minus before a number that has none is a part of the number."""

    def is_said_otherwise(one):
        value = one.of.value if isinstance(one.of, ast.Literal) else ""
        return one.op == "-" and type(value) in (int, float) and not str(value).startswith("-")

    return st.builds(ast.Unary, st.sampled_from("+-!"), inner).filter(lambda one: not is_said_otherwise(one))


def tuples(inner, most=3):
    return st.lists(inner, max_size=most).map(tuple)


def invocations(inner):
    arguments = st.builds(ast.Argument, st.none() | NAMES, inner)
    return st.builds(ast.Invocation, NAMES, tuples(arguments), st.none() | PRIMITIVES)


def composed(inner):
    loops = st.lists(st.tuples(NAMES, inner), min_size=1, max_size=2).map(tuple)
    maybe = st.none() | inner
    return st.one_of(
        st.builds(ast.Array, tuples(inner)),
        st.builds(ast.Tuple, tuples(inner)),
        st.builds(ast.Subscript, inner, inner),
        st.builds(ast.Range, inner, maybe, maybe),
        unary(inner),
        st.builds(ast.Binary, st.sampled_from(BINARY), inner, inner),
        st.builds(ast.Select, inner, inner, inner),
        st.builds(ast.Comprehension, loops, maybe, inner),
        invocations(inner),
    )


@cache
def expressions():
    return st.recursive(literals() | st.builds(ast.Identifier, NAMES), composed, max_leaves=12)


@cache
def constants():
    """Literals, in arrays and tuples or not."""
    return st.recursive(
        literals(),
        lambda inner: st.builds(ast.Array, tuples(inner)) | st.builds(ast.Tuple, tuples(inner)),
        max_leaves=5,
    )


@cache
def types():
    tensors = st.builds(ast.TensorOf, st.none() | PRIMITIVES)
    return st.recursive(
        PRIMITIVES | tensors,
        lambda inner: (
            st.builds(ast.ArrayOf, inner) | st.builds(ast.TupleOf, st.lists(inner, min_size=1, max_size=3).map(tuple))
        ),
        max_leaves=4,
    )


@st.composite
def bodies(draw, taken=()):
    """Assignments to names that differ, and that are none of those taken."""
    names = draw(st.lists(NAMES.filter(lambda name: name not in taken), unique=True, max_size=4))
    made, left = [], [ast.Identifier(name) for name in names]
    while left:
        count = draw(st.integers(1, len(left)))
        some, left = tuple(left[:count]), left[count:]
        kind = draw(st.sampled_from([ast.Array, ast.Tuple]))
        target = some[0] if count == 1 and draw(st.booleans()) else kind(some)
        # one target in parentheses is that target
        target = some[0] if isinstance(target, ast.Tuple) and count == 1 else target
        made.append(ast.Assignment(target, draw(expressions())))
    return tuple(made)


@st.composite
def fragments(draw):
    names = draw(st.lists(NAMES, unique=True, max_size=4))
    middle = draw(st.integers(0, len(names)))
    parameters = [ast.Parameter(name, draw(types()), draw(st.none() | constants())) for name in names[:middle]]
    results = [ast.Result(name, draw(types())) for name in names[middle:]]
    generic = draw(st.booleans())
    item = draw(st.none() | PRIMITIVES.filter(lambda kind: kind.name != "?")) if generic else None
    body = draw(st.none() | bodies(taken=names[:middle]))
    return ast.Fragment(draw(NAMES), tuple(parameters), tuple(results), body, generic, item)


@st.composite
def documents(draw):
    extension = st.from_regex(r"[A-Za-z_][^;]*", fullmatch=True).map(str.strip)
    inputs, outputs = draw(st.lists(NAMES, unique=True, max_size=3)), draw(st.lists(NAMES, max_size=3))
    graph = ast.Graph(draw(NAMES), tuple(inputs), tuple(outputs), draw(bodies()))
    some = draw(st.lists(fragments(), max_size=2, unique_by=lambda fragment: fragment.name))
    version = draw(st.sampled_from(["1.0", "1.1", "1"]))
    return ast.Document(version, tuple(draw(st.lists(extension, max_size=2))), tuple(some), graph)


@cache
def quantizations():
    arguments = tuples(st.builds(ast.Argument, st.none() | st.sampled_from(["max", "min"]), constants()))
    names = st.sampled_from(["linear_quantize", "zero_point_linear_quantize"])
    return st.builds(ast.Quantization, st.text(max_size=5), st.builds(ast.Invocation, names, arguments))
