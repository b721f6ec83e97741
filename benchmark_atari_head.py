"""Shim: `fls benchmark` under its original name."""

import sys

from fl_saliency.cli.benchmark import main

if __name__ == "__main__":
    sys.exit(main())
