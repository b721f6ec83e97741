"""Shim: `fls train` under its original name."""

import sys

from fl_saliency.cli.train import main

if __name__ == "__main__":
    sys.exit(main())
