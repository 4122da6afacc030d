# %% [markdown]
# # Was it luck? One training, many seeds
#
# Needs: lesson 16. Time: 15 minutes.
#
# The demo trains a tagger with attention and one without, once each. A training starts from random numbers, so the
# difference could be luck. **How would you find out?** Train again from other random numbers, many times, and look at
# all the differences.
#
# The trainings do not know of each other, so they can run side by side: on the cores of this machine, or on many
# machines. The line that does it changes; the function and its results do not.

# %%
import argparse

import tinyattn as ta
from tinyattn.models import tagger


def right_words(seed: int) -> dict[str, int]:
    """Train all taggers of the demo from one seed; how many held-out words does each get right?"""
    split = tagger.split_corpus(ta.data.sample_corpus("english"))
    results = tagger.compare_taggers(split, epochs=1, seed=seed, progress=False)
    return {result.kind: result.right["all"] for result in results}


# %% [markdown]
# ## Predict
#
# With position a tagger knows what stands before a word, and in the sample corpus that decides ("a saw", "I saw"). Will
# it be ahead for *every* seed, or only for most?


# %%
def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Is the gain of attention with position luck of the seed?")
    parser.add_argument("--seeds", type=int, default=6, metavar="N", help="how many trainings (default: 6)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes here; needs joblib")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="a Dask scheduler; needs distributed")
    options = parser.parse_args(words)

    outcomes = ta.sweep(
        right_words, {"seed": range(options.seeds)}, jobs=options.jobs, scheduler=options.scheduler
    )
    kinds = list(outcomes[0].result)
    print("seed  " + "  ".join(kinds))
    for outcome in outcomes:
        print(f"{outcome.setting['seed']:4}  " + "  ".join(f"{outcome.result[k]:{len(k)}}" for k in kinds))

    ahead = sum(outcome.result[kinds[-1]] > outcome.result["no attention"] for outcome in outcomes)
    print(f"{kinds[-1]} is ahead of no attention for {ahead} of {options.seeds} seeds.")
    return 0


# %% [markdown]
# ## On a cluster
#
# On one machine start `dask scheduler`; it prints an address such as `tcp://10.0.0.1:8786`. On each of the others, with
# tinyattn installed, start `dask worker tcp://10.0.0.1:8786`. Then run this file with `--scheduler tcp://10.0.0.1:8786`.
# The table is the same, line by line. When a worker dies, the scheduler gives its seeds to another.
#
# One training here takes about a second, so several processes help. One gradient check takes a few milliseconds: there
# the processes cost more than they save, until there are thousands. `docs/sweeps.md` says how to measure it.

# %%
if __name__ == "__main__":
    raise SystemExit(main())
