"""Makes metrics_pysaliency.json: pysaliency's NSS, KL and AUC of 50 seeded maps.

Run from the repository's root, in an environment of its own:
  pip install pysaliency==0.2.22 'numpy<2.4'
  python -m tests.golden.metrics_pysaliency
"""

import importlib
import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
from scipy.ndimage import gaussian_filter

from tests.golden.metrics_inputs import PROCESSED, RAW, make_case

# The package as a whole wants torch; these two of its modules do not.
sys.path[:0] = importlib.util.find_spec("pysaliency").submodule_search_locations
metrics = importlib.import_module("metrics")
general_roc = importlib.import_module("roc_cython").general_roc

KINDS = ["uniform", "coarse7", "exponential", "gauss"]


def main() -> None:
    rows = []
    for k in range(50):
        raw = k % 2 == 0
        shape, sigma, kind = RAW if raw else PROCESSED, 5 if raw else 2, KINDS[k // 2 % 4]
        saliency, counts, others = make_case(50000 + k, shape, kind, 1 + k)
        ys, xs = (np.repeat(axis, counts[counts > 0]) for axis in np.nonzero(counts))
        other_ys, other_xs = (np.repeat(axis, others[others > 0]) for axis in np.nonzero(others))
        # pysaliency's floor must not matter where the map is above 0 everywhere.
        gaze = gaussian_filter(counts.astype(float), sigma, mode="mirror", truncate=4)
        rows.append(
            {
                "seed": 50000 + k,
                "shape": shape,
                "kind": kind,
                "nfix": 1 + k,
                "sigma": sigma,
                "nss": metrics.NSS(saliency, xs, ys).mean(),
                "kl_gaze_to_map": metrics.image_based_kl_divergence(saliency, gaze),
                "kl_map_to_gaze": metrics.image_based_kl_divergence(gaze, saliency),
                "auc": general_roc(saliency[ys, xs], saliency[other_ys, other_xs])[0],
            }
        )
    text = json.dumps({"pysaliency": "0.2.22", "cases": rows}, indent=1)
    Path(__file__).with_suffix(".json").write_text(text + "\n")


if __name__ == "__main__":
    main()
