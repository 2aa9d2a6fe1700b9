//! Media that a provider refuses, and the notes in their places.

use crate::{
    model::{ModelStep, SkippedAttachment},
    providers::wire::{media, skipped_attachment},
    window::media_fit::each_medium,
};
use agui_protocol::{ContentPart, PartSource};

pub(super) fn has_media(steps: &mut [ModelStep]) -> bool {
    let mut found = false;
    each_medium(steps, |_| found = true);
    found
}

/// Puts notes in place of media, and returns these.
pub(super) fn take_media(
    steps: &mut [ModelStep],
    takes: impl Fn(&ContentPart) -> bool,
) -> Vec<ContentPart> {
    let mut taken = Vec::new();
    each_medium(steps, |part| {
        if takes(part)
            && let Ok((kind, _)) = media(part)
        {
            let note = ContentPart::text(format!(
                "(Here was an attachment, {kind}, that you cannot read.)"
            ));
            taken.push(std::mem::replace(part, note));
        }
    });
    taken
}

/// Returns the reports of media that are left out.
pub(super) fn reports<'p>(
    parts: &'p [ContentPart],
    reason: &'p str,
) -> impl Iterator<Item = SkippedAttachment> + 'p {
    parts.iter().filter_map(move |part| skipped_attachment(part, reason))
}

/// Returns the data or the address of a medium, by which it is known again.
pub(super) fn value_of(part: &ContentPart) -> Option<&str> {
    media(part).ok().map(|(_, media)| match &media.source {
        PartSource::Data { value, .. }
        | PartSource::Url { value, .. }
        | PartSource::File { value, .. } => value.as_str(),
    })
}
