"""The shop as a site, without a browser: what is asked for, what is answered."""

from html.parser import HTMLParser
from io import BytesIO

import pytest

from sandboxgym.sandboxes.webshop.addresses import address_of
from sandboxgym.sandboxes.webshop.drawings import drawing
from sandboxgym.sandboxes.webshop.pages import View
from sandboxgym.sandboxes.webshop.shop import Shop
from sandboxgym.sandboxes.webshop.site import ShopSite
from sandboxgym.sandboxes.webshop.storefront import id_of
from sandboxgym.sandboxes.webshop.texts import as_text, joined
from tests.sandboxes.webshop import small_shop

_VOID = {"input", "meta", "path", "circle", "ellipse", "rect"}


class Document(HTMLParser):
    """The texts of a document's body, and its elements with ids; refuses tags that do not match."""

    def __init__(self, source):
        super().__init__()
        self.texts, self.ids, self.tags = [], {}, set()
        self._open = []
        self.feed(source)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        given = dict(attrs)
        if "id" in given:
            self.ids.setdefault(given["id"], given)
        if tag not in _VOID:
            self._open.append(tag)

    def handle_endtag(self, tag):
        if tag not in _VOID:
            assert self._open.pop() == tag

    def handle_data(self, data):
        if "body" in self._open:
            self.texts.append(data)


class Visitor:
    """Asks the site, and follows redirects as browsers do."""

    def __init__(self):
        shop = Shop(small_shop.CATALOGUE)
        self.site = ShopSite(shop, lambda goal: small_shop.session(shop=shop))
        self.status = ""
        self.headers = {}

    def ask(self, address, method="GET"):
        path, _, query = address.partition("?")
        environ = {"REQUEST_METHOD": method, "PATH_INFO": path, "QUERY_STRING": query}
        environ["wsgi.input"] = BytesIO()

        def start(status, headers):
            self.status, self.headers = status, dict(headers)

        body = b"".join(self.site(environ, start)).decode()
        if "Location" in self.headers:
            assert self.status.startswith("303")
            return self.ask(self.headers["Location"])
        return body

    def see(self, view, method="GET"):
        return Document(self.ask(address_of(view), method))


@pytest.fixture
def visitor():
    return Visitor()


LOAFERS = View("item", "loafers", 1, "LOAFERS")
VIEWS = (
    View(),
    View("results", "shoes lamp boots loafers"),
    View("results", "shoes", 7),
    LOAFERS,
    LOAFERS.choosing("color", "dark blue"),
    LOAFERS.at("description"),
    LOAFERS.at("features"),
    LOAFERS.at("reviews"),
    View("item", "lamp", 1, "LAMP"),
    View("description", "lamp", 1, "LAMP"),
    View("features", "lamp", 1, "LAMP"),
)


@pytest.mark.parametrize("view", VIEWS, ids=address_of)
def test_a_page_says_what_text_mode_says_in_the_same_order(visitor, view):
    document = visitor.see(view)
    customer = small_shop.session()
    assert customer.go(view)
    assert visitor.status == "200 OK"
    assert joined(document.texts) == as_text(customer.page)


@pytest.mark.parametrize("view", VIEWS, ids=address_of)
def test_every_clickable_is_an_element_that_leads_there(visitor, view):
    document = visitor.see(view)
    links = [e.link for e in visitor.site.session.page.clickables().values() if e.link]
    assert all(id_of(link) in document.ids for link in links)
    for link in links:
        element = document.ids[id_of(link)]
        assert element.get("href", address_of(link)) == address_of(link)
    assert document.ids["search"]["name"] == "q"
    assert "script" not in document.tags


def test_a_search_is_in_lower_case_as_in_text_mode(visitor):
    visitor.ask("/results?q=Red+LOAFERS")
    assert visitor.site.session.view == View("results", "red loafers")


def test_a_search_for_nothing_leads_to_the_first_page(visitor):
    visitor.ask("/results?q=")
    assert visitor.site.session.view == View()


def test_a_purchase_is_a_post_and_ends_the_visit_with_its_receipt(visitor):
    chosen = LOAFERS.choosing("size", "8").choosing("color", "red")
    document = visitor.see(chosen.at("done"), "POST")
    customer = small_shop.session()
    customer.go(chosen.at("done"))
    assert visitor.site.session.reward == customer.reward
    assert customer.reward.total == 1.0
    assert joined(document.texts) == as_text(customer.page)
    assert visitor.see(View()).texts == document.texts  # there is nowhere to go
    assert visitor.see(LOAFERS.at("done"), "POST").texts == document.texts
    assert visitor.site.session.reward == customer.reward


def test_looking_at_the_address_of_a_purchase_buys_nothing(visitor):
    visitor.see(LOAFERS.at("done"))
    assert visitor.site.session.view == LOAFERS
    assert not visitor.site.session.done


@pytest.mark.parametrize(
    "address",
    [
        "/nowhere",
        "/item/NOTHING",
        "/item",
        "/style.css",
        '/item/LOAFERS?options=[["color","green"]]',
        '/item/LOAFERS?options=[["material","red"]]',
        "/results?q=" + "x" * 3000,
        "/results?q=shoes&page=0",
        "/../etc/passwd",
    ],
)
def test_what_the_shop_does_not_have_is_not_found_and_changes_nothing(visitor, address):
    before = visitor.site.get_state()
    visitor.ask(address)
    assert visitor.status == "404 Not Found"
    assert visitor.site.get_state() == before


def test_nothing_of_a_product_becomes_markup(visitor):
    source = visitor.ask("/item/LAMP")
    assert "A &lt;b&gt;lamp&lt;/b&gt; &amp; a shade" in source
    assert "A <b>" not in source
    assert "b" not in Document(source).tags


def test_pages_are_not_kept_by_the_browser_and_may_load_nothing(visitor):
    visitor.ask("/")
    assert visitor.headers["Cache-Control"] == "no-store"
    assert "default-src 'none'" in visitor.headers["Content-Security-Policy"]


def test_a_state_is_put_back_exactly(visitor):
    chosen = LOAFERS.choosing("size", "8")
    visitor.see(chosen)
    before = visitor.site.get_state()
    visitor.see(chosen.at("done"), "POST")
    after = visitor.site.get_state()
    visitor.site.set_state(before)
    assert visitor.site.get_state() == before
    assert not visitor.site.session.done
    other = Visitor()
    other.site.set_state(after)
    assert other.site.get_state() == after
    assert other.site.session.reward.total == pytest.approx(0.8)


def test_drawings_show_the_thing_in_its_colour():
    lamp = drawing("A", "table lamps", "Oak Lamp with Shelf")
    assert lamp == drawing("A", "lamps", "Oak lamp and shelf")
    assert lamp != drawing("A", "chairs", "Oak Lamp with Shelf")
    assert drawing("A", "gadgets", "Garden Hose") == drawing("A", "things", "Garden Gnome")
    assert "#2f4470" in drawing("A", "lamps", "Oak Lamp", ["navy blue", "large"])
    assert drawing("A", "lamps", "Lamp") != drawing("B", "lamps", "Lamp")
