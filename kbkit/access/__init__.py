"""Access control of a server: tokens, scopes and callers."""

from kbkit.access.tokens import ALL, TOKEN, Access, Caller, NewToken, Scope, Tokens

__all__ = ["ALL", "TOKEN", "Access", "Caller", "NewToken", "Scope", "Tokens"]
