import pytest

from sandboxgym.core.errors import DataNotFoundError, InvalidOptionsError
from sandboxgym.sandboxes.browser.miniwob import tasks
from sandboxgym.sandboxes.browser.miniwob.env import MiniWoBEnv
from sandboxgym.sandboxes.browser.miniwob.policy import Element, elements
from sandboxgym.sandboxes.browser.miniwob.site import MiniWoBSite
from sandboxgym.sandboxes.browser.sites import ORIGIN, Request


def test_every_page_of_the_wheel_is_a_task() -> None:
    names = tasks.names()
    assert len(names) == len(set(names)) == 134
    assert {"click-test", "chase-circle", "unicode-test", "flight.AA"} <= set(names)
    for name in names:
        assert (tasks.folder() / tasks.task(name).page[1:]).is_file()


def test_every_environment_of_miniwob_has_a_task() -> None:
    import gymnasium as gym
    import miniwob  # noqa: F401 - registers its environments

    registered = {spec.name for spec in gym.registry.values() if spec.namespace == "miniwob"}
    assert len(registered) >= 125
    ours = {name.lower().replace("flight.", "") for name in tasks.names()}
    theirs = {name.lower().replace("flight.", "") for name in registered}
    assert theirs <= ours


@pytest.mark.parametrize("name", ["no-such-task", "../core/core", "flight.Nowhere", ""])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(DataNotFoundError, match="names"):
        MiniWoBEnv(name)


def test_other_modes_are_refused() -> None:
    with pytest.raises(ValueError, match="mode='eval': choose among train, test"):
        MiniWoBEnv("click-test", mode="eval")


def test_reset_takes_no_options() -> None:
    with pytest.raises(InvalidOptionsError):
        MiniWoBEnv("click-test").reset(options={"task": "click-link"})


def test_declared_tasks_exist_and_say_why() -> None:
    assert set(tasks.INEXACT) <= set(tasks.names())
    assert all(tasks.INEXACT.values())


def test_a_declared_task_is_not_called_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    env = MiniWoBEnv("stock-market")
    assert env.fidelity.exact
    monkeypatch.setitem(tasks.INEXACT, "stock-market", "for the sake of this test")
    assert not env.fidelity.exact
    assert MiniWoBEnv("click-test").fidelity.exact


def test_the_fields_are_those_of_miniwob() -> None:
    task = tasks.task("email-inbox-forward")
    found = task.fields("Find the email by Ann and forward that email to Bo.")
    assert found == (("by", "Ann"), ("task", "forward"), ("to", "Bo"))
    assert task.fields("something else") == ()
    assert tasks.task("button-delay").fields("Click button ONE") == ()


def test_the_site_serves_the_page_of_a_task_once_and_nothing_outside_of_the_wheel() -> None:
    site = MiniWoBSite(tasks.task("click-test"), "train")

    def ask(path: str) -> int:
        return site.respond(Request("GET", ORIGIN + path, {})).status

    before = site.get_state()
    assert ask("/miniwob/click-test.html") == 200
    assert ask("/miniwob/click-test.html?again") == 204
    assert ask("/core/core.js") == 200
    assert ask("/core/../../fields.py") == ask("/../fields.py") == ask("/") == 404
    site.set_state(before)
    assert ask("/miniwob/click-test.html") == 200


def test_elements_are_read_from_a_tree() -> None:
    lines = (
        "RootWebArea 'Task'",
        '\t[1] button "it\'s", focused',
        "\t\t[12] textbox ''",
        "[3] generic",
    )
    assert elements("\n".join(lines)) == [
        Element("1", "button", "it's"),
        Element("12", "textbox", ""),
        Element("3", "generic", ""),
    ]
