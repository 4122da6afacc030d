"""What is printed lines up, and reaches a reader whose terminal lacks the letters."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import numpy as np
import pytest

from tinyattn.terminal import ProgressBar, ascii_form, can_encode, display_width, say, say_table, table


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


class Clock:
    """A clock that goes on when told."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(("pretty", "typed"), [
    ("S̄", "dS"), ("Q̇", "Qdot"), ("ŷ = σ(x̃)", "yhat = sigma(xtilde)"), ("W̄_q", "dW_q"), ("scores̄", "dscores"),
    ("Ā", "dA"), ("Kᵀ", "K^T"), ("√d_k", "sqrt(d_k)"), ("√(d_k)", "sqrt(d_k)"), ("1/√2", "1/sqrt(2)"),
    ("∂L/∂W", "dL/dW"), ("a · b", "a * b"), ("Q·2", "Q.2"), ("10⁻¹²", "10^-12"), ("x₁₂", "x_12"),
    ("α and Ω", "alpha and Omega"), ("λόγος", "λόγος"), ("café", "café"), ("我看见锯子…", "我看见锯子..."),
    ("s̅c̅o̅r̅e̅s̅ = T̅1̅ ⊘ x", "dscores = dT1 / x"), ("ā_long", "da_long"),
    ("┌─┬─┐", "+-+-+"), ("│a║b│", "|a|b|"), ("╞═╡", "+=+"), ("░▒▓█", ".:%#"), ("plain", "plain"), ("", ""),
])
def test_symbols_have_an_ascii_form(pretty: str, typed: str) -> None:
    assert ascii_form(pretty) == typed


def test_pictures_made_of_boxes_keep_their_width() -> None:
    picture = "".join(map(chr, range(0x2500, 0x2590)))
    shown = [sign for sign in picture if ascii_form(sign) != sign]
    assert len(shown) >= 128 and all(len(ascii_form(sign)) == 1 for sign in shown)


@pytest.mark.parametrize(("text", "width"), [
    ("saw", 3), ("看见", 4), ("S̄", 1), ("ａ", 2), ("á", 1), ("a\u200bb", 2), ("", 0), ("한국", 4),
])
def test_width_counts_columns_not_letters(text: str, width: int) -> None:
    assert display_width(text) == width


def test_columns_line_up_in_chinese_and_english() -> None:
    text = table([("我", 0.25), ("看见", -10.5), ("S̄", 3.0), ("saw", np.float32(1.5))], ["词", "weight"])
    assert {display_width(line) for line in text.split("\n")} == {14}
    assert text.split("\n")[3] == "看见  -10.5000"


def test_numbers_stand_right_and_words_left() -> None:
    text = table([("a", 1, "7 %", True), ("bcd", 100, "x", False)], ["w", "count", "n", "ok"], ascii=True)
    assert text.split("\n") == ["w    count  n    ok", "---  -----  ---  -----", "a        1  7 %  True",
                                "bcd    100  x    False"]


def test_very_small_and_very_large_numbers_get_powers_of_ten() -> None:
    assert table([(1e-12,), (3e-9,), (0.0,)]) == "1.00e-12\n3.00e-09\n0.00e+00"
    assert table([(float("nan"),), (2.5,)]) == "   nan\n2.5000"
    assert table([(1e6,)]) == "1.00e+06"


def test_rows_may_be_short_and_tables_empty() -> None:
    assert table([("a",), ("b", 1)], ["x", "y", "z"], ascii=True) == "x  y  z\n-  -  -\na\nb  1"
    assert table([], ["x", "y"], ascii=True) == "x  y\n-  -"
    assert table([]) == ""


def printed(code: str, encoding: str) -> bytes:
    command = [sys.executable, "-c", "from tinyattn.terminal import *\n" + code]
    environment = os.environ | {"PYTHONIOENCODING": encoding}
    return subprocess.run(command, env=environment, capture_output=True, check=True).stdout


def test_a_chinese_code_page_keeps_chinese_and_gets_ascii_for_what_it_lacks() -> None:
    out = printed("say('查询 S̄ = ∂L/∂S …')", "gbk").decode("gbk")
    assert out.strip() == "查询 dS = dL/dS ..."
    assert printed("say('查询 → 键')", "gbk").decode("gbk").strip() == "查询 → 键"  # GBK has the arrow


def test_an_ascii_terminal_gets_every_number_and_no_error() -> None:
    out = printed("say('S̄ᵀ café 查')", "ascii").decode("ascii")
    assert out.strip() == r"dS^T cafe \u67e5"


@pytest.mark.parametrize("encoding", ["ascii", "gbk", "utf-8"])
def test_tables_line_up_whatever_the_terminal_can_show(encoding: str) -> None:
    out = printed("say_table([('Q̄', 1.5), ('√d_k', -20.25)], ['∂L', '最大'])", encoding).decode(encoding)
    lines = out.splitlines()
    assert len({display_width(line) for line in lines}) == 1 and lines[-1].endswith(" -20.2500")


def test_words_that_ascii_lacks_are_escaped_before_the_table_is_lined_up() -> None:
    out = printed("say_table([('查', 1), ('ab', 2)])", "ascii").decode("ascii")
    first, second = out.rstrip().split("\n")
    assert len(first) == len(second) and first.startswith(r"\u67e5")


def test_what_a_stream_can_encode_is_asked_of_the_stream() -> None:
    narrow = io.TextIOWrapper(io.BytesIO(), encoding="gbk")
    assert can_encode("查询", narrow) and not can_encode("S̄", narrow) and can_encode("S̄", io.StringIO())


def test_say_takes_ascii_on_request() -> None:
    stream = io.StringIO()
    say("x → y", ascii=True, stream=stream)
    say_table([("∂", 1)], stream=stream, ascii=True)
    assert stream.getvalue() == "x -> y\nd  1\n"


def test_the_bar_is_one_line_on_a_terminal() -> None:
    screen, clock = Screen(), Clock()
    with ProgressBar(4, "training", stream=screen, clock=clock) as bar:
        for step in range(4):
            clock.now += 2
            bar.step(note=f"loss {1 / (step + 1):.2f}")
    text = screen.getvalue()
    assert text.count("\n") == 1 and text.endswith("\n")
    last = text.rstrip("\n").split("\r")[-1]
    assert last.startswith("training  " + "█" * 24 + "  4/4  loss 0.25")
    assert "2/4  4 s left  loss 0.50" in text


def test_the_bar_is_drawn_ten_times_a_second_at_most() -> None:
    screen, clock = Screen(), Clock()
    bar = ProgressBar(1000, stream=screen, clock=clock)
    for _ in range(999):
        clock.now += 0.001
        bar.step()
    assert screen.getvalue().count("\r") <= 11


def test_a_shorter_line_covers_the_longer_one_before() -> None:
    screen, clock = Screen(), Clock()
    bar = ProgressBar(10, stream=screen, clock=clock)
    for note in ("a long note", ""):
        clock.now += 0.2
        bar.step(note=note)
    before, after = screen.getvalue().split("\r")[1:]
    assert display_width(after) == display_width(before)


def test_the_bar_never_wraps_in_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    screen = Screen()
    ProgressBar(10, "看见看见看见看见看见", stream=screen).step(note="看见看见")
    assert display_width(screen.getvalue().strip("\r")) <= 29


def test_an_interrupted_bar_ends_its_line() -> None:
    screen = Screen()
    with pytest.raises(KeyboardInterrupt), ProgressBar(10, stream=screen) as bar:
        bar.step()
        raise KeyboardInterrupt
    assert screen.getvalue().endswith("\n") and "1/10" in screen.getvalue()


def test_a_log_gets_a_line_for_each_tenth_and_one_after_a_long_silence() -> None:
    log, clock = io.StringIO(), Clock()
    with ProgressBar(1000, "training", stream=log, clock=clock) as bar:
        for step in range(1000):
            clock.now += 31 if step == 7 else 0
            bar.step()
    lines = log.getvalue().splitlines()
    assert len(lines) == 11 and lines[0] == "training: 8 of 1000 (0 %)"
    assert lines[-1] == "training: 1000 of 1000 (100 %)"


def test_the_bar_survives_a_reader_that_went_away() -> None:
    stream = io.StringIO()
    bar = ProgressBar(2, stream=stream)
    stream.close()
    bar.step()
    bar.step()
    bar.close()
    assert bar.done == 2


def test_nothing_to_do_is_done() -> None:
    log = io.StringIO()
    with ProgressBar(0, stream=log) as bar:
        bar.update(0)
    assert log.getvalue() == "0 of 0\n"
