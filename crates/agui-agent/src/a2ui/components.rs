//! Checks the components of an A2UI surface (v0.9): a flat list, in which components name their children by id.

use std::collections::{HashMap, HashSet};

use serde::Serialize;
use serde_json::Value;

/// The faults of one surface that are reported.
const MAX_FAULTS: usize = 20;

/// The components that a page can show, by name, each with its required properties.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ComponentCatalog {
    pub(super) id: Option<String>,
    required: HashMap<String, Vec<String>>,
}

/// A fault of a surface. The codes are the codes of A2UI's own tools.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SurfaceFault {
    code: &'static str,
    path: String,
    message: String,
}

impl ComponentCatalog {
    /// Reads `{catalogId, components: {Name: JSON Schema}}`. `None` if it has no components.
    pub(super) fn read(json: &Value) -> Option<Self> {
        let components =
            json.get("components")?.as_object().filter(|components| !components.is_empty())?;
        let required = components.iter().map(|(name, schema)| {
            let parts =
                schema.get("allOf").and_then(Value::as_array).into_iter().flatten().chain([schema]);
            let names = parts.filter_map(|part| part.get("required")?.as_array()).flatten();
            (name.clone(), names.filter_map(Value::as_str).map(str::to_owned).collect())
        });
        let id = json.get("catalogId").and_then(Value::as_str).filter(|id| !id.is_empty());
        Some(Self { id: id.map(str::to_owned), required: required.collect() })
    }
}

/// Returns the faults of a list of components. `data` is the surface's data, or `None` while it is
/// still streaming in: then the paths that components read are not checked.
pub(super) fn check(
    components: &[Value],
    data: Option<&Value>,
    catalog: Option<&ComponentCatalog>,
) -> Vec<SurfaceFault> {
    let mut faults = Faults::default();
    if components.is_empty() {
        faults.add("empty_components", "components", "there are no components");
        return faults.0;
    }
    let ids: HashSet<&str> =
        components.iter().filter_map(|component| text(component, "id")).collect();
    let mut seen = HashSet::new();
    for (at, component) in components.iter().enumerate() {
        let path = format!("components[{at}].id");
        match text(component, "id") {
            None => faults.add("missing_id", path, "a component has no `id`"),
            Some(id) if seen.insert(id) => {}
            Some(id) => {
                faults.add("duplicate_id", path, format!("several components have the id {id:?}"))
            }
        }
        check_type(at, component, catalog, &mut faults);
        for child in children(component).filter(|child| !ids.contains(child)) {
            let message = format!("there is no component with the id {child:?}");
            faults.add("unresolved_child", format!("components[{at}].children"), message);
        }
        if let Some(data) = data {
            check_bindings(at, component, data, &mut faults);
        }
    }
    if let Some(id) = cycle(components) {
        let message = format!("the component {id:?} contains itself");
        faults.add("child_cycle", format!("components[id={id}]"), message);
    }
    if !ids.contains("root") {
        faults.add("no_root", "components", "no component has the id \"root\"");
    }
    faults.0
}

#[derive(Default)]
struct Faults(Vec<SurfaceFault>);

impl Faults {
    fn add(&mut self, code: &'static str, path: impl Into<String>, message: impl Into<String>) {
        if self.0.len() < MAX_FAULTS {
            self.0.push(SurfaceFault { code, path: path.into(), message: message.into() });
        }
    }
}

fn text<'c>(component: &'c Value, member: &str) -> Option<&'c str> {
    component.get(member)?.as_str().filter(|text| !text.is_empty())
}

fn check_type(
    at: usize,
    component: &Value,
    catalog: Option<&ComponentCatalog>,
    faults: &mut Faults,
) {
    let path = format!("components[{at}].component");
    let Some(name) = text(component, "component") else {
        return faults.add(
            "missing_component_type",
            path,
            "a component has no `component`, the name of its type",
        );
    };
    let Some(catalog) = catalog else { return };
    let Some(required) = catalog.required.get(name) else {
        return faults.add(
            "unknown_component",
            path,
            format!("the catalog has no component {name:?}"),
        );
    };
    for property in required.iter().filter(|property| component.get(property.as_str()).is_none()) {
        let message = format!("the component {name:?} needs the property {property:?}");
        faults.add("missing_required_prop", format!("components[{at}].{property}"), message);
    }
}

/// Returns the ids in `child` and `children`: a text, a list, or a template that is repeated for each item of the data.
fn children(component: &Value) -> impl Iterator<Item = &str> {
    let members = ["child", "children"].into_iter().filter_map(|member| component.get(member));
    let references = members
        .flat_map(|member| member.as_array().map_or(std::slice::from_ref(member), Vec::as_slice));
    references.filter_map(|reference| {
        reference.as_str().or_else(|| reference.get("componentId")?.as_str())
    })
}

/// Finds places that a component reads and the data does not have. Paths without a leading slash
/// are relative to an item.
fn check_bindings(at: usize, node: &Value, data: &Value, faults: &mut Faults) {
    match node {
        Value::Array(items) => items.iter().for_each(|item| check_bindings(at, item, data, faults)),
        Value::Object(members) => {
            let path =
                members.get("path").and_then(Value::as_str).filter(|path| path.starts_with('/'));
            if let Some(path) =
                path.filter(|path| data.pointer(path.trim_end_matches('/')).is_none())
            {
                faults.add(
                    "unresolved_binding",
                    format!("components[{at}]"),
                    format!("the data has no {path:?}"),
                );
            }
            members.values().for_each(|member| check_bindings(at, member, data, faults));
        }
        _ => {}
    }
}

/// Returns a component that contains itself. Does not recurse, because a model decides on the depth
/// of components.
fn cycle(components: &[Value]) -> Option<&str> {
    let children: HashMap<&str, Vec<&str>> = components
        .iter()
        .filter_map(|component| Some((text(component, "id")?, children(component).collect())))
        .collect();
    let mut is_open: HashMap<&str, bool> = HashMap::new();
    for start in components.iter().filter_map(|component| text(component, "id")) {
        let mut path = vec![(start, 0)];
        while let Some((id, next)) = path.last_mut() {
            let is_seen = *next == 0 && is_open.insert(id, true) == Some(false);
            match children.get(id).and_then(|children| children.get(*next)).filter(|_| !is_seen) {
                Some(child) if is_open.get(child) == Some(&true) => return Some(child),
                Some(child) => {
                    *next += 1;
                    path.push((child, 0));
                }
                None => {
                    is_open.insert(id, false);
                    path.pop();
                }
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    fn codes(components: Value, data: Option<&Value>) -> Vec<&'static str> {
        let json = json!({ "catalogId": "c", "components": {
            "Text": { "allOf": [{ "$ref": "x" }, { "required": ["component", "text"] }] },
            "Row": {
                "properties": { "child": { "$ref": "#/$defs/ComponentId" }, "children": { "$ref": "#/$defs/ChildList" } },
                "required": ["component"],
            },
        } });
        let (components, catalog) = (components.as_array().unwrap(), ComponentCatalog::read(&json));
        let codes: Vec<_> =
            check(components, data, catalog.as_ref()).iter().map(|fault| fault.code).collect();
        if components.len() < MAX_FAULTS {
            assert_eq!(
                codes.iter().copied().collect::<BTreeSet<_>>(),
                oracle(components, data, &json),
                "{components:?}"
            );
        }
        codes
    }

    /// The codes that the crate `ag-ui-a2ui` gives.
    fn oracle(
        components: &[Value],
        data: Option<&Value>,
        catalog: &Value,
    ) -> BTreeSet<&'static str> {
        let catalog = ag_ui_a2ui::Catalog::from_schema(catalog).unwrap();
        let options =
            ag_ui_a2ui::ValidateOptions { require_bound_values: true, ..Default::default() };
        let report =
            ag_ui_a2ui::Validator::with_options(&catalog, options).validate_json(components, data);
        report.errors.iter().map(|error| error.code.as_str()).collect()
    }

    #[test]
    fn each_fault_has_its_code() {
        let root = json!({ "id": "root", "component": "Row", "children": ["a"] });
        let text = json!({ "id": "a", "component": "Text", "text": { "path": "/name" } });
        assert_eq!(codes(json!([root, text]), None), [""; 0]);
        assert_eq!(codes(json!([root, text]), Some(&json!({ "name": null }))), [""; 0]);
        assert_eq!(codes(json!([root, text]), Some(&json!({}))), ["unresolved_binding"]);
        assert_eq!(codes(json!([]), None), ["empty_components"]);
        assert_eq!(codes(json!([root, text, { "component": "Row" }]), None), ["missing_id"]);
        assert_eq!(codes(json!([root, text, { "id": "b" }]), None), ["missing_component_type"]);
        assert_eq!(codes(json!([root, text, text]), None), ["duplicate_id"]);
        assert_eq!(codes(json!([text]), None), ["no_root"]);
        assert_eq!(
            codes(json!([root, { "id": "a", "component": "Video" }]), None),
            ["unknown_component"]
        );
        assert_eq!(
            codes(json!([root, { "id": "a", "component": "Text" }]), None),
            ["missing_required_prop"]
        );
        assert_eq!(codes(json!([root]), None), ["unresolved_child"]);
        let back = json!({ "id": "a", "component": "Row", "children": { "componentId": "root", "path": "/items" } });
        assert_eq!(codes(json!([root, back]), Some(&json!({ "items": [] }))), ["child_cycle"]);
        assert_eq!(codes(json!([1, root, text]), None), ["missing_id", "missing_component_type"]);
    }

    #[test]
    fn a_component_in_several_places_is_no_cycle_and_deep_ones_take_no_stack() {
        let row = |id: &str, children: &[&str]| json!({ "id": id, "component": "Row", "children": children });
        assert_eq!(
            codes(
                json!([
                    row("root", &["a", "b", "c"]),
                    row("a", &["c"]),
                    row("b", &["a", "c"]),
                    row("c", &[])
                ]),
                None
            ),
            [""; 0]
        );
        let name = |n: usize| if n == 0 { "root".to_owned() } else { n.to_string() };
        let mut deep: Vec<_> = (0..50_000).map(|n| row(&name(n), &[&name(n + 1)])).collect();
        deep.push(row(&name(50_000), &[]));
        assert_eq!(codes(json!(deep), None), [""; 0]);
        deep[50_000] = row(&name(50_000), &["root"]);
        assert_eq!(codes(json!(deep), None), ["child_cycle"]);
    }

    #[test]
    fn the_list_of_faults_is_bounded() {
        assert_eq!(codes(json!(vec![1; 500]), None).len(), MAX_FAULTS);
    }
}
