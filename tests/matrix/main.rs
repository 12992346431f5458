//! Every form of caller with every form of service, in everything that can become of a call: one table.

mod cell;
mod forms;
mod rule;
mod scene;
mod several;
mod table;

use cell::Verdict;
use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt};
use rule::Outcome;
use scene::{Scene, Trust};

/// Failures that are told in full.
const TOLD: usize = 12;
/// Gateways that run at once: while calls of one run into their time limits, others have something to do.
const AT_ONCE: usize = 3;

#[tokio::test(flavor = "multi_thread")]
async fn every_caller_with_every_service_in_every_outcome() {
    let (inbound, outbound) = (forms::inbound(), forms::outbound());
    let trust = Trust::new();
    let columns = outbound.iter().map(|column| async {
        let Scene { gateway, mut rows, .. } = Scene::start(column, &inbound, &trust).await;
        let cells = join_all(rows.iter_mut().map(cell::Row::run)).await;
        gateway.drain().await;
        cells
    });
    let columns: Vec<_> = stream::iter(columns).buffered(AT_ONCE).collect().await;
    let failed: Vec<Vec<_>> =
        columns.iter().map(|cells| cells.iter().map(|row| letters(row)).collect()).collect();
    let stories: Vec<_> =
        columns.into_iter().flatten().flatten().filter_map(|(_, verdict)| verdict.err()).collect();
    println!("{}", table::table(&inbound, &outbound, &failed));
    let told = stories.iter().take(TOLD).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(stories.is_empty(), "{} cells fail\n{told}", stories.len());
}

fn letters(row: &[(Outcome, Verdict)]) -> String {
    row.iter().filter(|(_, verdict)| verdict.is_err()).map(|(outcome, _)| outcome.letter()).collect()
}
