"""From a query to hits; `retriever` runs the stages.

`query` is what somebody asks, `query_vectors` embeds it (`encoder_fitting` for when no model does),
`candidates` finds chunks by both retrievers, `bm25` and `fusion` score them, `ranking` orders them,
`postprocess` has the last word, `snippet` cuts what is shown. `answering`, `quoted_hits` and
`llamaindex` hand hits to language models.
"""
