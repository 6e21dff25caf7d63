"""Names and labels that Kubernetes accepts, made from anything a person may have written."""

from __future__ import annotations

import hashlib
import re

DOMAIN = "jupyterlab-convect.dev"
MANAGED_BY = "app.kubernetes.io/managed-by"
US = "jupyterlab-convect"
RUN, STEP, ATTEMPT = f"{DOMAIN}/run", f"{DOMAIN}/step", f"{DOMAIN}/attempt"
NAME = f"{DOMAIN}/name"
OURS = f"{MANAGED_BY}={US}"
"""Selects all that we made."""
JOB = "batch.kubernetes.io/job-name"
"""The label by which Kubernetes ties a pod to its Job."""

LONGEST = 63
_LABEL = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")


def job_name(run: str, step: str, attempt: int) -> str:
    """The same for the same attempt, from every process, and different for every other.

    That makes starting idempotent: a Job that is there already is the one that was meant.
    """
    tail = f"{run}-{attempt}"
    return f"{slug(step, LONGEST - len(tail) - 1)}-{tail}"


def slug(text: str, longest: int = LONGEST) -> str:
    """A DNS label; with a digest in it whenever two texts could become the same."""
    plain = _NOT_IN_NAMES.sub("-", text.lower()).strip("-")
    if plain == text and len(text) <= longest:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    head = plain[: longest - len(digest) - 1].strip("-")
    return f"{head}-{digest}" if head else digest


def label_value(text: str) -> str:
    """The text itself where a label can hold it."""
    if len(text) <= LONGEST and _LABEL.fullmatch(text):
        return text
    return slug(text)


def labels_of(run: str, step: str, attempt: int) -> dict[str, str]:
    return {
        MANAGED_BY: US,
        RUN: label_value(run),
        STEP: label_value(step),
        ATTEMPT: str(attempt),
    }
