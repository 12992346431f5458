//! Every form of caller with every form of service, in everything that can become of a call: one table.

mod cell;
mod forms;
mod rule;
mod scene;
mod table;

use cell::Verdict;
use muxgate_testkit::tls::Authority;
use rule::Outcome;
use scene::Scene;

/// Failures that are told in full.
const TOLD: usize = 12;

#[tokio::test(flavor = "multi_thread")]
async fn every_caller_with_every_service_in_every_outcome() {
    let (inbound, outbound) = (forms::inbound(), forms::outbound());
    let authority = Authority::new();
    let folder = tempfile::tempdir().expect("a folder");
    authority.write(folder.path());
    let (mut failed, mut stories) = (Vec::new(), Vec::new());
    for column in &outbound {
        let Scene { gateway, mut rows, .. } = Scene::start(column, &inbound, &authority, folder.path()).await;
        let cells = futures_util::future::join_all(rows.iter_mut().map(cell::Row::run)).await;
        gateway.drain().await;
        failed.push(cells.iter().map(|row| letters(row)).collect());
        stories.extend(cells.into_iter().flatten().filter_map(|(_, verdict)| verdict.err()));
    }
    println!("{}", table::table(&inbound, &outbound, &failed));
    let told = stories.iter().take(TOLD).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(stories.is_empty(), "{} cells fail\n{told}", stories.len());
}

fn letters(row: &[(Outcome, Verdict)]) -> String {
    row.iter().filter(|(_, verdict)| verdict.is_err()).map(|(outcome, _)| outcome.letter()).collect()
}
