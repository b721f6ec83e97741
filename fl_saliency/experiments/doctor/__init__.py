"""What is whole and what is not in a run directory or a folder of results; only ever reads.

Files are opened by the readers of the jobs, none of which can run what it reads, and whatever is
wrong becomes a finding, so that one damaged file does not hide another.
"""

from fl_saliency.experiments.doctor.directory import check_directory, examine
from fl_saliency.experiments.doctor.report import Finding, Status

__all__ = ["Finding", "Status", "check_directory", "examine"]
