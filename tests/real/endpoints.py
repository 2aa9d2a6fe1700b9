"""AG-UI endpoints of other frameworks, each with an agent that answers with every message that the framework remembers.

A graph of LangGraph with a checkpointer at /langgraph, an agent of Google's ADK with its sessions at /adk. At /payment, a graph
whose tool asks a person before it pays. No model is asked.
"""

import os

import serve

os.environ.update(LANGSMITH_TRACING="false", LANGCHAIN_TRACING_V2="false", OTEL_SDK_DISABLED="true")

from ag_ui_adk import ADKAgent, add_adk_fastapi_endpoint
from ag_ui_langgraph import LangGraphAgent, add_langgraph_fastapi_endpoint
from fastapi import FastAPI
from google.adk.agents import BaseAgent
from google.adk.events import Event
from google.genai import types
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import MemorySaver
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import interrupt


def remembered(texts):
    return "I remember: " + ", ".join(texts)


def recall(state):
    texts = [message.text for message in state["messages"] if isinstance(message, HumanMessage)]
    return {"messages": [AIMessage(remembered(texts))]}


class Recall(BaseAgent):
    async def _run_async_impl(self, context):
        said = [event.content for event in context.session.events if event.author == "user" and event.content]
        texts = [part.text for content in said for part in content.parts or [] if part.text]
        content = types.Content(role="model", parts=[types.Part(text=remembered(texts))])
        yield Event(author=self.name, invocation_id=context.invocation_id, content=content)


@tool
def pay(amount: int) -> str:
    """Pays an amount, after a person has agreed."""
    reply = interrupt({"message": f"Pay {amount}?"})
    return f"paid {amount}" if reply.get("approved") is True else "not paid"


def decide(state):
    last = state["messages"][-1]
    if isinstance(last, HumanMessage):
        call = {"id": f"call-{last.id}", "name": "pay", "args": {"amount": 5}}
        return {"messages": [AIMessage("", tool_calls=[call])]}
    return {"messages": [AIMessage(f"The tool says: {last.text}")]}


def after_decision(state):
    return "tools" if state["messages"][-1].tool_calls else END


payment = StateGraph(MessagesState)
payment.add_node("decide", decide)
payment.add_node("tools", ToolNode([pay]))
payment.add_edge(START, "decide")
payment.add_conditional_edges("decide", after_decision)
payment.add_edge("tools", "decide")

graph = StateGraph(MessagesState)
graph.add_node("recall", recall)
graph.add_edge(START, "recall")
graph.add_edge("recall", END)

app = FastAPI()
langgraph = LangGraphAgent(name="recall", graph=graph.compile(checkpointer=MemorySaver()))
add_langgraph_fastapi_endpoint(app, langgraph, "/langgraph")
asks = LangGraphAgent(name="payment", graph=payment.compile(checkpointer=MemorySaver()))
add_langgraph_fastapi_endpoint(app, asks, "/payment")
adk = ADKAgent(adk_agent=Recall(name="recall"), app_name="recall", use_in_memory_services=True)
add_adk_fastapi_endpoint(app, adk, path="/adk")

serve.serve(app)
