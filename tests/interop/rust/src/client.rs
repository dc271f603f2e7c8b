//! The client's side of the scenario.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::model::*;
use rmcp::service::{NotificationContext, PeerRequestOptions, RequestContext, RunningService, ServiceError};
use rmcp::{ClientHandler, RoleClient};
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use crate::{Outcome, wire};

const WATCHED: &str = "test://watched-resource";
const ROOT: &str = "file:///home/ada/project";
const SAMPLED: &str = "Paris, of course.";
const PATIENCE: Duration = Duration::from_secs(20);
const MOMENT: Duration = Duration::from_millis(100);

/// Members of results that belong to the protocol and not to the content.
const HIDDEN: [&str; 5] = ["_meta", "resultType", "ttlMs", "cacheScope", "task"];

/// Returns the content that the user fills into any form.
fn form(field: &str) -> Value {
    match field {
        "name" => "Ada".into(),
        "color" => "green".into(),
        "ok" => true.into(),
        "context" => "tea".into(),
        "username" => "ada".into(),
        "email" => "ada@example.org".into(),
        "age" => 36.into(),
        "score" => 1.5.into(),
        "status" => "pending".into(),
        "verified" => false.into(),
        "untitledSingle" => "option2".into(),
        "titledSingle" => "value1".into(),
        "legacyEnum" => "opt2".into(),
        "untitledMulti" => json!(["option1", "option3"]),
        "titledMulti" => json!(["value1", "value2"]),
        _ => Value::Null,
    }
}

/// The requests and notifications that a client has received.
#[derive(Default)]
struct Heard {
    asked: Mutex<Vec<Value>>,
    logged: Mutex<Vec<Value>>,
    changed: Mutex<Vec<Value>>,
}

/// Returns what a list has received, and empties it.
fn taken(list: &Mutex<Vec<Value>>) -> Vec<Value> {
    std::mem::take(&mut list.lock().unwrap())
}

fn note(list: &Mutex<Vec<Value>>, what: impl Into<Value>) {
    list.lock().unwrap().push(what.into());
}

/// The handler of the client.
struct Ears {
    revision: ProtocolVersion,
    heard: Arc<Heard>,
    progress: mpsc::UnboundedSender<ProgressNotificationParam>,
}

type Asking = RequestContext<RoleClient>;
type Telling = NotificationContext<RoleClient>;

impl ClientHandler for Ears {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities =
            ClientCapabilities::builder().enable_roots().enable_roots_list_changed().enable_sampling().build();
        capabilities.elicitation = Some(ElicitationCapability::new().with_form(FormElicitationCapability::new()));
        ClientConfig::new(capabilities, Implementation::new("interop", "1"))
            .with_protocol_version(self.revision.clone())
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        _: Asking,
    ) -> Result<CreateMessageResult, ErrorData> {
        note(&self.heard.asked, plain(&params));
        Ok(CreateMessageResult::new(SamplingMessage::assistant_text(SAMPLED), "a-model".into()))
    }

    async fn create_elicitation(&self, params: ElicitRequestParams, _: Asking) -> Result<ElicitResult, ErrorData> {
        note(&self.heard.asked, plain(&params));
        Ok(fill(params))
    }

    async fn list_roots(&self, _: Asking) -> Result<ListRootsResult, ErrorData> {
        note(&self.heard.asked, "roots");
        Ok(ListRootsResult::new(vec![Root::new(ROOT).with_name("project")]))
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: Telling) {
        let _ = self.progress.send(params); // which fails only at the end
    }

    async fn on_logging_message(&self, params: LoggingMessageNotificationParam, _: Telling) {
        note(&self.heard.logged, json!([params.level, params.data, params.logger]));
    }

    async fn on_tool_list_changed(&self, _: Telling) {
        note(&self.heard.changed, "tools");
    }

    async fn on_prompt_list_changed(&self, _: Telling) {
        note(&self.heard.changed, "prompts");
    }

    async fn on_resource_list_changed(&self, _: Telling) {
        note(&self.heard.changed, "resources");
    }

    async fn on_resource_updated(&self, params: ResourceUpdatedNotificationParam, _: Telling) {
        note(&self.heard.changed, params.uri);
    }
}

/// Fills a form, as the user does.
fn fill(params: ElicitRequestParams) -> ElicitResult {
    let accepted = ElicitResult::new(ElicitationAction::Accept);
    let ElicitRequestParams::FormElicitationParams { requested_schema, .. } = params else { return accepted };
    let content: Map<String, Value> =
        requested_schema.properties.keys().map(|field| (field.clone(), form(field))).collect();
    accepted.with_content(content.into())
}

/// Converts a value to JSON, without the members that belong to the protocol.
fn plain(value: &impl Serialize) -> Value {
    without_hidden(serde_json::to_value(value).expect("the types of the SDK are JSON"))
}

fn without_hidden(value: Value) -> Value {
    match value {
        Value::Object(members) => members
            .into_iter()
            .filter(|(name, _)| !HIDDEN.contains(&name.as_str()))
            .map(|(name, member)| (name, without_hidden(member)))
            .collect(),
        Value::Array(items) => items.into_iter().map(without_hidden).collect(),
        other => other,
    }
}

/// Returns the error that the server responded with, or the result.
fn refused<T: Serialize>(result: Result<T, ServiceError>) -> Outcome<Value> {
    match result {
        Ok(result) => Ok(json!({"answered": plain(&result)})),
        Err(ServiceError::McpError(error)) => {
            Ok(json!({"code": error.code, "message": error.message, "data": error.data}))
        }
        Err(error) => Err(error.into()),
    }
}

fn text_of(result: &CallToolResult) -> String {
    result.content.iter().filter_map(ContentBlock::as_text).map(|content| content.text.as_str()).collect()
}

fn tool(name: &str) -> CallToolRequestParams {
    CallToolRequestParams::new(name.to_owned()).with_arguments(Map::new())
}

/// A client with its observations.
struct Player {
    session: RunningService<RoleClient, Ears>,
    heard: Arc<Heard>,
    progress: mpsc::UnboundedReceiver<ProgressNotificationParam>,
    is_modern: bool,
}

impl Player {
    async fn connect(revision: &str, target: &[&str]) -> Outcome<Self> {
        let (revision, heard) = (wire::revision(revision)?, Arc::<Heard>::default());
        let (sender, progress) = mpsc::unbounded_channel();
        let ears = Ears { revision: revision.clone(), heard: heard.clone(), progress: sender };
        let session = wire::connect(ears, &revision, target, None).await?;
        Ok(Self { session, heard, progress, is_modern: !revision.has_initialize() })
    }

    fn about(&self) -> Outcome<Value> {
        let about = self.session.peer_info().ok_or("the server did not introduce itself")?;
        Ok(plain(&*about))
    }

    async fn text(&self, name: &str) -> Outcome<String> {
        Ok(text_of(&self.session.call_tool(tool(name)).await?))
    }

    async fn read(&self, uri: &str) -> Outcome<Value> {
        let result = self.session.read_resource(ReadResourceRequestParams::new(uri)).await?;
        Ok(plain(&result.contents))
    }

    // The steps of the scenario

    async fn lists(&mut self) -> Outcome<Value> {
        Ok(json!({
            "tools": plain(&self.session.list_tools(None).await?.tools),
            "resources": plain(&self.session.list_resources(None).await?.resources),
            "templates": plain(&self.session.list_resource_templates(None).await?.resource_templates),
            "prompts": plain(&self.session.list_prompts(None).await?.prompts),
        }))
    }

    async fn calls(&mut self) -> Outcome<Value> {
        let mut seen = Map::new();
        for name in [
            "simple_text",
            "image_content",
            "audio_content",
            "embedded_resource",
            "multiple_content_types",
            "structured_content",
            "error_handling",
        ] {
            let result = self.session.call_tool(tool(&format!("test_{name}"))).await?;
            seen.insert(name.into(), plain(&result));
        }
        Ok(seen.into())
    }

    async fn reads(&mut self) -> Outcome<Value> {
        let mut seen = Map::new();
        for uri in ["test://static-text", "test://static-binary", "test://template/123/data"] {
            seen.insert(uri.into(), self.read(uri).await?);
        }
        Ok(seen.into())
    }

    async fn prompts(&mut self) -> Outcome<Value> {
        let mut seen = Map::new();
        for (name, arguments) in [
            ("test_simple_prompt", json!({})),
            ("test_prompt_with_arguments", json!({"arg1": "hello", "arg2": "world"})),
            ("test_prompt_with_embedded_resource", json!({"resourceUri": "test://example"})),
            ("test_prompt_with_image", json!({})),
            ("test_input_required_result_prompt", json!({})),
        ] {
            let arguments = arguments.as_object().cloned().unwrap_or_default();
            let params = GetPromptRequestParams::new(name).with_arguments(arguments);
            let mut answer = refused(self.session.get_prompt(params).await)?;
            if answer.get("answered").is_some() {
                answer = answer["answered"]["messages"].take();
            }
            seen.insert(name.into(), answer);
        }
        Ok(seen.into())
    }

    async fn completions(&mut self) -> Outcome<Value> {
        let (prompt, template) = ("test_prompt_with_arguments", "test://template/{id}/data");
        Ok(json!({
            "prompt": plain(&self.session.complete_prompt_argument(prompt, "arg1", "par", None).await?),
            "template": plain(&self.session.complete_resource_argument(template, "id", "12", None).await?),
        }))
    }

    async fn progress(&mut self) -> Outcome<Value> {
        while self.progress.try_recv().is_ok() {}
        self.session.call_tool(tool("test_tool_with_progress")).await?;
        sleep(MOMENT).await; // the SDK calls handlers at the same time as it returns results
        let mut seen = vec![];
        while let Ok(step) = self.progress.try_recv() {
            seen.push(json!([step.progress, step.total, step.message]));
        }
        Ok(seen.into())
    }

    async fn cancelling(&mut self) -> Outcome<Value> {
        let before = self.text("test_cancelled_waits").await?;
        while self.progress.try_recv().is_ok() {}
        let request = CallToolRequest::new(tool("test_wait")).into();
        let call = self.session.send_cancellable_request(request, PeerRequestOptions::no_options()).await?;
        self.progress.recv().await;
        call.cancel(None).await?;
        let mut after = before.clone();
        for _ in 0..100 {
            after = self.text("test_cancelled_waits").await?;
            if after != before {
                break;
            }
            sleep(MOMENT / 5).await; // notifications take time
        }
        Ok(json!({"before": before, "after": after}))
    }

    async fn asking(&mut self) -> Outcome<Value> {
        let mut seen = Map::new();
        for name in [
            "test_sampling",
            "test_elicitation",
            "test_elicitation_sep1034_defaults",
            "test_elicitation_sep1330_enums",
            "test_input_required_result_elicitation",
            "test_input_required_result_sampling",
            "test_input_required_result_list_roots",
            "test_input_required_result_request_state",
            "test_input_required_result_multiple_inputs",
            "test_input_required_result_multi_round",
            "test_input_required_result_capabilities",
        ] {
            taken(&self.heard.asked);
            let arguments = match name {
                "test_sampling" => json!({"prompt": "Say something"}),
                "test_elicitation" => json!({"message": "Who are you?"}),
                _ => json!({}),
            };
            let params = tool(name).with_arguments(arguments.as_object().cloned().unwrap_or_default());
            let result = self.session.call_tool(params).await;
            let mut found = match &result {
                Ok(result) => json!({"text": text_of(result)}),
                Err(_) => refused(result).unwrap_or_else(|error| json!({"failed": error.to_string()})),
            };
            found["asked"] = taken(&self.heard.asked).into();
            seen.insert(name.into(), found);
        }
        Ok(seen.into())
    }

    async fn logging(&mut self) -> Outcome<Value> {
        let mut seen = Map::new();
        for (name, level) in
            [("debug", LoggingLevel::Debug), ("info", LoggingLevel::Info), ("error", LoggingLevel::Error)]
        {
            let mut params = tool("test_logging_tool");
            if self.is_modern {
                params.meta_or_default().set_log_level(level);
            } else {
                self.session.set_level(SetLevelRequestParams::new(level)).await?;
            }
            taken(&self.heard.logged);
            self.session.call_tool(params).await?;
            sleep(MOMENT).await;
            seen.insert(name.into(), taken(&self.heard.logged).into());
        }
        Ok(seen.into())
    }

    async fn changes(&mut self) -> Outcome<Value> {
        let before = self.read(WATCHED).await?;
        let listener = self.listen().await?;
        sleep(MOMENT).await;
        taken(&self.heard.changed);
        for what in ["tool", "prompt", "resource"] {
            self.text(&format!("test_trigger_{what}_change")).await?;
            sleep(MOMENT / 2).await; // lists and resources may have streams of their own
        }
        sleep(MOMENT * 2).await; // enough for one too many to be heard as well
        let heard = taken(&self.heard.changed);
        match listener {
            Some(listener) => listener.abort(), // dropping a subscription cancels it
            None => self.session.unsubscribe(UnsubscribeRequestParams::new(WATCHED)).await?,
        }
        sleep(MOMENT).await;
        self.text("test_trigger_resource_change").await?;
        sleep(MOMENT * 2).await;
        let tools = self.session.list_tools(None).await?.tools;
        let late: Vec<_> = tools.iter().map(|tool| &tool.name).filter(|name| name.contains("late")).collect();
        let contents = [before, self.read(WATCHED).await?];
        let texts: Vec<_> =
            contents.iter().flat_map(|each| each.as_array()).flatten().map(|one| &one["text"]).collect();
        Ok(json!({
            "heard": heard, "after_leaving": taken(&self.heard.changed), "late": late, "watched": texts,
        }))
    }

    /// Subscribes to a resource, and in the newest revision to all lists.
    async fn listen(&self) -> Outcome<Option<tokio::task::JoinHandle<()>>> {
        if !self.is_modern {
            self.session.subscribe(SubscribeRequestParams::new(WATCHED)).await?;
            return Ok(None);
        }
        let filter = SubscriptionFilter::builder().tools_list_changed().prompts_list_changed().resources_list_changed();
        let mut opened = self.session.listen(filter.resource_subscription(WATCHED).build()).await?;
        let heard = self.heard.clone();
        Ok(Some(tokio::spawn(async move {
            while let Ok(Some(change)) = opened.next().await {
                match change {
                    ServerNotification::ToolListChangedNotification(_) => note(&heard.changed, "tools"),
                    ServerNotification::PromptListChangedNotification(_) => note(&heard.changed, "prompts"),
                    ServerNotification::ResourceListChangedNotification(_) => note(&heard.changed, "resources"),
                    ServerNotification::ResourceUpdatedNotification(update) => note(&heard.changed, update.params.uri),
                    _ => note(&heard.changed, "something else"),
                }
            }
        })))
    }

    async fn errors(&mut self) -> Outcome<Value> {
        let custom = ClientRequest::CustomRequest(CustomRequest::new("no/such/method", None));
        Ok(json!({
            "tool": refused(self.session.call_tool(tool("no_such_tool")).await)?,
            "argument": refused(self.session.call_tool(tool("test_sampling")).await)?,
            "prompt": refused(self.session.get_prompt(GetPromptRequestParams::new("no_such_prompt")).await)?,
            "resource":
                refused(self.session.read_resource(ReadResourceRequestParams::new("test://no-such-resource")).await)?,
            "method": refused(self.session.send_request(custom).await)?,
        }))
    }

    /// Makes the rounds one by one, if the revision has them.
    async fn rounds(&mut self) -> Outcome<Value> {
        if !self.is_modern {
            return Ok(Value::Null);
        }
        Ok(json!({
            "one": self.by_hand("test_input_required_result_elicitation").await?,
            "two": self.by_hand("test_input_required_result_multi_round").await?,
            "tampered": self.tampered().await?,
        }))
    }

    /// Calls a tool and answers each round. Returns the requested keys, and the final text.
    async fn by_hand(&self, name: &str) -> Outcome<Value> {
        let (mut seen, mut params) = (Vec::<Value>::new(), tool(name));
        loop {
            let result = match self.session.call_tool_once(params.clone()).await? {
                CallToolResponse::Complete(result) => {
                    seen.push(text_of(&result).into());
                    return Ok(seen.into());
                }
                CallToolResponse::InputRequired(result) => result,
                other => return Err(format!("expected a result, got {other:?}").into()),
            };
            let (mut keys, mut responses) = (vec![], InputResponses::new());
            for (key, request) in result.input_requests.unwrap_or_default() {
                let InputRequest::Elicitation(request) = request else { return Err("expected a form".into()) };
                responses.insert(key.clone(), serde_json::to_value(fill(request.params))?);
                keys.push(key);
            }
            seen.push(keys.into());
            params.input_responses = Some(responses);
            params.request_state = result.request_state;
        }
    }

    /// Returns the error for a modified request state.
    async fn tampered(&self) -> Outcome<Value> {
        let name = "test_input_required_result_tampered_state";
        let CallToolResponse::InputRequired(result) = self.session.call_tool_once(tool(name)).await? else {
            return Err("expected a request for input".into());
        };
        let state = result.request_state.ok_or("expected a state")?;
        let other = if state.starts_with('A') { "B" } else { "A" };
        let altered = other.to_owned() + &state[1..];
        match self.session.call_tool_once(tool(name).with_request_state(altered)).await {
            Ok(response) => Ok(json!({"answered": format!("{response:?}")})),
            Err(error) => refused::<()>(Err(error)),
        }
    }
}

/// Returns the observations of a step, or its failure.
async fn attempt(step: impl Future<Output = Outcome<Value>>) -> Value {
    match timeout(PATIENCE, step).await {
        Ok(Ok(seen)) => seen,
        Ok(Err(error)) => json!({"failed": error.to_string()}),
        Err(_) => json!({"failed": "it took too long"}),
    }
}

/// Plays the scenario and prints what it saw.
pub async fn play(revision: &str, target: &[&str]) -> Outcome<()> {
    let mut player = Player::connect(revision, target).await?;
    let mut seen = json!({"client": "rmcp", "about": player.about()?});
    seen["lists"] = attempt(player.lists()).await;
    seen["calls"] = attempt(player.calls()).await;
    seen["reads"] = attempt(player.reads()).await;
    seen["prompts"] = attempt(player.prompts()).await;
    seen["completions"] = attempt(player.completions()).await;
    seen["progress"] = attempt(player.progress()).await;
    seen["cancelling"] = attempt(player.cancelling()).await;
    seen["asking"] = attempt(player.asking()).await;
    seen["logging"] = attempt(player.logging()).await;
    seen["changes"] = attempt(player.changes()).await;
    seen["errors"] = attempt(player.errors()).await;
    seen["rounds"] = attempt(player.rounds()).await;
    player.session.close().await?;
    println!("{seen}");
    Ok(())
}
