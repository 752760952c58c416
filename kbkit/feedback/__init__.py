"""Measure and improve search by ratings.

Ratings become labels (`judgements`). `judging` chooses what to rate. `evaluate` measures
search on an `evaluation_set` (`statistics`); `tune` learns weights.
"""
