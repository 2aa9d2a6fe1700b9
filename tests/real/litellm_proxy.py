"""LiteLLM's proxy before a server with chat completions: litellm_proxy.py URL KEY."""

import json
import logging
import os
import sys
import tempfile

import serve

url, key = sys.argv[1:]
server = {"model": "openai/smollm2", "api_base": f"{url}/v1", "api_key": "none"}
folder = tempfile.TemporaryDirectory()
os.environ.update(
    CONFIG_FILE_PATH=f"{folder.name}/proxy.yaml",
    DO_NOT_TRACK="1",
    LITELLM_LOCAL_MODEL_COST_MAP="true",
    LITELLM_MASTER_KEY=key,
    LITELLM_TELEMETRY="false",
)
with open(os.environ["CONFIG_FILE_PATH"], "w") as file:
    # JSON is YAML.
    json.dump({"model_list": [{"model_name": "smollm2", "litellm_params": server}]}, file)

from litellm.proxy.proxy_server import app

# It writes each error that a test asks for.
logging.disable()

serve.serve(app)
