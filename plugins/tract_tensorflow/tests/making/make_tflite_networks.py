"""Writes networks of Keras as TFLite files, with what LiteRT computes.

Run it where TensorFlow and ai-edge-litert are installed: ``python make_tflite_networks.py FOLDER [NAME ...]``. Each
network is written in three forms: ``float.tflite``, ``dynamic.tflite`` (weights in bytes) and ``int8.tflite`` (bytes
altogether, as far as the converter goes). Beside each lies an ``.npz`` with the inputs, what LiteRT's reference kernels
make of them, and what its fast ones do.
"""

from __future__ import annotations

import sys
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from ai_edge_litert import interpreter
from keras_networks import TEXTS, chosen

WITHOUT = {"detector"}
"""What TFLite has no operator for: boxes of several images and classes at once."""

LOOPS = {"lstm", "gru", "gru_before", "simple_rnn"}
"""Networks whose layers are loops: TensorFlow's converter crashes when it measures what is in one, for ``int8``."""

SAMPLES = 4
"""Inputs which tell the converter the ranges of tensors."""


def samples(given):
    """Inputs alike: as many elements, in another order."""
    rng = np.random.default_rng(5)
    for _ in range(SAMPLES):
        yield [rng.permuted(given.reshape(-1)).reshape(given.shape)]


def converted(model, kind, given, fixed):
    """The content of a file. ``fixed``: with the sizes of what is given, which the converter wants of lists."""
    if fixed:
        x = keras.Input(batch_shape=given.shape, dtype=given.dtype)
        model = keras.Model(x, model(x))
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    if kind != "float":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if kind == "int8":
        converter.representative_dataset = lambda: samples(given)
    return converter.convert()


def computed(content, given, kernels):
    """The outputs, with LiteRT's kernels of that name."""
    which = interpreter.OpResolverType[kernels]
    engine = interpreter.Interpreter(model_content=content, experimental_op_resolver_type=which)
    (wanted,) = engine.get_input_details()
    engine.resize_tensor_input(wanted["index"], given.shape)
    engine.allocate_tensors()
    engine.set_tensor(wanted["index"], given)
    engine.invoke()
    return [engine.get_tensor(one["index"]) for one in engine.get_output_details()]


def write(folder, kind, model, given, fixed):
    """One form of a network, and what LiteRT computes."""
    content = converted(model, kind, given, fixed)
    (folder / f"{kind}.tflite").write_bytes(content)
    (reference,), (fast,) = computed(content, given, "BUILTIN_REF"), computed(content, given, "AUTO")
    np.savez(folder / f"{kind}.npz", x=given, reference=reference, fast=fast)


def main(folder, names):
    for name, model, given in chosen(names):
        if name in WITHOUT:
            continue
        (folder / name).mkdir(parents=True, exist_ok=True)
        for kind in ("float", "dynamic") if name in LOOPS else ("float", "dynamic", "int8"):
            write(folder / name, kind, model, given, name in TEXTS)
        sys.stdout.write(f"{name} is written\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
