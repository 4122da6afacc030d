"""The book in a real browser, opened from disk: it asks for nothing, formulas have a size, the stepper steps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import headless_chromium

from tinyattn.files import write_folder_whole
from tinyattn.learn.book import book

pytestmark = [pytest.mark.browser, pytest.mark.slow]

selenium = pytest.importorskip("selenium", reason="selenium is not installed")
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

PHONE, DESK = (360, 740), (1200, 900)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    yield from headless_chromium()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("book") / "书"
    write_folder_whole(folder, book(("en", "zh")), "book")
    return folder


@pytest.fixture(autouse=True)
def quiet(browser: Any) -> Iterator[None]:
    """No test leaves an error in the console, and no page asks for anything outside."""
    seen(browser, *DESK)
    yield
    assert [entry["message"] for entry in browser.get_log("browser")] == []
    made = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [one["params"]["request"]["url"] for one in made if one["method"] == "Network.requestWillBeSent"]
    assert [url for url in sent if not url.startswith(("file:", "data:", "about:"))] == []


def seen(browser: Any, width: int, height: int, scheme: str = "light") -> None:
    sizes = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", sizes)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def opened(browser: Any, page: Path) -> None:
    browser.get("about:blank")
    browser.get(page.as_uri())


def ask(browser: Any, script: str) -> Any:
    return browser.execute_script(f"return {script}")


def all_pages(site: Path) -> list[Path]:
    return sorted(site.rglob("*.html"))


def test_every_page_opens_in_silence_and_fits_a_phone(browser: Any, site: Path) -> None:
    seen(browser, *PHONE)
    wide = []
    for page in all_pages(site):
        opened(browser, page)
        ask(browser, "document.querySelectorAll('details').forEach(one => { one.open = true })")
        if ask(browser, "document.documentElement.scrollWidth") > PHONE[0]:
            wide.append(page.name)
        assert ask(browser, "document.querySelector('h1').getBoundingClientRect().height") > 10
    assert wide == []


def test_every_formula_has_a_size(browser: Any, site: Path) -> None:
    for stem in ("07_softmax", "zh/05_matmul", "06_sympy"):
        opened(browser, site / f"{stem}.html")
        ask(browser, "document.querySelectorAll('details').forEach(one => { one.open = true })")
        sizes = ask(
            browser,
            "[...document.querySelectorAll('math')].map(one => one.getBoundingClientRect())"
            ".map(box => [box.width, box.height])",
        )
        assert len(sizes) >= 8 and all(width > 4 and height > 6 for width, height in sizes)
    kinds = ask(browser, "[...document.querySelectorAll('msup')].map(one => one.constructor.name)")
    assert set(kinds) == {"MathMLElement"}  # read as mathematics, not as unknown words


def test_the_stepper_inside_steps_with_a_click_and_with_the_keyboard(browser: Any, site: Path) -> None:
    opened(browser, site / "14_attention_backward.html")
    frame = browser.find_element(By.TAG_NAME, "iframe")
    browser.execute_script("arguments[0].scrollIntoView()", frame)
    browser.switch_to.frame(frame)
    count = browser.find_element(By.ID, "count")
    assert count.text.startswith("1 /")
    browser.find_element(By.ID, "next").click()
    assert count.text.startswith("2 /")
    browser.find_element(By.TAG_NAME, "body").send_keys(Keys.ARROW_RIGHT)
    assert count.text.startswith("3 /")
    assert len(browser.find_elements(By.CSS_SELECTOR, "#picture .now")) == 1
    browser.switch_to.default_content()


def test_the_way_from_the_contents_through_all_lessons(browser: Any, site: Path) -> None:
    opened(browser, site / "index.html")
    browser.find_element(By.LINK_TEXT, "Slopes and finite differences").click()
    names = []
    while True:
        names.append(browser.current_url.rsplit("/", 1)[1])
        following = browser.find_elements(By.CSS_SELECTOR, "footer a[rel=next]")
        if not following:
            break
        following[0].click()
    assert names == [path.name for path in all_pages(site) if path.parent == site and path.name != "index.html"]
    browser.find_element(By.CSS_SELECTOR, "header a.language").click()
    assert browser.current_url.endswith("/zh/16_position.html") and ask(browser, "document.documentElement.lang")
    browser.find_element(By.CSS_SELECTOR, "header a.language").click()
    assert browser.current_url.endswith("/16_position.html") and "/zh/" not in browser.current_url


def test_an_answer_and_a_hint_open_with_the_keyboard(browser: Any, site: Path) -> None:
    opened(browser, site / "07_softmax.html")
    answer = browser.find_element(By.CSS_SELECTOR, "details.answer")
    printed = answer.find_element(By.TAG_NAME, "samp")
    assert not printed.is_displayed()
    answer.find_element(By.TAG_NAME, "summary").send_keys(Keys.ENTER)
    assert printed.is_displayed()


def test_the_first_tab_offers_to_skip_to_the_text(browser: Any, site: Path) -> None:
    opened(browser, site / "07_softmax.html")
    browser.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
    assert ask(browser, "document.activeElement.className") == "skip"
    assert ask(browser, "document.activeElement.getBoundingClientRect().top") >= 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_from_their_ground(browser: Any, site: Path, scheme: str) -> None:
    """Contrast of at least 4.5 to 1 for prose, links, code and its colours, output, and hints."""
    seen(browser, *DESK, scheme=scheme)
    opened(browser, site / "07_softmax.html")
    colours = browser.execute_script("""
        const ground = one => { for (; one; one = one.parentElement) {
            const colour = getComputedStyle(one).backgroundColor;
            if (colour !== 'rgba(0, 0, 0, 0)') return colour } return 'rgb(255, 255, 255)' };
        return ['p', 'a', '.code', '.keyword', '.string', '.number', '.comment', '.printed', '.predict p', 'summary',
            '.how', 'th', 'p code', 'math'].map(name => document.querySelector(name)).filter(one => one)
            .map(one => [one.className || one.tagName, getComputedStyle(one).color, ground(one)])""")
    assert len(colours) >= 12
    assert [one for one in colours if contrast(one[1], one[2]) < 4.5] == []


def contrast(a: str, b: str) -> float:
    lighter, darker = sorted((luminance(a), luminance(b)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    parts = [float(x) / 255 for x in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_contrast_is_measured_as_it_should_be() -> None:
    assert contrast("rgb(0, 0, 0)", "rgb(255, 255, 255)") == pytest.approx(21)
    assert contrast("rgb(119, 119, 119)", "rgb(255, 255, 255)") < 4.5
