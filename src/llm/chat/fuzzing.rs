//! Makes a decoder for the fuzz targets.

use reqwest::Url;

use super::{decoder::ChatDecoder, known, profile::ProfileOptions};
use crate::llm::transport::Decoder;

#[expect(clippy::expect_used, reason = "the callers are fuzz targets, with names of profiles that they choose")]
pub(in crate::llm) fn decoder(profile: &str) -> Box<dyn Decoder> {
    let url = Url::parse("http://localhost").expect("a URL");
    let profile = known::profile(Some(&ProfileOptions::named(profile)), &url).expect("a known profile");
    Box::new(ChatDecoder::new("m", &profile, false))
}
