"""Split, embed and store documents.

`cutting` and `spans` cut documents, `embedding` embeds chunks and changes embedders,
`document_writer`
stores events of a source, `pipeline` connects them.
"""
