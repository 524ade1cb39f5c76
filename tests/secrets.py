"""Secrets to plant, and look-alikes to keep: put together from a seed at run time, so no scanner finds any
here.

``secrets(seed)`` gives some ninety of more than 50 kinds, each with the text around it, and ``not_yet(seed)``
those that no rule recognises yet; ``lookalikes(seed)`` what must be kept. ``home_with_secrets`` and
``home_with_lookalikes`` plant them where they turn up in real sessions. No value may be in any file of a store
or in any output, in any of its ``forms`` (byte search).
"""

import base64
import json
import random
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits
from urllib.parse import quote

from tests import wires
from tests.wires import Call, say

ALNUM = ascii_letters + digits
HEX = "0123456789abcdef"
UPPER = ascii_uppercase + digits


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

    def uuid(self) -> str:
        return "-".join(self.of(HEX, size) for size in (8, 4, 4, 4, 12))

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
_Row = tuple[str, str, *tuple[tuple[str, int], ...]]
"""A kind, the text with a place for each value, and what each value is made of."""

_WRITTEN: tuple[_Row, ...] = (
    ("oauth-code", "GET /oauth/callback?code={}&state=af01 302", (ALNUM, 40)),
    ("oauth-code", "https://shop.dev/login/callback?state=x9&scope=repo&code={}", (HEX, 20)),
    ("refresh-token", '{{"refresh_token": "1//0g{}", "expires_in": 3599}}', (ALNUM, 60)),
    ("google-oauth", "gcloud printed ya29.a0{} today", (ALNUM, 120)),
    (
        "odbc",
        "Driver={{ODBC Driver 18}};Server=tcp:db.shop.dev,1433;Uid=shop;Pwd={};Encrypt=yes",
        (ALNUM, 16),
    ),
    ("jdbc", "jdbc:postgresql://db.shop.dev:5432/shop?user=shop&password={}&ssl=true", (ALNUM, 16)),
    ("mongodb", "mongodb+srv://shop:{}@cluster0.ab1cd.mongodb.net/shop?retryWrites=true", (ALNUM, 16)),
    ("libpq", "psql 'host=db.shop.dev user=shop password={} dbname=shop'", (ALNUM, 18)),
    ("service-bus", "Endpoint=sb://shop.servicebus.windows.net/;SharedAccessKey={}=;Entity=q", (ALNUM, 43)),
    ("continued", "export API_TOKEN={}\\\n{}", (ALNUM, 20), (ALNUM, 20)),
    ("continued", "curl -H 'X-Api-Key: {}\\\n{}' https://shop.dev", (ALNUM, 20), (ALNUM, 20)),
    ("concatenated", 'token = "{}" + \\\n    "{}"', (ALNUM, 20), (ALNUM, 20)),
    ("adjacent", 'api_key = (\n    "{}"\n    "{}"\n)', (ALNUM, 20), (ALNUM, 20)),
    ("escaped-json", '{{"body": "{{\\"user\\": \\"shop\\", \\"password\\": \\"{}\\"}}"}}', (ALNUM, 16)),
    ("yaml-block", "password: |\n  {}\nhost: db.shop.dev", (ALNUM, 24)),
    ("netrc", "machine api.shop.dev login dev password {}", (ALNUM, 20)),
    ("netrc", "machine api.shop.dev\n  login dev\n  password {}\n", (ALNUM, 20)),
    ("pgpass", "db.shop.dev:5432:shop:dev:{}", (ALNUM, 16)),
    ("npmrc", "//registry.npmjs.org/:_authToken={}", (HEX, 0)),
    ("twilio", "TWILIO_AUTH_TOKEN={}", (HEX, 32)),
    ("twilio", "the key SK{} belongs to staging", (HEX, 32)),
    ("mailgun", "curl -s --user 'api:{}-{}-{}' https://api.mailgun.net/v3", (HEX, 32), (HEX, 8), (HEX, 8)),
    ("datadog", "DD_API_KEY={}\nDD_APP_KEY={}", (HEX, 32), (HEX, 40)),
    ("sentry", "SENTRY_DSN=https://{}@o447951.ingest.sentry.io/5430213", (HEX, 32)),
    ("cloudflare", "CLOUDFLARE_API_TOKEN={}", (ALNUM, 40)),
    ("cloudflare", "X-Auth-Email: dev@shop.dev\nX-Auth-Key: {}", (HEX, 37)),
    ("vercel", "vercel deploy --prod --token {}", (ALNUM, 24)),
    ("heroku", "HEROKU_API_KEY={}", (HEX, 0)),
    ("atlassian", "it works with ATATT3xFfGF0{} only", (ALNUM, 70)),
    ("azure-sas", "https://shop.blob.core.windows.net/logs?sv=2022-11-02&sp=rl&sig={}%3D", (ALNUM, 43)),
    ("azure-client", "AZURE_CLIENT_SECRET={}~{}", (ALNUM, 20), (ALNUM, 18)),
    ("slack-hook", "https://hooks.slack.com/services/T01ABCDEFGH/B02ABCDEFGH/{}", (ALNUM, 24)),
    ("discord-hook", "https://discord.com/api/webhooks/123456789012345678/{}", (ALNUM, 68)),
    ("discord", "client.login('MT{}.{}.{}')", (ALNUM, 22), (ALNUM, 6), (ALNUM, 38)),
    ("tencent", "secret_id = AKID{}\nsecret_key = {}", (ALNUM, 32), (ALNUM, 32)),
    ("volcengine", "VOLC_ACCESSKEY=AKLT{}", (ALNUM, 40)),
    ("zhipu", 'client = ZhipuAI(api_key="{}.{}")', (HEX, 32), (ALNUM, 16)),
    ("dingtalk", "https://oapi.dingtalk.com/robot/send?access_token={}", (HEX, 64)),
    ("vault", "vault login hvs.{}", (ALNUM, 24)),
    ("otp", "otpauth://totp/shop:dev?secret={}&issuer=shop", (UPPER, 32)),
    ("kubectl", "kubectl create secret generic shop --from-literal=password={}", (ALNUM, 20)),
    ("url-encoded", "payload=password%3D{}%26user%3Dann", (ALNUM, 20)),
    ("prose", "the admin password is {} for now", (ALNUM, 16)),
    ("prose", "管理员口令：{}，登录后请修改", (ALNUM, 16)),
    (
        "private-span",
        '<Private reason="mine">\nmy card ends in {}\nand the code is {}\n</PRIVATE>',
        (digits, 9),
        (digits, 7),
    ),
)

NOT_YET: tuple[_Row, ...] = (
    ("google-oauth-code", "GET /auth/callback?state=ab12&code=4/0A{}&scope=email", (ALNUM, 60)),
    ("google-oauth-code-encoded", "GET /auth/callback?state=ab12&code=4%2F0A{}&scope=email", (ALNUM, 60)),
    ("oracle", "jdbc:oracle:thin:shop/{}@//db.shop.dev:1521/shop", (ALNUM, 16)),
    ("terminal-wrap", "export SHOP_SIGNING_SECRET={}\n{}\n", (ALNUM, 26), (ALNUM, 18)),
    ("provider-wrap", "export GITHUB_TOKEN=ghp_{}\n{}\n", (ALNUM, 24), (ALNUM, 12)),
    ("heroku-new", "use HRKU-{} now", (ALNUM, 60)),
    ("azure-client-bare", "az login with {}8Q~{}", (ALNUM, 3), (ALNUM, 34)),
    ("baidu", "use bce-v3/ALTAK-{}/{} for qianfan", (ALNUM, 21), (HEX, 40)),
    ("huawei", "export HUAWEICLOUD_SDK_SK={}", (ALNUM, 40)),
    ("dingtalk-signature", "加签 SEC{}", (HEX, 64)),
    ("wecom-hook", "curl https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key={}", (HEX, 0)),
    ("feishu-hook", "https://open.feishu.cn/open-apis/bot/v2/hook/{}", (HEX, 0)),
    ("kubernetes-json", '{{"apiVersion":"v1","kind":"Secret","data":{{"shop":"{}"}}}}', (ALNUM, 28)),
    ("prose-changed", "the Grafana password was changed to {}", (ALNUM, 20)),
    ("prose-for", "password for staging is {}", (ALNUM, 20)),
    ("prose-chinese", "登录口令改成了{}", (ALNUM, 20)),
    ("pw", "pw: {}", (ALNUM, 20)),
    ("xml-attribute", '<add key="ApiSecret" value="{}"/>', (ALNUM, 20)),
    ("identified-by", "CREATE USER shop IDENTIFIED BY '{}';", (ALNUM, 20)),
    ("sudo", "echo {} | sudo -S apt update", (ALNUM, 20)),
    ("chpasswd", "echo 'root:{}' | chpasswd", (ALNUM, 20)),
    ("terraform", 'variable "db_password" {{\n  default = "{}"\n}}', (ALNUM, 20)),
    ("amz-signature", "https://s3.shop.dev/x?X-Amz-Expires=300&X-Amz-Signature={}", (HEX, 64)),
    ("coloured", "\x1b[1mpassword\x1b[0m: \x1b[33m{}\x1b[0m", (ALNUM, 20)),
    ("csv", "user,password\nann,{}", (ALNUM, 20)),
    ("url-key", "https://maps.shop.dev/v1?key={}", (ALNUM, 40)),
)
"""What slips through: written down so that it is not forgotten, and not planted until a rule knows it."""

PLACES = (
    *("prompt", "answer", "command", "output", "edit", "failed output", "steer", "sub-agent"),
    *("read", "write", "grep", "mcp", "todo", "thought", "summary", "error"),
)
"""Where text comes from in a session."""
_WHOLE = ("prompt", "answer", "command")

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
    return (*made, *_filled(mint, _WRITTEN))


def not_yet(seed: int) -> tuple[Secret, ...]:
    """Secrets that no rule recognises yet. One that a rule has learned belongs among the others."""
    return _filled(_Mint(random.Random(f"not yet {seed}")), NOT_YET)


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


def _filled(mint: _Mint, rows: Iterable[_Row]) -> tuple[Secret, ...]:
    """Every row's text with a value for each ``(alphabet, size)``, in its order; size 0: a UUID."""
    made = []
    for kind, template, *shapes in rows:
        values = tuple(mint.of(alphabet, size) if size else mint.uuid() for alphabet, size in shapes)
        made.append(Secret(kind, template.format(*values), values))
    return tuple(made)


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


def _wrapped(kind: str, template: str, *, lines: bool = False) -> Callable[[_Mint], Secret]:
    """A text with a password, in base64; ``lines``: as ``base64`` prints it, 76 characters a line."""

    def make(mint: _Mint) -> Secret:
        password = mint.of(ALNUM, 20)
        plain = template.format(password).encode()
        coded = (base64.encodebytes(plain) if lines else base64.b64encode(plain)).decode().strip()
        return Secret(kind, f"echo {coded} | base64 -d", (password, coded.split("\n")[-1]))

    return make


def _kubernetes(mint: _Mint) -> Secret:
    password = mint.of(ALNUM, 20)
    coded = base64.b64encode(password.encode()).decode()
    text = f"apiVersion: v1\nkind: Secret\nmetadata:\n  name: shop\ndata:\n  shop: {coded}\n"
    return Secret("kubernetes", text, (coded, password))


def _key_lines(before: str, between: str) -> Callable[[_Mint], Secret]:
    """A private key whose lines a tool or a string literal has put something around."""

    def make(mint: _Mint) -> Secret:
        block, lines = mint.pem("PRIVATE KEY")
        marked = [before.format(number) + line for number, line in enumerate(block.split("\n"), 1)]
        return Secret("key-lines", "deploy key:\n" + between.join(marked) + "\nend", lines)

    return make


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
    _kubernetes,
    _wrapped("base64", "DB_HOST=db\nDB_PASSWORD={}\n"),
    _wrapped(
        "base64-lines",
        "# the settings of the staging machines, all of them\nDB_PASSWORD={}\nDB_HOST=db\n",
        lines=True,
    ),
    _key_lines("", "\\n"),
    _key_lines("{:6}\t", "\n"),
    _key_lines("deploy/id_key:{}:", "\n"),
    _key_lines("-", "\n"),
    _key_lines("web_1  | ", "\n"),
)


def lookalikes(seed: int) -> tuple[str, ...]:
    """What must be kept byte for byte: hashes, commit ids, UUIDs, versions, identifiers, placeholders, paths."""
    mint = _Mint(random.Random(f"lookalikes {seed}"))
    return (*_digests(mint), *_ids(mint), *_STANDING_FOR, *_SAID)


def _digests(mint: _Mint) -> tuple[str, ...]:
    """Hashes of all lengths and in all dresses, and other data that is random and not secret."""
    png = base64.b64encode(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + mint.rng.randbytes(60)).decode()
    return (
        f"commit {mint.of(HEX, 40)}",
        f"{mint.of(HEX, 7)} (HEAD -> main, origin/main) keep the login token in a cookie",
        f"Merge: {mint.of(HEX, 8)} {mint.of(HEX, 8)}",
        f"index {mint.of(HEX, 7)}..{mint.of(HEX, 7)} 100644",
        f"git revert {mint.of(HEX, 12)}",
        f"{mint.of(HEX, 32)}  shop-1.2.0.tar.gz",
        f"{mint.of(HEX, 40)}  shop-1.2.0.zip",
        f"{mint.of(HEX, 56)}  sha224.txt",
        f"{mint.of(HEX, 64)}  shop-1.2.0.whl",
        f"{mint.of(HEX, 96)}  sha384.txt",
        f"{mint.of(HEX, 128)}  sha512.txt",
        f"sha256:{mint.of(HEX, 64)}",
        f"FROM python:3.12-slim@sha256:{mint.of(HEX, 64)}",
        f"--hash=sha256:{mint.of(HEX, 64)}",
        f'integrity="sha512-{mint.b64(64)}"',
        f'"integrity": "sha384-{mint.b64(48)}",',
        f"github.com/shop/cart v1.2.3 h1:{mint.b64(32)}",
        f'checksum = "{mint.of(HEX, 64)}"',
        f'ETag: W/"{mint.of(HEX, 32)}"',
        f"<img src='data:image/png;base64,{png}'>",
        f"SHA256:{mint.b64(32).rstrip('=')} dev@shop.dev (ED25519)",
        "crc32 " + mint.of(HEX, 8),
    )


def _ids(mint: _Mint) -> tuple[str, ...]:
    """Names that machines give: UUIDs in all forms, ULIDs, versions, times, addresses, colours, URLs."""
    uuid = mint.uuid()
    return (
        f"session_{uuid}",
        f"request {uuid.upper()} done",
        f"urn:uuid:{mint.uuid()}",
        f"postgres://user:{'password'}@localhost/shop",
        f"{{{mint.uuid()}}}",
        f"order {mint.of(HEX, 32)} was shipped",
        f"msg_01M8NZ6TGM{mint.of(UPPER, 16)}",
        f"trace 00-{mint.of(HEX, 32)}-{mint.of(HEX, 16)}-01",
        "01HZX5K3V9Q2W8R7T6Y4P1N0M3",
        "kimi-memory-pipeline==0.1.0",
        "v2.10.0-rc.3+build.20261130.5114f85",
        "2026-11-30T15:17:16.123456+08:00",
        "elapsed 1796033702000 ms",
        "color: #a1b2c3; background: #0f172acc;",
        "link/ether 0a:1b:2c:3d:4e:5f brd ff:ff:ff:ff:ff:ff",
        "inet6 2001:0db8:85a3:0000:0000:8a2e:0370:7334/64",
        "src/auth/token_storage_adapter_factory.py",
        "AbstractTokenStorageAdapterFactoryBean2ConfigurationTest",
        "https://shop.dev/orders/1234?page=2&sort=price",
        "dist/assets/index-B7x9kQ2m.js",
        "s3://shop-backups/2026/11/30/db-0004.dump",
    )


_STANDING_FOR = (
    "password = os.environ['DB_PASSWORD']",
    "const token = process.env.API_TOKEN;",
    'api_key = get_secret("stripe")',
    "token: str | None = None",
    "def login(user: str, password: str) -> Token:",
    "DB_PASSWORD=<your password>",
    "Authorization: Bearer <token>",
    "Authorization: Bearer $TOKEN",
    "PASSWORD=changeme",
    "password: ***",
    "secret=********",
    "export TOKEN=$GITHUB_TOKEN",
    "TOKEN=${TOKEN}",
    "token: ${{ secrets.GITHUB_TOKEN }}",
    "password: {{ vault_password }}",
    "set TOKEN=%TOKEN%",
    "API_KEY=your-api-key-here",
    "max_tokens=4096",
    "primary_key=True",
    "token_count = 12",
    "private_key_path: /etc/ssl/key.pem",
    "password VARCHAR(255) NOT NULL",
    "resolve(token: TokenType.ACCESS)",
)
_SAID = (
    "the secret of the tokenizer is its table",
    "the token is invalid",
    "test_password_is_hashed_before_it_is_stored",
    "tests/test_login.py::test_a_wrong_password_is_refused PASSED",
    "令牌保存在浏览器里，密码不落盘",
    "忘记密码？请联系管理员",
    "密码长度至少8位，不能为空",
    "密钥长度: 2048",
    "请输入密码",
    "-----BEGIN PUBLIC KEY-----",
    "-----BEGIN CERTIFICATE-----",
)


# --- where they are planted --------------------------------------------------------------------------------


CWD = "/home/dev/shop"
_START = 1_796_033_702_000
_HOUR = 3_600_000
_TURNS = 48
"""At most so many turns a session."""


def home_with_secrets(
    root: Path, seed: int, *, cwd: str = CWD, shifts: Sequence[int] = (0,)
) -> tuple[Secret, ...]:
    """Writes a home with every secret once for each of ``shifts``, which say in which of PLACES the first one
    stands; the others take turns. Every turn says “quartermaster”, so that a theme finds it. The sessions'
    titles hold a secret each.
    """
    planted = secrets(seed)
    rows = [
        (secret, PLACES[(index + shift) % len(PLACES)])
        for shift in shifts
        for index, secret in enumerate(planted)
    ]
    titles = [secret.text for secret in planted if "\n" not in secret.text]
    _write_home(root, seed, cwd, [(secret.text, place) for secret, place in rows], titles)
    return planted


def home_with_lookalikes(root: Path, seed: int, *, cwd: str = CWD) -> tuple[str, ...]:
    """Writes a home with every look-alike once where it is stored whole: in prompts, answers and commands."""
    planted = lookalikes(seed)
    _write_home(root, seed, cwd, [(text, _WHOLE[index % 3]) for index, text in enumerate(planted)], planted)
    return planted


def _write_home(
    root: Path, seed: int, cwd: str, rows: Sequence[tuple[str, str]], titles: Sequence[str]
) -> None:
    """``rows`` are texts and places, ``titles`` what sessions are called by turns."""
    home = wires.Home(root, seed=seed)
    for first in range(0, len(rows), _TURNS):
        title = f"quartermaster {titles[first % len(titles)]}".strip()
        session = home.session(cwd, at=_START + first * _HOUR, title=title)
        for index, (text, place) in enumerate(rows[first : first + _TURNS], first):
            _plant(session.main, index, text, place)
    home.write()


def _plant(wire: wires.Wire, index: int, text: str, place: str) -> None:
    ask = f"quartermaster step {index}: look at this"
    done = f"Decided for quartermaster step {index}: keep it."
    calls: dict[str, Call] = {
        "command": wires.bash(f"cat <<'EOF'\n{text}\nEOF", "ok"),
        "output": wires.bash("cat .env", f"{text}\nend"),
        "edit": wires.edit(".env", "A=1", text),
        "failed output": wires.bash("run", f"Error: refused\n{text}", code=1),
        "sub-agent": wires.agent(ask, say(f"Report: {text}"), description="Look"),
        "read": wires.read("notes.txt", text),
        "write": wires.write("notes.txt", text),
        "grep": wires.grep(text.split("\n")[0], "src", text),
        "mcp": wires.mcp("vault", "get", {"name": text}, text),
        "todo": wires.todo((text, "pending")),
    }
    others: dict[str, Callable[[], object]] = {
        "prompt": lambda: wire.turn(f"{ask}\n{text}", say(done)),
        "answer": lambda: wire.turn(ask, say(f"I found this:\n{text}\n{done}")),
        "steer": lambda: wire.turn(
            ask, say("One.", wires.bash("ls", "a")), say(done), steers={1: f"also {text}"}
        ),
        "thought": lambda: wire.turn(ask, say(done, think=text)),
        "summary": lambda: wire.compact(f"quartermaster: {text}"),
        "error": lambda: wire.turn(ask, say(""), outcome="failed", error=f"400 refused: {text}"),
    }
    if place in calls:
        wire.turn(ask, say("Let me see.", calls[place]), say(done), gap=60_000)
    else:
        others[place]()


# --- how a leak would look ---------------------------------------------------------------------------------


def forms(value: str) -> frozenset[bytes]:
    """The bytes as which a value may turn up: as it is, folded, in base64, URL-encoded or escaped in JSON."""
    raw = value.encode()
    percent = quote(value, safe="")
    small = re.sub("%..", lambda escape: escape[0].lower(), percent)
    every = "".join(f"%{byte:02X}" for byte in raw)
    written = (value, value.lower(), json.dumps(value)[1:-1], json.dumps(value).replace("/", "\\/")[1:-1])
    return frozenset(
        [text.encode() for text in (*written, percent, small, percent.lower(), every, every.lower())]
        + [coded for shift in range(3) for coded in _in_base64(raw, shift)]
    )


def _in_base64(raw: bytes, shift: int) -> tuple[bytes, bytes]:
    """What base64 of any text shows of ``raw`` that stands ``shift`` bytes behind a multiple of three: the
    characters that depend on nothing before or after it. In both alphabets.
    """
    first, last = (8 * shift + 5) // 6, 8 * (shift + len(raw)) // 6
    padded = b"\0" * shift + raw
    return base64.b64encode(padded)[first:last], base64.urlsafe_b64encode(padded)[first:last]


class Leaks:
    """Finds planted secrets in bytes. ``leaks(data)`` gives the kinds of which a value is there in any form."""

    def __init__(self, planted: Sequence[Secret]) -> None:
        self._needles = {
            needle: secret.kind for secret in planted for value in secret.values for needle in forms(value)
        }

    def __call__(self, data: bytes | str) -> list[str]:
        data = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
        return sorted({kind for needle, kind in self._needles.items() if needle in data})
