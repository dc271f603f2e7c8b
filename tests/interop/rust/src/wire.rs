//! Transports for servers and clients.

use std::sync::Arc;

use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use rmcp::model::ProtocolVersion;
use rmcp::service::RunningService;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{
    StreamableHttpClientTransport, StreamableHttpServerConfig, StreamableHttpService, TokioChildProcess,
};
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt, RoleClient, ServerHandler, ServiceExt};
use tokio::net::TcpListener;
use tokio::process::Command;

use crate::Outcome;

const MAX_MESSAGE: usize = 64 << 20;

/// Serves each connection of a listener. `make` makes the handler of a session, or of a request without one.
///
/// With `json`, responses to requests without a session are JSON. The SDK has event streams only in sessions.
pub async fn serve_http<H>(
    listener: TcpListener,
    json: bool,
    make: impl Fn() -> H + Send + Sync + 'static,
) -> Outcome<()>
where
    H: ServerHandler,
{
    let config =
        StreamableHttpServerConfig::default().with_json_response(json).with_max_request_body_bytes(MAX_MESSAGE);
    let service = StreamableHttpService::new(move || Ok(make()), Arc::<LocalSessionManager>::default(), config);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let service = TowerToHyperService::new(service.clone());
        tokio::spawn(async move { http1::Builder::new().serve_connection(TokioIo::new(stream), service).await });
    }
}

/// Serves large messages over stdio. The transport for pipes needs no thread that reads and writes.
pub async fn serve_stdio(handler: impl ServerHandler) -> Outcome<()> {
    let (reader, writer) = rmcp::transport::stdio_pipes();
    let transport = AsyncRwTransport::new_server(reader, writer).with_max_line_length(MAX_MESSAGE);
    handler.serve(transport).await?.waiting().await?;
    Ok(())
}

/// Connects to the server that a command starts, or to that at a URL.
///
/// `pool` has the connections for HTTP. Without it, the SDK opens one for each request.
pub async fn connect<H: ClientHandler>(
    handler: H,
    revision: &ProtocolVersion,
    target: &[&str],
    pool: Option<reqwest::Client>,
) -> Outcome<RunningService<RoleClient, H>> {
    let lifecycle = if revision.has_initialize() {
        ClientLifecycleMode::Initialize
    } else {
        ClientLifecycleMode::Discover { preferred_versions: vec![revision.clone()] }
    };
    Ok(if target[0].starts_with("http") {
        let transport = match pool {
            Some(pool) => {
                let config = StreamableHttpClientTransportConfig::with_uri(target[0]);
                StreamableHttpClientTransport::with_client(pool, config)
            }
            None => StreamableHttpClientTransport::from_uri(target[0]),
        };
        handler.serve_with_lifecycle(transport, lifecycle).await?
    } else {
        let mut command = Command::new(target[0]);
        command.args(&target[1..]);
        handler.serve_with_lifecycle(TokioChildProcess::new(command)?, lifecycle).await?
    })
}

pub fn revision(text: &str) -> Outcome<ProtocolVersion> {
    Ok(serde_json::from_value(text.into())?)
}
