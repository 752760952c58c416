"""The ingest panel."""
