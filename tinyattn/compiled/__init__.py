"""A function of tensors as a straight-line NumPy program: recorded once, written, run.

`tinyattn.compile` is the way in.  `recording` calls the function twice on watched tensors, `lines` leaves out what
need not be computed, `storing` says which array each line writes to, `phrases` and `writing` make the text, `program`
runs it.  It stands on the tape: gradients are recorded as any other operation, so nothing here knows a rule.
"""

from tinyattn.compiled.function import Compiled, compile

__all__ = ["Compiled", "compile"]
