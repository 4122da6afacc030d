"""Other libraries take a tensor: DLPack, copies, NumPy's own tests, matplotlib, pandas; and notebooks show it."""

from __future__ import annotations

import copy
import warnings
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import tinyattn as ta
import viz
from tinyattn.notebook import tensor_html

V = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


class Memory:
    """A reader of DLPack that says what it knows, and what it wants."""

    def __init__(self, x: ta.Tensor, **wishes: Any) -> None:
        self.x, self.wishes = x, wishes

    def __dlpack__(self, **asked: Any) -> Any:
        return self.x.__dlpack__(**{**asked, **self.wishes})

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.x.__dlpack_device__()


# -- DLPack ------------------------------------------------------------------------------------------------------------


def test_dlpack_gives_a_copy_of_its_own() -> None:
    t = ta.tensor(V)
    array = np.from_dlpack(t)
    assert (array == V).all() and not np.shares_memory(array, t.data)


@pytest.mark.parametrize("x", [2.5, [1, 2], [True, False], np.float32([1.5]), np.zeros((0, 2))])
def test_dlpack_takes_every_shape_and_type(x: Any) -> None:
    array = np.from_dlpack(ta.tensor(x))
    assert array.dtype == np.asarray(x).dtype and np.array_equal(array, x)


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.1.0", reason="read-only DLPack came with NumPy 2.1")
def test_memory_is_shared_read_only_with_who_asks_for_no_copy() -> None:
    t = ta.tensor(V)
    array = np.from_dlpack(t, copy=False)
    assert np.shares_memory(array, t.data) and not array.flags.writeable


def test_memory_is_not_shared_with_who_does_not_know_of_read_only() -> None:
    with pytest.raises(BufferError, match=r"t: \(2, 3\)(.|\n)*read-only(.|\n)*copy=False"):
        t = ta.tensor(V)
        np.from_dlpack(Memory(t, max_version=None, copy=False))


def test_a_gradient_that_ends_in_dlpack_is_said() -> None:
    t = ta.tensor(V, requires_grad=True)
    with pytest.warns(ta.GradientLost, match=r"t: \(2, 3\)") as seen:
        np.from_dlpack(t)
    assert [warning.filename for warning in seen] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.from_dlpack(t.detach())
        with ta.no_grad():
            np.from_dlpack(t)


@pytest.mark.torch
def test_what_pytorch_writes_does_not_reach_a_recorded_graph() -> None:
    """It says that it knows read-only memory, and writes."""
    torch = pytest.importorskip("torch")
    t = ta.tensor(V)
    theirs = torch.from_dlpack(t)
    theirs[0, 0] = 99.0
    assert (t.data == V).all() and theirs.dtype == torch.float64
    with pytest.warns(ta.GradientLost) as seen:
        torch.from_dlpack(ta.tensor(V, requires_grad=True))
    assert [warning.filename for warning in seen] == [__file__]


def test_jax_takes_it() -> None:
    jnp = pytest.importorskip("jax.numpy")
    t = ta.tensor(V.astype(np.float32))
    assert (np.asarray(jnp.from_dlpack(t)) == V).all()


# -- readers -----------------------------------------------------------------------------------------------------------


def test_a_result_is_its_own_copy_and_a_leaf_gets_a_twin() -> None:
    w = ta.tensor(V, requires_grad=True)
    y = w * 2.0
    assert copy.copy(y) is y
    twin = copy.copy(w)
    assert twin is not w and twin.requires_grad and (twin.data == V).all()


def test_numpys_tests_take_tensors_in_silence() -> None:
    y = ta.tensor(V, requires_grad=True) * 2.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(y, 2 * V)
        np.testing.assert_array_equal(2 * V, y)
        np.testing.assert_array_less(y, 3 * V)
        with pytest.raises(AssertionError, match="Max absolute difference"):
            np.testing.assert_allclose(y, V)


def test_matplotlib_draws_tensors(tmp_path: Any) -> None:
    matplotlib = pytest.importorskip("matplotlib", reason="needs matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    y = ta.tensor(V, requires_grad=True) * 2.0
    with warnings.catch_warnings():
        warnings.simplefilter("error", ta.GradientLost)
        figure, axes = plt.subplots()
        (line,) = axes.plot(y[0], y[1])
        axes.imshow(y)
        axes.scatter(y[0], y[1], c=y[0])
        axes.bar([0, 1, 2], y[0])
        figure.savefig(tmp_path / "figure.png")
    assert line.get_ydata().tolist() == [8, 10, 12]
    plt.close(figure)


def test_pandas_takes_tensors() -> None:
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    y = ta.tensor(V, requires_grad=True) * 2.0
    with warnings.catch_warnings():
        warnings.simplefilter("error", ta.GradientLost)
        table = pandas.DataFrame(y, columns=["a", "b", "c"])
        named = pandas.DataFrame({"first": y[0], "second": y[1]})
    assert table["b"].tolist() == [4, 10] and str(table.dtypes["a"]) == "float64"
    assert named["second"].tolist() == [8, 10, 12] and str(pandas.Series(y[0]).dtype) == "float64"



# -- notebooks ---------------------------------------------------------------------------------------------------------


class Cells(HTMLParser):
    """The text of all cells, and whether every tag is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        assert tag not in ("script", "img", "link", "iframe")
        self.open.append(tag)
        if tag == "td":
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "td":
            self.cells[-1] += data


def test_a_tensor_is_a_table_with_shape_and_gradient() -> None:
    W = ta.tensor(V, requires_grad=True)
    (W * W).sum().backward()
    text = W._repr_html_()
    assert "<b>W</b> shape (2, 3), gradient there" in text
    assert Cells(text).cells == ["1", "2", "3", "4", "5", "6", "2", "4", "6", "8", "10", "12"]


def test_what_a_tensor_is_called_cannot_break_a_page() -> None:
    text = ta.tensor([1.0], name="<script>alert(1)</script>")._repr_html_()
    assert "&lt;script&gt;" in text and Cells(text).cells == ["1"]


def test_a_result_says_what_made_it_and_warns_of_nothing() -> None:
    y = ta.tensor([1, 2]) + 1
    z = ta.tensor(V, requires_grad=True) * 2.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "shape (2,), int64, made by add" in y._repr_html_()
        assert "made by multiply" in z._repr_html_()


def test_large_tensors_are_shortened() -> None:
    assert len(Cells(tensor_html(ta.tensor(np.arange(10_000.0).reshape(100, 100)))).cells) == 12 * 13 + 1
    assert "… and 6 more" in tensor_html(ta.tensor(np.zeros((2, 5, 3, 2))))
    assert tensor_html(ta.tensor(2.0)).count("<td>2</td>") == 1
    assert Cells(tensor_html(ta.tensor(np.zeros((0, 3))))).cells == []


def test_graphs_drawings_pages_derivations_and_reports_show_themselves() -> None:
    w = ta.tensor(V, requires_grad=True)
    loss = (ta.tanh(w) ** 2).sum()
    graph = ta.Graph.of(loss)
    assert set(graph._repr_mimebundle_()) == set(viz.draw(loss)._repr_mimebundle_()) >= {"text/plain"}
    assert "srcdoc" in viz.step(loss)._repr_mimebundle_()["text/html"]
    derivation = ta.derive(loss, w)
    assert "<table" in derivation._repr_html_()
    assert "proved for all sizes" in derivation.prove()._repr_html_()
    assert "<pre" in ta.compare(loss, [w], methods=("autograd", "difference"))._repr_html_()
    report = ta.check_gradients(ta.tanh, V[0], order=1)._repr_html_()
    assert "<b>tanh: the gradient is right.</b>" in report and "reverse" in Cells(report).cells


def test_a_report_of_a_wrong_rule_shows_where() -> None:
    def wrong(x: ta.Tensor) -> ta.Tensor:
        return ta.tanh(x) + (x * x).detach()

    report = ta.check_gradients(wrong, V[0], order=1)
    assert not report and 'class="wrong"' in report._repr_html_()


def test_a_graph_that_cannot_be_drawn_is_told_and_does_not_stop_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Any:
        raise RuntimeError("no pictures today")

    monkeypatch.setattr("tinyattn._viz.load_viz", broken)
    bundle = ta.Graph.of(ta.tensor([1.0]) * 2.0)._repr_mimebundle_()
    assert "no pictures today" in bundle["text/plain"] and set(bundle) == {"text/plain"}
