"""Who may do what with a workspace that a server opens to others."""

from kbkit.access.caller import ALL, Caller, Scope
from kbkit.access.tokens import TOKEN, Access, NewToken, Tokens

__all__ = ["ALL", "TOKEN", "Access", "Caller", "NewToken", "Scope", "Tokens"]
