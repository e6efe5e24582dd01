"""Rumours as they spread: the first rounds of a game, as a page or as a film."""
