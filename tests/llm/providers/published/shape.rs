//! Checks JSON against a published shape. A check returns the reason for which a provider would refuse a value.

use serde_json::Value;

pub type Checked = Result<(), String>;

/// A member of an object: its name, whether it is required, and the check of its value.
pub type Member<'m> = (&'m str, bool, &'m dyn Fn(&Value) -> Checked);

pub fn refuse(reason: impl Into<String>) -> Checked {
    Err(reason.into())
}

/// Refuses unknown members, and missing ones that are required.
pub fn object(value: &Value, members: &[Member<'_>]) -> Checked {
    let Some(map) = value.as_object() else {
        return refuse(format!("expected an object, but got {value}"));
    };
    if let Some(name) = map.keys().find(|name| !members.iter().any(|(known, ..)| known == name)) {
        return refuse(format!("unknown parameter: '{name}'"));
    }
    for (name, is_required, check) in members {
        match map.get(*name) {
            Some(value) => check(value).map_err(|reason| format!("{name}: {reason}"))?,
            None if *is_required => return refuse(format!("missing required parameter: '{name}'")),
            None => {}
        }
    }
    Ok(())
}

pub fn list(value: &Value, check: impl Fn(&Value) -> Checked) -> Checked {
    let Some(values) = value.as_array() else {
        return refuse(format!("expected a list, but got {value}"));
    };
    values
        .iter()
        .enumerate()
        .try_for_each(|(at, value)| check(value).map_err(|reason| format!("[{at}]: {reason}")))
}

pub fn text(value: &Value) -> Checked {
    if value.is_string() { Ok(()) } else { refuse(format!("expected a string, but got {value}")) }
}

pub fn boolean(value: &Value) -> Checked {
    if value.is_boolean() { Ok(()) } else { refuse(format!("expected a boolean, but got {value}")) }
}

pub fn any_object(value: &Value) -> Checked {
    if value.is_object() { Ok(()) } else { refuse(format!("expected an object, but got {value}")) }
}

pub fn number(least: f64, most: f64) -> impl Fn(&Value) -> Checked {
    move |value| match value.as_f64() {
        Some(number) if (least..=most).contains(&number) => Ok(()),
        _ => refuse(format!("expected a number from {least} to {most}, but got {value}")),
    }
}

pub fn integer(least: u64) -> impl Fn(&Value) -> Checked {
    move |value| match value.as_u64() {
        Some(number) if number >= least => Ok(()),
        _ => refuse(format!("expected an integer of at least {least}, but got {value}")),
    }
}

pub fn one_of(names: &'static [&'static str]) -> impl Fn(&Value) -> Checked {
    move |value| match value.as_str() {
        Some(name) if names.contains(&name) => Ok(()),
        _ => refuse(format!("expected one of {names:?}, but got {value}")),
    }
}
