"""Components: reading them, where they come from, the pinned store, and how they run."""
