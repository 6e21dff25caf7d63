"""How the files of a step reach a pod and come back, without any cluster's client."""
