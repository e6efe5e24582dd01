"""The arena: a fixed suite of games on which policies are scored against what no policy can beat."""
