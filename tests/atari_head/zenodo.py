"""A small Zenodo on this machine that misbehaves to order."""

import contextlib
import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

RECORD = 77


class FakeZenodo(ThreadingHTTPServer):
    """Serves `files` as one record. `script[name]` holds what the next answers for a file are.

    An answer is a dict with some of: status, headers, body (in place of the file's), drop (the
    share of the body after which the connection breaks), ignore_range. An empty one is honest.
    """

    daemon_threads = True

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files = files
        self.script: dict[str, list[dict[str, Any]]] = {}
        self.always: dict[str, dict[str, Any]] = {}
        self.entries: dict[str, dict[str, Any]] = {}
        self.requests: list[tuple[str, str | None]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def asked(self, name: str) -> list[str | None]:
        """The Range header of each request for a file."""
        return [ranges for path, ranges in self.requests if path == name]

    def record(self) -> bytes:
        return json.dumps({"files": [self.entry(name) for name in self.files]}).encode()

    def entry(self, name: str) -> dict[str, Any]:
        data = self.files[name]
        return {
            "key": name,
            "size": len(data),
            "checksum": "md5:" + hashlib.md5(data).hexdigest(),
            "links": {"self": f"{self.url}/api/records/{RECORD}/files/{name}/content"},
            **self.entries.get(name, {}),
        }

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no news."""


class _Handler(BaseHTTPRequestHandler):
    server: FakeZenodo

    def log_message(self, *arguments: Any) -> None: ...

    def do_GET(self) -> None:
        parts = self.path.strip("/").split("/")
        name = parts[4] if len(parts) > 4 else "record"
        ranges = self.headers.get("Range")
        self.server.requests.append((name, ranges))
        pending = self.server.script.get(name)
        answer = pending.pop(0) if pending else self.server.always.get(name, {})
        whole = self.server.record() if name == "record" else self.server.files[name]
        self._answer(answer, whole, ranges)

    def _answer(self, answer: dict[str, Any], whole: bytes, ranges: str | None) -> None:
        start = int(ranges.removeprefix("bytes=").removesuffix("-")) if ranges else 0
        body, status, headers = answer.get("body", whole), answer.get("status", 200), {}
        if ranges and status == 200 and not answer.get("ignore_range"):
            status, headers = 206, {"Content-Range": f"bytes {start}-{len(body) - 1}/{len(body)}"}
            body = body[start:]
        if status >= 400:
            body = answer.get("body", b"no")
        self.send_response(status)
        for key, value in (headers | answer.get("headers", {})).items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: int(len(body) * answer.get("drop", 1))])
        self.close_connection = True


@contextlib.contextmanager
def serve(files: dict[str, bytes]) -> Iterator[FakeZenodo]:
    server = FakeZenodo(files)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
