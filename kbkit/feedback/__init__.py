"""From ratings to judgements, from those to figures, and from figures to better search."""
