"""WebShop: one shop with two faces, text and real pages."""
