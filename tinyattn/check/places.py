"""Right numbers in wrong places: not moved back, along another axis, let through where they are cut off."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tinyattn.check.scene import Scene

Candidates = Iterator[tuple[str, Any, str]]


def wrong_places(scene: Scene) -> Candidates:
    """Candidates that need the Jacobian only to see where each entry goes."""
    want, g = scene.want, scene.g
    if g.shape == want.shape:
        yield from _passed_on(want, g)
    if scene.jacobian is None or not scene.jacobian.size:
        return
    size = max(float(np.abs(scene.jacobian).max()), 1e-300)
    feeds = np.abs(scene.jacobian) > 1e-9 * size
    if g.ndim < want.ndim and (feeds.sum(axis=0) <= 1).all():
        yield from _stretched(scene, feeds)
    if g.ndim > want.ndim and (feeds.sum(axis=1) <= 1).all():
        yield from _summed(scene)


def _passed_on(want: np.ndarray, g: np.ndarray) -> Candidates:
    """The incoming gradient as it is, where the right one is it in another order, or a part of it."""
    if want.ndim >= 2 and want.shape[-1] == want.shape[-2] and np.allclose(np.swapaxes(want, -1, -2), g, rtol=1e-6):
        yield "transposed", g, "the forward transposes, so the gradient has to be transposed back"
    elif np.allclose(np.sort(want, axis=None), np.sort(g, axis=None), rtol=1e-6, atol=1e-12):
        text = "the forward moves entries to other places; the rule has to move their gradients back"
        yield "wrong place", g, text
    cut = np.abs(want) <= 1e-9 * max(float(np.abs(g).max(initial=0.0)), 1e-300)
    if cut.any() and not cut.all() and np.allclose(want[~cut], g[~cut], rtol=1e-6, atol=0):
        yield "mask left out", g, "gradient flows everywhere; where the forward cut off, it must be 0"


def _stretched(scene: Scene, feeds: np.ndarray) -> Candidates:
    """Each entry goes into one result at most: the gradient of a sum, stretched along the wrong axis or as it is."""
    assert scene.jacobian is not None
    want, g = scene.want, scene.g
    at = feeds.argmax(axis=0)
    slope = np.take_along_axis(scene.jacobian, at[None], 0).reshape(want.shape)
    right, used = g.ravel()[at].reshape(want.shape), feeds.any(axis=0).reshape(want.shape)
    for axis in range(want.ndim):
        try:
            along = np.broadcast_to(np.expand_dims(g, axis) if g.ndim else g, want.shape)
        except ValueError:
            continue
        if not np.array_equal(along[used], right[used]):
            text = f"the incoming gradient is stretched along axis {axis}, but the forward summed along another one"
            yield "wrong axis", slope * along, f"{text}: sum with keepdims=True, or write g[..., None]"
        elif np.ptp(slope) > 1e-6 * np.abs(slope).max():
            text = "the incoming gradient is copied to every entry; multiply it by the slope there"
            yield "local slope left out", along, f"{text}, which is 0 where an entry was not chosen"


def _summed(scene: Scene) -> Candidates:
    """Each result takes one entry: the gradient of a stretched input, added up along the wrong axes."""
    assert scene.jacobian is not None
    want, g = scene.want, scene.g
    each = scene.jacobian.sum(axis=1).reshape(g.shape) * g
    for axis in range(g.ndim):
        total = each.sum(axis=axis)
        if total.shape == want.shape:
            yield (
                "wrong axis",
                total,
                f"the copies' gradients are added along axis {axis}, but they lie along another one",
            )
