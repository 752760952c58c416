"""Documents to chunks to stores."""
