"""Image sets for `ClassPairs`: small digits that come with posse, MNIST and Fashion-MNIST."""

from posse.problems.images.archive import DataError
from posse.problems.images.sets import IMAGE_SETS, ImageSet, cache_folder, load_images

__all__ = ["IMAGE_SETS", "DataError", "ImageSet", "cache_folder", "load_images"]
