import io.modelcontextprotocol.json.TypeRef;
import io.modelcontextprotocol.spec.McpClientTransport;
import io.modelcontextprotocol.spec.McpError;
import io.modelcontextprotocol.spec.McpSchema.JSONRPCMessage;
import io.modelcontextprotocol.spec.McpSchema.JSONRPCRequest;
import io.modelcontextprotocol.spec.McpSchema.JSONRPCResponse;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import java.util.function.Function;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/** A transport that can also make requests for which the SDK's client has no method. */
final class Tap implements McpClientTransport {
    private final McpClientTransport transport;
    private final Map<Object, Sinks.One<Object>> pending = new ConcurrentHashMap<>();

    Tap(McpClientTransport transport) {
        this.transport = transport;
    }

    Mono<Object> request(String method) {
        String id = "tap-" + method;
        Sinks.One<Object> result = Sinks.one();
        pending.put(id, result);
        return transport.sendMessage(new JSONRPCRequest(method, id, null)).then(result.asMono());
    }

    private boolean isForUs(JSONRPCMessage message) {
        if (!(message instanceof JSONRPCResponse response) || !pending.containsKey(response.id())) {
            return false;
        }
        Sinks.One<Object> result = pending.remove(response.id());
        if (response.error() != null) {
            result.tryEmitError(new McpError(response.error()));
        } else {
            result.tryEmitValue(response.result());
        }
        return true;
    }

    @Override
    public Mono<Void> connect(Function<Mono<JSONRPCMessage>, Mono<JSONRPCMessage>> handler) {
        return transport.connect(received -> handler.apply(received.filter(message -> !isForUs(message))));
    }

    @Override
    public Mono<Void> sendMessage(JSONRPCMessage message) {
        return transport.sendMessage(message);
    }

    @Override
    public Mono<Void> closeGracefully() {
        return transport.closeGracefully();
    }

    @Override
    public <T> T unmarshalFrom(Object data, TypeRef<T> type) {
        return transport.unmarshalFrom(data, type);
    }

    @Override
    public List<String> protocolVersions() {
        return transport.protocolVersions();
    }

    @Override
    public void setExceptionHandler(Consumer<Throwable> handler) {
        transport.setExceptionHandler(handler);
    }
}
