import datetime
import email.utils
import hashlib
import socket
from pathlib import Path

import pytest

from fl_saliency.atari_head.transfer import RemoteFile, Transfer, check_url, has_content
from fl_saliency.errors import InputError, JobError
from tests.atari_head.zenodo import FakeZenodo, serve

DATA = bytes(range(256)) * 2048  # 64 chunks of 8 KiB
NAME = "breakout.zip"
HTML = b"<!DOCTYPE html><html><body>down for maintenance</body></html>"


@pytest.fixture
def server():
    with serve({NAME: DATA}) as running:
        yield running


class Client:
    def __init__(self, server: FakeZenodo, folder: Path) -> None:
        self.slept: list[float] = []
        self.transfer = Transfer(sleep=self.slept.append, retries=3, timeout=(5, 5))
        self.target = folder / NAME
        self.part = folder / f"{NAME}.part"
        self.folder = folder
        self.file = RemoteFile(
            name=NAME,
            url=server.entry(NAME)["links"]["self"],
            size=len(DATA),
            md5=hashlib.md5(DATA).hexdigest(),
        )

    def fetch(self) -> None:
        self.transfer.fetch(self.file, self.target)

    def fails(self) -> str:
        with pytest.raises(JobError) as caught:
            self.fetch()
        assert not self.target.exists()
        message = str(caught.value)
        assert NAME in message
        assert len(message.splitlines()) == 1
        return message

    def arrived(self) -> bool:
        return list(self.folder.iterdir()) == [self.target] and self.target.read_bytes() == DATA


@pytest.fixture
def client(server, tmp_path):
    made = Client(server, tmp_path)
    with made.transfer:
        yield made


def test_a_file_arrives_whole(client, server):
    client.fetch()
    assert client.arrived()
    assert has_content(client.target, client.file)
    assert server.asked(NAME) == [None]
    assert client.slept == []


def test_an_empty_file_arrives(client, server):
    server.files[NAME] = b""
    client.file = RemoteFile(
        name=NAME, url=client.file.url, size=0, md5=hashlib.md5(b"").hexdigest()
    )
    client.fetch()
    assert client.target.read_bytes() == b""


def test_a_connection_that_drops_is_continued(client, server):
    server.script[NAME] = [{"drop": 0.5}, {"drop": 0.5}]
    client.fetch()
    assert client.arrived()
    half, rest = len(DATA) // 2, len(DATA) // 2 + len(DATA) // 4
    assert server.asked(NAME) == [None, f"bytes={half}-", f"bytes={rest}-"]
    assert client.slept == [1, 1]  # each try brought it further


def test_a_server_that_ignores_range_is_read_from_the_start(client, server):
    server.script[NAME] = [{"drop": 0.5}, {"ignore_range": True}]
    client.fetch()
    assert client.arrived()
    assert len(server.asked(NAME)) == 2


def test_a_file_that_never_comes_further_ends_the_job(client, server):
    server.always[NAME] = {"drop": 0.5, "ignore_range": True}
    assert "gave up after 4 tries in vain" in client.fails()
    assert client.slept == [1, 1, 2, 4]
    assert len(server.asked(NAME)) == 5  # one that made way, and four that did not
    assert client.part.stat().st_size == len(DATA) // 2  # to be continued


def test_a_later_call_continues_what_an_earlier_one_left(client, server):
    client.part.write_bytes(DATA[:1000])
    client.fetch()
    assert client.arrived()
    assert server.asked(NAME) == ["bytes=1000-"]


def test_what_an_earlier_call_left_whole_is_not_asked_for_again(client, server):
    client.part.write_bytes(DATA)
    client.fetch()
    assert client.arrived()
    assert server.asked(NAME) == []


@pytest.mark.parametrize("left", [b"x" * 1000, b"x" * len(DATA), b"x" * (len(DATA) + 1)])
def test_what_was_left_of_another_version_is_fetched_anew(client, left):
    client.part.write_bytes(left)
    client.fetch()
    assert client.arrived()


@pytest.mark.parametrize(
    "answer",
    [
        {"status": 416},
        {"status": 206, "headers": {"Content-Range": f"bytes 0-9/{len(DATA)}"}, "body": b"0" * 10},
    ],
)
def test_an_answer_for_another_range_starts_over(client, server, answer):
    client.part.write_bytes(DATA[:1000])
    server.script[NAME] = [answer]
    client.fetch()
    assert client.arrived()
    assert server.asked(NAME) == ["bytes=1000-", None]


def test_too_many_requests_twice_is_waited_for(client, server):
    wait = {"status": 429, "headers": {"Retry-After": "7"}}
    server.script[NAME] = [wait, wait]
    client.fetch()
    assert client.arrived()
    assert client.slept == [7, 7]


def test_retry_after_may_be_a_date(client, server):
    at = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=60)
    date = email.utils.format_datetime(at, usegmt=True)
    server.script[NAME] = [{"status": 503, "headers": {"Retry-After": date}}]
    client.fetch()
    assert len(client.slept) == 1
    assert 50 < client.slept[0] <= 60


@pytest.mark.parametrize("value", ["soon", "", "-5"])
def test_a_retry_after_without_sense_is_passed_over(client, server, value):
    server.script[NAME] = [{"status": 429, "headers": {"Retry-After": value}}]
    client.fetch()
    assert client.slept == [1]


def test_a_wait_of_hours_ends_the_job(client, server):
    server.always[NAME] = {"status": 429, "headers": {"Retry-After": "7200"}}
    assert "it asks to wait 7200 s" in client.fails()
    assert client.slept == []
    assert list(client.folder.iterdir()) == []


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_busy_server_is_asked_again_later_and_later(client, server, status):
    server.script[NAME] = [{"status": status}] * 3
    client.fetch()
    assert client.arrived()
    assert client.slept == [1, 2, 4]


def test_a_server_that_stays_busy_ends_the_job(client, server):
    server.always[NAME] = {"status": 503}
    assert f"gave up after 4 tries in vain; {client.file.url} answered 503" in client.fails()
    assert list(client.folder.iterdir()) == []


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_a_refusal_names_url_and_status_at_once(client, server, status):
    server.always[NAME] = {"status": status}
    assert f"{client.file.url} answered {status}" in client.fails()
    assert server.asked(NAME) == [None]
    assert list(client.folder.iterdir()) == []


def test_a_refusal_leaves_what_was_there(client, server):
    client.target.write_bytes(b"older")
    server.always[NAME] = {"status": 403}
    with pytest.raises(JobError):
        client.fetch()
    assert client.target.read_bytes() == b"older"


def test_a_wrong_md5_names_the_file_and_leaves_none(client, server):
    server.files[NAME] = DATA[:-1] + b"!"
    assert f"has md5 {hashlib.md5(server.files[NAME]).hexdigest()}" in client.fails()
    assert list(client.folder.iterdir()) == []


@pytest.mark.parametrize(
    "answer",
    [{"body": HTML}, {"body": HTML, "headers": {"Content-Type": "text/html; charset=utf-8"}}],
)
def test_a_web_page_in_place_of_the_file_is_rejected(client, server, answer):
    server.always[NAME] = answer
    assert "sent an HTML page in its place" in client.fails()
    assert list(client.folder.iterdir()) == []


def test_a_web_page_does_not_cost_what_had_come(client, server):
    client.part.write_bytes(DATA[:1000])
    server.always[NAME] = {
        "body": HTML,
        "headers": {"Content-Type": "text/html"},
        "ignore_range": True,
    }
    client.fails()
    assert client.part.read_bytes() == DATA[:1000]


def test_more_than_the_record_says_is_rejected(client, server):
    server.files[NAME] = DATA + b"more"
    assert f"sent more than {len(DATA)} bytes" in client.fails()
    assert list(client.folder.iterdir()) == []


def test_less_than_the_record_says_is_rejected(client, server):
    server.files[NAME] = DATA[:1000]
    server.always[NAME] = {"ignore_range": True}
    assert f"ended after 1000 of {len(DATA)} bytes" in client.fails()


def test_a_redirect_is_followed_but_not_off_https(client, server):
    there = {"status": 302, "headers": {"Location": client.file.url}}
    server.script[NAME] = [there]
    client.fetch()
    assert client.arrived()
    client.target.unlink()
    server.script[NAME] = [{"status": 302, "headers": {"Location": "http://example.org/x"}}]
    assert "it leads to http://example.org/x, which is not https" in client.fails()


def test_a_server_that_is_not_there_ends_the_job(client):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}/x"
    client.file = RemoteFile(name=NAME, url=url, size=1, md5=client.file.md5)
    assert f"{url} cannot be reached" in client.fails()
    assert client.slept == [1, 2, 4]


def test_a_folder_that_is_not_there_is_named(client):
    client.target = client.folder / "none" / NAME
    assert "none/breakout.zip.part: cannot be written" in client.fails()


@pytest.mark.parametrize("url", ["https://zenodo.org/x", "http://127.0.0.1:8", "http://localhost"])
def test_https_and_this_machine_are_allowed(url):
    assert check_url(url) == url


@pytest.mark.parametrize(
    "url",
    [
        "http://zenodo.org",
        "ftp://zenodo.org",
        "file:///etc/passwd",
        "zenodo.org",
        "https://",
        "http://127.0.0.1.evil.org",
        "http://localhost@evil.org",
        "https://[",
        "https://a:b",
    ],
)
def test_other_addresses_are_refused(url):
    with pytest.raises(InputError, match="expected https://"):
        check_url(url)
