"""thriftpy2, which reads the IDL when it starts. It has no THeader."""

import os

import thriftpy2
from thriftpy2.protocol import TBinaryProtocolFactory, TCompactProtocolFactory
from thriftpy2.rpc import make_client
from thriftpy2.server import TThreadedServer
from thriftpy2.thrift import TApplicationException as ApplicationException, TProcessor
from thriftpy2.transport import TBufferedTransportFactory, TFramedTransportFactory, TServerSocket

types = thriftpy2.load(os.path.join(os.path.dirname(__file__), "echo.thrift"), module_name="echo_thrift")
TRANSPORTS = ["framed", "buffered"]


def factories(transport, protocol):
    transports = {"framed": TFramedTransportFactory, "buffered": TBufferedTransportFactory}
    protocols = {"binary": TBinaryProtocolFactory, "compact": TCompactProtocolFactory}
    return transports[transport](), protocols[protocol]()


def received(e):
    """This library reads a set as a list."""
    e.a_set = set(e.a_set)
    e.by_color = {color: set(names) for color, names in e.by_color.items()}
    for child in e.children or []:
        received(child)
    return e


def serve(handler, port, transport, protocol, ready):
    socket = TServerSocket("127.0.0.1", port, client_timeout=None)
    socket.listen()
    ready(socket.sock.getsockname()[1])
    socket.listen = lambda: None
    wrap, factory = factories(transport, protocol)
    TThreadedServer(TProcessor(types.Peer, handler), socket, wrap, factory, daemon=True).serve()


def client(host, port, transport, protocol):
    wrap, factory = factories(transport, protocol)
    return make_client(types.Beyond, host, port, proto_factory=factory, trans_factory=wrap, timeout=30000)
