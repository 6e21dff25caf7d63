"""Names and places of the test bed: one node, its bridge, its addresses, its folder."""

from __future__ import annotations

import build

NODE = "n1"
BRIDGE = "convect0"
BRIDGE_MAC = "02:63:76:63:74:01"
BRIDGE_PORT = "convect0-up"
ADDRESS = "10.88.77.1"
PODS = "10.88.77.0/24"
SERVICES = "10.96.0.0/16"
FIRST_SERVICE = "10.96.0.1"
DNS_SERVICE = "10.96.0.10"
DNS_PORT = 1053
DNS_HEALTH = "127.0.0.1:18181"
API_PORT = 16443
ETCD_PORT = 12379
SERVER = f"https://{ADDRESS}:{API_PORT}"

GROUP = 61616
"""Of every process of the test bed, so that the packet filter knows its packets."""
ELSEWHERE = "198.51.100.1"
"""An address for documentation: what a test sends there is counted apart."""

STATE = build.cache_folder().parent / "testbed"
PKI = STATE / "pki"
KUBECONFIG = PKI / "admin.conf"
SHARED = STATE / "shared"
"""The folder behind the volume that every pod can mount."""
