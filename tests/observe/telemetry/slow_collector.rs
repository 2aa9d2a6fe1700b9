//! A collector that is down, that never answers, or that refuses, delays neither runs nor the end of the command.

use std::time::{Duration, Instant};

use tokio::net::TcpListener;

use super::{
    Command,
    collector::Collector,
    running::{eventually, input},
};

const CONFIG: &str = "[log]\nformat = \"json\"\n[agents.e]\nkind = \"echo\"\n";
/// The spans get 2 s at shutdown. The rest is for a busy machine.
const MAX_END: Duration = Duration::from_secs(8);

async fn run_and_stop(endpoint: &str) -> Vec<serde_json::Value> {
    // A full queue, and batches at once.
    let environment = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint),
        ("OTEL_BSP_SCHEDULE_DELAY", "10"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "8"),
        ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "4"),
    ];
    let command = Command::start(CONFIG, &environment);
    for _ in 0..50 {
        let events = command.run(&input("Hello"), &[]).await;
        assert_eq!(events.last().unwrap()["type"], "RUN_FINISHED");
    }
    let begin = Instant::now();
    let log = command.stop().await;
    assert!(begin.elapsed() < MAX_END, "{:?}", begin.elapsed());
    log
}

fn count(log: &[serde_json::Value], message: &str) -> usize {
    log.iter()
        .filter(|line| line["message"].as_str().is_some_and(|text| text.starts_with(message)))
        .count()
}

#[tokio::test]
async fn a_collector_that_is_down_delays_nothing_and_is_logged_once() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", closed.local_addr().unwrap());
    drop(closed);
    let log = run_and_stop(&endpoint).await;
    assert_eq!(count(&log, "traces cannot be sent"), 1, "{log:#?}");
}

#[tokio::test]
async fn a_collector_that_never_answers_delays_neither_runs_nor_the_end() {
    // The kernel accepts connections, and nobody reads.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let log = run_and_stop(&format!("http://{}", silent.local_addr().unwrap())).await;
    assert_eq!(count(&log, "the last spans were not sent"), 1, "{log:#?}");
    assert_eq!(count(&log, "run ended"), 50);
}

#[tokio::test]
async fn a_collector_that_refuses_spans_for_a_while_is_logged_once_and_gets_the_next_ones() {
    let collector = Collector::start().await;
    collector.refuse(true);
    let environment =
        [("OTEL_EXPORTER_OTLP_ENDPOINT", &*collector.url), ("OTEL_BSP_SCHEDULE_DELAY", "10")];
    let command = Command::start(CONFIG, &environment);
    for requests in 1..=2 {
        command.run(&input("Hello"), &[]).await;
        eventually("the server tries", || collector.headers().len() >= requests).await;
    }
    collector.refuse(false);
    let refused = collector.headers().len();
    command.run(&input("Hello"), &[]).await;
    eventually("the server continues", || collector.headers().len() > refused).await;
    let log = command.stop().await;
    assert_eq!(count(&log, "traces cannot be sent"), 1, "{log:#?}");
    assert_eq!(count(&log, "traces are sent to the collector again"), 1, "{log:#?}");
    assert_eq!(count(&log, "the last spans were not sent"), 0, "{log:#?}");
}
