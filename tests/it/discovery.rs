//! Discovery changes under load, and no call notices: here with files.

use crate::support::{Disco, House, yaml};
use muxgate_testkit::drill::{Drill, Echoes};

#[tokio::test(flavor = "multi_thread")]
async fn files_come_and_go_under_load() {
    let echoes = Echoes::start(3).await;
    let disco = Disco::new();
    disco.put("probe", &[echoes.addr(0)]);
    let house =
        House::start(&(disco.namer() + &yaml("/s/probe => /#/fs/probe | /#/fs/spare", "thriftmux", "")))
            .await;
    let mut drill = Drill::start(house.addr);
    drill.step("one member", async {}).await;
    drill.step("add", async { disco.put("probe", &echoes.addrs()[..2]) }).await;
    drill.traffic(&echoes, &[0, 1]).await;
    drill.step("remove", async { disco.put("probe", &[echoes.addr(1)]) }).await;
    drill.traffic(&echoes, &[1]).await;
    drill.step("replace", async { disco.put("probe", &[echoes.addr(0)]) }).await;
    drill.traffic(&echoes, &[0]).await;
    drill.step("a fallback", async { disco.put("spare", &[echoes.addr(2)]) }).await;
    drill.step("delete", async { disco.remove("probe") }).await;
    drill.traffic(&echoes, &[2]).await;
    drill.end().await;
}
