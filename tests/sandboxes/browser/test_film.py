import re

import pytest
from PIL import Image

from sandboxgym.sandboxes.browser.env import BrowserEnv
from sandboxgym.sandboxes.browser.film import Film
from tests.sandboxes.browser.playing import play
from tests.sandboxes.browser.site import TestSite


@pytest.fixture(scope="module")
def film(browser):
    env = BrowserEnv(TestSite)
    taken = Film()
    try:
        env.reset(seed=1, options={"start": "/canvas"})
        taken.shoot(env, "reset")
        play(env, ["click button 'a dot somewhere'"])
        taken.shoot(env, "click('4')", note="a <dot>")
    finally:
        env.close()
    return taken


def test_page_has_every_shot_and_needs_nothing_else(film, tmp_path):
    film.save(tmp_path / "film.html")
    page = (tmp_path / "film.html").read_text()
    assert page.count("<figure>") == 2
    assert "a &lt;dot&gt;" in page
    assert "https://site.test/canvas" in page
    assert set(re.findall(r'src="(.{15})', page)) == {"data:image/png;"}


@pytest.mark.parametrize("name", ["film.webp", "film.gif", "film.png"])
def test_moving_pictures_have_every_shot(film, tmp_path, name):
    film.save(tmp_path / name)
    with Image.open(tmp_path / name) as picture:
        assert (picture.n_frames, picture.size) == (2, (1280, 720))


def test_refuses_other_names_and_empty_films(film, tmp_path):
    with pytest.raises(ValueError, match=r"neither in \.html"):
        film.save(tmp_path / "film.mp4")
    with pytest.raises(ValueError, match="nothing was shot"):
        Film().save(tmp_path / "film.html")
