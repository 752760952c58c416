"""Storage: catalog, lexical indexes, vectors, snapshots, locks.

The one room that knows SQL and Chroma. What stands above gets `Stores`, and calls functions of
`kbkit.stores.catalog` with a `Transaction` that ``stores.database`` begins.
"""
