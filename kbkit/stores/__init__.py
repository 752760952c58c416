"""Storage: catalog, vectors, snapshots, locks.

Only this room knows SQL and Chroma. Callers pass a `Transaction` of ``stores.database``.
"""
