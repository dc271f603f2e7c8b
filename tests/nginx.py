"""nginx in front of servers, with a configuration of its `http` block."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

__all__ = ["nginx"]

_NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")  # the path in Debian
_CONFIG = """
worker_processes 1; daemon off; pid {folder}/pid; error_log {folder}/log;
events {{ worker_connections 8192; }}
http {{
    access_log off;
    client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
    uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
    {server}
}}
"""


@contextmanager
def nginx(server: str, port: int) -> Generator[None]:
    """Run nginx, which listens at a port. Skip the test if it is not installed."""
    if _NGINX is None:
        pytest.skip("needs nginx (Debian package nginx)")
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "nginx.conf"
        config.write_text(_CONFIG.format(folder=folder, server=server))
        with subprocess.Popen([_NGINX, "-c", str(config)], stderr=subprocess.DEVNULL) as process:
            try:
                _wait_for(port)
                yield
            except BaseException:
                print("nginx said:", (Path(folder) / "log").read_text()[-4000:])
                raise
            finally:
                process.terminate()


def _wait_for(port: int) -> None:
    for _ in range(3000):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        signal.sigtimedwait([], 0.02)
    raise RuntimeError(f"nobody listens at {port}")
