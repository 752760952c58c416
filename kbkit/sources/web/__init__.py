"""Sources that fetch from the web, politely and guarded."""
