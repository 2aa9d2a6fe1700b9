// Strict validation with the 1.0 schema. The published validators accept unknown members, so that clients are tolerant;
// a server must not depend on that. The one member that AG-UI 1.1 adds is known here.

import { AgentCapabilitiesSchema, EventSchemas } from "@ag-ui/core/schemas";

/** Returns events or messages as they are in a stream of AG-UI 1.0: without the member that 1.1 adds. */
export const without1_1 = (value) =>
  JSON.parse(JSON.stringify(value, (key, member) => (key === "encryptedValueType" ? undefined : member)));

/** Returns the problems of an event, one line each; empty if it is valid. */
export const problemsOfEvent = (event) => problemsOf(EventSchemas, event);

/** Returns the problems of an agent's capabilities. */
export const problemsOfCapabilities = (capabilities) => problemsOf(AgentCapabilitiesSchema, capabilities);

function problemsOf(schema, value) {
  const { success, error } = schema.safeParse(value);
  if (!success) {
    return error.issues.map(({ path, message }) => `/${path.join("/")}: ${message}`);
  }
  const unknown = [];
  collectUnknown(value, schema, "", unknown);
  return unknown.map((path) => `${path}: the schema has no such member`);
}

/**
 * Collects the paths of members that the schema does not describe. `value` must be accepted by the schema.
 * Open JSON (state, metadata, rawEvent, activity content, …) is `any` or `custom` in the schema and is not checked.
 */
function collectUnknown(value, schema, path, unknown) {
  const { def } = schema._zod;
  switch (def.type) {
    case "optional":
    case "nullable":
    case "default":
      if (value !== undefined && value !== null) collectUnknown(value, def.innerType, path, unknown);
      return;
    case "pipe":
      return collectUnknown(value, def.in, path, unknown);
    case "lazy":
      return collectUnknown(value, def.getter(), path, unknown);
    case "array":
      value.forEach((item, index) => collectUnknown(item, def.element, `${path}/${index}`, unknown));
      return;
    case "union": {
      // Loose objects accept each other's members; the literal of the discriminator distinguishes them.
      const option = def.options.find((each) => each.safeParse(value).success);
      return collectUnknown(value, option, path, unknown);
    }
    case "object":
      for (const [key, member] of Object.entries(value)) {
        const at = `${path}/${key}`;
        if (Object.hasOwn(def.shape, key)) collectUnknown(member, def.shape[key], at, unknown);
        else if (key !== "encryptedValueType" || typeof value.encryptedValue !== "string") unknown.push(at);
      }
      return;
    case "any":
    case "custom":
    case "string":
    case "number":
    case "boolean":
    case "literal":
    case "enum":
      return;
    default:
      // An unhandled kind of schema would hide the members below it.
      throw new Error(`${path}: do not know how to look into a schema of type ${def.type}`);
  }
}
