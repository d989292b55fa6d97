"""The command line of batchppo; installed as `batchppo_cli`, with the command `batchppo`.

Each command has a file named after it that declares its options; what it then does stands in a
module of its own, which is imported only when the command runs, so that help screens are quick.
"""

from .group import main

__all__ = ["main"]
