import io.modelcontextprotocol.client.McpAsyncClient;
import io.modelcontextprotocol.client.McpClient;
import io.modelcontextprotocol.json.McpJsonDefaults;
import io.modelcontextprotocol.json.McpJsonMapper;
import io.modelcontextprotocol.spec.McpError;
import io.modelcontextprotocol.spec.McpSchema;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import reactor.core.Disposable;
import reactor.core.publisher.Mono;

/** The client's side of the scenario. */
final class Scenario {
    private static final McpJsonMapper JSON = McpJsonDefaults.getMapper();
    private static final String WATCHED = "test://watched-resource";
    private static final Duration PATIENCE = Duration.ofSeconds(20);

    /** The content that the user fills into any form. */
    private static final Map<String, Object> FORMS = Map.ofEntries(
            Map.entry("name", "Ada"),
            Map.entry("color", "green"),
            Map.entry("ok", true),
            Map.entry("context", "tea"),
            Map.entry("username", "ada"),
            Map.entry("email", "ada@example.org"),
            Map.entry("age", 36),
            Map.entry("score", 1.5),
            Map.entry("status", "pending"),
            Map.entry("verified", false),
            Map.entry("untitledSingle", "option2"),
            Map.entry("titledSingle", "value1"),
            Map.entry("legacyEnum", "opt2"),
            Map.entry("untitledMulti", List.of("option1", "option3")),
            Map.entry("titledMulti", List.of("value1", "value2")));

    /** Members of results that belong to the protocol and not to the content. */
    private static final Set<String> HIDDEN = Set.of("_meta", "resultType", "ttlMs", "cacheScope", "task");

    interface Step {
        Object play() throws Exception;
    }

    private final Tap tap;
    private final McpAsyncClient client;
    private final List<Object> asked = Collections.synchronizedList(new ArrayList<>());
    private final List<Object> logged = Collections.synchronizedList(new ArrayList<>());
    private final List<Object> changed = Collections.synchronizedList(new ArrayList<>());
    private final List<McpSchema.ProgressNotification> progress = Collections.synchronizedList(new ArrayList<>());

    private Scenario(Tap tap) {
        this.tap = tap;
        client = McpClient.async(tap)
                .requestTimeout(PATIENCE)
                .initializationTimeout(PATIENCE)
                .clientInfo(McpSchema.Implementation.builder("interop", "1").build())
                .capabilities(McpSchema.ClientCapabilities.builder()
                        .roots(true)
                        .sampling()
                        .elicitation()
                        .build())
                .roots(McpSchema.Root.builder("file:///home/ada/project").name("project").build())
                .sampling(this::sample)
                .elicitation(this::elicit)
                .toolsChangeConsumer(tools -> note(changed, "tools"))
                .promptsChangeConsumer(prompts -> note(changed, "prompts"))
                .resourcesChangeConsumer(resources -> note(changed, "resources"))
                .resourcesUpdateConsumer(contents -> note(changed, contents.get(0).uri()))
                .loggingConsumer(log -> note(logged, Arrays.asList(nameOf(log.level()), log.data(), log.logger())))
                .progressConsumer(step -> Mono.fromRunnable(() -> progress.add(step)))
                .build();
    }

    static void play(String[] arguments) throws IOException {
        List<String> target = Arrays.asList(arguments).subList(2, arguments.length);
        Scenario played = new Scenario(new Tap(Transports.toServer(arguments[0], target)));
        Map<String, Object> seen = played.playAll();
        played.client.closeGracefully().block();
        System.out.println(JSON.writeValueAsString(seen));
    }

    private Map<String, Object> playAll() {
        Map<String, Object> seen = new LinkedHashMap<>();
        seen.put("client", "java-sdk " + McpAsyncClient.class.getPackage().getImplementationVersion());
        seen.put("about", about(client.initialize().block()));
        seen.put("lists", observe(this::lists));
        seen.put("calls", observe(this::calls));
        seen.put("reads", observe(this::reads));
        seen.put("prompts", observe(this::prompts));
        seen.put("completions", observe(this::completions));
        seen.put("progress", observe(this::progress));
        seen.put("cancelling", observe(this::cancelling));
        seen.put("asking", observe(this::asking));
        seen.put("logging", observe(this::logging));
        seen.put("changes", observe(this::changes));
        seen.put("errors", observe(this::errors));
        seen.put("rounds", null); // its revisions have none
        return seen;
    }

    /** Plays a step, and returns its observations or its failure. */
    private static Object observe(Step step) {
        try {
            return step.play();
        } catch (Exception failure) {
            return Map.of("failed", failure.toString());
        }
    }

    private static Mono<Void> note(List<Object> list, Object what) {
        return Mono.fromRunnable(() -> list.add(what));
    }

    /** Returns what a list has received, and empties it. */
    private static List<Object> taken(List<Object> list) {
        synchronized (list) {
            List<Object> found = List.copyOf(list);
            list.clear();
            return found;
        }
    }

    private static String nameOf(McpSchema.LoggingLevel level) {
        return level.name().toLowerCase(java.util.Locale.ROOT);
    }

    // Answers

    private Mono<McpSchema.CreateMessageResult> sample(McpSchema.CreateMessageRequest request) {
        asked.add(plain(request));
        McpSchema.Content text = McpSchema.TextContent.builder("Paris, of course.").build();
        return Mono.just(
                McpSchema.CreateMessageResult.builder(McpSchema.Role.ASSISTANT, text, "a-model").build());
    }

    private Mono<McpSchema.ElicitResult> elicit(McpSchema.ElicitFormRequest request) {
        asked.add(plain(request));
        Map<String, Object> content = new LinkedHashMap<>();
        Map<?, ?> fields = (Map<?, ?>) request.requestedSchema().get("properties");
        fields.keySet().forEach(name -> content.put((String) name, FORMS.get(name)));
        return Mono.just(new McpSchema.ElicitResult(McpSchema.ElicitResult.Action.ACCEPT, content, null));
    }

    // Actions

    private Mono<McpSchema.CallToolResult> call(String name, Map<String, Object> arguments) {
        return client.callTool(new McpSchema.CallToolRequest(name, arguments, null));
    }

    private Mono<McpSchema.CallToolResult> callWithProgress(String name) {
        progress.clear();
        Map<String, Object> meta = Map.of("progressToken", "progress of " + name);
        return client.callTool(new McpSchema.CallToolRequest(name, Map.of(), meta));
    }

    private String text(String name) {
        return textOf(call(name, Map.of()).block());
    }

    private static String textOf(McpSchema.CallToolResult result) {
        return result.content().stream()
                .filter(McpSchema.TextContent.class::isInstance)
                .map(content -> ((McpSchema.TextContent) content).text())
                .collect(Collectors.joining());
    }

    private Object read(String uri) {
        return member(client.readResource(McpSchema.ReadResourceRequest.builder(uri).build()).block(), "contents");
    }

    private static Object member(Object value, String name) {
        return ((Map<?, ?>) plain(value)).get(name);
    }

    /** Converts a value to JSON, without the members that belong to the protocol. */
    private static Object plain(Object value) {
        try {
            return withoutHidden(JSON.readValue(JSON.writeValueAsBytes(value), Object.class));
        } catch (IOException failure) {
            throw new IllegalStateException(failure);
        }
    }

    private static Object withoutHidden(Object value) {
        if (value instanceof Map<?, ?> members) {
            Map<Object, Object> kept = new LinkedHashMap<>();
            members.forEach((name, member) -> {
                if (!HIDDEN.contains(name)) {
                    kept.put(name, withoutHidden(member));
                }
            });
            return kept;
        }
        return value instanceof Collection<?> items ? items.stream().map(Scenario::withoutHidden).toList() : value;
    }

    /** Returns the error that the server responded with, or the result. */
    private static Map<String, Object> refused(Supplier<Object> attempt) {
        Map<String, Object> seen = new LinkedHashMap<>();
        try {
            seen.put("answered", attempt.get());
        } catch (McpError failure) {
            McpSchema.JSONRPCResponse.JSONRPCError error = failure.getJsonRpcError();
            seen.put("code", error.code());
            seen.put("message", error.message());
            seen.put("data", error.data());
        }
        return seen;
    }

    // The steps of the scenario

    private static Object about(McpSchema.InitializeResult about) {
        return Map.of(
                "protocolVersion", about.protocolVersion(),
                "serverInfo", plain(about.serverInfo()),
                "capabilities", plain(about.capabilities()),
                "instructions", about.instructions());
    }

    private Object lists() {
        return Map.of(
                "tools", member(client.listTools().block(), "tools"),
                "resources", member(client.listResources().block(), "resources"),
                "templates", member(client.listResourceTemplates().block(), "resourceTemplates"),
                "prompts", member(client.listPrompts().block(), "prompts"));
    }

    private Object calls() {
        return Stream.of(
                        "simple_text",
                        "image_content",
                        "audio_content",
                        "embedded_resource",
                        "multiple_content_types",
                        "structured_content",
                        "error_handling")
                .collect(Collectors.toMap(name -> name, name -> plain(call("test_" + name, null).block())));
    }

    private Object reads() {
        return Stream.of("test://static-text", "test://static-binary", "test://template/123/data")
                .collect(Collectors.toMap(uri -> uri, this::read));
    }

    private Object prompts() {
        Map<String, Map<String, Object>> arguments = Map.of(
                "test_simple_prompt", Map.of(),
                "test_prompt_with_arguments", Map.of("arg1", "hello", "arg2", "world"),
                "test_prompt_with_embedded_resource", Map.of("resourceUri", "test://example"),
                "test_prompt_with_image", Map.of(),
                "test_input_required_result_prompt", Map.of());
        Map<String, Object> seen = new LinkedHashMap<>();
        arguments.forEach((name, given) -> {
            Map<String, Object> found = refused(
                    () -> member(client.getPrompt(new McpSchema.GetPromptRequest(name, given, null)).block(), "messages"));
            seen.put(name, found.getOrDefault("answered", found));
        });
        return seen;
    }

    private Object completions() {
        return Map.of(
                "prompt",
                complete(McpSchema.PromptReference.builder("test_prompt_with_arguments").build(), "arg1", "par"),
                "template",
                complete(new McpSchema.ResourceReference("test://template/{id}/data"), "id", "12"));
    }

    private Object complete(McpSchema.CompleteReference reference, String name, String value) {
        var argument = new McpSchema.CompleteRequest.CompleteArgument(name, value);
        return member(
                client.completeCompletion(new McpSchema.CompleteRequest(reference, argument, null, null)).block(),
                "completion");
    }

    private Object progress() {
        callWithProgress("test_tool_with_progress").block();
        return progress.stream()
                .map(step -> Arrays.asList(step.progress(), step.total(), step.message()))
                .toList();
    }

    /** Abandons a call that runs, which is all that the SDK can do about it. */
    private Object cancelling() throws InterruptedException {
        String before = text("test_cancelled_waits");
        Disposable running = callWithProgress("test_wait").subscribe();
        for (int turn = 0; progress.isEmpty() && turn < 200; turn++) {
            Thread.sleep(20);
        }
        running.dispose();
        Thread.sleep(200);
        return Map.of("before", before, "after", text("test_cancelled_waits"));
    }

    private Object asking() {
        Map<String, Map<String, Object>> arguments = Map.of(
                "test_sampling", Map.of("prompt", "Say something"),
                "test_elicitation", Map.of("message", "Who are you?"));
        String rounds = "test_input_required_result_";
        Map<String, Object> seen = new LinkedHashMap<>();
        for (String name : List.of(
                "test_sampling",
                "test_elicitation",
                "test_elicitation_sep1034_defaults",
                "test_elicitation_sep1330_enums",
                rounds + "elicitation",
                rounds + "sampling",
                rounds + "list_roots",
                rounds + "request_state",
                rounds + "multiple_inputs",
                rounds + "multi_round",
                rounds + "capabilities")) {
            asked.clear();
            Map<String, Object> found = refused(() -> textOf(call(name, arguments.get(name)).block()));
            if (found.containsKey("answered")) {
                found.put("text", found.remove("answered"));
            }
            found.put("asked", taken(asked));
            seen.put(name, found);
        }
        return seen;
    }

    private Object logging() throws InterruptedException {
        Map<String, Object> seen = new LinkedHashMap<>();
        for (var level : List.of(
                McpSchema.LoggingLevel.DEBUG, McpSchema.LoggingLevel.INFO, McpSchema.LoggingLevel.ERROR)) {
            client.setLoggingLevel(level).block();
            logged.clear();
            call("test_logging_tool", null).block();
            Thread.sleep(100);
            seen.put(nameOf(level), taken(logged));
        }
        return seen;
    }

    private Object changes() throws InterruptedException {
        Object before = read(WATCHED);
        client.subscribeResource(new McpSchema.SubscribeRequest(WATCHED, null)).block();
        Thread.sleep(100);
        changed.clear();
        for (String what : List.of("tool", "prompt", "resource")) {
            call("test_trigger_" + what + "_change", null).block();
            Thread.sleep(100); // the SDK lists or reads again before it calls the consumer
        }
        Thread.sleep(200); // enough for one too many to be heard as well
        List<Object> heard = taken(changed);
        client.unsubscribeResource(new McpSchema.UnsubscribeRequest(WATCHED, null)).block();
        call("test_trigger_resource_change", null).block();
        Thread.sleep(200);
        List<Object> afterLeaving = taken(changed);
        List<String> late = client.listTools().block().tools().stream()
                .map(McpSchema.Tool::name)
                .filter(name -> name.contains("late"))
                .toList();
        List<Object> texts = Stream.of(before, read(WATCHED))
                .flatMap(contents -> ((Collection<?>) contents).stream())
                .map(each -> (Object) ((Map<?, ?>) each).get("text"))
                .toList();
        return Map.of("heard", heard, "after_leaving", afterLeaving, "late", late, "watched", texts);
    }

    private Object errors() {
        Map<String, Object> seen = new LinkedHashMap<>();
        seen.put("tool", refused(() -> plain(call("no_such_tool", null).block())));
        seen.put("argument", refused(() -> plain(call("test_sampling", null).block())));
        seen.put("prompt", refused(() -> client.getPrompt(
                        new McpSchema.GetPromptRequest("no_such_prompt", null, null)).block()));
        seen.put("resource", refused(() -> read("test://no-such-resource")));
        seen.put("method", refused(() -> tap.request("no/such/method").block(PATIENCE)));
        return seen;
    }
}
