"""From a query to hits; `retriever` runs the stages.

`query` validates and embeds the query, `encoder_fitting` fits an encoder for use without a model,
`corpora` finds candidates, `fusion` scores and postprocesses them, `ranking` orders them,
`searching` makes hits and answers. `context`, `delimiting` and `llamaindex` pass hits to language
models.
"""
