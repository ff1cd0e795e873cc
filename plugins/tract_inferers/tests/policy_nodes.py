"""The nodes of random policies: each function adds one, or a few as exporters write them.

A function raises IndexError or ValueError, or does nothing, where no tensor fits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from onnx_policies import node, tensor, weights
from policy_garden import Garden, Held, Shape, body_of, unsized


def _kept(x: Held, axis: int) -> int | None:
    """Where the agents are behind the axis ``axis`` is gone."""
    return None if x.agents is None or x.agents == axis else x.agents - (axis < x.agents)


# Element by element


def _unary(g: Garden) -> None:
    x = g.pick()
    g.add(
        g.choose(["Tanh", "Relu", "Neg", "Sigmoid", "Abs", "Identity", "Softsign", "Floor"]),
        [x.name],
        x.shape,
        x.agents,
    )


def _with_constant(g: Garden) -> None:
    x = g.pick()
    shape = [1 if g.maybe(0.4) or axis == x.agents else size for axis, size in enumerate(x.shape)]
    shape = shape[g.random.randrange(len(shape) + 1) :] if g.maybe(0.5) else shape
    more = 1 if g.maybe(0.15) else 0
    found = np.broadcast_shapes(x.shape, (*[1] * (more * (len(x.shape) + 1 - len(shape))), *shape))
    value = g.weights(*([1] * (len(found) - len(shape)) if more else []), *shape)
    agents = None if x.agents is None else x.agents + len(found) - len(x.shape)
    names = [x.name, value] if g.maybe(0.7) else [value, x.name]
    g.add(g.choose(["Add", "Mul", "Sub", "Max", "Min"]), names, found, agents)


def _two(g: Garden) -> None:
    x, y = g.pick(), g.pick()
    shape = np.broadcast_shapes(x.shape, y.shape)
    places = [one.agents + len(shape) - len(one.shape) for one in (x, y) if one.agents is not None]
    g.add(g.choose(["Add", "Mul", "Sub", "Max", "Min"]), [x.name, y.name], shape, places[0] if places else None)


def _where(g: Garden) -> None:
    x, y = g.pick(), g.pick()
    shape = np.broadcast_shapes(x.shape, y.shape)
    mask = g.add_hidden(g.choose(["Greater", "LessOrEqual"]), [x.name, g.constant(np.float32(g.choose([0, 0.1, 3])))])
    inputs = [mask, y.name, g.constant(np.float32(-1))] if g.maybe(0.5) else [mask, x.name, y.name]
    g.add("Where", inputs, shape, x.agents if len(shape) == len(x.shape) else None)


def _mask(g: Garden) -> None:
    x, m = g.pick(), g.pick(np.bool_)
    g.add("Where", [m.name, x.name, g.constant(np.float32(-5))], np.broadcast_shapes(x.shape, m.shape), x.agents)


def _cast(g: Garden) -> None:
    x = g.pick(np.int64, np.bool_)
    g.add("Cast", [x.name], x.shape, x.agents, to=1)


def _count(g: Garden) -> None:
    x, y = g.pick(rank=1), g.pick()
    shape = g.add_hidden("Shape", [x.name])
    at = g.axis(x, 0.6)
    size = g.add_hidden("Gather", [shape, g.constant(np.array(at))], axis=0)
    number = g.add_hidden("Cast", [size], to=1)
    g.add(g.choose(["Mul", "Div", "Add"]), [y.name, number], y.shape, y.agents)


def _noise(g: Garden) -> None:
    x = g.pick()
    if g.maybe(0.7):
        noise = g.add_hidden("RandomNormalLike", [x.name])
    else:
        noise = g.add_hidden("RandomNormal", [], shape=list(x.shape))
    nothing = g.add_hidden("Mul", [noise, g.constant(np.float32(0))])
    g.add("Add", [x.name, nothing], x.shape, x.agents)


# Products


def _matmul(g: Garden) -> None:
    x = g.pick(rank=2)
    size = g.choose([1, 2, 3, 4, 5])
    lead = (1,) if g.maybe(0.2) else ()
    shape = (*x.shape[:-1], size)
    if lead and len(x.shape) == 2:
        g.add(
            "MatMul", [x.name, g.weights(1, x.shape[-1], size)], (1, *shape), None if x.agents is None else x.agents + 1
        )
        return
    g.add("MatMul", [x.name, g.weights(*lead, x.shape[-1], size)], shape, x.agents)


def _matmul_left(g: Garden) -> None:
    x = g.pick(rank=2)
    size = g.choose([1, 2, 3])
    g.add("MatMul", [g.weights(size, x.shape[-2]), x.name], (*x.shape[:-2], size, x.shape[-1]), x.agents)


def _gemm(g: Garden) -> None:
    x = g.pick(rank=2, most=2)
    across = g.maybe(0.2)
    inner, outer = (x.shape[0], x.shape[1]) if across else (x.shape[1], x.shape[0])
    size = g.choose([1, 2, 3, 4])
    bias = g.weights(*g.choose([(size,), (1, size), (1,), (1, 1)]))
    agents = None if x.agents is None else (x.agents ^ across or 0)
    g.add("Gemm", [x.name, g.weights(inner, size), bias], (outer, size), agents or 0, transA=int(across))


_SUMS: Final = (
    *("ni,ij->nj", "ni,nj->nij", "ni,mi->nm", "ni,ni->n", "ni,nj->ij", "nij,njk->nik", "nij,nj->ni", "nij->nji"),
    *("nij->in", "ni->i", "ii->i", "nij,mij->nm", "...i,ij->...j"),
)


def _einsum(g: Garden) -> None:
    text = g.choose(_SUMS)
    terms, out = text.split("->")
    terms = terms.replace("...", "n").split(",")
    sizes: dict[str, int] = {}
    names: list[str] = []
    first: Held | None = None
    for term in terms:
        fits = [
            one
            for one in g.pool
            if one.kind is np.float32
            and len(one.shape) == len(term)
            and all(sizes.get(letter, size) == size for letter, size in zip(term, one.shape, strict=True))
        ]
        if term == "ij":
            sizes.setdefault("j", 3)
            names.append(g.weights(sizes["i"], sizes["j"]))
            continue
        x = g.choose(fits)
        first = first or x
        g.read.add(x.name)
        names.append(x.name)
        sizes |= dict(zip(term, x.shape, strict=True))
    out = out.replace("...", "n")
    g.add("Einsum", names, tuple(sizes[one] for one in out), out.index("n") if "n" in out else None, equation=text)


def _conv(g: Garden) -> None:
    x = g.pick(rank=3, most=4)
    space = len(x.shape) - 2
    if min(x.shape[2:]) < 1:
        return
    size, out = g.choose([1, 3]), g.choose([1, 2, 3])
    kernel = g.weights(out, x.shape[1], *[size] * space)
    g.add("Conv", [x.name, kernel], (x.shape[0], out, *x.shape[2:]), x.agents, pads=[size // 2] * (2 * space))


def _pool(g: Garden) -> None:
    x = g.pick(rank=3, most=4)
    kind = g.choose(["GlobalAveragePool", "GlobalMaxPool"])
    g.add(kind, [x.name], (*x.shape[:2], *[1] * (len(x.shape) - 2)), x.agents)


# Shapes


def _reshape(g: Garden) -> None:
    x = g.pick(rank=1)
    count = int(np.prod(x.shape))
    rest = int(np.prod(x.shape[1:]))
    last = x.shape[-1]
    options: list[tuple[list[int], Shape, int | None]] = [
        ([-1, rest], (count // max(rest, 1), rest), 0),
        ([x.shape[0], -1], (x.shape[0], rest), x.agents),
        ([*x.shape], x.shape, x.agents),
        ([-1], (count,), None),
        ([1, -1], (1, count), None),
        ([-1, 1], (count, 1), None),
        ([-1, *x.shape[1:], 1], (*x.shape, 1), x.agents),
        ([0, -1, 1], (x.shape[0], rest, 1), x.agents),
        ([0, -1], (x.shape[0], rest), x.agents),
        ([*x.shape[:-1], 1, last], (*x.shape[:-1], 1, last), x.agents),
        ([1, *x.shape], (1, *x.shape), None if x.agents is None else x.agents + 1),
    ]
    if last > 1 and last % 2 == 0:
        options += [
            ([-1, *x.shape[1:-1], 2, last // 2], (*x.shape[:-1], 2, last // 2), x.agents),
            ([*[0] * (len(x.shape) - 1), 2, -1], (*x.shape[:-1], 2, last // 2), x.agents),
            ([2, -1, *x.shape[1:-1], last // 2], (2, *x.shape[:-1], last // 2), x.agents),
            ([-1, last // 2], (count // (last // 2), last // 2), None),
        ]
    wanted, shape, agents = g.choose(options)
    if count == 0 or (0 in wanted and len(x.shape) < len(wanted) - 1):
        return
    g.add("Reshape", [x.name, g.constant(np.array(wanted, np.int64))], shape, agents)


def _reshape_by_shape(g: Garden) -> None:
    """``Shape -> Gather -> Concat -> Reshape``, as exporters write ``x.view(x.shape[0], -1)``."""
    x = g.pick(rank=1)
    if 0 in x.shape:
        return
    at = g.axis(x, 0.8)
    shape = g.add_hidden("Shape", [x.name])
    if g.maybe(0.5):
        size = g.add_hidden("Gather", [shape, g.constant(np.array([at]))], axis=0)
    else:
        size = g.add_hidden("Slice", [shape, g.constant(np.array([at])), g.constant(np.array([at + 1]))])
    rest = int(np.prod(x.shape)) // x.shape[at]
    front = g.maybe(0.7)
    parts = [size, g.constant(np.array([-1]))] if front else [g.constant(np.array([-1])), size]
    whole = g.add_hidden("Concat", parts, axis=0)
    g.add("Reshape", [x.name, whole], (x.shape[at], rest) if front else (rest, x.shape[at]), 0 if front else 1)


def _transpose(g: Garden) -> None:
    x = g.pick(rank=2)
    order = list(range(len(x.shape)))
    g.random.shuffle(order)
    g.add(
        "Transpose",
        [x.name],
        tuple(x.shape[axis] for axis in order),
        None if x.agents is None else order.index(x.agents),
        perm=order,
    )


def _squeeze(g: Garden) -> None:
    x = g.pick(rank=2)
    ones = [axis for axis, size in enumerate(x.shape) if size == 1 and (axis != x.agents or g.maybe(0.1))]
    axis = g.choose(ones)
    g.add("Squeeze", [x.name, g.constant(np.array([axis]))], (*x.shape[:axis], *x.shape[axis + 1 :]), _kept(x, axis))


def _unsqueeze(g: Garden) -> None:
    x = g.pick(most=5)
    axis = g.random.randrange(len(x.shape) + 1)
    agents = None if x.agents is None else x.agents + (axis <= x.agents)
    g.add("Unsqueeze", [x.name, g.constant(np.array([axis]))], (*x.shape[:axis], 1, *x.shape[axis:]), agents)


def _expand(g: Garden) -> None:
    x = g.pick(most=4)
    shape = [g.choose([1, 1, 2, 3]) if size == 1 and axis != x.agents else size for axis, size in enumerate(x.shape)]
    if g.maybe(0.2):
        shape = [1 if axis == x.agents else size for axis, size in enumerate(shape)]
    found = np.broadcast_shapes(shape, x.shape)
    g.add("Expand", [x.name, g.constant(np.array(shape, np.int64))], found, x.agents)


def _expand_constant(g: Garden) -> None:
    """A constant given to each agent by the sizes of an input, as an initial state."""
    x = g.pick(rank=1)
    shape = g.add_hidden("Shape", [x.name])
    size = g.add_hidden("Slice", [shape, g.constant(np.array([0])), g.constant(np.array([1]))])
    wanted = g.add_hidden("Concat", [size, g.constant(np.array([3]))], axis=0)
    if g.maybe(0.5):
        g.add("Expand", [g.weights(1, 3), wanted], (x.shape[0], 3), 0)
    else:
        g.add("ConstantOfShape", [wanted], (x.shape[0], 3), 0)


def _tile(g: Garden) -> None:
    x = g.pick(rank=1, most=4)
    times = [1] * len(x.shape)
    times[g.axis(x, 0.15)] = 2
    g.add(
        "Tile",
        [x.name, g.constant(np.array(times))],
        tuple(a * b for a, b in zip(x.shape, times, strict=True)),
        x.agents,
    )


def _pad(g: Garden) -> None:
    x = g.pick(rank=1, most=4)
    axis = g.axis(x, 0.15)
    pads = [0] * (2 * len(x.shape))
    pads[axis] = 1
    shape = [size + (one == axis) for one, size in enumerate(x.shape)]
    g.add("Pad", [x.name, g.constant(np.array(pads, np.int64))], tuple(shape), x.agents)


# Parts


def _concat(g: Garden) -> None:
    x = g.pick(rank=1)
    axis = g.axis(x, 0.15)
    alike = [
        one
        for one in g.pool
        if one.kind is np.float32
        and len(one.shape) == len(x.shape)
        and all(a == b or at == axis for at, (a, b) in enumerate(zip(one.shape, x.shape, strict=True)))
    ]
    shape = list(x.shape)
    if g.maybe(0.5):
        shape[axis] = g.choose([1, 2])
        names, more = [x.name, g.weights(*shape)], shape[axis]
    else:
        y = g.choose(alike)
        g.read.add(y.name)
        names, more = [x.name, y.name], y.shape[axis]
    if g.maybe(0.3):
        names.reverse()
    shape[axis] = x.shape[axis] + more
    g.add("Concat", names, tuple(shape), x.agents, axis=axis - len(shape) * g.maybe(0.3))


def _slice(g: Garden) -> None:
    x = g.pick(rank=1)
    axis = g.axis(x)
    size = x.shape[axis]
    begin, end, step = g.choose(
        [(0, 1, 1), (0, -1, 1), (1, 2**31, 1), (0, 2**31, 2), (-1, -(2**31), -1), (-1, 2**31, 1)]
    )
    shape = (
        *x.shape[:axis],
        len(range(size)[slice(begin, end if end > -(2**31) else None, step)]),
        *x.shape[axis + 1 :],
    )
    names = [g.constant(np.array([one])) for one in (begin, end, axis, step)]
    g.add("Slice", [x.name, *names], shape, x.agents)


def _gather(g: Garden) -> None:
    x = g.pick(rank=1)
    axis = g.axis(x)
    if not x.shape[axis]:
        return
    at = g.choose([0, -1, x.shape[axis] - 1])
    index = g.choose([np.array(at), np.array([at]), np.array([0, at]), np.array([[at]])])
    shape = (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :])
    agents = None if x.agents is None or x.agents == axis else x.agents + (index.ndim - 1) * (axis < x.agents)
    g.add("Gather", [x.name, g.constant(index)], shape, agents, axis=axis)


def _embed(g: Garden) -> None:
    x = g.pick(np.int64)
    width = g.choose([1, 3])
    table = g.weights(5, width)
    g.add("Gather", [table, x.name], (*x.shape, width), x.agents, axis=0)


def _gather_elements(g: Garden) -> None:
    x = g.pick(rank=1)
    axis = g.axis(x)
    if not x.shape[axis]:
        return
    best = g.add("ArgMax", [x.name], (*x.shape[:axis], 1, *x.shape[axis + 1 :]), x.agents, of=np.int64, axis=axis)
    g.add("GatherElements", [x.name, best.name], best.shape, x.agents, axis=axis)


def _gather_nd(g: Garden) -> None:
    x = g.pick(rank=2, most=2)
    if 0 in x.shape:
        return
    best = g.add("ArgMax", [x.name], (x.shape[0], 1), x.agents, of=np.int64, axis=1)
    if g.maybe(0.7):
        g.add("GatherND", [x.name, best.name], (x.shape[0],), x.agents, batch_dims=1)
    elif x.shape[1] == 1:
        g.add("GatherND", [x.name, best.name], x.shape, x.agents)


def _scatter(g: Garden) -> None:
    x = g.pick(rank=1)
    axis = g.axis(x)
    if not x.shape[axis]:
        return
    best = g.add("ArgMax", [x.name], (*x.shape[:axis], 1, *x.shape[axis + 1 :]), x.agents, of=np.int64, axis=axis)
    value = g.add_hidden("ReduceMax", [x.name], axes=[axis])
    g.add("ScatterElements", [x.name, best.name, value], x.shape, x.agents, axis=axis)


def _split(g: Garden) -> None:
    x = g.pick(rank=1)
    axis = g.axis(x)
    size = x.shape[axis]
    if size < 2:
        return
    first = g.random.randrange(1, size)
    shapes = [(*x.shape[:axis], part, *x.shape[axis + 1 :]) for part in (first, size - first)]
    names = [f"t{len(g.nodes)}a", f"t{len(g.nodes)}b"]
    g.nodes.append(node("Split", [x.name, g.constant(np.array([first, size - first]))], names, axis=axis))
    g.pool += [Held(name, shape, np.float32, x.agents) for name, shape in zip(names, shapes, strict=True)]


# Along an axis


def _along(g: Garden) -> None:
    x = g.pick(rank=1)
    axis = g.axis(x)
    kind = g.choose(["Softmax", "LogSoftmax", "CumSum", "LpNormalization", "Hardmax"])
    if 0 in x.shape or (kind == "LpNormalization" and x.shape[axis] == 1):
        return
    if kind == "CumSum":
        at = g.constant(np.array(axis))
        g.add(kind, [x.name, at], x.shape, x.agents, exclusive=int(g.maybe(0.3)), reverse=int(g.maybe(0.3)))
    else:
        g.add(kind, [x.name], x.shape, x.agents, axis=axis)


def _reduce(g: Garden) -> None:
    x = g.pick(rank=1)
    axis = g.axis(x)
    if 0 in x.shape:
        return
    kind = g.choose(["ReduceMean", "ReduceSum", "ReduceMax", "ReduceL2", "ReduceLogSumExp", "ReduceProd"])
    keep = g.maybe(0.5)
    shape = (*x.shape[:axis], *([1] * keep), *x.shape[axis + 1 :])
    agents = x.agents if keep else _kept(x, axis)
    if kind == "ReduceSum":
        g.add(kind, [x.name, g.constant(np.array([axis]))], shape, agents, keepdims=int(keep))
    else:
        g.add(kind, [x.name], shape, agents, axes=[axis], keepdims=int(keep))


def _arg(g: Garden) -> None:
    x = g.pick(rank=1)
    axis = g.axis(x)
    if not x.shape[axis]:
        return
    keep = g.maybe(0.5)
    shape = (*x.shape[:axis], *([1] * keep), *x.shape[axis + 1 :])
    agents = x.agents if keep else _kept(x, axis)
    kind = g.choose(["ArgMax", "ArgMin"])
    g.add(kind, [x.name], shape, agents, of=np.int64, axis=axis, keepdims=int(keep))


def _one_hot(g: Garden) -> None:
    x = g.pick(np.int64)
    axis = g.choose([-1, 0, 1, len(x.shape)])
    place = axis % (len(x.shape) + 1)
    if place > len(x.shape):
        return
    shape = (*x.shape[:place], 5, *x.shape[place:])
    agents = None if x.agents is None else x.agents + (place <= x.agents)
    values = g.constant(np.array([0, 1], np.float32))
    g.add("OneHot", [x.name, g.constant(np.array([5])), values], shape, agents, axis=axis)


def _topk(g: Garden) -> None:
    x = g.pick(rank=1)
    axis = g.axis(x)
    if 0 in x.shape:
        return
    count = g.random.randint(1, x.shape[axis])
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    names = [f"t{len(g.nodes)}a", f"t{len(g.nodes)}b"]
    g.nodes.append(node("TopK", [x.name, g.constant(np.array([count]))], names, axis=axis))
    g.pool += [Held(names[0], shape, np.float32, x.agents), Held(names[1], shape, np.int64, x.agents)]


def _norm(g: Garden) -> None:
    x = g.pick(rank=2)
    if 0 in x.shape:
        return
    kind = g.choose(["LayerNormalization", "BatchNormalization", "InstanceNormalization"])
    if kind == "LayerNormalization":
        axis = g.choose([-1, -1, *range(len(x.shape))])
        scale = g.weights(*x.shape[axis:])
        g.add(kind, [x.name, scale], x.shape, x.agents, axis=axis)
    elif kind == "BatchNormalization":
        values = [g.constant(np.abs(weights(x.shape[1], seed=seed)) + 0.1) for seed in range(4)]
        g.add(kind, [x.name, *values], x.shape, x.agents)
    elif len(x.shape) >= 3:
        g.add(kind, [x.name, g.weights(x.shape[1]), g.weights(x.shape[1])], x.shape, x.agents)


def _quantised(g: Garden) -> None:
    x = g.pick(rank=1)
    if 0 in x.shape:
        return
    names = [f"t{len(g.nodes)}{end}" for end in "abc"]
    g.nodes.append(node("DynamicQuantizeLinear", [x.name], names))
    g.add("DequantizeLinear", names, x.shape, x.agents)


# Bodies


def _recurrent(g: Garden) -> None:
    x = g.pick(rank=3, most=3)
    kind = g.choose(["LSTM", "GRU", "RNN"])
    gates, hidden = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind], 2
    if 0 in x.shape:
        return
    inputs = [x.name, g.weights(1, gates * hidden, x.shape[2]), g.weights(1, gates * hidden, hidden)]
    inputs.append(g.weights(1, 2 * gates * hidden) if g.maybe(0.5) else "")
    if g.maybe(0.6):
        states = [one for one in g.pool if one.shape == (1, x.shape[1], hidden) and one.kind is np.float32]
        state = g.weights(1, x.shape[1], hidden)
        if states and g.maybe(0.7):
            state = g.choose(states).name
            g.read.add(state)
        inputs += ["", state, *([state] if kind == "LSTM" else [])]
    names = [f"t{len(g.nodes)}{end}" for end in ("abc" if kind == "LSTM" else "ab")]
    g.nodes.append(node(kind, inputs, names, hidden_size=hidden))
    g.pool.append(Held(names[0], (x.shape[0], 1, x.shape[1], hidden), np.float32, 2))
    g.pool += [Held(name, (1, x.shape[1], hidden), np.float32, 1) for name in names[1:]]


def _if(g: Garden) -> None:
    x, y = g.pick(rank=1), g.pick()
    if 0 in x.shape:
        return
    way = g.choose(["of all", "of one", "of the count"])
    if way == "of all":
        number = g.add_hidden("ReduceSum", [x.name], keepdims=0)
    elif way == "of one":
        flat = g.add_hidden("Reshape", [x.name, g.constant(np.array([-1]))])
        number = g.add_hidden("Gather", [flat, g.constant(np.array([0]))])
    else:
        shape = g.add_hidden("Shape", [x.name])
        number = g.add_hidden("Cast", [g.add_hidden("Gather", [shape, g.constant(np.array(g.axis(x, 0.7)))])], to=1)
    above = g.add_hidden("Greater", [number, g.constant(np.float32(g.choose([0, 1, 2, 50])))])
    this, that = f"t{len(g.nodes)}then", f"t{len(g.nodes)}else"
    g.add(
        "If",
        [above],
        y.shape,
        y.agents,
        then_branch=body_of("then", [node("Neg", [y.name], [this])], [], [unsized(this, y.shape)]),
        else_branch=body_of("else", [node("Tanh", [y.name], [that])], [], [unsized(that, y.shape)]),
    )


def _scan(g: Garden) -> None:
    x = g.pick(rank=2)
    if 0 in x.shape:
        return
    axis = g.axis(x)
    inner = (*x.shape[:axis], *x.shape[axis + 1 :])
    states = [one for one in g.pool if one.shape == inner and one.kind is np.float32]
    state = g.choose(states).name if states and g.maybe(0.5) else g.weights(*inner)
    g.read.add(state)
    key = f"t{len(g.nodes)}"
    nodes = [node("Add", [f"{key}s", f"{key}x"], [f"{key}n"]), node("Tanh", [f"{key}n"], [f"{key}y"])]
    body = body_of(
        "body",
        nodes,
        [unsized(f"{key}s", inner), unsized(f"{key}x", inner)],
        [unsized(f"{key}n", inner), unsized(f"{key}y", inner)],
    )
    names = [f"{key}a", f"{key}b"]
    backwards = {"scan_input_directions": [1]} if g.maybe(0.3) else {}
    places = {"scan_input_axes": [axis], "scan_output_axes": [axis], **backwards}
    g.nodes.append(node("Scan", [state, x.name], names, body=body, num_scan_inputs=1, **places))
    g.pool += [Held(names[0], inner, np.float32, _kept(x, axis)), Held(names[1], x.shape, np.float32, x.agents)]


def _loop(g: Garden) -> None:
    x = g.pick()
    y = g.pick(rank=1)
    key = f"t{len(g.nodes)}"
    if g.maybe(0.6):
        times = g.constant(np.array(g.choose([0, 1, 3])))
    else:
        times = g.add_hidden("Gather", [g.add_hidden("Shape", [y.name]), g.constant(np.array(g.axis(y, 0.5)))])
    nodes = [
        node("Identity", [f"{key}c"], [f"{key}d"]),
        node("Mul", [f"{key}s", g.constant(np.float32(0.5))], [f"{key}h"]),
        node("Add", [f"{key}h", x.name], [f"{key}n"]),
    ]
    inputs = [tensor(f"{key}i", [], np.int64), tensor(f"{key}c", [], np.bool_), unsized(f"{key}s", x.shape)]
    outputs = [tensor(f"{key}d", [], np.bool_), unsized(f"{key}n", x.shape)]
    more = g.maybe(0.3)
    if more:
        outputs.append(unsized(f"{key}n", x.shape))
    body = body_of("body", nodes, inputs, outputs)
    g.add("Loop", [times, "", x.name], x.shape, x.agents, body=body) if not more else g.nodes.append(
        node("Loop", [times, "", x.name], [f"{key}a", f"{key}b"], body=body)
    )
    if more:
        g.pool.append(Held(f"{key}a", x.shape, np.float32, x.agents))


STEPS: Final[tuple[Callable[[Garden], None], ...]] = (
    *(_unary, _with_constant, _with_constant, _two, _two, _where, _mask, _cast, _count, _noise),
    *(_matmul, _matmul, _matmul_left, _gemm, _einsum, _conv, _pool),
    *(_reshape, _reshape, _reshape, _reshape_by_shape, _transpose, _squeeze, _unsqueeze),
    *(_expand, _expand_constant, _tile, _pad, _concat, _concat, _slice, _gather, _embed),
    *(_gather_elements, _gather_nd, _scatter, _split, _along, _reduce, _arg, _one_hot, _topk, _norm, _quantised),
    *(_recurrent, _if, _scan, _loop),
)
