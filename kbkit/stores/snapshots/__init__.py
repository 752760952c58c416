"""One version of a knowledge base as arrays: made, kept as a file, made ready beside searches."""
