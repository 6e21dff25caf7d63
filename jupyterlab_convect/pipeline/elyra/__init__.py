"""Elyra pipelines, versions 0 to 8, as documents of ours.

`canvas` reads the file and flattens it, `settings` translates the properties of a node,
`convert` puts the document together. What has no equivalent here is kept under `extra.elyra`
of the object it belonged to, and reported.
"""

from .convert import import_elyra, seen_from

__all__ = ["import_elyra", "seen_from"]
