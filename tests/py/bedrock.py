"""A fake of Amazon Bedrock and of the servers that give out keys, on one port, whose number it prints.

botocore checks the signatures, and reads each stream of events before it is sent. What it refuses and why:
https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-anthropic-claude-messages.html
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-troubleshooting.html
The text of the last message chooses the answer. GET /log returns what came.
"""

import base64
import binascii
import datetime
import hashlib
import json
import struct
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.eventstream import EventStreamBuffer

# By the id of a key: its secret, and its session token.
KEYS = {
    "AKIDSTATIC": ("words/of+a/static+secret", None),
    "ASIAWEB": ("words/of+a/web+secret", "words-of-a-web-token=="),
    "ASIACONTAINER": ("words/of+a/container+secret", "words-of-a-container-token=="),
    "ASIAINSTANCE": ("words/of+an/instance+secret", "words-of-an-instance-token=="),
    "ASIAPROCESS": ("words/of+a/process+secret", "words-of-a-process-token=="),
}
LOG = []
COUNTS = {}


def frame(headers, payload):
    """A frame by https://smithy.io/2.0/aws/amazon-eventstream.html, with headers that are texts."""
    encoded = b"".join(
        struct.pack(f"!B{len(name)}sBH{len(value)}s", len(name), name.encode(), 7, len(value), value.encode())
        for name, value in headers.items()
    )
    prelude = struct.pack("!II", 16 + len(encoded) + len(payload), len(encoded))
    message = prelude + struct.pack("!I", binascii.crc32(prelude)) + encoded + payload
    message += struct.pack("!I", binascii.crc32(message))
    buffer = EventStreamBuffer()
    buffer.add_data(message)
    (event,) = list(buffer)
    assert event.headers == headers and event.payload == payload
    return message


def chunk(event):
    payload = json.dumps({"bytes": base64.b64encode(json.dumps(event).encode()).decode(), "p": "abcdef"})
    headers = {":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}
    return frame(headers, payload.encode())


def exception(kind, message):
    headers = {":exception-type": kind, ":content-type": "application/json", ":message-type": "exception"}
    return frame(headers, json.dumps({"message": message}).encode())


def answer(text):
    return [
        chunk(event)
        for event in [
            {"type": "message_start", "message": {"usage": {"input_tokens": 3, "output_tokens": 1}}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}},
            {"type": "message_stop"},
        ]
    ]


def stream(text, count):
    """The frames of an answer, by the text of the last message and how often it came."""
    frames = answer(f"You said {text}.")
    first = frames[:3]
    if text == "throttled once" and count == 1:
        return [exception("throttlingException", "Too many requests")]
    if text == "too long":
        return [exception("validationException", "Input is too long for requested model.")]
    if text == "invalid":
        return [exception("validationException", "messages.0.content: Field required")]
    if text == "unavailable in the middle":
        return first + [exception("serviceUnavailableException", "Try again")]
    if text == "wrong checksum":
        return first + [frames[3][:-1] + bytes([frames[3][-1] ^ 1])]
    if text == "wrong checksum of the prelude":
        return first + [frames[3][:11] + bytes([frames[3][11] ^ 1]) + frames[3][12:]]
    if text == "4 GB":
        prelude = struct.pack("!II", 0xFFFFFFFF, 16)
        return first + [prelude + struct.pack("!I", binascii.crc32(prelude)), bytes(64)]
    if text == "cut":
        return first + [frames[3][:20]]
    return frames


class Refusal(Exception):
    def __init__(self, status, kind, message):
        super().__init__(message)
        self.status, self.kind = status, kind


def check_signature(handler, body):
    headers = {name.lower(): value for name, value in handler.headers.items()}
    authorization = headers.get("authorization", "")
    if not authorization.startswith("AWS4-HMAC-SHA256 "):
        raise Refusal(403, "MissingAuthenticationTokenException", "Missing Authentication Token")
    parts = dict(part.strip().split("=", 1) for part in authorization.split(" ", 1)[1].split(","))
    key, date, region, service, end = parts["Credential"].split("/")
    names = parts["SignedHeaders"].split(";")
    if key not in KEYS or service != "bedrock" or region != "eu-west-1" or end != "aws4_request":
        raise Refusal(403, "UnrecognizedClientException", f"The security token in {parts['Credential']} is invalid.")
    unsigned = [n for n in headers if (n.startswith("x-amz-") or n in ("host", "content-type")) and n not in names]
    if unsigned or names != sorted(names):
        raise Refusal(403, "InvalidSignatureException", f"Headers must be signed: {unsigned}")
    secret, token = KEYS[key]
    if token and headers.get("x-amz-security-token", "").startswith("expired"):
        raise Refusal(403, "ExpiredTokenException", f"The security token {headers['x-amz-security-token']} is expired")
    if headers.get("x-amz-security-token") != token:
        raise Refusal(403, "UnrecognizedClientException", "The security token included in the request is invalid.")
    sent = datetime.datetime.strptime(headers["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc)
    if abs((datetime.datetime.now(datetime.timezone.utc) - sent).total_seconds()) > 300:
        raise Refusal(403, "InvalidSignatureException", "Signature expired")
    if headers.get("x-amz-content-sha256", "") != hashlib.sha256(body).hexdigest():
        raise Refusal(400, "XAmzContentSHA256Mismatch", "The hash does not match")
    url = f"http://{headers['host']}{handler.path}"
    request = AWSRequest(handler.command, url, {name: headers[name] for name in names}, body)
    request.context["timestamp"] = headers["x-amz-date"]
    signer = SigV4Auth(Credentials(key, secret, token), "bedrock", region)
    text = signer.string_to_sign(request, signer.canonical_request(request))
    if signer.signature(text, request) != parts["Signature"]:
        raise Refusal(403, "InvalidSignatureException", f"The signature does not match; expected for\n{text}")


def check_body(body):
    if body.get("anthropic_version") != "bedrock-2023-05-31":
        raise Refusal(400, "ValidationException", "anthropic_version: Field required")
    for member in ("model", "stream"):
        if member in body:
            raise Refusal(400, "ValidationException", f"{member}: Extra inputs are not permitted")
    if "max_tokens" not in body or not body.get("messages"):
        raise Refusal(400, "ValidationException", "max_tokens, messages: Field required")


def given(key, token_name="Token", seconds=3600):
    expires = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
    secret, token = KEYS[key]
    return {"AccessKeyId": key, "SecretAccessKey": secret, token_name: token,
            "Expiration": expires.strftime("%Y-%m-%dT%H:%M:%SZ"), "Code": "Success"}  # fmt: skip


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send(self, status, body, kind="application/json", headers=()):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in [("content-type", kind), ("content-length", str(len(body))), *headers]:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_PUT(self):
        LOG.append({"path": self.path})
        is_right = self.path == "/latest/api/token" and self.headers["x-aws-ec2-metadata-token-ttl-seconds"]
        self.send(200, b"words-of-imds", "text/plain") if is_right else self.send(400, {})

    def do_GET(self):
        if self.path == "/log":
            return self.send(200, LOG)
        LOG.append({"path": self.path})
        roles = "/latest/meta-data/iam/security-credentials/"
        if self.path.startswith(roles):
            if self.headers["x-aws-ec2-metadata-token"] != "words-of-imds":
                return self.send(401, {})
            role = self.path[len(roles) :]
            return self.send(200, given("ASIAINSTANCE")) if role == "the-role" else self.send(200, b"the-role\n", "text/plain")
        if self.path == "/container":
            is_allowed = self.headers["authorization"] == "words-of-the-pod"
            return self.send(200, given("ASIACONTAINER")) if is_allowed else self.send(401, {})
        self.send(404, {})

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.path == "/sts":
            return self.assume_role(parse_qs(body.decode()))
        path = urlsplit(self.path).path
        LOG.append({"path": self.path, "body": json.loads(body), "token": self.headers["x-amz-security-token"]})
        try:
            check_signature(self, body)
            parsed = json.loads(body)
            if path == "/openai/v1/chat/completions":
                return self.chat(parsed)
            if not path.startswith("/model/") or not path.endswith("/invoke-with-response-stream"):
                raise Refusal(404, "UnknownOperationException", path)
            check_body(parsed)
        except Refusal as refusal:
            return self.send(refusal.status, {"message": str(refusal)}, headers=[("x-amzn-errortype", refusal.kind)])
        text = parsed["messages"][-1]["content"][-1]["text"]
        COUNTS[text] = COUNTS.get(text, 0) + 1
        self.send(200, b"".join(stream(text, COUNTS[text])), "application/vnd.amazon.eventstream")

    def chat(self, body):
        delta = {"choices": [{"index": 0, "delta": {"content": f"I am {body['model']}."}, "finish_reason": "stop"}]}
        self.send(200, f"data: {json.dumps(delta)}\n\ndata: [DONE]\n\n".encode(), "text/event-stream")

    def assume_role(self, form):
        LOG.append({"path": "/sts", "form": {name: value[0] for name, value in form.items() if name != "WebIdentityToken"}})
        if form["WebIdentityToken"] != ["words-of-a-web-identity"]:
            xml = "<ErrorResponse><Error><Code>InvalidIdentityToken</Code></Error></ErrorResponse>"
            return self.send(400, xml.encode(), "text/xml")
        keys = given("ASIAWEB", "SessionToken")
        elements = "".join(f"<{name}>{value}</{name}>" for name, value in keys.items() if name != "Code")
        result = f"<AssumeRoleWithWebIdentityResult><Credentials>{elements}</Credentials></AssumeRoleWithWebIdentityResult>"
        self.send(200, f"<AssumeRoleWithWebIdentityResponse>{result}</AssumeRoleWithWebIdentityResponse>".encode(), "text/xml")


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
try:
    server.serve_forever()
except KeyboardInterrupt:
    sys.exit()
