//! Servers under load while faults strike, and a checker that shares no code with the server.
//!
//! Each round lets clients of three principals work, makes something fail, heals it, and then checks what every client
//! was told: no terminal event is lost or doubled, nothing that was acknowledged is gone, no thread is stuck, and nobody
//! sees what belongs to another principal.
//!
//! | variable | meaning |
//! |---|---|
//! | `AGUI_CHAOS_SECONDS` | the duration of each test with faults, by default 60 |
//! | `AGUI_CHAOS_SEED` | the seed of all random decisions; a failed test prints its seed |
//! | `AGUI_CHAOS_FAULT` | one fault for all rounds, such as `Kill` |
//! | `AGUI_SOAK_SECONDS` | the duration of each soak, by default 20 |
//!
//! A seed repeats the decisions, but not the interleaving of processes.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr, missing_docs)]

mod check;
mod checker_tests;
mod client;
mod dice;
mod fault;
mod http;
mod model;
mod proxy;
mod site;
mod soak;
#[allow(dead_code, reason = "the program uses a part of them")]
#[path = "../support"]
mod support {
    pub(crate) mod postgres;
    pub(crate) mod server;
}
mod worker;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use check::check_list;
use client::Client;
use dice::Dice;
use fault::Fault;
use model::Report;
use site::{PRINCIPALS, Site};
use worker::Worker;

const WORKERS_PER_PRINCIPAL: usize = 3;
/// Longer than any request of a worker takes.
const WORK_TIMEOUT: Duration = Duration::from_secs(120);
/// Longer than a check takes, which sends many requests, each after the other.
const CHECK_TIMEOUT: Duration = Duration::from_secs(300);

fn variable<T: std::str::FromStr>(name: &str) -> Option<T> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}

fn seed() -> u64 {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros();
    variable("AGUI_CHAOS_SEED").unwrap_or_else(|| u64::try_from(now()).unwrap() % 1_000_000)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_on_sqlite() {
    let seed = seed();
    let mut dice = Dice::new(seed);
    let site = Site::with_sqlite(&mut dice).await;
    run_rounds("SQLite", site, seed, dice).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_on_postgres() {
    let seed = seed();
    let mut dice = Dice::new(seed);
    let Some(site) = Site::with_postgres(&mut dice).await else { return };
    run_rounds("Postgres", site, seed, dice).await;
}

async fn run_rounds(name: &str, mut site: Site, seed: u64, mut dice: Dice) {
    let duration = Duration::from_secs(variable("AGUI_CHAOS_SECONDS").unwrap_or(60));
    println!("chaos on {name}: AGUI_CHAOS_SEED={seed}, {duration:?}");
    let report = Arc::new(Report::default());
    let mut crowd = Crowd::new(&site, &report, &mut dice);
    let only: Option<String> = variable("AGUI_CHAOS_FAULT");
    let mut faults = Fault::of(&site);
    faults.retain(|fault| only.as_ref().is_none_or(|only| format!("{fault:?}") == *only));
    let begin = Instant::now();
    let mut rounds = 0;
    while begin.elapsed() < duration && report.violations().is_empty() {
        let fault = faults[rounds % faults.len()];
        rounds += 1;
        let pauses = [dice.between(200, 900), dice.between(200, 900)].map(Duration::from_millis);
        crowd
            .work_while(async {
                sleep(pauses[0]).await;
                fault.strike(&mut site, &mut dice).await;
                sleep(pauses[1]).await;
            })
            .await;
        report.count(&format!("fault {fault:?}"));
        crowd.check().await;
        println!("{name}: round {rounds} with {fault:?} checked after {:?}", begin.elapsed());
    }
    let (cut, duplicated) = site.proxy_counts();
    println!(
        "{name}: {rounds} rounds, {cut} connections cut, {duplicated} with repeated bytes, {}",
        report.counts()
    );
    let violations = report.violations();
    if !violations.is_empty() {
        site.print_logs();
        panic!("{} violations with AGUI_CHAOS_SEED={seed}: {violations:#?}", violations.len());
    }
}

/// The workers of all principals.
struct Crowd {
    principals: Vec<Vec<Worker>>,
    report: Arc<Report>,
}

impl Crowd {
    fn new(site: &Site, report: &Arc<Report>, dice: &mut Dice) -> Self {
        let client = |principal| Client {
            addresses: site.addresses(),
            principal,
            principals: PRINCIPALS,
            report: report.clone(),
        };
        let mut workers = |principal| {
            let numbers = 0..WORKERS_PER_PRINCIPAL;
            numbers.map(|number| Worker::new(client(principal), number, dice.fork())).collect()
        };
        Self { principals: (0..PRINCIPALS).map(&mut workers).collect(), report: report.clone() }
    }

    /// Lets all workers work until a future is complete, and until their last requests have ended.
    async fn work_while(&mut self, future: impl Future<Output = ()>) {
        let is_over = Arc::new(AtomicBool::new(false));
        let stop = is_over.clone();
        let work = self.each("work", WORK_TIMEOUT, move |mut worker| {
            let is_over = is_over.clone();
            Box::pin(async move {
                while !is_over.load(Ordering::Relaxed) {
                    worker.step().await;
                }
                worker
            })
        });
        let strike = async move {
            future.await;
            stop.store(true, Ordering::Relaxed);
        };
        tokio::join!(work, strike);
    }

    async fn check(&mut self) {
        self.each("be checked", CHECK_TIMEOUT, |mut worker| {
            Box::pin(async move {
                worker.check().await;
                worker
            })
        })
        .await;
        for workers in &mut self.principals {
            check_list(workers).await;
        }
    }

    /// Runs a function on all workers at the same time.
    async fn each(
        &mut self,
        what: &str,
        limit: Duration,
        function: impl Fn(Worker) -> futures::future::BoxFuture<'static, Worker>,
    ) {
        let mut tasks = JoinSet::new();
        for workers in &mut self.principals {
            workers.drain(..).for_each(|worker| drop(tasks.spawn(function(worker))));
        }
        let Ok(workers) = timeout(limit, tasks.join_all()).await else {
            return self.report.violation(format!("the clients did not {what} within {limit:?}"));
        };
        workers
            .into_iter()
            .for_each(|worker| self.principals[worker.client.principal].push(worker));
    }
}
