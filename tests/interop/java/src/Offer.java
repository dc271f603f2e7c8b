import io.modelcontextprotocol.json.McpJsonDefaults;
import io.modelcontextprotocol.json.McpJsonMapper;
import io.modelcontextprotocol.json.TypeRef;
import io.modelcontextprotocol.server.McpAsyncServer;
import io.modelcontextprotocol.server.McpAsyncServerExchange;
import io.modelcontextprotocol.server.McpServer;
import io.modelcontextprotocol.server.McpServerFeatures.AsyncCompletionSpecification;
import io.modelcontextprotocol.server.McpServerFeatures.AsyncPromptSpecification;
import io.modelcontextprotocol.server.McpServerFeatures.AsyncResourceSpecification;
import io.modelcontextprotocol.server.McpServerFeatures.AsyncResourceTemplateSpecification;
import io.modelcontextprotocol.server.McpServerFeatures.AsyncToolSpecification;
import io.modelcontextprotocol.server.McpStatelessAsyncServer;
import io.modelcontextprotocol.server.McpStatelessServerFeatures;
import io.modelcontextprotocol.spec.McpError;
import io.modelcontextprotocol.spec.McpSchema;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** A server with the content of {@code offer.json}, and its state, which all sessions share. */
final class Offer {
    private static final McpJsonMapper JSON = McpJsonDefaults.getMapper();
    private static final String WATCHED = "test://watched";

    /** The content of the file. */
    record Content(
            McpSchema.Implementation info,
            String instructions,
            int page,
            List<McpSchema.Tool> tools,
            Map<String, McpSchema.CallToolResult> results,
            Map<String, List<Map<String, Question>>> questions,
            List<McpSchema.Resource> resources,
            Map<String, List<McpSchema.ResourceContents>> contents,
            List<McpSchema.ResourceTemplate> templates,
            List<McpSchema.Prompt> prompts,
            Map<String, List<McpSchema.PromptMessage>> messages,
            List<String> styles,
            List<McpSchema.LoggingLevel> levels) {}

    /** A request for input of the client. */
    record Question(String method, Map<String, Object> params) {}

    private final Content content;
    private final AtomicInteger cancelled = new AtomicInteger();
    private final AtomicInteger rootsChanges = new AtomicInteger();
    private final AtomicInteger watched = new AtomicInteger();
    private McpAsyncServer server;

    private Offer(Content content) {
        this.content = content;
    }

    static void serve(String[] arguments) throws Exception {
        Offer offer = new Offer(JSON.readValue(Files.readAllBytes(Path.of(arguments[0])), Content.class));
        if (arguments.length == 1) {
            Transports.serveOverStdio(offer::configure);
        } else if (arguments[1].equals("sse")) {
            serveUntilInputEnds(Transports.serveOverSse(offer::configure), "/sse");
        } else if (arguments[1].equals("stateless")) {
            serveUntilInputEnds(Transports.serveWithoutSessions(offer::configureWithoutSessions), "/mcp");
        } else {
            serveUntilInputEnds(Transports.serveOverHttp(offer::configure, 0), "/mcp");
        }
    }

    private static void serveUntilInputEnds(int port, String path) throws IOException {
        System.out.println("http://127.0.0.1:" + port + path);
        System.in.readAllBytes();
    }

    private McpAsyncServer configure(McpServer.AsyncSpecification<?> specification) {
        server = specification
                .serverInfo(content.info)
                .instructions(content.instructions)
                .capabilities(McpSchema.ServerCapabilities.builder()
                        .completions()
                        .logging()
                        .prompts(true)
                        .resources(true, true)
                        .tools(true)
                        .build())
                .tools(content.tools.stream().map(tool -> new AsyncToolSpecification(tool, this::call)).toList())
                .resources(content.resources.stream()
                        .map(resource -> new AsyncResourceSpecification(resource, this::read))
                        .toList())
                .resourceTemplates(content.templates.stream()
                        .map(template -> new AsyncResourceTemplateSpecification(template, this::read))
                        .toList())
                .prompts(content.prompts.stream()
                        .map(prompt -> new AsyncPromptSpecification(prompt, this::prompt))
                        .toList())
                .completions(
                        new AsyncCompletionSpecification(
                                McpSchema.PromptReference.builder("greet").build(), this::completeStyle),
                        new AsyncCompletionSpecification(
                                new McpSchema.ResourceReference("test://item/{id}"), this::completeItem))
                .rootsChangeHandler((exchange, roots) -> Mono.fromRunnable(rootsChanges::incrementAndGet))
                .build();
        return server;
    }

    /** Offers what needs no messages to the client but the response. */
    private McpStatelessAsyncServer configureWithoutSessions(McpServer.StatelessAsyncSpecification specification) {
        var plain = content.tools.stream()
                .filter(tool -> content.results.containsKey(tool.name()) || tool.name().equals("echo"))
                .map(tool -> new McpStatelessServerFeatures.AsyncToolSpecification(
                        tool, (context, request) -> call(null, request)))
                .toList();
        var fixed = content.resources.stream()
                .filter(resource -> content.contents.containsKey(resource.uri()))
                .map(resource -> new McpStatelessServerFeatures.AsyncResourceSpecification(
                        resource, (context, request) -> read(null, request)))
                .toList();
        return specification
                .serverInfo(content.info)
                .instructions(content.instructions)
                .capabilities(McpSchema.ServerCapabilities.builder()
                        .resources(false, false)
                        .tools(false)
                        .build())
                .tools(plain)
                .resources(fixed)
                .build();
    }

    // Tools

    private Mono<McpSchema.CallToolResult> call(McpAsyncServerExchange exchange, McpSchema.CallToolRequest request) {
        String name = request.name();
        if (content.results.containsKey(name)) {
            return Mono.just(content.results.get(name));
        }
        if (content.questions.containsKey(name)) {
            return ask(exchange, name).map(Offer::value);
        }
        switch (name) {
            case "echo":
                return Mono.just(value(request.arguments().get("value")));
            case "progress":
                return Flux.range(1, 5)
                        .concatMap(done -> progress(exchange, request, done, 5, "step " + done))
                        .then(Mono.just(value("done")));
            case "wait":
                return progress(exchange, request, 0, 1, "waiting")
                        .then(Mono.<McpSchema.CallToolResult>never())
                        .doOnCancel(cancelled::incrementAndGet);
            case "cancelled":
                return Mono.just(value(cancelled.get()));
            case "log":
                return Flux.fromIterable(content.levels)
                        .concatMap(level -> exchange.loggingNotification(log(level)))
                        .then(Mono.just(value("logged")));
            case "change":
                return change((String) request.arguments().get("what")).then(Mono.just(value("changed")));
            case "roots_changes":
                return Mono.just(value(rootsChanges.get()));
            case "broken":
                Map<String, Object> data = new LinkedHashMap<>();
                data.put("short", true);
                data.put("stout", java.util.Arrays.asList(1, null));
                return Mono.error(McpError.builder(-31999).message("I'm a teapot").data(data).build());
            case "crash":
                Runtime.getRuntime().halt(3);
                return Mono.never();
            default:
                return Mono.error(new IllegalArgumentException("no such tool: " + name));
        }
    }

    private static McpSchema.CallToolResult value(Object value) {
        return McpSchema.CallToolResult.builder(List.of())
                .structuredContent(Collections.singletonMap("value", value))
                .build();
    }

    private static McpSchema.LoggingMessageNotification log(McpSchema.LoggingLevel level) {
        String name = level.name().toLowerCase(java.util.Locale.ROOT);
        return McpSchema.LoggingMessageNotification.builder(level, "{\"level\":\"" + name + "\"}") // it has only texts
                .logger("offer")
                .build();
    }

    private static Mono<Void> progress(
            McpAsyncServerExchange exchange, McpSchema.CallToolRequest request, double done, double total, String text) {
        if (request.progressToken() == null) {
            return Mono.empty();
        }
        return exchange.progressNotification(
                new McpSchema.ProgressNotification(request.progressToken(), done, total, text, null));
    }

    private Mono<Void> change(String what) {
        switch (what) {
            case "tools":
                return server.notifyToolsListChanged();
            case "prompts":
                return server.notifyPromptsListChanged();
            case "resources":
                return server.notifyResourcesListChanged();
            default:
                if (what.equals(WATCHED)) {
                    watched.incrementAndGet();
                }
                return server.notifyResourcesUpdated(new McpSchema.ResourcesUpdatedNotification(what, null));
        }
    }

    // Requests for input

    /** Asks all questions in turn, and returns the answers by key. */
    private Mono<Map<String, Object>> ask(McpAsyncServerExchange exchange, String name) {
        Map<String, Object> answers = new LinkedHashMap<>();
        return Flux.fromIterable(content.questions.get(name))
                .concatMapIterable(Map::entrySet)
                .concatMap(entry -> answer(exchange, entry.getValue())
                        .doOnNext(answer -> answers.put(entry.getKey(), answer)))
                .then(Mono.just(answers));
    }

    private static Mono<? extends Object> answer(McpAsyncServerExchange exchange, Question question) {
        Map<String, Object> params = question.params;
        switch (question.method) {
            case "sampling/createMessage":
                return exchange.createMessage(JSON.convertValue(params, McpSchema.CreateMessageRequest.class));
            case "roots/list":
                return exchange.listRoots();
            default:
                if (!params.get("mode").equals("url")) {
                    return exchange.createElicitation(JSON.convertValue(params, McpSchema.ElicitFormRequest.class));
                }
                Map<String, Object> named = new LinkedHashMap<>(params);
                named.put("elicitationId", "visit-1");
                return exchange.createElicitation(JSON.convertValue(named, McpSchema.ElicitUrlRequest.class));
        }
    }

    // Resources, prompts, completions

    private Mono<McpSchema.ReadResourceResult> read(
            McpAsyncServerExchange exchange, McpSchema.ReadResourceRequest request) {
        String uri = request.uri();
        if (uri.startsWith("test://item/")) {
            return Mono.just(one(uri, "text/plain", "item " + uri.substring("test://item/".length())));
        }
        switch (uri) {
            case WATCHED:
                return Mono.just(one(uri, "text/plain", "changed " + watched.get() + " time(s)"));
            case "test://asked":
                return ask(exchange, "roots").map(answers -> {
                    McpSchema.ListRootsResult found = (McpSchema.ListRootsResult) answers.get("folders");
                    return one(uri, null, found.roots().get(0).uri());
                });
            default:
                return Mono.just(new McpSchema.ReadResourceResult(content.contents.get(uri), null));
        }
    }

    private static McpSchema.ReadResourceResult one(String uri, String mimeType, String text) {
        return new McpSchema.ReadResourceResult(
                List.of(new McpSchema.TextResourceContents(uri, mimeType, text, null)), null);
    }

    private Mono<McpSchema.GetPromptResult> prompt(
            McpAsyncServerExchange exchange, McpSchema.GetPromptRequest request) {
        switch (request.name()) {
            case "greet":
                Map<String, Object> arguments = request.arguments();
                Object style = arguments.getOrDefault("style", "plainly");
                return Mono.just(said("Greets somebody.", "Hello " + arguments.get("name") + ", " + style + "."));
            case "asked":
                return ask(exchange, "rounds").map(answers -> {
                    Object color = ((McpSchema.ElicitResult) answers.get("second")).content().get("color");
                    return said(null, "I like " + color + ".");
                });
            default:
                return Mono.just(new McpSchema.GetPromptResult(null, content.messages.get(request.name()), null));
        }
    }

    private static McpSchema.GetPromptResult said(String description, String text) {
        McpSchema.Content words = McpSchema.TextContent.builder(text).build();
        return new McpSchema.GetPromptResult(
                description, List.of(new McpSchema.PromptMessage(McpSchema.Role.USER, words)), null);
    }

    private Mono<McpSchema.CompleteResult> completeStyle(
            McpAsyncServerExchange exchange, McpSchema.CompleteRequest request) {
        List<String> found = content.styles.stream()
                .filter(style -> style.startsWith(request.argument().value()))
                .toList();
        return completed(found, found.size(), false);
    }

    private Mono<McpSchema.CompleteResult> completeItem(
            McpAsyncServerExchange exchange, McpSchema.CompleteRequest request) {
        String prefix = request.context() == null ? "" : request.context().arguments().get("prefix");
        String start = prefix + request.argument().value();
        return completed(IntStream.range(0, 100).mapToObj(n -> start + n).toList(), 150, true);
    }

    private static Mono<McpSchema.CompleteResult> completed(List<String> values, int total, boolean hasMore) {
        var completion = new McpSchema.CompleteResult.CompleteCompletion(values, total, hasMore);
        return Mono.just(new McpSchema.CompleteResult(completion, null));
    }
}
