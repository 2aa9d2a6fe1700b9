//! The sources of an answer: the results of grounding, and quotations.

use std::collections::BTreeSet;

use serde_json::{Value, json};

/// The largest size of the citations of an answer. The agent has the same limit.
const MAX_CITATION_BYTES: usize = 256 << 10;
/// The bytes of `{"sources":[]}`, rounded up.
const EMPTY_CITATION_BYTES: usize = 16;

/// The sources of the last event. The API sends all sources again with each event.
#[derive(Debug, Default)]
pub(super) struct CitedSources {
    grounding: Option<Value>,
    quoted: Option<Value>,
}

impl CitedSources {
    /// Reads the sources of an event. Returns the number of additional bytes.
    pub(super) fn read(&mut self, candidate: &Value) -> usize {
        let mut more = 0;
        for (kept, name) in
            [(&mut self.grounding, "groundingMetadata"), (&mut self.quoted, "citationMetadata")]
        {
            let Some(value) = candidate.get(name).filter(|value| value.is_object()) else {
                continue;
            };
            more += size(value).saturating_sub(kept.as_ref().map_or(0, size));
            *kept = Some(value.clone());
        }
        more
    }

    /// Returns each supported passage with its sources, then the sources without a passage, then the quotations:
    /// <https://ai.google.dev/gemini-api/docs/google-search#grounded-response>. Many passages may name the same sources,
    /// and each citation contains them, so the citations end at [`MAX_CITATION_BYTES`].
    pub(super) fn into_citations(self) -> Vec<Value> {
        let chunks = list(&self.grounding, "groundingChunks");
        let supports = list(&self.grounding, "groundingSupports");
        let mut has_passage = vec![false; chunks.len()];
        supports
            .iter()
            .flat_map(|support| indices(support, chunks.len()))
            .for_each(|index| has_passage[index] = true);
        let mut citations =
            Citations { sizes: chunks.iter().map(size).collect(), ..Citations::default() };
        for support in supports {
            citations.add(support.get("segment"), &indices(support, chunks.len()), chunks);
        }
        for index in (0..chunks.len()).filter(|index| !has_passage[*index]) {
            citations.add(None, &BTreeSet::from([index]), chunks);
        }
        // The second name is documented, the first one is used by Google's clients.
        for quotation in
            list(&self.quoted, "citations").iter().chain(list(&self.quoted, "citationSources"))
        {
            citations.add_value(quotation);
        }
        citations.list
    }
}

/// Citations up to a number of bytes. The first citation that exceeds it is the end of the list.
#[derive(Default)]
struct Citations {
    list: Vec<Value>,
    /// The sizes of the sources.
    sizes: Vec<usize>,
    bytes: usize,
}

impl Citations {
    fn add(&mut self, segment: Option<&Value>, sources: &BTreeSet<usize>, chunks: &[Value]) {
        self.bytes += EMPTY_CITATION_BYTES
            + segment.map_or(0, size)
            + sources.iter().map(|index| self.sizes[*index]).sum::<usize>();
        if self.bytes <= MAX_CITATION_BYTES {
            let sources: Vec<_> = sources.iter().map(|index| &chunks[*index]).collect();
            self.list.push(match segment {
                Some(segment) => json!({"segment": segment, "sources": sources}),
                None => json!({"sources": sources}),
            });
        }
    }

    fn add_value(&mut self, citation: &Value) {
        self.bytes += size(citation);
        if self.bytes <= MAX_CITATION_BYTES {
            self.list.push(citation.clone());
        }
    }
}

fn list<'v>(value: &'v Option<Value>, name: &str) -> &'v [Value] {
    value
        .as_ref()
        .and_then(|value| value.get(name)?.as_array())
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// Returns the sources of a passage, each once.
fn indices(support: &Value, count: usize) -> BTreeSet<usize> {
    let indices =
        support.get("groundingChunkIndices").and_then(Value::as_array).into_iter().flatten();
    indices
        .filter_map(|index| usize::try_from(index.as_u64()?).ok())
        .filter(|index| *index < count)
        .collect()
}

fn size(value: &Value) -> usize {
    value.to_string().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passages_have_their_sources() {
        let mut sources = CitedSources::default();
        let first = json!({"groundingMetadata": {"groundingChunks": [{"web": {"uri": "a"}}]}});
        assert!(sources.read(&first) > 20);
        let last = json!({
            "groundingMetadata": {
                "groundingChunks": [{"web": {"uri": "a"}}, {"web": {"uri": "b"}}],
                "groundingSupports": [{"segment": {"startIndex": 0, "endIndex": 3}, "groundingChunkIndices": [0, 7]}],
            },
            "citationMetadata": {"citationSources": [{"uri": "c", "startIndex": 1}]},
        });
        sources.read(&last);
        assert_eq!(sources.read(&last), 0, "the same sources again");
        let expected = [
            json!({"segment": {"startIndex": 0, "endIndex": 3}, "sources": [{"web": {"uri": "a"}}]}),
            json!({"sources": [{"web": {"uri": "b"}}]}),
            json!({"uri": "c", "startIndex": 1}),
        ];
        assert_eq!(sources.into_citations(), expected);
        assert_eq!(CitedSources::default().into_citations(), [] as [Value; 0]);
    }

    #[test]
    fn sources_that_are_named_many_times_are_not_multiplied() {
        let citations = |chunk_bytes: usize, supports: Vec<Value>| {
            let chunk = json!({"web": {"uri": "x".repeat(chunk_bytes)}});
            let grounding = json!({"groundingChunks": [chunk], "groundingSupports": supports});
            let mut sources = CitedSources::default();
            sources.read(&json!({"groundingMetadata": grounding}));
            sources.into_citations()
        };
        let bytes = |citations: &[Value]| citations.iter().map(size).sum::<usize>();
        let often = citations(10_000, vec![json!({"groundingChunkIndices": vec![0; 10_000]})]);
        assert_eq!((often.len(), often[0]["sources"].as_array().map(Vec::len)), (1, Some(1)));
        let many = citations(10_000, vec![json!({"groundingChunkIndices": [0]}); 10_000]);
        assert!(
            many.len() > 20 && bytes(&many) <= MAX_CITATION_BYTES + 1000,
            "{} citations",
            many.len()
        );
        assert!(
            citations(MAX_CITATION_BYTES, vec![json!({"groundingChunkIndices": [0]})]).is_empty()
        );
    }
}
