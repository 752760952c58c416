"""The evaluation panel."""
