"""Measure and improve search by ratings.

Ratings (`rating`) become labels (`judgements`). `pooling` and `judging` choose what to rate.
`evaluate` measures search on an `evaluation_set` (`measures`, `statistics`); `tune` learns weights
from a `candidate_cache`.
"""
