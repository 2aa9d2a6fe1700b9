"""AG-UI endpoints of Pydantic AI, LlamaIndex, Strands and Agno, with the same model and tools.

The model calls the tool that a message starts with, says what a tool has returned, and otherwise says all that the user has said.
"""

import json
import logging
import os

import serve

# Strands says there that a response ends in another task than it began in.
logging.getLogger("opentelemetry.context").setLevel(logging.CRITICAL + 1)
os.environ.update(AGNO_TELEMETRY="false", OTEL_SDK_DISABLED="true")

import strands
from ag_ui_strands import StrandsAgent, add_strands_fastapi_endpoint
from agno.agent import Agent as AgnoAgent
from agno.db.in_memory import InMemoryDb
from agno.models.base import Model
from agno.models.response import ModelResponse
from agno.os.interfaces.agui import AGUI
from agno.tools import tool
from fastapi import FastAPI, Request
from llama_index.core.llms import ChatMessage, ChatResponse, LLMMetadata
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.tools import FunctionTool
from llama_index.protocols.ag_ui.router import get_ag_ui_workflow_router
from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.messages import ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from pydantic_ai.ui.ag_ui import AGUIAdapter


def next_step(said, result):
    """Returns a tool and its arguments, or a text: after all texts of the user, or after the result of a tool."""
    if result is not None:
        return f"The tool says: {result}"
    name, _, argument = said[-1].partition(" ")
    if name in ("weather", "pay", "pick"):
        return name, {"value": argument}
    return "I remember: " + ", ".join(said)


def weather(value: str) -> str:
    """Returns the weather in a city."""
    return f"Sunny in {value}"


def pay(value: str) -> str:
    """Pays an amount, after a person has agreed."""
    return f"paid {value}"


async def pydantic_step(messages, _):
    parts = [part for message in messages for part in message.parts]
    said = [part.content for part in parts if isinstance(part, UserPromptPart)]
    last = messages[-1].parts[-1]
    step = next_step(said, last.content if isinstance(last, ToolReturnPart) else None)
    if isinstance(step, str):
        for word in step.split(" "):
            yield word + " "
    else:
        yield {0: DeltaToolCall(name=step[0], json_args=json.dumps(step[1]))}


pydantic = Agent(FunctionModel(stream_function=pydantic_step), output_type=[str, DeferredToolRequests])
pydantic.tool_plain(weather)
pydantic.tool_plain(requires_approval=True)(pay)


class AgnoModel(Model):
    def step(self, messages):
        said = [message.content for message in messages if message.role == "user"]
        last = messages[-1]
        step = next_step(said, last.content if last.role == "tool" else None)
        if isinstance(step, str):
            return ModelResponse(role="assistant", content=step)
        call = {"name": step[0], "arguments": json.dumps(step[1])}
        return ModelResponse(role="assistant", tool_calls=[{"id": f"call-{os.urandom(4).hex()}", "type": "function", "function": call}])

    def invoke(self, messages, **_):
        return self.step(messages)

    async def ainvoke(self, messages, **_):
        return self.step(messages)

    def invoke_stream(self, messages, **_):
        yield self.step(messages)

    async def ainvoke_stream(self, messages, **_):
        yield self.step(messages)

    def _parse_provider_response(self, response, **_):
        return response

    def _parse_provider_response_delta(self, response):
        return response


agno = AgnoAgent(
    model=AgnoModel(id="m"),
    tools=[weather, tool(requires_confirmation=True)(pay)],
    db=InMemoryDb(),
    add_history_to_context=True,
    telemetry=False,
)
class StrandsModel(strands.models.Model):
    def get_config(self):
        return {}

    def update_config(self, **_):
        pass

    def structured_output(self, *_, **__):
        raise NotImplementedError

    async def stream(self, messages, *_, **__):
        blocks = [(message["role"], block) for message in messages for block in message["content"]]
        said = [block["text"] for role, block in blocks if role == "user" and "text" in block]
        last = blocks[-1][1].get("toolResult")
        step = next_step(said, last["content"][0]["text"] if last else None)
        yield {"messageStart": {"role": "assistant"}}
        if isinstance(step, str):
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": step}}}
        else:
            call = {"toolUseId": f"call-{os.urandom(4).hex()}", "name": step[0]}
            yield {"contentBlockStart": {"start": {"toolUse": call}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(step[1])}}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn" if isinstance(step, str) else "tool_use"}}


class LlamaModel(FunctionCallingLLM):
    @property
    def metadata(self):
        return LLMMetadata(is_chat_model=True, is_function_calling_model=True, model_name="m")

    async def astream_chat_with_tools(self, tools, user_msg=None, chat_history=None, **_):
        # A result of an earlier run comes as the user's.
        is_result = lambda message: "tool_call_id" in message.additional_kwargs
        said = [message.content for message in chat_history if message.role == "user" and not is_result(message)]
        last = chat_history[-1]
        step = next_step(said, last.content if last.role == "tool" or is_result(last) else None)

        async def answer():
            if isinstance(step, str):
                yield ChatResponse(message=ChatMessage(role="assistant", content=step), delta=step)
            else:
                call = {"id": f"call-{os.urandom(4).hex()}", "name": step[0], "arguments": step[1]}
                yield ChatResponse(message=ChatMessage(role="assistant", content="", additional_kwargs={"tool_calls": [call]}), delta="")

        return answer()

    def get_tool_calls_from_response(self, response, **_):
        calls = [call for call in response.message.additional_kwargs.get("tool_calls", []) if "function" not in call]
        return [ToolSelection(tool_id=call["id"], tool_name=call["name"], tool_kwargs=call["arguments"]) for call in calls]

    def _prepare_chat_with_tools(self, *_, **__):
        raise NotImplementedError

    chat = complete = stream_chat = stream_complete = achat = acomplete = astream_chat = astream_complete = _prepare_chat_with_tools


app = FastAPI()
llama = get_ag_ui_workflow_router(llm=LlamaModel(), backend_tools=[FunctionTool.from_defaults(weather)])
strands_agent = strands.Agent(model=StrandsModel(), tools=[strands.tool(weather)], callback_handler=None)
add_strands_fastapi_endpoint(app, StrandsAgent(strands_agent, name="strands"), path="/strands")
app.include_router(llama, prefix="/llama-index")
app.include_router(AGUI(agent=agno, prefix="/agno").get_router())


@app.post("/pydantic-ai")
async def run_pydantic(request: Request):
    return await AGUIAdapter.dispatch_request(request, agent=pydantic)

serve.serve(app)
