"""Training jobs of Kubeflow in YAML: checked by line, changed by a form, turned into others."""
