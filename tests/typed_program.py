"""A program of a user, for type checkers to look at: it is checked by `test_dist`, and never run."""

from typing import Any, assert_type

import numpy as np
import tract

import tract_core

image = np.zeros((1, 3, 224, 224), np.float32)

assert_type(tract_core.onnx(), tract_core.Onnx)
untyped = tract_core.onnx().load("model.onnx", strict_facts=True)
assert_type(untyped, tract_core.InferenceModel)
assert_type(tract_core.onnx().load_bytes(b""), tract_core.InferenceModel)
untyped.set_input_fact("image", "B,3,224,224,f32")
assert_type(untyped.into_model(), tract_core.Model)

assert_type(tract_core.nnef(), tract_core.Nnef)
assert_type(tract_core.nnef().with_tract_extra().load("model.nnef.tar"), tract_core.Model)
assert_type(tract_core.nnef().write_model_to_bytes(tract_core.load("model.onnx")), bytes)
assert_type(tract_core.crvo().load("policy.crvo"), tract_core.InferenceModel | tract_core.Model)

model = tract_core.load_bytes(b"", format_name="onnx")
assert_type(model, tract_core.Model)
runnable = model.into_runnable("cpu", threads=2)
assert_type(runnable, tract_core.Runnable)
(scores,) = runnable.run([image])
assert_type(scores, tract_core.Tensor)
assert_type(runnable(image=image)[0].shape, tuple[int, ...])

best: int = int(scores.argmax())
likely: Any = scores > 0.5
scaled: Any = 2 * scores / scores.sum(axis=-1, keepdims=True)

assert_type(tract.onnx().load("model.onnx"), tract_core.InferenceModel)
assert_type(tract.nnef(), tract.Nnef)
assert_type(tract.load("model.onnx").into_runnable(tract.runtime_for_name("cpu")), tract.Runnable)
