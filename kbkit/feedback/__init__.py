"""Measure and improve search by ratings.

Ratings (`rating`) become labels (`judgements`). `judging` chooses what to rate. `evaluate` measures
search on an `evaluation_set` (`statistics`); `tune` learns weights.
"""
