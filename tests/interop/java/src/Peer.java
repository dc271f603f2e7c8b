import java.util.Arrays;
import java.util.Map;

/**
 * Servers and clients on the official Java SDK, for {@code tests/interop} and {@code bench}. All are in one program:
 *
 * <pre>
 * peer serve OFFER [http|sse|stateless]     a server that offers the content of offer.json
 * peer scenario REVISION KIND TARGET…       the client's side of the scenario
 * peer echo                                 an echo server over stdio
 * peer echo-http app|streams PORT           an echo server over HTTP, which always responds with event streams
 * peer call TARGET REVISION PYTHON          a client to measure
 * </pre>
 */
public final class Peer {
    interface Command {
        void run(String[] arguments) throws Exception;
    }

    private static final Map<String, Command> COMMANDS = Map.of(
            "serve", Offer::serve,
            "scenario", Scenario::play,
            "echo", Echo::serve,
            "echo-http", Echo::serveOverHttp,
            "call", Calls::measure);

    private Peer() {}

    public static void main(String[] arguments) {
        Command command = arguments.length == 0 ? null : COMMANDS.get(arguments[0]);
        if (command == null) {
            System.err.println("usage: peer serve|scenario|echo|echo-http|call ARGUMENT…");
            System.exit(2);
        }
        try {
            command.run(Arrays.copyOfRange(arguments, 1, arguments.length));
        } catch (Exception error) {
            error.printStackTrace();
            System.exit(1);
        }
        System.exit(0); // threads of the SDK and of the HTTP server may still run
    }
}
