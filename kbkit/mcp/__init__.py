"""Tools for agents over the Model Context Protocol (MCP).

Tools translate arguments, call a workspace, and hand what comes back to `kbkit.replies`, which
keeps it within a budget of tokens. Nothing is sought or decided here.

A set of tools is a module with a function ``add(tools)`` that `kbkit.mcp.server.SETS` names. It
declares each tool as a function, `Tools.read` or `Tools.write` around it::

    def add(tools: Tools) -> None:
        @tools.read
        def list_knowledge_bases(
            *, max_tokens: MaxTokens = 0, cursor: Cursor = ""
        ) -> Annotated[CallToolResult, KnowledgeBases]:
            # the docstring goes here: "The knowledge bases that can be searched, ..."
            start, budget = replies.read_cursor(cursor), tools.budget(max_tokens)
            return result(replies.knowledge_bases_reply(tools.list(), start=start, budget=budget))

Its parameters, their types and notes become the schema of its arguments, the ``TypedDict`` that of
its values, and the docstring, one honest sentence, is what a model reads of it: each word is paid
for whenever a session begins. What it raises of `kbkit.errors` becomes the answer, as an error.
After a change, ``python site/_generate.py`` updates the descriptions of the tools.
"""
