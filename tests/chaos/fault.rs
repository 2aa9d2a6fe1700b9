//! The faults.

use std::time::Duration;

use tokio::time::sleep;

use crate::{dice::Dice, proxy::Trouble, site::Site};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// SIGKILL and a restart.
    Kill,
    /// SIGTERM and a restart.
    Terminate,
    /// SIGSTOP for some time, longer than a lease in half of the cases.
    Pause,
    FullDisk,
    /// SIGKILL while the disk is full.
    KillOnFullDisk,
    CutConnections,
    DelayConnections,
    DuplicateBytes,
    DatabaseStop,
    /// Postgres ends without a checkpoint, and recovers.
    DatabaseCrash,
    /// Connections to Postgres are cut, also between a commit and its response.
    CutDatabase,
    /// Every message to and from Postgres is delayed.
    SlowDatabase,
}

impl Fault {
    /// Returns the faults that a site can have.
    pub(crate) fn of(site: &Site) -> Vec<Self> {
        let mut faults = vec![Self::Kill];
        if site.database.is_some() {
            faults.extend([
                Self::DatabaseCrash,
                Self::CutDatabase,
                Self::SlowDatabase,
                Self::DatabaseStop,
            ]);
        }
        if site.disk.is_some() {
            faults.extend([Self::FullDisk, Self::KillOnFullDisk]);
        }
        faults.extend([
            Self::Pause,
            Self::CutConnections,
            Self::DuplicateBytes,
            Self::Terminate,
            Self::DelayConnections,
        ]);
        faults
    }

    /// Makes the site fail, and heals it.
    pub(crate) async fn strike(self, site: &mut Site, dice: &mut Dice) {
        let pause = Duration::from_millis(dice.between(100, 1200));
        let at = dice.below(site.servers.len());
        match self {
            Self::Kill => {
                for _ in 0..dice.between(1, 3) {
                    let server = &mut site.servers[at];
                    server.signal("-KILL");
                    server.end(None);
                    server.launch();
                    sleep(pause / 2).await;
                }
            }
            Self::Terminate => {
                let server = &mut site.servers[at];
                server.signal("-TERM");
                server.end(Some(0));
                sleep(pause).await;
                server.launch();
            }
            Self::Pause => {
                site.servers[at].signal("-STOP");
                let beyond_lease =
                    if dice.chance(2) { Duration::from_secs(4) } else { Duration::ZERO };
                sleep(pause + beyond_lease).await;
                site.servers[at].signal("-CONT");
            }
            Self::FullDisk | Self::KillOnFullDisk => {
                let disk = site.disk.as_ref().unwrap();
                disk.fill();
                sleep(pause).await;
                if self == Self::KillOnFullDisk {
                    site.servers[at].signal("-KILL");
                    site.servers[at].end(None);
                    disk.free();
                    site.servers[at].launch();
                } else {
                    disk.free();
                }
            }
            Self::CutConnections => trouble_for(site, Trouble::Cut, 2 * pause).await,
            Self::DelayConnections => {
                trouble_for(site, Trouble::Delay(Duration::from_millis(60)), 2 * pause).await
            }
            Self::DuplicateBytes => trouble_for(site, Trouble::Duplicate, 2 * pause).await,
            Self::DatabaseStop | Self::DatabaseCrash => {
                let postgres = &site.database.as_ref().unwrap().postgres;
                for _ in 0..dice.between(1, 3) {
                    tokio::task::block_in_place(|| match self {
                        Self::DatabaseStop => postgres.stop(),
                        _ => postgres.stop_immediately(),
                    });
                    sleep(pause / 2).await;
                    tokio::task::block_in_place(|| postgres.start());
                    sleep(pause).await;
                }
            }
            Self::CutDatabase | Self::SlowDatabase => {
                let proxy = &site.database.as_ref().unwrap().proxy;
                proxy.set_trouble(match self {
                    Self::CutDatabase => Trouble::Cut,
                    _ => Trouble::Delay(Duration::from_millis(100)),
                });
                sleep(2 * pause).await;
                proxy.set_trouble(Trouble::Nothing);
            }
        }
    }
}

async fn trouble_for(site: &Site, trouble: Trouble, time: Duration) {
    site.trouble(trouble);
    sleep(time).await;
    site.trouble(Trouble::Nothing);
}
