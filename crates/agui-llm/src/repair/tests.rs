//! The ladder with fake models: what was reported, what is remembered, what never happens.

mod cases;
mod history;
mod media;
mod property;

use futures::{StreamExt as _, stream};
use parking_lot::Mutex;
use serde_json::json;

use super::*;
use crate::{
    form::RequestForm,
    model::{
        Block, ModelError, ModelEvent, ModelReasoning, ModelRequest, ModelStep, ModelStream,
        StopReason,
    },
};
use agui_protocol::ContentPart;
use agui_store::ThreadKey;

/// A model that refuses what a function refuses, and keeps what it was asked.
struct Picky<F> {
    refuses: F,
    asked: Arc<Mutex<Vec<ModelRequest>>>,
}

impl<F: Fn(&ModelRequest) -> Option<ModelError> + Send + Sync + 'static> Model for Picky<F> {
    fn provider(&self) -> &str {
        "picky"
    }

    fn name(&self) -> &str {
        "m"
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        let refusal = (self.refuses)(&request);
        self.asked.lock().push(request);
        let event = refusal.map_or(Ok(ModelEvent::Stop(StopReason::Done)), Err);
        stream::iter([event]).boxed()
    }
}

type AskedRequests = Arc<Mutex<Vec<ModelRequest>>>;

fn picky(
    refuses: impl Fn(&ModelRequest) -> Option<ModelError> + Send + Sync + 'static,
) -> (Arc<dyn Model>, AskedRequests) {
    let asked = AskedRequests::default();
    (Arc::new(Picky { refuses, asked: asked.clone() }), asked)
}

fn rejected(message: impl Into<String>) -> ModelError {
    ModelError::new("model_rejected", message.into())
}

fn thread(owner: &str, id: &str) -> Option<ThreadKey> {
    Some(ThreadKey { owner: owner.into(), id: id.into() })
}

fn image(value: &str) -> ContentPart {
    let image = json!({ "type": "image", "source": { "type": "data", "value": value, "mimeType": "image/png" } });
    serde_json::from_value(image).unwrap()
}

fn says(text: &str) -> ModelStep {
    ModelStep::Assistant(vec![Block::Text(text.to_owned())])
}

fn thought() -> Block {
    Block::Reasoning(ModelReasoning { text: "hm".to_owned(), ..ModelReasoning::default() })
}

/// Returns the events of an answer.
async fn play(model: &dyn Model, request: ModelRequest) -> Vec<Result<ModelEvent, ModelError>> {
    model.stream(request).collect().await
}

async fn is_answered(model: &dyn Model, request: ModelRequest) -> bool {
    play(model, request).await.last().is_some_and(Result::is_ok)
}

fn forms(asked: &AskedRequests) -> Vec<RequestForm> {
    asked.lock().drain(..).map(|request| request.form).collect()
}
