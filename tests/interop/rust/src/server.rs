//! A server that offers the content of `offer.json`.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rmcp::model::*;
use rmcp::service::{NotificationContext, RequestContext, ServiceError, SubscriptionContext};
use rmcp::{Peer, RoleServer, ServerHandler, ServiceExt};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::broadcast;

use crate::{Outcome, wire};

type Refusal<T> = Result<T, ErrorData>;

/// The content of `offer.json`.
#[derive(Deserialize)]
struct Offer {
    info: Implementation,
    instructions: String,
    page: usize,
    tools: Vec<Tool>,
    results: HashMap<String, CallToolResult>,
    questions: HashMap<String, Vec<InputRequests>>,
    resources: Vec<Resource>,
    contents: HashMap<String, Vec<ResourceContents>>,
    templates: Vec<ResourceTemplate>,
    prompts: Vec<Prompt>,
    messages: HashMap<String, Vec<PromptMessage>>,
    styles: Vec<String>,
    levels: Vec<LoggingLevel>,
}

/// The offer with the state that all sessions share.
struct Shop {
    offer: Offer,
    cancelled: AtomicUsize,
    roots_changes: AtomicUsize,
    watched: AtomicUsize,
    /// The lists and the URIs that change.
    changes: broadcast::Sender<String>,
}

/// The handler of a session, or of a request without one.
struct Counter {
    shop: Arc<Shop>,
    level: Mutex<Option<LoggingLevel>>,
    uris: Arc<Mutex<HashSet<String>>>,
    /// Receivers for subscriptions that are granted but not begun: no change is lost between.
    granted: Mutex<VecDeque<broadcast::Receiver<String>>>,
}

pub async fn serve(offer: &str, over_http: bool) -> Outcome<()> {
    let mut offer: Offer = serde_json::from_slice(&std::fs::read(offer)?)?;
    for result in offer.results.values_mut() {
        result.result_type = Some(ResultType::COMPLETE); // which the SDK drops on older revisions
    }
    let shop = Arc::new(Shop {
        offer,
        cancelled: AtomicUsize::new(0),
        roots_changes: AtomicUsize::new(0),
        watched: AtomicUsize::new(0),
        changes: broadcast::Sender::new(64),
    });
    if over_http {
        return serve_over_http(shop).await;
    }
    Counter::new(shop).serve(rmcp::transport::stdio()).await?.waiting().await?;
    Ok(())
}

/// Prints the URL of the server, and ends with its standard input.
async fn serve_over_http(shop: Arc<Shop>) -> Outcome<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}/mcp", listener.local_addr()?);
    let (mut stdin, mut sink) = (tokio::io::stdin(), tokio::io::sink());
    tokio::select! {
        failed = wire::serve_http(listener, false, move || Counter::new(shop.clone())) => failed,
        ended = tokio::io::copy(&mut stdin, &mut sink) => Ok(ended.map(drop)?),
    }
}

impl ServerHandler for Counter {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_completions()
            .enable_logging()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_resources_subscribe()
            .enable_tools()
            .enable_tool_list_changed()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(self.shop.offer.info.clone())
            .with_instructions(self.shop.offer.instructions.clone())
    }

    async fn list_tools(&self, params: Page, _: Context) -> Refusal<ListToolsResult> {
        let (items, next) = self.page(&self.shop.offer.tools, params)?;
        Ok(ListToolsResult { next_cursor: next, ..ListToolsResult::with_all_items(items) })
    }

    async fn list_resources(&self, params: Page, _: Context) -> Refusal<ListResourcesResult> {
        let (items, next) = self.page(&self.shop.offer.resources, params)?;
        Ok(ListResourcesResult { next_cursor: next, ..ListResourcesResult::with_all_items(items) })
    }

    async fn list_resource_templates(&self, params: Page, _: Context) -> Refusal<ListResourceTemplatesResult> {
        let (items, next) = self.page(&self.shop.offer.templates, params)?;
        Ok(ListResourceTemplatesResult { next_cursor: next, ..ListResourceTemplatesResult::with_all_items(items) })
    }

    async fn list_prompts(&self, params: Page, _: Context) -> Refusal<ListPromptsResult> {
        let (items, next) = self.page(&self.shop.offer.prompts, params)?;
        Ok(ListPromptsResult { next_cursor: next, ..ListPromptsResult::with_all_items(items) })
    }

    async fn call_tool(&self, params: CallToolRequestParams, context: Context) -> Refusal<CallToolResponse> {
        if let Some(result) = self.shop.offer.results.get(params.name.as_ref()) {
            return Ok(result.clone().into());
        }
        if let Some(rounds) = self.shop.offer.questions.get(params.name.as_ref()) {
            return Ok(match ask(&context, rounds, params.input_responses, params.request_state).await? {
                Asked::Answered(answers) => value(answers).into(),
                Asked::Open(result) => result.into(),
            });
        }
        let mut arguments = params.arguments.unwrap_or_default();
        let result = match params.name.as_ref() {
            "echo" => arguments.remove("value").unwrap_or_default(),
            "progress" => {
                for done in 1..=5 {
                    progress(&context, done.into(), 5.0, &format!("step {done}")).await?;
                }
                "done".into()
            }
            "wait" => {
                progress(&context, 0.0, 1.0, "waiting").await?;
                context.ct.cancelled().await;
                self.shop.cancelled.fetch_add(1, Ordering::SeqCst);
                return Err(ErrorData::internal_error("cancelled", None));
            }
            "cancelled" => self.shop.cancelled.load(Ordering::SeqCst).into(),
            "log" => self.log(&context).await?,
            "change" => self.change(arguments.get("what").and_then(Value::as_str).unwrap_or_default()),
            "roots_changes" => self.shop.roots_changes.load(Ordering::SeqCst).into(),
            "broken" => {
                let data = json!({"short": true, "stout": [1, null]});
                return Err(ErrorData::new(ErrorCode(-31999), "I'm a teapot", Some(data)));
            }
            "crash" => std::process::exit(3),
            name => {
                let data = json!({"name": name});
                return Err(ErrorData::invalid_params(format!("Unknown tool: {name}"), Some(data)));
            }
        };
        Ok(value(result).into())
    }

    async fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        context: Context,
    ) -> Refusal<ReadResourceResponse> {
        let uri = params.uri;
        if let Some(id) = uri.strip_prefix("test://item/") {
            let text = format!("item {id}");
            return Ok(ReadResourceResult::new(vec![ResourceContents::text(text, uri)]).into());
        }
        let contents = match uri.as_str() {
            "test://watched" => {
                let text = format!("changed {} time(s)", self.shop.watched.load(Ordering::SeqCst));
                vec![ResourceContents::text(text, uri)]
            }
            "test://asked" => {
                let rounds = &self.shop.offer.questions["roots"];
                let text = match ask(&context, rounds, params.input_responses, params.request_state).await? {
                    Asked::Answered(answers) => answers["folders"]["roots"][0]["uri"].as_str().map(str::to_owned),
                    Asked::Open(result) => return Ok(result.into()),
                };
                let text = text.ok_or_else(|| ErrorData::invalid_params("expected a folder", None))?;
                vec![ResourceContents::TextResourceContents { uri, mime_type: None, text, meta: None }]
            }
            _ => {
                let unknown = || format!("Resource not found: {uri}");
                let found = self.shop.offer.contents.get(&uri).cloned();
                found.ok_or_else(|| ErrorData::resource_not_found(unknown(), Some(json!({"uri": uri}))))?
            }
        };
        Ok(ReadResourceResult::new(contents).into())
    }

    async fn get_prompt(&self, params: GetPromptRequestParams, context: Context) -> Refusal<GetPromptResponse> {
        let say = |text: String| vec![PromptMessage::new_text(Role::User, text)];
        let name = params.name;
        if !self.shop.offer.prompts.iter().any(|prompt| prompt.name == name) {
            return Err(ErrorData::invalid_params(format!("Unknown prompt: {name}"), Some(json!({"name": name}))));
        }
        match name.as_str() {
            "greet" => {
                let arguments = params.arguments.unwrap_or_default();
                let given = |name, or| arguments.get(name).and_then(Value::as_str).unwrap_or(or);
                let text = format!("Hello {}, {}.", given("name", ""), given("style", "plainly"));
                Ok(GetPromptResult::new(say(text)).with_description("Greets somebody.").into())
            }
            "asked" => {
                let rounds = &self.shop.offer.questions["rounds"];
                match ask(&context, rounds, params.input_responses, params.request_state).await? {
                    Asked::Answered(answers) => {
                        let color = answers["second"]["content"]["color"].as_str().unwrap_or("nothing");
                        Ok(GetPromptResult::new(say(format!("I like {color}."))).into())
                    }
                    Asked::Open(result) => Ok(result.into()),
                }
            }
            _ => Ok(GetPromptResult::new(self.shop.offer.messages.get(&name).cloned().unwrap_or_default()).into()),
        }
    }

    async fn complete(&self, params: CompleteRequestParams, _: Context) -> Refusal<CompleteResult> {
        let start = params.argument.value;
        let found = if params.r#ref.as_prompt_name().is_some() {
            let matching = self.shop.offer.styles.iter().filter(|style| style.starts_with(&start));
            CompletionInfo::with_all_values(matching.cloned().collect())
        } else {
            let context = params.context.unwrap_or_default();
            let before = context.get_argument("prefix").map(String::as_str).unwrap_or_default();
            let values = (0..100).map(|n| format!("{before}{start}{n}")).collect();
            CompletionInfo::with_pagination(values, Some(150), true)
        };
        found.map(CompleteResult::new).map_err(|error| ErrorData::internal_error(error, None))
    }

    async fn set_level(&self, params: SetLevelRequestParams, _: Context) -> Refusal<()> {
        *self.level.lock().unwrap() = Some(params.level);
        Ok(())
    }

    async fn subscribe(&self, params: SubscribeRequestParams, _: Context) -> Refusal<()> {
        self.uris.lock().unwrap().insert(params.uri);
        Ok(())
    }

    async fn unsubscribe(&self, params: UnsubscribeRequestParams, _: Context) -> Refusal<()> {
        self.uris.lock().unwrap().remove(&params.uri);
        Ok(())
    }

    /// Sends the changes of a session of an older revision, until it ends.
    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let (mut changes, uris) = (self.shop.changes.subscribe(), self.uris.clone());
        tokio::spawn(async move {
            while let Ok(what) = changes.recv().await {
                let is_wanted = !what.contains(':') || uris.lock().unwrap().contains(&what);
                if is_wanted && context.peer.send_notification(changed(what)).await.is_err() {
                    return;
                }
            }
        });
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        self.granted.lock().unwrap().push_back(self.shop.changes.subscribe());
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Refusal<()> {
        let granted = self.granted.lock().unwrap().pop_front();
        let mut changes = granted.unwrap_or_else(|| self.shop.changes.subscribe());
        loop {
            tokio::select! {
                _ = context.cancelled() => return Ok(()),
                what = changes.recv() => {
                    // The sink leaves out what the client did not ask for.
                    let _ = context.sink().send(changed(what.map_err(internal)?)).await;
                }
            }
        }
    }

    async fn on_roots_list_changed(&self, _: NotificationContext<RoleServer>) {
        self.shop.roots_changes.fetch_add(1, Ordering::SeqCst);
    }
}

type Context = RequestContext<RoleServer>;
type Page = Option<PaginatedRequestParams>;

impl Counter {
    fn new(shop: Arc<Shop>) -> Self {
        Self { shop, level: Mutex::default(), uris: Arc::default(), granted: Mutex::default() }
    }

    /// Returns a page of a list, and the cursor of the next.
    fn page<T: Clone>(&self, items: &[T], params: Page) -> Refusal<(Vec<T>, Option<String>)> {
        let cursor = params.and_then(|params| params.cursor).unwrap_or("0".into());
        let start: usize = cursor.parse().map_err(|_| ErrorData::invalid_params("Invalid cursor", None))?;
        let end = items.len().min(start + self.shop.offer.page);
        let found = items.get(start..end).ok_or_else(|| ErrorData::invalid_params("Invalid cursor", None))?;
        Ok((found.to_vec(), (end < items.len()).then(|| end.to_string())))
    }

    /// Sends a message of each level that the client wants. The SDK does not filter them.
    async fn log(&self, context: &Context) -> Refusal<Value> {
        let of_session = *self.level.lock().unwrap();
        let from = context.meta.log_level().or(of_session).unwrap_or(LoggingLevel::Debug) as u8;
        for &level in self.shop.offer.levels.iter().filter(|&&level| level as u8 >= from) {
            let message = LoggingMessageNotificationParam::new(level, json!({"level": level})).with_logger("offer");
            context.peer.notify_logging_message(message).await.map_err(internal)?;
        }
        Ok("logged".into())
    }

    fn change(&self, what: &str) -> Value {
        if what == "test://watched" {
            self.shop.watched.fetch_add(1, Ordering::SeqCst);
        }
        let _ = self.shop.changes.send(what.to_owned()); // which fails if nobody listens
        "changed".into()
    }
}

fn value(value: impl Into<Value>) -> CallToolResult {
    let mut result = CallToolResult::success(vec![]);
    result.structured_content = Some(json!({"value": value.into()}));
    result
}

fn changed(what: String) -> ServerNotification {
    match what.as_str() {
        "tools" => ToolListChangedNotification::default().into(),
        "prompts" => PromptListChangedNotification::default().into(),
        "resources" => ResourceListChangedNotification::default().into(),
        _ => ResourceUpdatedNotification::new(ResourceUpdatedNotificationParam::new(what)).into(),
    }
}

async fn progress(context: &Context, done: f64, total: f64, message: &str) -> Refusal<()> {
    let Some(token) = context.meta.get_progress_token() else { return Ok(()) };
    let params = ProgressNotificationParam::new(token, done).with_total(total).with_message(message);
    context.peer.notify_progress(params).await.map_err(internal)
}

fn internal(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

/// The answers by key, or the requests of the next round.
enum Asked {
    Answered(JsonObject),
    Open(InputRequiredResult),
}

/// Asks the client for all rounds: with requests of the server's up to 2025-11-25, and else in results.
async fn ask(
    context: &Context,
    rounds: &[InputRequests],
    responses: Option<InputResponses>,
    state: Option<String>,
) -> Refusal<Asked> {
    if context.protocol_version().is_none_or(|revision| revision.has_initialize()) {
        let mut answers = JsonObject::new();
        for (key, question) in rounds.iter().flatten() {
            answers.insert(key.clone(), ask_in_session(&context.peer, question.clone()).await.map_err(refusal)?);
        }
        return Ok(Asked::Answered(answers));
    }
    let before = state.map(|state| serde_json::from_str(&state)).transpose();
    let mut answers: JsonObject =
        before.map_err(|_| ErrorData::invalid_params("Invalid state", None))?.unwrap_or_default();
    answers.extend(responses.unwrap_or_default());
    let is_open = |round: &&InputRequests| round.keys().any(|key| !answers.contains_key(key));
    Ok(match rounds.iter().find(is_open) {
        Some(round) => {
            let state = Value::from(answers).to_string();
            Asked::Open(InputRequiredResult::new(Some(BTreeMap::clone(round)), Some(state)))
        }
        None => Asked::Answered(answers),
    })
}

/// Sends a request to the client, as older revisions do.
async fn ask_in_session(peer: &Peer<RoleServer>, question: InputRequest) -> Result<Value, ServiceError> {
    let answer = match question {
        InputRequest::CreateMessage(request) => serde_json::to_value(peer.create_message(request.params).await?),
        InputRequest::Elicitation(request) => {
            let mut params = request.params;
            if let ElicitRequestParams::UrlElicitationParams { elicitation_id, .. } = &mut params {
                *elicitation_id = "visit-1".into();
            }
            serde_json::to_value(peer.create_elicitation(params).await?)
        }
        _ => serde_json::to_value(peer.list_roots().await?),
    };
    answer.map_err(|error| ServiceError::McpError(internal(error)))
}

fn refusal(error: ServiceError) -> ErrorData {
    match error {
        ServiceError::McpError(error) => error,
        error => internal(error),
    }
}
