"""Split, embed and store documents.

`chunking` cuts (`spans`, `node_parser`), `embedding` gives vectors, `document_writer` stores what
came and `event_writer` what else a source says, `batching` many at a time; `counters` become the
report, `ids` name documents. `reembed` changes the embedder.
"""
