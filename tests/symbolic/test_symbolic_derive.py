"""Derivations read as a textbook, are proved for all sizes, and compute what autograd computes."""

import math
import re
import subprocess
import sys

import numpy as np
import pytest
from repository import printed
from symbolic.models import (
    MODELS,
    affine_relu_mse,
    attention,
    cross_entropy,
    embedding,
    hessian_vector,
    layer_norm_fused,
    multi_head,
    run_program,
)

import tinyattn as ta
from tinyattn.errors import ArgumentError, ArgumentTypeError, GraphError
from tinyattn.symbolic.layout import ascii_text, latex_name
from tinyattn.symbolic.terms import Term


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
@pytest.mark.parametrize("style", ["einsum", "matrix"])
def test_generated_program_computes_the_gradients_of_autograd(model, style):
    loss, leaves = model()
    derivation = ta.derive(loss, wrt=leaves)
    value, gradients = run_program(derivation, derivation.code(style))
    loss.backward()
    assert value == pytest.approx(loss.item(), rel=1e-12)
    for leaf in leaves:
        assert gradients[leaf.name].shape == leaf.shape
        np.testing.assert_allclose(gradients[leaf.name], leaf.grad, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_line_is_proved_for_all_sizes(model):
    loss, leaves = model()
    certificate = ta.derive(loss, wrt=leaves).prove()
    assert certificate, str(certificate)


def test_attention_reads_as_in_a_textbook():
    L, leaves = attention()
    derivation = ta.derive(L, wrt=leaves, dims={"Q": "n d", "K": "m d", "V": "m k"})
    assert derivation.text("matrix").splitlines() == [
        "S = 1/√d · Q Kᵀ",
        "P = softmax(S)",
        "O = P V",
        "L = 1ᵀ (O ⊙ C) 1",
        "Ō = C",
        "P̄ = Ō Vᵀ",
        "S̄ = P ⊙ (P̄ − (P̄ ⊙ P) 1 1ᵀ)",
        "Q̄ = 1/√d · S̄ K",
        "K̄ = 1/√d · S̄ᵀ Q",
        "V̄ = Pᵀ Ō",
    ]
    assert str(derivation.gradient("Q")) == "Q̄ = 1/√d · S̄ K"
    assert ascii_text(derivation.gradient("Q").layout("matrix")) == "dQ = 1/sqrt(d) * dS K"
    assert str(derivation.closed_form(leaves[0])) == "Q̄ = 1/√d · (P ⊙ (C Vᵀ − (P ⊙ C Vᵀ) 1 1ᵀ)) K"
    assert derivation.expand(leaves[0], entry=(0, 0)) == "Q̄_00 = 1/√2 (S̄_00 K_00 + S̄_01 K_10 + S̄_02 K_20 + S̄_03 K_30)"


def test_lines_say_rule_node_and_shape():
    loss, leaves = attention()
    derivation = ta.derive(loss, wrt=leaves)
    steps = {step.name: step for step in derivation.steps}
    assert steps["S̄"].rule == "division, elementwise" and steps["Q̄"].rule == "swap"
    assert steps["S"].shape == "n × m" and steps["Q̄"].shape == "n × d"
    assert derivation.graph.nodes[steps["P̄"].node].name == "P"
    assert {derivation.graph.nodes[each].op_name for each in steps["S"].absorbed} >= {
        "transpose",
        "matmul",
        "size_of",
        "sqrt",
    }


def test_equal_lengths_are_not_taken_for_the_same_length():
    """n, m, d and k are all 3 here, and still four lengths."""
    loss, leaves = attention(n=3, m=3, d=3, k=3)
    derivation = ta.derive(loss, wrt=leaves)
    assert [step.shape for step in derivation.steps[:3]] == ["n × m", "n × m", "n × k"]


def test_lengths_take_the_names_that_the_learner_gave_them_and_never_a_tensor_s():
    q = ta.tensor(np.ones((3, 2)), requires_grad=True)
    k = ta.tensor(np.ones((4, 2)), requires_grad=True)
    v = ta.tensor(np.ones((4, 5)), requires_grad=True)
    d_k = ta.size_of(k, axis=-1)
    scores = q @ k.mT / ta.sqrt(d_k)
    out = ta.softmax(scores) @ v
    derivation = ta.derive((out * out).sum(), wrt=[q, k, v])
    shapes = {step.name: step.shape for step in derivation.steps}
    assert shapes["q̄"] == "n × d_k" and shapes["scores"] == "n × m" and "1/√(d_k) · q kᵀ" in derivation.text()
    assert shapes["v̄"].split(" × ")[1] not in ("k", "v", "q", "d_k")


def test_heads_print_per_head_and_three_indices_by_index():
    loss, leaves = multi_head()
    derivation = ta.derive(loss, wrt=leaves)
    assert "^(g)" in derivation.text("matrix")
    loss, leaves = embedding()
    step = next(step for step in ta.derive(loss, wrt=leaves).steps if step.name == "Ē")
    assert step.matrix is None and step.why == "a condition on indices"


def test_cross_entropy_gradient_is_probability_minus_target():
    loss, leaves = cross_entropy()
    assert "Z̄_ia = 1/n (softmax_a(Z_ia) − [targets_i = a])" in ta.derive(loss, wrt=leaves, dims={"X": "n d"}).text(
        "index"
    ).replace("Z̄_ib", "Z̄_ia").replace("_b(Z_ib)", "_a(Z_ia)").replace("= b]", "= a]")


def test_repeated_parts_get_a_name():
    loss, leaves = layer_norm_fused()
    lines = ta.derive(loss, wrt=leaves).text("index").splitlines()
    assert lines[0].startswith("U_ia = X_ia − 1/d Σ") and lines[1].startswith("v_i = 1/d Σ")
    assert lines[2] == "Y_ia = U_ia g_a / √(v_i) + b_a"


def test_a_mean_is_one_line_and_its_length_has_no_gradient():
    """The mean divides by a length that was read off the tensor; nothing comes back through it. Its sum has no name."""
    L, leaves = affine_relu_mse()
    text = ta.derive(L, wrt=leaves, dims={"X": "n d", "W": "d k"}).text("matrix")
    assert "L = 1/(nk) · 1ᵀ (H − T)^(⊙2) 1" in text and "H̄ = 2/(nk) · (H − T)" in text
    assert "count" not in text and "total" not in text


def test_a_sum_that_the_learner_names_keeps_its_line():
    x = ta.tensor(np.ones((2, 3)), requires_grad=True, name="x")
    total = x.sum()
    L = total / ta.size_of(x)
    assert "total = Σ_ia x_ia" in ta.derive(L, wrt=[x]).text("index")


def test_layer_norm_by_hand_reads_as_in_a_textbook():
    rng = np.random.default_rng(0)
    x, g = (ta.tensor(rng.normal(size=shape), requires_grad=True) for shape in ((3, 4), 4))
    mu = x.mean(axis=-1, keepdims=True)
    c = x - mu
    v = (c**2).mean(axis=-1, keepdims=True)
    z = c / ta.sqrt(v + 1e-5)
    y = z * g
    derivation = ta.derive(y, wrt=[x, g])
    assert derivation.text("index").splitlines() == [
        "mu_i = 1/d Σ_a x_ia",
        "c_ia = x_ia − mu_i",
        "v_i = 1/d Σ_a c_ia²",
        "z_ia = c_ia / √(v_i + 1e-05)",
        "y_ia = z_ia g_a",
        "z̄_ia = ȳ_ia g_a",
        "v̄_i = −1 / (2 (v_i + 1e-05)) Σ_a z̄_ia z_ia",
        "c̄_ia = z̄_ia / √(v_i + 1e-05) + 2/d v̄_i c_ia",
        "m̅u̅_i = −Σ_a c̄_ia",
        "x̄_ia = c̄_ia + 1/d m̅u̅_i",
        "ḡ_a = Σ_i ȳ_ia z_ia",
    ]
    assert r"\mu &= \frac{1}{d}" in derivation.latex() and "10^{-5}" in derivation.latex()
    assert "<mi>μ</mi>" in derivation.mathml() and "1e-05" not in derivation.mathml()


def test_scores_without_a_name_still_have_a_line_before_softmax():
    X = ta.tensor(np.ones((3, 2)), requires_grad=True)
    A = ta.softmax(X @ X.mT) @ X
    lines = ta.derive(A, wrt=[X]).text("matrix").splitlines()
    assert lines[:2] == ["T2 = X Xᵀ", "T3 = softmax(T2)"]
    assert lines[-2:] == ["T̅2̅ = T3 ⊙ (T̅3̅ − (T̅3̅ ⊙ T3) 1 1ᵀ)", "X̄ = T3ᵀ Ā + T̅2̅ X + T̅2̅ᵀ X"]


def test_sums_of_products_of_vectors_are_inner_products():
    u, v, M = (ta.tensor(np.ones(shape), requires_grad=True) for shape in (3, 3, (3, 3)))
    text = ta.derive((M @ M).sum() * (u * v).sum(), wrt=[u, v, M]).text("matrix")
    assert text.splitlines()[0].endswith("= uᵀ v 1ᵀ M M 1")


def test_a_name_that_comes_again_has_its_number_below():
    """`H·2`, as drawings have it, would read as twice H."""
    H = X = ta.tensor(np.ones((3, 3)), requires_grad=True)
    for _ in range(2):
        H = ta.tanh(X @ H)
    L = H.sum()
    derivation = ta.derive(L, wrt=[X])
    assert "H_1 = tanh(X X)" in derivation.text()
    assert str(derivation.gradient("H_1")) == str(derivation.gradient("H·1"))


def test_a_leaf_of_one_number_is_found():
    z, x = ta.tensor(2.0, requires_grad=True), ta.tensor([1.0, 3.0], requires_grad=True)
    L = (z * z * x).sum()
    derivation = ta.derive(L, wrt=[z, x])
    assert str(derivation.gradient(z)) == "z̄ = 2 · z 1ᵀ x" and derivation.prove()
    assert ta.compare(L, wrt=[z, x])
    assert derivation.expand(z, entry=()) == "z̄ = 2 (x_0 z + x_1 z)"


def test_a_value_in_the_middle_may_be_derived_by_together_with_what_made_it():
    x = ta.tensor([0.5, -1.0, 2.0], requires_grad=True)
    h = ta.tanh(x)
    L = (h * h * x).sum()
    for wrt in ([h, x], [x, h]):
        derivation = ta.derive(L, wrt=wrt)
        assert str(derivation.gradient(h)) == "h̄ = 2 · (x ⊙ h)"
        certificate = derivation.prove()
        assert certificate and certificate.whole, str(certificate)
        report = ta.compare(L, wrt=wrt)
        assert report and len(report.found) == 5, str(report)
    assert "tanh" in str(derivation.to_sympy(x)) and "tanh" not in str(derivation.to_sympy(h))
    (line,) = [each for each in derivation.lines.backward if each.node == derivation._index_of(h)]
    line.expr = tuple(Term(2 * term.coef, term.factors, term.dummies, term.sizes) for term in line.expr)
    assert [claim.name for claim in derivation.prove(whole=True).refuted] == ["h (gradient)", "the whole derivation"]


def test_entries_are_counted_as_in_the_tensor():
    """Axes of length 1 have no index in a formula, and a merged axis has two; an entry has one place for each axis."""
    a, b = ta.tensor(np.ones((1, 3)), requires_grad=True), ta.tensor(np.ones((2, 1)), requires_grad=True)
    L = (a * b + a).sum()
    assert ta.derive(L, wrt=[a, b]).expand(b, entry=(1, 0)) == "b̄_10 = T̅2̅_10 a_00 + T̅2̅_11 a_01 + T̅2̅_12 a_02"
    with pytest.raises(ArgumentError, match=r"shape \(2, 1\), there is no entry \(0, 1\)"):
        ta.derive(L, wrt=[a, b]).expand(b, entry=(0, 1))
    loss, leaves = multi_head()
    assert ta.derive(loss, wrt=leaves).expand("W_o", entry=(3, 0)).startswith("(W̄_o)_30 = ")


def test_entries_that_are_picked_row_by_row_keep_the_row():
    """`Z[np.arange(n), targets]`, as everybody writes it, reads row i at what is chosen there; -1 is the last."""
    Z = ta.tensor(np.random.default_rng(0).normal(size=(3, 4)), requires_grad=True)
    for targets in (np.array([0, 3, 1]), np.array([0, -1, 1])):
        L = -Z[np.arange(3), targets].sum()
        derivation = ta.derive(L, wrt=[Z])
        assert derivation.text("index").splitlines() == ["L = −Σ_i Z_i,index1_i", "Z̄_ia = −[index1_i = a]"]
        _, gradients = run_program(derivation, derivation.code())
        np.testing.assert_array_equal(gradients["Z"], ta.grad(L, Z))
        assert derivation.prove() and ta.compare(L, wrt=[Z])


def test_a_line_without_matrix_form_says_so():
    L, leaves = cross_entropy()
    assert "by index: a condition on indices" in str(ta.derive(L, wrt=leaves))


def test_a_hessian_vector_product_reads_as_its_first_order():
    """The rule's care for nan leaves no trace where there is none; products of the loss have no lines of their own."""
    loss, leaves = hessian_vector()
    lines = ta.derive(loss, wrt=leaves).text().splitlines()
    assert lines[1:4] == ["P = softmax(T5)", "T10 = P ⊙ C Vᵀ", "T13 = T10 − P ⊙ T10 1 1ᵀ"]
    assert "K̄ = 1/√d · (T13ᵀ U + T̅5̅ᵀ Q)" in lines and "V̄ = (T̅1̅0̅ ⊙ P)ᵀ C" in lines


def test_a_root_that_the_learner_took_is_shown_as_one():
    x = ta.tensor(np.ones((3, 2)), requires_grad=True)
    for number, shown in ((math.sqrt(2), "1/√2"), (np.sqrt(5), "1/√5"), (2.0, "1/2")):
        S = x @ x.mT / number
        derivation = ta.derive(S, wrt=[x])
        assert derivation.text("matrix").splitlines()[0] == f"S = {shown} · x xᵀ"
        assert derivation.prove() and ta.compare(S.sum(), wrt=[x])


def test_decimals_stay_decimals():
    x = ta.tensor([1.0], requires_grad=True)
    y = 0.044715 * x
    assert ta.derive(y, wrt=[x]).text("index").splitlines()[-1] == "x̄_i = 0.044715 ȳ_i"
    assert "1/3" in ta.derive(x / 3.0, wrt=[x]).text() and "1/2" in ta.derive(0.5 * x, wrt=[x]).text()


def test_latex_and_mathml_and_html_hold_every_line():
    loss, leaves = attention()
    derivation = ta.derive(loss, wrt=leaves)
    for notation in ("matrix", "index"):
        assert derivation.latex(notation).count("\\\\") == len(derivation.steps) - 1
        assert derivation.mathml(notation).count("<math>") == len(derivation.steps)
    assert (
        r"\bar{S} &= P \odot \left(\bar{P} - \left(\bar{P} \odot P\right)\,\mathbf{1}\,\mathbf{1}^{\top}\right)"
        in derivation.latex()
    )
    page = derivation.html()
    assert page.count("<tr") == len(derivation.steps) + 1 and 'data-node="8"' in page and "http" not in page
    assert latex_name("W_q") == "W_{q}" and latex_name("scores") == r"\mathrm{scores}"


def test_names_that_are_no_python_names_are_changed_in_the_program():
    W, X = ta.tensor([[1.0, 2.0]], requires_grad=True, name="lambda"), ta.tensor([[3.0, 4.0]], name="x-y")
    loss = (W * X).sum()
    derivation = ta.derive(loss, wrt=[W])
    source = derivation.code()
    assert "def gradients(lambda_2, x_y):" in source
    _, gradients = run_program(derivation, source)
    np.testing.assert_array_equal(gradients["lambda"], [[3.0, 4.0]])


def test_a_result_of_several_numbers_is_derived_from_its_cotangent():
    W = ta.tensor([[1.0, 2.0]], requires_grad=True, name="W")
    Y = ta.tanh(W)
    derivation = ta.derive(Y, wrt=[W])
    assert derivation.text("index").splitlines()[-1].endswith("(1 − Y_ia²)")
    assert derivation.prove()


def test_what_cannot_be_expressed_is_named_with_the_operation():
    x = ta.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(GraphError, match="prod cannot be expressed"):
        ta.derive(ta.prod(x) * 1.0, wrt=[x])


def test_an_operation_without_formula_blocks_only_what_comes_back_through_it():
    """`x` needs the gradient of prod and has none; `w` needs its value only, `y` nothing of it."""
    x, w, y = (ta.tensor([1.0, 2.0, 4.0], requires_grad=True, name=name) for name in "xwy")
    p = ta.prod(x)
    L = (ta.exp(w) * p * x + y).sum()
    derivation = ta.derive(L, wrt=[x, w, y])
    assert str(derivation.closed_form(y)) == "ȳ = 1"
    with pytest.raises(GraphError, match=r"gradient by x has no formula here, .* prod \(node 3\)"):
        derivation.gradient(x)
    assert "p is taken as given: prod" in str(derivation) and "x has no formula" in derivation.ascii()
    certificate = derivation.prove()
    assert certificate and certificate.whole and "no formula for the gradient by x" in str(certificate)
    _, gradients = run_program(derivation, derivation.code())
    report = ta.compare(L, wrt=[x, w, y])
    assert report and {pair.leaf for pair in report.pairs if "formula" in (pair.first, pair.second)} == {"w", "y"}
    assert "formula for x" in report.unavailable
    L.backward()
    np.testing.assert_allclose(gradients["w"], w.grad, rtol=1e-12)
    assert "x" not in gradients


def test_an_operation_without_formula_off_the_path_is_a_given_value():
    x, w = ta.tensor([1.0, 2.0]), ta.tensor([3.0, 4.0], requires_grad=True, name="w")
    derivation = ta.derive((w * w * ta.prod(x)).sum(), wrt=[w])
    certificate = derivation.prove(whole=True)
    assert certificate and not certificate.missing
    line = derivation.line_of("w")
    line.expr = tuple(Term(-term.coef, term.factors, term.dummies, term.sizes) for term in line.expr)
    assert not derivation.prove()


def test_conditions_read_from_left_to_right():
    x = ta.tensor(np.ones((4, 6)), requires_grad=True, name="x")
    condition = np.ones((4, 6), dtype=bool)
    assert "[condition_ia = 1]" in ta.derive(ta.where(condition, x, 0.0), wrt=[x]).text("index")
    assert "[a = b + 2]" in ta.derive(x[:, 2:5], wrt=[x]).text("index")


def test_a_tensor_joined_with_itself_keeps_the_letters_of_its_two_places_apart():
    """Both contributions sum over the same index of the result; one of the sums is solved, the other is not."""
    x = ta.tensor(np.ones((4, 6)), requires_grad=True, name="x")
    y = ta.concatenate([x, x], axis=0)
    (line,) = [each for each in ta.derive(y, wrt=[x]).text("index").splitlines() if each.startswith("x̄")]
    assert line == "x̄_ia = ȳ_ia [i ≥ 0] [i < 4] + Σ_j ȳ_ja [j ≥ 4] [j < 8] [i = j − 4]"


def test_ascii_is_ascii_also_for_conditions():
    x = ta.tensor(np.ones((4, 6)), requires_grad=True)
    for y in (ta.concatenate([x, x], axis=0), ta.relu(x), x[1:], x.max(axis=0), ta.softmax(x)):
        assert ta.derive(y, wrt=[x]).ascii().isascii()


def test_wrong_requests_are_answered_in_words():
    loss, leaves = attention()
    other = ta.tensor([1.0], requires_grad=True, name="other")
    with pytest.raises(GraphError, match="does not depend on other"):
        ta.derive(loss, wrt=[other])
    with pytest.raises(ArgumentError, match="wrt is empty"):
        ta.derive(loss, wrt=[])
    with pytest.raises(ArgumentError, match="wrt holds the result itself"):
        ta.derive(loss, wrt=[loss])
    with pytest.raises(ArgumentTypeError, match="wrt must be a tensor that was recorded, not ndarray"):
        ta.derive(loss, wrt=[np.ones(2)])
    with pytest.raises(ArgumentTypeError, match="the result must be a tensor that was recorded, not float"):
        ta.derive(1.0, wrt=leaves)
    with pytest.raises(ArgumentError, match="99 is no node of this graph; give a number below 13"):
        ta.derive(ta.Graph.of(loss), wrt=[99])
    derivation = ta.derive(loss, wrt=leaves)
    with pytest.raises(ArgumentError, match="no tensor other in this derivation; it is by Q, K, V"):
        derivation.gradient(other)
    with pytest.raises(ArgumentError, match="no tensor 99 in this"):
        derivation.gradient(99)
    with pytest.raises(ArgumentError, match="'index'"):
        derivation.latex("tensor")
    with pytest.raises(ArgumentError, match="there is no entry"):
        derivation.expand(leaves[0], entry=(9, 0))
    with pytest.raises(ArgumentError, match="has 2 axes"):
        ta.derive(loss, wrt=leaves, dims={"Q": "n"})


def test_sympy_form_is_derived_independently_and_evaluates_to_the_same():
    loss, leaves = attention()
    derivation = ta.derive(loss, wrt=leaves)
    assert "KroneckerDelta" not in str(derivation.to_sympy("V"))
    assert derivation.to_sympy("Q", "elements").shape == (3, 2)


def test_sympy_form_of_a_result_of_several_numbers_is_in_terms_of_its_cotangent():
    W, x = ta.tensor(np.ones((2, 3)), requires_grad=True), ta.tensor(np.ones(3), requires_grad=True)
    y = W @ x
    derivation = ta.derive(y, wrt=[W, x])
    assert re.fullmatch(r"x\[p\d+\]\*y_bar\[p\d+\]", str(derivation.to_sympy(W)))
    assert re.fullmatch(r"Sum\(W\[k\d, p\d\]\*y_bar\[k\d\], \(k\d, 0, n - 1\)\)", str(derivation.to_sympy(x)))


def test_deriving_imports_no_sympy():
    code = (
        "import sys, tinyattn as ta; x = ta.tensor([1.0], requires_grad=True); d = ta.derive((x * x).sum(), wrt=[x]);"
        "print(d); d.prove(); d.code(); d.latex(); d.html(); assert 'sympy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_same_bytes_under_every_hash_seed(tmp_path):
    """Ten processes with different hash seeds print the same derivation, program, LaTeX and HTML."""
    code = (
        "import tinyattn as ta; from symbolic.models import MODELS\n"
        "for model in MODELS:\n"
        "    loss, leaves = model(); d = ta.derive(loss, wrt=leaves)\n"
        "    print(d, d.text('index'), d.latex(), d.code('matrix'), d.html())\n"
    )
    script = tmp_path / "models.py"
    script.write_text(code, encoding="utf-8")
    assert len(printed(script, range(10))) == 1


def test_derivation_is_linear_in_depth():
    """Ten times as many layers take the same number of lines each, and no name or letter grows."""

    def stack(layers):
        H = X = ta.tensor(np.ones((3, 2)), requires_grad=True, name="X")
        for _ in range(layers):
            H = ta.softmax(H @ H.mT) @ H
        return ta.derive(H.sum(), wrt=[X])

    few, many = stack(2), stack(20)
    per_layer = (len(many.steps) - len(few.steps)) / 18
    assert per_layer == int(per_layer) and many.prove(whole=False)
    assert max(len(line) for line in many.text("index").splitlines()) < 3 * max(
        len(line) for line in few.text("index").splitlines()
    )
    assert not re.search("''''", many.text("index"))
