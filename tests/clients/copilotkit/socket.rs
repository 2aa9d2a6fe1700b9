//! The WebSocket that keeps lists of threads current. `tests/browser/copilotkit.test.mjs` tests it with CopilotKit's list.

use reqwest::Method;
use serde_json::json;
use tokio::{io::AsyncWriteExt as _, net::TcpStream};

use super::support::read_until;
use super::*;

/// Sends a handshake. Returns the connection with the head of the response.
async fn shake_hands(server: &Running, token: &str, more: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = format!(
        "GET /copilotkit/socket/websocket?join_token={token}&vsn=2.0.0 HTTP/1.1\r\nHost: localhost\r\n{more}\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let head = read_until(&mut stream, |text| text.contains("\r\n\r\n")).await;
    (stream, head)
}

const UPGRADE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: \
                       dGhlIHNhbXBsZSBub25jZQ==\r\n";

/// Sends a message in a frame whose mask is zero.
async fn send(stream: &mut TcpStream, text: &str) {
    let mut frame = vec![0x81, 0x80 | 126];
    frame.extend(u16::try_from(text.len()).unwrap().to_be_bytes());
    frame.extend([0; 4]);
    frame.extend(text.as_bytes());
    stream.write_all(&frame).await.unwrap();
}

async fn token(server: &Running, key: &str) -> String {
    let issued = body(server.post_copilotkit(key, "/threads/subscribe", &json!({})).await).await;
    issued["joinToken"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_socket_reports_the_changes_of_the_own_threads() {
    let server = with_two_keys().await;
    let info = body(
        server.request_copilotkit(Method::GET, "/info").bearer_auth("ada").send().await.unwrap(),
    )
    .await;
    assert_eq!(info["intelligence"]["wsUrl"], format!("//{}/copilotkit/socket", server.address));
    let list = server
        .request_copilotkit(Method::GET, "/threads?agentId=default")
        .bearer_auth("ada")
        .send()
        .await
        .unwrap();
    assert_eq!(body(list).await["joinCode"], "default");
    let (mut stream, head) = shake_hands(&server, &token(&server, "ada").await, UPGRADE).await;
    assert!(head.starts_with("HTTP/1.1 101"), "{head}");
    send(&mut stream, r#"["1","1","user_meta:unknown","phx_join",{}]"#).await;
    assert!(
        read_until(&mut stream, |text| text.contains("phx_reply"))
            .await
            .contains(r#""status":"error""#)
    );
    send(&mut stream, r#"["2","2","user_meta:default","phx_join",{}]"#).await;
    let reply = read_until(&mut stream, |text| text.contains("phx_reply")).await;
    assert!(
        reply.contains(r#"["2","2","user_meta:default","phx_reply",{"status":"ok""#),
        "{reply}"
    );
    send(&mut stream, r#"[null,"3","phoenix","heartbeat",{}]"#).await;
    assert!(
        read_until(&mut stream, |text| text.contains("phx_reply"))
            .await
            .contains(r#"[null,"3","phoenix""#)
    );
    for (key, thread) in [("eve", "of-eve"), ("ada", "of-ada")] {
        server
            .post_copilotkit(key, "/agent/echo/run", &ask(thread, "r"))
            .await
            .text()
            .await
            .unwrap();
    }
    server.post_copilotkit("ada", "/threads/of-ada/archive", &json!({})).await;
    let mut text = read_until(&mut stream, |text| text.contains(r#""operation":"archived""#)).await;
    server
        .request_copilotkit(Method::DELETE, "/threads/of-ada")
        .bearer_auth("ada")
        .send()
        .await
        .unwrap();
    text += &read_until(&mut stream, |text| text.contains(r#""deleted":{"id":"of-ada"}"#)).await;
    assert!(!text.contains("of-eve"), "{text}");
    for part in [
        r#"["2",null,"user_meta:default","thread_metadata",{"operation":"updated","threadId":"of-ada""#,
        r#""thread_run_activity",{"threadId":"of-ada","agentId":"default","runId":"r""#,
        r#"{"operation":"archived","threadId":"of-ada""#,
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[tokio::test]
async fn handshakes_without_a_token_and_of_foreign_pages_are_refused() {
    let server = with_two_keys().await;
    let status =
        async |token: &str, more: &str| shake_hands(&server, token, more).await.1[9..12].to_owned();
    let valid = token(&server, "eve").await;
    assert_eq!(status(&valid, UPGRADE).await, "101");
    assert_eq!(status("", UPGRADE).await, "401");
    assert_eq!(status(&format!("{valid}0"), UPGRADE).await, "401");
    assert_eq!(status(&valid, &format!("Origin: https://evil.example\r\n{UPGRADE}")).await, "403");
    assert_eq!(status(&valid, "").await, "400");
}

#[tokio::test]
async fn a_socket_with_large_or_invalid_messages_is_closed() {
    let server = Running::start(two_agents()).await;
    for message in ["{}".to_owned(), format!(r#"["1","1","{}","phx_join",{{}}]"#, "x".repeat(5000))]
    {
        let (mut stream, head) = shake_hands(&server, "none", UPGRADE).await;
        assert!(head.starts_with("HTTP/1.1 101"), "{head}");
        send(&mut stream, &message).await;
        // Returns when the connection closes.
        let rest = read_until(&mut stream, |_| false).await;
        assert!(!rest.contains("phx_reply"), "{rest}");
    }
}

/// The client opens its socket again with the token that it has.
#[tokio::test]
async fn the_token_of_a_key_opens_a_socket_after_a_restart() {
    let token = token(&with_two_keys().await, "ada").await;
    let server = with_two_keys().await;
    let (_stream, head) = shake_hands(&server, &token, UPGRADE).await;
    assert!(head.starts_with("HTTP/1.1 101"), "{head}");
}
