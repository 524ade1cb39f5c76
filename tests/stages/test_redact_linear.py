"""Time grows with the text, whatever the text: no pattern backtracks, no window is searched twice."""

from __future__ import annotations

from time import process_time

import pytest

from stages.redact import Redactor

SMALL, FACTOR = 20_000, 8
BACKTRACKS = 3.0
"""Quadratic work would take FACTOR times longer than linear; noise does not make it three times."""

UNITS = (
    "=",
    "a:",
    "eyJ",
    "-eyJ",
    "eyJ.",
    "-----BEGIN",
    "-----BEGIN " + "PRIVATE KEY-----\n",
    "password",
    "password=",
    "password: ",
    'password="',
    "password='a",
    'key="x\\\n',
    "kind: secret\ndata:\n  a: b\n",
    "<private>",
    "<private",
    "://a:",
    "a@",
    "%3",
    "%",
    "sk-",
    "a_sk-",
    "ghp_",
    "AKIA" + "A" * 16 + " ",
    "curl -u a:b ",
    "mysql -pabc1 ",
    "cookie: a=",
    "a=b; ",
    "Bearer ",
    "\\",
    '"',
    '" + "',
    'password="a1" + "',
    "密码是",
    "密码（",
    "令",
    "sig=",
    "PuTTY-User-Key-File-2: x\nPrivate-Lines: 3\n",
    "code=",
    "a1B2" * 10 + "/",
    "QUJD" * 10 + "\n",
    "aGVsbG8gd29ybGQgaGVsbG8g\n",
    "password: |\n  a\n",
    "[secret:a:00000000]",
    "password: a[",
    "<password>a",
    "\n",
    " ",
    "_-",
    "A",
    "4/0A",
    "a4/0" + "aB3" * 12,
    "8Q~",
    "abc8Q~" + "aB3" * 12 + "~",
    "host:5432:",
    "a:5432:b:c:d1e2 ",
    "user,password\n",
    "password,",
    "|password|\n",
    "| password |\n|--|\n| a1B2c3D4 |\n",
    "│password",
    "password for a ",
    "password was changed to ",
    'password" { ',
    'kind":"secret","data":{"a":"bcde"},',
    '"kind":"secret"',
    '"data":{',
    "\x1b[0m",
    "\x1b[",
    "\x1b]password",
    "pw",
    "mnemonic=word ",
    "mnemonic=" + "word " * 12,
    "TOKEN=a1B2c3D4e5F6g7H8i9\n",
    "a1B2c3D4e5F6g7H8i9\n",
    "password:\n",
    "echo a | sudo -S ",
    "echo a:b | chpasswd ",
    "htpasswd -b a b c ",
    "gh secret set a ",
    "identified by 'a1b2' ",
    "auth=('a', 'b1') ",
    "&lt;private&gt;",
    "&lt;private ",
    "sqlplus a/b@",
    "/a@",
    "?key=",
    "ghp_" + "aB3" * 8 + "\n",
    "'s ",
)


def seconds(text: str) -> float:
    redactor = Redactor(b"key")
    start = process_time()
    redactor(text)
    return process_time() - start


@pytest.mark.parametrize("unit", UNITS, ids=repr)
def test_time_is_linear(unit: str) -> None:
    small = (unit * SMALL)[:SMALL]
    limit = max(0.05, min(seconds(small), seconds(small)) * FACTOR * BACKTRACKS)
    large = (unit * SMALL * FACTOR)[: SMALL * FACTOR]
    assert min(seconds(large), seconds(large)) < limit


def test_ten_megabytes() -> None:
    line = (
        'def handler(request):  # token 检查\n    return {"user": request.user, "tokens": 1200}\n'
        "2026-01-02T03:04:05Z INFO ok\n"
    )
    text = line * (10_000_000 // len(line.encode()))
    assert seconds(text) < 5
