"""Runs: their model, the engine that drives them and the store that keeps them."""
