//! An echo server and a client to measure.

use std::time::Instant;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientConfig, ContentBlock, ErrorData, Implementation,
    ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RunningService};
use rmcp::{RoleClient, RoleServer, ServerHandler};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::{Outcome, wire};

const TEXT: &str = "xxxxxxxxxxxxxxxxxxxx";

/// A server with tools on the SDK's lower level: arguments are not checked.
struct Echo;

impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new("echo", "1"))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = json!({"type": "object"}).as_object().cloned().unwrap_or_default();
        let tools = ["echo", "large", "wait", "report"].map(|name| Tool::new(name, "", schema.clone()));
        Ok(ListToolsResult::with_all_items(tools.into()))
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let mut arguments = params.arguments.unwrap_or_default();
        let text = match params.name.as_ref() {
            "large" => "x".repeat(arguments["size"].as_u64().unwrap_or_default() as usize),
            "wait" => {
                context.ct.cancelled().await;
                return Err(ErrorData::internal_error("cancelled", None));
            }
            name => {
                if let ("report", Some(token)) = (name, context.meta.get_progress_token()) {
                    let progress = ProgressNotificationParam::new(token, 1.0);
                    context.peer.notify_progress(progress).await.map_err(internal)?;
                }
                match arguments.remove("text") {
                    Some(Value::String(text)) => text,
                    _ => String::new(),
                }
            }
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

fn internal(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

pub async fn serve() -> Outcome<()> {
    wire::serve_stdio(Echo).await
}

/// Answers with JSON as `app`, and with event streams as `streams`.
pub async fn serve_over_http(kind: &str, port: &str) -> Outcome<()> {
    let listener = TcpListener::bind(("127.0.0.1", port.parse()?)).await?;
    wire::serve_http(listener, kind == "app", || Echo).await
}

/// Measures calls. It prints `ready`, reads lines with the number of concurrent calls, the seconds and the least number
/// of calls, and prints the calls per second of each.
pub async fn call_repeatedly(target: &str, revision: &str, python: &str) -> Outcome<()> {
    let revision = wire::revision(revision)?;
    let client = ClientConfig::new(Default::default(), Implementation::new("bench", "1"))
        .with_protocol_version(revision.clone());
    let command = if target.starts_with("http") { vec![target] } else { vec![python, target] };
    let mut session = wire::connect(client, &revision, &command, Some(reqwest::Client::new())).await?;
    let agreed = session.peer_info().map(|info| info.protocol_version.clone());
    if agreed.as_ref() != Some(&revision) {
        return Err(format!("expected {revision}, agreed on {agreed:?}").into());
    }
    measure(&session, 1, 0.0, 0).await?;
    println!("ready");
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [depth, seconds, rest @ ..] = words.as_slice() else {
            return Err(format!("expected a turn, got {line:?}").into());
        };
        let (depth, seconds) = (depth.parse()?, seconds.parse::<f64>()?);
        let least = rest.first().map_or(Ok(0), |word| word.parse())?;
        measure(&session, depth, seconds / 5.0, 0).await?;
        println!("{}", measure(&session, depth, seconds, least).await?);
    }
    session.close().await?;
    Ok(())
}

/// Returns calls per second with `depth` concurrent calls.
async fn measure(
    session: &RunningService<RoleClient, ClientConfig>,
    depth: usize,
    seconds: f64,
    least: usize,
) -> Outcome<f64> {
    let start = Instant::now();
    let mut running = JoinSet::new();
    for _ in 0..depth {
        let peer = session.peer().clone();
        running.spawn(async move {
            let mut count = 0;
            while count == 0 || start.elapsed().as_secs_f64() < seconds || count * depth < least {
                let arguments = json!({"text": TEXT}).as_object().cloned().unwrap_or_default();
                let result = peer.call_tool(CallToolRequestParams::new("echo").with_arguments(arguments)).await?;
                if result.content.first().and_then(ContentBlock::as_text).is_none_or(|content| content.text != TEXT) {
                    return Err(format!("the response is not an echo: {:?}", result.content).into());
                }
                count += 1;
            }
            Outcome::Ok(count)
        });
    }
    let mut calls = 0;
    while let Some(count) = running.join_next().await {
        calls += count??;
    }
    Ok(calls as f64 / start.elapsed().as_secs_f64())
}
