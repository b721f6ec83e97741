"""Policy networks whose attention is part of the forward pass.

Importing this package registers the built-in table.
"""

from fl_saliency.networks import attention, compressed

__all__ = ["attention", "compressed"]
