"""Shim: `fls run` under its original name."""

import sys

from fl_saliency.cli.run import main

if __name__ == "__main__":
    sys.exit(main())
