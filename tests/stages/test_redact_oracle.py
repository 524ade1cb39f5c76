"""detect-secrets as a second opinion: it finds the planted secrets, and nothing once they are redacted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from detect_secrets.core import scan
from detect_secrets.settings import transient_settings

from stages.redact import Redactor
from tests.stages.planted_secrets import Planted, named_texts, provider_texts

PLUGINS = (
    "ArtifactoryDetector",
    "AWSKeyDetector",
    "AzureStorageKeyDetector",
    "BasicAuthDetector",
    "CloudantDetector",
    "DiscordBotTokenDetector",
    "GitHubTokenDetector",
    "GitLabTokenDetector",
    "JwtTokenDetector",
    "KeywordDetector",
    "MailchimpDetector",
    "NpmDetector",
    "OpenAIDetector",
    "PrivateKeyDetector",
    "PypiTokenDetector",
    "SendGridDetector",
    "SlackDetector",
    "SoftlayerDetector",
    "SquareOAuthDetector",
    "StripeDetector",
    "TelegramBotTokenDetector",
    "TwilioKeyDetector",
)


ALLOWED: frozenset[str] = frozenset()
"""Look-alikes that the oracle takes for secrets."""


@pytest.fixture(scope="module", autouse=True)
def plugins() -> Iterator[None]:
    with transient_settings({"plugins_used": [{"name": name} for name in PLUGINS]}):
        yield


def findings(text: str) -> set[str]:
    return {str(found.secret_value) for line in text.splitlines() for found in scan.scan_line(line)}


def test_the_oracle_sees_the_planted_secrets() -> None:
    seen = [planted for planted in (*provider_texts(11), *named_texts(11)) if findings(planted.text)]
    assert len(seen) > 200


@pytest.mark.parametrize(
    "planted", [*provider_texts(12), *named_texts(12)], ids=lambda planted: planted.label
)
def test_the_oracle_finds_nothing_in_redacted_text(planted: Planted) -> None:
    redacted = Redactor(b"key")(planted.text)
    left = {found for found in findings(redacted) if "[secret:" not in found and "secret:" not in found}
    assert not {
        found for found in left if any(found in secret or secret in found for secret in planted.secrets)
    }
