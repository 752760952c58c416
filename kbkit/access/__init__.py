"""Who may do what with a workspace that a server opens to others."""

from kbkit.access.tokens import ALL, TOKEN, Access, Caller, NewToken, Scope, Tokens

__all__ = ["ALL", "TOKEN", "Access", "Caller", "NewToken", "Scope", "Tokens"]
