// An authorization server (oidc-provider), and an MCP server (the TypeScript SDK's auth router) and a web service that want its tokens, on
// free loopback ports. As a program, it prints the URLs and a line for each request to the token endpoint.

import { once } from "node:events";
import { createServer } from "node:http";
import { argv } from "node:process";
import { fileURLToPath } from "node:url";

import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { requireBearerAuth } from "@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js";
import { mcpAuthMetadataRouter } from "@modelcontextprotocol/sdk/server/auth/router.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import express from "express";
import Provider from "oidc-provider";

/** This server as a client of the authorization server, for the web service. */
export const CLIENT = { id: "agui", secret: "secret-of-agui-0123456789" };

const listen = async (server, port = 0) => {
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  return `http://127.0.0.1:${server.address().port}`;
};

/**
 * @param {{ seconds?: number, lists?: boolean }} options `seconds`: how long a token is valid; `lists`: tools are listed without one
 * @returns what was granted: `grants`, the types of the requests to the token endpoint; `tokens`, all tokens; `calls` of the web service
 */
export async function startLoginServers({ seconds = 3600, lists = false } = {}) {
  const [authority, resourceServer] = [createServer(), createServer()];
  const [issuer, base] = [await listen(authority), await listen(resourceServer)];
  const resource = new URL("/mcp", base);
  const [grants, tokens, calls] = [[], new Set(), []];

  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: CLIENT.id,
        client_secret: CLIENT.secret,
        // The port of a loopback URL makes no difference for these.
        application_type: "native",
        redirect_uris: ["http://127.0.0.1/connections/callback"],
        grant_types: ["authorization_code", "refresh_token"],
      },
      { client_id: "calendar", client_secret: "secret-of-the-calendar", redirect_uris: [], grant_types: [], response_types: [] },
    ],
    scopes: ["openid", "offline_access", "notes"],
    pkce: { required: () => true },
    rotateRefreshToken: true,
    ttl: { AccessToken: seconds, Session: 600, Grant: 3600, Interaction: 600, RefreshToken: 3600 },
    features: {
      devInteractions: { enabled: true },
      registration: { enabled: true },
      revocation: { enabled: true },
      introspection: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_, indicator) => {
          if (indicator !== resource.href) throw new Error(`an unknown resource: ${indicator}`);
          return { scope: "notes", audience: indicator, accessTokenTTL: seconds, accessTokenFormat: "opaque" };
        },
      },
    },
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  });
  const note = (kind) => (context) => {
    const { body = {}, params = {} } = context.oidc ?? {};
    if (kind) grants.push(params.grant_type ?? body.grant_type);
    for (const name of ["access_token", "refresh_token", "id_token"]) if (context.body?.[name]) tokens.add(context.body[name]);
  };
  provider.on("grant.success", note(true));
  provider.on("grant.error", (context, error) => grants.push(`error: ${error.error_description ?? error.message}`));
  authority.on("request", provider.callback());

  const app = express();
  const endpoint = (path) => new URL(path, issuer).href;
  const oauthMetadata = {
    issuer,
    authorization_endpoint: endpoint("/auth"),
    token_endpoint: endpoint("/token"),
    response_types_supported: ["code"],
  };
  app.use(mcpAuthMetadataRouter({ oauthMetadata, resourceServerUrl: resource, scopesSupported: ["notes"] }));
  const verifier = {
    verifyAccessToken: async (token) => {
      const found = await provider.AccessToken.find(token);
      if (!found || found.aud !== resource.href) throw Object.assign(new InvalidToken("unknown token"));
      return { token, clientId: found.clientId, scopes: [...found.scopes], expiresAt: found.exp, extra: { account: found.accountId } };
    },
  };
  const { InvalidTokenError: InvalidToken } = await import("@modelcontextprotocol/sdk/server/auth/errors.js");
  const guard = requireBearerAuth({ verifier, resourceMetadataUrl: new URL("/.well-known/oauth-protected-resource/mcp", base).href });
  const guardUnlessListed = (request, response, next) =>
    lists && request.body?.method !== "tools/call" ? next() : guard(request, response, next);
  app.all("/mcp", express.json(), guardUnlessListed, async (request, response) => {
    const server = new McpServer({ name: "notes", version: "1" });
    server.registerTool("whoami", { description: "Returns the name of the account" }, ({ authInfo }) => ({
      // A server could show a token: the client must remove it.
      content: [{ type: "text", text: `The account is ${authInfo.extra.account}, by ${authInfo.token}.` }],
    }));
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
    response.on("close", () => transport.close());
    await server.connect(transport);
    await transport.handleRequest(request, response, request.body);
  });
  // The web service asks the authorization server whose token it is, by introspection (RFC 7662).
  app.all("/calendar", express.json(), async (request, response) => {
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1];
    const about = await fetch(endpoint("/token/introspection"), {
      method: "POST",
      headers: { authorization: `Basic ${btoa("calendar:secret-of-the-calendar")}`, "content-type": "application/x-www-form-urlencoded" },
      body: new URLSearchParams({ token: token ?? "none" }),
    });
    const { active, sub, client_id } = await about.json();
    const account = active && client_id === CLIENT.id ? sub : undefined;
    calls.push({ account, token, body: request.body });
    if (!account) response.status(401).json({ error: "invalid_token" });
    else response.json({ text: `The calendar of ${account}, by ${token}: ${request.body?.title ?? request.query.day}` });
  });
  resourceServer.on("request", app);
  const stop = () => [authority, resourceServer].forEach((server) => (server.close(), server.closeAllConnections()));
  return { issuer, url: resource.href, service: new URL("/calendar", base), grants, tokens, calls, provider, stop };
}

if (argv[1] === fileURLToPath(import.meta.url)) {
  const { issuer, url } = await startLoginServers({ seconds: Number(argv[2] ?? 3600) });
  console.log(`ISSUER=${issuer}\nMCP=${url}`);
}
