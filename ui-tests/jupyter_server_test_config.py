"""The server of the browser tests. What it writes goes where the test configuration says."""

import json
import os

from jupyterlab.galata import configure_jupyter_server

c = get_config()  # noqa: F821
configure_jupyter_server(c)

c.ServerApp.allow_root = True
# Shown with the journeys: only what helps to understand one that failed.
c.ServerApp.log_level = "WARN"
c.ServerApp.port = int(os.environ["CONVECT_UI_PORT"])
# Ports that are free when they are chosen may be taken when the kernel listens.
c.KernelManager.transport = "ipc"
# Without live collaboration, unless a test asks for it.
c.YDocExtension.disable_rtc = os.environ.get("CONVECT_UI_RTC") != "1"
# The web servers that tests start; and components run as processes, whatever the machine has.
c.Convect.catalog_hosts = ["127.0.0.1"]
# A server that is not there; tests choose it by its name. Pictures show what everybody has.
if not os.environ.get("CONVECT_SCREENSHOT"):
    c.Convect.named_runtimes = {"team": {"kind": "kfp", "endpoint": "http://127.0.0.1:9"}}
    c.Convect.profiles = [
        {"name": "Tiny", "cpu": "100m", "memory": "64Mi", "notes": "For tests."},
        {"name": "Huge", "cpu": 4096},
    ]
    c.Convect.images = [{"image": "ghcr.io/team/base:1", "notes": "Python 3.12"}]
    # A real cluster as accounts with different rights see it, where there is one.
    clusters = json.loads(os.environ.get("CONVECT_UI_CLUSTERS", "{}"))
    for name, kubeconfig in clusters.items():
        own = {"kind": "kubernetes", "config_file": kubeconfig, "display_name": name}
        c.Convect.named_runtimes[name] = own
os.environ["CONVECT_CONTAINER_ENGINE"] = ""
# A Kubeflow Pipelines, where there is one.
c.KfpRuntime.endpoint = os.environ.get("CONVECT_UI_KFP", "")
c.KfpRuntime.image = os.environ.get("CONVECT_UI_KFP_IMAGE", "")
