//! The lines of the demo script, in English and Chinese.

#[path = "../../../crates/agui-agents/src/script/tests/player.rs"]
mod player;
mod questions;

use std::sync::LazyLock;

use agui_agent::Agent as _;
use agui_agents::script::Script;
use regex::Regex;
use serde_json::{Value, json};

use self::player::{play, user};

const DEMO: &str = include_str!("../../../config/scripts/demo.toml");

async fn demo(messages: Value, tools: &[&str]) -> Vec<Value> {
    static SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::parse(DEMO).unwrap());
    play(&SCRIPT, messages, tools).await
}

async fn reply(text: &str, tools: &[&str]) -> Vec<Value> {
    demo(json!([user(text)]), tools).await
}

fn answered(question: &str, tool: &str, arguments: &str, result: Value) -> Value {
    let call = json!({ "id": "c", "type": "function", "function": { "name": tool, "arguments": arguments } });
    let mut message = json!({ "id": "m", "role": "tool", "toolCallId": "c", "content": "" });
    message.as_object_mut().unwrap().extend(result.as_object().unwrap().clone());
    json!([user(question), { "id": "a", "role": "assistant", "toolCalls": [call] }, message])
}

fn text(message: &str, deltas: &[&str]) -> Vec<Value> {
    let mut events =
        vec![json!({ "type": "TEXT_MESSAGE_START", "messageId": message, "role": "assistant" })];
    let content = |delta: &&str| json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": message, "delta": delta });
    events.extend(deltas.iter().map(content));
    events.push(json!({ "type": "TEXT_MESSAGE_END", "messageId": message }));
    events
}

fn call(tool: &str, parent: Option<&str>, arguments: &str) -> Vec<Value> {
    let mut start =
        json!({ "type": "TOOL_CALL_START", "toolCallId": "call1", "toolCallName": tool });
    if let Some(parent) = parent {
        start["parentMessageId"] = parent.into();
    }
    vec![
        start,
        json!({ "type": "TOOL_CALL_ARGS", "toolCallId": "call1", "delta": arguments }),
        json!({ "type": "TOOL_CALL_END", "toolCallId": "call1" }),
    ]
}

fn result(message: &str, content: &str) -> Vec<Value> {
    vec![
        json!({ "type": "TOOL_CALL_RESULT", "messageId": message, "toolCallId": "call1", "content": content }),
    ]
}

#[tokio::test]
async fn the_guides_first_example_and_its_scenarios_are_answered_with_their_events() {
    let weather = |city: &str, check, sunny: &str, last: &str| {
        let arguments = format!("{{\"city\":\"{city}\"}}");
        [
            text("msg1", &[check]),
            call("get_weather", Some("msg1"), &arguments),
            result("msg2", sunny),
            text("msg3", &[last]),
        ]
        .concat()
    };
    let (sunny, sunny_zh) = ("Sunny, 25°C", "晴天,25°C");
    assert_eq!(
        reply("What's the weather like in Beijing today?", &["get_weather"]).await,
        weather(
            "Beijing",
            "Let me check",
            sunny,
            "Beijing is sunny today with a temperature of 25°C."
        )
    );
    assert_eq!(
        reply("今天北京天气怎么样?", &["get_weather"]).await,
        weather("北京", "让我查询一下", sunny_zh, "北京今天是晴天,温度25°C。")
    );
    assert_eq!(reply("Hello", &[]).await, text("msg1", &["Hello", "! How can I help you?"]));
    assert_eq!(reply("你好", &[]).await, text("msg1", &["你好", "!有什么可以帮你的吗?"]));
    let search = &["search_local_files"];
    assert_eq!(
        reply("Help me search for report files locally", search).await,
        call("search_local_files", None, "{\"keyword\":\"report\"}")
    );
    assert_eq!(
        reply("帮我搜索本地的报告文件", search).await,
        call("search_local_files", None, "{\"keyword\":\"报告\"}")
    );
    assert_eq!(
        reply("What's the weather like in Beijing?", &[]).await,
        weather("Beijing", "Let me check", sunny, "Beijing is sunny today, 25°C.")
    );
    assert_eq!(
        reply("北京天气怎么样?", &[]).await,
        weather("北京", "让我查一下", sunny_zh, "北京今天晴天,25°C。")
    );
    let confirm = |says, arguments| {
        [text("msg1", &[says]), call("confirmAction", Some("msg1"), arguments)].concat()
    };
    assert_eq!(
        reply("Delete all temporary files", &["confirmAction"]).await,
        confirm(
            "About to delete 15 temporary files",
            "{\"action\":\"delete temporary files\",\"count\":15}"
        )
    );
    assert_eq!(
        reply("删除所有临时文件", &["confirmAction"]).await,
        confirm("即将删除 15 个临时文件", "{\"action\":\"删除临时文件\",\"count\":15}")
    );
}

/// Texts that the documents print with half-width punctuation.
const DOCUMENTED: [&str; 5] = [
    "\"晴天,25°C\"",
    "\"!有什么可以帮你的吗?\"",
    "\"{city}今天是晴天,温度25°C。\"",
    "\"{city}今天晴天,25°C。\"",
    "\"找到了 {result.count} 个文件:{result.list}\"",
];

#[test]
fn chinese_answers_have_full_width_punctuation() {
    let half_width = Regex::new(r"[,!?:;](\D|$)").unwrap();
    let played = DEMO.lines().filter(|line| !line.starts_with("when.") && !line.starts_with('#'));
    for line in played {
        let line = DOCUMENTED.iter().fold(line.to_owned(), |line, text| line.replace(text, "\"\""));
        for text in line.split('"').filter(|text| text.chars().any(|c| ('一'..='鿿').contains(&c)))
        {
            assert!(!half_width.is_match(text) && !text.contains("代理"), "{text}");
        }
    }
}

#[test]
fn its_capabilities_are_all_that_a_script_can_have() {
    let declared = serde_json::to_value(Script::parse(DEMO).unwrap().capabilities()).unwrap();
    assert_eq!(
        declared["tools"],
        json!({ "supported": true, "parallelCalls": true, "clientProvided": true })
    );
    assert_eq!(declared["reasoning"]["supported"], true);
    assert_eq!(
        declared["humanInTheLoop"],
        json!({ "supported": true, "approvals": true, "interrupts": true, "approveWithEdits": true })
    );
}

#[tokio::test]
async fn each_starter_has_an_answer_of_its_own_and_the_fallback_names_all_of_them() {
    let capabilities = Script::parse(DEMO).unwrap().capabilities();
    let starters = &capabilities.custom.unwrap()["starters"];
    for (language, unknown) in [("en", "qwertyuiop"), ("zh", "随便说说")] {
        let [help, .., offers] = &reply(unknown, &[]).await[1..] else { panic!("no events") };
        let help = help["delta"].as_str().unwrap();
        let offered = offers["value"].as_array().unwrap();
        let starters = starters[language].as_array().unwrap();
        assert!(
            starters.len() == 16 && offered.iter().all(|starter| starters.contains(starter)),
            "{offered:?}"
        );
        assert_eq!(help.split(['、', ',']).count(), starters.len(), "{help}");
        for starter in starters {
            let tools = ["search_local_files", "confirmAction"];
            let events = reply(starter.as_str().unwrap(), &tools).await;
            assert!(
                events.iter().all(|event| event["delta"] != help),
                "{starter} is not understood"
            );
        }
    }
}

#[tokio::test]
async fn a_phrase_may_be_polite_alone_or_with_a_digit() {
    let ends = async |text: &str| reply(text, &[]).await.pop().unwrap();
    let messages =
        async |text: &str| ends(text).await["outcome"]["interrupts"].as_array().map(Vec::len);
    assert_eq!([messages("please approve").await, messages("请批准").await], [Some(1), Some(1)]);
    assert_eq!([messages("approve 2").await, messages("批准 2").await], [Some(2), Some(2)]);
    for (alone, says) in [
        ("think", "There is no question, "),
        ("Please think …", "There is no question, "),
        ("思考", "没有问题，"),
    ] {
        assert!(reply(alone, &[]).await.iter().any(|event| event["delta"] == says), "{alone}");
    }
}

#[tokio::test]
async fn a_tools_result_is_answered_with_what_it_says() {
    let (report, report_zh) = ("Help me search for report files locally", "帮我搜索本地的报告文件");
    let (delete, delete_zh) = ("Delete all temporary files", "删除所有临时文件");
    let found = json!({ "content": "[\"2024_annual_report.pdf\", \"Q3_report.docx\"]" });
    let found_zh = json!({ "content": "[\"2024年度报告.pdf\", \"Q3报告.docx\"]" });
    let says = |content: &str| json!({ "content": content });
    let failed = json!({ "error": "no access" });
    for (question, tool, result, expected) in [
        (
            report,
            "search_local_files",
            found,
            "Found 2 files: 2024_annual_report.pdf and Q3_report.docx",
        ),
        (
            report_zh,
            "search_local_files",
            found_zh,
            "找到了 2 个文件:2024年度报告.pdf 和 Q3报告.docx",
        ),
        (report, "search_local_files", says("[]"), "Found no files."),
        (report, "search_local_files", says("[\"a.pdf\"]"), "Found 1 file: a.pdf"),
        (report_zh, "search_local_files", says(" [ ] "), "没有找到文件。"),
        (report, "search_local_files", failed.clone(), "The search failed: no access"),
        (
            report,
            "search_local_files",
            says("nothing much"),
            "Thank you, the tool answered: nothing much",
        ),
        (delete, "confirmAction", says("confirmed"), "Successfully deleted 15 temporary files."),
        (
            delete,
            "confirmAction",
            says("{\"confirmed\": true}"),
            "Successfully deleted 15 temporary files.",
        ),
        (delete, "confirmAction", says("Yes!"), "Successfully deleted 15 temporary files."),
        (delete, "confirmAction", says("确认"), "Successfully deleted 15 temporary files."),
        (delete_zh, "confirmAction", says("confirmed"), "已删除 15 个临时文件。"),
        (delete_zh, "confirmAction", says("是的。"), "已删除 15 个临时文件。"),
        (delete_zh, "confirmAction", says("\"确认删除\""), "已删除 15 个临时文件。"),
        (delete_zh, "confirmAction", says("不可以"), "好的，没有删除任何文件。"),
        (delete, "confirmAction", says("declined"), "All right, nothing was deleted."),
        (delete, "confirmAction", says("not confirmed"), "All right, nothing was deleted."),
        (
            delete,
            "confirmAction",
            says("{\"confirmed\": false}"),
            "All right, nothing was deleted.",
        ),
        (delete, "confirmAction", says("confirmed: false"), "All right, nothing was deleted."),
        (delete, "confirmAction", says("true-ish"), "All right, nothing was deleted."),
        (delete, "confirmAction", says(""), "All right, nothing was deleted."),
        (delete_zh, "confirmAction", says("cancelled"), "好的，没有删除任何文件。"),
        (
            delete,
            "confirmAction",
            failed.clone(),
            "I could not get your confirmation (no access), so nothing was deleted.",
        ),
        (
            "What's the weather like in Rome?",
            "get_weather",
            says("Rain"),
            "The weather in Rome: Rain",
        ),
        ("Hello", "unknown", says("7"), "Thank you, the tool answered: 7"),
        ("Hello", "unknown", failed, "The tool failed: no access"),
    ] {
        let messages = answered(question, tool, "{\"city\":\"Rome\"}", result.clone());
        assert_eq!(demo(messages, &[tool]).await, text("msg1", &[expected]), "{question} {result}");
    }
}

#[tokio::test]
async fn the_city_is_found_in_a_question_about_the_weather() {
    for (question, city) in [
        ("how is the weather in New York right now?", "New York"),
        ("Weather in St. Gallen, please", "St. Gallen"),
        ("上海今天天气怎么样?", "上海"),
        ("明天上海的天气", "上海"),
        ("请帮我查一下广州天气", "广州"),
    ] {
        let events = reply(question, &["get_weather"]).await;
        assert_eq!(events[4]["delta"], json!({ "city": city }).to_string(), "{question}");
    }
    for question in ["今天天气怎么样?", "What's the weather like?"] {
        let events = reply(question, &["get_weather"]).await;
        assert_eq!(events.len(), 3, "{question}: {events:?}");
    }
}

#[tokio::test]
async fn what_the_application_offers_is_its_own_to_reply() {
    let rome = reply("What's the weather like in Rome?", &["get_weather"]).await;
    assert_eq!(
        rome,
        [text("msg1", &["Let me check"]), call("get_weather", Some("msg1"), "{\"city\":\"Rome\"}")]
            .concat()
    );
    for (question, tool) in [
        ("Help me search for report files locally", "search_local_files"),
        ("帮我搜索本地的报告文件", "search_local_files"),
        ("Delete all temporary files", "confirmAction"),
        ("删除所有临时文件", "confirmAction"),
    ] {
        let events = reply(question, &[]).await;
        assert_eq!(events.len(), 3, "{question}");
        assert!(events[1]["delta"].as_str().unwrap().contains(tool), "{question}");
    }
}

#[tokio::test]
async fn the_demo_shows_every_kind_of_event() {
    let types = |events: &[Value]| -> Vec<String> {
        events.iter().map(|event| event["type"].as_str().unwrap_or("error").to_owned()).collect()
    };
    let think = reply("think about tea", &[]).await;
    assert_eq!(think[0]["type"], "REASONING_START");
    assert!(think.iter().any(|event| event["delta"] == "tea"));
    let plan = reply("plan a party", &[]).await;
    assert_eq!(plan[0]["snapshot"]["goal"], "a party");
    for kind in [
        "STATE_DELTA",
        "ACTIVITY_SNAPSHOT",
        "ACTIVITY_DELTA",
        "STEP_STARTED",
        "STEP_FINISHED",
        "CUSTOM",
    ] {
        assert!(types(&plan).contains(&kind.to_owned()), "{kind}");
    }
    let parallel = reply("parallel", &[]).await;
    let args: Vec<_> = parallel.iter().filter(|event| event["type"] == "TOOL_CALL_ARGS").collect();
    assert_eq!(
        args.iter().map(|event| event["toolCallId"].as_str().unwrap()).collect::<Vec<_>>(),
        ["call1", "call2"].repeat(3)
    );
    let arguments = |id: &str| {
        args.iter()
            .filter(|e| e["toolCallId"] == id)
            .map(|e| e["delta"].as_str().unwrap())
            .collect::<String>()
    };
    let parents: Vec<_> =
        parallel.iter().filter_map(|event| event["parentMessageId"].as_str()).collect();
    assert_eq!(parents, ["msg1", "msg1"]);
    assert_eq!(arguments("call1"), "{\"city\":\"Beijing\"}");
    assert_eq!(arguments("call2"), "{\"city\":\"Beijing\",\"format\":\"24h\"}");
    let fail = reply("fail", &[]).await;
    assert_eq!(
        fail[3],
        json!({ "error": "demo_failure", "message": "The demo was asked to fail." })
    );
    for question in ["what?", "什么?", "", "planet", "failure", "count to 0"] {
        assert_eq!(reply(question, &[]).await.len(), 4, "{question}");
        assert_eq!(types(&reply(question, &[]).await)[1], "TEXT_MESSAGE_CONTENT", "{question}");
    }
    assert_eq!(demo(json!([]), &[]).await.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn counting_takes_a_tenth_of_a_second_a_number_and_has_an_end() {
    let started = tokio::time::Instant::now();
    assert_eq!(reply("count to 5", &[]).await, text("msg1", &["1 ", "2 ", "3 ", "4 ", "5"]));
    assert_eq!(started.elapsed().as_millis(), 400);
    assert_eq!(reply("count to 99999999999999999999999", &[]).await.len(), 1002);
    assert_eq!(reply("数到 2", &[]).await.len(), 4);
}
