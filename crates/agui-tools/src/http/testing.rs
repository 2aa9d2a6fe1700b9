//! The templates of URLs, for the fuzz targets.

use reqwest::Url;

use super::url_template::UrlTemplate;
use agui_protocol::JsonObject;

/// Fills a template with arguments: those without a place go into the query.
///
/// # Errors
/// If the template is invalid. The inner error is about the arguments.
pub fn fill(template: &str, arguments: &JsonObject) -> Result<Result<Url, String>, String> {
    let template = UrlTemplate::parse(template)?;
    let is_placed = |name: &str| {
        template.places().iter().any(|(place, _)| *place == name) || template.sets(name)
    };
    let in_query: Vec<_> = arguments.iter().filter(|(name, _)| !is_placed(name)).collect();
    Ok(template.fill(arguments, &in_query))
}
