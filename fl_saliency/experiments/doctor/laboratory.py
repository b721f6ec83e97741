"""Results of the saliency laboratory: maps, interventions, sanity checks."""

import zipfile
import zlib

from fl_saliency.errors import FileFormatError
from fl_saliency.experiments.doctor.files import LABORATORY_FILES, checked, read_json, require
from fl_saliency.experiments.doctor.pictures import examine_picture, examine_video
from fl_saliency.experiments.doctor.report import Report, count

__all__ = ["examine_laboratory"]


def examine_laboratory(report: Report) -> None:
    """Each record that is there is strict JSON, and what belongs to it is whole."""
    for record, others in LABORATORY_FILES.items():
        if record not in report.names:
            continue
        with report.reading(record) as path:
            read_json(path)
            report.ok(record, "strict JSON")
        require(report, others)
        for name in others:
            if name.endswith(".png"):
                examine_picture(report, name)
            elif name.endswith(".npz") and name in report.names:
                _examine_arrays(report, name)
    if "maps.json" in report.names:
        for name in sorted(report.names):
            if name.endswith(".mp4") and not name.startswith("."):
                examine_video(report, name)


def _examine_arrays(report: Report, name: str) -> None:
    """Every array's checksum is right."""
    with report.reading(name) as path:
        try:
            with zipfile.ZipFile(checked(path, limit=None)) as archive:
                damaged = archive.testzip()
                members = len(archive.namelist())
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise FileFormatError(f"{path}: damaged ({error})") from error
        if damaged is not None:
            raise FileFormatError(f"{path}: damaged: the checksum of {damaged!r} is wrong")
        report.ok(name, count(members, "array"))
