import echo.Beyond;
import echo.Peer;
import java.net.InetSocketAddress;
import java.util.HashMap;
import java.util.Map;
import org.apache.thrift.TException;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.protocol.TCompactProtocol;
import org.apache.thrift.protocol.TProtocolFactory;
import org.apache.thrift.server.TThreadPoolServer;
import org.apache.thrift.transport.TServerSocket;
import org.apache.thrift.transport.TSocket;
import org.apache.thrift.transport.TTransport;
import org.apache.thrift.transport.TTransportFactory;
import org.apache.thrift.transport.layered.TFramedTransport;

/** Java as a peer. See ../README.md. */
final class Main {
  private Main() {}

  /** A socket has its own buffers: buffered is a socket without more. */
  private static TTransportFactory transports(String name) {
    switch (name) {
      case "framed": return new TFramedTransport.Factory();
      case "buffered": return new TTransportFactory();
      default: throw new IllegalArgumentException("no transport " + name);
    }
  }

  private static TProtocolFactory protocols(String name) {
    return name.equals("compact") ? new TCompactProtocol.Factory() : new TBinaryProtocol.Factory();
  }

  public static void main(String[] args) throws Exception {
    Map<String, String> flags = new HashMap<>();
    for (int i = 1; i + 1 < args.length; i += 2) flags.put(args[i], args[i + 1]);
    TTransportFactory transports = transports(flags.getOrDefault("--transport", "framed"));
    TProtocolFactory protocols = protocols(flags.getOrDefault("--protocol", "binary"));
    if (args[0].equals("serve")) {
      serve(Integer.parseInt(flags.getOrDefault("--port", "0")), transports, protocols);
    } else {
      System.exit(call(flags, transports, protocols));
    }
  }

  private static void serve(int port, TTransportFactory transports, TProtocolFactory protocols) throws TException {
    TServerSocket socket = new TServerSocket(new InetSocketAddress("127.0.0.1", port));
    System.out.println("READY 127.0.0.1:" + socket.getServerSocket().getLocalPort());
    TThreadPoolServer.Args args = new TThreadPoolServer.Args(socket).processor(new Peer.Processor<>(new Handler()))
        .transportFactory(transports).protocolFactory(protocols);
    new TThreadPoolServer(args).serve();
  }

  private static int call(Map<String, String> flags, TTransportFactory transports, TProtocolFactory protocols)
      throws Exception {
    String[] address = flags.get("--address").split(":");
    TTransport transport = transports.getTransport(new TSocket(address[0], Integer.parseInt(address[1]), 30000));
    transport.open();
    Checks checks = new Checks(new Beyond.Client(protocols.getProtocol(transport)));
    checks.echo();
    if (!"echo".equals(flags.get("--service"))) checks.peer();
    return checks.failed > 0 ? 1 : 0;
  }
}
