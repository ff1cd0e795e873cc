"""Features, labels, linear models and support vector machines, against ONNX Runtime, scikit-learn and plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import numpy_helper
from onnx_single import outputs_of, refused, same_as_onnxruntime, texts

from tract_core.errors import CorruptModel, FactError, LimitExceeded, RunError, Unsupported

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(6, 3)).astype(np.float32)
WHOLE = RANDOM.integers(-4, 5, (4, 3))


@pytest.mark.parametrize("x", [X, WHOLE, WHOLE.astype(np.int32), X.astype(np.float64)], ids=lambda x: str(x.dtype))
def test_array_feature_extractor(x):
    same_as_onnxruntime("ArrayFeatureExtractor", [x, np.array([[2, 0, 2]])])


def test_array_feature_extractor_of_texts_and_of_a_list():
    same_as_onnxruntime("ArrayFeatureExtractor", [texts("a", "b", "c"), np.array([2, 0])], symbolic=False)
    same_as_onnxruntime(
        "ArrayFeatureExtractor", [np.zeros((2, 3, 4), np.float32) + np.arange(4, dtype=np.float32), np.array([3])]
    )


def test_array_feature_extractor_out_of_range():
    with pytest.raises(RunError, match="index 3 is outside axis 1, which has size 3"):
        outputs_of("ArrayFeatureExtractor", [X, np.array([3])])


def test_binarizer():
    same_as_onnxruntime("Binarizer", [X], threshold=0.25)
    for x in (WHOLE, WHOLE.astype(np.int32), X.astype(np.float64)):
        (found,) = outputs_of("Binarizer", [x], batch="N", threshold=0.5)
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(found, (x > 0.5).astype(x.dtype))


@pytest.mark.parametrize("x", [X, WHOLE, X[0], X.astype(np.float64)], ids=lambda x: f"{x.dtype}-{x.ndim}")
def test_scaler(x):
    same_as_onnxruntime("Scaler", [x], offset=[1.0, 2, 3], scale=[0.5, -1, 2])
    same_as_onnxruntime("Scaler", [x], offset=[1.0], scale=[0.5])


def test_scaler_refuses():
    refused(CorruptModel, "'offset' of Scaler has 2 numbers for 6,3,f32", "Scaler", [X], offset=[1.0, 2], scale=[1.0])


def test_imputer():
    floats = np.where(X > 0.5, np.nan, X).astype(np.float32)
    options = {"imputed_value_floats": [7.0, 8, 9], "replaced_value_float": float("nan")}
    same_as_onnxruntime("Imputer", [floats], **options)
    same_as_onnxruntime("Imputer", [WHOLE], imputed_value_int64s=[100], replaced_value_int64=0)
    (found,) = outputs_of("Imputer", [WHOLE.astype(np.int32)], batch="N", imputed_value_int64s=[1, 2, 3])
    np.testing.assert_array_equal(found, np.where(WHOLE == 0, [1, 2, 3], WHOLE))
    assert found.dtype == np.int32
    wide = 1 << 40
    refused(CorruptModel, "numbers that i32 does not", "Imputer", [WHOLE.astype(np.int32)], imputed_value_int64s=[wide])


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
@pytest.mark.parametrize(
    "x",
    [X, WHOLE, X[0], np.zeros((2, 3), np.float32), -np.abs(X)],
    ids=["floats", "whole", "list", "zeros", "negative"],
)
def test_normalizer(norm, x):
    if norm == "MAX" and x is not X and (x <= 0).all():
        (found,) = outputs_of("Normalizer", [x], batch="N", norm=norm)  # the greatest, as the standard says
        top = x.max(axis=-1, keepdims=True)
        np.testing.assert_allclose(found, np.where(top == 0, x, x / np.where(top == 0, 1, top)), rtol=1e-6)
    else:
        same_as_onnxruntime("Normalizer", [x], norm=norm)


@pytest.mark.parametrize("sizes", [[3, 3], [2, 4], [0, 3], [5, 1]])
def test_feature_vectorizer(sizes):
    same_as_onnxruntime("FeatureVectorizer", [X, X * 2], inputdimensions=sizes)


def test_feature_vectorizer_of_mixed_types():
    (found,) = outputs_of("FeatureVectorizer", [X[:4], WHOLE, X[:4].astype(np.float64)], batch="N")
    np.testing.assert_array_equal(found, np.concatenate([X[:4], WHOLE, X[:4]], axis=1).astype(np.float32))
    (row,) = outputs_of("FeatureVectorizer", [X[0], X[1]])
    assert row.shape == (1, 6)
    refused(
        CorruptModel, r"'inputdimensions' is \[3\], wanted 2 sizes", "FeatureVectorizer", [X, X], inputdimensions=[3]
    )
    refused(LimitExceeded, "asks for 1099511627776", "FeatureVectorizer", [X], inputdimensions=[1 << 40])


KEYS = {"strings": ["a", "b", "ü"], "int64s": [3, -1, 0], "floats": [0.5, float("nan"), -0.0]}
VALUES = {"strings": ["x", "y", "z"], "int64s": [7, 8, 9], "floats": [1.5, 2.5, 3.5]}
GIVEN = {
    "strings": texts("b", "?", "ü", "a"),
    "int64s": np.array([3, 4, 0, -1]),
    "floats": np.array([np.nan, 1, 0, 0.5], np.float32),
}
PLACES = {"strings": [1, -1, 2, 0], "int64s": [0, -1, 2, 1], "floats": [1, -1, 2, 0]}
DEFAULTS = {"strings": "_Unused", "int64s": -1, "floats": -0.0}


@pytest.mark.parametrize("version", [2, 4])
@pytest.mark.parametrize("to", VALUES)
@pytest.mark.parametrize("source", KEYS)
def test_label_encoder(source, to, version):
    options = {f"keys_{source}": KEYS[source], f"values_{to}": VALUES[to]}
    for x in (GIVEN[source], GIVEN[source].reshape(2, 2)):
        (found,) = outputs_of("LabelEncoder", [x], version=version, batch="N", **options)
        wanted = [(VALUES[to] + [DEFAULTS[to]])[place] for place in PLACES[source]]
        assert found.reshape(-1).tolist() == wanted
        assert found.shape == x.shape


def test_label_encoder_defaults():
    x = texts("b", "?")
    options = {"keys_strings": ["b"], "values_int64s": [5]}
    assert outputs_of("LabelEncoder", [x], version=2, default_int64=42, **options)[0].tolist() == [5, 42]
    options = {"keys_strings": ["b"], "values_strings": ["B"]}
    assert outputs_of("LabelEncoder", [x], version=2, default_string="none", **options)[0].tolist() == ["B", "none"]


@pytest.mark.parametrize("dtype", [np.float64, np.int16, np.int32])
def test_label_encoder_with_tensors(dtype):
    x = np.array([3, 1, 2], dtype)
    options = {
        "keys_tensor": numpy_helper.from_array(np.array([1, 2], dtype)),
        "values_tensor": numpy_helper.from_array(np.array([10, 20], dtype)),
        "default_tensor": numpy_helper.from_array(np.array([99], dtype)),
    }
    (found,) = outputs_of("LabelEncoder", [x], version=4, **options)
    assert found.tolist() == [99, 10, 20]
    assert found.dtype == dtype


def test_the_last_of_repeated_keys_counts():
    options = {"keys_int64s": [1, 2, 1], "values_int64s": [5, 6, 7]}
    assert outputs_of("LabelEncoder", [np.array([1, 2])], version=4, **options)[0].tolist() == [7, 6]


def test_label_encoder_refuses():
    x = np.array([1])
    wants = "wants one of the attributes keys_strings, keys_int64s, keys_floats, keys_tensor, found"
    refused(CorruptModel, f"{wants} none", "LabelEncoder", [x], version=2, values_int64s=[1])
    both = {"keys_int64s": [1], "keys_strings": ["a"], "values_int64s": [1]}
    refused(CorruptModel, f"{wants} keys_strings, keys_int64s", "LabelEncoder", [x], version=2, **both)
    uneven = {"keys_int64s": [1], "values_int64s": [1, 2]}
    refused(CorruptModel, "1 keys do not go with 2 values", "LabelEncoder", [x], version=2, **uneven)
    text = {"keys_strings": ["a"], "values_int64s": [1]}
    refused(FactError, "Lookup of 1,i64, and the keys are string", "LabelEncoder", [x], version=2, **text)
    wrong = {"keys_int64s": [1], "values_int64s": [1], "default_tensor": numpy_helper.from_array(np.zeros(1, np.int8))}
    refused(
        CorruptModel,
        "'default_tensor' is .*, wanted one element of type int64",
        "LabelEncoder",
        [x],
        version=4,
        **wrong,
    )


def test_old_label_encoder():
    classes = {"classes_strings": ["a", "b", "c"]}
    same_as_onnxruntime("LabelEncoder", [texts("c", "?", "a")], symbolic=False, default_int64=-7, **classes)
    same_as_onnxruntime("LabelEncoder", [np.array([2, 5, 0, -1])], default_string="?", **classes)


def test_category_mapper():
    maps = {"cats_strings": ["a", "b"], "cats_int64s": [10, -20]}
    same_as_onnxruntime("CategoryMapper", [texts("b", "?", "a")], symbolic=False, default_int64=7, **maps)
    same_as_onnxruntime("CategoryMapper", [np.array([[10, -20], [3, 10]])], default_string="?", **maps)
    uneven = {"cats_strings": ["a"], "cats_int64s": [1, 2]}
    refused(CorruptModel, "1 texts do not go with 2 numbers", "CategoryMapper", [texts("a")], **uneven)


def test_one_hot_encoder():
    same_as_onnxruntime("OneHotEncoder", [np.array([[1.7, 5, 3]], np.float32)], cats_int64s=[1, 2, 5])
    same_as_onnxruntime("OneHotEncoder", [np.array([1, 5, 3])], cats_int64s=[1, 2, 5])
    same_as_onnxruntime("OneHotEncoder", [texts("b", "?")], symbolic=False, cats_strings=["a", "b"])
    with pytest.raises(RunError, match="'3' is none of the 2 categories"):
        outputs_of("OneHotEncoder", [np.array([1, 3])], cats_int64s=[1, 2], zeros=0)


TRANSFORMS = ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"]


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_linear_regressor(transform):
    options = {"coefficients": RANDOM.normal(size=6).tolist(), "targets": 2, "post_transform": transform}
    same_as_onnxruntime("LinearRegressor", [X], **options)
    same_as_onnxruntime("LinearRegressor", [X], intercepts=[0.5, -1.0], **options)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("classes", [3, 2])
def test_linear_classifier(transform, classes):
    coefficients, intercepts = RANDOM.normal(size=3 * classes).tolist(), RANDOM.normal(size=classes).tolist()
    options = {"coefficients": coefficients, "intercepts": intercepts, "post_transform": transform}
    for labels in ({"classlabels_ints": [5, 6, 7][:classes]}, {"classlabels_strings": ["a", "b", "c"][:classes]}):
        same_as_onnxruntime("LinearClassifier", [X], outputs=2, **options, **labels)
        same_as_onnxruntime("LinearClassifier", [WHOLE], outputs=2, **options, **labels)


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_linear_classifier_with_one_function(transform):
    options = {"coefficients": [0.5, -1.0, 0.25], "classlabels_strings": ["a", "b"], "post_transform": transform}
    same_as_onnxruntime("LinearClassifier", [X], outputs=2, intercepts=[0.1], **options)
    same_as_onnxruntime("LinearClassifier", [X[0]], outputs=2, intercepts=[0.1], **options)


def test_linear_models_refuse():
    refused(
        CorruptModel,
        "attribute 'coefficients' of LinearRegressor has 5 numbers, which do not fill 2",
        "LinearRegressor",
        [X],
        targets=2,
        coefficients=[1.0] * 5,
    )
    refused(
        CorruptModel,
        "'coefficients' of LinearRegressor has 3 numbers, which do not fill 0",
        "LinearRegressor",
        [X],
        targets=0,
        coefficients=[1.0] * 3,
    )
    refused(
        CorruptModel,
        "'intercepts' of LinearRegressor has 2 numbers, wanted 0 or 1",
        "LinearRegressor",
        [X],
        coefficients=[1.0] * 3,
        intercepts=[1.0, 2],
    )
    refused(
        FactError,
        "inner sizes that are equal, found 6,3,f32 and 4,1,f32",
        "LinearRegressor",
        [X],
        coefficients=[1.0] * 4,
    )
    refused(CorruptModel, "found none", "LinearClassifier", [X], outputs=2, coefficients=[1.0] * 3)
    refused(
        FactError, "a matrix of features is wanted, found 1,6,3,f32", "LinearRegressor", [X[None]], coefficients=[1.0]
    )


KERNELS = ["LINEAR", "POLY", "RBF", "SIGMOID"]
VECTORS = RANDOM.normal(size=(7, 3))


@pytest.mark.parametrize("kernel", KERNELS)
def test_svm_regressor(kernel):
    options = {"kernel_type": kernel, "kernel_params": [0.5, 0.3, 2.0], "support_vectors": VECTORS.reshape(-1).tolist()}
    options |= {"coefficients": RANDOM.normal(size=7).tolist(), "rho": [0.1], "n_supports": 7}
    same_as_onnxruntime("SVMRegressor", [X], **options)
    same_as_onnxruntime("SVMRegressor", [X], one_class=1, **options)


def test_svm_regressor_without_vectors():
    options = {"coefficients": [0.5, 0.25, -1.0], "rho": [0.1], "kernel_params": [0.0, 0.0, 0.0]}
    same_as_onnxruntime("SVMRegressor", [X], **options)
    (found,) = outputs_of("SVMRegressor", [X], post_transform="LOGISTIC", **options)
    np.testing.assert_allclose(found[:, 0], 1 / (1 + np.exp(-(X @ [0.5, 0.25, -1] + 0.1))), rtol=1e-5)


def classifier(per_class, kernel="RBF", **options):
    count, pairs = sum(per_class), len(per_class) * (len(per_class) - 1) // 2
    rng = np.random.default_rng(count)
    return {
        "kernel_type": kernel,
        "kernel_params": [0.5, 0.3, 2.0],
        "support_vectors": VECTORS[:count].reshape(-1).tolist(),
        "coefficients": rng.normal(size=count * (len(per_class) - 1)).tolist(),
        "rho": rng.normal(size=pairs).tolist(),
        "vectors_per_class": per_class,
        "classlabels_ints": [10 * (i + 1) for i in range(len(per_class))],
        **options,
    }


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("per_class", [[2, 3], [2, 1, 3], [1, 2, 1, 3]], ids=str)
def test_svm_classifier(kernel, per_class):
    same_as_onnxruntime("SVMClassifier", [X], outputs=2, relative=1e-4, **classifier(per_class, kernel))


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC"])
@pytest.mark.parametrize("per_class", [[2, 3], [2, 1, 3], [1, 2, 1, 3]], ids=str)
def test_svm_classifier_transformed(transform, per_class):
    options = classifier(per_class, post_transform=transform)
    same_as_onnxruntime("SVMClassifier", [X], outputs=2, relative=1e-4, **options)
    pairs = len(options["rho"])
    options |= {"prob_a": [-1.0 - 0.1 * i for i in range(pairs)], "prob_b": [0.1 * i for i in range(pairs)]}
    same_as_onnxruntime("SVMClassifier", [X], outputs=2, relative=1e-4, **options)


def test_svm_classifier_without_vectors():
    coefficients = RANDOM.normal(size=9)
    options = {"coefficients": coefficients.tolist(), "rho": [0.1], "kernel_params": [0.0, 0.0, 0.0]}
    same_as_onnxruntime("SVMClassifier", [X], outputs=2, classlabels_strings=["a", "b", "c"], **options)
    options |= {"coefficients": coefficients[:6].tolist(), "classlabels_ints": [7, 8]}
    label, scores = outputs_of("SVMClassifier", [X], outputs=2, **options)
    wanted = X @ coefficients[:6].reshape(2, 3).T + 0.1
    np.testing.assert_allclose(scores, wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(label, np.array([7, 8])[wanted.argmax(axis=1)])


def data(classes):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(80, 3))
    return x.astype(np.float32), np.digitize(
        x @ [1.0, -0.5, 0.25] + 0.3 * rng.normal(size=80), [-0.7, 0.7][: classes - 1]
    )


def test_a_classifier_of_scikit_learn():
    x, y = data(3)
    model = pytest.importorskip("sklearn.svm").SVC(gamma=0.5).fit(x, y)
    options = {
        "kernel_type": "RBF",
        "kernel_params": [0.5, 0.0, 3.0],
        "support_vectors": model.support_vectors_.reshape(-1).tolist(),
        "coefficients": model.dual_coef_.reshape(-1).tolist(),
        "rho": model.intercept_.tolist(),
        "vectors_per_class": model.n_support_.tolist(),
        "classlabels_ints": [0, 1, 2],
    }
    label, scores = outputs_of("SVMClassifier", [x], outputs=2, batch="N", **options)
    np.testing.assert_array_equal(label, model.predict(x))
    model.decision_function_shape = "ovo"
    np.testing.assert_allclose(scores, model.decision_function(x), atol=1e-4)


@pytest.mark.parametrize("kind", ["SVR", "OneClassSVM"])
def test_a_regressor_of_scikit_learn(kind):
    x, y = data(3)
    model = getattr(pytest.importorskip("sklearn.svm"), kind)(kernel="poly", gamma=0.5, coef0=1.0, degree=2).fit(x, y)
    options = {
        "kernel_type": "POLY",
        "kernel_params": [0.5, 1.0, 2.0],
        "support_vectors": model.support_vectors_.reshape(-1).tolist(),
        "coefficients": model.dual_coef_.reshape(-1).tolist(),
        "rho": model.intercept_.tolist(),
        "n_supports": len(model.support_vectors_),
        "one_class": int(kind == "OneClassSVM"),
    }
    (found,) = outputs_of("SVMRegressor", [x], batch="N", **options)
    np.testing.assert_allclose(found[:, 0], model.predict(x), atol=1e-3)


@pytest.mark.parametrize(
    ("error", "match", "changes"),
    [
        (CorruptModel, r"'vectors_per_class' is \[2, 3\] for 3 classes", {"classlabels_ints": [1, 2, 3]}),
        (CorruptModel, r"'vectors_per_class' is \[-1, 6\]", {"vectors_per_class": [-1, 6]}),
        (LimitExceeded, "for 1025 classes", {"classlabels_ints": [*range(1025)], "vectors_per_class": [1] * 1025}),
        (CorruptModel, "4 coefficients for each of 5", {"coefficients": [1.0] * 4}),
        (CorruptModel, "attribute 'rho' of SVMClassifier has 3 numbers, wanted 1", {"rho": [1.0] * 3}),
        (CorruptModel, "attribute 'prob_b' of SVMClassifier has 0 numbers, wanted 1", {"prob_a": [1.0]}),
        (
            CorruptModel,
            "attribute 'kernel_params' of SVMClassifier has 2 numbers, wanted 0 or 3",
            {"kernel_params": [1.0, 2.0]},
        ),
        (Unsupported, "attribute 'kernel_type' of SVMClassifier is 'X', wanted one of 'LINEAR'", {"kernel_type": "X"}),
        (FactError, "inner sizes that are equal, found 6,3,f64 and 2,5,f64", {"support_vectors": [1.0] * 10}),
    ],
)
def test_svm_classifier_refuses(error, match, changes):
    options = {**classifier([2, 3]), **changes}
    refused(error, match, "SVMClassifier", [X], outputs=2, **options)
