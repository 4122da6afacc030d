"""What things are called here that have another name in PyTorch or NumPy, or are not there at all.

``ta.cat`` does not exist; asking for it says ``ta.concatenate``.  The table is also printed in the documentation
(`docs/coming-from.md`), and so is the one of methods, `tinyattn.functions.MISSING`.
"""

from __future__ import annotations

NEAREST = {
    "Parameter": "ta.tensor(..., requires_grad=True)",
    "arange": "ta.tensor(np.arange(...))", "argmax": "x.data.argmax(...)", "array": "ta.tensor(...)",
    "as_tensor": "ta.tensor(...)", "asarray": "ta.tensor(...)",
    "attention": "ta.scaled_dot_product_attention(q, k, v)", "baddbmm": "c + a @ b", "bmm": "a @ b",
    "cat": "ta.concatenate([a, b])", "chunk": "ta.split(x, parts)", "clamp": "ta.clip(x, low, high)",
    "concat": "ta.concatenate([a, b])",
    "cumsum": "a product with a triangle of ones", "enable_grad": "leave the no_grad block",
    "expm1": "ta.exp(x) - 1", "eye": "ta.tensor(np.eye(n))", "flatten": "ta.reshape(x, -1)",
    "float32": "np.float32", "float64": "np.float64", "from_numpy": "ta.tensor(array)",
    "full": "ta.tensor(np.full(shape, value))", "gather": "ta.take_along_axis(x, indices, axis)", "gt": "x > y",
    "index_select": "x[indices]", "inner": "ta.einsum('i,i->', a, b)",
    "jit": "ta.compile(f)",
    "linspace": "ta.tensor(np.linspace(...))", "log1p": "ta.log(1 + x)",
    "manual_seed": "np.random.default_rng(seed), handed in as rng", "masked_select": "x[mask]", "mm": "a @ b",
    "mul": "a * b", "mv": "a @ x", "neg": "-x", "normal": "ta.tensor(rng.normal(...))", "numel": "x.size",
    "ones": "ta.tensor(np.ones(shape))", "ones_like": "ta.tensor(np.ones(x.shape))",
    "permute": "ta.transpose(x, axes)", "pow": "a ** b", "rand": "ta.tensor(rng.random(shape))",
    "randn": "ta.tensor(rng.normal(size=shape))", "repeat": "ta.broadcast_to(x, shape)",
    "rsqrt": "1 / ta.sqrt(x)", "save": "np.savez(path, W=W.data)",
    "scatter_add": "ta.index, whose gradient adds", "sub": "a - b", "tile": "ta.broadcast_to(x, shape)",
    "tril": "ta.where(np.tri(n, dtype=bool), x, 0.0)", "triu": "ta.where(np.tri(n, k=-1, dtype=bool), 0.0, x)",
    "unsqueeze": "ta.expand_dims(x, axis)", "view": "ta.reshape(x, shape)",
    "vmap": "a leading axis: every operation takes batches", "zeros": "ta.tensor(np.zeros(shape))",
    "zeros_like": "ta.tensor(np.zeros(x.shape))",
}  # fmt: skip
"""Names that are looked for in the package."""


def missing(name: str) -> str:
    """What to say when ``ta.name`` does not exist.

    >>> print(missing("cat"))
    module 'tinyattn' has no attribute 'cat'.
      Write ta.concatenate([a, b]).
    >>> missing("nonsense")
    "module 'tinyattn' has no attribute 'nonsense'"
    """
    text = f"module 'tinyattn' has no attribute {name!r}"
    nearest = NEAREST.get(name)
    return f"{text}.\n  {'Write' if is_code(nearest) else 'Instead:'} {nearest}." if nearest else text


def is_code(text: str) -> bool:
    """Whether a replacement is code; some are words.

    >>> is_code("x.size"), is_code("leave the no_grad block")
    (True, False)
    """
    try:
        compile(text, "nearest", "eval")
    except SyntaxError:
        return False
    return True
