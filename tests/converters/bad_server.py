"""A local HTTP server of one file, with the habits of servers and networks that break downloads."""

import contextlib
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Served:
    """content: the file. etag, last_modified: None sends none.

    cut_after: connections end after so many bytes of a body. cuts: how many do, None for all.
    ranges: False ignores them and sends the whole. if_range: False sends a range whatever file is asked for.
    announced: the Content-Length that is told, None for the right one. no_length: none is told.
    refuse: the first so many requests end in status `status`. head: False answers HEAD with 405.
    stall_after: connections stop for `stalled_s` after so many bytes of a body, and stay open.
    before: called with every GET, before it is answered. requests: method and Range of each request.
    """

    content: bytes
    etag: str | None = '"one"'
    last_modified: str | None = None
    cut_after: int | None = None
    cuts: int | None = None
    ranges: bool = True
    if_range: bool = True
    announced: int | None = None
    no_length: bool = False
    refuse: int = 0
    status: int = 503
    head: bool = True
    stall_after: int | None = None
    stalled_s: float = 30.0
    before: Callable[["Served"], None] | None = None
    requests: list[str] = field(default_factory=list)


@contextlib.contextmanager
def serving(served: Served) -> Iterator[str]:
    """The URL of `served` while the block runs."""

    released = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._answer(body=False)

        def do_GET(self) -> None:
            if served.before:
                served.before(served)
            self._answer(body=True)

        def log_message(self, *_: object) -> None:
            pass

        def _answer(self, body: bool) -> None:
            wanted = self.headers.get("Range", "")
            served.requests.append(f"{self.command} {wanted}".strip())
            self.close_connection = True
            if served.refuse or (not body and not served.head):
                served.refuse -= 1 if body or served.head else 0
                self.send_error(served.status if body or served.head else 405)
                return
            match = re.fullmatch(r"bytes=(\d+)-", wanted)
            first = int(match[1]) if match and served.ranges else None
            named = self.headers.get("If-Range")
            if named and served.if_range and named not in (served.etag, served.last_modified):
                first = None
            total = len(served.content) if served.announced is None else served.announced
            if first is not None and first >= len(served.content):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{total}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            content = served.content[first or 0 :]
            self.send_response(200 if first is None else 206)
            if first is not None:
                self.send_header("Content-Range", f"bytes {first}-{total - 1}/{total}")
            if not served.no_length:
                self.send_header("Content-Length", str(total - (first or 0)))
            if served.etag:
                self.send_header("ETag", served.etag)
            if served.last_modified:
                self.send_header("Last-Modified", served.last_modified)
            self.end_headers()
            if body:
                cut = served.cut_after is not None and (served.cuts is None or served.cuts > 0)
                if cut and served.cuts is not None:
                    served.cuts -= 1
                with contextlib.suppress(OSError):
                    if served.stall_after is not None:
                        self.wfile.write(content[: served.stall_after])
                        released.wait(served.stalled_s)
                        content = content[served.stall_after :]
                    self.wfile.write(content[: served.cut_after] if cut else content)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/arxiv.zip"
    finally:
        released.set()
        server.shutdown()
        server.server_close()
        thread.join()
