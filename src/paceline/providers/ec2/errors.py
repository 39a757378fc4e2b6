"""What AWS and the way to it say, in our words, with what to do next."""

from __future__ import annotations

import importlib
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from paceline.errors import (
    AlreadyThere,
    CloudError,
    EnvironmentFault,
    NoCapacity,
    NotPermitted,
    NotThere,
    PacelineError,
    QuotaExceeded,
    StillInUse,
    TokenSpent,
    TransportError,
)
from paceline.model.ec2 import Request

_SIGN_IN = (
    "set up an account with `aws configure`, sign in with `aws sso login`, or name a profile with "
    "AWS_PROFILE; `aws sts get-caller-identity` shows who you are"
)
_NEW_KEYS = (
    "the keys are wrong, expired or for another partition: sign in again (`aws sso login`, or "
    "`aws configure`); a clock that is off by minutes does the same"
)
_RIGHTS = "ask whoever runs the account for this right; `paceline doctor --iam` prints all it takes"
_MORE = (
    "ask AWS for more under Service Quotas, Amazon EC2 (a day or two), or take fewer or smaller "
    "hosts"
)
_ROOM = (
    "try another zone (`cluster: {zones: […]}`), several types (`cluster: {instance_type: [a, b]}`)"
    ", or `min_nodes`; capacity comes and goes within minutes"
)
_SLOWER = "AWS asks for fewer calls; wait a minute and try again"

_BAD_CREDENTIALS = (
    "AuthFailure|InvalidClientTokenId|SignatureDoesNotMatch|UnrecognizedClient.*|ExpiredToken.*|"
    "RequestExpired|InvalidAccessKeyId|MissingAuthenticationToken|IncompleteSignature"
)
_OVERLOADED = (
    "Throttling.*|TooManyRequests.*|SlowDown|ServiceUnavailable|Unavailable|InternalError|"
    "InternalFailure"
)

# The first pattern that fits a code decides: the class, what to say before AWS's words, a hint.
_KINDS: tuple[tuple[str, type[PacelineError], str, str | None], ...] = (
    (_BAD_CREDENTIALS, EnvironmentFault, "AWS does not accept the credentials", _NEW_KEYS),
    (r"UnauthorizedOperation|AccessDenied.*|Client\.UnauthorizedOperation", NotPermitted,
     "the account does not allow", _RIGHTS),
    (r"OptInRequired|PendingVerification|Blocked", CloudError, "the account is not ready for EC2",
     "AWS is still checking the account, or it has to accept terms: look into the AWS console"),
    (r".*LimitExceeded|MaxSpotInstanceCountExceeded|.*QuotaExceeded", QuotaExceeded,
     "the account may not have so many", _MORE),
    (r"Insufficient.*|SpotMaxPriceTooLow|Unsupported|UnfulfillableCapacity", NoCapacity,
     "there is no room", _ROOM),
    (r".*\.Duplicate|.*AlreadyExists", AlreadyThere, "there is one already", None),
    (r".*\.InUse|DependencyViolation|VolumeInUse|ResourceInUse.*|IncorrectState", StillInUse,
     "it is still in use", None),
    (r"Idempotent.*", TokenSpent, "this was asked for before", None),
    (r".*NotFound.*|.*\.Unknown|NoSuch.*|.*\.Malformed", NotThere, "it is not there", None),
    (_OVERLOADED, CloudError, "AWS is overloaded", _SLOWER),
)  # fmt: skip
_THROTTLED = ("RequestLimitExceeded",)
_LOADING = threading.Lock()
_ENCODED = re.compile(r"\s*Encoded authorization failure message:.*", re.DOTALL)


def load_boto() -> None:
    """Import boto3, one thread at a time: two at once may each wait for a part that the other has.

    It takes half a second, which only those pay who use it.
    """
    with _LOADING:
        for name in ("boto3.exceptions", "botocore.config"):
            importlib.import_module(name)


@contextmanager
def translated(request: Request, region: str) -> Iterator[None]:
    """Turn what boto3 raises inside into errors of ours."""
    load_boto()
    import boto3.exceptions  # noqa: PLC0415 - loaded already
    import botocore.exceptions as boto  # noqa: PLC0415

    try:
        yield
    except boto.ClientError as error:
        raise refused(error.response.get("Error", {}), request) from error
    except (
        boto.NoCredentialsError,
        boto.PartialCredentialsError,
        boto.CredentialRetrievalError,
        boto.ProfileNotFound,
        boto.SSOError,
        boto.UnauthorizedSSOTokenError,
        boto.TokenRetrievalError,
        boto.ConfigParseError,
        boto.ConfigNotFound,
    ) as error:
        raise EnvironmentFault(f"no way into AWS: {_plain(error)}", hint=_SIGN_IN) from error
    except (
        boto.HTTPClientError,
        boto.EndpointConnectionError,
        boto.InvalidEndpointDiscoveryConfigurationError,
    ) as error:
        raise TransportError(
            f"AWS cannot be reached for {request.action}: {_plain(error)}",
            hint=f"is there a network, and is {region} the name of a region?",
        ) from error
    except (boto.ParamValidationError, boto.BotoCoreError, boto3.exceptions.Boto3Error) as error:
        raise CloudError(f"{request.action}: {_plain(error)}") from error


def refused(said: Any, request: Request) -> PacelineError:
    """Return the error for a refusal of AWS."""
    code = str(said.get("Code", ""))
    text = _ENCODED.sub("", str(said.get("Message", "") or code)).strip()
    if code in _THROTTLED:
        return CloudError(
            f"AWS refuses {request.action} again and again: {text}", hint=_SLOWER, code=code
        )
    for pattern, kind, words, hint in _KINDS:
        if re.fullmatch(pattern, code):
            message = f"{words}: {request.action}: {text}"
            if issubclass(kind, CloudError):
                return kind(message, hint=hint, code=code)
            return kind(message, hint=hint)
    return CloudError(f"AWS refuses {request.action}: {text} ({code})", code=code)


def _plain(error: Exception) -> str:
    return str(error).strip() or type(error).__name__
