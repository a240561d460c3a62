"""A TCP proxy between browser and server whose connections can be cut."""

import contextlib
import socket
import threading


class Line:
    """Forwards a port of its own to the server's while ``up``."""

    def __init__(self, port):
        self.server_port = port
        self.up = True
        self._open = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self):
        """End all connections, and refuse new ones."""
        self.up = False
        for one in list(self._open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def mend(self):
        self.up = True

    def close(self):
        self.cut()
        self._listener.close()

    def _accept(self):
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return  # closed
            if not self.up:
                near.close()
                continue
            try:
                far = socket.create_connection(("127.0.0.1", self.server_port))
            except OSError:
                near.close()
                continue
            self._open |= {near, far}
            for start, end in ((near, far), (far, near)):
                threading.Thread(target=self._forward, args=(start, end), daemon=True).start()

    def _forward(self, start, end):
        with contextlib.suppress(OSError):
            while content := start.recv(65536):
                end.sendall(content)
        for one in (start, end):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            self._open.discard(one)
            one.close()
