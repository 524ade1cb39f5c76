"""Secrets to plant: put together from a seed at run time, so no scanner finds any here.

``secrets(seed)`` gives some hundred and thirty of more than 80 kinds, each with the text around it, and
``not_yet(seed)`` those that no rule recognises yet. ``tests.lookalikes`` has what must be kept, ``tests.leaks`` where
both are planted and how a leak is found.
"""

import base64
import json
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits

ALNUM = ascii_letters + digits
HEX = "0123456789abcdef"
UPPER = ascii_uppercase + digits


@dataclass(frozen=True, slots=True)
class Secret:
    """``text`` is what a person or a tool writes; no string of ``values`` may survive in it."""

    kind: str
    text: str
    values: tuple[str, ...]


class Mint:
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
    ("google-oauth-code", "GET /auth/callback?state=ab12&code=4/0A{}&scope=email", (ALNUM, 60)),
    ("google-oauth-code-encoded", "GET /auth/callback?state=ab12&code=4%2F0A{}&scope=email", (ALNUM, 60)),
    ("oracle", "jdbc:oracle:thin:shop/{}@//db.shop.dev:1521/shop", (ALNUM, 16)),
    ("terminal-wrap", "export SHOP_SIGNING_SECRET={}\n{}\n", (ALNUM, 26), (ALNUM, 18)),
    ("provider-wrap", "export GITHUB_TOKEN=ghp_{}\n{}\n", (ALNUM, 24), (ALNUM, 12)),
    ("heroku-new", "use HRKU-{} now", (ALNUM, 60)),
    ("azure-client-bare", "az login with x7P8Q~{}", (ALNUM, 34)),
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
    ("csv", "name,token,role\nann,{},dev\nbob,{},ops", (ALNUM, 24), (ALNUM, 24)),
    (
        "table",
        "| user | password |\n|------|----------|\n| ann | {} |\n| bob | {} |",
        (ALNUM, 9),
        (ALNUM, 14),
    ),
    ("table", "+------+----------+\n| user | password |\n+------+----------+\n| ann  | {} |", (ALNUM, 12)),
    ("table", "│ user │ password │\n├──────┼──────────┤\n│ ann  │ {} │", (ALNUM, 12)),
    ("sqlplus", "sqlplus -s shop/{}@db.shop.dev/shop", (ALNUM, 16)),
    ("htpasswd", "htpasswd -b .htpasswd ann {}", (ALNUM, 16)),
    ("github-secret", "gh secret set NPM_TOKEN --body {} --repo shop/shop", (ALNUM, 24)),
    ("requirepass", "port 6379\nrequirepass {}", (ALNUM, 24)),
    ("wifi", "network={{\n  ssid=shop\n  psk={}\n}}", (ALNUM, 20)),
    ("lftp", "lftp -u ann,{} sftp://files.shop.dev", (ALNUM, 20)),
    ("basic-pair", "requests.get(url, auth=('ann', '{}'))", (ALNUM, 16)),
    ("prose-possessive", "the password's {} by the way", (ALNUM, 16)),
    ("prose-chinese", "密码我设成 {} 了", (ALNUM, 12)),
    ("prose-chinese", "账号ann，密码{}", (ALNUM, 16)),
    ("below", "the password:\n{}\nthanks", (ALNUM, 16)),
    ("below", "token:\n\n```\n{}\n```", (ALNUM, 32)),
    ("private-span", "&lt;private&gt;\nmy card ends in {}\n&lt;/private&gt;", (digits, 9)),
    (
        "private-span",
        '<Private reason="mine">\nmy card ends in {}\nand the code is {}\n</PRIVATE>',
        (digits, 9),
        (digits, 7),
    ),
)

NOT_YET: tuple[_Row, ...] = (
    ("unknown-option", "shopctl -p {} list", (ALNUM, 20)),
    ("sqlplus-local", "sqlplus shop/{}", (ALNUM, 16)),
    ("prose-unnamed", "log in as ann with {}", (ALNUM, 16)),
    ("prose-pair", "credentials: ann / {}", (ALNUM, 16)),
    ("psk-colon", "psk: {}", (ALNUM, 20)),
    ("other-language", "contraseña: {}", (ALNUM, 20)),
    ("url-sign", "https://pay.shop.dev/notify?amount=3&sign={}", (HEX, 32)),
)
"""What slips through: written down so that it is not forgotten, and not planted until a rule knows it."""


_AROUND = (
    "use {} for the upload",
    "remote: authentication with {} failed",
    "令牌是 {}，先用这个",
    "export TOKEN={}",
    'headers = {{"X-Key": "{}"}}',
)


def secrets(seed: int) -> tuple[Secret, ...]:
    """The same seed gives the same secrets; different seeds share no value."""
    mint = Mint(random.Random(f"secrets {seed}"))
    made = [_token(mint, index, row) for index, row in enumerate(_TOKENS)]
    made += [maker(mint) for maker in _MAKERS]
    return (*made, *_filled(mint, _WRITTEN))


def not_yet(seed: int) -> tuple[Secret, ...]:
    """Secrets that no rule recognises yet. One that a rule has learned belongs among the others."""
    return _filled(Mint(random.Random(f"not yet {seed}")), NOT_YET)


def _token(mint: Mint, index: int, row: tuple[str, tuple[str, ...], str, int]) -> Secret:
    kind, head, alphabet, size = row
    value = "".join(head) + mint.of(alphabet, size)
    if kind == "slack":
        value += f"-{mint.of(digits, 12)}-{mint.of(ALNUM, 24)}"
    return Secret(kind, _AROUND[index % len(_AROUND)].format(value), (value,))


def _named(kind: str, template: str, alphabet: str, size: int) -> Callable[[Mint], Secret]:
    def make(mint: Mint) -> Secret:
        value = mint.of(alphabet, size)
        return Secret(kind, template.format(value), (value,))

    return make


def _filled(mint: Mint, rows: Iterable[_Row]) -> tuple[Secret, ...]:
    """Every row's text with a value for each ``(alphabet, size)``, in its order; size 0: a UUID."""
    made = []
    for kind, template, *shapes in rows:
        values = tuple(mint.of(alphabet, size) if size else mint.uuid() for alphabet, size in shapes)
        made.append(Secret(kind, template.format(*values), values))
    return tuple(made)


def _aws(mint: Mint) -> Secret:
    ident, key = "AK" + "IA" + mint.of(ascii_uppercase + digits, 16), mint.of(ALNUM, 40)
    return Secret("aws", f"aws_access_key_id = {ident}\naws_secret_access_key = {key}", (ident, key))


def _jwt(mint: Mint) -> Secret:
    value = mint.jwt()
    return Secret("jwt", f"the cookie holds {value} and expires today", (value, value.split(".")[2]))


def _bearer(mint: Mint) -> Secret:
    value = mint.of(ALNUM, 40)
    return Secret("bearer", f'curl -H "Authorization: Bearer {value}" https://api.shop.dev/v1/me', (value,))


def _basic(mint: Mint) -> Secret:
    password = mint.of(ALNUM, 14)
    coded = base64.b64encode(f"deploy:{password}".encode()).decode()
    return Secret("basic", f"Authorization: Basic {coded}", (coded, password))


def _pem(label: str) -> Callable[[Mint], Secret]:
    def make(mint: Mint) -> Secret:
        block, lines = mint.pem(label)
        return Secret("private-key", f"$ cat id_key\n{block}\n", lines)

    return make


def _service_account(mint: Mint) -> Secret:
    block, lines = mint.pem("PRIVATE KEY")
    text = json.dumps({"type": "service_account", "private_key": block, "client_email": "ci@shop.dev"})
    return Secret("service-account", text, lines)


def _url(scheme: str, rest: str) -> Callable[[Mint], Secret]:
    def make(mint: Mint) -> Secret:
        password = mint.of(ALNUM, 18)
        return Secret("url", f"{scheme}://shop:{password}@{rest}", (password,))

    return make


def _private(mint: Mint) -> Secret:
    words = f"the vault code of {mint.of(ascii_lowercase, 9)} is {mint.of(digits, 6)}"
    return Secret("private-span", f"<private>\n{words}\n</private> now go on", (words,))


def _docker(mint: Mint) -> Secret:
    password = mint.of(ALNUM, 20)
    coded = base64.b64encode(f"robot:{password}".encode()).decode()
    return Secret("docker", json.dumps({"auths": {"registry.shop.dev": {"auth": coded}}}), (coded, password))


def _telegram(mint: Mint) -> Secret:
    value = f"{mint.of(digits, 9)}:AA{mint.of(ALNUM, 33)}"
    return Secret("telegram", f"https://api.telegram.org/bot{value}/getMe", (value,))


def _sendgrid(mint: Mint) -> Secret:
    value = "S" + "G." + mint.of(ALNUM, 22) + "." + mint.of(ALNUM, 43)
    return Secret("sendgrid", f"SENDGRID_API_KEY={value}", (value,))


def _azure(mint: Mint) -> Secret:
    key = mint.b64(64)
    text = f"DefaultEndpointsProtocol=https;AccountName=shop;AccountKey={key};EndpointSuffix=core.windows.net"
    return Secret("azure", text, (key,))


def _wrapped(kind: str, template: str, *, lines: bool = False) -> Callable[[Mint], Secret]:
    """A text with a password, in base64; ``lines``: as ``base64`` prints it, 76 characters a line."""

    def make(mint: Mint) -> Secret:
        password = mint.of(ALNUM, 20)
        plain = template.format(password).encode()
        coded = (base64.encodebytes(plain) if lines else base64.b64encode(plain)).decode().strip()
        return Secret(kind, f"echo {coded} | base64 -d", (password, coded.split("\n")[-1]))

    return make


def _kubernetes(mint: Mint) -> Secret:
    password = mint.of(ALNUM, 20)
    coded = base64.b64encode(password.encode()).decode()
    text = f"apiVersion: v1\nkind: Secret\nmetadata:\n  name: shop\ndata:\n  shop: {coded}\n"
    return Secret("kubernetes", text, (coded, password))


def _key_lines(before: str, between: str) -> Callable[[Mint], Secret]:
    """A private key whose lines a tool or a string literal has put something around."""

    def make(mint: Mint) -> Secret:
        block, lines = mint.pem("PRIVATE KEY")
        marked = [before.format(number) + line for number, line in enumerate(block.split("\n"), 1)]
        return Secret("key-lines", "deploy key:\n" + between.join(marked) + "\nend", lines)

    return make


_MAKERS: tuple[Callable[[Mint], Secret], ...] = (
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
