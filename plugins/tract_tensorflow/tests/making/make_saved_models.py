"""Writes saved_models.npz: small SavedModels, what they are given, and what TensorFlow computes.

Run it where TensorFlow is installed. For each model there are ``NAME/file/PATH``, the bytes of its files, and for each
signature ``NAME/SIGNATURE/RUN/x/INPUT`` and ``NAME/SIGNATURE/RUN/y/OUTPUT``.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

tf.compat.v1.disable_control_flow_v2()
RNG = np.random.default_rng(38)
MODELS = {}


def floats(*shape):
    return RNG.uniform(-2, 2, shape).astype(np.float32)


def model(*runs):
    """``runs``: what each run is given, by input; the function returns the signatures of a module."""

    def decorate(make):
        MODELS[make.__name__] = (make, runs)
        return make

    return decorate


def spec(*shape, kind=tf.float32, name="x"):
    return tf.TensorSpec(shape, kind, name=name)


def signatures(module, **functions):
    for name, (function, specs) in functions.items():
        setattr(module, f"{name}_function", tf.function(function, input_signature=specs))
    return module, {name: getattr(module, f"{name}_function") for name in functions}


@model({"x": floats(3, 4)}, {"x": floats(1, 4)})
def dense():
    module = tf.Module()
    module.w, module.b = tf.Variable(floats(4, 5)), tf.Variable(floats(5))
    module.halves = tf.Variable(tf.cast(floats(5), tf.bfloat16))

    def default(x):
        y = tf.nn.relu(x @ module.w + module.b)
        return {
            "y": y,
            "again": y,
            "x_itself": x,
            "seven": tf.constant([7.0]),
            "scaled": y * tf.cast(module.halves, tf.float32),
        }

    return signatures(
        module,
        serving_default=(default, [spec(None, 4)]),
        other=(lambda x: {"sum": tf.reduce_sum(x, -1)}, [spec(None, 4)]),
    )


@model({"a": np.array([[1, 4], [0, 2]], np.int32), "b": np.float32(2)})
def two_inputs():
    module = tf.Module()
    module.table, module.one = tf.Variable(floats(5, 3)), tf.Variable(1.5)
    module.flag = tf.Variable(True)

    def default(a, b):
        rows = tf.gather(module.table, a) * b
        return {"rows": rows, "one": module.one * b, "flag": tf.logical_and(module.flag, b > 0)}

    return signatures(module, serving_default=(default, [spec(None, None, kind=tf.int32, name="a"), spec(name="b")]))


@model({"x": floats(3)}, {"x": -np.ones(3, np.float32)})
def branches():
    module = tf.Module()
    module.w = tf.Variable(floats(3))

    def default(x):
        y = tf.cond(tf.reduce_sum(x) > 0, lambda: x * module.w, lambda: x - 1.0)
        z = tf.cond(tf.shape(x)[0] > 2, lambda: tf.concat([y, y], 0), lambda: y)
        return {"y": y, "z": z}

    return signatures(module, serving_default=(default, [spec(3)]))


@model({"x": floats(2)}, {"x": floats(5)})
def sizes_of_branches():
    def default(x):
        return {"y": tf.cond(tf.reduce_sum(x) > 0, lambda: tf.concat([x, x], 0), lambda: x)}

    return signatures(tf.Module(), serving_default=(default, [spec(None)]))


@model(*({"n": np.int32(n), "x": floats(3)} for n in (0, 1, 2, 7)))
def cases():
    module = tf.Module()
    module.w = tf.Variable(floats(3))

    def default(n, x):
        size = tf.shape(x)[0]
        branches = [lambda: x + module.w, lambda: x * tf.cast(size, tf.float32), lambda: tf.reverse(x, [0])]
        return {"y": tf.switch_case(n, branches)}

    return signatures(module, serving_default=(default, [spec(kind=tf.int32, name="n"), spec(None)]))


@model({"n": np.int32(7)}, {"n": np.int32(1)}, {"n": np.int32(27)})
def endless():
    def default(n):
        n, steps = tf.while_loop(
            lambda n, _: n > 1,
            lambda n, steps: (tf.where(n % 2 == 0, n // 2, 3 * n + 1), steps + 1),
            (n, tf.constant(0)),
        )
        return {"n": n, "steps": steps}

    return signatures(tf.Module(), serving_default=(default, [spec(kind=tf.int32, name="n")]))


@model({"x": floats(2, 3)}, {"x": floats(1, 3)})
def counted():
    module = tf.Module()
    module.w = tf.Variable(floats(3, 3) * 0.5)

    def default(x):
        _, y = tf.while_loop(lambda i, _: i < 4, lambda i, x: (i + 1, tf.tanh(x @ module.w)), (0, x))
        return {"y": y}

    return signatures(module, serving_default=(default, [spec(None, 3)]))


@model({"x": floats(2, 3)})
def growing():
    def default(x):
        _, y = tf.while_loop(
            lambda i, _: i < 3,
            lambda i, y: (i + 1, tf.concat([y, x], 0)),
            (0, x),
            shape_invariants=(tf.TensorShape([]), tf.TensorShape([None, 3])),
        )
        return {"y": y}

    return signatures(tf.Module(), serving_default=(default, [spec(2, 3)]))


@model({"x": floats(5, 2, 3)}, {"x": floats(2, 1, 3)}, {"x": floats(1, 2, 3)})
def lists():
    module = tf.Module()
    module.w = tf.Variable(floats(3, 3) * 0.5)

    def step(state, piece):
        return tf.tanh(state @ module.w + piece)

    def default(x):
        running = tf.scan(step, x, initializer=tf.zeros_like(x[0]))
        mapped = tf.map_fn(lambda piece: piece * 2.0 + tf.reduce_sum(piece), x)
        return {"running": running, "mapped": mapped}

    return signatures(module, serving_default=(default, [spec(None, None, 3)]))


@model({"x": floats(4, 3)})
def written_backwards():
    def default(x):
        size = tf.shape(x)[0]
        items = tf.TensorArray(tf.float32, size)
        _, items = tf.while_loop(
            lambda i, _: i < size,
            lambda i, items: (i + 1, items.write(size - 1 - i, x[i] * tf.cast(i, tf.float32))),
            (0, items),
        )
        return {"y": items.stack()}

    return signatures(tf.Module(), serving_default=(default, [spec(None, 3)]))


@model({"x": floats(3, 2)})
def loop_in_loop():
    def inner(x):
        return tf.while_loop(lambda j, _: j < 2, lambda j, y: (j + 1, y * 0.5 + 1.0), (0, x))[1]

    def default(x):
        return {"y": tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, inner(y) - x), (0, x))[1]}

    return signatures(tf.Module(), serving_default=(default, [spec(None, 2)]))


@model({"x": floats(3, 2)})
def calls():
    @tf.function(autograph=False)
    def innermost(x):
        return tf.nn.top_k(x, 2)

    @tf.function(autograph=False)
    def inner(x):
        values, places = innermost(x)
        return values * 2.0, places

    def default(x):
        values, places = inner(x)
        more, _ = inner(values)
        return {"values": values + more, "places": places}

    return signatures(tf.Module(), serving_default=(default, [spec(None, 2)]))


WORDS = ["the", "of", "", "caf\u00e9"]


@model({"x": np.array(["of", "caf\u00e9", "none", "", "b"]), "n": np.array([0, 9], np.int64)})
def tables():
    """Tables that are filled with constants, and from files: lines, columns, and no more lines than are wanted."""
    folder, lookup = Path(tempfile.mkdtemp()), tf.lookup
    lines, columns = folder / "lines.txt", folder / "columns.txt"
    lines.write_bytes("of\r\ncaf\u00e9\nthe\nmore\n".encode())
    columns.write_bytes(b"0.5,of,a\n-1.5,,b\n2,b,c\n")
    index = lookup.TextFileIndex

    def from_file(path, key, value, default, **options):
        kinds = {index.WHOLE_LINE: tf.string, index.LINE_NUMBER: tf.int64, 0: tf.float32, 1: tf.string, 2: tf.string}
        initializer = lookup.TextFileInitializer(str(path), kinds[key], key, kinds[value], value, **options)
        return lookup.StaticHashTable(initializer, default)

    module = tf.Module()
    words, places = tf.constant(WORDS), tf.range(4, dtype=tf.int64)
    module.tables = {
        "numbers": lookup.StaticHashTable(lookup.KeyValueTensorInitializer(words, places * 2), -1),
        "vocabulary": from_file(lines, index.WHOLE_LINE, index.LINE_NUMBER, -1),
        "first": from_file(lines, index.WHOLE_LINE, index.LINE_NUMBER, -1, vocab_size=2),
        "floats": from_file(columns, 1, 0, -9.0, delimiter=","),
        "letters": from_file(columns, 1, 2, "?", delimiter=","),
    }
    texts = from_file(lines, index.LINE_NUMBER, index.WHOLE_LINE, "?")
    module.texts = texts

    def default(x, n):
        found = {name: one.lookup(x) for name, one in module.tables.items()}
        return {**found, "texts": texts.lookup(n), "size": module.tables["first"].size()}

    return signatures(
        module, serving_default=(default, [spec(None, kind=tf.string), spec(None, kind=tf.int64, name="n")])
    )


def old_table(folder):
    """A table that is filled from a file, by the builder of TensorFlow 1."""
    lines = Path(tempfile.mkdtemp()) / "lines.txt"
    lines.write_text("of\nthe\n")
    with tf.Graph().as_default() as graph, tf.compat.v1.Session() as session:
        x = tf.compat.v1.placeholder(tf.string, [None], "x")
        index = tf.lookup.TextFileIndex
        initializer = tf.lookup.TextFileInitializer(
            str(lines), tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER
        )
        y = tf.lookup.StaticHashTable(initializer, -1).lookup(x)
        session.run(tf.compat.v1.tables_initializer())
        builder = tf.compat.v1.saved_model.Builder(folder)
        builder.add_meta_graph_and_variables(
            session,
            ["serve"],
            {"serving_default": tf.compat.v1.saved_model.predict_signature_def({"x": x}, {"y": y})},
            assets_collection=[graph.get_tensor_by_name("asset_path:0")],
            main_op=tf.compat.v1.tables_initializer(),
        )
        builder.save()
        given = np.array(["the", "none", "of"])
        return {"serving_default": [({"x": given}, {"y": session.run(y, {x: given})})]}


def old_variables(folder):
    """A SavedModel as TensorFlow 1 made them: variables that are no resources, restored by nodes of the graph."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.compat.v1.placeholder(tf.float32, [None, 4], "x")
        w = tf.compat.v1.get_variable("w", initializer=floats(4, 3), use_resource=False)
        b = tf.compat.v1.get_variable("b", initializer=floats(3), use_resource=True)
        y = tf.nn.softmax(x @ w + b)
        session.run(tf.compat.v1.global_variables_initializer())
        tf.compat.v1.saved_model.simple_save(session, folder, {"x": x}, {"y": y})
        given = floats(2, 4)
        return {"serving_default": [({"x": given}, {"y": session.run(y, {x: given})})]}


def partitioned(folder):
    """Variables in parts, by rows and by columns; one of them so long that places take several bytes."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.compat.v1.placeholder(tf.float32, [None, 5], "x")
        places = tf.compat.v1.placeholder(tf.int32, [None], "places")
        rows, columns = (tf.compat.v1.fixed_size_partitioner(3, axis=axis) for axis in (0, 1))
        weights = {"initializer": tf.compat.v1.random_uniform_initializer(-1, 1, 38)}
        w = tf.compat.v1.get_variable("w", [5, 4], partitioner=rows, use_resource=False, **weights)
        u = tf.compat.v1.get_variable("u", [4, 7], partitioner=columns, use_resource=True, **weights)
        long = tf.compat.v1.get_variable(
            "long", [20_000], tf.int32, initializer=lambda shape, **_: tf.range(shape[0]), partitioner=rows
        )
        y = x @ tf.convert_to_tensor(w) @ tf.convert_to_tensor(u)
        found = tf.gather(tf.convert_to_tensor(long), places)
        session.run(tf.compat.v1.global_variables_initializer())
        results = {"y": y, "found": found}
        tf.compat.v1.saved_model.simple_save(session, folder, {"x": x, "places": places}, results)
        given = {"x": floats(2, 5), "places": np.array([0, 6666, 6667, 13_400, 19_999], np.int32)}
        return {"serving_default": [(given, session.run(results, {x: given["x"], places: given["places"]}))]}


def built(folder):
    """Two signatures over one variable, by the builder of TensorFlow 1, with a branch in one of them."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.compat.v1.placeholder(tf.float32, [None, 3], "x")
        training = tf.compat.v1.placeholder_with_default(False, [], "training")
        w = tf.compat.v1.Variable(floats(3, 2), name="w", use_resource=False)
        unused = tf.compat.v1.Variable(floats(2), name="unused", use_resource=False)
        y = tf.identity(x @ w, "y")
        z = tf.cond(training, lambda: y + unused, lambda: tf.nn.relu(y))
        session.run(tf.compat.v1.global_variables_initializer())
        signature = tf.compat.v1.saved_model.predict_signature_def
        builder = tf.compat.v1.saved_model.Builder(folder)
        names = {"serving_default": signature({"x": x}, {"y": y}), "chosen": signature({"x": x}, {"z": z})}
        builder.add_meta_graph_and_variables(session, ["serve"], names)
        builder.save()
        given = floats(2, 3)
        found = {name: session.run(tensor, {x: given}) for name, tensor in (("y", y), ("z", z))}
        return {
            "serving_default": [({"x": given}, {"y": found["y"]})],
            "chosen": [({"x": given}, {"z": found["z"]})],
        }


OLD = {"old_variables": old_variables, "partitioned": partitioned, "built": built, "old_table": old_table}


def new_model(name, folder):
    make, runs = MODELS[name]
    module, functions = make()
    tf.saved_model.save(module, folder, signatures=functions)
    loaded = tf.saved_model.load(folder).signatures
    return {
        signature: [
            (given, {key: value.numpy() for key, value in loaded[signature](**given_as(given)).items()})
            for given in runs
        ]
        for signature in functions
    }


def letters(array):
    """NumPy's files hold no objects."""
    return np.vectorize(bytes.decode, otypes=["U"])(array) if np.asarray(array).dtype.kind == "O" else array


def given_as(given):
    return {key: tf.constant(value) for key, value in given.items()}


def main():
    packed = {}
    for name in [*MODELS, *OLD]:
        with tempfile.TemporaryDirectory() as folder:
            found = OLD[name](f"{folder}/m") if name in OLD else new_model(name, f"{folder}/m")
            for path in sorted(Path(folder, "m").rglob("*")):
                if path.is_file() and path.name != "fingerprint.pb":
                    packed[f"{name}/file/{path.relative_to(Path(folder, 'm')).as_posix()}"] = np.frombuffer(
                        path.read_bytes(), np.uint8
                    )
            for signature, runs in found.items():
                for number, (given, wanted) in enumerate(runs):
                    packed |= {f"{name}/{signature}/{number}/x/{key}": value for key, value in given.items()}
                    packed |= {f"{name}/{signature}/{number}/y/{key}": letters(value) for key, value in wanted.items()}
    target = Path(__file__).parents[1] / "saved_models.npz"
    np.savez_compressed(target, **packed)
    sys.stdout.write(f"{len(MODELS) + len(OLD)} models\n")


if __name__ == "__main__":
    main()
