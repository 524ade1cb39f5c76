"""Tokens of known providers: how each begins and goes on."""

from __future__ import annotations

import re
from typing import NamedTuple

from stages.secret_values import mixed, random_looking


class Span(NamedTuple):
    """A secret: bytes ``[start, end)`` to replace, what it is, and its value (joined and decoded if it was
    split).
    """

    start: int
    end: int
    kind: str
    value: bytes


# (kind, head, rest, strict): strict = the rest must look random, because the head alone says little.
_TOKENS: tuple[tuple[str, str, str, bool], ...] = (
    ("anthropic-key", r"sk-ant-", r"[A-Za-z0-9_-]{16,}", False),
    ("openai-key", r"sk-(?:proj|svcacct|admin|or-v1|None)-", r"[A-Za-z0-9_-]{16,}", False),
    ("stripe-key", r"[sr]k_(?:live|test|prod)_", r"[A-Za-z0-9]{10,}", False),
    ("api-key", r"sk[-_]", r"[A-Za-z0-9_-]{17,}", True),
    ("stripe-key", r"whsec_", r"[A-Za-z0-9+/=_-]{16,}", False),
    ("google-key", r"AIza", r"[A-Za-z0-9_-]{30,}", False),
    ("google-key", r"GOCSPX-", r"[A-Za-z0-9_-]{20,}", False),
    ("aws-access-key", r"A(?:KIA|SIA|GPA|IDA|ROA|NPA|NVA)", r"[A-Z0-9]{16}(?![A-Za-z0-9])", False),
    ("github-token", r"gh[pousr]_", r"[A-Za-z0-9]{20,}", False),
    ("github-token", r"github_pat_", r"[A-Za-z0-9_]{20,}", False),
    ("gitlab-token", r"gl(?:pat|dt|rt|ptt|ft|imt|agent|soat|cbt)-", r"[A-Za-z0-9_.-]{16,}", False),
    ("slack-token", r"xox[a-z](?:\.xox[a-z])?-", r"[A-Za-z0-9-]{10,}", False),
    ("slack-token", r"xapp-", r"[A-Za-z0-9-]{16,}", False),
    ("twilio-key", r"(?:SK|AC)", r"[0-9a-f]{32}(?![A-Za-z0-9])", False),
    ("npm-token", r"npm_", r"[A-Za-z0-9]{30,}", True),
    ("pypi-token", r"pypi-", r"[A-Za-z0-9_-]{16,}", True),
    ("huggingface-token", r"(?:hf_|api_org_)", r"[A-Za-z0-9]{20,}", True),
    ("digitalocean-token", r"do[opr]_v1_", r"[0-9a-f]{32,}", False),
    ("databricks-token", r"dapi", r"[0-9a-f]{32}(?:-\d)?(?![A-Za-z0-9])", False),
    ("shopify-token", r"shp(?:at|ca|pa|ss)_", r"[0-9a-fA-F]{20,}", False),
    ("square-token", r"sq0[a-z]{3}-", r"[A-Za-z0-9_-]{20,}", False),
    ("square-token", r"EAAA[A-Za-z]", r"[A-Za-z0-9_-]{50,}", True),
    ("facebook-token", r"EAA[A-Z]", r"[A-Za-z0-9]{60,}", True),
    ("mailgun-key", r"key-", r"[0-9a-z]{32}(?![A-Za-z0-9])", True),
    ("mailchimp-key", r"", r"[0-9a-f]{32}-us\d{1,2}(?![A-Za-z0-9])", False),
    ("linear-key", r"lin_(?:api|oauth)_", r"[A-Za-z0-9]{20,}", False),
    ("notion-token", r"(?:secret|ntn)_", r"[A-Za-z0-9]{30,}", True),
    ("supabase-token", r"sb(?:p|_secret)_", r"[A-Za-z0-9_]{16,}", True),
    ("alibaba-access-key", r"LTAI", r"[A-Za-z0-9]{16,24}(?![A-Za-z0-9])", False),
    ("tencent-access-key", r"AKID", r"[A-Za-z0-9]{28,36}(?![A-Za-z0-9])", False),
    ("volcengine-access-key", r"AKLT", r"[A-Za-z0-9]{30,60}(?![A-Za-z0-9])", False),
    ("vercel-token", r"vc[abcikpr]_", r"[A-Za-z0-9]{20,}", True),
    ("vercel-token", r"vercel_(?:blob_rw_)?", r"[A-Za-z0-9_]{20,}", True),
    ("cloudflare-key", r"v1\.0-", r"[0-9a-f]{20,}-[0-9a-f]{100,}", False),
    ("age-key", r"AGE-SECRET-KEY-1", r"[0-9A-Za-z]{30,}", False),
    ("grafana-token", r"gl(?:sa|c)_", r"[A-Za-z0-9_=+/]{20,}", True),
    ("groq-key", r"gsk_", r"[A-Za-z0-9]{20,}", True),
    ("xai-key", r"xai-", r"[A-Za-z0-9]{40,}", True),
    ("perplexity-key", r"pplx-", r"[A-Za-z0-9]{30,}", True),
    ("replicate-token", r"r8_", r"[A-Za-z0-9]{30,}", True),
    ("atlassian-token", r"ATATT3", r"[A-Za-z0-9_=-]{40,}", False),
    ("postman-key", r"PMAK-", r"[0-9a-f]{20,}-[0-9a-f]{20,}", False),
    ("newrelic-key", r"NRAK-", r"[A-Z0-9]{20,}", False),
    ("sentry-token", r"sntry[su]_", r"[A-Za-z0-9+/=_]{30,}", False),
    ("figma-token", r"figd_", r"[A-Za-z0-9_-]{30,}", False),
    ("docker-token", r"dckr_(?:pat|oat)_", r"[A-Za-z0-9_-]{16,}", False),
    ("planetscale-token", r"pscale_(?:tkn|pw|oauth)_", r"[A-Za-z0-9_.=-]{20,}", False),
    ("rubygems-key", r"rubygems_", r"[0-9a-f]{40,}", False),
    ("netlify-token", r"nfp_", r"[A-Za-z0-9]{30,}", True),
    ("tailscale-key", r"tskey-[a-z]{2,10}-", r"[A-Za-z0-9-]{16,}", False),
    ("circleci-token", r"CCI(?:PAT|PRJ)_", r"[A-Za-z0-9_]{20,}", False),
    ("pulumi-token", r"pul-", r"[0-9a-f]{40}(?![A-Za-z0-9])", False),
    ("heroku-key", r"HRKU-", r"[A-Za-z0-9_-]{30,}", False),
    ("baidu-key", r"ALTAK-", r"[A-Za-z0-9]{16,40}/[0-9a-f]{40}(?![A-Za-z0-9])", False),
    ("dingtalk-key", r"SEC", r"[0-9a-f]{64}(?![A-Za-z0-9])", False),
    ("vault-token", r"hv[sbr]\.", r"[A-Za-z0-9_-]{20,}", False),
    ("doppler-token", r"dp\.(?:pt|st|ct|sa|scim|audit)\.", r"(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{20,}", False),
    ("sendgrid-key", r"SG\.", r"[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{30,60}", False),
    ("google-token", r"ya29\.", r"[A-Za-z0-9_-]{20,}", False),
    ("telegram-token", r"", r"[0-9]{8,10}:AA[A-Za-z0-9_-]{32,35}(?![A-Za-z0-9_-])", False),
    ("discord-token", r"", r"[MNO][A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}", False),
    ("jwt", r"eyJ", r"[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?", False),
)
_COMPILED = tuple(
    (kind, re.compile((head + f"({rest})").encode()), strict) for kind, head, rest, strict in _TOKENS
)
_PARTS = re.compile(rb"[_-]")


def token_at(data: bytes, at: int) -> Span | None:
    """The provider token that starts exactly at ``at``, if one does."""
    for kind, pattern, strict in _COMPILED:
        match = pattern.match(data, at)
        if match and not (strict and not _made_by_machine(match[1])):
            return Span(at, match.end(), kind, match[0])
    return None


def _made_by_machine(rest: bytes) -> bool:
    """Whether a token's rest looks random and has one long part of letters and digits."""
    return random_looking(rest) and any(len(p) >= 12 and mixed(p) for p in _PARTS.split(rest[:512]))


_HEADS = "|".join(head for _, head, _, strict in _TOKENS if len(head) > 2 and not strict)
_CUT = re.compile(rf"(?<![A-Za-z0-9])(?:{_HEADS})(?=[A-Za-z_-]*\d)[A-Za-z0-9_.-]{{3,}}$")


def without_cut_token(text: str) -> str:
    """A text that another program has cut, such as a title, without what is left of a token at its end."""
    return _CUT.sub("…", text)
