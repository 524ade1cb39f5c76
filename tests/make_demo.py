"""Writes the sessions that ship with the package for ``make demo``: two weeks in an invented web shop.

    python -m tests.make_demo

The shop's login tokens move from memory to localStorage, to a cookie, to a cookie with refresh tokens in
Postgres, and the cookie meets the bank's redirect; with other work in between. The files are committed
(pipeline/demo/home); ``tests/test_wires.py`` checks that they are what this script writes.
"""

import datetime
import shutil
import sys
from pathlib import Path

from tests.wires import Home, Session, agent, bash, edit, grep, read, read_missing, say, write

SHOP = "/home/dev/shop"
TARGET = Path(__file__).parents[1] / "pipeline" / "demo" / "home"
MINUTE = 60_000


def _at(day: int, hour: int, minute: int) -> int:
    """Milliseconds of a November day of 2026, UTC."""
    return int(datetime.datetime(2026, 11, day, hour, minute, tzinfo=datetime.UTC).timestamp() * 1000)


def _logged_out(home: Home) -> None:
    """9 November: the complaint, and the first decision."""
    wire = home.session(SHOP, at=_at(9, 10, 5), title="customers logged out after deploy").main
    wire.turn(
        "Customers complain that they are logged out whenever we deploy. Where do we keep the login token?",
        say(
            "Let me look at the auth module.",
            read(
                "shop/auth/store.py",
                "SESSIONS: dict[str, str] = {}\n\ndef save(token: str, user: str) -> None:\n"
                "    SESSIONS[token] = user",
            ),
        ),
        say(
            "Login tokens live in `SESSIONS`, a plain dict in `shop/auth/store.py`. Every deploy starts new "
            "processes with an empty dict, so everybody is logged out. There are three ways out:\n\n1. a "
            "signed token in the browser's localStorage: no state on the server\n2. Redis: one more service "
            "to run\n3. sticky deploys: hides the problem"
        ),
    )
    wire.turn(
        "1, we don't want another service for this",
        say(
            "Then a signed JWT it is.",
            edit("shop/auth/store.py", "SESSIONS: dict[str, str] = {}", 'ALGORITHM = "HS256"'),
            write(
                "web/src/token.ts",
                "export const keep = (t: string) => localStorage.setItem('shop_token', t)\n",
            ),
        ),
        say("", bash("pytest tests/auth -q", "6 passed in 0.84s", description="Run the auth tests")),
        say(
            "Decided: the login token is a signed JWT in localStorage, valid for 30 days, because it needs "
            "no state on the server. `shop/auth/store.py` now signs and verifies; `web/src/token.ts` keeps "
            "the token. All 6 auth tests pass."
        ),
        gap=4 * MINUTE,
    )
    wire.turn(
        "commit it",
        say(
            "",
            bash(
                'git commit -am "Sign login tokens, keep them in localStorage"',
                "[main 3fa91c2] Sign login tokens",
            ),
        ),
        say("Committed as 3fa91c2."),
        gap=2 * MINUTE,
    )
    wire.turn(
        "The cart badge shows 0 until the page is reloaded. Fix that too",
        say(
            "The badge reads the cart before it is fetched.",
            edit("web/src/badge.ts", "cart.size", "cart.value?.size ?? 0"),
        ),
        say("Fixed: the cart badge in `web/src/badge.ts` now waits for the cart and updates by itself."),
        gap=11 * MINUTE,
    )


def _review(home: Home) -> None:
    """11 November, in Chinese: the security review turns the decision around."""
    wire = home.session(SHOP, at=_at(11, 14, 20), title="安全评审：登录令牌").main
    wire.turn(
        "安全评审说 localStorage 里的登录令牌会被 XSS 读走，这是真的吗？怎么改？",
        say(
            "我先看看前端怎么用令牌。",
            grep("shop_token", "web/src", "web/src/token.ts:1:localStorage.setItem('shop_token', t)"),
        ),
        say(
            "是真的：任何注入页面的脚本都能读 localStorage，而 `web/src/token.ts` 正把令牌放在那里。\n\n"
            "建议改用 HttpOnly cookie：脚本读不到，浏览器自动带上。代价是要防 CSRF。"
        ),
    )
    wire.turn(
        "那就改成 HttpOnly cookie，SameSite 用 Lax",
        say(
            "好的，现在改。",
            edit(
                "shop/auth/login.py",
                "return {'token': token}",
                "response.set_cookie('shop_token', token, httponly=True, samesite='lax')",
            ),
            bash(
                "pytest tests/auth -q",
                "FAILED tests/auth/test_login.py::test_post - assert 403 == 200\n"
                "E   CsrfError: CSRF token missing\n1 failed, 5 passed in 0.91s",
                code=1,
                description="跑认证测试",
            ),
        ),
        say(
            "决定：登录令牌改存 HttpOnly cookie（SameSite=Lax），不再放 localStorage，因为脚本读不到 cookie。"
            "`test_login.py::test_post` 还失败：CSRF token missing。"
        ),
        gap=6 * MINUTE,
    )
    wire.turn(
        "还是报错",
        say(
            "表单没有带 CSRF 头。",
            read(
                "web/src/api.ts", "export const post = (u: string, b: unknown) => fetch(u, {method: 'POST'})"
            ),
            edit("web/src/api.ts", "{method: 'POST'}", "{method: 'POST', headers: csrf()}"),
        ),
        say("", bash("pytest tests/auth -q", "6 passed in 0.88s", description="再跑一次")),
        say("修好了：`web/src/api.ts` 的 POST 现在都带 CSRF 头，6 个认证测试全部通过。"),
        gap=5 * MINUTE,
    )
    wire.turn(
        "顺便把 README 里的开发端口从 8080 改成 8081",
        say("", edit("README.md", "http://localhost:8080", "http://localhost:8081")),
        say("README.md 里的开发端口已改成 8081。"),
        gap=3 * MINUTE,
    )
    wire.turn(
        "提交吧",
        say(
            "",
            bash(
                'git commit -am "登录令牌改用 HttpOnly cookie"', "[main 81d0b7e] 登录令牌改用 HttpOnly cookie"
            ),
        ),
        say("已提交：81d0b7e。"),
        gap=2 * MINUTE,
    )


def _refresh(home: Home) -> Session:
    """13 November: short-lived tokens; one plan is undone; a sub-agent looks around."""
    session = home.session(SHOP, at=_at(13, 9, 40), title="refresh tokens")
    wire = session.main
    look = agent(
        "List every place that reads or writes the login cookie `shop_token`.",
        say(
            "",
            grep(
                "shop_token",
                "shop",
                "shop/auth/login.py:14:set_cookie('shop_token'\nshop/auth/guard.py:9:cookies['shop_token']",
            ),
        ),
        say(
            "Two places: `shop/auth/login.py` line 14 sets the cookie, `shop/auth/guard.py` line 9 reads "
            "it. Nothing else."
        ),
        description="Find uses of the cookie",
    )
    wire.turn(
        (
            "A stolen cookie is good for 30 days. Can we make it shorter without annoying people? Use a "
            "subagent to see who reads it"
        ),
        say("A sub-agent looks for the readers.", look),
        say(
            "Only `login.py` and `guard.py` touch the cookie. So: let the access token live for 15 minutes "
            "and renew it with a refresh token that can be revoked. The question is where refresh tokens "
            "are kept."
        ),
    )
    wire.turn(
        "Put them into Redis",
        say(
            "",
            write("shop/auth/refresh.py", "import redis\n\nPOOL = redis.Redis()\n"),
            bash(
                "pytest tests/auth -q",
                "redis.exceptions.ConnectionError: Error 111 connecting to localhost:6379",
                code=1,
            ),
        ),
        say(
            "`shop/auth/refresh.py` keeps refresh tokens in Redis, but the tests fail: no Redis runs on "
            "localhost:6379."
        ),
        gap=7 * MINUTE,
    )
    wire.undo(1, gap=MINUTE)
    wire.turn(
        "No Redis. Keep refresh tokens in Postgres, hashed, and rotate them at each use",
        say(
            "A table, then.",
            write("shop/auth/refresh.py", "TABLE = 'refresh_tokens'\n\ndef rotate(token: str) -> str: ...\n"),
            write(
                "migrations/0042_refresh_tokens.sql",
                "create table refresh_tokens (hash bytea primary key, user_id int, expires timestamptz);\n",
            ),
        ),
        say(
            "", bash("make migrate && pytest tests/auth -q", "applied 0042_refresh_tokens\n9 passed in 1.32s")
        ),
        say(
            "We keep refresh tokens hashed in the Postgres table `refresh_tokens` and rotate them at each "
            "use; the access token in the cookie now lives for 15 minutes instead of 30 days. We chose "
            "Postgres over Redis because it is there already. A token that is used twice revokes its whole "
            "family. 9 auth tests pass."
        ),
        steers={1: "expire them after 60 days"},
        gap=2 * MINUTE,
    )
    return session


def _search(home: Home) -> None:
    """16 November: another subject that also says “token”."""
    wire = home.session(SHOP, at=_at(16, 11, 0), title="product search").main
    wire.turn(
        "Searching the catalogue for “t-shirt” finds nothing. Does the tokenizer drop the hyphen?",
        say(
            "",
            read(
                "shop/catalogue/search.py",
                "def tokens(text: str) -> list[str]:\n    return text.lower().split()",
            ),
        ),
        say(
            "`tokens()` splits on blanks only, so “t-shirt” is one token, while the index holds “t” and "
            "“shirt”. Queries and index must be split by the same function."
        ),
    )
    wire.turn(
        "Use the index's one for both",
        say(
            "",
            edit("shop/catalogue/search.py", "return text.lower().split()", "return split_words(text)"),
            bash("pytest tests/catalogue -q", "11 passed in 0.60s"),
        ),
        say(
            "Search and index now share `split_words` in `shop/catalogue/search.py`; “t-shirt” finds 14 "
            "products."
        ),
        gap=5 * MINUTE,
    )


def _redirect(home: Home) -> None:
    """18 November: production shows what the cookie's rule costs; the decision is refined."""
    wire = home.session(SHOP, at=_at(18, 16, 30), title="logged out after 3-D Secure").main
    wire.turn(
        "Since Friday customers come back from the bank's 3-D Secure page logged out. 为什么？",
        say(
            "",
            read_missing("logs/checkout.log"),
            bash(
                "grep -c 'no shop_token' /var/log/shop/checkout.log", "212", description="Count lost cookies"
            ),
        ),
        say(
            "The bank returns with a cross-site POST, and a SameSite=Lax cookie is not sent with it: 212 "
            "returns since Friday had no `shop_token`. Either the cookie becomes SameSite=None, or the "
            "return must not need it."
        ),
    )
    wire.turn(
        "SameSite=None weakens everything we did for the review. Something else?",
        say(
            "Yes: give the bank a one-time return code in the return URL. `/checkout/return` exchanges it "
            "for the order, then redirects to a page of ours, where the cookie is sent again.",
        ),
        gap=8 * MINUTE,
    )
    wire.turn(
        "就用一次性 return code，cookie 保持 Lax",
        say(
            "",
            write(
                "shop/checkout/return_code.py", "TTL_SECONDS = 600\n\ndef issue(order_id: int) -> str: ...\n"
            ),
            edit("shop/checkout/views.py", "user = guard(request)", "order = redeem(request.query['code'])"),
        ),
        say("", bash("pytest tests/checkout -q", "17 passed in 2.05s")),
        say(
            "决定：cookie 保持 SameSite=Lax，银行返回时用一次性 return code（10 "
            "分钟有效，只能用一次）找回订单，因为 SameSite=None 会让登录令牌重新暴露给跨站请求。17 "
            "个结算测试通过。"
        ),
        gap=3 * MINUTE,
    )
    wire.turn(
        "summarise this for the incident page",
        outcome="failed",
        error="429 rate limit reached",
        gap=6 * MINUTE,
    )
    wire.turn(
        "ship it, and note what is still open",
        say("", bash("make deploy", "deployed 5d20f9a to production")),
        say(
            "Deployed 5d20f9a. Still open: nobody has tried the return on Safari, and expired rows in "
            "`refresh_tokens` are never deleted."
        ),
        gap=4 * MINUTE,
    )


def _purge(session: Session) -> None:
    """20 November: a fork of the refresh session goes on with the open end."""
    twin = session.fork(_at(20, 10, 15))
    twin.main.turn(
        "Expired refresh tokens are never deleted. Add a nightly job",
        say(
            "",
            write(
                "shop/jobs/purge_tokens.py", "QUERY = 'delete from refresh_tokens where expires < now()'\n"
            ),
            bash("pytest tests/jobs -q", "3 passed in 0.20s"),
        ),
        say(
            "`shop/jobs/purge_tokens.py` deletes expired rows of `refresh_tokens` every night at 03:00. We "
            "delete rather than archive them, because a hash of a dead token is of no use. 3 job tests "
            "pass."
        ),
        gap=MINUTE,
    )


def make(root: Path) -> int:
    """Writes the home to ``root``; returns the bytes of its wires."""
    home = Home(root, seed=20261109)
    _logged_out(home)
    _review(home)
    session = _refresh(home)
    _search(home)
    _redirect(home)
    _purge(session)
    return home.write()


if __name__ == "__main__":
    shutil.rmtree(TARGET, ignore_errors=True)
    sys.stdout.write(f"{make(TARGET) / 1000:.0f} kB in {TARGET}\n")
