// A2UI surfaces: the components that an agent describes, with data that people change and buttons that reach the agent.

import { createContext } from "preact";
import { useContext, useEffect, useMemo, useState } from "preact/hooks";

import { INPUTS } from "./surface-inputs.jsx";
import { at, pointerOf, read, surfacesOf, textOf, withValue } from "./surface-data.js";
import { LAYOUTS } from "./surface-layouts.jsx";

/** The most components that are shown, and the deepest: those of an agent can contain themselves. */
const MAX_COMPONENTS = 500;
const MAX_DEPTH = 20;

const COMPONENTS = { ...LAYOUTS, ...INPUTS };

/** The context of surfaces: `isLocked`, and `act(action)`, which sends a click to the agent. */
export const SurfaceActions = createContext({ isLocked: true, act: () => {} });

export function Surface({ operations }) {
  const json = JSON.stringify(operations);
  const surfaces = useMemo(() => [...surfacesOf(operations)], [json]);
  return surfaces.map(([id, surface]) => <OneSurface key={id} id={id} {...surface} />);
}

function OneSurface({ id, components, data: given }) {
  const { isLocked, act } = useContext(SurfaceActions);
  const [data, setData] = useState(given);
  // The agent's data replaces what was typed only if it is other data.
  const json = JSON.stringify(given);
  useEffect(() => setData(given), [json]);
  let left = MAX_COMPONENTS;

  function show(componentId, item = "", depth = 0) {
    const component = components.get(componentId);
    if (!component || depth > MAX_DEPTH || left-- <= 0) return null;
    const Component = Object.hasOwn(COMPONENTS, component.component) ? COMPONENTS[component.component] : Unknown;
    const value = (property) => read(property, data, item);
    const problems = (component.checks ?? []).filter(({ condition }) => !value(condition));
    const tools = {
      value,
      text: (property) => textOf(value(property)),
      problem: problems[0]?.message,
      isLocked,
      child: (one) => show(one, item, depth + 1),
      children: () => childrenOf(component.children, item).map(([one, place]) => show(one, place, depth + 1)),
      // A literal cannot be changed.
      change: (property, changed) =>
        typeof property?.path === "string" && setData((before) => withValue(before, pointerOf(property.path, item), changed)),
      press: () => press(component, value),
    };
    // The key keeps the focus: an item has its place, a component its id.
    return <Weighted key={`${item} ${componentId}`} weight={component.weight}><Component {...component} tools={tools} /></Weighted>;
  }

  /** Returns pairs of a component's id and the place of the data that its paths are relative to. */
  function childrenOf(children, item) {
    if (Array.isArray(children)) return children.map((one) => [one, item]);
    if (typeof children?.path !== "string") return [];
    const pointer = pointerOf(children.path, item);
    const items = at(data, pointer);
    return Array.isArray(items) ? items.map((_, index) => [children.componentId, `${pointer}/${index}`]) : [];
  }

  function press({ id: sourceComponentId, action }, value) {
    const { name, context = {} } = action?.event ?? {};
    const url = action?.functionCall?.call === "openUrl" && value(action.functionCall.args?.url);
    if (/^https?:/.test(url || "")) window.open(url, "_blank", "noopener");
    if (!name) return;
    const values = Object.fromEntries(Object.entries(context).map(([member, one]) => [member, value(one)]));
    act({ name, surfaceId: id, sourceComponentId, context: values, timestamp: new Date().toISOString() });
  }

  return <div class="surface">{show("root")}</div>;
}

const Weighted = ({ weight, children }) => (typeof weight === "number" ? <div class="weighted" style={{ flexGrow: weight }}>{children}</div> : children);

const Unknown = ({ component, tools, child }) => (
  <div class="muted">{String(component)}{tools.children()}{typeof child === "string" && tools.child(child)}</div>
);
