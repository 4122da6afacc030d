"""``python -m tinyattn.learn`` is ``tinyattn learn``."""

import sys

from tinyattn.learn.command import main

sys.exit(main())
