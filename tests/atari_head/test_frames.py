import zlib

import numpy as np
import pytest

from fl_saliency.atari_head.archives import TRIAL_LIMITS
from fl_saliency.atari_head.frames import FolderStore, SpoolStore, decode_png, png_problem
from fl_saliency.errors import FileFormatError
from tests.atari_head.makers import frame_files, picture, png, tar_bytes


def test_colours_and_corners_come_out_as_they_went_in():
    image = picture(200)
    np.testing.assert_array_equal(decode_png(png(image)), image, strict=True)


def test_a_whole_png_has_no_problem():
    assert png_problem(png(picture(1))) is None


def test_every_cut_and_every_flipped_byte_of_a_png_is_noticed():
    data = png(picture(1))
    for cut in range(len(data)):
        assert png_problem(data[:cut]) is not None, cut
    for place in range(len(data)):
        flipped = bytearray(data)
        flipped[place] ^= 0x10
        assert png_problem(bytes(flipped)) is not None, place


def test_a_frame_of_another_size_is_told_its_size():
    assert png_problem(png(picture(1, height=84, width=84))) == "is 84x84 pixels, expected 160x210"


def test_a_png_with_right_checksums_and_wrong_content_cannot_be_decoded():
    head = png(picture(1))[: 8 + 25]
    body = b"IDAT" + zlib.compress(b"not an image")[:-2]
    chunk = (len(body) - 4).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")
    data = head + chunk + bytes(4) + b"IEND" + zlib.crc32(b"IEND").to_bytes(4, "big")
    assert png_problem(data) is None
    with pytest.raises(FileFormatError, match="cannot be decoded"):
        decode_png(data)


def test_spool_keeps_the_files_by_number(tmp_path):
    files = [*frame_files([12, 3, 7]), ("t/readme.txt", b"x"), ("t/._RZ_42_1.png", b"junk")]
    path = tmp_path / "a.tar.bz2"
    path.write_bytes(tar_bytes(files))
    store = SpoolStore(path, "RZ_42")
    assert store.numbers == [3, 7, 12]
    assert store.foreign == 0
    assert [store.png(n) for n in (12, 3, 7)] == [data for _, data in files[:3]]
    store.close()


def test_folder_keeps_the_files_by_number_one_level_deep(tmp_path):
    (tmp_path / "t").mkdir()
    for name, data in frame_files([12, 3], name="t"):
        (tmp_path / name).write_bytes(data)
    (tmp_path / "RZ_43_1.png").write_bytes(b"of another recording")
    store = FolderStore(tmp_path, "RZ_42")
    assert store.numbers == [3, 12]
    assert store.foreign == 1
    np.testing.assert_array_equal(decode_png(store.png(12)), picture(12))


def test_a_frame_that_is_there_twice_is_named(tmp_path):
    files = [*frame_files([1], name="a"), *frame_files([1], name="b")]
    path = tmp_path / "a.tar.bz2"
    path.write_bytes(tar_bytes(files))
    with pytest.raises(FileFormatError, match=r"frame 1 is in it twice, as 'b/RZ_42_1.png'"):
        SpoolStore(path, "RZ_42")


def test_a_file_beyond_reason_in_a_folder_is_not_read(tmp_path):
    path = tmp_path / "RZ_42_1.png"
    with path.open("wb") as file:
        file.truncate(TRIAL_LIMITS.member_bytes + 1)
    store = FolderStore(tmp_path, "RZ_42")
    with pytest.raises(FileFormatError, match=r"RZ_42_1.png: has 1048577 bytes, more than 1048576"):
        store.png(1)
