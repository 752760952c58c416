"""From a query to hits: candidates of two legs, exact scores, fusion."""
