import echo.Beyond;
import echo.EchoError;
import echo.Everything;
import java.nio.ByteBuffer;
import org.apache.thrift.TApplicationException;
import org.apache.thrift.TException;

/** The calls, in the order of ../README.md. */
final class Checks {
  interface Call {
    Object run() throws TException;
  }

  private final Beyond.Client client;
  private final String once = "java " + ProcessHandle.current().pid() + " " + System.nanoTime();
  int failed;

  Checks(Beyond.Client client) {
    this.client = client;
  }

  private void say(String name, boolean right, Object got) {
    if (!right) failed++;
    System.out.println(right ? "ok " + name : String.format("FAILED %s: is %.300s", name, got));
  }

  private void equal(String name, Object got, Object want) {
    say(name, got.equals(want), got);
  }

  private void raised(String name, Call call, Object want) throws TException {
    Object got;
    try {
      got = call.run();
    } catch (EchoError e) {
      got = e;
    } catch (TApplicationException e) {
      got = e.getType();
    }
    equal(name, got, want);
  }

  private void blob(String name, ByteBuffer bytes) throws TException {
    equal(name, client.blob(bytes.duplicate()), bytes);
  }

  void echo() throws TException {
    equal("echo-empty", client.echo(""), "");
    equal("echo-short", client.echo("hello"), "hello");
    equal("echo-unicode", client.echo(Cases.UNICODE), Cases.UNICODE);
    String large = "\u00fc".repeat(50000);
    equal("echo-long", client.echo(large), large);
    blob("blob-empty", ByteBuffer.allocate(0));
    blob("blob-all", Cases.allBytes());
    blob("blob-zeros", ByteBuffer.allocate(100000));
    equal("slow", client.slow("slow", 20), "slow");
    raised("fail", () -> client.fail(Cases.UNICODE), new EchoError(Cases.UNICODE, 418));
    equal("fail-not", client.fail(""), "");
    for (Everything e : Cases.all()) {
      String wrong = Cases.difference(client.everything(e), e);
      say("everything-" + e.getRequired_string(), wrong == null, wrong);
    }
    // If anything were written in answer to it, the next call would read that as its own reply.
    client.fire(once);
    equal("fire", client.echo("after fire"), "after fire");
    raised("missing", () -> client.missing("?"), TApplicationException.UNKNOWN_METHOD);
    equal("after-missing", client.echo("still here"), "still here");
  }

  void peer() throws TException, InterruptedException {
    int heard = 0;
    for (int i = 0; i < 2000 && (heard = client.heard(once)) == 0; i++) Thread.sleep(10);
    equal("heard", heard, 1);
    client.nothing("");
    say("nothing", true, null);
    Call call = () -> {
      client.nothing("no");
      return "no exception";
    };
    raised("nothing-raises", call, new EchoError("no", 418));
  }
}
