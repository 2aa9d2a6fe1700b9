//! stub
use super::*;
use std::sync::Arc;
#[derive(Clone, Default)]
pub struct Toolbox {
    tools: Vec<OfferedTool>,
}
#[derive(Clone)]
pub struct OfferedTool(Arc<dyn Tool>);
impl std::ops::Deref for OfferedTool {
    type Target = dyn Tool;
    fn deref(&self) -> &(dyn Tool + 'static) {
        &*self.0
    }
}
impl OfferedTool {
    pub fn check(&self, text: &str) -> Result<JsonObject, String> {
        let v: serde_json::Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
        jsonschema::validate(&self.spec().parameters, &v).map_err(|e| e.to_string())?;
        v.as_object().cloned().ok_or("no object".into())
    }
}
impl Toolbox {
    pub fn tools(&self) -> Vec<OfferedTool> {
        self.tools.clone()
    }
    pub fn with(mut self, tool: impl Tool) -> Self {
        self.tools.push(OfferedTool(Arc::new(tool)));
        self
    }
}
