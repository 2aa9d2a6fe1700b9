//! Fits the media of a request into the provider's limits: images are scaled down, and the oldest
//! media leave a request with too many of them, before steps of text do.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use base64::Engine as _;

use super::{estimate::is_media, image_scale::scale_down};
use crate::{
    known_models::MediaLimits,
    model::{ModelStep, SkippedAttachment},
    providers::wire::{media, skipped_attachment},
};
use agui_agent::files::image_size;
use agui_base::base64_text::LENIENT;
use agui_protocol::{ContentPart, MessageContent, PartSource};

/// The characters of base64 in which the size of an image is looked for. Photos have a preview
/// before it.
const BEGINNING: usize = 256 << 10;

/// One medium of a request.
struct Medium {
    is_image: bool,
    /// False if an earlier request has reported the medium.
    is_new: bool,
    /// The characters of inline data; 0 without any.
    chars: usize,
}

/// Changes the steps of an owner's request; those from `first_new` on are new. Returns the
/// attachments of the new steps that the model does not get.
pub(crate) async fn fit(
    steps: &mut [ModelStep],
    first_new: usize,
    limits: &MediaLimits,
    owner: &Arc<str>,
) -> Vec<SkippedAttachment> {
    if *limits == MediaLimits::default() {
        return Vec::new();
    }
    let mut skipped = Vec::new();
    let all = media_in(steps, first_new);
    if let Some(most) = limits.media.filter(|most| all.len() > *most) {
        // More than the excess, so that the next requests begin alike, which the provider's cache needs.
        let stride = (most / 4).max(1);
        let too_many = (all.len() - most).div_ceil(stride) * stride;
        let reason =
            format!("the model takes {most} attachments, and newer ones have their places");
        leave_out(steps, &all, |number| (number < too_many).then_some(&*reason), &mut skipped);
    }
    let all = media_in(steps, first_new);
    let images = all.iter().filter(|medium| medium.is_image).count();
    let side = match limits.many_images_above {
        Some(most) if images > most => limits.max_side_if_many.or(limits.image_side),
        _ => limits.image_side,
    };
    let failed = scale(steps, side, limits.image_chars, owner).await;
    leave_out(steps, &all, |number| failed.get(&number).map(String::as_str), &mut skipped);
    let all = media_in(steps, first_new);
    let (mut chars, max_chars) = (0, limits.media_chars.unwrap_or(usize::MAX));
    let newest_first = all.iter().enumerate().rev();
    let over: HashSet<usize> = newest_first
        .filter_map(|(at, medium)| {
            chars += medium.chars;
            (chars > max_chars && medium.chars > 0).then_some(at)
        })
        .collect();
    let reason = "the attachments are larger together than the model takes";
    leave_out(steps, &all, |number| over.contains(&number).then_some(reason), &mut skipped);
    skipped
}

fn media_in(steps: &mut [ModelStep], first_new: usize) -> Vec<Medium> {
    let mut all = Vec::new();
    for (step, content) in steps.chunks_mut(1).enumerate() {
        each_medium(content, |part| {
            let chars = inline(part).map_or(0, |(value, _)| value.len());
            all.push(Medium {
                is_image: matches!(part, ContentPart::Image(_)),
                is_new: step >= first_new,
                chars,
            });
        });
    }
    all
}

/// Replaces the media whose numbers have a reason by notes, in one pass: each replacement changes
/// the numbers.
fn leave_out<'r>(
    steps: &mut [ModelStep],
    all: &[Medium],
    reason: impl Fn(usize) -> Option<&'r str>,
    skipped: &mut Vec<SkippedAttachment>,
) {
    let mut number = 0;
    each_medium(steps, |part| {
        if let Some(reason) = reason(number)
            && let Ok((kind, _)) = media(part)
        {
            let is_new = all.get(number).is_some_and(|medium| medium.is_new);
            skipped.extend(skipped_attachment(part, reason).filter(|_| is_new));
            let place = if is_new { "this message" } else { "an earlier message" };
            *part = ContentPart::text(format!(
                "(An attachment of {place}, {kind}, is left out: {reason}.)"
            ));
        }
        number += 1;
    });
}

/// Scales images down that have a longer side or more characters. Returns the reason for each image
/// that cannot be scaled, by its number.
async fn scale(
    steps: &mut [ModelStep],
    side: Option<u32>,
    chars: Option<usize>,
    owner: &Arc<str>,
) -> HashMap<usize, String> {
    let (mut larger, mut number) = (Vec::new(), 0);
    each_medium(steps, |part| {
        if matches!(part, ContentPart::Image(_))
            && let Some((value, mime_type)) = inline(part)
            && is_larger(value, side, chars)
        {
            larger.push((number, value, mime_type));
        }
        number += 1;
    });
    let mut failed = HashMap::new();
    for (number, value, mime_type) in larger {
        if let Err(problem) = scale_down(owner, value, mime_type, side, chars).await {
            failed.insert(number, problem);
        }
    }
    failed
}

/// Returns whether an image in base64 has more characters or a longer side. False if its size
/// cannot be read.
pub(super) fn is_larger(base64: &str, side: Option<u32>, chars: Option<usize>) -> bool {
    if chars.is_some_and(|chars| base64.len() > chars) {
        return true;
    }
    let Some(side) = side else { return false };
    let beginning = &base64[..base64.floor_char_boundary(BEGINNING)];
    let Ok(beginning) = LENIENT.decode(beginning) else { return false };
    image_size(&beginning).is_some_and(|size| size.width.max(size.height) > side)
}

fn inline(part: &mut ContentPart) -> Option<(&mut String, &mut String)> {
    match &mut part.media_mut()?.source {
        PartSource::Data { value, mime_type } => Some((value, mime_type)),
        PartSource::Url { .. } | PartSource::File { .. } => None,
    }
}

pub(crate) fn each_medium<'t>(
    steps: &'t mut [ModelStep],
    mut visit: impl FnMut(&'t mut ContentPart),
) {
    for step in steps {
        let mut visit_all = |parts: &'t mut [ContentPart]| {
            parts.iter_mut().filter(|part| is_media(part)).for_each(&mut visit);
        };
        match step {
            ModelStep::User(parts) => visit_all(parts),
            ModelStep::ToolResults(results) => {
                results.iter_mut().for_each(|result| match &mut result.content {
                    MessageContent::Parts(parts) => visit_all(parts),
                    MessageContent::Text(_) => {}
                })
            }
            ModelStep::Instructions(_) | ModelStep::Assistant(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;
