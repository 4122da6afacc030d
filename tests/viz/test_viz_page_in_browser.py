"""The pages in a real browser: every control, the keyboard, the numbers shown, both colour schemes, no request."""

import json
import os
import time

import numpy as np
import pytest
from browsing import headless_chromium
from replayed import attention, data_of

import tinyattn as ta
import viz
from viz.trace import Trace
from viz.view import view_of
from viz.words import Words

pytestmark = [pytest.mark.browser, pytest.mark.slow]

selenium = pytest.importorskip("selenium", reason="selenium is not installed")
from selenium.webdriver import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import Select  # noqa: E402

NARROW, WIDE = (360, 740), (1200, 900)


@pytest.fixture(scope="module")
def browser():
    yield from headless_chromium()


@pytest.fixture(scope="module")
def lesson(tmp_path_factory):
    """The page of single-head attention, its file, its graph and its steps."""
    graph = ta.Graph.of(attention(), gradients=True)
    page = viz.step(graph, title="I saw a saw")
    path = tmp_path_factory.mktemp("page") / "回放.html"
    page.save(path)
    return page, path, graph, Trace(view_of(graph, Words("en"))).steps


@pytest.fixture(autouse=True)
def quiet(browser):
    """No test leaves an error in the console, and none makes the page ask for anything outside."""
    emulate(browser, *WIDE)
    yield
    errors = [entry["message"] for entry in browser.get_log("browser")]
    assert errors == []
    assert requested(browser) == []


def requested(browser):
    """Addresses outside the page itself that were asked for."""
    made = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [m["params"]["request"]["url"] for m in made if m["method"] == "Network.requestWillBeSent"]
    return [url for url in sent if not url.startswith(("file:", "data:", "about:"))]


def emulate(browser, width, height, *, scheme="light", motion="reduce"):
    sizes = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", sizes)
    features = [("prefers-color-scheme", scheme), ("prefers-reduced-motion", motion)]
    media = [{"name": name, "value": value} for name, value in features]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})


def opened(browser, path, address=""):
    browser.get("about:blank")
    browser.get(path.as_uri() + address)
    return browser


def one(browser, selector):
    return browser.find_element(By.CSS_SELECTOR, selector)


def at(browser):
    return int(one(browser, "#count").text.split("/")[0])


def settings(browser):
    if not one(browser, "#settings").get_attribute("open"):
        one(browser, "#settings summary").click()


def choose(browser, selector, value):
    settings(browser)
    Select(one(browser, selector)).select_by_value(value)


def shown(browser):
    """The tables on the card: caption key to entries."""
    read = """return [...document.querySelectorAll('#tables table')].map(t => [t.dataset.key,
        [...t.querySelectorAll('tr')].map(r => [...r.querySelectorAll('td:not(.cut)')].map(c => c.textContent))
        .filter(r => r.length)])"""
    return [(key, [[float(x) for x in row] for row in rows]) for key, rows in browser.execute_script(read)]


# --------------------------------------------------------------------------------------------------------------


def test_every_step_shows_the_engines_numbers(browser, lesson):
    """The whole walk by the button Next: each product with the right numbers, a rule, a lit node and a lit edge."""
    _, path, graph, steps = lesson
    opened(browser, path)
    for number, step in enumerate(steps, 1):
        assert at(browser) == number
        node = graph.nodes[step.node]
        wanted = {"value": node.value, "result": node.value, "seed": step.value, "contribution": step.value}
        wanted |= {"upstream": node.grad, "gradient": graph.nodes[step.target].grad}
        tables = shown(browser)
        assert tables
        for key, rows in tables:
            if key in wanted and not (key == "result" and step.kind == "pull" and rows != tables[-1][1]):
                exact = np.asarray(wanted[key])
                scale = max(1.0, float(np.abs(exact).max()))
                np.testing.assert_allclose(np.ravel(rows), exact.ravel(), rtol=0, atol=6e-4 * scale)
        lit = browser.find_elements(By.CSS_SELECTOR, "#picture .now")
        assert len(lit) == 1
        if step.kind == "pull":
            assert browser.find_elements(By.CSS_SELECTOR, "#formula math")
            assert len(browser.find_elements(By.CSS_SELECTOR, "#picture .edge.lit")) == 1
            assert f"Contribution {step.number} of {step.of}" in one(browser, "#say").text
        if number < len(steps):
            one(browser, "#next").click()
    assert not one(browser, "#next").is_enabled() and not one(browser, "#last").is_enabled()


def test_the_buttons_and_the_slider(browser, lesson):
    _, path, _, steps = lesson
    opened(browser, path)
    assert not one(browser, "#previous").is_enabled()
    one(browser, "#last").click()
    assert at(browser) == len(steps)
    one(browser, "#previous").click()
    assert at(browser) == len(steps) - 1
    one(browser, "#first").click()
    assert at(browser) == 1
    slider = one(browser, "#slider")
    slider.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert at(browser) == 3 and "X" not in slider.get_attribute("aria-valuetext").split(":")[0]
    slider.send_keys(Keys.END)
    assert at(browser) == len(steps)


def test_the_keyboard_alone(browser, lesson):
    _, path, _, steps = lesson
    opened(browser, path)
    ActionChains(browser).send_keys(Keys.ARROW_RIGHT * 5).perform()
    assert at(browser) == 6
    ActionChains(browser).send_keys(Keys.ARROW_LEFT).perform()
    assert at(browser) == 5
    ActionChains(browser).send_keys(Keys.END).perform()
    assert at(browser) == len(steps)
    ActionChains(browser).send_keys(Keys.HOME).perform()
    assert at(browser) == 1
    reached = set()
    for _ in range(60):
        ActionChains(browser).send_keys(Keys.TAB).perform()
        focused = browser.switch_to.active_element
        reached.add(focused.get_attribute("id"))
    assert {"next", "play", "slider", "speed", "language", "L0-n0"} <= reached
    box = one(browser, "#L0-n7")
    browser.execute_script("arguments[0].focus()", box)
    ActionChains(browser).send_keys(Keys.ENTER).perform()
    assert "Forward" in one(browser, "#say").text
    outline = browser.execute_script("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"


def test_a_click_on_a_node_goes_to_its_forward_step_and_then_to_its_gradient(browser, lesson):
    _, path, graph, steps = lesson
    (softmax,) = [node.index for node in graph.nodes if node.op_name == "softmax"]
    opened(browser, path)
    box = one(browser, f"#L0-n{softmax} text")
    box.click()
    assert steps[at(browser) - 1].kind == "forward" and steps[at(browser) - 1].node == softmax
    box.click()
    arrived = steps[at(browser) - 1]
    assert arrived.kind == "pull" and arrived.target == softmax


def test_play_runs_to_the_end_and_stops(browser, lesson):
    _, path, _, steps = lesson
    opened(browser, path, f"#step={len(steps) - 1}")
    Select(one(browser, "#speed")).select_by_value("1000")
    one(browser, "#play").click()
    assert one(browser, "#play").text == "Pause"
    deadline = time.monotonic() + 10
    while one(browser, "#play").text != "Play" and time.monotonic() < deadline:
        time.sleep(0.1)
    assert at(browser) == len(steps) and one(browser, "#play").text == "Play"


def test_forward_and_backward_can_be_looked_at_alone(browser, lesson):
    _, path, _, steps = lesson
    opened(browser, path)
    choose(browser, "#filter", "backward")
    forward = sum(step.kind == "forward" for step in steps)
    assert one(browser, "#count").text == f"1 / {len(steps) - forward}"
    assert "Backward begins" in one(browser, "#say").text
    choose(browser, "#filter", "forward")
    assert one(browser, "#count").text.endswith(f"/ {forward}")


def test_a_deep_link_opens_its_step_and_the_address_follows(browser, lesson):
    _, path, _, _ = lesson
    opened(browser, path, "#step=17")
    assert at(browser) == 17
    one(browser, "#next").click()
    assert browser.current_url.endswith("#step=18")
    browser.execute_script("location.hash = '#step=3'")
    deadline = time.monotonic() + 5
    while at(browser) != 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert at(browser) == 3
    opened(browser, path, "#step=9999")
    assert not one(browser, "#next").is_enabled()


def test_ask_me_first_hides_the_answer_until_it_is_given(browser, lesson):
    page, path, _, steps = lesson
    asked = data_of(page)["steps"]
    (number,) = [i for i, s in enumerate(steps) if s.kind == "forward" and "ask" in asked[i]][:1]
    opened(browser, path, f"#step={number + 1}")
    settings(browser)
    one(browser, "#ask").click()
    options = browser.find_elements(By.CSS_SELECTOR, "#question button")
    assert "Which shape" in one(browser, "#say").text and "result" not in [key for key, _ in shown(browser)]
    options[asked[number]["ask"]["a"]].click()
    assert one(browser, "#verdict").text == "Right." and "result" in [key for key, _ in shown(browser)]
    one(browser, "#next").click()
    assert one(browser, "#verdict").get_attribute("textContent") == ""
    pull = next(i for i, s in enumerate(steps) if s.kind == "pull")
    while at(browser) < pull + 1:
        one(browser, "#next").click()
    assert [key for key, _ in shown(browser)] == ["upstream"]
    right = asked[pull]["ask"]["a"]
    browser.find_elements(By.CSS_SELECTOR, "#question button")[(right + 1) % 3].click()
    assert one(browser, "#verdict").text.startswith("Not so: it is")


def test_an_entry_is_worked_out_and_another_can_be_picked(browser, lesson):
    _, path, graph, steps = lesson
    number = next(i for i, s in enumerate(steps) if s.kind == "pull" and graph.nodes[s.node].op_name == "softmax")
    opened(browser, path, f"#step={number + 1}")
    first = one(browser, "#worked p").text
    assert "·" in first and "≈" in first and browser.find_elements(By.CSS_SELECTOR, "#tables .used")
    Select(one(browser, "#worked select")).select_by_value("0")
    assert one(browser, "#worked p").text != first and "[0,0]" in one(browser, "#worked p").text
    browser.find_elements(By.CSS_SELECTOR, 'table[data-key="contribution"] td')[5].click()
    assert "[1,1]" in one(browser, "#worked p").text


def test_formulas_in_both_forms(browser, lesson):
    _, path, graph, steps = lesson
    number = next(i for i, s in enumerate(steps) if s.kind == "pull" and graph.nodes[s.node].op_name == "softmax")
    opened(browser, path, f"#step={number + 1}")
    matrix = one(browser, "#formula math").text
    choose(browser, "#notation", "index")
    assert one(browser, "#formula math").text != matrix and "∑" in one(browser, "#formula").text.replace("Σ", "∑")


def test_the_language_is_switched(browser, lesson):
    _, path, _, _ = lesson
    opened(browser, path, "#step=20")
    one(browser, "#language").click()
    assert "贡献" in one(browser, "#say").text and one(browser, "html").get_attribute("lang") == "zh"
    assert "的贡献" not in one(browser, "h1").text and one(browser, "#language").text == "English"
    one(browser, "#language").click()
    assert "Contribution" in one(browser, "#say").text


def test_light_and_dark(browser, lesson):
    _, path, _, _ = lesson
    background = "return getComputedStyle(document.body).backgroundColor"
    opened(browser, path, "#step=25")
    assert browser.execute_script(background) == "rgb(255, 255, 255)"
    emulate(browser, *WIDE, scheme="dark")
    assert browser.execute_script(background) == "rgb(21, 23, 26)"
    choose(browser, "#theme", "light")
    assert browser.execute_script(background) == "rgb(255, 255, 255)"
    emulate(browser, *WIDE)
    choose(browser, "#theme", "dark")
    assert browser.execute_script(background) == "rgb(21, 23, 26)"
    fill = "return getComputedStyle(document.querySelector('#picture .op polygon')).fill"
    assert browser.execute_script(fill) == "rgb(20, 43, 60)"


def test_scopes_are_folded_and_unfolded(browser, lesson):
    _, path, _, _ = lesson
    opened(browser, path, "#step=12")
    visible = "return [...document.querySelectorAll('#picture svg')].filter(s => s.style.display !== 'none').length"
    before = one(browser, "#picture .now").get_attribute("id")
    choose(browser, "#scopes", "1")
    after = one(browser, "#picture .now").get_attribute("id")
    assert browser.execute_script(visible) == 1 and before.startswith("L0-") and after.startswith("L1-")
    choose(browser, "#scopes", "0")
    assert one(browser, "#picture .now").get_attribute("id") == before


def test_a_screen_reader_is_told_each_step(browser, lesson):
    _, path, _, _ = lesson
    opened(browser, path)
    say = one(browser, "#say")
    assert say.get_attribute("role") == "status" and say.get_attribute("aria-live") == "polite"
    unnamed = """return [...document.querySelectorAll('button,select,input,.node,svg:not([hidden])')].filter(x =>
        !(x.getAttribute('aria-label') || x.getAttribute('aria-labelledby') || x.textContent.trim() ||
        (x.labels && x.labels.length))).map(x => x.outerHTML.slice(0, 80))"""
    assert browser.execute_script(unnamed) == []


def test_without_javascript_picture_and_text_are_there(browser, lesson):
    _, path, _, steps = lesson
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        opened(browser, path)
        assert one(browser, "#picture svg").is_displayed() and not one(browser, "#player").is_displayed()
        items = browser.find_elements(By.CSS_SELECTOR, "#steps li")
        assert len(items) == len(steps) and items[0].is_displayed()
        assert items[0].text == "E, shape (3, 4), is a parameter: its gradient is wanted."
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [NARROW, WIDE], ids=["narrow", "wide"])
def test_the_page_is_never_wider_than_the_screen(browser, lesson, size, scheme, tmp_path):
    _, path, _, steps = lesson
    emulate(browser, *size, scheme=scheme)
    for number in range(1, len(steps) + 1, 5):
        opened(browser, path, f"#step={number}")
        assert browser.execute_script("return document.documentElement.scrollWidth") <= size[0]
    if folder := os.environ.get("TINYATTN_SCREENSHOTS"):
        browser.save_screenshot(os.path.join(folder, f"step-{size[0]}-{scheme}.png"))


def test_two_pages_in_one_notebook(browser, tmp_path):
    """Each in its frame: the arrow keys and ids of one do not move the other."""
    x = ta.tensor([1.0, 2.0], requires_grad=True)
    one_loss, other_loss = ta.sum(x * x), ta.sum(ta.exp(x))
    frames = [viz.step(loss)._repr_mimebundle_()["text/html"] for loss in (one_loss, other_loss)]
    notebook = tmp_path / "notebook.html"
    notebook.write_text(f"<!doctype html><meta charset=utf-8>{frames[0]}<hr>{frames[1]}", encoding="utf-8")
    opened(browser, notebook)
    first, second = browser.find_elements(By.TAG_NAME, "iframe")
    browser.switch_to.frame(first)
    one(browser, "#next").click()
    one(browser, "#next").click()
    assert at(browser) == 3
    browser.switch_to.default_content()
    browser.switch_to.frame(second)
    assert at(browser) == 1 and "exp" in one(browser, "#picture").text
    browser.switch_to.default_content()


def test_a_name_that_looks_like_markup_is_shown_as_it_is(browser, tmp_path):
    name = "</script><img src=x onerror=alert(1)>"
    x = ta.tensor([1.0, 2.0], requires_grad=True, name=name)
    with ta.scope(name):
        loss = ta.sum(ta.exp(x) * x)
    viz.step(loss, title=name).save(tmp_path / "page.html")
    opened(browser, tmp_path / "page.html")
    assert one(browser, "h1").text == name and name in one(browser, "#say").text
    one(browser, "#last").click()
    assert name in one(browser, "#tables").text and not browser.find_elements(By.TAG_NAME, "img")


# The page of attention weights ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def weights_page(tmp_path_factory):
    rng = np.random.default_rng(0)
    raw = rng.normal(size=(2, 4, 4))
    soft = np.exp(raw) / np.exp(raw).sum(axis=-1, keepdims=True)
    variants = {"softmax": soft, "relu": np.maximum(raw, 0)}
    path = tmp_path_factory.mktemp("weights") / "attention.html"
    viz.attention_page(variants, "I saw a saw".split()).save(path)
    return path


def test_pointing_at_a_token_shows_its_row_in_every_table(browser, weights_page):
    opened(browser, weights_page)
    row = browser.find_elements(By.CSS_SELECTOR, "tbody tr")[1]
    ActionChains(browser).move_to_element(row).perform()
    assert len(browser.find_elements(By.CSS_SELECTOR, "tr.on")) == 4
    assert "'saw' (2) looks most at" in one(browser, "figure p").text
    browser.execute_script("document.querySelector('tbody th').focus()")
    ActionChains(browser).send_keys(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ENTER).perform()
    assert "'a' (3) looks most at" in one(browser, "figure p").text


def test_heads_and_variants_are_chosen_and_the_language_switched(browser, weights_page):
    opened(browser, weights_page)
    figures = "return [...document.querySelectorAll('figure')].filter(f => f.offsetParent !== null).length"
    assert browser.execute_script(figures) == 4
    Select(one(browser, "#variant")).select_by_value("relu")
    assert browser.execute_script(figures) == 2
    Select(one(browser, "#head")).select_by_value("2")
    assert browser.execute_script(figures) == 1
    one(browser, "#language").click()
    assert one(browser, "html").get_attribute("lang") == "zh"
    shown = [f.text for f in browser.find_elements(By.TAG_NAME, "figcaption") if f.is_displayed()]
    assert shown == ["relu, 头 2"]


@pytest.mark.parametrize("size", [NARROW, WIDE], ids=["narrow", "wide"])
def test_the_weights_fit_the_screen(browser, weights_page, size):
    emulate(browser, *size, scheme="dark")
    opened(browser, weights_page)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= size[0]
    if folder := os.environ.get("TINYATTN_SCREENSHOTS"):
        browser.save_screenshot(os.path.join(folder, f"attention-{size[0]}.png"))
