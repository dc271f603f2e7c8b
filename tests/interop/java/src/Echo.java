import io.modelcontextprotocol.server.McpAsyncServer;
import io.modelcontextprotocol.server.McpAsyncServerExchange;
import io.modelcontextprotocol.server.McpServer;
import io.modelcontextprotocol.server.McpServerFeatures.AsyncToolSpecification;
import io.modelcontextprotocol.spec.McpSchema;
import java.util.Map;
import java.util.List;
import java.util.stream.Stream;
import reactor.core.publisher.Mono;

/** An echo server on the SDK's asynchronous API, whose tools do not check their arguments. */
final class Echo {
    private Echo() {}

    static void serve(String[] arguments) throws Exception {
        Transports.serveOverStdio(Echo::configure);
    }

    static void serveOverHttp(String[] arguments) throws Exception {
        Transports.serveOverHttp(Echo::configure, Integer.parseInt(arguments[1]));
        Thread.currentThread().join();
    }

    private static McpAsyncServer configure(McpServer.AsyncSpecification<?> specification) {
        return specification
                .serverInfo("echo", "1")
                .capabilities(McpSchema.ServerCapabilities.builder().tools(false).build())
                .validateToolInputs(false)
                .tools(Stream.of("echo", "large", "wait", "report").map(Echo::tool).toList())
                .build();
    }

    private static AsyncToolSpecification tool(String name) {
        return new AsyncToolSpecification(
                McpSchema.Tool.builder(name, Map.of("type", "object")).build(), Echo::call);
    }

    private static Mono<McpSchema.CallToolResult> call(
            McpAsyncServerExchange exchange, McpSchema.CallToolRequest request) {
        switch (request.name()) {
            case "wait":
                return Mono.never();
            case "large":
                return Mono.just(text("x".repeat((Integer) request.arguments().get("size"))));
            case "report":
                var progress = new McpSchema.ProgressNotification(request.progressToken(), 1.0, null, null, null);
                return exchange.progressNotification(progress).then(Mono.fromSupplier(() -> echo(request)));
            default:
                return Mono.just(echo(request));
        }
    }

    private static McpSchema.CallToolResult echo(McpSchema.CallToolRequest request) {
        return text((String) request.arguments().get("text"));
    }

    private static McpSchema.CallToolResult text(String text) {
        return McpSchema.CallToolResult.builder(List.of(McpSchema.TextContent.builder(text).build())).build();
    }
}
