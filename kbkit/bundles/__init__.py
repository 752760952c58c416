"""Bundles: knowledge bases in one portable file.

A bundle is a zip file. ``manifest.json`` names format, versions, knowledge bases and each other
member with its size and SHA-256; ``tables/*.jsonl`` are the rows of the catalog, a JSON object a
line; ``images/``, ``files/`` and ``entries/`` are what lies beside it. ``signature.json``, where
there is one, is a DSSE envelope around the manifest.
"""
