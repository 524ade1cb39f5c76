"""What only looks like a secret and must be kept, put together from a seed at run time."""

import base64
import random

from tests.secrets import ALNUM, HEX, UPPER, Mint


def lookalikes(seed: int) -> tuple[str, ...]:
    """What must be kept byte for byte: hashes, commit ids, UUIDs, versions, identifiers, placeholders, paths."""
    mint = Mint(random.Random(f"lookalikes {seed}"))
    return (*_digests(mint), *_ids(mint), *_near_misses(mint), *_STANDING_FOR, *_SAID)


def _digests(mint: Mint) -> tuple[str, ...]:
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


def _ids(mint: Mint) -> tuple[str, ...]:
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


def _near_misses(mint: Mint) -> tuple[str, ...]:
    """What a rule for something else must not take: tables, next lines, signs and words that only look alike."""
    return (
        "| field | password |\n|-------|----------|\n| type | required |\n| size | 8-64 |",
        "user,password\nann,required\nbob,missing",
        f"name,token,sha\nshop,none,{mint.of(HEX, 40)}",
        f"parser,token\nlexer,{mint.of(HEX, 40)}",
        f"export TOKEN=$GITHUB_TOKEN\n{mint.of(HEX, 40)}",
        f"password:\n  {mint.of(HEX, 40)}",
        "password:\n  required: true\n  length: 12",
        f"objects/4/0{mint.of(HEX, 38)}",
        f"cache/ab4/0{mint.of(ALNUM, 40)}/index",
        f"https://shop.dev/hook/{mint.uuid()}",
        f"https://shop.dev/list?key={mint.uuid()}",
        "https://shop.dev/list?key=price-descending&page=2",
        "see app.log:5432:ERROR:root:refused to connect",
        "the library identified by 'name'",
        "the row identified by 'order_id'",
        "echo deb http://deb.shop.dev stable main | sudo tee /etc/apt/sources.list.d/shop.list",
        "pw = sync_playwright().start()",
        "cl_pw=cl_pw",
        "pw=1024",
        "the password for this account is required",
        "the token for the test was changed to uppercase",
        "密码改成了必填",
        "密码格式不对",
        "MNEMONIC=mov",
        'Mnemonic: "this is that"',
        f"SECTION_{mint.of(UPPER, 24)}",
        "export TASK_SK=sk_variant_of_the_task_name",
        "requires auth=(user, password) of the caller",
        "the password's length is 12 characters",
        '{"kind": "SecretStore", "data": {"name": "shop-settings"}}',
        '<add key="SecretName" value="shop-settings"/>',
        "write `&lt;private&gt;` around it",
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
