"""Secrets to plant, and look-alikes to keep: put together from a seed at run time, so no scanner finds any
here.

``secrets(seed)`` gives more than 40 of more than 25 kinds, each with the text around it;
``home_with_secrets`` plants them where secrets turn up in real sessions. No value may be in any file of a
store or in any output (byte search).
"""

import base64
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits

from tests import wires
from tests.wires import Call, say

ALNUM = ascii_letters + digits
HEX = "0123456789abcdef"


@dataclass(frozen=True, slots=True)
class Secret:
    """``text`` is what a person or a tool writes; no string of ``values`` may survive in it."""

    kind: str
    text: str
    values: tuple[str, ...]


class _Mint:
    """Random values of the forms that providers give out."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def of(self, alphabet: str, size: int) -> str:
        """Never two equal neighbours, always a digit and a letter: no value looks like a placeholder."""
        picked = [self.rng.choice(alphabet)]
        while len(picked) < size:
            nxt = self.rng.choice(alphabet)
            if nxt != picked[-1]:
                picked.append(nxt)
        picked[size // 2] = self.rng.choice("23456789")
        picked[size // 3] = self.rng.choice([c for c in alphabet if c.isalpha()] or [picked[0]])
        return "".join(picked)

    def b64(self, size: int) -> str:
        return base64.b64encode(self.rng.randbytes(size)).decode()

    def jwt(self) -> str:
        parts = ({"alg": "HS256", "typ": "JWT"}, {"sub": str(self.rng.randrange(10**9)), "iat": 1796033702})
        coded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
        return ".".join([*coded, base64.urlsafe_b64encode(self.rng.randbytes(32)).decode().rstrip("=")])

    def pem(self, label: str) -> tuple[str, tuple[str, ...]]:
        body = self.b64(420)
        lines = tuple(body[at : at + 64] for at in range(0, len(body), 64))
        bar = "-" * 5
        head, tail = f"{bar}BEGIN {label}{bar}", f"{bar}END {label}{bar}"
        return "\n".join([head, *lines, tail]), lines[:-1]


_TOKENS: tuple[tuple[str, tuple[str, ...], str, int], ...] = (
    ("github", ("gh", "p_"), ALNUM, 36),
    ("github", ("gh", "s_"), ALNUM, 36),
    ("github", ("github", "_pat_"), ALNUM, 59),
    ("gitlab", ("gl", "pat-"), ALNUM, 20),
    ("openai", ("sk-", "proj-"), ALNUM, 48),
    ("moonshot", ("s", "k-"), ALNUM, 48),
    ("anthropic", ("sk-", "ant-api03-"), ALNUM, 80),
    ("google", ("AI", "za"), ALNUM, 35),
    ("slack", ("xo", "xb-"), digits, 12),
    ("stripe", ("sk_", "live_"), ALNUM, 24),
    ("npm", ("np", "m_"), ALNUM, 36),
    ("pypi", ("py", "pi-AgEIcHlwaS5vcmc"), ALNUM, 60),
    ("huggingface", ("h", "f_"), ascii_letters, 34),
    ("digitalocean", ("do", "p_v1_"), HEX, 64),
    ("shopify", ("shp", "at_"), HEX, 32),
    ("linear", ("lin", "_api_"), ALNUM, 40),
    ("alibaba", ("LT", "AI"), ALNUM, 20),
)
_AROUND = (
    "use {} for the upload",
    "remote: authentication with {} failed",
    "令牌是 {}，先用这个",
    "export TOKEN={}",
    'headers = {{"X-Key": "{}"}}',
)


def secrets(seed: int) -> tuple[Secret, ...]:
    """The same seed gives the same secrets; different seeds share no value."""
    mint = _Mint(random.Random(f"secrets {seed}"))
    made = [_token(mint, index, row) for index, row in enumerate(_TOKENS)]
    made += [maker(mint) for maker in _MAKERS]
    return tuple(made)


def _token(mint: _Mint, index: int, row: tuple[str, tuple[str, ...], str, int]) -> Secret:
    kind, head, alphabet, size = row
    value = "".join(head) + mint.of(alphabet, size)
    if kind == "slack":
        value += f"-{mint.of(digits, 12)}-{mint.of(ALNUM, 24)}"
    return Secret(kind, _AROUND[index % len(_AROUND)].format(value), (value,))


def _named(kind: str, template: str, alphabet: str, size: int) -> Callable[[_Mint], Secret]:
    def make(mint: _Mint) -> Secret:
        value = mint.of(alphabet, size)
        return Secret(kind, template.format(value), (value,))

    return make


def _aws(mint: _Mint) -> Secret:
    ident, key = "AK" + "IA" + mint.of(ascii_uppercase + digits, 16), mint.of(ALNUM, 40)
    return Secret("aws", f"aws_access_key_id = {ident}\naws_secret_access_key = {key}", (ident, key))


def _jwt(mint: _Mint) -> Secret:
    value = mint.jwt()
    return Secret("jwt", f"the cookie holds {value} and expires today", (value, value.split(".")[2]))


def _bearer(mint: _Mint) -> Secret:
    value = mint.of(ALNUM, 40)
    return Secret("bearer", f'curl -H "Authorization: Bearer {value}" https://api.shop.dev/v1/me', (value,))


def _basic(mint: _Mint) -> Secret:
    password = mint.of(ALNUM, 14)
    coded = base64.b64encode(f"deploy:{password}".encode()).decode()
    return Secret("basic", f"Authorization: Basic {coded}", (coded, password))


def _pem(label: str) -> Callable[[_Mint], Secret]:
    def make(mint: _Mint) -> Secret:
        block, lines = mint.pem(label)
        return Secret("private-key", f"$ cat id_key\n{block}\n", lines)

    return make


def _service_account(mint: _Mint) -> Secret:
    block, lines = mint.pem("PRIVATE KEY")
    text = json.dumps({"type": "service_account", "private_key": block, "client_email": "ci@shop.dev"})
    return Secret("service-account", text, lines)


def _url(scheme: str, rest: str) -> Callable[[_Mint], Secret]:
    def make(mint: _Mint) -> Secret:
        password = mint.of(ALNUM, 18)
        return Secret("url", f"{scheme}://shop:{password}@{rest}", (password,))

    return make


def _private(mint: _Mint) -> Secret:
    words = f"the vault code of {mint.of(ascii_lowercase, 9)} is {mint.of(digits, 6)}"
    return Secret("private-span", f"<private>\n{words}\n</private> now go on", (words,))


def _docker(mint: _Mint) -> Secret:
    password = mint.of(ALNUM, 20)
    coded = base64.b64encode(f"robot:{password}".encode()).decode()
    return Secret("docker", json.dumps({"auths": {"registry.shop.dev": {"auth": coded}}}), (coded, password))


def _telegram(mint: _Mint) -> Secret:
    value = f"{mint.of(digits, 9)}:AA{mint.of(ALNUM, 33)}"
    return Secret("telegram", f"https://api.telegram.org/bot{value}/getMe", (value,))


def _sendgrid(mint: _Mint) -> Secret:
    value = "S" + "G." + mint.of(ALNUM, 22) + "." + mint.of(ALNUM, 43)
    return Secret("sendgrid", f"SENDGRID_API_KEY={value}", (value,))


def _azure(mint: _Mint) -> Secret:
    key = mint.b64(64)
    text = f"DefaultEndpointsProtocol=https;AccountName=shop;AccountKey={key};EndpointSuffix=core.windows.net"
    return Secret("azure", text, (key,))


_MAKERS: tuple[Callable[[_Mint], Secret], ...] = (
    _aws,
    _jwt,
    _bearer,
    _basic,
    _pem("RSA PRIVATE KEY"),
    _pem("OPENSSH PRIVATE KEY"),
    _service_account,
    _url("postgres", "db.shop.dev:5432/shop"),
    _url("redis", "cache.shop.dev:6379/0"),
    _url("https", "git.shop.dev/shop.git"),
    _url("amqp", "queue.shop.dev/%2f"),
    _private,
    _docker,
    _telegram,
    _sendgrid,
    _azure,
    _named("password", "DB_PASSWORD={}", ALNUM, 16),
    _named("password", '{{"user": "shop", "password": "{}"}}', ALNUM, 20),
    _named("password", "password: '{}'  # staging", ALNUM, 16),
    _named("password", "数据库密码={}", ALNUM, 16),
    _named("password", "PGPASSWORD={} psql -h db.shop.dev shop", ALNUM, 15),
    _named("api-key", "export STRIPE_WEBHOOK_SECRET={}", ALNUM, 32),
    _named("api-key", 'api_key = "{}"', HEX, 32),
    _named("api-key", "client_secret={}&grant_type=client_credentials", ALNUM, 34),
    _named("api-key", "X-Api-Key: {}", ALNUM, 36),
    _named("api-key", "secretKey: {}", ALNUM, 40),
    _named("session", "Set-Cookie: session_id={}; HttpOnly", ALNUM, 44),
    _named("curl-user", "curl -u deploy:{} https://shop.dev/hooks", ALNUM, 18),
)


def lookalikes(seed: int) -> tuple[str, ...]:
    """What must be kept: hashes, commit ids, UUIDs, versions, identifiers, placeholders, paths."""
    mint = _Mint(random.Random(f"lookalikes {seed}"))
    uuid = f"{mint.of(HEX, 8)}-{mint.of(HEX, 4)}-4{mint.of(HEX, 3)}-a{mint.of(HEX, 3)}-{mint.of(HEX, 12)}"
    return (
        f"commit {mint.of(HEX, 40)}",
        f"sha256:{mint.of(HEX, 64)}",
        f"session_{uuid}",
        "password = os.environ['DB_PASSWORD']",
        'api_key = get_secret("stripe")',
        "token: str | None = None",
        "DB_PASSWORD=<your password>",
        "PASSWORD=changeme",
        "export TOKEN=$GITHUB_TOKEN",
        "src/auth/token_storage_adapter_factory.py",
        "the secret of the tokenizer is its table",
        "kimi-memory-pipeline==0.1.0",
        "https://shop.dev/orders/1234?page=2&sort=price",
        "test_password_is_hashed_before_it_is_stored",
        'integrity="sha512-' + mint.b64(64) + '"',
        f"index {mint.of(HEX, 7)}..{mint.of(HEX, 7)} 100644",
        f"msg_01M8NZ6TGM{mint.of(ascii_uppercase + digits, 16)}",
        "令牌保存在浏览器里，密码不落盘",
    )


# --- where they are planted --------------------------------------------------------------------------------


def home_with_secrets(root: Path, seed: int, *, cwd: str = "/home/dev/shop") -> tuple[Secret, ...]:
    """Writes a home with every secret once: by turns in a prompt, an answer, a command, an output, an edit, a
    failed output, a steer, a sub-agent's report. Every turn says “quartermaster”, so that a theme finds it.
    """
    home = wires.Home(root, seed=seed)
    planted = secrets(seed)
    session = home.session(cwd, at=1_796_033_702_000, title="quartermaster")
    for index, secret in enumerate(planted):
        if index and index % 12 == 0:
            session = home.session(cwd, at=1_796_033_702_000 + index * 3_600_000)
        _plant(session.main, index, secret.text)
    home.write()
    return planted


def _plant(wire: wires.Wire, index: int, text: str) -> None:
    ask = f"quartermaster step {index}: look at this"
    done = f"Decided for quartermaster step {index}: keep it."
    places: tuple[Callable[[], object], ...] = (
        lambda: wire.turn(f"{ask}\n{text}", say(done)),
        lambda: wire.turn(ask, say(f"I found this:\n{text}\n{done}")),
        lambda: _called(wire, ask, wires.bash(f"cat <<'EOF'\n{text}\nEOF", "ok"), done),
        lambda: _called(wire, ask, wires.bash("cat .env", f"{text}\nend"), done),
        lambda: _called(wire, ask, wires.edit(".env", "A=1", text), done),
        lambda: _called(wire, ask, wires.bash("run", f"Error: refused\n{text}", code=1), done),
        lambda: wire.turn(ask, say("One.", wires.bash("ls", "a")), say(done), steers={1: f"also {text}"}),
        lambda: _called(wire, ask, wires.agent(ask, say(f"Report: {text}"), description="Look"), done),
    )
    places[index % len(places)]()


def _called(wire: wires.Wire, ask: str, call: Call, done: str) -> int:
    return wire.turn(ask, say("Let me see.", call), say(done), gap=60_000)
