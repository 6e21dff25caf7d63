"""The pipeline document: parse, check, resolve to a plan."""
