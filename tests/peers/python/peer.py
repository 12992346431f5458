"""An Apache Thrift peer: the service Echo as a server, and a client that calls all of it and compares each reply.

Values are read and written through the library's protocols by their own type codes, so that no generated code is needed.
Flags and output are described in crates/testkit/src/apache.rs.
"""

import argparse
import json
import sys
import threading
import time

from thrift.protocol.TBinaryProtocol import TBinaryProtocolFactory
from thrift.protocol.TCompactProtocol import TCompactProtocolFactory
from thrift.server.TServer import TThreadedServer
from thrift.Thrift import TApplicationException, TMessageType, TProcessor, TType
from thrift.transport.TSocket import TServerSocket, TSocket
from thrift.transport.TTransport import TFramedTransport, TFramedTransportFactory

PROTOCOLS = {"binary": TBinaryProtocolFactory, "compact": TCompactProtocolFactory}

# ---- values ---------------------------------------------------------------------------------------------------------
# A struct is a dict from field id to (type, value); a list or set is (element type, items); a map is (key type, value
# type, pairs). Strings are bytes.

SCALARS = {
    TType.BOOL: ("readBool", "writeBool"),
    TType.BYTE: ("readByte", "writeByte"),
    TType.I16: ("readI16", "writeI16"),
    TType.I32: ("readI32", "writeI32"),
    TType.I64: ("readI64", "writeI64"),
    TType.DOUBLE: ("readDouble", "writeDouble"),
    TType.STRING: ("readBinary", "writeBinary"),
}


def read(p, ttype):
    if ttype in SCALARS:
        return getattr(p, SCALARS[ttype][0])()
    if ttype == TType.STRUCT:
        return read_struct(p)
    if ttype == TType.LIST:
        of, n = p.readListBegin()
        items = [read(p, of) for _ in range(n)]
        p.readListEnd()
        return of, items
    if ttype == TType.SET:
        of, n = p.readSetBegin()
        items = [read(p, of) for _ in range(n)]
        p.readSetEnd()
        return of, items
    if ttype == TType.MAP:
        keys, values, n = p.readMapBegin()
        pairs = [(read(p, keys), read(p, values)) for _ in range(n)]
        p.readMapEnd()
        return keys, values, pairs
    raise TApplicationException(TApplicationException.PROTOCOL_ERROR, f"type {ttype}")


def read_struct(p):
    fields = {}
    p.readStructBegin()
    while True:
        _, ttype, number = p.readFieldBegin()
        if ttype == TType.STOP:
            break
        fields[number] = (ttype, read(p, ttype))
        p.readFieldEnd()
    p.readStructEnd()
    return fields


def write(p, ttype, value):
    if ttype in SCALARS:
        getattr(p, SCALARS[ttype][1])(value)
    elif ttype == TType.STRUCT:
        write_struct(p, value)
    elif ttype == TType.LIST:
        p.writeListBegin(value[0], len(value[1]))
        for item in value[1]:
            write(p, value[0], item)
        p.writeListEnd()
    elif ttype == TType.SET:
        p.writeSetBegin(value[0], len(value[1]))
        for item in value[1]:
            write(p, value[0], item)
        p.writeSetEnd()
    else:
        keys, values, pairs = value
        p.writeMapBegin(keys, values, len(pairs))
        for k, v in pairs:
            write(p, keys, k)
            write(p, values, v)
        p.writeMapEnd()


def write_struct(p, fields):
    p.writeStructBegin("")
    for number, (ttype, value) in fields.items():
        p.writeFieldBegin("", ttype, number)
        write(p, ttype, value)
        p.writeFieldEnd()
    p.writeFieldStop()
    p.writeStructEnd()


def canonical(ttype, value):
    """The value in a form in which the order of a set or map does not count, nor the element types of an empty one."""
    if ttype == TType.STRUCT:
        return {n: canonical(*field) for n, field in value.items()}
    if ttype == TType.LIST:
        return [canonical(value[0], item) for item in value[1]]
    if ttype == TType.SET:
        return sorted(repr(canonical(value[0], item)) for item in value[1])
    if ttype == TType.MAP:
        return sorted(repr((canonical(value[0], k), canonical(value[1], v))) for k, v in value[2])
    return repr(value)


def string(text):
    return TType.STRING, text.encode()


def everything(children=True):
    """A struct Everything with something in every field, and the ends of the ranges of the numbers."""

    def point(x, y, label=None):
        fields = {1: (TType.I32, x), 2: (TType.I32, y)}
        if label is not None:
            fields[3] = string(label)
        return fields

    fields = {
        1: (TType.BOOL, children),
        2: (TType.BYTE, -128),
        3: (TType.I16, -32768),
        4: (TType.I32, -(2**31)),
        5: (TType.I64, -(2**63)),
        6: (TType.DOUBLE, -0.1),
        7: string("snowman \u2603, clef \U0001d11e, nul \0"),
        8: (TType.STRING, bytes(range(256))),
        9: (TType.I32, 100),
        10: (TType.LIST, (TType.STRING, [b"a", b""])),
        11: (TType.SET, (TType.I32, [3, -1, 2**31 - 1])),
        12: (TType.MAP, (TType.STRING, TType.I64, [(b"x", 2**63 - 1), (b"y", 0)])),
        13: (TType.STRUCT, point(1, -2, "p")),
        14: (TType.STRUCT, {2: (TType.LIST, (TType.STRUCT, [point(0, 0), point(3, 4)]))}),
        15: (TType.I64, 1600000000000000),
        16: string("here"),
        17: string("set"),
        18: (TType.I32, -42),
        19: (TType.I64, 0),
        20: (TType.STRUCT, point(7, 8)),
        21: (TType.LIST, (TType.BOOL, [True, False, True])),
        22: (TType.LIST, (TType.DOUBLE, [0.0, 1.5e300])),
        23: (TType.LIST, (TType.STRING, [b"\0\xff", b""])),
        24: (TType.LIST, (TType.LIST, [(TType.I32, [1, 2]), (TType.I32, []), (TType.I32, list(range(20)))])),
        25: (
            TType.MAP,
            (
                TType.I32,
                TType.MAP,
                [(1, (TType.STRING, TType.LIST, [(b"k", (TType.STRUCT, [point(1, 1), point(2, 2, "q")]))]))],
            ),
        ),
        26: (TType.MAP, (TType.I32, TType.SET, [(1, (TType.STRING, [b"leaf", b"grass"]))])),
        27: (TType.LIST, (TType.STRUCT, [{1: (TType.STRUCT, point(9, 9))}, {3: (TType.DOUBLE, 2.5)}, {4: string("t")}])),
        1000: string("far"),
    }
    if children:
        fields[28] = (TType.LIST, (TType.STRUCT, [everything(children=False)]))
    return fields


# ---- server ---------------------------------------------------------------------------------------------------------


class Echo(TProcessor):
    def __init__(self, name):
        self.name = name
        self.lock = threading.Lock()

    def say(self, event, method, arg):
        line = json.dumps({"event": event, "server": self.name, "method": method, "arg": arg})
        with self.lock:
            print(line, flush=True)

    def process(self, iprot, oprot):
        method, kind, seqid = iprot.readMessageBegin()
        args = read_struct(iprot)
        iprot.readMessageEnd()
        first = args.get(1, (None, None))
        arg = first[1].decode("utf-8", "replace") if first[0] == TType.STRING else None
        self.say("arrival", method, arg)
        result = self.result(method, first, args)
        if kind != TMessageType.ONEWAY:
            if result is None:
                oprot.writeMessageBegin(method, TMessageType.EXCEPTION, seqid)
                TApplicationException(TApplicationException.UNKNOWN_METHOD, f"no method {method}").write(oprot)
            else:
                oprot.writeMessageBegin(method, TMessageType.REPLY, seqid)
                write_struct(oprot, result)
            oprot.writeMessageEnd()
            oprot.trans.flush()
        self.say("done", method, arg)

    def result(self, method, first, args):
        if method in ("echo", "blob", "everything"):
            if first == string("whoami"):
                return {0: string(self.name)}
            return {0: first}
        if method == "slow":
            time.sleep(args[2][1] / 1000)
            return {0: first}
        if method == "fail":
            if not first[1]:
                return {0: first}
            return {1: (TType.STRUCT, {1: first, 2: (TType.I32, 418)})}
        if method == "fire":
            return {}
        return None


def serve(args):
    socket = TServerSocket("127.0.0.1", args.port)
    socket.listen()
    port = socket.handle.getsockname()[1]
    socket.listen = lambda: None
    server = TThreadedServer(Echo(args.name), socket, TFramedTransportFactory(), PROTOCOLS[args.protocol](), daemon=True)
    print(f"READY 127.0.0.1:{port}", flush=True)
    server.serve()


# ---- client ---------------------------------------------------------------------------------------------------------


class Client:
    def __init__(self, dest, protocol):
        host, port = dest.split(":")
        socket = TSocket(host, int(port))
        socket.setTimeout(30000)
        self.transport = TFramedTransport(socket)
        self.transport.open()
        self.protocol = PROTOCOLS[protocol]().getProtocol(self.transport)
        self.seqid = 0

    def send(self, method, args, kind=TMessageType.CALL):
        self.seqid += 1
        self.protocol.writeMessageBegin(method, kind, self.seqid)
        write_struct(self.protocol, args)
        self.protocol.writeMessageEnd()
        self.transport.flush()

    def call(self, method, args):
        self.send(method, args)
        name, kind, seqid = self.protocol.readMessageBegin()
        assert (name, seqid) == (method, self.seqid), f"reply to {name} {seqid}, wanted {method} {self.seqid}"
        if kind == TMessageType.EXCEPTION:
            e = TApplicationException()
            e.read(self.protocol)
            self.protocol.readMessageEnd()
            return "exception", e.type
        assert kind == TMessageType.REPLY, kind
        result = read_struct(self.protocol)
        self.protocol.readMessageEnd()
        return "reply", canonical(TType.STRUCT, result)


def calls(client, i):
    """Every method once; yields what came and what should have."""

    def reply(fields):
        return "reply", canonical(TType.STRUCT, fields)

    text = string(f"call {i} \u2603")
    yield client.call("echo", {1: text}), reply({0: text})
    blob = TType.STRING, bytes(range(256)) * (1 + 20 * (i % 3))
    yield client.call("blob", {1: blob}), reply({0: blob})
    yield client.call("slow", {1: text, 2: (TType.I32, 5)}), reply({0: text})
    # If anything were written in answer to it, the next call would read that as its own reply.
    client.send("fire", {1: text}, TMessageType.ONEWAY)
    yield client.call("fail", {1: text}), reply({1: (TType.STRUCT, {1: text, 2: (TType.I32, 418)})})
    yield client.call("fail", {1: string("")}), reply({0: string("")})
    yield client.call("everything", {1: (TType.STRUCT, everything())}), reply({0: (TType.STRUCT, everything())})
    yield client.call("noSuchMethod", {1: text}), ("exception", TApplicationException.UNKNOWN_METHOD)


def call(args):
    client = Client(args.dest, args.protocol)
    n = ok = 0
    failures = {}
    for i in range(args.n):
        for got, want in calls(client, i):
            n += 1
            if got == want:
                ok += 1
            else:
                failures[f"wanted {want}, got {got}"[:2000]] = 1
    print(json.dumps({"summary": "client", "n": n, "ok": ok, "failures": failures}))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=["server", "client"])
    parser.add_argument("--protocol", choices=PROTOCOLS, default="binary")
    parser.add_argument("--name", default="python")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--dest")
    parser.add_argument("--n", type=int, default=1)
    args = parser.parse_args()
    serve(args) if args.role == "server" else call(args)


if __name__ == "__main__":
    sys.exit(main())
