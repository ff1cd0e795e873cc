"""Tables of keys and values that nodes of the graph fill."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from graphdef_drawn import family

v1 = tf.compat.v1

WORDS = ["the", "of", "", "caf\u00e9"]
ASKED = np.array([["of", "the"], ["none", ""], ["caf\u00e9", "The"]])


def table(keys, values, default):
    """A table as TensorFlow 2 fills it."""
    return tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), default)


def old_table(keys, values):
    """A table as TensorFlow 1 fills it; returns its handle."""
    keys, values = tf.constant(keys), tf.constant(values)
    handle = tf.raw_ops.HashTableV2(key_dtype=keys.dtype, value_dtype=values.dtype, shared_name="words")
    filled = tf.raw_ops.InitializeTableV2(table_handle=handle, keys=keys, values=values)
    v1.add_to_collection(v1.GraphKeys.TABLE_INITIALIZERS, filled)
    return handle


def computed_default(x, default):
    handle = old_table([3, 1, 2], [0.5, 1.5, -2.5])
    found = tf.raw_ops.LookupTableFindV2(table_handle=handle, keys=x, default_value=default * 2.0)
    return found, tf.raw_ops.LookupTableSizeV2(table_handle=handle)


def in_branch(chosen, x):
    words = table(WORDS, tf.range(4, dtype=tf.int64), -1)
    return tf.cond(chosen, lambda: words.lookup(x), lambda: -words.lookup(x) + words.size())


@family
def tables(add):
    add("places", lambda x: table(WORDS, tf.constant([0, 1, 2, 3], tf.int64), -1).lookup(x), ASKED)
    add("numbers", lambda x: table(WORDS, tf.constant([7, 5, 5, -1], tf.int64), 9).lookup(x), ASKED)
    add("texts", lambda x: table(tf.constant([0, 1, 2, 3], tf.int64), WORDS, "?").lookup(x), np.array([3, 0, 4, -1, 2]))
    add("text_of_text", lambda x: table(WORDS, ["a", "b", "c", "d"], "").lookup(x), ASKED)
    add(
        "narrow",
        lambda x: table(tf.constant([5, -5]), tf.constant([1, 2]), 0).lookup(x),
        np.array([[5, 0, -5]], np.int32),
    )
    add("old", computed_default, np.array([1, 2, 3, 4], np.int32), np.array(4, np.float32))
    add("nothing", lambda x: table(WORDS, tf.range(4), -1).lookup(x), np.zeros((2, 0), "U1"))
    for chosen in (True, False):
        add(f"in_branch_{chosen}", in_branch, np.array(chosen), ASKED)
    add("no_branch", in_branch, np.array(True), ASKED, fixed=(0,))
