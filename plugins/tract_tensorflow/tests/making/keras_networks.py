"""Networks of Keras with random weights, and what is given to them."""

from __future__ import annotations

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf
from keras import layers

IMAGES = {
    "MobileNet": 96,
    "MobileNetV2": 96,
    "MobileNetV3Small": 96,
    "MobileNetV3Large": 96,
    "EfficientNetB0": 96,
    "EfficientNetV2B0": 96,
    "ResNet50": 96,
    "ResNet50V2": 96,
    "DenseNet121": 96,
    "InceptionV3": 128,
    "Xception": 96,
    "NASNetMobile": 96,
    "ConvNeXtTiny": 96,
}
"""Networks of `keras.applications`, and the size of their images."""


def image_network(name, size):
    return getattr(keras.applications, name)(weights=None, input_shape=(size, size, 3), classes=10)


def text_network(kind, length=None, **options):
    return keras.Sequential(
        [
            layers.Input((length,), dtype="int32", name="text"),
            layers.Embedding(200, 16),
            layers.Bidirectional(kind(12, return_sequences=True, **options)),
            kind(10, **options),
            layers.Dense(4, activation="softmax"),
        ]
    )


def transformer(length=24, size=32, heads=4, depth=2):
    text = layers.Input((length,), dtype="int32", name="text")
    x = layers.Embedding(200, size)(text)
    x = x + layers.Embedding(length, size)(keras.ops.arange(length))
    for _ in range(depth):
        seen = layers.MultiHeadAttention(heads, size // heads)(x, x, use_causal_mask=True)
        x = layers.LayerNormalization()(x + seen)
        inner = layers.Dense(size)(layers.Dense(4 * size, activation="gelu")(x))
        x = layers.LayerNormalization()(x + inner)
    return keras.Model(text, layers.Dense(7)(layers.GlobalAveragePooling1D()(x)))


def sound_network():
    sound = layers.Input((None, 1), name="sound")
    x = layers.Conv1D(8, 9, strides=2, padding="causal", activation="relu")(sound)
    x = layers.SeparableConv1D(12, 5, padding="same")(x)
    x = layers.Conv1DTranspose(6, 4, strides=2)(x)
    x = layers.BatchNormalization()(x)
    x = layers.MaxPooling1D(2)(x)
    return keras.Model(sound, layers.Dense(3)(layers.GlobalMaxPooling1D()(x)))


def segmentation():
    image = layers.Input((16, 24, 3), name="image")
    x = layers.Conv2D(8, 3, padding="same", activation="relu")(image)
    small = layers.Conv2D(8, 3, strides=2, padding="same", activation="leaky_relu")(x)
    wide = layers.Conv2D(8, 3, dilation_rate=2, padding="same")(small)
    back = layers.Conv2DTranspose(8, 3, strides=2, padding="same")(layers.GroupNormalization(4)(wide))
    both = layers.Concatenate()([x, back])
    return keras.Model(image, layers.UpSampling2D(2, interpolation="bilinear")(layers.Conv2D(2, 1)(both)))


class Spotter(layers.Layer):
    """The logarithms of the bands of a sound, as keyword spotters take them."""

    def call(self, sound):
        spectrum = tf.abs(tf.signal.stft(sound, frame_length=128, frame_step=64, fft_length=128))
        mel = tf.signal.linear_to_mel_weight_matrix(20, 65, 8000, 80.0, 3600.0)
        return tf.math.log(tf.tensordot(spectrum, mel, 1) + 1e-6)


def keyword_spotter():
    sound = layers.Input((1024,), name="sound")
    x = layers.Reshape((15, 20, 1))(Spotter()(sound))
    x = layers.Conv2D(8, 3, activation="relu")(x)
    x = layers.DepthwiseConv2D(3, padding="same", activation="relu")(x)
    return keras.Model(sound, layers.Dense(5, activation="softmax")(layers.GlobalAveragePooling2D()(x)))


class Kept(layers.Layer):
    """The best boxes of each image, with their scores and classes."""

    def call(self, boxes, scores):
        found = tf.image.combined_non_max_suppression(boxes[:, :, None], scores, 5, 10, 0.5, 0.1)
        return tf.concat([found[0], found[1][..., None], found[2][..., None]], -1)


class KeptOfOne(layers.Layer):
    """The best boxes of one image, whatever their class: what TFLite has an operator for."""

    def call(self, boxes, scores):
        kept, number = tf.image.non_max_suppression_padded(
            boxes[0], tf.reduce_max(scores[0], -1), 5, 0.5, 0.1, pad_to_max_output_size=True
        )
        known = tf.cast(tf.range(5) < number, tf.float32)[:, None]
        return tf.concat([tf.gather(boxes[0], kept), tf.gather(scores[0], kept)], -1)[None] * known


def detector(kept):
    image = layers.Input((32, 32, 3), name="image")
    x = layers.Conv2D(16, 3, strides=4, padding="same", activation="relu")(image)
    corners = layers.Reshape((64, 4))(layers.Conv2D(4, 1, activation="sigmoid")(x))
    scores = layers.Reshape((64, 3))(layers.Conv2D(3, 1, activation="sigmoid")(x))
    return keras.Model(image, kept()(corners, scores))


TEXTS = {
    "lstm": lambda: text_network(layers.LSTM),
    "gru": lambda: text_network(layers.GRU),
    "gru_before": lambda: text_network(layers.GRU, reset_after=False),
    "simple_rnn": lambda: text_network(layers.SimpleRNN),
    "lstm_unrolled": lambda: text_network(layers.LSTM, 24, unroll=True),
    "gru_unrolled": lambda: text_network(layers.GRU, 24, unroll=True),
    "transformer": transformer,
}
OTHERS = {
    "sound": (sound_network, (2, 64, 1)),
    "segmentation": (segmentation, (1, 16, 24, 3)),
    "keyword_spotter": (keyword_spotter, (2, 1024)),
    "detector": (lambda: detector(Kept), (2, 32, 32, 3)),
    "detector_of_one": (lambda: detector(KeptOfOne), (1, 32, 32, 3)),
}


def randomised(model):
    """Moving means and variances too are random: of a fresh network they say nothing."""
    rng = np.random.default_rng(1)
    for weight in model.weights:
        if "moving" in weight.path or weight.path.endswith(("beta", "bias")):
            weight.assign(
                rng.uniform(0.5, 1.5, weight.shape) if "variance" in weight.path else rng.normal(0, 0.1, weight.shape)
            )
    return model


def chosen(names):
    """Each network asked for, all without a name: its name, the model, and an input."""
    rng = np.random.default_rng(0)
    keras.utils.set_random_seed(3)
    for name, size in IMAGES.items():
        if not names or name in names:
            given = rng.uniform(0, 255, (2, size, size, 3)).astype(np.float32)
            yield name, randomised(image_network(name, size)), given
    for name, make in TEXTS.items():
        if not names or name in names:
            yield name, randomised(make()), rng.integers(0, 200, (3, 24)).astype(np.int32)
    for name, (make, shape) in OTHERS.items():
        if not names or name in names:
            yield name, randomised(make()), rng.uniform(-1, 1, shape).astype(np.float32)
