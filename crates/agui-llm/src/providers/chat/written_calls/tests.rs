use proptest::{prelude::*, sample::select};
use serde_json::json;

use super::*;
use crate::{KnownModels, ProfileOptions};

fn reader_of(server: &str) -> WrittenCallReader {
    let url = reqwest::Url::parse("http://host").unwrap();
    let profile =
        KnownModels::default().profile(Some(&ProfileOptions::named(server)), &url).unwrap();
    let tools = ["look_up", "now"].map(|name| ToolSpec::new(name, "", json!({})));
    WrittenCallReader::new(profile.written_calls.clone(), Arc::new(tools))
}

/// Returns the text of an answer in these pieces, and its calls.
fn split(pieces: &[&str]) -> (String, Vec<(String, String)>) {
    let mut reader = reader_of("vllm");
    let mut text: String = pieces.iter().map(|piece| reader.read(piece)).collect();
    let WrittenEnd { text: held, calls } = reader.end();
    if calls.is_empty() {
        text.push_str(&held);
    }
    (text, calls.into_iter().map(|call| (call.name, call.arguments)).collect())
}

const DSML: &str = "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"look_up\">\n\
    <｜DSML｜parameter name=\"city\" string=\"true\">1 </b></｜DSML｜parameter>\n\
    <｜DSML｜parameter name=\"days\" string=\"false\">3</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>";

/// The names and the arguments of calls.
type Expected = &'static [(&'static str, &'static str)];

/// Answers, with their texts and their calls.
const ANSWERS: &[(&str, &str, Expected)] = &[
    (
        "I look.\n<tool_call>\n{\"name\": \"look_up\", \"arguments\": {\"a\": \"</tool_call>\"}}\n</tool_call>",
        "I look.\n",
        &[("look_up", "{\"a\":\"</tool_call>\"}")],
    ),
    (
        "\n\n<tool_call>{\"name\":\"now\"}</tool_call>\n<tool_call>{\"name\":\"look_up\",\"arguments\":{}}</tool_call>",
        "",
        &[("now", "{}"), ("look_up", "{}")],
    ),
    ("[TOOL_CALLS][{\"name\":\"now\",\"arguments\":{}}]", "", &[("now", "{}")]),
    ("Ok[TOOL_CALLS]look_up[ARGS]{\"a\":1}", "Ok", &[("look_up", "{\"a\":1}")]),
    (
        "[TOOL_CALLS]now{}[TOOL_CALLS]look_up{\"a\":2}",
        "",
        &[("now", "{}"), ("look_up", "{\"a\":2}")],
    ),
    (
        "<|python_tag|>{\"name\":\"now\",\"parameters\":{}}; {\"name\":\"look_up\",\"parameters\":{\"a\":\"é\"}}",
        "",
        &[("now", "{}"), ("look_up", "{\"a\":\"é\"}")],
    ),
    ("<|python_start|>{\"name\": \"now\", \"parameters\": {}}<|python_end|>", "", &[("now", "{}")]),
    (DSML, "", &[("look_up", "{\"city\":\"1 </b>\",\"days\":3}")]),
    ("<｜DSML｜invoke name=\"now\">\n</｜DSML｜invoke>", "", &[("now", "{}")]),
    (
        " [look_up(a=1, b='x, (y', c=[True, None]), now()]",
        "",
        &[("look_up", "{\"a\":1,\"b\":\"x, (y\",\"c\":[true,null]}"), ("now", "{}")],
    ),
    // No calls.
    ("<tool_call>{\"name\":\"rm\",\"arguments\":{}}</tool_call>", "", &[]),
    ("<tool_call>{\"name\":\"now\",\"argum", "", &[]),
    ("Write `<tool_call>` around it, then `</tool_call>`.", "", &[]),
    ("<tool_call>{\"name\":\"now\"}</tool_call> That is how.", "", &[]),
    ("[look_up] is a list, [now()] a call.", "", &[]),
    ("[now()", "", &[]),
    ("a <tool", "", &[]),
    ("  ", "", &[]),
    ("<｜DSML｜invoke name=\"now\">", "", &[]),
    ("[TOOL_CALLS] is a token, and <|python_tag|> another", "", &[]),
];

#[test]
fn calls_of_tools_on_offer_are_calls_and_all_else_is_text() {
    for (answer, text, calls) in ANSWERS {
        let text = if calls.is_empty() { answer } else { text };
        let calls: Vec<_> =
            calls.iter().map(|(name, json)| ((*name).to_owned(), (*json).to_owned())).collect();
        assert_eq!(split(&[answer]), ((*text).to_owned(), calls), "{answer}");
    }
}

#[test]
fn only_what_may_be_a_call_is_held_back() {
    let mut reader = reader_of("vllm");
    assert_eq!(reader.read("a <tool"), "a ");
    assert_eq!(reader.read("box> b <tool_call> is"), "<toolbox> b <tool_call> is");
    assert_eq!(reader.read("[now()]"), "[now()]");
}

#[test]
fn a_server_that_reads_calls_itself_gives_them_as_text() {
    assert!(
        reader_of("openai").is_off()
            && reader_of("mistral").is_off()
            && reader_of("deepseek").is_off()
    );
    assert!(!reader_of("compatible").is_off() && !reader_of("ollama").is_off());
    let profile =
        KnownModels::default().profile(None, &reqwest::Url::parse("http://host").unwrap()).unwrap();
    assert!(
        WrittenCallReader::new(profile.written_calls.clone(), Arc::default()).is_off(),
        "no tools"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn every_split_of_an_answer_gives_the_same(
        (answer, _, _) in select(ANSWERS),
        before in select(&["", "Hm. ", "\n"][..]),
        mut cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let answer = format!("{before}{answer}");
        let places: Vec<usize> = answer.char_indices().map(|(at, _)| at).chain([answer.len()]).collect();
        let mut cuts: Vec<usize> = cuts.drain(..).map(|cut| *cut.get(&places)).chain([0, answer.len()]).collect();
        cuts.sort_unstable();
        let pieces: Vec<_> = cuts.windows(2).map(|pair| &answer[pair[0]..pair[1]]).collect();
        prop_assert_eq!(split(&pieces), split(&[&answer]), "{:?}", pieces);
    }
}
