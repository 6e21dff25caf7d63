"""Pipelines of Kubeflow: a whole plan as one of its own."""
