"""What happens between the start of the server and its first answer.

A visitor loses: a third of a second of the first page after a start, and 40 ms of each change of a page.
"""

import os
import socket
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

from streamlit.web import bootstrap

_DESCRIPTORS = ("/proc/self/fd", "/dev/fd")


def run_once_up(prepare: Callable[[], object]) -> None:
    """Have ``prepare`` run in a thread once the server is up, while a browser loads Streamlit's sixty scripts."""
    on_server_start = bootstrap._on_server_start

    def begin(server: Any) -> None:
        send_at_once()
        Thread(target=prepare, name="imports", daemon=True).start()
        on_server_start(server)

    bootstrap._on_server_start = begin


def send_at_once() -> None:
    """Turn Nagle's algorithm off for this process's TCP sockets, and so for what its listening ones will accept.

    ``streamlit run`` binds its socket without naming the protocol, which is where asyncio looks before it does this
    itself. Small messages then wait until the browser has confirmed the one before, and a system takes its time for
    that: some 40 ms for each change of a page. Nothing happens where descriptors cannot be listed.
    """
    listed = next((folder for folder in map(Path, _DESCRIPTORS) if folder.is_dir()), None)
    for name in os.listdir(listed) if listed else ():
        with suppress(OSError):
            if not stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                continue
            with socket.socket(fileno=os.dup(int(name))) as found:
                if found.family in (socket.AF_INET, socket.AF_INET6) and found.type == socket.SOCK_STREAM:
                    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
