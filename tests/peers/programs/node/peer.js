"use strict";
// Node as a peer. See ../README.md.

const thrift = require("./library");
const Beyond = require("./echo/Beyond");
const Peer = require("./echo/Peer");
const { EchoError } = require("./echo/echo_types");
const { Checks } = require("./checks");
const { cases, difference } = require("./values");

// Each method answers before it returns: with THeader the library forgets the header of a reply that comes later.
function handler() {
  const fired = new Map();
  const fail = (why, answer) => (why ? answer(new EchoError({ why, code: 418 })) : answer(null, ""));
  return {
    echo: (s, answer) => answer(null, s),
    blob: (b, answer) => answer(null, b),
    slow(s, delayMs, answer) {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, delayMs);
      answer(null, s);
    },
    fail,
    nothing: fail,
    fire(s) {
      fired.set(s, (fired.get(s) ?? 0) + 1);
    },
    heard: (s, answer) => answer(null, fired.get(s) ?? 0),
    everything(e, answer) {
      const want = cases().find((c) => c.required_string === e.required_string);
      const wrong = want && difference(e, want);
      if (wrong) {
        console.error(`${e.required_string}: ${wrong}`);
        e.required_string += `: ${wrong}`;
      }
      answer(null, e);
    },
  };
}

function options(flags) {
  const protocols = { binary: thrift.TBinaryProtocol, compact: thrift.TCompactProtocol };
  const header = flags.transport === "header";
  return {
    transport: flags.transport === "framed" ? thrift.TFramedTransport : thrift.TBufferedTransport,
    protocol: header ? thrift.THeaderProtocol : protocols[flags.protocol],
  };
}

function serve(flags) {
  const server = thrift.createServer(Peer, handler(), options(flags));
  server.on("error", (e) => console.error(e));
  server.listen(Number(flags.port), "127.0.0.1", () => console.log(`READY 127.0.0.1:${server.address().port}`));
}

async function call(flags) {
  const [host, port] = flags.address.split(":");
  const connection = thrift.createConnection(host, Number(port), options(flags));
  const broken = new Promise((_, reject) => {
    connection.on("error", reject);
    connection.on("close", () => reject(new Error("the connection was closed")));
  });
  const client = thrift.createClient(Beyond, connection);
  // What a header says of the protocol inside.
  if (flags.transport === "header") client.output.setProtocolId(flags.protocol === "compact" ? 2 : 0);
  const checks = new Checks(client);
  const all = async () => {
    await checks.echo();
    if (flags.service !== "echo") await checks.peer();
  };
  await Promise.race([all(), broken]);
  process.exit(checks.failed ? 1 : 0);
}

const [role, ...rest] = process.argv.slice(2);
const flags = { transport: "framed", protocol: "binary", port: "0", service: "peer" };
for (let i = 0; i < rest.length; i += 2) flags[rest[i].slice(2)] = rest[i + 1];
if (role === "serve") {
  serve(flags);
} else {
  call(flags).catch((e) => {
    console.error(e);
    process.exit(1);
  });
}
