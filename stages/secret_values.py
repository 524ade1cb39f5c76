"""Is this value a secret? Judges what stands behind a telling name, and the name itself.

Everything works on UTF-8 bytes. A judgement never looks at more than 512 bytes of a value.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as Base64Error
from enum import IntEnum
from functools import lru_cache
from itertools import pairwise

VALUE_BYTES = 512
"""A value is judged by, and a bare one cut after, this many bytes."""


class Name(IntEnum):
    """How much a name tells about its value."""

    NOTHING = 0
    AUTH = 1  # auth, credentials: often a mode or an object
    TOKEN = 2  # token, api key, …: the value must look made by a machine
    PASSWORD = 3  # password, secret, …: also a value that a person made up
    PHRASE = 4  # passphrase, mnemonic: words with spaces too


class Form(IntEnum):
    """How the value is written: the tighter the form, the less the value itself must prove."""

    SPACED = 0  # name value: only what looks random
    CALLED = 1  # password("value"), get("password", "value")
    LOOSE = 2  # name: value, name = value, "the password is value"
    TIGHT = 3  # name=value, --name value, .netrc
    SHELL = 4  # NAME=value: everything up to the next space belongs to it
    QUOTED = 5  # name = "value"


_WORD = re.compile(rb"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_NEUTRAL = frozenset(
    b"value prod production dev develop staging stage test testing live old new current next base string "
    b"str text raw "
    b"plain plaintext default main primary secondary backup local enc b64 base64 v".split()
)
_DEFUSED = frozenset(
    b"no is has use uses show hide forgot forget reset require requires required need needs allow enable "
    b"enabled disable "
    b"validate check hash hashed max min num count total input output prompt completion public".split()
)
_PASSWORD_ENDS = (b"password", b"passwd", b"passwort", b"pwd", b"passcode", b"secret", b"secretkey")
_TOKEN_ENDS = (
    b"token apikey accesskey privatekey authkey accountkey encryptionkey signingkey servicekey masterkey "
    b"sharedkey sharedaccesskey sshkey deploykey storagekey sessionkey serverkey clientkey licensekey "
    b"hmackey jwtkey "
    b"cryptkey securitykey subscriptionkey consumerkey adminkey appkey rootkey dbkey databasekey "
    b"authorization "
    b"passwords".split()
)
_AUTH_WORDS = frozenset(b"auth credential credentials cred creds".split())
_PASS_BEFORE = frozenset(
    b"db user root ssh smtp mail email ftp admin my mysql pg redis login sudo proxy key require".split()
)


@lru_cache(maxsize=4096)
def name_strength(name: bytes) -> Name:
    """What an identifier (``DB_PASSWORD``, ``myApiKey``, ``x-auth-token``) tells about its value."""
    words = [word.lower() for word in _WORD.findall(name)]
    while words and (words[-1] in _NEUTRAL or words[-1].isdigit()):
        words.pop()
    if not words or not _DEFUSED.isdisjoint(words):
        return Name.NOTHING
    last, joined = words[-1], b"".join(words)
    if joined.endswith((b"passphrase", b"mnemonic", b"seedphrase")):
        return Name.PHRASE
    if joined.endswith(_PASSWORD_ENDS) or last in (b"pw", b"psk") or joined in (b"pass", b"pword"):
        return Name.PASSWORD
    if last == b"pass" or (last.endswith(b"pass") and last[:-4] in _PASS_BEFORE):
        return Name.PASSWORD
    if joined.endswith(tuple(_TOKEN_ENDS)):
        return Name.TOKEN
    return Name.AUTH if last in _AUTH_WORDS else Name.NOTHING


_PLACEHOLDER = re.compile(
    rb"(?:[xX*.#?_=+~-]{3,}$|<|\$\{|\$\(|\$\$?[A-Za-z_]\w*$|\$\d$|%\w{1,64}%$|(?:%[sdr][:@/]?){1,4}$|%\(|"
    rb"\{\{|\{[^{}\s]{0,64}\}$|#\{|"
    rb"\[|__\w{1,64}__$|@@?\w{1,64}@@?$|\\\\?[({]|\$env:|!(?:vault|secret|ref|sub|getatt)\b|data:image/)"
    rb"|(?:your|put|insert|enter|replace|some|my)[-_ ]?(?:[a-z]{2,16}[-_ ]?){0,6}$|(?:.{0,64}"
    rb"[-_ .])?your[-_ ]"
    rb"|.{0,64}(?:placeholder|redacted|changeme|change[-_]me|change[-_]this|replace[-_]me|x{5,}|\*{3,}|"
    rb"\.\.\.|\xe2\x80\xa6)",
    re.IGNORECASE | re.DOTALL,
)
_ORDINARY = frozenset(
    b"string str text none null nil undefined true false yes no on off required optional inherit basic "
    b"bearer digest "
    b"password passwd passphrase pass pwd secret token apikey api_key api-key any object unknown number "
    b"bytes int integer "
    b"bool boolean float char varchar default empty value hidden masked encrypted input prompt stdin env "
    b"environment file "
    b"plain plaintext example sample dummy foobar missing invalid expired wrong incorrect correct valid set "
    b"unset todo tbd "
    b"auto never always only this that the not and with from for fixme self const final void let var type "
    b"username user "
    b"option options flag flags argument arguments generated disabled enabled provided reset changed change "
    b"accepted denied failed ok error".split()
)
_TYPE = re.compile(
    rb"(?:[ui]?int|u|i|f|float|double|n?var(?:char2?|binary)|char|string|bytes|str|text|optional|"
    rb"nonempty\w*|sha|md|hmac|"
    rb"aes|rs|hs|es|oauth|v|utf|base|ed)[-_]?\d{1,4}(?:[-_]?(?:t|hex|gcm|cbc|sum|hash|url))?$",
    re.IGNORECASE,
)
_IDENTIFIERS = re.compile(rb"[A-Za-z_$][A-Za-z_$0-9]*(?:(?:\.|::|->|\?\.)[A-Za-z_$][A-Za-z_$0-9]*)+$")
_WORDS = re.compile(rb"[A-Za-z]+(?:[-_.:/+*][A-Za-z]+)*[-_.:/]?$")
_CONSTANT = re.compile(rb"[A-Z][A-Z]+[0-9]?(?:_[A-Z]+[0-9]?|_[0-9]{1,2})+$")
_PATH = re.compile(
    rb"(?:(?:~|\.{1,2})?/|[A-Za-z]:[\\/]|\.\.?\\)[\w.@ ~+-]{0,40}(?:[\\/]+[\w.@~+-]{0,40})*$"
    rb"|[\w./~@-]{0,200}\.(?:pem|json|ya?ml|toml|txt|key|pub|crt|cer|env|ini|conf|cfg|py|ts|tsx|js|jsx|go|"
    rb"rs|java|md|sh|"
    rb"p12|pfx|jks|gpg|asc|html|css|vue|log|db|sqlite|csv|lock)(?::\d{1,6}){0,2}$"
)
_TYPE_NAME = re.compile(
    rb"[\w.:]{0,200}(?:Private|Public|Secret|Api|Access)?(?:Key|Token|Secret|Password|Credentials?)"
    rb"(?:[A-Z][a-z]+)*[?;]?$"
)
_URL = re.compile(rb"[a-z][a-z0-9+.-]{1,20}://", re.IGNORECASE)
_SYMBOLS = re.compile(rb"[A-Za-z][!@#$%^&~?+][A-Za-z]|[a-z][A-Z][a-z]{1,16}[!@#$%^&]|[A-Za-z]{4}[!@#$%^&]{2}")
_NUMERIC = re.compile(rb"[-+]?[\d._,:/x%-]+(?:[kKmMgG]?[bB]?|ms|s|h|d|px|%)$")
_DATE = re.compile(rb"\d{4}-\d\d-\d\d(?:[T ][\d:.]+(?:Z|[+-]\d\d:?\d\d)?)?$|\d{1,2}:\d\d(?::\d\d)?$")
_VERSION = re.compile(rb"[v^~=]?\d+(?:\.[\dx*]+)+(?:-[a-z]+[.\d]*)?$")
_INTEGRITY = re.compile(rb"sha(?:1|256|384|512)[-:]", re.IGNORECASE)
UUID_OR_HEX = re.compile(rb"(?:[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9a-f]{16,})$", re.IGNORECASE)
_TELLING = re.compile(rb"pass(?:word|wd|phrase)?|pwd|secret|token|key|auth|cred", re.IGNORECASE)


def _turns(value: bytes) -> int:
    """Changes between lower case, upper case and digits, separators skipped: what random text has many of."""
    kinds = value.translate(_KIND_TABLE, _KIND_DROP)
    return sum(left != right for left, right in pairwise(kinds))


_KIND_TABLE = bytes(
    1 if 48 <= c <= 57 else 2 if 65 <= c <= 90 else 3 if 97 <= c <= 122 else 4 for c in range(256)
)
_KIND_DROP = bytes(c for c in range(256) if _KIND_TABLE[c] == 4)


def random_looking(value: bytes) -> bool:
    """Whether letters and digits alternate as no word, name or number does (at least 8 bytes)."""
    value = value[:VALUE_BYTES]
    if len(value) < 8:
        return False
    turns = _turns(value)
    if any(48 <= c <= 57 for c in value):
        return turns >= 3 and turns * 8 >= len(value)
    return len(value) >= 12 and turns >= 4 and turns * 5 >= len(value) * 2


def mixed(value: bytes) -> bool:
    """Whether the value has letters and digits."""
    return any(48 <= c <= 57 for c in value) and any(c | 32 in range(97, 123) for c in value)


def placeholder(value: bytes) -> bool:
    """Whether the value only stands for one: ``${TOKEN}``, ``<your-token>``, ``xxxx``, ``changeme``, our own
    marks.
    """
    return bool(_PLACEHOLDER.match(value))


def user_and_password(value: bytes) -> bool:
    """Whether base64 text decodes to printable ``user:password``."""
    if len(value) < 8 or len(value) > VALUE_BYTES:
        return False
    try:
        plain = b64decode(value + b"=" * (-len(value) % 4), validate=True)
    except (Base64Error, ValueError):
        return False
    return b":" in plain and plain.isascii() and plain.decode("ascii").isprintable()


def _never(value: bytes) -> bool:
    return bool(
        placeholder(value)
        or value.lower() in _ORDINARY
        or _INTEGRITY.match(value)
        or _DATE.match(value)
        or _VERSION.match(value)
        or _TYPE.match(value)
        or _CONSTANT.match(value)
        or (_URL.match(value))
        or (_PATH.match(value) and not random_looking(value.rsplit(b"/", 1)[-1]))
    )


def is_secret(value: bytes, name: Name, form: Form) -> bool:
    """Whether ``value``, written in ``form`` behind a name of strength ``name``, has to go."""
    value = value[:VALUE_BYTES]
    if name == Name.NOTHING or len(value) < 4 or _never(value):
        return False
    if form == Form.SPACED and (UUID_OR_HEX.match(value) or not (random_looking(value) and mixed(value))):
        return False
    if form != Form.QUOTED and _is_identifier(value):
        return False
    if b" " in value or b"\t" in value:
        return _sentence(value, name)
    return _password(value, name, form) if name >= Name.PASSWORD else _token(value, name, form)


def _is_identifier(value: bytes) -> bool:
    return bool(_TYPE_NAME.match(value) or (_IDENTIFIERS.match(value) and not random_looking(value)))


def _sentence(value: bytes, name: Name) -> bool:
    """A quoted value with spaces: a passphrase, or a label such as "Enter your password"."""
    words = value.split()
    if name == Name.PHRASE:
        return len(words) >= 3
    return name >= Name.PASSWORD and len(words) <= 6 and any(mixed(w) and not _never(w) for w in words)


def _password(value: bytes, name: Name, form: Form) -> bool:
    if _WORDS.match(value):
        if random_looking(value):
            return True
        if form <= Form.LOOSE or (_TELLING.search(value) and (form == Form.TIGHT or not value.islower())):
            return False
        return len(value) >= (4 if name == Name.PASSWORD else 8)
    if _NUMERIC.match(value):
        return value.isdigit()
    if not any(48 <= c <= 57 or 97 <= c | 32 <= 122 for c in value):
        return False  # signs only, or Chinese: a label such as "请输入密码"
    if form <= Form.LOOSE and not any(48 <= c <= 57 for c in value):
        return random_looking(value) or bool(_SYMBOLS.search(value))
    return True


def _token(value: bytes, name: Name, form: Form) -> bool:
    if len(value) < 8 or value.isdigit() or _NUMERIC.match(value):
        return False
    if user_and_password(value) or random_looking(value):
        return True
    if name == Name.AUTH:
        return False
    if UUID_OR_HEX.match(value):
        return True
    return form > Form.LOOSE and mixed(value) and not _TELLING.search(value)
