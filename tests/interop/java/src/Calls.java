import io.modelcontextprotocol.client.McpAsyncClient;
import io.modelcontextprotocol.client.McpClient;
import io.modelcontextprotocol.spec.McpSchema;
import java.util.List;
import java.util.Map;
import java.util.Scanner;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** A client that measures calls. */
final class Calls {
    private static final String TEXT = "x".repeat(20);

    private final McpAsyncClient client;

    private Calls(McpAsyncClient client) {
        this.client = client;
    }

    /**
     * Prints {@code ready}, reads lines with the number of concurrent calls, the seconds and the least number of calls,
     * and prints the calls per second of each.
     */
    static void measure(String[] arguments) {
        String target = arguments[0], revision = arguments[1], python = arguments[2];
        List<String> server = target.startsWith("http") ? List.of(target) : List.of(python, target);
        McpAsyncClient client = McpClient.async(Transports.toServer(revision, server))
                .clientInfo(McpSchema.Implementation.builder("bench", "1").build())
                .build();
        String agreed = client.initialize().block().protocolVersion();
        if (!agreed.equals(revision)) {
            throw new IllegalStateException("expected " + revision + ", agreed on " + agreed);
        }
        Calls calls = new Calls(client);
        calls.rate(1, 0, 0);
        System.out.println("ready");
        for (Scanner lines = new Scanner(System.in); lines.hasNextLine(); ) {
            String[] turn = lines.nextLine().split(" ");
            int depth = Integer.parseInt(turn[0]);
            double seconds = Double.parseDouble(turn[1]);
            calls.rate(depth, seconds / 5, 0);
            System.out.println(calls.rate(depth, seconds, turn.length > 2 ? Integer.parseInt(turn[2]) : 0));
        }
        client.closeGracefully().block();
    }

    /**
     * Returns calls per second with {@code depth} concurrent calls.
     *
     * <p>All begin on the thread that receives responses, after one: over stdio, a call fails in the SDK if another
     * thread sends at the same time.
     */
    private double rate(int depth, double seconds, int least) {
        return call().flatMap(first -> rateNow(depth, seconds, (least + depth - 1) / depth)).block();
    }

    private Mono<Double> rateNow(int depth, double seconds, long least) {
        long start = System.nanoTime();
        return Flux.range(0, depth)
                .flatMap(each -> callRepeatedly(start, seconds, least), depth)
                .reduce(0L, Long::sum)
                .map(calls -> calls / secondsSince(start));
    }

    /** Returns how often one call after the other could be made. */
    private Mono<Long> callRepeatedly(long start, double seconds, long least) {
        long[] count = {0};
        return Mono.defer(this::call)
                .doOnNext(done -> count[0]++)
                .repeat(() -> secondsSince(start) < seconds || count[0] < least)
                .then(Mono.fromSupplier(() -> count[0]));
    }

    private Mono<McpSchema.CallToolResult> call() {
        return client.callTool(new McpSchema.CallToolRequest("echo", Map.of("text", TEXT), null))
                .doOnNext(Calls::check);
    }

    private static void check(McpSchema.CallToolResult result) {
        if (!(result.content().get(0) instanceof McpSchema.TextContent text) || !text.text().equals(TEXT)) {
            throw new IllegalStateException("the response is not an echo: " + result);
        }
    }

    private static double secondsSince(long start) {
        return (System.nanoTime() - start) / 1e9;
    }
}
