pub(super) mod player;

use serde_json::json;

use self::player::{play, user};
use super::*;

#[tokio::test]
async fn calls_without_a_message_share_one_that_has_no_text() {
    let script =
        Script::parse("[[answer]]\nplay = [{ calls = [{ call = 'f' }, { call = 'g' }] }]").unwrap();
    let events = play(&script, json!([user("x")]), &[]).await;
    assert_eq!(events[0]["toolCallName"], "f");
    assert_eq!(events[1]["toolCallName"], "g");
    assert!(events[0]["parentMessageId"].is_string());
    assert_eq!(events[0]["parentMessageId"], events[1]["parentMessageId"]);
}

#[tokio::test]
async fn the_first_line_that_fits_is_played() {
    let script = Script::parse(
        "[[answer]]\nwhen.user = 'a'\nplay = [{ text = 'first' }]\n[[answer]]\nwhen.user = 'ab'\nplay = [{ text = 'second' }]",
    )
    .unwrap();
    let first = play(&script, json!([user("ab")]), &[]).await;
    assert_eq!(first[1]["delta"], "first");
    assert!(play(&script, json!([user("x")]), &[]).await.is_empty());
}

#[test]
fn a_wrong_script_is_refused_with_its_place() {
    let answer = |play: &str| format!("[[answer]]\nplay = [{play}]");
    for (script, place, expected) in [
        (String::new(), "", "a script needs at least one [[answer]]"),
        (
            "[[answer]]\nwhen.user = '('\nplay = []".to_owned(),
            "'('",
            "not a regular expression: unclosed group",
        ),
        (
            "[[answer]]\nwhen.usr = ''\nplay = []".to_owned(),
            "usr",
            "unknown field `usr`, expected one of",
        ),
        (
            "[[answer]]\nwhen.result = 'x'\nplay = []".to_owned(),
            "[[answer]]",
            "`result` and `failed` are about a tool's result",
        ),
        (
            "[[answer]]\ngoes_on = true\nplay = [{ interrupts = [{ name = 'x' }] }]".to_owned(),
            "{ interrupts",
            "`interrupts` end the run",
        ),
        (
            answer("{ text = 'a' }, { txt = 'b' }"),
            "{ txt",
            "an action needs one of `text`, `think`",
        ),
        (
            answer("{ text = 'a', txt = 'b' }"),
            "{ text",
            "unknown field `txt`, expected `text` or `every_ms`",
        ),
        (answer("'a'"), "'a'", "invalid type: string \"a\", expected an action: a table"),
        (answer("{ every_ms = 5 }"), "{ every_ms", "an action needs one of `text`, `think`"),
        (
            answer("{ text = 'a', think = 'b' }"),
            "{ text",
            "unknown field `think`, expected `text` or `every_ms`",
        ),
        (
            answer("{ text = 'a', code = 'b' }"),
            "{ text",
            "unknown field `code`, expected `text` or `every_ms`",
        ),
        (answer("{ text = '' }"), "{ text", "there is no text"),
        (answer("{ text = '{name}' }"), "{ text", "the placeholder {name} is unknown here"),
        (
            answer("{ call = 'f', within = true }"),
            "{ call",
            "`within` needs a message before the call",
        ),
        (
            answer("{ state = 1, every_ms = 5 }"),
            "{ state",
            "unknown field `every_ms`, expected `state`",
        ),
        (answer("{ step = 'a' }"), "{ step", "missing field `play`"),
        (
            answer("{ step = 'a', play = [{ step = 'a', play = [] }] }"),
            "{ step = 'a', play = [{",
            "the step \"a\" is already open here",
        ),
        (
            answer("{ activity = 'a', patch = [] }"),
            "{ activity",
            "the activity \"a\" has no `content` yet",
        ),
        (
            answer(
                "{ activity = 'a', content = {}, patch = [{ op = 'test', path = '/a', value = 1 }] }",
            ),
            "{ activity",
            "`activity` needs either `content` or `patch`",
        ),
        (
            answer("{ patch = [{ op = 'add', path = 'a', value = 1 }] }"),
            "{ patch",
            "\"a\" is not a JSON Pointer",
        ),
        (
            answer("{ patch = [{ op = 'move', from = '/a', path = '/a/b' }] }"),
            "{ patch",
            "\"/a\" is moved into itself, to \"/a/b\"",
        ),
        (
            answer(
                "{ activity = 'a', content = {} }, { activity = 'a', patch = [{ op = 'remove', path = '' }] }",
            ),
            "{ activity = 'a', patch",
            "the content of an activity stays a table",
        ),
        (answer("{ patch = [{ op = 'ad', path = '' }] }"), "", "unknown variant `ad`"),
    ] {
        let error = Script::parse(&script).unwrap_err();
        assert!(error.message.starts_with(expected), "{script}\n{error}");
        if !place.is_empty() {
            let span = error.span.clone().unwrap_or_else(|| panic!("{script}: no place"));
            assert!(script[span.start..].starts_with(place), "{script}\n{}", &script[span.start..]);
        }
    }
}

#[test]
fn what_a_script_does_can_be_read_from_its_capabilities() {
    let plain = Script::parse("[[answer]]\nplay = [{ text = 'a' }]").unwrap().capabilities();
    assert_eq!(plain.tools.unwrap().supported, Some(false));
}
