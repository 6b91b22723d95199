"""Pictures of classes: which of two shows the larger one? The paper's experiment on MNIST."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posse.core.actions import PooledActions
from posse.numerics.checks import Array, IntArray, check_choice, check_finite, check_integer, check_number

SCALINGS = ("unit", "norm")


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassPairs:
    """One task for each pair of classes i < j: of an image of i and one of j, pick the one of j.

    In each round and task both images are drawn uniformly from their class, with replacement, and
    shown in random order. The image of the larger class pays 1, the other 0, without noise; regret
    counts wrong picks. The features are the pixels. Rewards are not linear in them: there is no true
    theta, and no representation that an oracle could be told.

    Parameters
    ----------
    images : (m, d)
        Pixel values, integers or floats.
    labels : (m,)
        The classes of the images: integers from 0.
    brightest : float
        The largest pixel value there can be.
    n_classes : int, optional
        Use only the classes 0, ..., n_classes - 1; by default all.
    scaling : {"unit", "norm"}
        "unit" divides pixels by `brightest`, which brings them to [0, 1]; "norm" divides each image by its
        Euclidean length.

    Examples
    --------
    >>> images = np.array([[255, 0], [204, 0], [0, 255], [51, 255]], dtype=np.uint8)
    >>> problem = ClassPairs(images=images, labels=np.array([0, 0, 1, 2]), scaling="unit")
    >>> problem.pairs
    array([[0, 1],
           [0, 2],
           [1, 2]])
    >>> offered = problem.actions(1, np.random.default_rng(0))
    >>> offered.arms[0, 2]
    array([[0. , 1. ],
           [0.2, 1. ]])
    >>> problem.mean_rewards(offered, np.array([[0, 0, 1]]))[0, 2]
    np.float64(1.0)
    """

    images: NDArray[Any]
    labels: NDArray[Any]
    brightest: float = 255
    n_classes: int | None = None
    scaling: str = "norm"

    def __post_init__(self) -> None:
        for name in ("images", "labels"):
            object.__setattr__(self, name, np.asarray(getattr(self, name)))
        _check_labels(self.labels)
        _check_images(self.images, len(self.labels))
        check_number("`brightest` of ClassPairs", self.brightest, 0.0, open_low=True)
        check_choice("`scaling` of ClassPairs", self.scaling, SCALINGS)
        found = int(self.labels.max()) + 1
        if found < 2:
            raise ValueError("`labels` of ClassPairs must be of at least two classes. Got class 0 alone.")
        if self.n_classes is None:
            object.__setattr__(self, "n_classes", found)
        check_integer("`n_classes` of ClassPairs", self.n_classes, 2, found, high_name="classes")
        _ = self.pool  # a bad image is an error now, not in the first round

    @cached_property
    def pairs(self) -> IntArray:
        """The classes i < j of each task, (T, 2)."""
        return np.stack(np.triu_indices(self._sizes.size, 1), axis=1)

    @cached_property
    def classes(self) -> IntArray:
        """The class of each row of the pool, in increasing order."""
        return np.repeat(np.arange(self._sizes.size), self._sizes)

    @cached_property
    def pool(self) -> NDArray[np.float32]:
        """The scaled images of the classes in use, sorted by class: read-only, of float32."""
        used = self.images[np.argsort(self.labels, kind="stable")[: self.classes.size]]
        pool = np.empty(used.shape, dtype=np.float32)
        np.divide(used, self._divisors(used), out=pool)
        pool.setflags(write=False)
        return pool

    @property
    def n_tasks(self) -> int:
        """The number of tasks, T: pairs of classes."""
        return len(self.pairs)

    @property
    def dim(self) -> int:
        """The number of features, d: pixels."""
        return int(self.images.shape[1])

    def actions(self, n_rounds: int, rng: np.random.Generator) -> PooledActions:
        """Draw two images for each round and task, and their order."""
        drawn = rng.random((n_rounds, self.n_tasks, 3))
        sizes = self._sizes[self.pairs]
        first = (self._sizes.cumsum() - self._sizes)[self.pairs]
        index = first + np.floor(drawn[..., :2] * sizes).astype(np.intp)
        swapped = drawn[..., 2:] < 0.5
        return PooledActions(self.pool, np.where(swapped, index[..., ::-1], index))

    def noise(self, n_rounds: int, rng: np.random.Generator) -> Array:
        """Return zeros, (n, T); nothing is drawn."""
        return np.zeros((n_rounds, self.n_tasks))

    def mean_rewards(self, actions: PooledActions, choice: IntArray) -> Array:
        """Return 1 where the image of the larger class is chosen and 0 elsewhere, (n, T)."""
        return np.asarray(self.classes[actions.rows(choice)] == self.pairs[:, 1], dtype=np.float64)

    def best_rewards(self, actions: PooledActions) -> Array:
        """Return ones, (n, T)."""
        return np.ones((actions.n_rounds, self.n_tasks))

    def rewards(self, means: Array, noise: Array) -> Array:
        """Return the means."""
        return means

    @cached_property
    def _sizes(self) -> IntArray:
        """The number of images of each class in use."""
        sizes = np.bincount(self.labels.astype(np.intp))[: self.n_classes]
        empty = np.flatnonzero(sizes == 0)
        if empty.size:
            listed = ", ".join(map(str, empty))
            raise ValueError(f"each class of ClassPairs must have an image. Got none of {listed}.")
        return sizes

    def _divisors(self, images: NDArray[Any]) -> Array:
        """Return what each image is divided by, (m, 1)."""
        if self.scaling == "norm":
            lengths = np.sqrt(np.einsum("md,md->m", images, images, dtype=np.float64))
            n_black = np.count_nonzero(lengths == 0)
            if n_black:
                raise ValueError(
                    f'`images` of ClassPairs must not be black for scaling="norm". Got {n_black} that are.'
                )
            return np.asarray(lengths[:, None])
        for value in (images.min(), images.max()):
            if not 0 <= value <= self.brightest:
                raise ValueError(
                    f"`images` of ClassPairs must lie in [0, brightest={self.brightest:g}]. Got {value:g}."
                )
        return np.full((len(images), 1), float(self.brightest))


def _check_images(images: NDArray[Any], n_images: int) -> None:
    name = "`images` of ClassPairs"
    if images.ndim != 2 or images.dtype.kind not in "uif":
        raise ValueError(
            f"{name} must be numbers of shape (m, d). Got {images.dtype} of shape {images.shape}."
        )
    if len(images) != n_images or images.size == 0:
        raise ValueError(f"{name} must be as many as the {n_images} labels. Got shape {images.shape}.")
    check_finite(name, images)


def _check_labels(labels: NDArray[Any]) -> None:
    name = "`labels` of ClassPairs"
    if labels.ndim != 1 or labels.dtype.kind not in "iu" or labels.size == 0:
        raise ValueError(
            f"{name} must be integers of shape (m,). Got {labels.dtype} of shape {labels.shape}."
        )
    if labels.min() < 0:
        raise ValueError(f"{name} must not be negative. Got {labels.min()}.")
