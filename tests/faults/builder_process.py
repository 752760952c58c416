"""Forks a child for each line ``RECIPE<tab>WORKSPACE``; prints its process id and exit status."""

import os
import sys

import chromadb
import llama_index.core.node_parser
import trafilatura

import kbkit.embedding.static
import kbkit.sources.web.readers
import kbkit.workflows.builder

LOADED = (chromadb, llama_index, trafilatura, kbkit)


def main() -> None:
    print("ready", flush=True)
    for line in sys.stdin:
        recipe, workspace = line.rstrip("\n").split("\t")
        child = os.fork()
        if child == 0:
            code = 1
            try:
                kbkit.workflows.builder.build(recipe, workspace, site=False, trust=True)
                code = 0
            finally:
                os._exit(code)
        print(child, flush=True)
        print(os.waitpid(child, 0)[1], flush=True)


if __name__ == "__main__":
    main()
