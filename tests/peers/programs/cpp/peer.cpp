// C++ as a peer. See ../README.md.

#include <chrono>
#include <functional>
#include <iostream>
#include <map>
#include <mutex>
#include <thread>
#include <unistd.h>

#include <thrift/TApplicationException.h>
#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/protocol/TCompactProtocol.h>
#include <thrift/protocol/THeaderProtocol.h>
#include <thrift/server/TThreadedServer.h>
#include <thrift/transport/TBufferTransports.h>
#include <thrift/transport/TServerSocket.h>
#include <thrift/transport/TSocket.h>

#include "echo/Beyond.h"
#include "values.h"

using namespace apache::thrift;
using namespace apache::thrift::protocol;
using namespace apache::thrift::transport;
using echo::EchoError;
using echo::Everything;
using std::shared_ptr;
using std::string;
using Flags = std::map<string, string>;

// ---- server ----

class Handler : public echo::PeerIf {
 public:
  void echo(string& answer, const string& s) override { answer = s; }
  void blob(string& answer, const string& b) override { answer = b; }

  void slow(string& answer, const string& s, const int32_t delayMs) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(delayMs));
    answer = s;
  }

  void fail(string& answer, const string& why) override {
    nothing(why);
    answer = "";
  }

  void nothing(const string& why) override {
    if (why.empty()) return;
    EchoError e;
    e.why = why;
    e.code = 418;
    throw e;
  }

  void fire(const string& s) override {
    std::lock_guard<std::mutex> lock(mutex);
    fired[s]++;
  }

  int32_t heard(const string& s) override {
    std::lock_guard<std::mutex> lock(mutex);
    return fired[s];
  }

  void everything(Everything& answer, const Everything& e) override {
    answer = e;
    for (const Everything& want : cases()) {
      if (want.required_string != e.required_string) continue;
      string wrong = difference(e, want);
      if (!wrong.empty()) {
        std::cerr << e.required_string << " " << wrong << std::endl;
        answer.required_string += ": " + wrong;
      }
    }
  }

 private:
  std::mutex mutex;
  std::map<string, int32_t> fired;
};

// Says where the server listens, once it does.
class Ready : public server::TServerEventHandler {
 public:
  explicit Ready(shared_ptr<TServerSocket> socket) : socket(std::move(socket)) {}
  void preServe() override { std::cout << "READY 127.0.0.1:" << socket->getPort() << std::endl; }

 private:
  shared_ptr<TServerSocket> socket;
};

shared_ptr<TProtocolFactory> protocols(Flags& flags) {
  // It makes its own transport.
  if (flags["transport"] == "header") return std::make_shared<THeaderProtocolFactory>();
  if (flags["protocol"] == "compact") return std::make_shared<TCompactProtocolFactory>();
  return std::make_shared<TBinaryProtocolFactory>();
}

void serve(Flags& flags) {
  auto socket = std::make_shared<TServerSocket>("127.0.0.1", std::stoi(flags["port"]));
  shared_ptr<TTransportFactory> transports = std::make_shared<TBufferedTransportFactory>();
  if (flags["transport"] == "framed") transports = std::make_shared<TFramedTransportFactory>();
  auto processor = std::make_shared<echo::PeerProcessor>(std::make_shared<Handler>());
  server::TThreadedServer server(processor, socket, transports, protocols(flags));
  // One protocol for both directions: with two, THeader answers in binary whatever it was asked in.
  if (flags["transport"] == "header") server.setOutputProtocolFactory(nullptr);
  server.setServerEventHandler(std::make_shared<Ready>(socket));
  server.serve();
}

// ---- client ----

class Checks {
 public:
  explicit Checks(shared_ptr<TProtocol> protocol)
      : client(std::move(protocol)),
        once("cpp " + std::to_string(getpid()) + " " +
             std::to_string(std::chrono::steady_clock::now().time_since_epoch().count())) {}

  int failed = 0;

  void ofEcho() {
    string large;
    for (int i = 0; i < 50000; i++) large += "\u00fc";
    echo("echo-empty", "");
    echo("echo-short", "hello");
    echo("echo-unicode", UNICODE);
    echo("echo-long", large);
    blob("blob-empty", "");
    blob("blob-all", allBytes());
    blob("blob-zeros", string(100000, '\0'));
    string got;
    client.slow(got, "slow", 20);
    check("slow", got == "slow", got);
    raised("fail", "EchoError 418 " + UNICODE, [&] { client.fail(got, UNICODE); });
    client.fail(got, "");
    check("fail-not", got.empty(), got);
    for (const Everything& e : cases()) {
      Everything answer;
      client.everything(answer, e);
      string wrong = difference(answer, e);
      check("everything-" + e.required_string, wrong.empty(), wrong);
    }
    // If anything were written in answer to it, the next call would read that as its own reply.
    client.fire(once);
    echo("fire", "after fire");
    raised("missing", "TApplicationException 1", [&] { client.missing(got, "?"); });
    echo("after-missing", "still here");
  }

  void ofPeer() {
    int heard = 0;
    for (int i = 0; i < 2000 && (heard = client.heard(once)) == 0; i++)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    check("heard", heard == 1, std::to_string(heard));
    raised("nothing", "no exception", [&] { client.nothing(""); });
    raised("nothing-raises", "EchoError 418 no", [&] { client.nothing("no"); });
  }

 private:
  echo::BeyondClient client;
  const string once;

  void check(const string& name, bool right, const string& got) {
    if (!right) failed++;
    std::cout << (right ? "ok " + name : "FAILED " + name + ": is " + got.substr(0, 500)) << std::endl;
  }

  void echo(const string& name, const string& s) {
    string got;
    client.echo(got, s);
    check(name, got == s, got);
  }

  void blob(const string& name, const string& b) {
    string got;
    client.blob(got, b);
    check(name, got == b, std::to_string(got.size()) + " bytes");
  }

  void raised(const string& name, const string& want, const std::function<void()>& call) {
    string got = "no exception";
    try {
      call();
    } catch (const EchoError& e) {
      got = "EchoError " + std::to_string(e.code) + " " + e.why;
    } catch (const TApplicationException& e) {
      got = "TApplicationException " + std::to_string(e.getType());
    }
    check(name, got == want, got);
  }
};

shared_ptr<TProtocol> connect(Flags& flags) {
  const string& address = flags["address"];
  const size_t colon = address.find(':');
  auto socket = std::make_shared<TSocket>(address.substr(0, colon), std::stoi(address.substr(colon + 1)));
  socket->setRecvTimeout(30000);
  socket->open();
  if (flags["transport"] == "header")
    return std::make_shared<THeaderProtocol>(socket, flags["protocol"] == "compact" ? T_COMPACT_PROTOCOL : T_BINARY_PROTOCOL);
  shared_ptr<TTransport> transport = std::make_shared<TBufferedTransport>(socket);
  if (flags["transport"] == "framed") transport = std::make_shared<TFramedTransport>(socket);
  return protocols(flags)->getProtocol(transport);
}

int main(int argc, char** argv) {
  Flags flags = {{"transport", "framed"}, {"protocol", "binary"}, {"port", "0"}, {"service", "peer"}};
  for (int i = 2; i + 1 < argc; i += 2) flags[argv[i] + 2] = argv[i + 1];
  try {
    if (argc > 1 && string(argv[1]) == "serve") {
      serve(flags);
      return 0;
    }
    Checks checks(connect(flags));
    checks.ofEcho();
    if (flags["service"] == "peer") checks.ofPeer();
    return checks.failed > 0;
  } catch (const std::exception& e) {
    std::cerr << e.what() << std::endl;
    return 1;
  }
}
