//! The refusals that people reported.

use serde::Deserialize;
use serde_json::{Value, json};

use super::super::{facts::RequestFacts, policy::next_form};
use crate::{
    form::RequestForm,
    refusal::{ProviderMessage, ProviderRefusal},
};

#[derive(Deserialize)]
struct Cases {
    case: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    report: String,
    status: u16,
    body: String,
    kind: String,
    mended: String,
}

/// A long conversation with all that a form can change.
fn facts() -> RequestFacts {
    RequestFacts {
        reasoning: true,
        earlier_media: true,
        new_media: true,
        instructions: true,
        spread_instructions: true,
        developer_role: false,
        null_content: true,
        repeated_role: true,
        user_after_results: true,
        tokens: 10_000,
        removable: 9_000,
        is_long: true,
    }
}

fn sent() -> Value {
    json!({"model": "m", "stream": true, "temperature": 0.5, "max_tokens": 100, "tools": [{"type": "function",
        "function": {"name": "look_up", "parameters": {"type": "object"}}}], "messages": []})
}

#[test]
fn each_reported_refusal_is_understood() {
    let cases: Cases = toml::from_str(include_str!("../cases.toml")).unwrap();
    assert!(cases.case.len() >= 40, "{}", cases.case.len());
    let mut wrong = Vec::new();
    for Case { report, status, body, kind, mended } in cases.case {
        let read = ProviderMessage::read(status, "application/json", body.as_bytes()).kind;
        let mut refusal = ProviderRefusal::new(read, &body);
        refusal.sent = sent();
        let next = next_form(&facts(), &refusal, &[RequestForm::default()]);
        let rung = next.map_or("no", |next| next.rung);
        if (format!("{read:?}"), rung) != (kind.clone(), mended.as_str()) {
            wrong.push(format!("{report}: {read:?} {rung}, not {kind} {mended}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
