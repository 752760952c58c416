"""Bundles: knowledge bases in one portable file.

A bundle is a zip file. ``manifest.json`` lists format, versions, knowledge bases, and the other
members with sizes and SHA-256; ``tables/*.jsonl`` are rows of the catalog, one JSON object per
line; ``images/``, ``files/`` and ``entries/`` are files. An optional ``signature.json`` is a DSSE
envelope around the manifest.
"""
