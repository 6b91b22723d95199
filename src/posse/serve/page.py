"""The page to watch, as it is sent."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from posse.core.extras import extra

with extra("serve"):
    from starlette.responses import Response

# Nothing from elsewhere is loaded, run or sent to; styles are part of the page.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# The files of the page by their paths.
FILES = {
    "/": "page.html",
    **{f"/static/{name}": name for name in ("page.css", "page.js", "charts.js", "calls.js", "parts.js")},
}
KINDS = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
}


@cache
def content_of(name: str) -> bytes:
    """Return a file of the page by its name."""
    return files("posse.serve").joinpath("static", name).read_bytes()


def page(name: str) -> Response:
    """Return a file of the page as an answer."""
    headers = {
        "content-security-policy": POLICY,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "x-frame-options": "DENY",
        "cache-control": "no-cache",
    }
    return Response(content_of(name), 200, headers, KINDS[name.rsplit(".", 1)[1]])
