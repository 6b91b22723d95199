"""What was found in a part of a log, as bytes that travel between machines; nothing is pickled."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np

from posse.core.codec import decode, encode

TREE = "tree"


def packed(value: Any) -> bytes:
    """Return a value that `posse.core.codec.encode` takes as bytes.

    Examples
    --------
    >>> unpacked(packed({"shops": 3, "sums": np.eye(2)}))["sums"]
    array([[1., 0.],
           [0., 1.]])
    """
    tree, arrays = encode(value)
    stream = io.BytesIO()
    text = np.frombuffer(json.dumps(tree).encode(), dtype=np.uint8)
    np.savez(stream, allow_pickle=False, **{TREE: text}, **arrays)
    return stream.getvalue()


def unpacked(content: bytes) -> Any:
    """Return the value that `packed` has made bytes of."""
    with np.load(io.BytesIO(content), allow_pickle=False) as found:
        arrays = dict(found)
    return decode(json.loads(arrays.pop(TREE).tobytes()), arrays)
