"""Apache Thrift for Python."""

from echo import Beyond, Peer, ttypes as types
from thrift.protocol.TBinaryProtocol import TBinaryProtocolFactory
from thrift.protocol.TCompactProtocol import TCompactProtocolFactory
from thrift.protocol.THeaderProtocol import THeaderProtocolFactory
from thrift.server.TServer import TThreadedServer
from thrift.Thrift import TApplicationException as ApplicationException
from thrift.transport.THeaderTransport import THeaderClientType, THeaderSubprotocolID
from thrift.transport.TSocket import TServerSocket, TSocket
from thrift.transport.TTransport import TBufferedTransportFactory, TFramedTransportFactory

TRANSPORTS = ["framed", "buffered", "header"]


def factories(transport, protocol):
    if transport == "header":
        ids = {"binary": THeaderSubprotocolID.BINARY, "compact": THeaderSubprotocolID.COMPACT}
        # No wrapper: THeaderProtocol makes its own transport, around the socket's buffer.
        header = THeaderProtocolFactory(allowed_client_types=(THeaderClientType.HEADERS,), default_protocol=ids[protocol])
        return TBufferedTransportFactory(), header
    transports = {"framed": TFramedTransportFactory, "buffered": TBufferedTransportFactory}
    protocols = {"binary": TBinaryProtocolFactory, "compact": TCompactProtocolFactory}
    return transports[transport](), protocols[protocol]()


def received(e):
    """An Everything as it was sent."""
    return e


def serve(handler, port, transport, protocol, ready):
    socket = TServerSocket("127.0.0.1", port)
    socket.listen()
    ready(socket.handle.getsockname()[1])
    socket.listen = lambda: None
    wrap, factory = factories(transport, protocol)
    server = TThreadedServer(Peer.Processor(handler), socket, wrap, factory, daemon=True)
    server.serve()


def client(host, port, transport, protocol):
    socket = TSocket(host, port)
    socket.setTimeout(30000)
    wrap, factory = factories(transport, protocol)
    wrapped = wrap.getTransport(socket)
    wrapped.open()
    return Beyond.Client(factory.getProtocol(wrapped))
