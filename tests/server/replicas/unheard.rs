//! Servers behind a pooler that delivers no notifications, such as PgBouncer in transaction mode.

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
};

use super::{LEASE, ask_detached, client::numbered, postgres::Postgres, replicas_on};

/// The type of the message by which Postgres delivers a notification.
const NOTIFICATION: u8 = b'A';

/// Forwards connections to Postgres without its notifications. Returns the port.
async fn without_notifications(postgres: u16) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (client, _) = listener.accept().await.unwrap();
            let server = TcpStream::connect(("127.0.0.1", postgres)).await.unwrap();
            let ((mut from_client, to_client), (from_server, mut to_server)) =
                (client.into_split(), server.into_split());
            tokio::spawn(async move { copy(&mut from_client, &mut to_server).await });
            tokio::spawn(forward(from_server, to_client));
        }
    });
    port
}

/// Forwards messages: a type of one byte, a length of four that counts itself, and the rest.
async fn forward(mut server: OwnedReadHalf, mut client: OwnedWriteHalf) -> std::io::Result<()> {
    loop {
        let (kind, length) = (server.read_u8().await?, server.read_u32().await?);
        let mut message = vec![0; length as usize - 4];
        server.read_exact(&mut message).await?;
        if kind != NOTIFICATION {
            client.write_u8(kind).await?;
            client.write_u32(length).await?;
            client.write_all(&message).await?;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_notifications_servers_poll_and_log_a_warning() {
    let Some(postgres) = Postgres::shared() else { return };
    let url = postgres.database("unheard").await;
    let proxy = without_notifications(postgres.port()).await;
    let proxied = url.replace(&format!(":{}/", postgres.port()), &format!(":{proxy}/"));
    let [a, b] = replicas_on(&proxied, LEASE);
    let started = a.run(&ask_detached("r", "count to 40")).await;
    let follower = b.follow("r", 0).await;
    let (told, followed) = tokio::join!(started.rest(), follower.rest());
    assert_eq!(numbered(&followed, 1).event["outcome"]["type"], "success");
    let late = told
        .iter()
        .zip(&followed)
        .map(|(here, there)| there.at.saturating_duration_since(here.at))
        .max();
    println!(
        "without notifications an event comes on another server at most {:?} later",
        late.unwrap()
    );

    let mut endless = a.run(&ask_detached("r2", "count to 10000")).await;
    endless.take(3).await;
    assert_eq!(b.cancel("r2").await, 202);
    assert_eq!(endless.rest().await.last().unwrap().event["outcome"]["type"], "cancelled");
    b.process.signal("-TERM");
    let (_, log) = b.process.ended();
    assert!(
        log.contains("notifications do not arrive") && log.contains("polling until it works"),
        "{log}"
    );
}
