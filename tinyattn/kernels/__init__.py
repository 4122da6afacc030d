"""Fast forms for float arrays, each beside the plain form that it must equal.

A module here has a ``forward`` that gives the result and what its rule will want again, the ``rule``, and where the
operation is more than its textbook formula ``composed``: the same from simpler operations, which runs on tensors and
on exact numbers too.  The records in `tinyattn.ops` say what it all means; tests hold the forms equal.
"""
