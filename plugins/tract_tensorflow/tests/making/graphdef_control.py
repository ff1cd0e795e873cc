"""Branches, loops and arrays of tensors, as TensorFlow 1 writes them into graphs."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf
from graphdef_drawn import family, floats, i32
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

v1 = tf.compat.v1
v1.disable_control_flow_v2()

TRUE, FALSE = np.array(True), np.array(False)


def chained(p, x):
    for _ in range(3):
        x = v1.cond(p, lambda x=x: x * 0.5, lambda x=x: x + 1.0)
    return x, v1.cond(p, lambda: x - 1.0, lambda: x)


def crossed(p, x):
    """Two predicates, in turn: neither ``If`` may wait for what waits for it."""
    q = tf.reduce_sum(x) > 0
    a = v1.cond(p, lambda: x + 1.0, lambda: x)
    b = v1.cond(q, lambda: a * 2.0, lambda: a)
    c = v1.cond(q, lambda: x * 3.0, lambda: -x)
    return b, v1.cond(p, lambda: c - 1.0, lambda: c + x)


def nested(p, x):
    def inner():
        y = x * 2.0
        return v1.cond(tf.reduce_sum(y) > 0, lambda: y + 1.0, lambda: y - x), tf.constant(3)

    return v1.cond(p, inner, lambda: (x, tf.size(x)))


def numbered(x):
    def pick(n):
        return lambda: x * float(n)

    total = tf.cast(tf.reduce_sum(x), tf.int32)
    return v1.case([(total > 4, pick(2)), (total > 1, pick(3))], default=pick(4))


def merged(p, x):
    """Which input of a Merge came."""
    no, yes = tf.raw_ops.Switch(data=x, pred=p)
    return tf.raw_ops.Merge(inputs=[tf.exp(yes), tf.tanh(no)])


def training(x):
    """A predicate that is a constant: what is dead is not looked at."""
    off = tf.constant(False)
    no, yes = tf.raw_ops.Switch(data=x, pred=tf.identity(off))
    return tf.raw_ops.Merge(inputs=[tf.raw_ops.Rint(x=yes), no * 2.0])[0], no + 1.0


def guarded(x):
    with tf.control_dependencies([v1.Assert(tf.reduce_sum(x) < 100.0, [x])]):
        return tf.identity(x) * 2.0


@family
def branches(add):
    def both(name, function, *inputs, fixed=()):
        for chosen in (TRUE, FALSE):
            add(f"cond_{name}_{bool(chosen)}", function, chosen, *inputs, fixed=fixed)

    both("plain", lambda p, x: v1.cond(p, lambda: tf.nn.relu(x), lambda: x * 2.0 + 1.0), floats(2, 3))
    both("itself", lambda p, x: v1.cond(p, lambda: x, lambda: -x), floats(2, 3))
    both(
        "constant", lambda p, x: v1.cond(p, lambda: tf.constant([1.0, 2.0]), lambda: tf.reduce_sum(x, 0)), floats(3, 2)
    )
    both("sizes", lambda p, x: v1.cond(p, lambda: tf.concat([x, x], 0), lambda: x), floats(3, 2))
    both(
        "several", lambda p, x, y: v1.cond(p, lambda: (x + y, y, x), lambda: (x - y, x, y * 3.0)), floats(2), floats(2)
    )
    both("fixed", lambda p, x: v1.cond(p, lambda: tf.tanh(x), lambda: tf.exp(x)), floats(3), fixed=(0,))

    both("chained", chained, floats(3))

    both("crossed", crossed, floats(3))

    both("nested", nested, floats(4))
    both("nested_below", nested, -np.abs(floats(4)))

    for top in (6, 2, 0):
        add(f"case_{top}", numbered, np.array([top, 0.5], np.float32))

    both("which", merged, floats(3))
    both("which_fixed", merged, floats(3), fixed=(0,))

    add("folded", training, floats(3))

    add("asserted", guarded, floats(3))


def loop(condition, body, start, **options):
    return v1.while_loop(condition, body, start, **options)


def collatz(n):
    return loop(
        lambda n, _: n > 1,
        lambda n, steps: (tf.where(n % 2 == 0, n // 2, 3 * n + 1), steps + 1),
        (n, tf.constant(0)),
    )


def grows(x):
    shapes = (tf.TensorShape([]), tf.TensorShape([None, 3]))
    return loop(lambda i, _: i < 3, lambda i, y: (i + 1, tf.concat([y, x], 0)), (0, x), shape_invariants=shapes)[1]


def swapped(a, b):
    return loop(lambda i, *_: i < 3, lambda i, a, b: (i + 1, b, a + b), (0, a, b))


def in_loop(x):
    def inner(y):
        return loop(lambda j, _: j < 2, lambda j, z: (j + 1, z * 0.5 + x), (0, y))[1]

    return loop(lambda i, _: i < 3, lambda i, y: (i + 1, inner(y) - x), (0, x))[1]


def with_branch(x):
    def step(i, y):
        more = v1.cond(tf.reduce_sum(y) > 0, lambda: y - x, lambda: tf.ones_like(y))
        return i + 1, y * 0.5 + more

    return loop(lambda i, _: i < 4, step, (0, x))


def in_branch(p, x):
    def several():
        return loop(lambda i, _: i < 3, lambda i, y: (i + 1, y * 2.0 - x), (0, x))[1]

    return v1.cond(p, several, lambda: tf.exp(x))


def until(x, n):
    """A bound that is an input, and a condition of two parts."""
    return loop(
        lambda i, y: tf.logical_and(i < n, tf.reduce_sum(y) < 50.0),
        lambda i, y: (i + 1, y * y + 1.0),
        (0, x),
        maximum_iterations=7,
    )


def behind(x):
    first = loop(lambda i, _: i < 2, lambda i, y: (i + 1, y + x), (0, x))[1]
    return loop(lambda i, _: i < 2, lambda i, y: (i + 1, y * first), (0, first))[1]


@family
def frames(add):
    add("counted", lambda x: loop(lambda i, _: i < 4, lambda i, y: (i + 1, tf.tanh(y) + x), (0, x)), floats(2, 3))
    add("none", lambda x: loop(lambda i, _: i < 0, lambda i, y: (i + 1, y * 2.0), (0, x)), floats(2, 3))
    add("one", lambda x: loop(lambda y: tf.reduce_sum(y) < 100.0, lambda y: y + 10.0, [x]), floats(3))

    for number in (1, 7, 27):
        add(f"collatz_{number}", collatz, np.array(number, np.int32))

    add("grows", grows, floats(2, 3))

    add("swapped", swapped, floats(2), floats(2))

    add("in_loop", in_loop, floats(2, 2))

    add("with_branch", with_branch, floats(2, 2))

    for chosen in (TRUE, FALSE):
        add(f"in_branch_{bool(chosen)}", in_branch, chosen, floats(3))

    for count in (0, 3, 20):
        add(f"until_{count}", until, floats(3), np.array(count, np.int32))

    add("one_behind_another", behind, floats(3))


def mapped(x):
    items = tf.TensorArray(tf.float32, tf.shape(x)[0]).unstack(x)
    found = tf.TensorArray(tf.float32, tf.shape(x)[0])

    def step(i, found):
        piece = items.read(i)
        return i + 1, found.write(i, piece * 2.0 + tf.reduce_sum(piece))

    return loop(lambda i, _: i < tf.shape(x)[0], step, (0, found))[1].stack()


def backwards(x):
    size = tf.shape(x)[0]
    found = tf.TensorArray(tf.float32, size)
    step = lambda i, found: (i + 1, found.write(size - 1 - i, x[i]))  # noqa: E731
    return loop(lambda i, _: i < size, step, (0, found))[1].stack()


def unrolled(x):
    found = tf.TensorArray(tf.float32, 3, clear_after_read=False)
    for place in (2, 0, 1):
        found = found.write(place, x * float(place))
    return found.stack(), found.read(1), found.size(), found.gather([2, 0]), found.concat()


def scattered(x):
    found = tf.TensorArray(tf.float32, 4, clear_after_read=False).scatter([3, 1, 0, 2], x)
    return found.stack(), found.read(3)


def recurrent(x, lengths, w):
    """As dynamic_rnn: states stay where a sequence has ended."""
    steps = tf.shape(x)[0]
    items = tf.TensorArray(tf.float32, steps).unstack(x)
    found = tf.TensorArray(tf.float32, steps)

    def step(time, state, found):
        new = tf.tanh(items.read(time) + state @ w)
        ended = (time >= lengths)[:, None]
        state = tf.where(tf.broadcast_to(ended, tf.shape(state)), state, new)
        out = tf.where(tf.broadcast_to(ended, tf.shape(state)), tf.zeros_like(new), new)
        return time + 1, state, found.write(time, out)

    first = tf.zeros_like(x[0])
    _, state, found = loop(lambda time, *_: time < steps, step, (0, first, found))
    return found.stack(), state


def lists(x):
    """Lists that grow and shrink."""
    shape = tf.constant([2], tf.int32)
    items = tf.raw_ops.EmptyTensorList(element_shape=shape, max_num_elements=-1, element_dtype=tf.float32)
    for factor in (1.0, 2.0, 3.0):
        items = tf.raw_ops.TensorListPushBack(input_handle=items, tensor=x * factor)
    shorter, last = tf.raw_ops.TensorListPopBack(input_handle=items, element_shape=shape, element_dtype=tf.float32)
    length = tf.raw_ops.TensorListLength(input_handle=shorter)
    stacked = tf.raw_ops.TensorListStack(input_handle=shorter, element_shape=shape, element_dtype=tf.float32)
    return stacked, last, length


def pushed_in_loop(x):
    shape = tf.constant([3], tf.int32)
    items = tf.raw_ops.EmptyTensorList(element_shape=shape, max_num_elements=-1, element_dtype=tf.float32)

    def step(i, y, items):
        return i + 1, y * 0.5, tf.raw_ops.TensorListPushBack(input_handle=items, tensor=y + x[i])

    _, _, items = loop(lambda i, *_: i < tf.shape(x)[0], step, (0, x[0], items))
    return tf.raw_ops.TensorListStack(input_handle=items, element_shape=shape, element_dtype=tf.float32)


@family
def arrays(add):

    for size in (0, 1, 5):
        add(f"mapped_{size}", mapped, floats(size, 2, 3))

    add("map_fn", lambda x: v1.map_fn(lambda piece: piece * piece, x), floats(4, 3))
    add("scan", lambda x: v1.scan(lambda a, b: a * 0.5 + b, x), floats(4, 3))
    add("scan_from", lambda x: v1.scan(lambda a, b: a * 0.5 + b, x, tf.ones_like(x[0]), reverse=True), floats(4, 3))
    add("foldl", lambda x: v1.foldl(lambda a, b: a * b, x), floats(4, 3))

    add("backwards", backwards, floats(4, 3))

    add("unrolled", unrolled, floats(2, 3))

    add("scattered", scattered, floats(4, 2))

    add("recurrent", recurrent, floats(5, 2, 3), i32(5, 2), floats(3, 3), fixed=(2,))

    add("pushed", lists, floats(2))

    add("pushed_in_loop", pushed_in_loop, floats(4, 3))


def frozen(function, *shapes):
    """A function of tensors that puts the graph of another one in place, its branches and loops lowered.

    So they are in frozen graphs that converters of TensorFlow 2 write.
    """
    specs = [tf.TensorSpec(shape, kind) for shape, kind in shapes]
    concrete = tf.function(function, input_signature=specs).get_concrete_function()
    found = convert_variables_to_constants_v2(concrete, lower_control_flow=True)
    names = [tensor.name for tensor in found.inputs]

    def make(*inputs):
        given = dict(zip(names, inputs, strict=True))
        definition = found.graph.as_graph_def()
        own = {name.partition(":")[0] for name in names}  # in whose place the inputs are
        others = [node for node in definition.node if node.name not in own]
        del definition.node[:]
        definition.node.extend(others)
        return tf.import_graph_def(definition, given, [one.name for one in found.outputs])

    return make


def layer(kind, *arguments, **options):
    """A recurrent layer of Keras with weights that are drawn here."""
    found = kind(*arguments, **options)
    found.build((None, None, 4))
    found.set_weights([floats(*one.shape) * 0.5 for one in found.weights])
    return found


def in_one_another(x):
    def step(i, y):
        more = lambda: tf.while_loop(lambda j, _: j < 2, lambda j, z: (j + 1, z + 1.0), (0, y))[1]  # noqa: E731
        return i + 1, tf.cond(tf.reduce_sum(y) > 0, lambda: y * 0.5 - x, more)

    return tf.while_loop(lambda i, _: i < 5, step, (0, x))[1]


@family
def lowered(add):
    open_ = ((None, None, 4), tf.float32)
    for name, kind in (("LSTM", keras.layers.LSTM), ("GRU", keras.layers.GRU), ("RNN", keras.layers.SimpleRNN)):
        found = layer(kind, 5, return_sequences=True)
        add(f"{name}_all", frozen(lambda x, found=found: found(x), open_), floats(2, 7, 4))
        found = layer(kind, 3)
        add(f"{name}_last", frozen(lambda x, found=found: found(x), ((None, 6, 4), tf.float32)), floats(1, 6, 4))
    both = layer(keras.layers.Bidirectional, keras.layers.LSTM(3, return_sequences=True))
    add("both_ways", frozen(both, open_), floats(2, 5, 4))
    add(
        "cond",
        frozen(lambda x: tf.cond(tf.reduce_sum(x) > 0, lambda: x * 2.0, lambda: x - 1.0), open_),
        floats(1, 2, 4),
    )
    add("in_one_another", frozen(in_one_another, open_), floats(1, 2, 4))
    add("map_fn", frozen(lambda x: tf.map_fn(lambda piece: piece * tf.reduce_sum(piece), x), open_), floats(3, 2, 4))
    switched = frozen(
        lambda n, x: tf.switch_case(n, [lambda: x, lambda: x * 2.0, lambda: tf.concat([x, x], 0)]),
        ((), tf.int32),
        open_,
    )
    for number in (-1, 0, 1, 2, 3):
        add(f"case_{number}", switched, np.array(number, np.int32), floats(1, 2, 4))


class Cell:
    """A recurrent network's step, as TensorFlow 1 asks for it."""

    state_size = output_size = 3

    def __init__(self, weights):
        self.weights = weights

    def zero_state(self, batch, kind):
        return tf.zeros([batch, 3], kind)

    def call(self, inputs, state):
        raise NotImplementedError

    def __call__(self, inputs, state, scope=None):
        state = tf.tanh(tf.concat([inputs, state], 1) @ self.weights)
        return state * 2.0, state


def best_boxes(boxes, scores):
    """As detectors of TensorFlow 1 end: for each image, the best boxes of each class, as many as always."""

    def of_one(given):
        boxes, scores = given
        kept = tf.image.non_max_suppression(boxes, scores, 5, 0.5, 0.2)
        count = tf.size(kept)
        guard = v1.Assert(count <= 5, [count])
        with tf.control_dependencies([guard]):
            short = v1.cond(count < 5, lambda: tf.pad(kept, [[0, 5 - count]]), lambda: kept)
        short = tf.reshape(short, [5])
        alive = tf.cast(tf.range(5) < count, tf.float32)
        return tf.gather(boxes, short) * alive[:, None], tf.gather(scores, short) * alive, count

    return v1.map_fn(of_one, (boxes, scores), dtype=(tf.float32, tf.float32, tf.int32), parallel_iterations=32)


def corners(*shape):
    found = floats(*shape, 4, low=0.0, high=1.0)
    return np.concatenate([np.minimum(found[..., :2], found[..., 2:]), np.maximum(found[..., :2], found[..., 2:])], -1)


@family
def old_networks(add):
    weights = floats(7, 3)

    def recurrent(x, lengths):
        return v1.nn.dynamic_rnn(Cell(tf.constant(weights)), x, lengths, dtype=tf.float32)

    add("dynamic_rnn", recurrent, floats(3, 5, 4), np.array([5, 2, 0], np.int32))
    add("dynamic_rnn_all", lambda x: recurrent(x, None), floats(2, 4, 4))
    add("detection", best_boxes, corners(3, 12), floats(3, 12, low=0.0, high=1.0))
    add(
        "resized",
        lambda x: v1.map_fn(lambda one: v1.image.resize_bilinear(one[None], [4, 5])[0] * 2.0 - 1.0, x),
        floats(2, 6, 7, 3),
    )
