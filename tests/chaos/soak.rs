//! The same load without faults: memory, descriptors, threads and files of the server stay flat.

use std::{
    fs,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::time::sleep;

use crate::{Crowd, dice::Dice, model::Report, seed, site::Site, variable};

const BURST: Duration = Duration::from_secs(2);
/// The part of the time in which caches and pools fill, so that it is not measured: 1/3.
const WARM_UP: u32 = 3;
/// The smallest number of samples after the warm-up.
const MIN_SAMPLES: usize = 5;
/// The largest growth after the warm-up that counts as noise: of memory, in KiB, and as a share of
/// the memory.
const MEMORY_NOISE_KIB: f64 = 6.0 * 1024.0;
const MEMORY_NOISE_SHARE: f64 = 0.05;
/// Connections that are being closed, and idle threads of a pool.
const COUNT_NOISE: f64 = 12.0;

/// The resources that an idle process uses.
#[derive(Debug, Clone, Copy)]
struct Sample {
    /// Seconds since the start.
    at: f64,
    memory_kib: f64,
    descriptors: f64,
    threads: f64,
    files: f64,
    file_kib: f64,
}

impl Sample {
    fn take(begin: Instant, site: &Site) -> Self {
        let mut sample = Self {
            at: begin.elapsed().as_secs_f64(),
            memory_kib: 0.0,
            descriptors: 0.0,
            threads: 0.0,
            files: 0.0,
            file_kib: 0.0,
        };
        for server in &site.servers {
            let process = Path::new("/proc").join(server.process_id().to_string());
            let status = fs::read_to_string(process.join("status")).unwrap();
            let memory = status
                .lines()
                .find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB"));
            sample.memory_kib += memory.unwrap().parse::<f64>().unwrap();
            sample.descriptors += count(&process.join("fd"));
            sample.threads += count(&process.join("task"));
        }
        for entry in site.data_folder().map(fs::read_dir).into_iter().flatten().flatten().flatten()
        {
            sample.files += 1.0;
            sample.file_kib += entry.metadata().unwrap().len() as f64 / 1024.0;
        }
        sample
    }
}

fn count(folder: &Path) -> f64 {
    fs::read_dir(folder).unwrap().count() as f64
}

type Value = fn(&Sample) -> f64;

/// Returns the growth during the time of the samples, by a least-squares line.
fn growth(samples: &[Sample], value: Value) -> f64 {
    let count = samples.len() as f64;
    let mean = |value: &dyn Fn(&Sample) -> f64| samples.iter().map(value).sum::<f64>() / count;
    let (mid, level) = (mean(&|sample| sample.at), mean(&value));
    let spread: f64 = samples.iter().map(|sample| (sample.at - mid).powi(2)).sum();
    let slope =
        samples.iter().map(|sample| (sample.at - mid) * (value(sample) - level)).sum::<f64>()
            / spread;
    slope * (samples.last().unwrap().at - samples[0].at)
}

async fn soak(name: &str, site: Site, mut dice: Dice) {
    let duration = Duration::from_secs(variable("AGUI_SOAK_SECONDS").unwrap_or(20));
    let report = Arc::new(Report::default());
    let mut crowd = Crowd::new(&site, &report, &mut dice);
    let begin = Instant::now();
    let mut samples = Vec::new();
    let warm_up = duration.as_secs_f64() / f64::from(WARM_UP);
    let measured = |samples: &[Sample]| {
        samples.iter().copied().filter(|it| it.at >= warm_up).collect::<Vec<_>>()
    };
    // Samples continue after the time if there are few: a slow machine takes fewer than the line
    // needs.
    let is_complete =
        |samples: &[Sample]| begin.elapsed() >= duration && measured(samples).len() >= MIN_SAMPLES;
    while !is_complete(&samples) && report.violations().is_empty() {
        crowd.work_while(sleep(BURST)).await;
        crowd.check().await;
        let sample = Sample::take(begin, &site);
        samples.push(sample);
        println!("{name}: {sample:.0?}");
    }
    println!("{name}: {}", report.counts());
    assert_eq!(report.violations(), Vec::<String>::new());
    let measured = measured(&samples);
    let memory = growth(&measured, |sample| sample.memory_kib);
    let limit = MEMORY_NOISE_KIB + MEMORY_NOISE_SHARE * measured[0].memory_kib;
    println!(
        "{name}: in {} samples after the warm-up memory grew by {memory:.0} KiB (limit {limit:.0})",
        measured.len()
    );
    assert!(memory < limit, "memory grew by {memory:.0} KiB: {measured:?}");
    let counts: [(&str, Value); 3] = [
        ("descriptors", |sample| sample.descriptors),
        ("threads", |sample| sample.threads),
        ("files", |sample| sample.files),
    ];
    for (what, value) in counts {
        let more = growth(&measured, value);
        println!("{name}: {what} grew by {more:.1}");
        assert!(more < COUNT_NOISE, "{what} grew by {more}: {measured:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_on_sqlite_needs_no_more_with_time() {
    let mut dice = Dice::new(seed());
    soak("soak on SQLite", Site::with_sqlite(&mut dice).await, dice).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_on_postgres_need_no_more_with_time() {
    let mut dice = Dice::new(seed());
    let Some(site) = Site::with_postgres(&mut dice).await else { return };
    soak("soak on Postgres", site, dice).await;
}
