"""The spool gives back what it was given and leaves nothing on disk."""

from contextlib import closing

import numpy as np
import pytest

from fl_saliency.errors import JobError
from fl_saliency.render.spool import ArraySpool


def record(seed):
    draws = np.random.default_rng(seed)
    return [
        draws.integers(0, 256, (2, 5, 4, 3), dtype=np.uint8),
        draws.random((2, 7, 7)).astype(np.float32),
        draws.random(2) < 0.5,
    ]


def test_records_come_back_in_order_and_again(tmp_path):
    with closing(ArraySpool(tmp_path)) as spool:
        for seed in range(5):
            spool.append(record(seed))
        passes = [list(spool), list(spool)]
    for records in passes:
        assert len(records) == 5
        for seed, arrays in enumerate(records):
            for array, expected in zip(arrays, record(seed), strict=True):
                assert array.dtype == expected.dtype
                np.testing.assert_array_equal(array, expected)


def test_the_file_has_no_name(tmp_path):
    spool = ArraySpool(tmp_path)
    spool.append(record(0))
    assert list(tmp_path.iterdir()) == []
    spool.close()
    spool.close()


def test_another_shape_is_refused(tmp_path):
    with closing(ArraySpool(tmp_path)) as spool:
        spool.append([np.zeros(3, dtype=np.uint8)])
        with pytest.raises(ValueError, match="as the first one"):
            spool.append([np.zeros(4, dtype=np.uint8)])


def test_a_folder_that_is_not_there_is_a_job_error(tmp_path):
    with pytest.raises(JobError, match="No such file"):
        ArraySpool(tmp_path / "gone")
