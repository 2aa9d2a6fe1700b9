// An A2UI surface, as a tree of its components with the data that they read. The page draws no components itself.

/** The most components that are shown, and the deepest: those of an agent can contain themselves. */
const MAX_COMPONENTS = 500;
const MAX_DEPTH = 20;
/** The properties that say what a component shows: the first one that it has. */
const TEXTS = ["text", "label", "title", "value", "name", "url"];

const isShown = (value) => ["string", "number", "boolean"].includes(typeof value);
const asList = (value) => (Array.isArray(value) ? value : value === undefined ? [] : [value]);
const place = (value, path) =>
  path.split("/").filter(Boolean).reduce((inner, key) => (Object.hasOwn(Object(inner), key) ? inner[key] : undefined), value);

export function Surface({ operations }) {
  const last = (kind) => operations.findLast((operation) => operation?.[kind])?.[kind];
  const components = new Map(asList(last("updateComponents")?.components).map((component) => [component?.id, component]));
  const data = last("updateDataModel")?.value;
  let left = MAX_COMPONENTS;
  /** A path with a leading slash is a place of the data, any other one of the item that a component is repeated for. */
  const read = (value, item) => (typeof value?.path !== "string" ? value : place(value.path.startsWith("/") ? data : item, value.path));

  function show(id, item, depth) {
    const component = components.get(id);
    if (!component || depth > MAX_DEPTH || left-- <= 0) return null;
    const children = [component.child, component.children].flatMap(asList).flatMap((child) => {
      if (typeof child === "string") return [show(child, item, depth + 1)];
      return asList(read(child, item)).map((one) => show(child?.componentId, one, depth + 1));
    });
    return (
      <li>
        <span class="tree-name">{String(component.component)}</span> {TEXTS.map((name) => read(component[name], item)).find(isShown)?.toString()}
        {children.length > 0 && <ul>{children}</ul>}
      </li>
    );
  }

  return <ul class="surface">{show("root", undefined, 0)}</ul>;
}
