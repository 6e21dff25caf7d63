"""Executes one step, wherever it is; needs Python and, for notebooks, papermill, nothing else."""
