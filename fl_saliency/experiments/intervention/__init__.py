"""Counterfactuals: change memory or picture at one moment of a game, and see what follows.

Atrey et al. 2020, "Exploratory Not Explanatory: Counterfactual Analysis of Saliency Maps for Deep
Reinforcement Learning", arXiv 1912.05743.
"""
