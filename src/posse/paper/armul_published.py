"""What Duan and Wang published of their synthetic study: means over 100 seeds of the largest error of a task.

Computed from the results that the authors stored beside their code. Each row is for delta = 0, 0.2, ..., 1;
the largest error is that among tasks that are no outliers.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

DELTAS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
# By structure, share of outliers and estimator.
ERRORS: Mapping[tuple[str, float, str], tuple[float, ...]] = MappingProxyType(
    {
        ("mean", 0.0, "armul"): (0.096, 0.241, 0.391, 0.499, 0.562, 0.612),
        ("mean", 0.0, "alone"): (0.708, 0.708, 0.708, 0.708, 0.708, 0.709),
        ("mean", 0.0, "structure"): (0.093, 0.244, 0.440, 0.643, 0.848, 1.054),
        ("mean", 0.2, "armul"): (0.203, 0.323, 0.443, 0.539, 0.591, 0.622),
        ("mean", 0.2, "alone"): (0.702, 0.702, 0.702, 0.702, 0.703, 0.703),
        ("mean", 0.2, "structure"): (0.459, 0.547, 0.683, 0.844, 1.020, 1.203),
        ("clusters", 0.0, "armul"): (0.191, 0.296, 0.420, 0.518, 0.575, 0.620),
        ("clusters", 0.0, "alone"): (0.708, 0.708, 0.709, 0.709, 0.709, 0.709),
        ("clusters", 0.0, "structure"): (0.190, 0.301, 0.475, 0.666, 0.866, 1.068),
        ("clusters", 0.2, "armul"): (0.496, 0.506, 0.538, 0.575, 0.600, 0.624),
        ("clusters", 0.2, "alone"): (0.702, 0.702, 0.703, 0.703, 0.703, 0.704),
        ("clusters", 0.2, "structure"): (0.757, 0.819, 0.927, 1.070, 1.224, 1.395),
        ("low-rank", 0.0, "armul"): (0.309, 0.363, 0.449, 0.527, 0.583, 0.623),
        ("low-rank", 0.0, "alone"): (0.716, 0.716, 0.716, 0.716, 0.717, 0.717),
        ("low-rank", 0.0, "structure"): (0.308, 0.367, 0.505, 0.678, 0.867, 1.062),
        ("low-rank", 0.2, "armul"): (0.346, 0.388, 0.464, 0.530, 0.586, 0.618),
        ("low-rank", 0.2, "alone"): (0.712, 0.712, 0.712, 0.712, 0.712, 0.712),
        ("low-rank", 0.2, "structure"): (0.354, 0.405, 0.533, 0.700, 0.883, 1.073),
    }
)
