import echo.EchoError;
import echo.Everything;
import echo.Peer;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.thrift.TException;

/** The service. */
final class Handler implements Peer.Iface {
  private final Map<String, Integer> fired = new ConcurrentHashMap<>();

  @Override
  public String echo(String s) {
    return s;
  }

  @Override
  public ByteBuffer blob(ByteBuffer b) {
    return b;
  }

  @Override
  public String slow(String s, int delayMs) throws TException {
    try {
      Thread.sleep(delayMs);
    } catch (InterruptedException e) {
      throw new TException(e);
    }
    return s;
  }

  @Override
  public String fail(String why) throws EchoError {
    if (!why.isEmpty()) throw new EchoError(why, 418);
    return "";
  }

  @Override
  public void nothing(String why) throws EchoError {
    fail(why);
  }

  @Override
  public void fire(String s) {
    fired.merge(s, 1, Integer::sum);
  }

  @Override
  public int heard(String s) {
    return fired.getOrDefault(s, 0);
  }

  @Override
  public Everything everything(Everything e) throws TException {
    for (Everything want : Cases.all()) {
      if (!want.getRequired_string().equals(e.getRequired_string())) continue;
      String wrong = Cases.difference(e, want);
      if (wrong != null) {
        System.err.println(e.getRequired_string() + ": " + wrong);
        e.setRequired_string(e.getRequired_string() + ": " + wrong);
      }
      break;
    }
    return e;
  }
}
