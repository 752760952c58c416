"""Measure and improve search by ratings.

`rating` takes ratings, `scores` sums them up, `judgements` makes labels of them (`trec` on disk),
`agreement` compares raters. `pooling` and `judging` choose what to rate. `loading` reads golden
questions; `evaluate` measures search by an `evaluation_set` (`measures`, `statistics`); `tune`
learns weights by a `candidate_cache`. `query_ids` tells when two queries are one.
"""
