"""The source ``openapi``: API descriptions as documents."""
