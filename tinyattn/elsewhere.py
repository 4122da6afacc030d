"""What things are called here that have another name in PyTorch or NumPy, or are not there at all.

``ta.cat`` does not exist; asking for it says ``ta.concatenate``.  The tables of names are also printed in the
documentation (`docs/coming-from.md`), and so is the one of methods, `tinyattn.functions.MISSING`.
"""

from __future__ import annotations

from collections.abc import Sequence

NEAREST = {
    "Adam": "ta.optim.Adam(parameters, lr)", "Linear": "ta.nn.Linear(n_in, n_out)", "Module": "ta.nn.Module",
    "MultiHeadAttention": "ta.nn.MultiHeadAttention(d, heads)", "Parameter": "ta.tensor(..., requires_grad=True)",
    "SGD": "ta.optim.SGD(parameters, lr)", "Sequential": "ta.nn.Sequential(*parts)",
    "Variable": "ta.tensor(..., requires_grad=True)", "allclose": "np.allclose(x.data, y.data)",
    "amax": "ta.max(x, axis)", "amin": "ta.min(x, axis)", "arange": "ta.tensor(np.arange(...))",
    "argmax": "x.data.argmax(...)", "argmin": "x.data.argmin(...)", "argsort": "x.data.argsort(...)",
    "array": "ta.tensor(...)", "as_tensor": "ta.tensor(...)", "asarray": "ta.tensor(...)",
    "attention": "ta.scaled_dot_product_attention(q, k, v)", "autograd": "ta.grad(loss, [W])",
    "average": "ta.mean(x, axis)", "baddbmm": "c + a @ b", "bmm": "a @ b", "cat": "ta.concatenate([a, b])",
    "chunk": "ta.split(x, parts)", "clamp": "ta.clip(x, low, high)", "concat": "ta.concatenate([a, b])",
    "cumsum": "a product with a triangle of ones", "diag": "x * np.eye(n)", "diagonal": "ta.einsum('...ii->...i', x)",
    "draw": "viz.draw(y), after import viz", "enable_grad": "leave the no_grad block", "equal": "x == y",
    "expm1": "ta.exp(x) - 1", "eye": "ta.tensor(np.eye(n))", "fit": "ta.train.fit(model, batches, loss)",
    "flatten": "ta.reshape(x, -1)", "float32": "np.float32", "float64": "np.float64", "from_numpy": "ta.tensor(array)",
    "full": "ta.tensor(np.full(shape, value))",
    "functional": "ta.relu(x), ta.softmax(x), ta.cross_entropy(scores, targets)",
    "gather": "ta.take_along_axis(x, indices, axis)", "gt": "x > y", "index_select": "x[indices]",
    "inner": "ta.einsum('i,i->', a, b)", "is_tensor": "isinstance(x, ta.Tensor)", "jit": "ta.compile(f)",
    "linalg": "ta.norm(x), ta.trace(x), x @ y", "linspace": "ta.tensor(np.linspace(...))",
    "load": "ta.weights.load(model, path)", "log10": "ta.log(x) / np.log(10)", "log1p": "ta.log(1 + x)",
    "log2": "ta.log(x) / np.log(2)", "logaddexp": "ta.logsumexp(ta.stack([a, b]), axis=0)",
    "manual_seed": "np.random.default_rng(seed), handed in as rng", "masked_select": "x[mask]", "mm": "a @ b",
    "mul": "a * b", "mv": "a @ x", "neg": "-x", "normal": "ta.tensor(rng.normal(...))", "numel": "x.size",
    "ones": "ta.tensor(np.ones(shape))", "ones_like": "ta.tensor(np.ones(x.shape))", "permute": "ta.transpose(x, axes)",
    "pow": "a ** b", "rand": "ta.tensor(rng.random(shape))", "randn": "ta.tensor(rng.normal(size=shape))",
    "repeat": "ta.broadcast_to(x, shape)", "rsqrt": "1 / ta.sqrt(x)", "save": "ta.weights.save(model, path)",
    "scatter_add": "ta.index, whose gradient adds", "sub": "a - b", "tan": "ta.sin(x) / ta.cos(x)",
    "tensordot": "ta.einsum(subscripts, a, b)", "tile": "ta.broadcast_to(x, shape)",
    "topk": "np.argsort(-x.data)[..., :k]", "tril": "ta.where(np.tri(n, dtype=bool), x, 0.0)",
    "triu": "ta.where(np.tri(n, k=-1, dtype=bool), 0.0, x)", "unsqueeze": "ta.expand_dims(x, axis)",
    "view": "ta.reshape(x, shape)", "vmap": "a leading axis: every operation takes batches",
    "zeros": "ta.tensor(np.zeros(shape))", "zeros_like": "ta.tensor(np.zeros(x.shape))",
}  # fmt: skip
"""Names that are looked for in the package."""

IN_NN = {
    "BCEWithLogitsLoss": "ta.binary_cross_entropy_with_logits(x, target)", "BatchNorm1d": "nn.LayerNorm(d)",
    "CrossEntropyLoss": "ta.cross_entropy(scores, targets)", "Flatten": "lambda x: ta.reshape(x, (x.shape[0], -1))",
    "GELU": "ta.gelu", "Identity": "lambda x: x", "L1Loss": "ta.mean(ta.abs(prediction - target))",
    "LeakyReLU": "ta.leaky_relu", "LogSoftmax": "ta.log_softmax", "MSELoss": "ta.mse(prediction, target)",
    "ModuleDict": "a dictionary of modules in an attribute", "ModuleList": "a list of modules in an attribute",
    "MultiheadAttention": "nn.MultiHeadAttention(d, heads)", "NLLLoss": "ta.cross_entropy(scores, targets)",
    "Parameter": "ta.tensor(..., requires_grad=True)", "ParameterList": "a list of tensors in an attribute",
    "PositionalEncoding": "nn.SinusoidalPosition(d)", "ReLU": "ta.relu", "SiLU": "ta.silu", "Sigmoid": "ta.sigmoid",
    "Softmax": "ta.softmax", "Softplus": "ta.softplus", "Tanh": "ta.tanh",
    "TransformerEncoderLayer": "nn.TransformerBlock(d, heads)",
    "functional": "ta.relu(x), ta.softmax(x), ta.cross_entropy(scores, targets)",
    "utils": "ta.optim.clip_gradients(model.parameters(), norm)",
}  # fmt: skip
"""Names that are looked for in `tinyattn.nn`; functions stand among the parts of an `nn.Sequential` as they are."""


ARGUMENTS = {
    "axis": "dim dims axes", "keepdims": "keepdim keep_dims", "low": "min a_min", "high": "max a_max",
    "keep": "mask attn_mask key_padding_mask src_mask src_key_padding_mask", "causal": "is_causal", "gain": "weight",
    "table": "weight", "x": "input query", "a": "input", "b": "other", "q": "query", "k": "key", "v": "value",
    "keys": "key", "values": "value", "ddof": "correction unbiased", "slope": "negative_slope alpha",
    "classes": "num_classes", "prediction": "input", "scores": "input", "targets": "target",
    "target": "targets outputs",
    "n_in": "in_features fan_in", "n_out": "out_features fan_out", "words": "num_embeddings vocab_size num_words",
    "d": "embed_dim embedding_dim d_model n_embd normalized_shape dim hidden_size features",
    "heads": "num_heads nhead n_head n_heads", "hidden": "dim_feedforward d_ff hidden_dim hidden_features",
    "layers": "num_layers n_layer n_layers depth", "length": "block_size max_len max_length context_length",
    "d_keys": "kdim", "d_values": "vdim", "dropout": "p dropout_p drop", "norm": "norm_first max_norm",
    "eps": "layer_norm_eps epsilon", "rng": "seed generator random_state key", "p": "rate",
    "lr": "learning_rate", "parameters": "params", "decay": "weight_decay", "epochs": "num_epochs n_epochs",
    "optimiser": "optimizer", "loss": "loss_fn criterion", "batches": "data dataset dataloader loader train_loader",
    "schedule": "scheduler lr_scheduler", "progress": "verbose", "clip": "max_norm grad_clip clip_norm",
    "wrt": "argnums argnum inputs", "argnums": "argnum wrt", "argnum": "argnums wrt", "seed": "grad_outputs gradient",
    "f": "fun func fn function", "path": "file filename fname", "arrays": "tensors", "ignore": "ignore_index",
    "temperature": "temp", "direction": "rankdir", "theme": "color colour colors style", "title": "label name caption",
    "tokens": "words labels xticklabels", "labels": "words tokens names", "steps": "max_new_tokens",
    "end": "eos_token_id",
}  # fmt: skip
"""Our name of an argument, and what others call it."""

TOLD = {"axis": ", as in NumPy", "keepdims": ", as in NumPy", "keep": ", True where a key may be attended"}
"""What is said of an argument besides its name."""

_NEW = "Leave it away: a result is always a new tensor, y = f(x)."
DONE_OTHERWISE = {
    "inplace": _NEW,
    "out": _NEW,
    "device": "Leave it away: everything is computed on the processor.",
    "dtype": "Leave it away, and write x.astype(np.float32), or model.astype(np.float32) for all numbers of a model.",
    "batch_first": "Leave it away: the axes before the last two are the batch.",
    "need_weights": "Write layer.steps(...), which gives the weights, too.",
    "weight_decay": "Write ta.optim.AdamW(..., decay=...).",
    "retain_graph": "Leave it away: nothing is freed by a backward pass.",
    "ord": "It is the root of the sum of squares; for another write ta.sum(ta.abs(x) ** p, axis) ** (1 / p).",
    "filename": "Write .save('graph.svg') on what it gives.",
    "format": "Write .save('graph.svg'): the ending says which.",
    "figsize": "Leave it away: a picture is as large as what it shows, and scales without loss.",
    "strict": "Leave it away: all has to fit, so that nothing stays as it was by a slip.",
    "has_aux": "Return one tensor; keep what else there is in a variable outside.",
}
"""What others ask for by an argument, and is had otherwise here."""


IN_MODULE = {
    "add_module": "self.name = module", "apply": "for name, part in model.named_modules(): ...",
    "bias": "layer.b, or None where there is none", "buffers": "model.state_dict()",
    "children": "model.named_modules()", "compile": "ta.compile(model)", "cpu": "leave it away",
    "cuda": "leave it away: everything is computed on the processor", "double": "model.astype(float)",
    "fit": "ta.train.fit(model, batches, loss)", "float": "model.astype(np.float32)",
    "half": "model.astype(np.float32), the smallest that a module takes", "load": "ta.weights.load(model, path)",
    "modules": "model.named_modules()", "predict": "model(x)",
    "register_buffer": "self.name = ta.tensor(array)", "register_parameter": "self.name = tensor",
    "requires_grad_": "make its leaves with requires_grad=False", "save": "ta.weights.save(model, path)",
    "to": "model.astype(dtype); everything is computed on the processor",
    "weight": "layer.W of shape (n_in, n_out); layer.table of an embedding, layer.gain of a norm",
}  # fmt: skip
"""Attributes that are looked for in a module."""


def no_attribute(kind: str, name: str, there: Sequence[str]) -> str:
    """What to say when a module has no such attribute, from the names of its own parameters and parts.

    >>> print(no_attribute("Linear", "modules", ["W", "b"]))
    'Linear' object has no attribute 'modules'.
      Its parameters and parts are W, b.
      Write model.named_modules().
    """
    nearest = IN_MODULE.get(name)
    lines = [f"{kind!r} object has no attribute {name!r}" + ("." if there or nearest else "")]
    lines += [f"Its parameters and parts are {', '.join(there)}."] if there else []
    lines += [f"{'Write' if is_code(nearest) else 'Instead:'} {nearest}."] if nearest else []
    return "\n  ".join(lines)


def argument(wrong: str, known: Sequence[str]) -> str:
    """Which of the arguments that a function has is meant by the name that another library gives it; "" for none.

    >>> argument("dim", ["x", "axis"]), argument("dim", ["n", "d"]), argument("dim", ["path"])
    ('axis', 'd', '')
    """
    return next((ours for ours, others in ARGUMENTS.items() if ours in known and wrong in others.split()), "")


def missing(name: str, module: str = "tinyattn") -> str:
    """What to say when ``ta.name``, or ``nn.name``, does not exist.

    >>> print(missing("cat"))
    module 'tinyattn' has no attribute 'cat'.
      Write ta.concatenate([a, b]).
    >>> print(missing("ReLU", "tinyattn.nn"))
    module 'tinyattn.nn' has no attribute 'ReLU'.
      Write ta.relu.
    >>> missing("nonsense")
    "module 'tinyattn' has no attribute 'nonsense'"
    """
    text = f"module {module!r} has no attribute {name!r}"
    nearest = (IN_NN if module == "tinyattn.nn" else NEAREST).get(name)
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
