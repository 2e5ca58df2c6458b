"""Walking through the shop, and what is seen there."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandboxgym.sandboxes.webshop.addresses import address_of, view_at
from sandboxgym.sandboxes.webshop.catalogue import ListedCatalogue
from sandboxgym.sandboxes.webshop.markup import as_html
from sandboxgym.sandboxes.webshop.pages import INDEX, Element, Page, View
from sandboxgym.sandboxes.webshop.session import admissible_actions
from sandboxgym.sandboxes.webshop.shop import Shop
from sandboxgym.sandboxes.webshop.texts import as_rich_text, as_text
from tests.sandboxes.webshop.small_shop import product, session


def seen(customer):
    return as_text(customer.page).split(" [SEP] ")


def walked(*actions, **kwargs):
    customer = session(**kwargs)
    for action in actions:
        assert customer.act(action), action
    return customer


HEAD = ["Instruction:", "red loafers", "Back to Search"]
TO_LOAFERS = ("search[leather]", "click[loafers]")


def test_the_first_page():
    assert seen(session()) == ["WebShop", "Instruction:", "red loafers", "Search"]
    assert list(session().page.clickables()) == ["search"]


def test_results():
    customer = walked("search[LAMP shade]")
    assert customer.view == View("results", "lamp shade", 1)
    assert seen(customer) == [
        *HEAD, "Page 1 (Total results: 1)", "Next >", "LAMP", "A <b>lamp</b> & a shade", "$20.0"
    ]  # fmt: skip
    assert list(customer.page.clickables()) == ["back to search", "next >", "lamp"]


def test_a_product_and_its_options():
    customer = walked(*TO_LOAFERS)
    assert seen(customer) == [
        *HEAD, "< Prev", "size", "8", "8.5", "color", "red", "dark blue", "Red leather loafers",
        "Price: $15.0 to $30.0", "Rating: N.A.", "Description", "Features", "Reviews", "Buy Now",
    ]  # fmt: skip
    assert list(customer.page.clickables())[-4:] == ["8", "8.5", "red", "dark blue"]


@pytest.mark.parametrize(
    ("page", "content"),
    [
        ("description", ["Made by hand."]),
        ("features", ["Rubber sole", "Easy to clean"]),
        ("reviews", []),
    ],
)
def test_sub_pages_keep_the_options(page, content):
    customer = walked(*TO_LOAFERS, "click[red]", f"click[{page}]")
    assert seen(customer) == [*HEAD, "< Prev", *content]
    customer.act("click[< prev]")
    assert customer.view.page == "item"
    assert customer.view.options == (("color", "red"),)


def test_a_text_of_nothing_but_space_is_empty_and_of_line_breaks_nothing():
    assert seen(walked("search[lamp]", "click[lamp]", "click[features]"))[4:] == ["bright", ""]
    assert seen(walked("search[lamp]", "click[lamp]", "click[description]"))[4:] == [""]


def test_back_to_the_results_forgets_the_options():
    customer = walked(*TO_LOAFERS, "click[red]", "click[< prev]")
    assert customer.view == View("results", "leather", 1)
    customer.act("click[loafers]")
    assert customer.view.options == ()


def test_back_to_search_forgets_everything():
    customer = walked(*TO_LOAFERS, "click[red]", "click[back to search]")
    assert customer.view == INDEX
    assert customer.visited == ()


def test_results_go_on_past_the_end():
    customer = walked("search[leather]", "click[next >]", "click[next >]")
    assert seen(customer)[3:] == ["Page 3 (Total results: 1)", "< Prev", "Next >"]
    customer.act("click[< prev]")
    customer.act("click[< prev]")
    assert not customer.act("click[< prev]")
    assert customer.view.number == 1


def test_ten_products_a_page_and_fifty_at_most():
    shop = Shop(ListedCatalogue(product(f"P{i:02}", "same") for i in range(60)))
    customer = session(shop=shop)
    customer.act("search[same]")
    for page in range(1, 7):
        assert f"Page {page} (Total results: 50)" in seen(customer)
        assert sum(e.kind == "asin" for e in customer.page.elements) == (10 if page < 6 else 0)
        customer.act("click[next >]")


def test_a_search_works_on_every_page():
    for actions in ([], ["search[boots]"], TO_LOAFERS, [*TO_LOAFERS, "click[features]"]):
        assert walked(*actions).act("search[lamp]")


@pytest.mark.parametrize(
    "action",
    ["", "buy", "click", "click[]", "search[]", "click[search]", "click[nothing]", "look[red]",
     "Click[loafers]", "click(loafers)", "click[loafers\n]", "search[a\nb]", "click[next >", "[x]",
     "click[boots]", "search[" + "x" * 2001 + "]"],
)  # fmt: skip
def test_anything_else_changes_nothing(action):
    customer = walked("search[leather]")
    before = customer.get_state()
    assert not customer.act(action)
    assert customer.get_state() == before


def test_what_stands_around_an_action():
    customer = walked("search[leather]")
    assert not customer.act("please click[loafers]")
    assert customer.act("click[LOAFERS] please")


def test_words_that_meant_something_in_the_original_are_words():
    for text in ("<r>", "<a>", "<q> shoes", "<c> fashion"):
        customer = walked(f"search[{text}]")
        assert customer.view.keywords == text
    assert "Page 1 (Total results: 0)" in seen(walked("search[<q> shoes]"))


TRAPS = product(
    "TRAPS",
    "Traps",
    options={
        "one": ("same", "buy now", "search", "next >"),
        "two": ("same", "a]b[c", "\U0001f338"),
    },
)


def test_options_that_are_called_alike_or_like_buttons():
    customer = session(shop=Shop(ListedCatalogue([TRAPS])))
    assert customer.act("search[traps]")
    assert customer.act("click[traps]")
    assert list(customer.page.clickables()) == [
        "back to search", "< prev", "description", "features", "reviews", "buy now", "same",
        "search", "next >", "a]b[c", "\U0001f338",
    ]  # fmt: skip
    assert not customer.act("click[search]")
    assert customer.act("click[next >]")
    assert customer.act("click[same]")
    assert dict(customer.view.options) == {"one": "next >", "two": "same"}
    assert customer.act("click[buy now]")
    assert customer.done


def test_admissible_actions_all_do_something():
    shop = Shop(ListedCatalogue([TRAPS]))
    customer = session(shop=shop)
    assert admissible_actions(customer) == ["search[red loafers]"]
    for start in ([], ["search[traps]"], ["search[traps]", "click[traps]"]):
        here = walked(*start, shop=shop)
        for action in admissible_actions(here):
            assert walked(*start, shop=shop).act(action), action
    assert "click[a]b[c]" not in admissible_actions(walked(*start, shop=shop))


def test_after_a_purchase_nothing_is_possible():
    customer = walked(*TO_LOAFERS, "click[buy now]")
    assert customer.done
    assert admissible_actions(customer) == []
    assert not customer.act("search[red]")
    assert not customer.go(INDEX)
    assert seen(customer)[0] == "Thank you for shopping with us!"


def test_the_receipt_has_options_as_scripts_may_read_them():
    shop = Shop(ListedCatalogue([product("P", "x", options={"z": ("</script>",), "a": ("é'",)})]))
    customer = walked(
        "search[x]", "click[p]", "click[</script>]", "click[é']", "click[buy now]", shop=shop
    )
    receipt = r'{"a": "\u00e9\u0027", "z": "\u003c | script\u003e"}'.replace(" | ", "/")
    assert receipt in seen(customer)


@pytest.mark.parametrize(
    "view",
    [
        View("item", "x", 1, "NOWHERE"),
        View("done", "x", 1, "LOAFERS", (("color", "green"),)),
        View("done", "x", 1, "LOAFERS", (("red", "red"),)),
        View("results", "x", 1, "", (("color", "red"),)),
        View("results", "x" * 2001),
    ],
)
def test_an_address_cannot_make_up_what_the_shop_does_not_have(view):
    customer = session()
    assert not customer.go(view)
    assert customer.view == INDEX


def test_an_address_can_lead_straight_to_a_product():
    customer = session()
    assert customer.go(View("item", "", 1, "LOAFERS", (("color", "red"),)))
    assert customer.act("click[8]")
    assert customer.act("click[buy now]")
    assert customer.reward.total == 1.0


def test_a_state_puts_another_customer_there():
    for actions in ([], TO_LOAFERS, [*TO_LOAFERS, "click[8]", "click[red]", "click[buy now]"]):
        there, here = walked(*actions), walked("search[boots]", "click[boots]")
        here.set_state(there.get_state())
        assert here.get_state() == there.get_state()
        assert here.page == there.page
        assert here.reward == there.reward
        assert here.visited == there.visited


def test_rich_text_marks_what_was_clicked():
    customer = walked(*TO_LOAFERS, "click[red]")
    lines = as_rich_text(customer.page, customer.visited).split("\n")
    assert lines[0] == "You have clicked red."
    assert "[button] Back to Search [button_]" in lines
    assert "  [clicked button] red [clicked button_]" in lines
    assert "  [button] dark blue [button_]" in lines
    customer.act("click[< prev]")
    rich = as_rich_text(customer.page, customer.visited)
    assert "\n\n[clicked button] LOAFERS [clicked button_]\n" in rich
    assert "\n\n[button] LOAFERS [button_]\n" in as_rich_text(customer.page, ())


class Texts(HTMLParser):
    def __init__(self, document):
        super().__init__()
        self.texts, self.tags = [], []
        self.feed(document)

    def handle_data(self, data):
        if data.strip() or "\n" not in data:
            self.texts.append(data.strip())

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))


@pytest.mark.parametrize(
    "actions",
    [
        [],
        ["search[lamp]"],
        TO_LOAFERS,
        [*TO_LOAFERS, "click[features]"],
        ["search[lamp]", "click[lamp]", "click[features]"],
        [*TO_LOAFERS, "click[buy now]"],
    ],
)
def test_html_says_what_text_says(actions):
    customer = walked(*actions)
    assert Texts(as_html(customer.page)).texts == seen(customer)


def test_html_has_what_parsers_of_the_original_look_for():
    first = Texts(as_html(session().page)).tags
    assert any(attrs.get("id") == "search_input" for _, attrs in first)
    results = Texts(as_html(walked("search[leather]").page)).tags
    assert ("a", {"class": "product-link", "href": "/item/LOAFERS?q=leather&page=1"}) in results
    item = Texts(as_html(walked(*TO_LOAFERS, "click[red]").page)).tags
    radios = [attrs for tag, attrs in item if tag == "input"]
    assert [(r["name"], r["value"], "checked" in r) for r in radios] == [
        ("size", "8", False), ("size", "8.5", False), ("color", "red", True),
        ("color", "dark blue", False),
    ]  # fmt: skip


texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20)
kinds = st.sampled_from(["title", "option", "option_name", "asin", "button", "feature", "receipt"])


@settings(deadline=None)
@given(st.lists(st.tuples(kinds, texts), max_size=5))
def test_html_lets_no_text_become_a_tag(pieces):
    safe = View("item", "x", 1, "P")
    elements = tuple(Element(kind, text, safe) for kind, text in pieces)
    tags = {tag for tag, _ in Texts(as_html(Page(safe, elements))).tags}
    assert tags <= {"html", "body", "h3", "h4", "li", "p", "a", "button", "label", "input"}
    attributes = [a for _, attrs in Texts(as_html(Page(safe, elements))).tags for a in attrs]
    assert set(attributes) <= {"class", "href", "type", "name", "value", "data-url", "checked"}


pages = st.sampled_from(["item", "description", "features", "reviews", "done"])
words = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
pairs = st.dictionaries(words, words, max_size=3).map(lambda d: tuple(d.items()))
numbers = st.integers(1, 10_000)
views = st.one_of(
    st.just(INDEX),
    st.builds(View, st.just("results"), words, numbers),
    st.builds(View, pages, words, numbers, words.filter(bool), pairs),
)


@settings(deadline=None)
@given(views)
def test_an_address_says_where_a_customer_is(view):
    assert view_at(address_of(view)) == view
    assert view_at("http://shop.test" + address_of(view)) == view


@pytest.mark.parametrize(
    "address",
    ["/nowhere", "/item", "/item/", "/results/x", "/index/x", "/item/P?page=0", "/item/P?page=x",
     "/item/P?page=99999999", "/item/P?options=1", "/item/P?options=[1]", "/item/P?options={",
     "/item/P?options=" + "[" * 15_000, "/item/P?q=" + "x" * 100_000, "http://[/"],
)  # fmt: skip
def test_addresses_that_lead_nowhere(address):
    assert view_at(address) is None
