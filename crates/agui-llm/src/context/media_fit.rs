//! The media of a request within what its provider takes: images are scaled down, and the oldest media leave a request that has
//! too many of them, before turns of text do.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use super::{
    estimate::is_media,
    image_scale::{self, SCALER},
};
use crate::{
    known_models::MediaLimits,
    model::{SkippedAttachment, Turn},
    providers::wire::{media, skipped_attachment},
};
use agui_protocol::{ContentPart, MessageContent, PartSource};

/// What the request tells of one medium.
struct Medium {
    is_image: bool,
    /// Earlier requests have told of the others.
    is_new: bool,
    /// 0 unless it is inline.
    chars: usize,
}

/// Changes the turns of an owner's request, of which those from `first_new` on are new. Returns what the model does not get of
/// these.
pub(super) async fn fit(
    turns: &mut [Turn],
    first_new: usize,
    limits: &MediaLimits,
    owner: &Arc<str>,
) -> Vec<SkippedAttachment> {
    if *limits == MediaLimits::default() {
        return Vec::new();
    }
    let mut skipped = Vec::new();
    let all = of_turns(turns, first_new);
    if let Some(most) = limits.media.filter(|most| all.len() > *most) {
        // More than the excess, so that the next requests begin alike, which the provider's cache needs.
        let step = (most / 4).max(1);
        let too_many = (all.len() - most).div_ceil(step) * step;
        let reason =
            format!("the model takes {most} attachments, and newer ones have their places");
        leave_out(turns, &all, |number| (number < too_many).then_some(&*reason), &mut skipped);
    }
    let all = of_turns(turns, first_new);
    let images = all.iter().filter(|medium| medium.is_image).count();
    let side = match limits.few_images {
        Some(few) if images > few => limits.side_of_many.or(limits.image_side),
        _ => limits.image_side,
    };
    let failed = scale(turns, side, limits.image_chars, owner).await;
    leave_out(turns, &all, |number| failed.get(&number).map(String::as_str), &mut skipped);
    let all = of_turns(turns, first_new);
    let (mut chars, max_chars) = (0, limits.media_chars.unwrap_or(usize::MAX));
    let newest_first = all.iter().enumerate().rev();
    let over: HashSet<usize> = newest_first
        .filter_map(|(at, medium)| {
            chars += medium.chars;
            (chars > max_chars && medium.chars > 0).then_some(at)
        })
        .collect();
    let reason = "the attachments are larger together than the model takes";
    leave_out(turns, &all, |number| over.contains(&number).then_some(reason), &mut skipped);
    skipped
}

fn of_turns(turns: &mut [Turn], first_new: usize) -> Vec<Medium> {
    let mut all = Vec::new();
    for (turn, content) in turns.chunks_mut(1).enumerate() {
        each_medium(content, |part| {
            let chars = inline(part).map_or(0, |(value, _)| value.len());
            all.push(Medium {
                is_image: matches!(part, ContentPart::Image(_)),
                is_new: turn >= first_new,
                chars,
            });
        });
    }
    all
}

/// Puts notes in place of the media whose numbers have a reason, in one pass: a medium that has left is not counted any more.
fn leave_out<'r>(
    turns: &mut [Turn],
    all: &[Medium],
    reason: impl Fn(usize) -> Option<&'r str>,
    skipped: &mut Vec<SkippedAttachment>,
) {
    let mut number = 0;
    each_medium(turns, |part| {
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

/// Scales images down that have a longer side or more characters. Returns the number of each that cannot be, and why.
async fn scale(
    turns: &mut [Turn],
    side: Option<u32>,
    chars: Option<usize>,
    owner: &Arc<str>,
) -> HashMap<usize, String> {
    let (mut larger, mut number) = (Vec::new(), 0);
    each_medium(turns, |part| {
        if matches!(part, ContentPart::Image(_))
            && let Some((value, mime_type)) = inline(part)
            && image_scale::is_larger(value, side, chars)
        {
            larger.push((number, value, mime_type));
        }
        number += 1;
    });
    let mut failed = HashMap::new();
    for (number, value, mime_type) in larger {
        match SCALER.scaled(owner, std::mem::take(value), side, chars).await {
            Ok(image) => {
                value.clone_from(&image.base64);
                image.mime_type.clone_into(mime_type);
            }
            Err(problem) => _ = failed.insert(number, problem),
        }
    }
    failed
}

fn inline(part: &mut ContentPart) -> Option<(&mut String, &mut String)> {
    match &mut part.media_mut()?.source {
        PartSource::Data { value, mime_type } => Some((value, mime_type)),
        PartSource::Url { .. } | PartSource::File { .. } => None,
    }
}

pub(super) fn each_medium<'t>(turns: &'t mut [Turn], mut visit: impl FnMut(&'t mut ContentPart)) {
    for turn in turns {
        let mut visit_all = |parts: &'t mut [ContentPart]| {
            parts.iter_mut().filter(|part| is_media(part)).for_each(&mut visit);
        };
        match turn {
            Turn::User(parts) => visit_all(parts),
            Turn::ToolResults(results) => {
                results.iter_mut().for_each(|result| match &mut result.content {
                    MessageContent::Parts(parts) => visit_all(parts),
                    MessageContent::Text(_) => {}
                })
            }
            Turn::Instructions(_) | Turn::Assistant(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;
