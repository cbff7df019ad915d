"""Checks every request before it is answered: its method, its Host header and its token."""

import hashlib
import hmac
import ipaddress
import socket
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# The charts' library makes an empty <style> and fills it by script; the hash is that of nothing.
NOTHING = "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
HEADERS = {
    "Content-Security-Policy": (
        f"default-src 'none'; script-src 'self'; style-src 'self' {NOTHING}; img-src 'self' data: blob:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}


class Safety:
    """Only reading, only under a name of this machine, and beyond it only with the token."""

    def __init__(self, app: ASGIApp, host: str, token: str | None) -> None:
        self.app, self.host, self.token = app, host.lower(), token
        # A name of its own: cookies know no ports, and another page may be served beside this one.
        self.cookie = "td3_" + hashlib.sha256((token or "").encode()).hexdigest()[:8]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                if "cache-control" not in headers:
                    headers["Cache-Control"] = "no-store"
            await send(message)

        answer = self._refusal(scope) or self.app
        await answer(scope, receive, send_safely)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if scope["method"] not in ("GET", "HEAD"):
            return refuse(405, "This page is only read: GET and HEAD.", {"Allow": "GET, HEAD"})
        if not self._known(headers.get("host", "")):
            return refuse(400, "The Host of this request is not this machine's name.")
        if self.token is None:
            return None
        query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if hmac.compare_digest(query.get("token", [""])[0].encode(), self.token.encode()):
            return self._with_cookie(scope, query)
        if hmac.compare_digest(cookie(headers, self.cookie).encode(), self.token.encode()):
            return None
        return refuse(403, "This page needs its token: open the address that td3 watch has printed.")

    def _with_cookie(self, scope: Scope, query: dict[str, list[str]]) -> Response:
        """The token goes from the address into a cookie, so that it is in no link that is shared."""
        rest = urlencode({name: values for name, values in query.items() if name != "token"}, doseq=True)
        path = "/" + scope["path"].lstrip("/\\")  # never another host's
        answer = RedirectResponse(f"{path}?{rest}" if rest else path, 303)
        # Not `strict`: a link that is followed from a mail or a chat would be answered with a refusal.
        answer.set_cookie(self.cookie, self.token or "", httponly=True, samesite="lax")
        return answer

    def _known(self, host: str) -> bool:
        """A page of another name that points to this machine may not read from it."""
        name, own = host_name(host).lower().removesuffix("."), socket.gethostname().lower()
        if self.token is None:
            return name == "localhost" or is_loopback(name)
        return name in ("localhost", self.host, own, f"{own}.local") or is_address(name)


def refuse(status: int, sentence: str, headers: dict[str, str] | None = None) -> Response:
    """Answers a request with a status and a sentence."""
    return JSONResponse({"problem": sentence}, status, headers)


def cookie(headers: Headers, name: str) -> str:
    """Returns the value of a cookie, or ''."""
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return ""
    return found.value if found else ""


def host_name(host: str) -> str:
    """Without the port: `[::1]:8000`, `localhost:8000`."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if ":" in host else host


def is_address(name: str) -> bool:
    """Returns whether the name is an IP address."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def is_loopback(name: str) -> bool:
    """Says whether a name is an address of this machine alone."""
    return is_address(name) and ipaddress.ip_address(name).is_loopback
