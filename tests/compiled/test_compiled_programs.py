"""Programs: their text, running them, falling back, saving; results that are nobody else's; threads."""

from __future__ import annotations

import copy
import gc
import pickle
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import tinyattn as ta
from tinyattn import nn

GOLDEN = Path(__file__).parent / "golden" / "attention.py.txt"


def attention_loss(X, W_q, W_k, W_v):
    Q = X @ W_q
    K = X @ W_k
    V = X @ W_v
    scores = (Q @ K.mT) * 0.5
    weights = ta.softmax(scores)
    out = weights @ V
    return ta.sum(out * out)


def arrays(n=3, d=4, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape).astype(dtype) for shape in [(n, d), (d, d), (d, d), (d, d)]]


both = ta.value_and_grad(attention_loss, (0, 1, 2, 3))


def equal(one, other):
    for got, want in zip([one[0], *one[1]], [other[0], *other[1]], strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got.data, want.data)


def without_places(source):
    lines = [re.sub(r" +\S+\.py:\d+", "", line) for line in source.split("\n") if " by tinyattn " not in line]
    return "\n".join(lines)


def test_the_text_of_attention_is_what_it_was():
    compiled = ta.compile(both)
    compiled(*arrays())
    assert without_places(compiled.source) == GOLDEN.read_text(encoding="utf-8"), (
        "if that is meant, write the new text to the golden file"
    )


def test_the_text_is_the_same_every_time_and_has_the_learners_words():
    sources = []
    for seed in (0, 1):
        compiled = ta.compile(both)
        compiled(*arrays(seed=seed))
        sources.append(compiled.source)
    assert sources[0] == sources[1]
    for line in ("Q = X.dot(W_q, ", "K = X.dot(W_k, ", "weights = softmax_of_rows(scores, ", "d_W_q = ", "d_scores = "):
        assert line in sources[0]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_attention_is_that_of_the_tape_to_the_last_bit_for_every_shape(dtype):
    compiled = ta.compile(both)
    for n, d in ((3, 4), (5, 4), (1, 1), (40, 6), (3, 4)):
        given = arrays(n, d, dtype)
        (loss, slopes), (ours, our_slopes) = both(*given), compiled(*given)
        np.testing.assert_allclose(ours.data, loss.data, rtol=1e-6 if dtype == np.float32 else 1e-15)
        for got, want in zip(our_slopes, slopes, strict=True):
            tolerance = 2e-5 if dtype == np.float32 else 1e-13  # from 33 columns on a sum is made otherwise
            np.testing.assert_allclose(
                got.data, want.data, rtol=0 if n < 33 else tolerance, atol=0 if n < 33 else tolerance
            )
    assert len(compiled.programs) == 4


def test_one_program_for_each_shape_dtype_and_setting():
    compiled = ta.compile(lambda x, power, scale=1.0: x**power * scale)
    x = np.array([1.0, 2.0])
    assert compiled(x, 2).tolist() == [1.0, 4.0]
    assert compiled(x, 3).tolist() == [1.0, 8.0]
    assert compiled(x, 2, scale=2.0).tolist() == [2.0, 8.0]
    assert compiled(x.astype(np.float32), 2).dtype == np.float32
    assert compiled(np.ones((2, 2)), 2).shape == (2, 2)
    assert compiled(x * 3, power=2).tolist() == [9.0, 36.0]
    assert len(compiled.programs) == 6


def test_tensors_and_arrays_share_a_program_and_many_shapes_are_met_again_quickly():
    compiled = ta.compile(lambda x, y: (x * y).sum())
    for _ in range(3):
        for n in (2, 3, 4):
            x = np.arange(float(n))
            for given in ((x, x), (ta.tensor(x), x), (x, ta.tensor(x))):
                assert compiled(*given).item() == float((x * x).sum())
            assert f"({n},)" in compiled.source  # that of the last call
    assert len(compiled.programs) == 3


def test_the_oldest_program_goes_when_there_are_too_many():
    compiled = ta.compile(lambda x, k: x * k)
    for k in range(70):
        assert compiled(np.array([1.0]), float(k)).item() == k
    assert len(compiled.programs) == 64


def test_a_saved_program_runs_alone_and_gives_the_same(tmp_path):
    compiled = ta.compile(both)
    given = arrays()
    loss, slopes = compiled(*given)
    compiled.save(tmp_path / "step.py")
    np.savez(tmp_path / "given.npz", *given)
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import numpy as np, step\n"
        f"z = np.load({str(tmp_path / 'given.npz')!r})\n"
        "loss, slopes = step.attention_loss(*[z[n] for n in z.files])\n"
        "print(float(loss).hex(), *[g.tobytes().hex() for g in slopes])\n"
        "print('tinyattn' in sys.modules)\n"
        "try: step.attention_loss(*[z[n][:2] for n in z.files])\n"
        "except ValueError as error: print(error)\n"
    )
    run = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    numbers, loaded, refused = run.stdout.strip().split("\n")
    assert numbers.split() == [float(loss).hex(), *(g.data.tobytes().hex() for g in slopes)]
    assert loaded == "False"
    assert refused == "X has shape (2, 4) and dtype float64; this program is for (3, 4) and float64"


def test_a_file_that_cannot_be_written_is_an_error(tmp_path):
    compiled = ta.compile(lambda x: x * 2)
    compiled(np.ones(2))
    with pytest.raises(OSError):
        compiled.save(tmp_path / "missing" / "step.py")


@pytest.mark.parametrize("size", [9, 500])
def test_constants_of_any_size_are_in_the_file_too(size):
    table = np.random.default_rng(0).normal(size=(20, size))
    compiled = ta.compile(lambda x: x @ table)
    x = np.ones((2, 20))
    value = compiled(x)
    space = {}
    exec(compiled.source, space)
    np.testing.assert_array_equal(space["run"](x)[0], value.data)


# -- what is handed out ----------------------------------------------------------------------------------------------


def test_results_are_arrays_of_their_own():
    x = np.ones((2, 3))
    compiled = ta.compile(lambda x: (x, x, x.T, ta.tanh(x), ta.tanh(x).T, ta.tanh(x) + 1, ta.tensor([1.0])))
    first, second = compiled(x), compiled(x)
    everything = [t.data for t in (*first, *second)]
    for n, one in enumerate(everything):
        assert not np.shares_memory(one, x)
        assert not any(np.shares_memory(one, other) for other in everything[n + 1 :])


def test_gradients_add_up_and_may_be_written_to():
    v = ta.tensor([1.0, 2.0], requires_grad=True)
    step = ta.compile(lambda x: (v * v * x).sum())
    assert step.backward(np.array([1.0, 1.0])).item() == 5.0
    v.grad[0] = 7.0
    step.backward(np.array([1.0, 1.0]))
    assert v.grad.tolist() == [9.0, 8.0]


def test_structures_go_in_and_come_out():
    compiled = ta.compile(lambda pair, named: {"sum": pair[0] + pair[1], "rest": [named["a"], None, "text"]})
    found = compiled((np.ones(2), np.ones(2)), {"a": ta.tensor([3.0])})
    assert (
        found["sum"].tolist() == [2.0, 2.0]
        and found["rest"][0].tolist() == [3.0]
        and found["rest"][1:] == [None, "text"]
    )


def test_arrays_in_any_layout():
    compiled, x = ta.compile(lambda x: ta.softmax(x.T.reshape(-1)) @ x.reshape(-1)), np.arange(12.0).reshape(3, 4) / 7
    want = compiled(x).item()
    read_only = x.copy()
    read_only.setflags(write=False)
    for given in (np.asfortranarray(x), np.repeat(x, 2, 0)[::2], x[::-1][::-1], read_only, x.astype(">f8")):
        assert compiled(given).item() == want
    assert len(compiled.programs) == 1


class Trainer:
    def __init__(self):
        self.model = nn.GPT(words=10, d=8, heads=2, layers=1, length=8, dropout=0.5, rng=0).train(False)

    def loss(self, ids):
        return ta.cross_entropy(self.model(ids), ids)

    @ta.compile
    def decorated(self, ids):
        """Decorated."""
        return self.loss(ids)


def test_methods_and_functions_that_call_others_see_whether_their_model_learns():
    trainer, ids = Trainer(), np.array([3, 1, 4])
    inside = lambda ids: trainer.loss(ids)
    want = trainer.loss(ids).item()
    ways = [ta.compile(trainer.loss), trainer.decorated, ta.compile(lambda ids: inside(ids)), ta.compile(trainer.model)]
    for way in ways[:3]:
        assert way(ids).item() == pytest.approx(want, rel=1e-13)
    assert ways[3](ids).shape == (3, 10) and Trainer.decorated.__doc__ == "Decorated."
    trainer.model.train()
    for way in ways:
        with pytest.raises(ta.GraphError, match="by chance"):
            way(ids)


stages = [nn.Linear(2, 2, rng=0), nn.Dropout(0.5, rng=0).train(False)]
scales = [ta.tensor(2.0, requires_grad=True), ta.tensor(3.0, requires_grad=True)]


def staged(x):
    rows = [stage(x) for stage in stages]  # names inside a list that is built in one line
    return sum((row.sum() * scale for row, scale in zip(rows, scales, strict=True)), start=0.0)


def test_models_and_words_are_found_inside_comprehensions():
    compiled, x = ta.compile(staged), np.ones((1, 2))
    assert compiled.backward(x).item() == pytest.approx(staged(ta.tensor(x)).item())
    assert "scales_1" in compiled.source and "d_scales_1" in compiled.source
    stages[1].train()
    try:
        with pytest.raises(ta.GraphError, match="by chance"):
            compiled.backward(x)
    finally:
        stages[1].train(False)


def test_nothing_of_the_record_is_kept():
    compiled = ta.compile(ta.value_and_grad(lambda x: ta.tanh(x @ x).sum()))
    compiled(np.ones((31, 31)))
    gc.collect()
    assert not [x for x in gc.get_objects() if type(x).__mro__[-2] is ta.Tensor and x.shape == (31, 31)]


def test_a_compiled_function_can_be_copied_and_pickled():
    compiled = ta.compile(attention_loss)
    compiled(*arrays())
    for twin in (copy.deepcopy(compiled), pickle.loads(pickle.dumps(compiled))):
        assert twin(*arrays()).item() == compiled(*arrays()).item()


# -- falling back ----------------------------------------------------------------------------------------------------


def test_what_is_not_finite_is_what_the_tape_says():
    f = lambda x: ta.where(x > 0, ta.log(x), 0.0).sum()
    compiled, slope = ta.compile(f), ta.compile(ta.grad(f))
    x = np.array([2.0, 0.0])
    assert compiled(np.array([1.0, 2.0])).item() == pytest.approx(np.log(2))
    with np.errstate(all="ignore"):
        assert compiled(x).item() == f(ta.tensor(x)).item()
        assert slope(x).tolist() == [0.5, 0.0]
        assert np.isnan(ta.compile(lambda x: ta.log(x).sum())(-x).item())


@pytest.mark.parametrize("name", ["reciprocal", "log", "exp of much", "power", "sqrt"])
def test_a_number_that_python_does_not_have_is_what_the_tape_says(name):
    f = {
        "reciprocal": lambda x: 1 / x, "log": ta.log, "exp of much": lambda x: ta.exp(x + 1000),
        "power": lambda x: x**-0.5, "sqrt": ta.sqrt,
    }[name]  # fmt: skip
    compiled = ta.compile(lambda x: f(x) * 2)
    with np.errstate(all="ignore"):
        assert compiled(ta.tensor(2.0)).item() == pytest.approx(f(ta.tensor(2.0)).item() * 2, nan_ok=True)
        for x in (0.0, -1.0):
            np.testing.assert_array_equal(compiled(ta.tensor(x)).data, f(ta.tensor(x)).data * 2)


def test_numbers_that_are_no_rows_are_refused_in_the_tapes_words():
    compiled = ta.compile(lambda table, ids: ta.embedding(table, ids))
    table = np.arange(6.0).reshape(3, 2)
    assert compiled(table, np.array([0, 2])).tolist() == [[0.0, 1.0], [4.0, 5.0]]
    for wrong in (-1, 3):
        with pytest.raises(ta.IndexRangeError, match="outside 0 to 2"):
            compiled(table, np.array([0, wrong]))
    from_the_end = ta.compile(lambda table, ids: table[ids])
    assert from_the_end(table, np.array([0, 1])).shape == (2, 2)
    assert from_the_end(table, np.array([-1, 1])).tolist() == [[4.0, 5.0], [2.0, 3.0]]


def test_a_model_that_changes_its_type_gets_another_program():
    layer = nn.Linear(2, 1, rng=0)
    compiled = ta.compile(lambda x: layer(x).sum())
    x = np.ones((3, 2))
    assert compiled(x).dtype == np.float64
    layer.astype(np.float32)
    assert compiled(x.astype(np.float32)).dtype == np.float32
    assert compiled(x).item() == pytest.approx(layer(x).sum().item())


def test_other_eyes_see_the_operations_of_the_tape():
    compiled = ta.compile(lambda x: ta.log(x).sum())
    compiled(np.array([1.0]))
    with pytest.raises(ta.NanError, match="log"), np.errstate(all="ignore"), ta.detect_nan():
        compiled(ta.tensor([-1.0], requires_grad=True))
    outer = ta.compile(lambda x: compiled(x) * 2)
    assert outer(np.array([1.0, np.e])).item() == pytest.approx(2.0)
    assert "log(x)" in outer.source or "log(x, " in outer.source


# -- gradients through a program -------------------------------------------------------------------------------------


def test_a_compiled_function_can_be_differentiated_as_any_other():
    cube = ta.compile(lambda x: (x * x * x).sum())
    x = ta.tensor([1.0, -2.0], requires_grad=True)
    assert ta.grad(cube)(x).tolist() == [3.0, 12.0]
    assert ta.hessian(cube, x.data).tolist() == [[6.0, 0.0], [0.0, -12.0]]
    y = cube(x * 2) + x.sum()
    y.backward()
    assert x.grad.tolist() == [25.0, 97.0]
    with ta.no_grad():
        assert not cube(x).requires_grad


def test_gradients_reach_parameters_and_what_is_behind_an_argument():
    layer = nn.Linear(2, 2, rng=0)
    compiled = ta.compile(lambda h: ta.tanh(layer(h)))
    w = ta.tensor([[1.0, 2.0]], requires_grad=True)
    results = []
    for f in (compiled, lambda h: ta.tanh(layer(h))):
        (f(w * 3) ** 2).sum().backward()
        results.append([leaf.grad for leaf in (w, layer.W, layer.b)])
        for leaf in (w, layer.W, layer.b):
            leaf.zero_grad()
    for got, want in zip(*results, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-13)
    squares = ta.compile(lambda h: (h * h).sum())
    squares.backward(w * 3)
    assert w.grad.tolist() == [[18.0, 36.0]]


def test_a_program_in_a_graph_is_checked_run_on_other_numbers_and_has_no_formula():
    w = ta.tensor(np.eye(3), requires_grad=True)
    weights = ta.compile(lambda x: ta.softmax(x @ w))
    x = ta.tensor(np.arange(6.0).reshape(2, 3) / 7, requires_grad=True)
    report = ta.check_gradients(lambda x: (weights(x) ** 2).sum(), x.data)
    assert report and "right up to order 2" in str(report)
    y = weights(x)
    node = ta.Graph.of(y).nodes[-1]
    assert node.op_name == "compiled <lambda>" and node.shape == (2, 3)
    np.testing.assert_array_equal(node.op.forward(x.data * 2, w.data * 3), ta.softmax((x * 2) @ (w * 3)).data)
    with pytest.raises(ta.GraphError, match=r"compiled\.f"):
        node.op.forward(x.data + 0j, w.data + 0j)
    with pytest.raises(ta.TinyattnError, match=r"compiled\.f"):
        ta.derive((y * y).sum(), [x])


def test_a_training_with_an_optimiser_is_that_of_the_tape():
    losses = []
    for compiled in (False, True):
        model = nn.MLP(3, 8, rng=0)
        rng = np.random.default_rng(1)
        loss = lambda x, y: ((model(x) - y) ** 2).mean()  # noqa: B023
        step = ta.compile(loss)
        optimiser = ta.optim.Adam(model.parameters(), lr=0.01)
        losses.append([])
        for _ in range(20):
            x = rng.normal(size=(5, 3))
            if compiled:
                value = step.backward(x, x * 2)
            else:
                value = loss(ta.tensor(x), ta.tensor(x * 2))
                value.backward()
            losses[-1].append(value.item())
            optimiser.step()
            optimiser.zero_grad()
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-12)
    assert losses[1][-1] < losses[1][0]


# -- threads ---------------------------------------------------------------------------------------------------------


def test_threads_do_not_write_into_each_others_arrays():
    compiled, wrong = ta.compile(both), []
    given = [arrays(seed=seed) for seed in range(4)]
    right = [both(*each) for each in given]

    def work(n):
        try:
            for _ in range(50):
                equal(compiled(*given[n]), right[n])
        except BaseException as error:
            wrong.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert wrong == []


def test_any_name_will_do():
    def run(np, add, b0, check, math, results):
        return ((np * add + b0) / math - check) * results

    given = [np.full((2, 2), float(n)) for n in range(1, 7)]
    compiled = ta.compile(ta.value_and_grad(lambda *xs: run(*xs).sum()))
    assert compiled(*given)[0].item() == run(*given).sum()
    named = ta.compile(run)
    np.testing.assert_array_equal(named(*given).data, run(*given))
    λ = ta.compile(lambda 查询, class_: 查询 * class_)
    assert λ(np.ones(1), np.ones(1)).item() == 1.0 and "def run(查询, class_)" in λ.source
