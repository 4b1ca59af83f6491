//! Health and metrics over plain HTTP, for the operator's own network.

use std::fmt::Write;
use std::time::Duration;

use shef_remote::wire::DeviceState;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::state::{Phase, Running, Shared};

/// Time limit for a request and its response.
const LIMIT: Duration = Duration::from_secs(5);
/// Concurrent requests.
const AT_ONCE: usize = 16;
/// Most bytes of a request that are read.
const REQUEST: usize = 4096;

/// Answers `GET /healthz` (the program runs), `GET /readyz` (it takes sessions, and a card works)
/// and `GET /metrics` (Prometheus's text format).
pub(crate) async fn serve(listener: TcpListener, running: Running) {
    let mut open = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((tcp, _)) if open.len() < AT_ONCE => {
                    let running = running.clone();
                    open.spawn(timeout(LIMIT, async move { answer(tcp, running.shared()).await }));
                }
                // Over the limit, the connection is dropped; the client retries.
                Ok(_) => {}
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            },
            Some(_) = open.join_next() => {}
        }
    }
}

async fn answer(mut tcp: TcpStream, shared: &Shared) -> std::io::Result<()> {
    let (mut request, mut got) = ([0; REQUEST], 0);
    while !request[..got].windows(4).any(|end| end == b"\r\n\r\n") {
        match tcp.read(&mut request[got..]).await? {
            0 => return Ok(()),
            n => got += n,
        }
    }
    let line = String::from_utf8_lossy(&request[..got]);
    let (status, body) = match line.split_whitespace().take(2).collect::<Vec<_>>()[..] {
        ["GET", "/healthz"] => ("200 OK", "ok\n".to_owned()),
        ["GET", "/readyz"] if is_ready(shared) => ("200 OK", "ready\n".to_owned()),
        ["GET", "/readyz"] => ("503 Service Unavailable", "not ready\n".to_owned()),
        ["GET", "/metrics"] => ("200 OK", metrics(shared)),
        ["GET", _] => ("404 Not Found", "expected /healthz, /readyz or /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", "expected GET\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    tcp.write_all((head + &body).as_bytes()).await?;
    tcp.shutdown().await
}

fn is_ready(shared: &Shared) -> bool {
    let works = |state| !matches!(state, DeviceState::Failed | DeviceState::Starting);
    *shared.phase.borrow() == Phase::Serving
        && shared.slots.values().any(|slot| works(slot.state()))
}

fn metrics(shared: &Shared) -> String {
    let mut text = String::new();
    let mut put = |name: &str, kind: &str, help: &str, rows: &[(String, u64)]| {
        let _ = writeln!(text, "# HELP shef_agent_{name} {help}\n# TYPE shef_agent_{name} {kind}");
        for (labels, value) in rows {
            let _ = writeln!(text, "shef_agent_{name}{labels} {value}");
        }
    };
    let one = |value: u64| vec![(String::new(), value)];
    let [came, away, refused] = shared.counts();
    put("connections_total", "counter", "Accepted connections.", &one(came));
    put(
        "turned_away_total",
        "counter",
        "Connections that ended before the owner was authenticated.",
        &one(away),
    );
    put("refused_total", "counter", "Refused connections of owners.", &one(refused));
    put("connections", "gauge", "Connections of owners.", &one(shared.connections.taken() as u64));
    put("handshakes", "gauge", "Handshakes in progress.", &one(shared.admission.waiting() as u64));
    // Device names consist of letters, digits, '-', '_' and '.': they need no escaping.
    let states = shared.slots.iter().map(|(name, slot)| (name, slot.state()));
    let states: Vec<_> =
        states.flat_map(|(name, is)| DeviceState::ALL.map(|of| (name, of, is == of))).collect();
    let rows: Vec<_> = states
        .iter()
        .map(|(name, of, is)| {
            (format!("{{device=\"{name}\",state=\"{}\"}}", of.name()), u64::from(*is))
        })
        .collect();
    put("device_state", "gauge", "1 for a device's current state.", &rows);
    let rows: Vec<_> = shared
        .slots
        .iter()
        .map(|(name, slot)| (format!("{{device=\"{name}\"}}"), slot.sessions()))
        .collect();
    put("sessions_total", "counter", "Sessions opened.", &rows);
    text
}
