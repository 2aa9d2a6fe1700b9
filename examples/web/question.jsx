// A question of the agent, as the pages beside this file draw it: a decision about a call, or a form by the schema of the answer.
import { useState } from "react";

const INPUT_TYPES = { email: "email", uri: "url", date: "date", time: "time" };
const isNumber = (type) => type === "number" || type === "integer";

/** By question: the answer that was sent. A form that is shown again begins with it. */
const sent = new Map();

/**
 * `problem`: why the server has refused an answer. `resolve` takes the answer. `cancel` leaves the question without one, which is
 * how a form is declined. `url`: a page to open first, such as a login.
 */
export function Question({ id, message, args, schema, url, problem, resolve, cancel }) {
  // The next run starts when all questions have an answer.
  const [answer, setAnswer] = useState();
  const { properties = {}, required = [] } = schema ?? { properties: { approved: {} } };
  const names = Object.keys(properties);
  const send = (event) => {
    event.preventDefault();
    setAnswer("Sent");
    sent.set(id, Object.fromEntries(names.map((name) => [name, valueOf(event.target, name, properties[name])])));
    resolve(sent.get(id));
  };
  const wrong = wrongField(problem);
  const decide = (name, reply) => <button type="button" onClick={() => (setAnswer(name), reply())}>{name}</button>;
  if (answer) return <p className="question">{message} <code>{args}</code> <strong>{answer}</strong></p>;
  if (/^https?:/.test(url)) {
    return (
      <p className="question">
        {message} <code className="address">{url}</code>{" "}
        <a href={url} target="_blank" rel="noopener noreferrer">Open the page</a>{" "}
        {decide("I am done there", () => resolve({ done: true }))} {decide("Decline", cancel)}
      </p>
    );
  }
  if (properties.approved) {
    return (
      <p className="question">
        {message} <code>{args}</code> {decide("Approve", () => resolve({ approved: true }))}{" "}
        {decide("Decline", () => resolve({ approved: false }))}
      </p>
    );
  }
  return (
    <form className="question" onSubmit={send}>
      {message}{" "}
      {names.map((name) => (
        <Field
          key={name}
          name={name}
          {...properties[name]}
          default={sent.get(id)?.[name] ?? properties[name].default}
          isRequired={required.includes(name)}
          problem={wrong?.id === id && wrong.name === name ? wrong.text : undefined}
        />
      ))}{" "}
      <button>Send</button> {decide("Decline", cancel)}
    </form>
  );
}

/** Returns `{ id, name, text }` if a refusal names a field of a question: "…the interrupt "id"…: payload/name: text". */
export function wrongField(problem) {
  const [, id, name, text] = /^the reply to the interrupt "(.*?)" .*?: payload\/([^/:]+)[^:]*: (.*)/s.exec(problem ?? "") ?? [];
  return name && { id, name: name.replaceAll("~1", "/").replaceAll("~0", "~"), text };
}

function Field({ name, title = name, description, type, enum: values, format, isRequired, default: value, problem, ...limits }) {
  const common = { name, title: description, required: isRequired, "aria-label": title, "aria-invalid": problem ? true : undefined };
  const reason = problem && <small className="problem" role="alert">{problem}</small>;
  if (values) {
    return (
      <label>
        {title}{" "}
        <select {...common} defaultValue={values.includes(value) ? values.indexOf(value) : ""}>
          <option value="">…</option>
          {values.map((choice, at) => <option key={at} value={at}>{String(choice)}</option>)}
        </select>{" "}
        {reason}
      </label>
    );
  }
  if (type === "boolean") return <label><input type="checkbox" name={name} defaultChecked={value} /> {title} {reason}</label>;
  const { minLength, maxLength, pattern, minimum: min, maximum: max } = limits;
  const kind = isNumber(type) ? { type: "number", step: type === "integer" ? 1 : "any", min, max } : { type: INPUT_TYPES[format] ?? "text" };
  return <label>{title} <input {...common} {...kind} {...{ minLength, maxLength, pattern }} defaultValue={value} /> {reason}</label>;
}

/** Returns `undefined`, which JSON leaves out, for a field that is empty. */
function valueOf(form, name, { type, enum: values }) {
  const text = new FormData(form).get(name);
  if (type === "boolean") return text !== null;
  if (!text) return undefined;
  if (values) return values[text];
  return isNumber(type) ? Number(text) : text;
}
