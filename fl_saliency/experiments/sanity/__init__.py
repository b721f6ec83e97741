"""Sanity checks of saliency methods on a trained agent, with intervals over states.

Adebayo et al. 2018, "Sanity Checks for Saliency Maps", arXiv 1810.03292; Petsiuk et al. 2018,
"RISE", arXiv 1806.07421 (insertion and deletion).
"""

BASELINES = ("centre", "random")
"""Always there: they know nothing of the network, so the checks must tell them apart from it."""
