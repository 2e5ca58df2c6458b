import pytest

from sandboxgym.sandboxes.browser.axtree import Bids, nodes_of, text_of
from sandboxgym.sandboxes.browser.env import BrowserEnv
from tests.sandboxes.browser.playing import bid_of, play
from tests.sandboxes.browser.site import TestSite


def raw(node_id, role, name="", *, children=(), backend=None, ignored=False, **properties):
    return {
        "nodeId": str(node_id),
        "backendDOMNodeId": node_id if backend is None else backend,
        "ignored": ignored,
        "role": {"value": role},
        "name": {"value": name},
        "properties": [{"name": k, "value": {"value": v}} for k, v in properties.items()],
        "childIds": [str(child) for child in children],
    }


def text(trees, owners=None):
    nodes = nodes_of(trees, owners or {}, "main")
    bids = Bids("document")
    bids.assign(nodes)
    return text_of(nodes, bids)


def test_what_has_no_meaning_gives_way_to_what_has():
    tree = [
        raw(1, "RootWebArea", "page", children=[2]),
        raw(2, "none", ignored=True, children=[3, 6]),
        raw(3, "generic", children=[4]),
        raw(4, "link", "go", children=[5], focused=True),
        raw(5, "StaticText", "go"),
        raw(6, "generic"),
    ]
    assert text({"main": tree}) == "RootWebArea 'page'\n\t[1] link 'go', focused\n\t[2] generic"


def test_frames_stand_where_their_owners_are():
    main = [raw(1, "RootWebArea", children=[2]), raw(2, "Iframe", "inner")]
    inner = [raw(9, "RootWebArea", "in", children=[10]), raw(10, "button", "b")]
    assert text({"main": main, "f": inner}, {2: "f"}).splitlines()[2:] == [
        "\t\tRootWebArea 'in'",
        "\t\t\t[2] button 'b'",
    ]


def test_ids_stay_with_their_nodes_and_are_not_given_twice():
    def page(*numbers):
        tree = [raw(1, "RootWebArea", children=numbers), *(raw(n, "button") for n in numbers)]
        return nodes_of({"main": tree}, {}, "main")

    bids = Bids("document")
    bids.assign(page(5, 6))
    assert bids.of == {5: "1", 6: "2"}
    bids.assign(page(7, 6))
    assert bids.of == {7: "3", 6: "2"}
    bids.assign(page(5))
    assert bids.of == {5: "4"}
    assert bids.backend_id("4") == 5
    assert bids.backend_id("2") is None


def test_ids_are_taken_over_by_the_order_of_the_tree():
    nodes = nodes_of({"main": [raw(1, "RootWebArea", children=[2]), raw(2, "button")]}, {}, "main")
    bids = Bids("document")
    bids.adopt(nodes, ["17"], 18)
    assert bids.as_list(nodes) == ["17"]
    with pytest.raises(ValueError, match="zip"):
        bids.adopt(nodes, ["17", "18"], 19)


def test_very_long_trees_are_cut():
    tree = [
        raw(1, "RootWebArea", children=[2, 3]),
        *(raw(n, "button", "b" * 600_000) for n in (2, 3)),
    ]
    lines = text({"main": tree}).splitlines()
    assert (len(lines), lines[-1]) == (3, "... and 1 more lines")


def test_real_pages_show_frames_shadow_roots_and_fields(browser):
    env = BrowserEnv(TestSite)
    try:
        obs, _ = env.reset(seed=1, options={"start": "/components"})
        assert obs["axtree"].count("button '0'") == 2  # one of them in a closed shadow root
        first = bid_of(obs, "button", "0")
        after = play(env, ["click button '0'"])
        assert f"[{first}] button '1', focused" in after["axtree"]
        frames = play(env, ["goto('/frames')"])["axtree"]
        assert frames.count("RootWebArea") == 5
        assert frames.count("textbox 'draft in a frame'") == 2
        fields = play(env, ["goto('/select')", "check checkbox 'agreed'"])["axtree"]
        assert "checkbox 'agreed', focused, checked='true'" in fields
        assert "option 'red', selected" in fields
    finally:
        env.close()
