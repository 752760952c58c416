"""Tools for agents over the Model Context Protocol (MCP).

A tool translates arguments, calls a workspace, and passes the result to a function that makes a
reply within a budget of tokens (`kbkit.mcp.replies`).

A set of tools is a module with a function ``add(tools)``, listed in `kbkit.mcp.server.SETS`. It
declares each tool as a function with `Tools.read` or `Tools.write`::

    def add(tools: Tools) -> None:
        @tools.read
        def list_knowledge_bases(
            *, max_tokens: MaxTokens = 0, cursor: Cursor = ""
        ) -> Annotated[CallToolResult, KnowledgeBases]:
            # the docstring goes here: "The knowledge bases that can be searched, ..."
            budget = tools.budget(max_tokens, cursor)
            return result(listings.knowledge_bases_reply(tools.list(), budget=budget))

Parameters with their types and notes become the schema of the arguments, the ``TypedDict`` that of
the values, and the docstring the description: one sentence, since each session pays for each word.
Errors of `kbkit.errors` become error results. After a change, run ``python site/_generate.py``.
"""
