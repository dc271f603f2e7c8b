import io.modelcontextprotocol.client.transport.HttpClientSseClientTransport;
import io.modelcontextprotocol.client.transport.HttpClientStreamableHttpTransport;
import io.modelcontextprotocol.client.transport.ServerParameters;
import io.modelcontextprotocol.client.transport.StdioClientTransport;
import io.modelcontextprotocol.json.McpJsonDefaults;
import io.modelcontextprotocol.server.McpAsyncServer;
import io.modelcontextprotocol.server.McpServer;
import io.modelcontextprotocol.server.McpStatelessAsyncServer;
import io.modelcontextprotocol.server.transport.HttpServletSseServerTransportProvider;
import io.modelcontextprotocol.server.transport.HttpServletStatelessServerTransport;
import io.modelcontextprotocol.server.transport.HttpServletStreamableServerTransportProvider;
import io.modelcontextprotocol.server.transport.StdioServerTransportProvider;
import io.modelcontextprotocol.spec.McpClientTransport;
import io.modelcontextprotocol.spec.McpSchema;
import jakarta.servlet.http.HttpServlet;
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;

import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.function.Function;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.apache.catalina.LifecycleException;
import org.apache.catalina.Wrapper;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.startup.Tomcat;

/** The ways in which the servers and clients here are connected. */
final class Transports {
    private static final int MAX_REQUEST_BYTES = 64 << 20;
    private static final Logger TOMCAT_LOG = Logger.getLogger("org.apache");

    private Transports() {}

    /** Serves one client over stdio until its input ends. */
    static void serveOverStdio(Function<McpServer.AsyncSpecification<?>, McpAsyncServer> configure) throws Exception {
        EndingInput input = new EndingInput(System.in);
        configure.apply(McpServer.async(
                new StdioServerTransportProvider(McpJsonDefaults.getMapper(), input, System.out, MAX_REQUEST_BYTES)));
        input.ended.await();
    }

    /** Serves over HTTP on a port, a free one for 0, and returns the port. */
    static int serveOverHttp(Function<McpServer.AsyncSpecification<?>, McpAsyncServer> configure, int port)
            throws LifecycleException {
        HttpServletStreamableServerTransportProvider servlet = HttpServletStreamableServerTransportProvider.builder()
                .maxRequestSize(MAX_REQUEST_BYTES)
                .build();
        configure.apply(McpServer.async(servlet));
        return listen(servlet, port, "/mcp");
    }

    /** Serves over HTTP with SSE on a free port, and returns the port. */
    static int serveOverSse(Function<McpServer.AsyncSpecification<?>, McpAsyncServer> configure)
            throws LifecycleException {
        HttpServletSseServerTransportProvider servlet = HttpServletSseServerTransportProvider.builder()
                .messageEndpoint("/messages")
                .build();
        configure.apply(McpServer.async(servlet));
        return listen(servlet, 0, "/*");
    }

    /** Serves over HTTP without sessions on a free port, and returns the port. */
    static int serveWithoutSessions(
            Function<McpServer.StatelessAsyncSpecification, McpStatelessAsyncServer> configure)
            throws LifecycleException {
        HttpServletStatelessServerTransport servlet =
                HttpServletStatelessServerTransport.builder().build();
        configure.apply(McpServer.async(servlet));
        return listen(servlet, 0, "/mcp");
    }

    private static int listen(HttpServlet servlet, int port, String paths) throws LifecycleException {
        TOMCAT_LOG.setLevel(Level.WARNING);
        Tomcat tomcat = new Tomcat();
        Connector connector = new Connector();
        connector.setPort(port);
        connector.setProperty("address", "127.0.0.1");
        tomcat.setConnector(connector);
        var context = tomcat.addContext("", null);
        Wrapper wrapper = Tomcat.addServlet(context, "mcp", servlet);
        wrapper.setAsyncSupported(true);
        wrapper.addMapping(paths);
        tomcat.start();
        return connector.getLocalPort();
    }

    /** Returns the transport to a server: the command that starts it, or its URL. */
    static McpClientTransport toServer(String revision, List<String> target) {
        List<String> revisions = List.of(revision);
        if (!target.get(0).startsWith("http")) {
            ServerParameters parameters = ServerParameters.builder(target.get(0))
                    .args(target.subList(1, target.size()))
                    .build();
            return new StdioClientTransport(parameters, McpJsonDefaults.getMapper()) {
                @Override
                public List<String> protocolVersions() {
                    return revisions;
                }
            };
        }
        URI url = URI.create(target.get(0));
        String base = url.resolve("/").toString();
        if (url.getPath().equals("/sse")) {
            return HttpClientSseClientTransport.builder(base).build();
        }
        return HttpClientStreamableHttpTransport.builder(base)
                .endpoint(url.getPath())
                .supportedProtocolVersions(revisions)
                .build();
    }

    /** Input that tells its end. */
    private static final class EndingInput extends FilterInputStream {
        private final CountDownLatch ended = new CountDownLatch(1);

        private EndingInput(InputStream input) {
            super(input);
        }

        @Override
        public int read(byte[] buffer, int offset, int length) throws IOException {
            int count = super.read(buffer, offset, length);
            if (count < 0) {
                ended.countDown();
            }
            return count;
        }
    }
}
