import pytest

from sandboxgym.sandboxes.browser.errors import PageHungError
from sandboxgym.sandboxes.browser.options import Options
from tests.sandboxes.browser.helpers import html

CONTROLS = {
    "list": "<select><option>red<option>green</select>",
    "calendar": '<input type="date">',
    "colours": '<input type="color">',
}
HEARD = """<script>
  const heard = [];
  for (const kind of ["keydown", "keypress", "keyup", "change", "input", "cancel"])
    addEventListener(kind, () => heard.push(kind), true);
</script>"""
LATER = """<button onclick="setTimeout(() => document.querySelector('select').showPicker(), 40)">
  show</button><select><option>red</select>"""
IN_FRAME = """<iframe id="frame" srcdoc="<body style='margin: 0'><select style='width: 90px'>
  <option>red</select>" style="position: absolute; left: 0; top: 0; border: 0"></iframe>"""
IN_CLOSED_ROOT = """<div></div><script>
  const root = document.querySelector("div").attachShadow({mode: "closed"});
  root.innerHTML = "<select style='position: absolute; left: 0; top: 0'><option>red</select>";
</script>"""


def picker_place(page):
    box = page.value(
        "JSON.stringify(document.querySelector('select, input').getBoundingClientRect())"
    )
    numbers = page.value(f"(b => [b.right - 12, b.top + b.height / 2])({box})")
    return numbers[0], numbers[1]


@pytest.mark.parametrize("control", CONTROLS)
def test_a_picker_closes_before_the_page_is_drawn_and_the_page_sees_nothing_of_it(drive, control):
    page = drive({"/": html(HEARD + CONTROLS[control])})
    page.open()
    page.click(*picker_place(page))
    assert page.value("document.activeElement === document.querySelector('select, input')")
    assert page.value("document.querySelector('select:open, input:open')") is None
    assert page.value("heard.length") == 0
    assert page.screenshot() == page.screenshot()


def test_frames_go_on_after_a_click_on_a_list(drive):
    counting = "<script>n = 0; (function f() { n++; requestAnimationFrame(f) })()</script>"
    page = drive({"/": html(CONTROLS["list"] + counting)})
    page.open()
    before = page.value("n")
    page.click(*picker_place(page))
    assert page.value("n") == before + 5


def test_a_picker_that_opens_later_or_in_a_frame_closes_too(drive):
    for content in (LATER, IN_FRAME):
        page = drive({"/": html(content)})
        page.open()
        page.click(*((20, 20) if content is LATER else (40, 10)))
        page.screenshot()


def test_a_page_that_cannot_be_drawn_is_hung_and_holds_up_nobody(drive):
    hung, other = (drive({"/": html(IN_CLOSED_ROOT)}, options=Options(wall_s=2)) for _ in range(2))
    hung.open()
    hung.click(10, 10)
    with pytest.raises(PageHungError, match="could not be drawn"):
        hung.screenshot()
    other.open()
    other.screenshot()
    hung.open()
    hung.screenshot()
