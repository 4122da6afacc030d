# %% [markdown]
# # One step, many devices
#
# Needs: lesson 16, and JAX (`pip install ".[jax]"`). Time: 20 minutes.
#
# The gradient of a mean is the mean of the gradients. So a batch can be cut into pieces, each device computes the
# gradient of its piece, and together they give the gradient of the whole batch. That is *data-parallel* training:
# every device has all parameters, and its own part of the sentences.
#
# tinyattn computes on one core. Here its model is handed over to JAX, which spreads the batch, and **every step is
# compared with tinyattn's own**.

# %%
import argparse
import os
from typing import Any

import numpy as np

import tinyattn as ta
from tinyattn import handover

SENTENCES, RATE = 8, 0.5


# %% [markdown]
# ## The model, and its loss as a function of its arguments
#
# A small decoder learns to say the next word. Its words and targets are arguments of `loss`, so that they are arguments
# of the handed-over function too. Padding has no next word: its target is -1, which is not counted.


# %%
def model_and_batch() -> tuple[Any, Any, np.ndarray, np.ndarray]:
    sentences = [sentence.words for sentence in ta.data.sample_corpus("english")[:SENTENCES]]
    vocabulary = ta.data.Vocabulary.of(sentences)
    ids, keep = ta.data.pad_batch(vocabulary.ids(words) for words in sentences)  # (b, n + 1)
    targets = np.where(keep[:, 1:], ids[:, 1:], -1)  # (b, n)
    model = ta.nn.GPT(len(vocabulary.words), d=8, heads=2, layers=1, length=ids.shape[1], rng=0)

    def loss(ids: np.ndarray, targets: np.ndarray) -> ta.Tensor:
        return ta.cross_entropy(model(ids), targets, ignore_index=-1)

    return model, loss, ids[:, :-1], targets


def own_step(model: Any, loss: Any, ids: np.ndarray, targets: np.ndarray) -> float:
    """One step of gradient descent in tinyattn, with the whole batch on one core."""
    model.zero_grad()
    value = loss(ids, targets)
    value.backward()
    for p in model.parameters():
        p.assign(p.data - RATE * p.grad)
    return float(value.data)


# %% [markdown]
# ## The same step on every device at once
#
# `mesh` is the row of devices. An array that is laid out by `PartitionSpec("batch")` is cut along its first axis; one
# laid out by `PartitionSpec()` is everywhere whole. Nothing in the step says how many devices there are: JAX sees the
# layout, lets each device compute its part, and adds sums across devices where the loss needs them.
#
# **Predict.** The pieces hold different numbers of words that count. Is the mean of the pieces' losses the loss of the
# batch? It is not: a mean over all words is meant. JAX adds the sums and the counts of all pieces before it divides.


# %%
def spread_training(jax: Any, f: Any, ids: np.ndarray, targets: np.ndarray) -> tuple[Any, Any, Any]:
    """The parameters on every device, the batch in pieces, and the step."""
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    mesh = Mesh(np.array(jax.devices()), ("batch",))
    pieces, everywhere = NamedSharding(mesh, PartitionSpec("batch")), NamedSharding(mesh, PartitionSpec())
    share = SENTENCES // jax.process_count()
    mine = slice(jax.process_index() * share, (jax.process_index() + 1) * share)  # what this process has read
    batch = [jax.make_array_from_process_local_data(pieces, array[mine]) for array in (ids, targets)]

    @jax.jit
    def step(parameters: Any, ids: Any, targets: Any) -> tuple[Any, Any]:
        value, slopes = jax.value_and_grad(f)(parameters, ids, targets)
        return value, jax.tree.map(lambda p, slope: p - RATE * slope, parameters, slopes)

    parameters = {name: jax.device_put(np.asarray(p), everywhere) for name, p in f.parameters.items()}
    return parameters, batch, step


# %%
def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Data-parallel training on JAX, compared with tinyattn's own steps.")
    parser.add_argument("--steps", type=int, default=5, metavar="N", help="how many steps (default: 5)")
    parser.add_argument("--devices", type=int, metavar="N", help="pretend that this processor is N devices")
    parser.add_argument("--cluster", metavar="HOST:PORT", help="where process 0 listens; or 'auto' under Slurm and MPI")
    parser.add_argument("--processes", type=int, metavar="N", help="how many processes there are in the cluster")
    parser.add_argument("--process", type=int, metavar="I", help="which of them this is: 0, 1, ...")
    options = parser.parse_args(words)

    if options.devices:  # JAX reads this when it starts
        os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={options.devices}"
        os.environ["JAX_PLATFORMS"] = "cpu"
    try:
        import jax
    except ImportError:
        parser.error("JAX is not installed; write: pip install jax")

    jax.config.update("jax_enable_x64", True)
    if options.cluster == "auto":
        jax.distributed.initialize()
    elif options.cluster:
        jax.distributed.initialize(options.cluster, options.processes, options.process)
    if SENTENCES % jax.device_count():
        parser.error(f"{SENTENCES} sentences cannot be shared by {jax.device_count()} devices: take 1, 2, 4 or 8")

    model, loss, ids, targets = model_and_batch()
    f = handover.to_jax(loss, ids, targets, model=model)
    parameters, batch, step = spread_training(jax, f, ids, targets)
    say = print if jax.process_index() == 0 else lambda *_: None
    say(f"devices: {jax.device_count()}, processes: {jax.process_count()}, sentences: {SENTENCES}")
    for number in range(1, options.steps + 1):
        value, parameters = step(parameters, *batch)
        say(f"step {number}: loss {float(value):.6f}, tinyattn's own {own_step(model, loss, ids, targets):.6f}")
    apart = max(float(np.abs(np.asarray(parameters[name]) - p.data).max()) for name, p in model.named_parameters())
    say(f"after {options.steps} steps the parameters are {apart:.1e} apart")
    return 0 if apart < 1e-12 else 1


# %% [markdown]
# ## On a real cluster
#
# Here: `python many_devices.py --devices 4`. A machine with several accelerators needs no option, since JAX finds them.
#
# With several machines, start the same file on each, with tinyattn installed:
#
# ```
# python many_devices.py --cluster 10.0.0.1:9876 --processes 2 --process 0      # on 10.0.0.1
# python many_devices.py --cluster 10.0.0.1:9876 --processes 2 --process 1      # on the other
# srun python many_devices.py --cluster auto                                    # under Slurm, on all of them
# ```
#
# `jax.device_count()` is then the number of devices in all machines. Each process reads its own sentences, which is why
# `make_array_from_process_local_data` is given only `mine`. The step does not change by a letter.
#
# What does not come from here: checkpoints of many machines, mixed precision, models too large for one device. For
# those take JAX's own libraries; the parameters go over as a dictionary, or as a file by `ta.weights.save`.

# %%
if __name__ == "__main__":
    raise SystemExit(main())
