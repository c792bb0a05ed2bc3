"""Pipelines of scikit-learn, fitted to random data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.svm import SVC

from ansorpy.arrays import Array

__all__ = ["PIPELINES", "fitted"]


def _columns() -> Any:
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    kinds = make_pipeline(SimpleImputer(strategy="most_frequent"),
                          OneHotEncoder(handle_unknown="ignore"))  # fmt: skip
    columns = ColumnTransformer([("numbers", numbers, [0, 1, 2, 3]), ("kinds", kinds, [4, 5])])
    return make_pipeline(columns, RandomForestClassifier(5, max_depth=4, random_state=0))


PIPELINES: Mapping[str, Callable[[], Any]] = {
    "scaled_logistic": lambda: make_pipeline(StandardScaler(), PCA(4), LogisticRegression()),
    "columns_forest": _columns,
    "boosted": lambda: make_pipeline(
        MinMaxScaler(), GradientBoostingClassifier(n_estimators=5, random_state=0)
    ),
    "support_vectors": lambda: make_pipeline(StandardScaler(), SVC(probability=True)),
    "neighbours": lambda: make_pipeline(Normalizer(), KNeighborsClassifier(3)),
    "perceptron": lambda: make_pipeline(
        StandardScaler(), MLPClassifier((8,), max_iter=50, random_state=0)
    ),
    "ridge": lambda: make_pipeline(PolynomialFeatures(2), Ridge()),
    "clusters": lambda: make_pipeline(StandardScaler(), KMeans(3, random_state=0)),
}


def fitted(name: str, rows: Array) -> Any:
    """The pipeline *name*, fitted to *rows*."""
    full = np.nan_to_num(rows)
    target = full[:, 0] - full[:, 1] + 0.5 * full[:, 2] ** 2
    classes = np.digitize(target, np.quantile(target, [0.35, 0.7]))
    return PIPELINES[name]().fit(rows, target if name == "ridge" else classes)
