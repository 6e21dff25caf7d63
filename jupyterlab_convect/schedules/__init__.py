"""Clocks and events that make runs."""
