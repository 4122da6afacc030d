"""``python -m tinyattn`` is the command ``tinyattn``."""

import sys

from tinyattn.cli import main

if __name__ == "__main__":
    sys.exit(main())
