"""Texts with secrets made from a seeded generator; nothing here looks to a scanner like a real one."""

from __future__ import annotations

import base64
import random
import string
from dataclasses import dataclass
from urllib.parse import quote

ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
LOWER = string.ascii_lowercase + string.digits


@dataclass(frozen=True, slots=True)
class Planted:
    """A text, the secrets that must be gone from it, and a text that must stay."""

    label: str
    text: str
    secrets: tuple[str, ...]
    kept: str = ""


class Maker:
    """Random strings with a digit, a lower-case and an upper-case letter where the alphabet has them."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def make(self, count: int, alphabet: str = ALNUM) -> str:
        while True:
            text = "".join(self._random.choices(alphabet, k=count))
            kinds = (str.isdigit, str.islower, str.isupper)
            if all(any(map(kind, text)) for kind in kinds if any(map(kind, alphabet))):
                return text

    def password(self) -> str:
        return self.make(5) + "#" + self.make(5)

    def lines(self, count: int) -> str:
        return "\n".join(self.make(64, ALNUM + "+/") for _ in range(count))


def tokens(seed: int) -> dict[str, str]:
    """One token of every provider, by a name for it."""
    m = Maker(seed).make
    return {
        "openai": "sk-" + m(48),
        "openai-project": "sk-" + "proj-" + m(40) + "_" + m(40) + "-" + m(20),
        "anthropic": "sk-" + "ant-api03-" + m(60) + "-" + m(20) + "AA",
        "moonshot": "sk-" + m(46),
        "google": "AI" + "za" + m(35, ALNUM + "_-"),
        "aws-id": "AK" + "IA" + m(16, string.ascii_uppercase + string.digits),
        "aws-session-id": "AS" + "IA" + m(16, string.ascii_uppercase + string.digits),
        "github-classic": "ghp" + "_" + m(36),
        "github-oauth": "gho" + "_" + m(36),
        "github-app": "ghs" + "_" + m(36),
        "github-fine": "github" + "_pat_" + m(22) + "_" + m(59),
        "gitlab": "glpat" + "-" + m(20),
        "slack-bot": "xoxb" + "-" + m(11, string.digits) + "-" + m(12, string.digits) + "-" + m(24),
        "slack-user": "xoxp" + "-" + m(11, string.digits) + "-" + m(32, HEX),
        "stripe-live": "sk" + "_live_" + m(24),
        "stripe-restricted": "rk" + "_live_" + m(24),
        "stripe-webhook": "wh" + "sec_" + m(32),
        "twilio": "SK" + m(32, HEX),
        "sendgrid": "SG" + "." + m(22) + "." + m(43, ALNUM + "_-"),
        "npm": "npm" + "_" + m(36),
        "pypi": "pypi" + "-AgEIcHlwaS5vcmc" + m(80, ALNUM + "_-"),
        "huggingface": "hf" + "_" + m(34),
        "telegram": m(10, "123456789") + ":" + "AA" + m(33),
        "discord": "MT" + m(22) + "." + m(6) + "." + m(38),
        "digitalocean": "dop" + "_v1_" + m(64, HEX),
        "databricks": "da" + "pi" + m(32, HEX),
        "shopify": "shp" + "at_" + m(32, HEX),
        "square": "sq0" + "csp-" + m(43, ALNUM + "_-"),
        "mailgun": "key" + "-" + m(32, LOWER),
        "mailchimp": m(32, HEX) + "-us" + "12",
        "linear": "lin" + "_api_" + m(40),
        "notion-old": "secret" + "_" + m(43),
        "notion": "ntn" + "_" + m(46),
        "supabase": "sb" + "p_" + m(40, HEX),
        "alibaba": "LT" + "AI" + m(20),
        "tencent": "AK" + "ID" + m(32),
        "volcengine": "AK" + "LT" + m(40),
        "doppler": "dp" + ".pt." + m(43),
        "vault": "hv" + "s." + m(24),
        "age": "AGE-" + "SECRET-KEY-1" + m(58, string.ascii_uppercase + string.digits),
        "jwt": ".".join(("eyJ" + "hbGciOiJIUzI1NiJ9", "eyJ" + m(60), m(43, ALNUM + "_-"))),
        "groq": "gsk" + "_" + m(52),
        "google-oauth": "ya29" + "." + m(60, ALNUM + "_-"),
        "google-client": "GOC" + "SPX-" + m(28),
        "atlassian": "ATATT3" + "xFfGF0" + m(60) + "=" + m(8),
        "grafana": "glsa" + "_" + m(32) + "_" + m(8, HEX),
        "docker": "dckr" + "_pat_" + m(27),
        "figma": "figd" + "_" + m(40),
        "replicate": "r8" + "_" + m(37),
        "vercel": "vcp" + "_" + m(40),
    }


FRAMES = (
    "Please deploy with {} and tell me when it works.",
    "请用 {} 登录服务器，然后看日志。",
    "export X={}\n",
    '{{"note": "use {}", "n": 1}}',
    "config:\n  value: '{}'\n",
    "2026-01-02T03:04:05Z INFO sent {} to worker-3",
    'x = f("{}")  # fix later',
    "> curl https://api.example.com/v1?x={}&y=2",
    "$ tool --x={} | head",
    "（{}）",
    "line\\n{}\\nnext",
    "\x1b[32m{}\x1b[0m",
)
"""Where a token may stand: none of these tells that it is a secret."""


def provider_texts(seed: int) -> list[Planted]:
    """Every provider's token in every frame."""
    return [
        Planted(f"{name}/{number}", frame.format(token), (token,))
        for name, token in tokens(seed).items()
        for number, frame in enumerate(FRAMES)
    ]


def named_texts(seed: int) -> list[Planted]:
    """Secrets that only their name or shape tells, in commands, JSON, YAML, code, logs and Chinese."""
    maker = Maker(seed)
    m, pw = maker.make, maker.password
    made: list[Planted] = []

    def add(label: str, frame: str, *secrets: str, kept: str = "") -> None:
        made.append(Planted(label, frame.format(*secrets), secrets, kept))

    for name in (
        "DB_PASSWORD",
        "MYSQL_ROOT_PASSWORD",
        "SECRET_KEY_BASE",
        "CLIENT_SECRET",
        "REDIS_PASS",
        "PGPASSWORD",
    ):
        add(f"env {name}", f"export {name}={{}}\nnext", pw(), kept="next")
    for name in (
        "API_KEY",
        "CLOUDFLARE_API_TOKEN",
        "AUTH_TOKEN",
        "AZURE_STORAGE_KEY",
        "TWILIO_AUTH_TOKEN",
        "SSH_KEY_V2",
    ):
        if name != "SSH_KEY_V2":
            add(f"env {name}", f"{name}={{}}\n", m(24))
    for name in (
        "password",
        "dbPassword",
        "clientSecret",
        "apiKey",
        "api_key",
        "accessToken",
        "refresh_token",
        "privateKey",
    ):
        add(f"json {name}", f'{{{{"user": "ann", "{name}": "{{}}", "n": 3}}}}', m(18), kept='"user": "ann"')
        add(f"escaped json {name}", f'{{{{\\"{name}\\": \\"{{}}\\", \\"n\\": 3}}}}', m(18), kept='\\"n\\": 3')
        add(f"yaml {name}", f"a: 1\n{name}: {{}}\nb: 2", m(18), kept="\nb: 2")
        add(f"code {name}", f'const {name} = "{{}}";', m(18), kept="const ")
        add(f"flag --{name}", f"tool --{name} {{}} --dry-run", m(18), kept=" --dry-run")
        add(f"flag= --{name}", f"tool --{name}={{}} --dry-run", m(18), kept=" --dry-run")
    add("annotated python", 'password: str = "{}"', pw(), kept="password: str")
    add("annotated rust", 'let token: &str = "{}";', m(20))
    add("subscript", 'os.environ["DB_PASSWORD"] = "{}"', pw())
    add("setter", 'client.set_password("{}")', pw())
    add("comparison", 'if password == "{}":', pw())
    add("short password", "password: {}", "hunter" + "2")
    add("digits", "密码是{}", "83" + "9201")
    add("word in env", "POSTGRES_PASSWORD={}\n", "let" + "mein")
    add("word in json", '{{"password": "{}"}}', "open" + "sesame")
    add("passphrase", 'passphrase: "{}"', "correct horse battery " + "staple")
    add("xml", "<password>{}</password>", pw(), kept="</password>")
    add("markdown", "- **Password**: `{}`", pw())
    add("properties", "spring.datasource.password={}\n", pw())
    add("ini", "[db]\npassword = {}\nhost = h", pw(), kept="host = h")
    add("ruby", ":password => '{}'", pw())
    add("prose", "the password is {} for now", pw(), kept="for now")
    for phrase in (
        "密码是 {}，请登录",
        "密码：{}。",
        "口令: {}",
        "数据库密码为{}",
        "令牌：{}",
        "密钥={}",
        "密码（root）：{}",
        "密码改成{}吧",
    ):
        add(f"chinese {phrase}", phrase, m(12))
    add("quoted chinese", "密码是“{}”", pw())
    for scheme in (
        "postgres",
        "postgresql+asyncpg",
        "mysql",
        "mongodb+srv",
        "redis",
        "amqp",
        "https",
        "ftp",
        "smtp",
    ):
        add(f"url {scheme}", f"{scheme}://svc:{{}}@db.example.com/app", m(14), kept="@db.example.com/app")
    add("url without user", "redis://:{}@cache:6379/0", m(14), kept="@cache:6379/0")
    add("url token", "git clone https://{}@git.example.com/a.git", m(30))
    add("url symbols", "postgres://svc:{}@db/app", "p%40ss!" + m(6))
    add("jdbc", "jdbc:mysql://h:3306/db?user=a&password={}&ssl=true", m(12), kept="&ssl=true")
    add("ado", "Server=h;User Id=a;Password={};Encrypt=true;", m(12), kept=";Encrypt=true;")
    add("ado pwd", "Driver=x;Uid=a;Pwd={};", m(12))
    add(
        "azure",
        "DefaultEndpointsProtocol=https;AccountName=a;AccountKey={};EndpointSuffix=core",
        m(86) + "==",
    )
    add(
        "sas",
        "https://a.blob.core.example.com/c?sv=2022-11-02&sp=r&sig={}",
        quote(m(43, ALNUM + "+/") + "=", safe=""),
    )
    add("curl user", "curl -u ann:{} https://x.example.com", pw())
    add("curl --user", "curl --user ann:{} https://x.example.com", pw())
    add("mysql -p", "mysql -h h -u root -p{} app", m(12), kept=" app")
    add("docker login", "docker login -u ann -p {} registry.example.com", m(16), kept="registry.example.com")
    add("sshpass", "sshpass -p '{}' ssh ann@h", pw(), kept="ssh ann@h")
    add("netrc", "machine h.example.com login ann password {}", "letme" + "in", kept="login ann")
    add("pgpass", "db.example.com:5432:app:ann:{}", m(12))
    add("bearer", "Authorization: Bearer {}", m(40))
    add("bearer short", 'headers = {{"Authorization": "Bearer {}"}}', m(12))
    add("bearer alone", "sent Bearer {} upstream", m(32))
    add("token scheme", "Authorization: token {}", m(40, HEX))
    add("x-api-key", "-H 'X-Api-Key: {}'", m(32, HEX))
    basic = base64.b64encode(f"ann:{m(10)}".encode()).decode()
    add("basic", "Authorization: Basic {}", basic)
    add("cookie", "Cookie: theme=dark; sessionid={}; lang=zh", m(26), kept="theme=dark")
    add("set-cookie", "Set-Cookie: sid={}; Path=/; HttpOnly; SameSite=Lax", m(26), kept="Path=/; HttpOnly")
    add("oauth", "https://app.example.com/callback?code={}&state=" + m(4), m(40))
    add(
        "aws pair",
        "aws_access_key_id = {}\naws_secret_access_key = {}",
        "AK" + "IA" + m(16, string.ascii_uppercase),
        m(40, ALNUM + "+/"),
    )
    add("aws pair unnamed", "{} {}", "AK" + "IA" + m(16, string.ascii_uppercase), m(40, ALNUM))
    add("alibaba pair", "{},{}", "LT" + "AI" + m(20), m(30))
    add("words", "the API key is {}", m(24))
    add("words with colon", "API Key: {}", m(24))
    add("table", "| password | {} |", m(16), kept="| password |")
    add("dockerfile", "ENV API_TOKEN {}\nRUN x", m(24), kept="RUN x")
    add("configure", "aws configure set aws_secret_access_key {}", m(40, ALNUM + "+/"))
    add("arrow", "passwd -> {}", m(12))
    add("sql", "ALTER USER ann PASSWORD '{}'", m(14))
    add("kubernetes env", "- name: DB_PASSWORD\n  value: {}\n- name: X", m(16), kept="- name: X")
    add("json name and value", '{{"name": "API_KEY", "value": "{}"}}', m(24))
    add("piped", "echo {} | docker login -u ann --password-stdin", m(24), kept="docker login -u ann")
    add("private key in chinese", "私钥：{}", m(32))
    add("heroku", "HEROKU_API_KEY={}", "-".join(m(n, HEX) for n in (8, 4, 4, 4, 12)))
    add("slack hook", "https://hooks.slack.com/services/T0" + "1/B02/{}", m(24))
    add("url-encoded", "password%3D{}%26user%3Dann", m(14), kept="%26user%3Dann")
    add("url-encoded token", "x%3D{}", "ghp" + "_" + m(36))
    add("continued", "export TOKEN={}\\\n{}\n", m(16), m(16))
    add("concatenated", 'token = "{}" + \\\n    "{}"', m(14), m(14))
    add("adjacent strings", 'api_key = (\n    "{}"\n    "{}"\n)', m(14), m(14))
    add("split provider token", 'x = "' + "gh" + 'p_{}" + "{}"', m(18), m(18))
    add("split head", 'x = "' + "sk-ant" + '-api03-" + "{}"', m(60))
    add("yaml block", "password: |\n  {}\nnext: 1", m(20), kept="next: 1")
    inner = "ghp" + "_" + m(36)
    add("base64", "blob {}", base64.b64encode(f'{{"x": "{inner}"}}'.encode()).decode())
    wrapped = base64.encodebytes(
        f"some text first\nDB_PASSWORD={pw()}\nand more text after it, to wrap".encode()
    ).decode()
    add("wrapped base64", "blob:\n{}\nend", wrapped.strip(), kept="end")
    value = base64.b64encode(pw().encode()).decode()
    add(
        "kubernetes",
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: x\ndata:\n  foo: {}\n",
        value,
        kept="name: x",
    )
    add("sudo", "echo {} | sudo -S apt update", m(12), kept=" | sudo -S apt update")
    add("chpasswd", "echo 'root:{}' | chpasswd", m(12), kept="'root:")
    add("identified by", "CREATE USER a IDENTIFIED BY '{}';", pw(), kept="CREATE USER a")
    add("wrapped by a terminal", "export TOKEN={}\n{}\nnext", m(30), m(20), kept="\nnext")
    add("coloured", "\x1b[1mpassword\x1b[0m: \x1b[33m{}\x1b[0m ok", m(16), kept="\x1b[0m ok")
    add("csv", "user,password,role\nann,{},dev\nbob,{},ops\n\nend", m(16), m(16), kept=",dev\nbob,")
    add("markdown table", "| user | password |\n|---|---|\n| ann | {} |\n\nend", m(12), kept=" |\n\nend")
    add("terraform", 'variable "db_password" {{\n  default = "{}"\n}}', pw())
    add("xml attribute", '<add key="ApiSecret" value="{}"/>', m(20), kept='"/>')
    add(
        "kubernetes json",
        '{{"kind": "Secret", "data": {{"a": "{}"}}}}',
        m(20),
        kept='"kind": "Secret"',
    )
    add("changed", "the password was changed to {}, sorry", m(16), kept=", sorry")
    add("for", "the password for the staging db is {}", m(16))
    add("pair", "get(url, auth=('ann', '{}'))", pw(), kept="('ann', ")
    add("below", "password:\n{}\nthanks", m(16), kept="\nthanks")
    add("url key", "https://example.com/?a=1&key={}", m(40))
    for head in (
        "RSA PRIVATE KEY",
        "EC PRIVATE KEY",
        "OPENSSH PRIVATE KEY",
        "PRIVATE KEY",
        "PGP PRIVATE KEY BLOCK",
    ):
        body = maker.lines(6)
        begin, end = "-----BEGIN " + head + "-----", "-----END " + head + "-----"
        add(f"pem {head}", "key:\n" + begin + "\n{}\n" + end + "\nbye", body, kept="bye")
        flat = body.replace("\n", "\\n")
        add(f"flat pem {head}", '"key": "' + begin + "\\n{}\\n" + end + '\\n", "n": 1', flat, kept='"n": 1')
        add(f"cut pem {head}", begin + "\n{}", body)
    return made
