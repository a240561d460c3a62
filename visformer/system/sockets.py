"""The server's sockets: small messages are sent at once, which saves 40 ms of each change of a page; and addresses."""

import os
import socket
import stat
from contextlib import suppress
from ipaddress import ip_address, ip_network
from pathlib import Path

_DESCRIPTORS = ("/proc/self/fd", "/dev/fd")


def send_at_once() -> None:
    """Turn Nagle's algorithm off for this process's TCP sockets; connections accepted from them inherit it.

    asyncio does so itself only if the socket names its protocol, which that of ``streamlit run`` does not. Small
    messages then wait for the browser to acknowledge the one before, and delayed acknowledgements take some 40 ms
    for each change of a page. Does nothing where file descriptors cannot be listed.
    """
    folder = next((folder for folder in map(Path, _DESCRIPTORS) if folder.is_dir()), None)
    for name in os.listdir(folder) if folder else ():
        with suppress(OSError):
            if not stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                continue
            with socket.socket(fileno=os.dup(int(name))) as each:
                if each.family in (socket.AF_INET, socket.AF_INET6) and each.type == socket.SOCK_STREAM:
                    each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def network_of(address: str) -> str:
    """Return the address of one visitor's network: of IPv6 the first 64 bits, which one has all of; "": it is none."""
    try:
        one = ip_address(address)
    except ValueError:
        return ""
    return str(ip_network((one, 64 if one.version == 6 else 32), strict=False).network_address)
