"""Writes networks of Keras as SavedModels and frozen graphs, with what TensorFlow computes.

Run it where TensorFlow is installed: ``python make_graphdef_networks.py FOLDER [NAME ...]``. For each network there is
a folder ``NAME/saved`` and a file ``NAME/frozen.pb``, whose inputs and results are in ``NAME/values.npz``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import tensorflow as tf
from keras_networks import chosen
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2


def write(folder, name, model, given):
    folder = folder / name
    folder.mkdir(parents=True, exist_ok=True)
    model.export(folder / "saved", verbose=False)
    shape = [None if size is None else size for size in model.inputs[0].shape]
    spec = tf.TensorSpec(shape, model.inputs[0].dtype, name="x")
    function = tf.function(lambda x: model(x, training=False)).get_concrete_function(spec)
    frozen = convert_variables_to_constants_v2(function, lower_control_flow=False)
    (folder / "frozen.pb").write_bytes(frozen.graph.as_graph_def().SerializeToString())
    result = model(given, training=False).numpy()
    np.savez(folder / "values.npz", x=given, y=result)
    sys.stdout.write(f"{name}: {model.count_params()} parameters\n")


def main(folder, names):
    for name, model, given in chosen(names):
        write(folder, name, model, given)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
