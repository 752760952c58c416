"""Errors of a Chroma server with their remedies."""

from __future__ import annotations

import httpx

from kbkit.errors import StoreUnreachableError, WorkspaceError
from kbkit.stores.chroma.address import ChromaAddress
from kbkit.stores.chroma.collections import OF_A_COLLECTION

_KEPT = "written data is kept and searchable, and is passed on with a later write"
_NO_CHROMA = "answers as no Chroma of version 1; name the address of one in KBKIT_CHROMA_URL"
_MAX_LENGTH = 200


def fault_of(error: Exception, address: ChromaAddress) -> WorkspaceError:
    message = " ".join(str(error).split())
    if address.token:
        message = message.replace(address.token, "...")
    message = message[:_MAX_LENGTH]
    if type(error).__module__ == "chromadb.errors":
        if message.startswith(("Tenant [", "Database [")):
            reason = (
                f"{message.partition('. ')[0]}; make it, or name another "
                "(?tenant=NAME&database=NAME)"
            )
            return StoreUnreachableError(f"{address.place}: {reason}")
        if type(error).__name__ in OF_A_COLLECTION:
            return WorkspaceError(f"{address.place}: Chroma refused: {message}")
    return StoreUnreachableError(f"{address.place}: {_reason(error, message, address)}; {_KEPT}")


def _reason(error: Exception, text: str, address: ChromaAddress) -> str:
    status = _status(error)
    if status in (401, 403):
        token = "is not taken" if address.token else "is not set"
        return f"the server refuses ({status}): KBKIT_CHROMA_TOKEN {token}"
    if status == 429 or type(error).__name__ == "QuotaError":
        return f"the server refuses for now, its quota is used up ({text})"
    if status is not None and status >= 500:
        return f"Chroma failed ({status}: {text}); see its log"
    if isinstance(error, httpx.TimeoutException):
        return "no answer in time; check that the server runs and is reachable"
    if "CERTIFICATE_VERIFY_FAILED" in text:
        return (
            f"its certificate is not trusted ({text}); name the file of its authority in "
            "SSL_CERT_FILE"
        )
    if "[SSL" in text:
        return f"it does not speak TLS there ({text}); write http:// where it has none"
    if isinstance(error, httpx.NetworkError):
        return f"cannot be reached ({text}); see that the server runs, or mend KBKIT_CHROMA_URL"
    if isinstance(error, httpx.ProtocolError | ValueError | KeyError | TypeError) or status:
        return _NO_CHROMA
    return f"Chroma failed ({type(error).__name__}: {text})"


def _status(error: Exception) -> int | None:
    if type(error).__module__ == "chromadb.errors":
        code: int = error.code()  # type: ignore[attr-defined]
        return code
    cause = error.__context__  # chromadb raises a bare exception instead
    return cause.response.status_code if isinstance(cause, httpx.HTTPStatusError) else None
