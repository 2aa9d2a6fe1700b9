//! A TCP proxy that cuts, delays and duplicates. Its port stays the same when the server behind it is replaced.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::{AbortHandle, JoinSet},
    time::sleep,
};

use crate::dice::Dice;

/// The fault that the proxy adds to the bytes that it forwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    Nothing,
    /// Closes connections after a part of a piece.
    Cut,
    /// Holds pieces back for up to this time.
    Delay(Duration),
    /// Repeats up to [`MAX_REPEATED`] bytes of responses. Requests stay as they are.
    Duplicate,
}

/// Shorter than any chunk of a response, so that repeated bytes never are a whole chunk.
pub(crate) const MAX_REPEATED: usize = 8;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Request,
    Response,
}

pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
    accept: AbortHandle,
}

struct Shared {
    target: Mutex<SocketAddr>,
    trouble: Mutex<Trouble>,
    dice: Mutex<Dice>,
    /// The number of connections that were cut, and of those in which bytes were repeated.
    cut: AtomicUsize,
    duplicated: AtomicUsize,
}

impl Proxy {
    pub(crate) async fn start(target: SocketAddr, dice: Dice) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            target: Mutex::new(target),
            trouble: Mutex::new(Trouble::Nothing),
            dice: Mutex::new(dice),
            cut: AtomicUsize::new(0),
            duplicated: AtomicUsize::new(0),
        });
        let accept = tokio::spawn(accept(listener, shared.clone())).abort_handle();
        Self { address, shared, accept }
    }

    pub(crate) fn set_target(&self, target: SocketAddr) {
        *self.shared.target.lock().unwrap() = target;
    }

    pub(crate) fn set_trouble(&self, trouble: Trouble) {
        *self.shared.trouble.lock().unwrap() = trouble;
    }

    /// Returns the number of connections that were cut, and of those in which bytes were repeated.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.shared.cut.load(Ordering::Relaxed), self.shared.duplicated.load(Ordering::Relaxed))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accept.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        let (client, _) = listener.accept().await.unwrap();
        while connections.try_join_next().is_some() {}
        connections.spawn(forward(client, shared.clone()));
    }
}

/// Forwards until one side closes, then closes both.
async fn forward(client: TcpStream, shared: Arc<Shared>) {
    let target = *shared.target.lock().unwrap();
    let Ok(server) = TcpStream::connect(target).await else { return };
    let ((from_client, to_client), (from_server, to_server)) =
        (client.into_split(), server.into_split());
    tokio::select! {
        () = pump(from_client, to_server, &shared, Direction::Request) => {}
        () = pump(from_server, to_client, &shared, Direction::Response) => {}
    }
}

async fn pump(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    shared: &Shared,
    direction: Direction,
) {
    let (mut buffer, mut has_repeated) = (vec![0; 16 * 1024], false);
    loop {
        let Ok(read @ 1..) = from.read(&mut buffer).await else { return };
        let piece = &buffer[..read];
        let trouble = *shared.trouble.lock().unwrap();
        let mut dice = shared.dice.lock().unwrap().fork();
        let written = match trouble {
            Trouble::Cut if dice.chance(12) => {
                let _ = to.write_all(&piece[..dice.below(read)]).await;
                shared.cut.fetch_add(1, Ordering::Relaxed);
                return;
            }
            Trouble::Delay(longest) => {
                let (half, longest) = (dice.below(read), longest.as_millis().try_into().unwrap());
                sleep(Duration::from_millis(dice.between(0, longest))).await;
                let first = to.write_all(&piece[..half]).await;
                sleep(Duration::from_millis(dice.between(0, longest / 2))).await;
                first.and(to.write_all(&piece[half..]).await)
            }
            Trouble::Duplicate if direction == Direction::Response && dice.chance(6) => {
                if !std::mem::replace(&mut has_repeated, true) {
                    shared.duplicated.fetch_add(1, Ordering::Relaxed);
                }
                let begin = dice.below(read);
                let end = read.min(begin + 1 + dice.below(MAX_REPEATED));
                to.write_all(&[&piece[..end], &piece[begin..]].concat()).await
            }
            Trouble::Nothing | Trouble::Cut | Trouble::Duplicate => to.write_all(piece).await,
        };
        if written.is_err() {
            return;
        }
    }
}
