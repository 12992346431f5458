import com.twitter.finagle.Addr;
import com.twitter.finagle.Announcement;
import com.twitter.finagle.Announcer$;
import com.twitter.finagle.Name;
import com.twitter.finagle.Resolvers;
import com.twitter.util.Await;
import com.twitter.util.Duration;
import com.twitter.util.Function;
import java.net.InetSocketAddress;
import scala.runtime.BoxedUnit;

/** announce NAME PORT: joins a server set until SIGTERM. resolve NAME: prints each change of its addresses. */
public class Serversets {
  public static void main(String[] args) throws Exception {
    if (args[0].equals("announce")) {
      InetSocketAddress address = new InetSocketAddress("127.0.0.1", Integer.parseInt(args[2]));
      Announcement announcement = Await.result(Announcer$.MODULE$.announce(address, args[1]), Duration.fromSeconds(60));
      Runtime.getRuntime().addShutdownHook(new Thread(() -> {
        try {
          Await.result(announcement.close(), Duration.fromSeconds(10));
        } catch (Exception e) {
          e.printStackTrace();
        }
      }));
      System.out.println("READY");
    } else {
      ((Name.Bound) Resolvers.eval(args[1])).addr().changes().respond(new Function<Addr, BoxedUnit>() {
        @Override
        public BoxedUnit apply(Addr addr) {
          System.out.println(addr);
          return BoxedUnit.UNIT;
        }
      });
    }
    Thread.currentThread().join();
  }
}
