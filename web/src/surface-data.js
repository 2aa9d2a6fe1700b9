// The surfaces that A2UI operations describe, and the values that their components read. docs/interfaces.md names the version.

const isTable = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const keysOf = (path) => path.split("/").slice(1).filter(Boolean).map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));

/** Returns the value at a JSON Pointer; undefined if there is none. */
export const at = (data, pointer) =>
  keysOf(pointer).reduce((inner, key) => (Object.hasOwn(Object(inner), key) ? inner[key] : undefined), data);

/** Returns a copy of the data with a value at a JSON Pointer. Numbers are places of lists. */
export function withValue(data, pointer, value) {
  const write = (inner, [key, ...rest]) => {
    if (key === undefined) return value;
    const copy = Array.isArray(inner) ? [...inner] : { ...inner };
    // A member of this name would be the prototype.
    if (key !== "__proto__") copy[key] = write(Object.hasOwn(copy, key) ? copy[key] : undefined, rest);
    return copy;
  };
  return write(data, keysOf(pointer));
}

/** Returns the surfaces of operations, by their ids: { components, data }. */
export function surfacesOf(operations) {
  const surfaces = new Map();
  const of = ({ surfaceId }) => {
    if (!surfaces.has(surfaceId)) surfaces.set(surfaceId, { components: new Map(), data: {} });
    return surfaces.get(surfaceId);
  };
  for (const operation of operations.filter(isTable)) {
    const { createSurface, updateComponents, updateDataModel, deleteSurface } = operation;
    if (createSurface) of(createSurface);
    for (const component of [updateComponents?.components ?? []].flat()) of(updateComponents).components.set(component?.id, component);
    if (updateDataModel) {
      const surface = of(updateDataModel);
      surface.data = withValue(surface.data, updateDataModel.path ?? "/", updateDataModel.value);
    }
    if (deleteSurface) surfaces.delete(deleteSurface.surfaceId);
  }
  return surfaces;
}

/** Returns the JSON Pointer of a path: one without a leading slash is of the item that a component is repeated for. */
export const pointerOf = (path, item) => (path.startsWith("/") ? path : `${item}/${path}`);

/** Returns the value of a property: a literal, a place of the data, or the result of a function. */
export function read(value, data, item) {
  if (!isTable(value)) return value;
  if (typeof value.path === "string") return at(data, pointerOf(value.path, item));
  if (typeof value.call !== "string") return value;
  const args = Object.fromEntries(Object.entries(value.args ?? {}).map(([name, arg]) => [name, readAll(arg, data, item)]));
  return Object.hasOwn(FUNCTIONS, value.call) ? FUNCTIONS[value.call](args, data, item) : undefined;
}

const readAll = (value, data, item) => (Array.isArray(value) ? value.map((one) => read(one, data, item)) : read(value, data, item));

const isEmpty = (value) => value === undefined || value === null || value === "" || (Array.isArray(value) && value.length === 0);
const isWithin = (number, { min = -Infinity, max = Infinity }) => number >= min && number <= max;

/** The functions that components check values with, and that make texts. */
const FUNCTIONS = {
  required: ({ value }) => !isEmpty(value),
  email: ({ value }) => /^\S+@\S+\.\S+$/.test(value ?? ""),
  regex: ({ value, pattern }) => matches(pattern, value ?? ""),
  length: ({ value, ...bounds }) => isWithin((value ?? "").length, bounds),
  numeric: ({ value, ...bounds }) => !isEmpty(value) && isWithin(Number(value), bounds),
  and: ({ values = [] }) => values.every(Boolean),
  or: ({ values = [] }) => values.some(Boolean),
  not: ({ value }) => !value,
  formatString: ({ value }, data, item) =>
    String(value ?? "").replace(/\$\{([^}(]+)\}/g, (_, path) => textOf(at(data, pointerOf(path.trim(), item)))),
  formatNumber: ({ value, decimals }) =>
    Number(value).toLocaleString(undefined, { minimumFractionDigits: decimals, maximumFractionDigits: decimals }),
  formatDate: ({ value }) => new Date(value).toLocaleString(),
};

function matches(pattern, text) {
  try {
    return new RegExp(pattern, "u").test(text);
  } catch {
    return true;
  }
}

export const textOf = (value) => (typeof value === "object" || value === undefined ? "" : String(value));
