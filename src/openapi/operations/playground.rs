//! The page to try the agents.

use crate::openapi::{
    operation::{Description, Tag},
    schema::text,
};

pub(super) fn describe(method: &str, template: &str) -> Option<Description> {
    let file = |id, summary, media_type: &str| {
        let content = [(media_type, Some(text().into()))];
        Description::new(Tag::Playground, id, summary)
            .header("If-None-Match", text(), "The `ETag` of the client's copy.")
            .answer(200, "The file.", &content)
            .answer_header(200, "ETag", "Names this version of the file.")
            .empty(304, "The client's copy is current.")
    };
    Some(match (method, template) {
        ("GET", "/playground") => file("openPlayground", "Is a page to try the agents", "text/html"),
        ("GET", "/playground/") => {
            Description::new(Tag::Playground, "redirectToPlayground", "Leads to the page").empty(308, "The page.")
        }
        ("GET", "/playground/main.js") => file("readPlaygroundScript", "Is the page's script", "text/javascript"),
        ("GET", "/playground/main.css") => file("readPlaygroundStyle", "Is the page's style", "text/css"),
        ("GET", "/playground/icon.svg") => file("readPlaygroundIcon", "Is the page's icon", "image/svg+xml"),
        _ => return None,
    })
}
