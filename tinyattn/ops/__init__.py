"""The rule book: one `Op` record per operation, a file per family.

Everything here is plain NumPy and knows no Tensor.  ``REGISTRY`` holds every record by name; adding an op
means one record here and one short typed ``def`` in `tinyattn.functions`.  A family is loaded with the first use of
one of its operations, and all of them before anybody sees the registry.
"""

from typing import TYPE_CHECKING, Any

from tinyattn.late import FAMILIES, of_the_book, stand_in
from tinyattn.ops.record import Call, Op

if TYPE_CHECKING:
    from tinyattn.ops.record import REGISTRY, register

stand_in(__name__, *FAMILIES)


def __getattr__(name: str) -> Any:
    return of_the_book(name)


__all__ = ["REGISTRY", "Call", "Op", "register"]
