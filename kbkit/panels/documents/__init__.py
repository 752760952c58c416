"""The documents panel."""
