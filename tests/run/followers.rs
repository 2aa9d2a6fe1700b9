//! Clients that follow runs: their number, and their requests.

use agui_server::Server;
use reqwest::{RequestBuilder, header};

use crate::{
    run::{ask, ask_and_leave, ask_detached, changed_options, puppet, refusal},
    support::{
        poll::poll_until,
        running::{Running, read_until},
    },
};

const EVENTS: &str = "/threads/t/runs/r/events";

fn resume(server: &Running, after: &str) -> RequestBuilder {
    server.post("/send-message").header("last-event-id", after).json(&ask_detached("t", "r"))
}

#[tokio::test]
async fn followers_are_limited_however_they_follow() {
    let (agent, strings, _) = puppet();
    let options = changed_options(|options| options.runs.max_followers = 2);
    let server = Running::start(Server::new().agent("puppet", agent).thread_options(options)).await;
    let get = |path: &str| server.client.get(server.url(path));
    // The response that starts the run is not counted.
    let mut first = server.raw_run(&ask_detached("t", "r")).await;
    read_until(&mut first, |text| text.contains("TEXT_MESSAGE_START")).await;
    let following = [get(EVENTS), get("/send-message?runId=r&offset=-1")];
    let following = [
        following[0].try_clone().unwrap().send().await.unwrap(),
        following[1].try_clone().unwrap().send().await.unwrap(),
    ];
    assert!(following.iter().all(|response| response.status() == 200));
    for request in [
        get(EVENTS),
        get("/send-message?runId=r&offset=-1"),
        resume(&server, "1"),
        server.post("/send-message").json(&ask_detached("t", "r")),
        server.post("/threads/t/connect"),
    ] {
        let response = request.send().await.unwrap();
        let url = response.url().to_string();
        assert!(response.headers().contains_key(header::RETRY_AFTER), "{url}");
        assert_eq!(refusal(response).await, (503, "too_many_followers".to_owned()), "{url}");
    }
    // The thread and its other runs can still be used.
    assert_eq!(server.get("/send-message?threadId=t").await.status(), 200);
    drop(following);
    let rest = poll_until("the others have left", async || {
        let response = resume(&server, "1").send().await.unwrap();
        (response.status() == 200).then_some(response)
    });
    let rest = rest.await;
    strings.send("end".to_owned()).unwrap();
    assert!(rest.text().await.unwrap().contains("RUN_FINISHED"));
}

#[tokio::test]
async fn wrong_huge_and_unknown_ids_and_positions_are_refused() {
    let (agent, _strings, _) = puppet();
    let server = Running::start(Server::new().agent("puppet", agent)).await;
    ask_and_leave(&server, &ask_detached("t", "r")).await;
    let huge = "x".repeat(20_000);
    let digits = "9".repeat(20_000);
    let wrong = "400 invalid_parameter";
    for (path, expected) in [
        (format!("/send-message?runId={huge}"), "404 unknown_run"),
        (format!("/send-message?runId={huge}&threadId=t"), "404 unknown_run"),
        (format!("/send-message?runId=r&threadId={huge}"), "404 unknown_thread"),
        ("/send-message?runId=%00".to_owned(), "404 unknown_run"),
        ("/send-message?runId=".to_owned(), "404 unknown_run"),
        ("/send-message?runId=%ff".to_owned(), "404 unknown_run"),
        (format!("/send-message?runId=r&offset={digits}"), wrong),
        ("/send-message?runId=r&offset=18446744073709551616".to_owned(), wrong),
        ("/send-message?runId=r&offset=1e3".to_owned(), wrong),
        ("/send-message?runId=r&offset=%2B1".to_owned(), wrong),
        (format!("/send-message?threadId=t&before={digits}"), wrong),
        (format!("/send-message?threadId=t&limit={digits}"), wrong),
        (format!("/threads/{huge}/runs/r/events"), "404 unknown_thread"),
        (format!("/threads/t/runs/{huge}/events"), "404 unknown_run"),
        ("/threads/t/runs/%00/events".to_owned(), "404 unknown_run"),
        ("/threads/t%0A/runs/r/events".to_owned(), "404 unknown_thread"),
    ] {
        let (status, code) = refusal(server.get(&path).await).await;
        assert_eq!(format!("{status} {code}"), expected, "{:.60}", path);
    }
    // An event that does not exist yet can be waited for, but does not exist after the end.
    for after in ["18446744073709551616", &digits, "1,2", "+1", "1 "] {
        let response = resume(&server, after).send().await.unwrap();
        let expected = if after == "1 " { 200 } else { 400 };
        assert_eq!(response.status(), expected, "{:.30}", after);
    }
    let (status, code) = refusal(
        server
            .post("/send-message")
            .header("last-event-id", "1")
            .json(&ask(&huge, "r", "m", "x"))
            .send()
            .await
            .unwrap(),
    )
    .await;
    assert_eq!((status, &*code), (404, "unknown_thread"));
}
