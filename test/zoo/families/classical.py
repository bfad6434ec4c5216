"""Models of scikit-learn, XGBoost and LightGBM, by their own converters."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import lightgbm
import numpy as np
import onnxmltools
import skl2onnx
import sklearn.cluster
import sklearn.compose
import sklearn.decomposition
import sklearn.discriminant_analysis
import sklearn.ensemble
import sklearn.gaussian_process
import sklearn.linear_model
import sklearn.mixture
import sklearn.naive_bayes
import sklearn.neighbors
import sklearn.neural_network
import sklearn.pipeline
import sklearn.preprocessing
import sklearn.svm
import sklearn.tree
import xgboost
from inputs import Input, Symbol
from network import SEED, Architecture
from skl2onnx.common.data_types import FloatTensorType, Int64TensorType

FEATURES = 12
OPSETS = {"": 18, "ai.onnx.ml": 3}
ROWS_OPEN = {"rows": Symbol(high=5000, example=7)}


def data(kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows with a target that depends on their features: numbers, or one of three classes."""
    rng = np.random.default_rng(SEED)
    x = rng.standard_normal((400, FEATURES)).astype(np.float32)
    value = x[:, 0] * x[:, 1] + np.sin(2 * x[:, 2]) + 0.5 * x[:, 3] + 0.1 * rng.standard_normal(400)
    return x, value.astype(np.float32) if kind == "numbers" else np.digitize(value, [-0.5, 0.5])


def named_rows(model: Any) -> Any:
    """The number of rows under one name, in what goes in and what comes out."""
    for value in (*model.graph.input, *model.graph.output):
        shape = value.type.tensor_type.shape
        if value.type.HasField("tensor_type") and shape.dim and not shape.dim[0].dim_value:
            shape.dim[0].dim_param = "rows"
    return model


def sklearn_model(make: Callable[[], Any], kind: str, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Input]]:
    x, y = data(kind)
    model = make().fit(x, y)
    converted = skl2onnx.convert_sklearn(
        model,
        initial_types=[("x", FloatTensorType([None, FEATURES]))],
        options={id(model): options} if options else None,
        target_opset=OPSETS,
    )
    return named_rows(converted), {"x": Input(("rows", FEATURES))}


def mixed() -> tuple[Any, dict[str, Input]]:
    """Columns of two kinds: numbers that are scaled, and categories that become vectors."""
    x, y = data("classes")
    categories = np.random.default_rng(SEED).integers(0, 6, (400, 2))
    import pandas

    frame = pandas.DataFrame({f"n{i}": x[:, i] for i in range(4)} | {f"c{i}": categories[:, i] for i in range(2)})
    columns = sklearn.compose.ColumnTransformer(
        [
            ("numbers", sklearn.preprocessing.StandardScaler(), [f"n{i}" for i in range(4)]),
            ("categories", sklearn.preprocessing.OneHotEncoder(handle_unknown="ignore"), [f"c{i}" for i in range(2)]),
        ]
    )
    model = sklearn.pipeline.make_pipeline(columns, sklearn.linear_model.LogisticRegression(max_iter=300)).fit(frame, y)
    types = [(f"n{i}", FloatTensorType([None, 1])) for i in range(4)] + [(f"c{i}", Int64TensorType([None, 1])) for i in range(2)]
    converted = skl2onnx.convert_sklearn(model, initial_types=types, options={"zipmap": False}, target_opset=OPSETS)
    inputs = {f"n{i}": Input(("rows", 1)) for i in range(4)} | {f"c{i}": Input(("rows", 1), "below", 7) for i in range(2)}
    return named_rows(converted), inputs


def boosted(make: Callable[[], Any], convert: Callable[..., Any], kind: str) -> tuple[Any, dict[str, Input]]:
    x, y = data(kind)
    model = make().fit(x, y)
    types = [("x", onnxmltools.convert.common.data_types.FloatTensorType([None, FEATURES]))]
    return named_rows(convert(model, initial_types=types, target_opset=15)), {"x": Input(("rows", FEATURES))}


def row(make: Callable[[], Any], kind: str = "numbers", **options: Any) -> Architecture:
    return Architecture(partial(sklearn_model, make, kind, options), ROWS_OPEN, ("converter",))


def boosted_row(make: Callable[[], Any], convert: Callable[..., Any], kind: str) -> Architecture:
    return Architecture(partial(boosted, make, convert, kind), ROWS_OPEN, ("converter",))


TREES = {"n_estimators": 30, "random_state": SEED}
BOOSTED = {"n_estimators": 20, "max_depth": 4, "random_state": SEED}
LIGHT = BOOSTED | {"verbose": -1, "n_jobs": 1}
ensemble, linear = sklearn.ensemble, sklearn.linear_model

ROWS = {
    "forest-regressor": row(lambda: ensemble.RandomForestRegressor(**TREES, max_depth=8)),
    "forest-classifier": row(lambda: ensemble.RandomForestClassifier(**TREES, max_depth=8), "classes", zipmap=False),
    "extra-trees": row(lambda: ensemble.ExtraTreesClassifier(**TREES, max_depth=8), "classes", zipmap=True),
    "gradient-boosting": row(lambda: ensemble.GradientBoostingClassifier(**BOOSTED), "classes", zipmap=False),
    "decision-tree": row(lambda: sklearn.tree.DecisionTreeClassifier(max_depth=6, random_state=SEED), "classes", zipmap=False),
    "isolation-forest": row(lambda: ensemble.IsolationForest(n_estimators=20, random_state=SEED)),
    "ada-boost": row(lambda: ensemble.AdaBoostClassifier(n_estimators=10, random_state=SEED), "classes", zipmap=False),
    "svm-classifier": row(lambda: sklearn.svm.SVC(probability=True, random_state=SEED), "classes", zipmap=False),
    "svm-regressor": row(lambda: sklearn.svm.SVR()),
    "linear-svm": row(lambda: sklearn.svm.LinearSVC(random_state=SEED), "classes"),
    "k-means": row(lambda: sklearn.cluster.KMeans(6, random_state=SEED, n_init=3)),
    "k-nearest": row(lambda: sklearn.neighbors.KNeighborsRegressor(5)),
    "k-nearest-classifier": row(lambda: sklearn.neighbors.KNeighborsClassifier(5), "classes", zipmap=False),
    "logistic": row(lambda: linear.LogisticRegression(max_iter=300), "classes", zipmap=False),
    "ridge": row(lambda: linear.Ridge()),
    "naive-bayes": row(lambda: sklearn.naive_bayes.GaussianNB(), "classes", zipmap=False),
    "discriminant": row(lambda: sklearn.discriminant_analysis.LinearDiscriminantAnalysis(), "classes", zipmap=False),
    "gaussian-process": row(lambda: sklearn.gaussian_process.GaussianProcessRegressor(random_state=SEED)),
    "gaussian-mixture": row(lambda: sklearn.mixture.GaussianMixture(4, random_state=SEED)),
    "perceptron": row(lambda: sklearn.neural_network.MLPClassifier((16, 16), max_iter=50, random_state=SEED), "classes", zipmap=False),
    "scaled-pca": row(
        lambda: sklearn.pipeline.make_pipeline(
            sklearn.preprocessing.StandardScaler(),
            sklearn.decomposition.PCA(5, random_state=SEED),
            sklearn.preprocessing.PolynomialFeatures(2),
            linear.Lasso(alpha=0.01),
        )
    ),
    "mixed-columns": Architecture(mixed, ROWS_OPEN, ("converter",)),
    "xgboost-regressor": boosted_row(lambda: xgboost.XGBRegressor(**BOOSTED), onnxmltools.convert_xgboost, "numbers"),
    "xgboost-classifier": boosted_row(lambda: xgboost.XGBClassifier(**BOOSTED), onnxmltools.convert_xgboost, "classes"),
    "lightgbm-regressor": boosted_row(lambda: lightgbm.LGBMRegressor(**LIGHT), onnxmltools.convert_lightgbm, "numbers"),
    "lightgbm-classifier": boosted_row(lambda: lightgbm.LGBMClassifier(**LIGHT), onnxmltools.convert_lightgbm, "classes"),
}
