//! Where what is learned is kept.

use crate::config::parse;
use crate::config::plan::State;

const LISTENERS: &str = "listeners: [{name: in, port: 0, dst: /x}]\ndtab: /svc => /$/nil\n";

#[test]
fn state_is_kept_in_a_folder_or_nowhere() {
    for (key, state) in [
        ("", State::Default),
        ("stateDir: none\n", State::Nowhere),
        ("stateDir: some/folder\n", State::Folder("some/folder".into())),
    ] {
        let plan = parse("-", &format!("{key}{LISTENERS}")).unwrap_or_else(|report| panic!("{report}"));
        assert_eq!(plan.state(), &state);
        assert!(!plan.has_state());
    }
    assert!(parse("-", &format!("stateDir: ''\n{LISTENERS}")).is_err());
}
