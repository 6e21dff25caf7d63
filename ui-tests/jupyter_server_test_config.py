"""The server of the browser tests. What it writes goes where the test configuration says."""

import os

from jupyterlab.galata import configure_jupyter_server

c = get_config()  # noqa: F821
configure_jupyter_server(c)

c.ServerApp.allow_root = True
c.ServerApp.port = int(os.environ["CONVECT_UI_PORT"])
