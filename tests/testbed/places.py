"""Names and places of the test bed: one node, its bridge, its addresses, its folder."""

from __future__ import annotations

import build

NODE = "n1"
BRIDGE = "convect0"
ADDRESS = "10.88.77.1"
PODS = "10.88.77.0/24"
SERVICES = "10.96.0.0/16"
FIRST_SERVICE = "10.96.0.1"
API_PORT = 16443
ETCD_PORT = 12379
SERVER = f"https://{ADDRESS}:{API_PORT}"

STATE = build.cache_folder().parent / "testbed"
PKI = STATE / "pki"
KUBECONFIG = PKI / "admin.conf"
SHARED = STATE / "shared"
"""The folder behind the volume that every pod can mount."""
