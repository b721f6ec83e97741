"""Fetches files over HTTP so that they arrive whole: resumed, retried, checked, then renamed.

zenodo-get 3.1 is not used for it: it cannot resume a file, writes under the final name before the
checksum is known, knows one host only, and takes over Ctrl-C as soon as it is imported.
"""

import email.utils
import hashlib
import itertools
import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self
from urllib.parse import urljoin, urlsplit

import requests

from fl_saliency.atari_head.archives import content_kind, describe_content
from fl_saliency.errors import InputError, JobError

__all__ = ["Progress", "RemoteFile", "Transfer", "check_url", "has_content"]

LONGEST_WAIT = 300.0
"""A server that asks for a longer wait, in seconds, ends the job instead."""

_CHUNK = 2**13  # what a dropped connection costs at most
_JSON_CHUNKS = 2**12  # the list of a record's files is far smaller than these 32 MiB
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_READABLE_STATUS = frozenset({200, 206, 416})
_TRANSIENT_STATUS = frozenset({408, 429, 500, 502, 503, 504})


@dataclass(frozen=True, kw_only=True)
class RemoteFile:
    """A file that can be fetched, and how to know it."""

    name: str
    url: str
    size: int
    """In bytes."""
    md5: str
    """Hexadecimal, lower case."""


class Progress(Protocol):
    """Told how a transfer goes on; all its methods may do nothing."""

    def start(self, file: RemoteFile, done: int) -> None:
        """`file` is next, `done` bytes of it are there."""

    def at(self, done: int) -> None:
        """`done` bytes of it are there; fewer than before where a server starts over."""

    def note(self, text: str) -> None:
        """Something that a waiting person wants to know."""


class _Silent:
    def start(self, file: RemoteFile, done: int) -> None: ...
    def at(self, done: int) -> None: ...
    def note(self, text: str) -> None: ...


class _TransientError(Exception):
    """A failure that may pass; `wait` is what the server asks for, in seconds."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


def check_url(url: str) -> str:
    """Return `url` if it is https, or http on this machine; raise InputError otherwise."""
    if not _is_allowed(url):
        raise InputError(f"URL {url!r}: expected https://... (http only on this machine)")
    return url


def _is_allowed(url: str) -> bool:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port  # both may be malformed
    except ValueError:
        return False
    if not host or not re.fullmatch(r"[\w.:-]+", host):
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK)


def has_content(path: Path, file: RemoteFile) -> bool:
    """Whether `path` is `file`, whole and unchanged."""
    return path.is_file() and path.stat().st_size == file.size and _md5(path) == file.md5


def _md5(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


class _Session(requests.Session):
    """A session that follows redirects to allowed addresses only."""

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        target = super().get_redirect_target(resp)
        if target and not _is_allowed(urljoin(resp.url, target)):
            resp.close()
            raise requests.exceptions.InvalidURL(f"it leads to {target}, which is not https")
        return target


class Transfer:
    """An HTTP session that tries again: after 429 and 5xx, dropped connections and timeouts.

    A try that brings no new byte is followed by up to `retries` more, after 1, 2, 4, ... seconds,
    or what Retry-After says. `sleep` is for tests.
    """

    def __init__(
        self,
        *,
        retries: int = 6,
        timeout: tuple[float, float] = (15.0, 60.0),
        sleep: Callable[[float], object] = time.sleep,
        progress: Progress | None = None,
    ) -> None:
        self._retries = retries
        self._timeout = timeout
        self._sleep = sleep
        self._progress = progress or _Silent()
        self._session = _Session()

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()

    def json(self, url: str, what: str) -> Any:
        """The JSON document at `url`; raises JobError, naming it as `what`, if it cannot be had."""

        def load() -> bytes:
            with self._get(url, what, {}) as response:
                return b"".join(itertools.islice(_chunks(response), _JSON_CHUNKS))

        data: bytes = self._persist(what, load, lambda: 0)
        try:
            return json.loads(data)
        except ValueError as error:
            found = describe_content(data[:512])
            raise JobError(f"{what}: {url} sent {found}, expected JSON") from error

    def fetch(self, file: RemoteFile, target: Path) -> None:
        """Bring `file` to `target`, which is replaced in one go, once the md5 is right.

        What has come is kept in `<target>.part` until then, and continued from by the next call.
        Raises JobError, naming the file, when the server refuses it, sends a web page or other
        content in its place, or fails too often.
        """
        part = target.with_name(target.name + ".part")
        try:
            for _ in range(2):  # what was kept from an earlier call may be of another version
                self._complete(file, part)
                if (digest := _md5(part)) == file.md5:
                    part.replace(target)
                    return
                part.unlink()
                self._progress.note(f"{file.name}: wrong md5")
        except OSError as error:
            raise JobError(f"{part}: cannot be written ({error.strerror})") from error
        raise JobError(
            f"{file.name}: {file.url} has md5 {digest}, expected {file.md5}; it was deleted"
        )

    def _complete(self, file: RemoteFile, part: Path) -> None:
        part.touch()
        if part.stat().st_size > file.size:
            part.write_bytes(b"")
        self._progress.start(file, part.stat().st_size)
        try:
            if part.stat().st_size < file.size:
                self._persist(
                    file.name, lambda: self._append(file, part), lambda: part.stat().st_size
                )
        finally:
            if not part.stat().st_size and file.size:
                part.unlink()

    def _persist(self, what: str, attempt: Callable[[], Any], done: Callable[[], int]) -> Any:
        """`attempt` until it succeeds; `done` tells whether a failed one has brought it further."""
        failures, furthest = 0, done()
        while True:
            try:
                return attempt()
            except _TransientError as error:
                failures = 0 if done() > furthest else failures + 1
                furthest = max(furthest, done())
                if failures > self._retries:
                    raise JobError(
                        f"{what}: gave up after {failures} tries in vain; {error}"
                    ) from error
                wait = 2.0 ** max(0, failures - 1) if error.wait is None else error.wait
                if wait > LONGEST_WAIT:
                    raise JobError(f"{what}: {error}; it asks to wait {wait:.0f} s") from error
                self._progress.note(f"{what}: {error}; next try in {wait:.0f} s")
                self._sleep(wait)

    def _append(self, file: RemoteFile, part: Path) -> None:
        """Continue `part`; raises _TransientError unless it is whole afterwards."""
        offset = part.stat().st_size
        ask = {"Range": f"bytes={offset}-"} if offset else {}
        with self._get(file.url, file.name, ask) as response:
            if response.status_code in (206, 416) and not _continues(response, offset):
                part.write_bytes(b"")
                raise _TransientError(f"{file.url} sent another part than was asked for")
            resumed = response.status_code == 206
            chunks = _without_html(_chunks(response), response, file)
            self._write(file, part, chunks, offset if resumed else 0)
        if (size := part.stat().st_size) < file.size:
            raise _TransientError(f"{file.url} ended after {size} of {file.size} bytes")

    def _write(self, file: RemoteFile, part: Path, chunks: Iterator[bytes], done: int) -> None:
        first = next(chunks, b"")  # before the file is opened: a web page must not empty it
        with part.open("r+b") as out:
            out.truncate(done)
            out.seek(done)
            for chunk in _chain(first, chunks):
                done += len(chunk)
                if done > file.size:
                    out.truncate(0)
                    raise JobError(f"{file.name}: {file.url} sent more than {file.size} bytes")
                out.write(chunk)
                self._progress.at(done)

    def _get(self, url: str, what: str, headers: dict[str, str]) -> requests.Response:
        """The open response, of status 200, 206 or 416; other ones are errors."""
        # Proxies from the environment are for the world outside.
        self._session.trust_env = urlsplit(url).hostname not in _LOOPBACK
        try:
            response = self._session.get(
                url,
                headers={"Accept-Encoding": "identity", **headers},
                stream=True,
                timeout=self._timeout,
            )
        except requests.exceptions.SSLError as error:
            raise JobError(f"{what}: {url} cannot be trusted ({_reason(error)})") from error
        except (requests.ConnectionError, requests.Timeout) as error:
            raise _TransientError(f"{url} cannot be reached ({_reason(error)})") from error
        except requests.RequestException as error:
            raise JobError(f"{what}: {url} cannot be fetched ({_reason(error)})") from error
        try:
            _check_status(response, what)
        except BaseException:
            response.close()
            raise
        return response


def _check_status(response: requests.Response, what: str) -> None:
    status = response.status_code
    if status in _READABLE_STATUS:
        return
    answer = f"{response.url} answered {status} {response.reason or ''}".rstrip()
    if status in _TRANSIENT_STATUS:
        raise _TransientError(answer, _retry_after(response.headers.get("Retry-After")))
    raise JobError(f"{what}: {answer}")


def _retry_after(value: str | None) -> float | None:
    """Seconds to wait, from a number of seconds or an HTTP date; None if there is neither."""
    if value is None:
        return None
    try:
        if value.strip().isdigit():
            return float(value)
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None


def _reason(error: Exception) -> str:
    """The innermost cause in a few words: requests nests up to four exceptions."""
    cause: BaseException = error
    while (inner := cause.__cause__ or cause.__context__) is not None:
        cause = inner
    return " ".join(str(cause).split())[:150] or type(cause).__name__


def _chunks(response: requests.Response) -> Iterator[bytes]:
    """The body; a connection that drops is a _TransientError."""
    try:
        yield from response.iter_content(_CHUNK)
    except (requests.RequestException, OSError) as error:
        raise _TransientError(f"{response.url} broke off ({_reason(error)})") from error


def _without_html(
    chunks: Iterator[bytes], response: requests.Response, file: RemoteFile
) -> Iterator[bytes]:
    """`chunks`, unless they are a web page, as sites send it under maintenance: a JobError."""
    first = next(chunks, b"")
    page = "text/html" in response.headers.get("Content-Type", "")
    starts = response.status_code == 200 and content_kind(first[:512]) == "html"
    if (page or starts) and not file.name.endswith((".html", ".htm")):
        raise JobError(f"{file.name}: {file.url} sent an HTML page in its place")
    yield from _chain(first, chunks)


def _chain(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _continues(response: requests.Response, offset: int) -> bool:
    return response.headers.get("Content-Range", "").startswith(f"bytes {offset}-")
