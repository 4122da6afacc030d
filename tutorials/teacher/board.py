"""Three small computations for the board; the teacher's folder holds the stepper of each.

A function gives the number from which the gradients go back.  `BOARD` names them by lesson and topic, with the
title of the page in English and Chinese.
"""

import tinyattn as ta


def adding_up():
    a = ta.tensor(2.0, requires_grad=True, name="a")
    b = ta.tensor(3.0, requires_grad=True, name="b")
    total = a + b
    y = total * b  # b reaches y on two ways
    return y


def softmax_first():
    x = ta.tensor([2.0, 1.0, 0.0], requires_grad=True, name="x")
    g = ta.tensor([1.0, 0.0, 0.0], name="g")  # only the first share matters
    s = ta.softmax(x)
    loss = ta.sum(s * g)
    return loss


def one_query():
    q = ta.tensor([2.0, 1.0], requires_grad=True, name="q")  # saw asks
    K = ta.tensor([[1.0, 1], [1, 0], [0, 1], [1, 0]], requires_grad=True, name="K")
    V = ta.tensor([[3.0, 1], [2, 3], [1, 1], [2, 3]], requires_grad=True, name="V")
    scores = K @ q
    weights = ta.softmax(scores)
    b = weights @ V
    loss = ta.sum(b)
    return loss


BOARD = {
    "03_adding_up": (adding_up, ("Adding up: (a + b) · b", "相加：(a + b) · b")),
    "07_softmax": (softmax_first, ("Softmax of (2, 1, 0), and the first share", "(2, 1, 0)的softmax，以及第一个份额")),
    "10_one_query": (one_query, ("One query of I saw a saw", "I saw a saw中的一个查询")),
}
