import contextlib
import io
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fl_saliency.atari_head.archives import (
    TRIAL_LIMITS,
    Limits,
    content_kind,
    describe_content,
    iter_files,
    open_binary,
    zip_names,
)
from fl_saliency.errors import FileFormatError
from tests.atari_head.makers import member, tar_bytes, zip_bytes
from tests.fuzz import damaged, fuzz

FILES = [("t/b.png", b"bb" * 300), ("t/a.png", b"a"), ("t/empty", b"")]
SMALL = Limits(members=3, member_bytes=600, total_bytes=20_000)


def read(path: Path, limits: Limits = TRIAL_LIMITS) -> list[tuple[str, bytes]]:
    return list(iter_files(path, limits))


def write(tmp_path: Path, data: bytes, name: str = "x.tar.bz2") -> Path:
    path = tmp_path / name
    path.write_bytes(data)
    return path


def odd_tar(info: tarfile.TarInfo) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:bz2") as tar:
        tar.addfile(info)
    return out.getvalue()


def odd_zip(name: str, *, mode: int = 0, **attributes: int) -> bytes:
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    for key, value in attributes.items():
        setattr(info, key, value)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as bundle:
        bundle.writestr(info, b"x")
    return out.getvalue()


@pytest.mark.parametrize("compression", ["", "bz2", "gz"])
def test_tar_yields_its_files_in_its_order_whatever_its_suffix(tmp_path, compression):
    assert read(write(tmp_path, tar_bytes(FILES, compression), "x.bin")) == FILES


def test_zip_yields_its_files_in_its_order(tmp_path):
    assert read(write(tmp_path, zip_bytes(FILES), "x.bin")) == FILES


def test_folders_are_passed_over(tmp_path):
    path = write(tmp_path, odd_tar(member("t", kind=tarfile.DIRTYPE)))
    assert read(path) == []
    assert read(write(tmp_path, zip_bytes([("t/", b""), ("t/a", b"1")]))) == [("t/a", b"1")]


def test_nothing_is_unpacked_to_disk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path, tar_bytes(FILES))
    read(path)
    assert list(tmp_path.iterdir()) == [path]


def test_an_archive_inside_a_zip_is_read_in_place(tmp_path):
    path = write(tmp_path, zip_bytes([("g/t.tar.bz2", tar_bytes(FILES))]), "g.zip")
    inside = iter_files(Path("g/t.tar.bz2"), TRIAL_LIMITS, container=path)
    assert list(inside) == FILES
    assert zip_names(path, TRIAL_LIMITS) == ["g/t.tar.bz2"]


@pytest.mark.parametrize(
    "info",
    [
        member("/etc/passwd"),
        member("../up.png"),
        member("t/../../up.png"),
        member("t\\..\\up.png"),
        member("C:evil.png"),
        member("t/link", kind=tarfile.SYMTYPE, target="/etc/passwd"),
        member("t/hard", kind=tarfile.LNKTYPE, target="t/a"),
        member("t/fifo", kind=tarfile.FIFOTYPE),
        member("t/disk", kind=tarfile.BLKTYPE),
        member("t/tty", kind=tarfile.CHRTYPE),
    ],
    ids=lambda info: info.name,
)
def test_hostile_tar_member_is_refused_by_name(tmp_path, info):
    with pytest.raises(FileFormatError) as caught:
        read(write(tmp_path, odd_tar(info)))
    assert f"member {info.name!r}" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("/etc/passwd", {}),
        ("../up.png", {}),
        ("t/link", {"mode": 0o120777}),
        ("t/fifo", {"mode": 0o010644}),
        ("t/lzma", {"compress_type": zipfile.ZIP_LZMA}),
    ],
)
def test_hostile_zip_member_is_refused_by_name(tmp_path, name, attributes):
    path = write(tmp_path, odd_zip(name, **attributes), "x.zip")
    with pytest.raises(FileFormatError, match=f"member '{name}'"):
        read(path)
    with pytest.raises(FileFormatError, match=f"member '{name}'"):
        zip_names(path, TRIAL_LIMITS)


def test_encrypted_zip_member_is_refused_by_name(tmp_path):
    data = bytearray(zip_bytes([("t/secret", b"x")]))
    data[6] |= 1  # the flag in the member's own header ...
    data[data.index(b"PK\x01\x02") + 8] |= 1  # ... and in the directory
    with pytest.raises(FileFormatError, match="member 't/secret' is encrypted"):
        read(write(tmp_path, bytes(data)))


@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
@pytest.mark.parametrize("pack", [tar_bytes, zip_bytes])
def test_a_name_that_occurs_twice_is_refused(tmp_path, pack):
    with pytest.raises(FileFormatError, match=r"member 't/a' occurs twice"):
        read(write(tmp_path, pack([("t/a", b"1"), ("t/a", b"2")])))


@pytest.mark.parametrize("pack", [tar_bytes, zip_bytes])
@pytest.mark.parametrize(
    ("files", "culprit"),
    [
        ([("t/big", bytes(601))], "'t/big' has 601 bytes"),
        ([(f"t/{i}", b"") for i in range(4)], "'t/3' is one more than 3 members"),
    ],
)
def test_members_above_the_limits_are_refused(tmp_path, pack, files, culprit):
    with pytest.raises(FileFormatError, match=culprit):
        read(write(tmp_path, pack(files)), SMALL)


def test_total_above_the_limit_is_refused(tmp_path):
    limits = Limits(members=99, member_bytes=600, total_bytes=1000)
    with pytest.raises(FileFormatError, match="'t/1' makes the archive larger than 1000"):
        read(write(tmp_path, zip_bytes([(f"t/{i}", bytes(600)) for i in range(3)])), limits)


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE])
def test_a_bomb_in_a_tar_header_is_refused(tmp_path, kind):
    # Such members are read by tarfile itself, before anybody sees their size.
    data = tar_bytes([("t/a", b"1")], "")
    bomb = member("long", size=2**26, kind=kind).tobuf(tarfile.GNU_FORMAT) + bytes(2**16)
    with pytest.raises(FileFormatError, match="unpacks to more than"):
        read(write(tmp_path, bomb + data), SMALL)


@pytest.mark.parametrize("compression", ["", "bz2", "gz"])
def test_a_truncated_tar_is_refused_wherever_it_is_cut(tmp_path, compression):
    data = tar_bytes([(f"t/{i}.png", bytes([i]) * 700) for i in range(5)], compression)
    # A plain tar is whole once its end mark's first block is there; the rest is padding.
    whole = 5 * 3 * 512 + 512 if compression == "" else len(data)
    for cut in [*range(0, whole, max(1, whole // 97)), whole - 1]:
        with pytest.raises(FileFormatError):
            read(write(tmp_path, data[:cut]))


def test_a_damaged_header_is_an_error_and_not_the_end(tmp_path):
    data = bytearray(tar_bytes(FILES, ""))
    second = 512 + 1024  # behind the first header and its 600 bytes
    assert data[second : second + 3] == b"t/a"
    data[second + 148] ^= 1  # its checksum
    with pytest.raises(FileFormatError, match="damaged or truncated"):
        read(write(tmp_path, bytes(data)))


@fuzz(300)
@given(
    data=st.data(),
    pack=st.sampled_from([("", tar_bytes), ("bz2", tar_bytes), ("gz", tar_bytes), ("", zip_bytes)]),
)
def test_damaged_archives_raise_nothing_but_file_format_errors(tmp_path_factory, data, pack):
    compression, make = pack
    whole = make(FILES, compression) if make is tar_bytes else make(FILES)
    path = tmp_path_factory.getbasetemp() / "damaged"
    path.write_bytes(data.draw(damaged(whole, most=6)))
    with contextlib.suppress(FileFormatError):
        assert len(read(path)) <= 2 * len(FILES)


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"", "an empty file"),
        (b"<!DOCTYPE html><html></html>", "an HTML or XML page"),
        (b"\n <?xml version='1.0'?><Error/>", "an HTML or XML page"),
        (b"version https://git-lfs.github.com/spec/v1\noid", "a Git LFS pointer"),
        (b"\x89PNG\r\n\x1a\n", "something else"),
    ],
)
def test_a_foreign_file_is_told_by_what_it_is(tmp_path, data, found):
    with pytest.raises(FileFormatError, match=f"x.tar.bz2: expected .* found {found}"):
        read(write(tmp_path, data))
    assert describe_content(data) == found


def test_kinds_are_told_from_content():
    assert content_kind(tar_bytes(FILES, "")[:512]) == "tar"
    assert content_kind(tar_bytes(FILES, "bz2")) == "bzip2"
    assert content_kind(tar_bytes(FILES, "gz")) == "gzip"
    assert content_kind(zip_bytes([])) == content_kind(zip_bytes(FILES)) == "zip"


def test_a_missing_file_is_one_line(tmp_path):
    with pytest.raises(FileFormatError, match=r"none.tar: cannot be read \(No such file"):
        read(tmp_path / "none.tar")


def test_a_missing_member_of_a_zip_is_named(tmp_path):
    path = write(tmp_path, zip_bytes(FILES), "x.zip")
    with (
        pytest.raises(FileFormatError, match=r"x.zip/none.txt"),
        open_binary(Path("none.txt"), container=path),
    ):
        pass


def test_a_damaged_member_of_a_zip_is_named(tmp_path):
    data = zip_bytes([("a.txt", b"hello")]).replace(b"hello", b"jello")
    path = write(tmp_path, data, "x.zip")
    with (
        pytest.raises(FileFormatError, match=r"x.zip/a.txt"),
        open_binary(Path("a.txt"), container=path) as stream,
    ):
        stream.read()


def test_errors_of_the_one_who_reads_are_left_alone(tmp_path):
    path = write(tmp_path, b"text", "a.txt")
    with pytest.raises(ValueError, match="mine"), open_binary(path):
        raise ValueError("mine")
