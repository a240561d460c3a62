"""A TCP proxy between browser and server whose connections can be cut."""

import contextlib
import socket
import threading


class Proxy:
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
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def restore(self):
        self.up = True

    def close(self):
        self.cut()
        self._listener.close()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # closed
            if not self.up:
                client.close()
                continue
            try:
                server = socket.create_connection(("127.0.0.1", self.server_port))
            except OSError:
                client.close()
                continue
            self._open |= {client, server}
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=self._forward, args=(source, target), daemon=True).start()

    def _forward(self, source, target):
        with contextlib.suppress(OSError):
            while content := source.recv(65536):
                target.sendall(content)
        for connection in (source, target):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            self._open.discard(connection)
            connection.close()
