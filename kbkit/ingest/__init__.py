"""Split, embed and store documents.

::

    cutting, spans    documents -> chunks
    embedding         chunks -> vectors; changes of the embedder
    document_writer   stores documents and other events of a source
    pipeline          connects them
    summaries, expansion  summaries of documents, by rules or a language model
"""
